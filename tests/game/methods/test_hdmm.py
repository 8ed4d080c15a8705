"""`hdmm`: its plan, what it forecasts, and what it refuses."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from understudy.errors import InputError
from understudy.game.methods.hdmm import HDMMMethod
from understudy.models.residual import cell_variance, reconstruct
from understudy.privacy import accounting
from understudy.privacy.cost import Plan
from understudy.privacy.gate import Gate
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StillNoise, StrictCharges, TinyCounts, tiny_design
from understudy.wording import points


def gate_for(rows, shape, plan, noise, relation=Relation.ADD_REMOVE):
    return Gate(TinyCounts(shape, rows), StrictCharges(plan, relation), relation, noise, len(rows))


def rows_of(n, shape, key=0):
    rng = np.random.default_rng(key)
    cells = list(itertools.product(*map(range, shape)))
    picks = rng.choice(len(cells), size=n, p=rng.dirichlet(np.full(len(cells), 0.4)))
    return [cells[i] for i in picks]


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_simulated_errors_are_unbiased_and_have_the_forecast_size(relation):
    """Through the real plan and gate; two thirds and three halves of the noise would be seen."""
    shape, rows = (3, 2, 4), rows_of(60, (3, 2, 4))
    design = tiny_design(shape, relation, len(rows))
    plan = Plan(HDMMMethod().charges(design, Fraction(1, 8)))
    query, _ = HDMMMethod().players(design, plan)
    problem = design.problem(len(rows))
    variances = {c: level.sigma**2 for level in query.players for c in level.cliques}
    expected = cell_variance(shape, variances, design.cliques)
    exact = [
        np.asarray(m)
        for m in reconstruct(
            shape,
            query.play(problem, gate_for(rows, shape, plan, StillNoise(), relation), None, 0),
            design.cliques,
        )
    ]
    noise, errors = SeededNoise(3), []
    for _ in range(400):
        gate = gate_for(rows, shape, plan, noise, relation)
        answers = reconstruct(shape, query.play(problem, gate, None, 0), design.cliques)
        errors.append([a - e for a, e in zip(answers, exact, strict=True)])
    for position, variance in enumerate(expected):
        drawn = np.array([e[position] for e in errors])
        assert abs(drawn.mean()) < 5 * math.sqrt(variance / 400)
        assert 0.8 < (drawn**2).mean() / variance < 1.25


def test_columns_outside_the_workload_are_measured_too():
    design = tiny_design((2, 3), rows=100, order=1)
    only = type(design)((2, 3), ((0,),), (1.0,), design.relation, 100)
    plan = Plan(HDMMMethod().charges(only, Fraction(1)))
    query, _ = HDMMMethod().players(only, plan)
    assert {c for level in query.players for c in level.cliques} == {(0,), (1,)}


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction(2, 7), Fraction(50)], ids=str)
def test_the_plan_uses_the_whole_budget_and_no_more(rho, relation):
    plan = Plan(HDMMMethod().charges(tiny_design((3, 2, 2, 4, 2), relation, 500, order=3), rho))
    cost = accounting.total_rho(plan)
    assert cost <= rho
    assert float(cost / rho) == pytest.approx(1.0, abs=1e-9)


def test_the_forecast_gives_the_expected_error():
    design = tiny_design((3, 4), rows=1_000)
    plan = Plan(HDMMMethod().charges(design, Fraction(1, 50)))
    forecast = HDMMMethod().forecast(design, plan, 1_000)
    query, _ = HDMMMethod().players(design, plan)
    variances = {c: level.sigma**2 for level in query.players for c in level.cliques}
    worst = math.sqrt(max(cell_variance((3, 4), variances, design.cliques))) / 1_000
    assert f"{points(worst)} in the worst marginal" in forecast.measured


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"limit": 5}, "every cell of the workload, 6 of them, above its limit of 5; use method ="),
        ({"levels": 0}, "levels = 0 must be at least 1"),
        ({"points": 0}, "points = 0 must be at least 1"),
    ],
)
def test_what_cannot_be_served_is_refused_before_planning(parameters, message):
    with pytest.raises(InputError, match=message):
        HDMMMethod(**parameters).check(tiny_design((2, 3)))
