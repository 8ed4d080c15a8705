"""Exact privacy of the survey: a look and the measurement it leads to, on all neighbours.

The real players, loop and gate are played once for every answer that the look may give; what is
measured then is a function of that answer, and its law a product of discrete Gaussians.
"""

import itertools
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from tests.exact_privacy import (
    ORDERS,
    PrivacyViolation,
    check,
    discrete_gaussian_law,
    neighbours,
    product_law,
)
from tests.thorough import slow, some
from understudy.game import play
from understudy.game.methods.maxent import MaxEntMethod
from understudy.players.data.particles import Particles
from understudy.players.query.survey import Survey
from understudy.privacy import accounting
from understudy.privacy.cost import Plan
from understudy.privacy.gate import Gate
from understudy.privacy.relation import Relation
from understudy.testing import StrictCharges, TinyCounts, tiny_design
from understudy.testing.distributions import fingerprint

SHAPE = (2, 2)
RHO = Fraction(20)
REACH = range(-30, 34)


class Branch:
    """Gives out fixed numbers and writes down the law they were drawn from. NOT PRIVATE."""

    private = False

    def __init__(self, given, factor=1.0):
        self._given, self._factor = list(given), factor
        self.drawn = []

    def gaussian(self, values, sigma):
        self.drawn.append((np.ravel(values).tolist(), self._factor * sigma))
        answer = self._given.pop(0) if self._given else np.zeros(np.size(values), np.int64)
        return np.asarray(answer, np.int64).reshape(np.shape(values))


class Remembers(Particles):
    """Fits every set of answers once, and gives no model: by then everything is released."""

    fits = {}  # noqa: RUF012 - shared on purpose

    def _fit(self, problem, measured, key, effort):
        name = (problem.shape, problem.rows, fingerprint(measured), key, effort)
        if name not in self.fits:
            self.fits[name] = Particles._fit(self, problem, measured, key, effort)
        return self.fits[name]

    def finish(self, problem, state):
        return None


class Loop:
    """One look and the measurement that it leads to, given what the first rounds released."""

    def __init__(self, shape, relation, given, quanta=1, factor=1.0):
        self.relation, self.given, self.factor, self.shape = relation, given, factor, shape
        method = MaxEntMethod(records=1_000, quanta=quanta)
        self.design = tiny_design(shape, relation, 2)
        self.plan = Plan(method.charges(self.design, RHO))
        query, _ = method.players(self.design, self.plan)
        self.query = replace(query, again=1)
        self.first = len(query.first.columns) + 1
        self.known = {}

    @property
    def rho(self):
        """What the look and the measurement are charged."""
        events = (self.plan[Survey.LOOK].event, self.plan[Survey.AGAIN].event)
        return float(sum(accounting.rho(event) for event in events))

    def branch(self, rows, look):
        """[(exact values, sigma)] of the look and of the measurement, where `look` was released."""
        noise = Branch([*self.given[: self.first], [look]], self.factor)
        gate = Gate(
            TinyCounts(self.shape, rows),
            StrictCharges(self.plan, self.relation),
            self.relation,
            noise,
            2,
        )
        play(self.design.problem(2), self.query, Remembers(1_000), gate, np.random.default_rng(0))
        return noise.drawn[self.first :]

    def branches(self, rows):
        """{look: [(exact values, sigma) of both draws]}; the measurement depends on the look."""
        if rows not in self.known:
            self.known[rows] = {look: self.branch(rows, look) for look in REACH}
        return self.known[rows]

    def law(self, rows):
        """Outputs one by one, for the harness."""
        law = {}
        for look, ((exact, sigma), (centres, noise)) in self.branches(rows).items():
            first = discrete_gaussian_law(exact[0], sigma, REACH, tails="lumped")[look]
            rest = product_law(
                *(discrete_gaussian_law(c, noise, range(-6, 9), tails="lumped") for c in centres)
            )
            law.update({(look, *output): first + p for output, p in rest.items()})
        (exact, sigma), _ = self.branches(rows)[0]
        tails = discrete_gaussian_law(exact[0], sigma, REACH, tails="lumped")
        return law | {end: p for end, p in tails.items() if not isinstance(end, int)}

    def renyi(self, a, b, order, factor=1.0):
        """D(a ‖ b) of everything: Σ over looks of the moment of the look times those of the cells."""
        total, ours, theirs = [], self.branches(a), self.branches(b)
        for look in REACH:
            ((p,), sigma), (cells, noise) = ours[look]
            ((q,), _), (other, _) = theirs[look]
            moment = order * log_gaussian(look - p, factor * sigma)
            moment += (1 - order) * log_gaussian(look - q, factor * sigma)
            for x, y in zip(cells, other, strict=True):
                moment += (order - 1) * renyi_of_gaussians(x - y, factor * noise, order)
            total.append(moment)
        return np.logaddexp.reduce(total) / (order - 1)


