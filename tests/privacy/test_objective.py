"""Objective perturbation: exact laws in one dimension, densities in two, and what is refused."""

import math
from dataclasses import fields, replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from understudy.errors import PrivacyError
from understudy.privacy import accounting, objective
from understudy.privacy.cost import Charge, Perturbation, Plan, event_from_json
from understudy.privacy.gate import Gate
from understudy.privacy.objective import (
    MarginalFeatures,
    Precision,
    Sides,
    covers,
    event_for,
    minimum,
    perturbed,
)
from understudy.privacy.questions import Critic
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StillNoise, StrictCharges, TinyCounts

ONE = MarginalFeatures((1,), ((0,),))
COARSE = Precision(lattice=512, grid=1024, gamma=1e-6)
ORDERS = (1.05, 1.5, 2.0, 4.0, 9.0, 30.0)


# --- the law in one dimension -------------------------------------------------------------------


def one_dimensional(rho, curvature):
    """ρ for the linear term and the determinants, where too little must show, and a sixth on top."""
    jacobian = math.sqrt(curvature * rho / 4)
    sigma = COARSE.lattice / math.sqrt(2 * (1 - curvature) * rho)
    beyond = objective._beyond(ONE, objective._ridge(ONE, jacobian), COARSE)
    output = beyond / math.sqrt(rho / 3)
    return Perturbation(sigma, COARSE.lattice, 1, jacobian, 1, output, beyond)


def minima(rows, linear, ridge, weight=1.0):
    """argmin F for every b at once, by bisection: F' grows with θ."""
    low, high = np.full(linear.size, -1e4), np.full(linear.size, 1e4)
    for _ in range(80):
        middle = (low + high) / 2
        slope = weight * expit(middle) - rows * expit(-middle) + ridge * middle + linear
        low, high = np.where(slope < 0, middle, low), np.where(slope < 0, high, middle)
    return (low + high) / 2


def bell(reach, sigma):
    z = np.arange(-reach, reach + 1)
    law = np.exp(-((z / sigma) ** 2) / 2)
    return z, law / law.sum()


def output_law(rows, event, factor, weight=100.0):
    """P of every released integer, from the law of the lattice noise and that of the output."""
    z, law = bell(int(14 * event.sigma), event.sigma * factor)
    ridge = objective._ridge(ONE, event.jacobian)
    found = minima(rows, z / COARSE.lattice, ridge, weight)
    exact = np.rint(COARSE.grid * found).astype(int)
    wide = np.abs(exact).max() + 2_000
    mass = np.bincount(exact + wide, weights=law, minlength=2 * wide + 1)
    return np.convolve(mass, bell(1_500, event.output_sigma * factor)[1], mode="same")


def divergence(p, q, order):
    """D_α, from logarithms of two laws."""
    return float(np.logaddexp.reduce(order * p + (1 - order) * q)) / (order - 1)


