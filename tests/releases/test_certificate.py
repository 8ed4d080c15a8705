"""The certificate's theorem: coverage by simulation, both ways."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.thorough import slow
from understudy.privacy import accounting, planning
from understudy.privacy.cost import Charge, Gaussian, Plan
from understudy.privacy.gate import Gate
from understudy.privacy.noise import OpenDPNoise
from understudy.privacy.questions import RowCount
from understudy.privacy.relation import Relation
from understudy.releases import certificate as c
from understudy.testing import SeededNoise, StrictCharges, TinyCounts
from understudy.wording import bound

CLIQUES = [(0, 1), (0,), (1,)]
TRUE = np.array([[20, 5, 3], [40, 22, 10]])
FIXED = np.array([[10, 10, 5], [30, 10, 15]])


def rows_of(table):
    """Codes of rows that have this joint table."""
    cells = np.repeat(np.arange(table.size), table.reshape(-1))
    return [c.astype(np.uint8) for c in np.unravel_index(cells, table.shape)]


def _worst(rho):
    """The charge of the bound on the maximum."""
    (charge,) = planning.charges(
        Relation.ADD_REMOVE, [planning.Draws(c.WORST, planning.lattice, rho, c.LATTICE)]
    )
    return charge


def gate_of(plan, relation, noise, rows_public, times=1):
    """A gate of the rows of `TRUE`, whose plan may be played so many times."""
    rows = zip(*(column.tolist() for column in rows_of(TRUE)), strict=True)
    often = Plan(tuple(replace(charge, times=times) for charge in plan))
    return Gate(
        TinyCounts(TRUE.shape, list(rows)),
        StrictCharges(often, relation),
        relation,
        noise,
        rows_public,
    )


def simulate(relation, rows_public, beta, variations, times=2000):
    """(certificates, true worst error, true TVs)."""
    charges = [_worst(Fraction(1, 2)), Charge(c.ROWS, planning.gaussian(Fraction(1, 2)))]
    if variations:
        charges.append(
            c.variation_charge(Fraction(1, 2), relation, len(CLIQUES), rows_public is not None)
        )
    plan = Plan(tuple(charges))
    gate = gate_of(plan, relation, SeededNoise(2), rows_public, times)
    size = int(FIXED.sum())
    fixed = [np.asarray(FIXED), FIXED.sum(axis=1), FIXED.sum(axis=0)]
    n = int(TRUE.sum())
    true = [TRUE, TRUE.sum(axis=1), TRUE.sum(axis=0)]
    worst = max(np.abs(t / n - f / size).max() for t, f in zip(true, fixed, strict=True))
    tvs = [np.abs(t / n - f / size).sum() / 2 for t, f in zip(true, fixed, strict=True)]
    found = []
    for _ in range(times):
        measured = gate.ask(c.ROWS, RowCount()) if rows_public is None else None
        found.append(
            c.certify(gate, plan, CLIQUES, rows_of(FIXED), beta=beta, rows_measured=measured)
        )
    return found, worst, tvs


@pytest.mark.parametrize("beta", [0.05, slow(0.25)])
@pytest.mark.parametrize("relation", list(Relation))
def test_coverage_is_beta_where_n_is_public(relation, beta):
    found, worst, _ = simulate(relation, int(TRUE.sum()), beta, variations=False)
    # Clipping to [0, 1] is post-processing; it must not rescue a miss here.
    assert worst > 0
    miss = np.mean([certificate.bound < worst for certificate in found])
    sd = math.sqrt(beta * (1 - beta) / len(found))
    assert abs(miss - beta) <= 3 * sd


def test_coverage_holds_where_n_is_private():
    found, worst, _ = simulate(Relation.ADD_REMOVE, None, 0.05, variations=False)
    miss = np.mean([certificate.bound < worst for certificate in found])
    assert miss <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / len(found))


@pytest.mark.parametrize("rows_public", [None, int(TRUE.sum())])
def test_all_statements_hold_together(rows_public):
    found, worst, tvs = simulate(Relation.ADD_REMOVE, rows_public, 0.2, variations=True, times=1000)
    misses = 0
    for certificate in found:
        assert certificate.variations is not None
        wrong = [u < tv for u, tv in zip(certificate.variations, tvs, strict=True)]
        misses += certificate.bound < worst or any(wrong)
    assert misses / len(found) <= 0.2 + 3 * math.sqrt(0.16 / len(found))
    # The bounds mean something: a margin of noise, not a trivial 1.
    assert np.mean([certificate.bound for certificate in found]) < 1


def test_half_the_margin_would_be_caught():
    found, worst, _ = simulate(Relation.REPLACE, int(TRUE.sum()), 0.05, variations=False)
    plan = Plan((_worst(Fraction(1, 2)),))
    event = plan[c.WORST].event
    margin = c._laplace_margin(event.scale, 0.05)
    short = [u.bound - margin / 2 / (event.l1 * TRUE.sum()) for u in found]
    assert np.mean([u < worst for u in short]) > 0.05 + 3 * math.sqrt(0.05 * 0.95 / len(found))


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5, 640.0, 54321.0])
@pytest.mark.parametrize("beta", [0.5, 0.25, 0.05, 1e-6])
def test_the_margin_is_the_least_integer_with_the_stated_tail(scale, beta):
    t = c._laplace_margin(scale, beta)
    a = math.exp(-1 / scale)

    def tail(t):
        return a ** (t + 1) / (1 + a)

    assert tail(t) <= beta * (1 + 1e-12)
    assert t == 0 or tail(t - 1) > beta * (1 - 1e-12)


def test_the_charge_costs_what_was_set_aside():
    for rho in (Fraction(1, 10**6), Fraction(1, 300), Fraction(2)):
        event = _worst(rho).event
        assert accounting.rho(event) <= rho
        assert accounting.rho(event) >= rho * Fraction(99, 100)


def test_perfect_rows_get_noise_and_margin_only():
    plan = Plan((_worst(Fraction(50)),))
    gate = gate_of(plan, Relation.REPLACE, OpenDPNoise(), int(TRUE.sum()))
    certificate = c.certify(gate, plan, [(0, 1)], rows_of(TRUE), beta=0.05, rows_measured=None)
    assert certificate.bound < 0.01


def test_the_bound_grows_with_the_workload():
    plan = Plan((_worst(Fraction(10**6)),))
    gate = gate_of(plan, Relation.REPLACE, OpenDPNoise(), int(TRUE.sum()), times=2)
    rows = rows_of(FIXED)
    small = c.certify(gate, plan, [(1,)], rows, beta=0.05, rows_measured=None)
    large = c.certify(gate, plan, CLIQUES, rows, beta=0.05, rows_measured=None)
    assert small.bound <= large.bound + 1e-3


def certified(population, rows_public=100, rows_measured=None):
    plan = Plan((_worst(Fraction(1, 2)), Charge(c.ROWS, Gaussian(3.0))))
    measured = c.Certificate(1.0, 0.05, 40, 50, 64, rows_measured, rows_public)
    return measured.bounded(plan, population=population)


def test_the_population_adds_what_sampling_does():
    """bound + sqrt(ln(2|Q|/beta)/(2n)), n from below where it is private, at most one."""
    plain, asked = certified(False, 10_000), certified(True, 10_000)
    margin = math.sqrt(math.log(2 * 40 / 0.05) / 20_000)
    assert asked.population == pytest.approx(plain.bound + margin)
    assert (asked.bound, plain.population) == (plain.bound, None)
    private = certified(True, None, 10_000)
    assert private.population - private.bound > margin
    assert certified(True, 1).population == 1.0


def test_a_bound_of_one_says_nothing_and_is_stated_as_a_number():
    empty = c.Certificate(1.0, 0.05, 40, 50, 64, None, 1, (0.2, 1.0), (1, 2), 1.0)
    assert str(empty).count("≤ 100.00 percentage points, which says nothing here") == 3
    assert empty.statement.count("≤ 1.0000") == 3
    assert "says nothing" not in empty.statement


def test_only_methods_that_ask_speak_of_the_population():
    plain, asked = certified(False), certified(True)
    assert "population" not in str(plain)
    assert "population" not in plain.to_json()
    assert str(asked).startswith(str(plain))
    assert f"{bound(asked.population)} (90 % confidence)" in str(asked)
    for each in (plain, asked):
        assert c.Certificate.from_json(each.to_json()) == each


def test_samples_stay_within_the_population_margin():
    """Hoeffding for all cells at once: fails in at most beta of the samples, and half of it fails."""
    rng = np.random.default_rng(0)
    law, n, beta = rng.dirichlet(np.full(30, 3.0)), 200, 0.2
    off = np.abs(rng.multinomial(n, law, size=4_000) / n - law).max(axis=1)
    margin = c.population_margin(law.size, n, beta)
    assert (off > margin).mean() <= beta
    assert (off > margin / 4).mean() > beta