@cache
def log_gaussian(z, sigma):
    x = np.arange(-200, 201)
    return -(z**2) / (2 * sigma**2) - np.logaddexp.reduce(-(x**2) / (2 * sigma**2))


@cache
def renyi_of_gaussians(shift, sigma, order):
    """Between discrete Gaussians a whole number apart."""
    if shift == 0:
        return 0.0
    x = np.arange(-200, 201)
    log_p, log_q = -(x**2) / (2 * sigma**2), -((x + shift) ** 2) / (2 * sigma**2)
    log_p, log_q = (g - np.logaddexp.reduce(g) for g in (log_p, log_q))
    return np.logaddexp.reduce(order * log_p + (1 - order) * log_q) / (order - 1)


def pairs_of(shape, relation):
    universe = tuple(itertools.product(*map(range, shape)))
    size = 2 if relation is Relation.REPLACE else 1
    every = neighbours(universe, size, relation.value)
    return sorted({(tuple(sorted(a)), tuple(sorted(b))) for a, b in every})


# Releases of the first two rounds: all columns (in tiers), then the pair.
GIVEN = {
    (2, 2): {"even": ([1, 1, 1, 1], [1, 0, 0, 1]), "skewed": ([2, 0, -1, 3], [0, 3, -1, 0])},
    (1, 2): {"even": ([1, 1], [2], [1, 1]), "skewed": ([4, -1], [1], [-2, 3])},
}


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("given", some(GIVEN[1, 2], 2))
def test_a_look_and_what_it_leads_to_keep_their_charges_output_by_output(given, relation):
    """On one column of one value and one of two, where every output can be written down."""
    loop = Loop((1, 2), relation, GIVEN[1, 2][given])
    pairs = pairs_of((1, 2), relation)
    report = check(loop.law, pairs, rho=loop.rho)
    assert report.rho > 0.5 * loop.rho  # the check is not about nothing
    half = Loop((1, 2), relation, GIVEN[1, 2][given], factor=0.5)
    with pytest.raises(PrivacyViolation):
        check(half.law, pairs, rho=report.rho)


@pytest.mark.parametrize("relation", some(Relation, 2), ids=str)
@pytest.mark.parametrize(("given", "quanta"), [slow(("even", 3)), ("skewed", 1)])
def test_a_look_and_what_it_leads_to_keep_their_charges(given, quanta, relation):
    """Rényi divergences of look and measurement together, exactly, on all neighbours."""
    loop = Loop(SHAPE, relation, GIVEN[SHAPE][given], quanta)
    pairs = pairs_of(SHAPE, relation)
    worst = 0.0
    for a, b in pairs:
        for order in ORDERS[:4]:
            for one, other in ((a, b), (b, a)):
                found = loop.renyi(one, other, order)
                worst = max(worst, found / order)
                assert found <= loop.rho * order + 1e-9
    assert worst > 0.3 * loop.rho
    half = max(loop.renyi(a, b, 2.0, 0.5) / 2 for a, b in pairs)
    assert half > max(worst, 1.02 * loop.rho)


def test_the_look_decides_what_is_measured():
    """Otherwise the two tests above would not be about adaptive choices."""
    loop = Loop(SHAPE, Relation.ADD_REMOVE, GIVEN[SHAPE]["even"], 1)
    sizes = {len(draws[1][0]) for draws in loop.branches(((0, 0), (1, 1))).values()}
    assert len(sizes) > 1