def worst_ratio(event, factor=1.0):
    """max D_α/α over neighbours, both ways, and the orders whose weight is far inside what is drawn.

    An order α looks at losses about α·√(2ρ) ≤ 5 standard deviations out. Noise is cut off at 14, and
    outputs less likely than 1e-30 are left aside.
    """
    laws = [output_law(rows, event, factor) for rows in (0, 1, 3, 4)]
    wide = max(law.size for law in laws)
    laws = [np.pad(law, (wide - law.size) // 2) for law in laws]
    far = max(2.0, 5 / math.sqrt(2 * float(accounting.rho(event))))
    worst = 0.0
    for first, second in ((0, 1), (1, 0), (2, 3), (3, 2)):
        p, q = laws[first], laws[second]
        seen = (p > 1e-30) & (q > 1e-30)
        p, q = np.log(p[seen]), np.log(q[seen])
        worst = max(worst, *(divergence(p, q, a) / a for a in ORDERS if a <= far))
    return worst


@pytest.mark.parametrize(("rho", "curvature"), [(0.02, 0.05), (0.5, 0.05), (0.5, 0.8)])
def test_the_exact_law_keeps_its_promise_and_half_the_noise_does_not(rho, curvature):
    event = one_dimensional(rho, curvature)
    promised = float(accounting.rho(event))
    assert rho < promised < 1.3 * rho
    seen = worst_ratio(event)
    assert seen <= promised
    if curvature < 0.5:
        assert seen > 0.6 * rho
        assert worst_ratio(event, factor=0.5) > 1.5 * promised


class Scripted(StillNoise):
    """Gives the linear term that a test chose, and shows the minimum without noise."""

    def __init__(self, first):
        super().__init__()
        self._first = first

    def gaussian(self, values, sigma):
        given = super().gaussian(values, sigma)
        first, self._first = self._first, None
        return given if first is None else given + first


def test_the_law_above_is_that_of_the_code():
    event = one_dimensional(0.5, 0.05)
    ridge = objective._ridge(ONE, event.jacobian)
    for z, rows in product((-700, -31, 0, 5, 900), (0, 2)):
        noise = Scripted(np.array([z]))
        codes = [np.zeros(1, np.int64)]
        sides = Sides(ONE, (codes, np.array([rows])), (codes, np.ones(1)))
        theta = perturbed(sides, event, noise, COARSE)
        (exact,) = minima(rows, np.array([z / COARSE.lattice]), ridge)
        assert abs(theta[0] - exact) <= 1 / COARSE.grid
        assert [kind for kind, *_ in noise.asked] == ["gaussian", "gaussian"]
        assert [scale for *_, scale in noise.asked] == [event.sigma, event.output_sigma]
        assert noise.asked[0][1].tolist() == [0]


# --- densities in two dimensions ----------------------------------------------------------------

TWO = MarginalFeatures((2,), ((0,),))


def log_density(counts, grid, sigma, ridge):
    """ln of the minimiser's density on a grid (m, m, 2) of θ, rows against one record of each value."""
    a, b = expit(-grid), expit(grid)
    linear = counts * a - b - ridge * grid
    hessian = (1 + counts) * a * b + ridge
    logs = (np.log(hessian) - (linear / sigma) ** 2 / 2).sum(-1).reshape(-1)
    return logs - np.logaddexp.reduce(logs)


@pytest.mark.parametrize("kappa", [0.02, 0.2, 1.0])
@pytest.mark.parametrize("noise", [0.02, 0.5])
def test_divergences_of_replacements_stay_within_the_bound(kappa, noise):
    """ρ = cJ/(2σ²) + 4κ² at orders on both sides of 1 + 0.8/κ."""
    sigma, ridge = math.sqrt(1 / noise), 1 / (4 * kappa)
    orders = [1 + x / kappa for x in (0.01, 0.4, 0.8, 1.2, 4)]
    axis = np.linspace(-1, 1, 401) * ((orders[-1] * math.sqrt(2 * noise) + 9) * sigma + 4) / ridge
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    laws = [log_density(np.array(c), grid, sigma, ridge) for c in ((2, 1), (1, 2), (0, 3))]
    pairs = [*pairwise(laws), *pairwise(laws[::-1])]
    worst = max(divergence(p, q, order) / order for p, q in pairs for order in orders)
    assert 0.1 * noise < worst <= noise + 4 * kappa**2


def test_features_of_two_rows_are_orthogonal_or_equal_in_part():
    """‖aψ − a'ψ'‖² ≤ 2J for a, a' in [0, 1]: features are not negative."""
    looks = MarginalFeatures((2, 3), ((0,), (1,), (0, 1)))
    rows = looks.matrix([np.repeat([0, 1], 3), np.tile([0, 1, 2], 2)]).toarray()
    moved = [
        ((a * x - b * y) ** 2).sum()
        for x, y in product(rows, rows)
        for a, b in product((0, 0.5, 1), repeat=2)
    ]
    assert max(moved) == 2 * 3 == Relation.REPLACE.marginal_l2_squared(3)


def test_the_density_integrates_to_one_and_is_that_of_the_minimisers():
    ridge, rows, scale = 0.5, 3, 2.0
    theta = np.linspace(-60, 60, 240_001)
    slope = expit(theta) - rows * expit(-theta) + ridge * theta
    curve = (1 + rows) * expit(theta) * expit(-theta) + ridge
    density = stats.norm.pdf(slope, scale=scale) * curve
    assert np.trapezoid(density, theta) == pytest.approx(1.0, abs=1e-6)
    drawn = np.random.default_rng(1).normal(scale=scale, size=100_000)
    found = minima(rows, drawn, ridge)
    cdf = np.interp(found, theta, np.cumsum(density) * (theta[1] - theta[0]))
    assert stats.kstest(cdf, "uniform").pvalue > 1e-3
    assert stats.kstest(cdf[:20_000] ** 1.1, "uniform").pvalue < 1e-6


# --- the solver ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_the_minimum_is_one(seed):
    rng = np.random.default_rng(seed)
    looks = MarginalFeatures((3, 4, 2), ((0, 1), (2,), (1, 2)))
    real = looks.matrix([rng.integers(0, s, 500) for s in looks.shape])
    fake = looks.matrix([rng.integers(0, s, 40) for s in looks.shape])
    linear = 10.0 ** rng.integers(0, 6) * rng.standard_normal(looks.size)
    counts, weights = np.ones(500), np.full(40, 12.5)
    theta = minimum(real, counts, fake, weights, linear, 0.7, 1e-8)
    a, b = expit(-(real @ theta)), expit(fake @ theta)
    gradient = fake.T @ (weights * b) - real.T @ (counts * a) + 0.7 * theta + linear
    assert np.linalg.norm(gradient) <= 1e-8


def test_features_are_the_cells_a_row_lies_in():
    looks = MarginalFeatures((3, 4, 2), ((0, 1), (2,), (0, 2)))
    dense = looks.matrix([np.array([2, 0]), np.array([1, 3]), np.array([1, 0])]).toarray()
    assert looks.columns == (0, 1, 2)
    assert dense.shape == (2, 12 + 2 + 6)
    assert [np.flatnonzero(row).tolist() for row in dense] == [[9, 13, 19], [3, 12, 14]]


def test_what_is_computed_lies_where_the_proof_says():
    looks = MarginalFeatures((3, 3), ((0, 1),))
    event = event_for(looks, Relation.ADD_REMOVE, Fraction(1, 100))
    ridge = objective._ridge(looks, event.jacobian)
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, 3, 50) for _ in range(2)]
    noise = Scripted(rng.integers(-(2**26), 2**26, looks.size))
    first = noise._first.copy()
    sides = Sides(looks, (codes, np.ones(50, int)), (codes, np.ones(50)))
    rough = perturbed(sides, event, noise)
    features = looks.matrix(codes)
    # Anywhere in the cell of the lattice that the noise stands for, solved far better.
    inside = (first + rng.uniform(-0.5, 0.5, looks.size)) / objective.PRECISION.lattice
    fine = minimum(features, np.ones(50), features, np.ones(50), inside, ridge, 1e-11)
    assert np.linalg.norm(rough - fine) * objective.PRECISION.grid <= event.output_l2 / 2


# --- costs and refusals -------------------------------------------------------------------------


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("rho", [Fraction(1, 10**6), Fraction(1, 300), Fraction(4)], ids=str)
def test_events_cost_what_was_asked(rho, relation):
    looks = MarginalFeatures((5, 4, 3), ((0, 1), (1, 2)))
    event = event_for(looks, relation, rho)
    assert covers(event, looks, relation)
    assert event_from_json(event.to_json()) == event
    assert float(rho) * (1 - 1e-9) < accounting.rho(event) <= rho
    assert accounting.pure(event) is None
    spent = accounting.epsilon([event] * 50, 1e-9)
    assert (spent.by, spent.epsilon) == (
        "zcdp",
        accounting.epsilon_from_rho(50 * accounting.rho(event), 1e-9),
    )
    assert accounting.rho(event, 3) == 9 * accounting.rho(event)


def test_an_event_for_fewer_tables_or_another_relation_does_not_cover():
    looks = MarginalFeatures((5, 4, 3), ((0, 1), (1, 2)))
    event = event_for(looks, Relation.ADD_REMOVE, Fraction(1, 100))
    assert not covers(event, looks, Relation.REPLACE)
    more = MarginalFeatures(looks.shape, (*looks.cliques, (0, 2)))
    assert not covers(event, more, Relation.ADD_REMOVE)
    for field in ("step", "changes", "coordinates", "output_l2"):
        assert not covers(replace(event, **{field: 1}), looks, Relation.ADD_REMOVE)


def gate(event, relation=Relation.ADD_REMOVE, noise=None):
    rows = [(0, 1), (1, 1), (0, 0), (1, 2)]
    charges = StrictCharges(Plan((Charge("critic", event),)), relation)
    counts = TinyCounts((2, 3), rows)
    public = 4 if relation is Relation.REPLACE else None
    return Gate(counts, charges, relation, noise or SeededNoise(0), public), charges


RECORDS = [np.array([0, 1, 1]), np.array([2, 2, 0])]
TABLES = ((0, 1), (1,))


def test_a_minimum_that_is_not_found_releases_nothing_and_is_charged(monkeypatch):
    event = event_for(MarginalFeatures((2, 3), TABLES), Relation.ADD_REMOVE, Fraction(1, 100))
    asked, charges = gate(event)
    monkeypatch.setattr(objective, "_STEPS", 1)
    with pytest.raises(PrivacyError, match="not found; nothing is released and the charge stands"):
        asked.ask("critic", Critic(TABLES, RECORDS, 4))
    assert len(charges.charged) == 1


@pytest.mark.parametrize("field", [each.name for each in fields(Perturbation)])
def test_events_without_noise_cannot_be_written(field):
    with pytest.raises(PrivacyError, match=f"Perturbation: {field}"):
        replace(one_dimensional(0.5, 0.05), **{field: 0})


# --- why ODO-1 is not here ----------------------------------------------------------------------


def test_what_is_wrong_with_the_printed_oracle():
    # One record x = 1 or x = 2 under softplus: without curvature the determinants' ratio has no bound.
    def curvature(x, theta):
        return x * x * expit(x * theta) * expit(-x * theta)

    ratios = [curvature(1, t) / curvature(2, t) for t in (0, 5, 10, 20)]
    assert ratios == sorted(ratios)
    assert ratios[2] == pytest.approx(5.5e3, rel=0.02)
    # ε0 = ε/√(2T ln(1/δ)) forgets the second term of advanced composition.
    for epsilon, spent in ((1.0, 1.037), (2.0, 2.148)):
        each = epsilon / math.sqrt(2 * 100 * math.log(1e6))
        assert epsilon + 100 * each * math.expm1(each) == pytest.approx(spent, abs=1e-3)
