"""The matrix mechanism over marginals: against explicit matrices, against simulation, and its rows."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from understudy.errors import InputError
from understudy.game import play
from understudy.game.methods import HDMM
from understudy.models import Empirical, Measured
from understudy.models.residual import cell_variance, reconstruct
from understudy.players.base import Problem
from understudy.players.data import Reconstruction
from understudy.players.data.reconstruction import _block, maximal
from understudy.privacy import accounting
from understudy.privacy.cost import Gaussian, Plan
from understudy.privacy.gate import Gate
from understudy.privacy.noise import SeededNoise
from understudy.privacy.relation import Relation
from understudy.testing import (
    StillNoise,
    StrictCharges,
    TinyCounts,
    check_data_player,
    check_query_player,
    tiny_design,
)


def matrix(shape, clique):
    """The marginal as a 0/1 matrix on the flattened universe."""
    universe = list(itertools.product(*map(range, shape)))
    cells = {c: i for i, c in enumerate(itertools.product(*(range(shape[i]) for i in clique)))}
    found = np.zeros((len(cells), len(universe)))
    for column, row in enumerate(universe):
        found[cells[tuple(row[i] for i in clique)], column] = 1
    return found


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
    plan = Plan(HDMM().charges(design, Fraction(1, 8)))
    query, _ = HDMM().players(design, plan)
    problem = design.problem(len(rows))
    variances = {c: level.sigma**2 for level in query.levels for c in level.cliques}
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


def test_exact_tables_come_back_exactly():
    shape, rows = (3, 2, 4), rows_of(60, (3, 2, 4))
    design = tiny_design(shape, Relation.ADD_REMOVE, 60)
    plan = Plan(HDMM().charges(design, Fraction(1)))
    query, _ = HDMM().players(design, plan)
    answers = query.play(design.problem(60), gate_for(rows, shape, plan, StillNoise()), None, 0)
    for clique, table in zip(
        design.cliques, reconstruct(shape, answers, design.cliques), strict=True
    ):
        exact = matrix(shape, clique) @ np.bincount(
            [np.ravel_multi_index(row, shape) for row in rows], minlength=24
        )
        np.testing.assert_allclose(table.reshape(-1), exact, atol=1e-9)


@pytest.mark.parametrize(("limit", "most"), [(10_000, 0.02), (1, 0.04)], ids=["universe", "points"])
def test_rows_come_close_where_there_is_hardly_any_noise(limit, most):
    shape, rows = (3, 2, 4, 2), rows_of(2_000, (3, 2, 4, 2))
    design = tiny_design(shape, Relation.ADD_REMOVE, len(rows))
    plan = Plan(HDMM().charges(design, Fraction(10)))
    query, _ = HDMM().players(design, plan)
    data = Reconstruction(points=20_000, enumerate_up_to=limit)
    gate = gate_for(rows, shape, plan, SeededNoise(0))
    model = play(design.problem(len(rows)), query, data, gate, np.random.default_rng(0)).model
    assert isinstance(model, Empirical) == (limit == 1)
    truth = np.bincount([np.ravel_multi_index(row, shape) for row in rows], minlength=48) / 2_000
    for clique in design.cliques:
        exact = matrix(shape, clique) @ truth
        assert np.abs(model.marginal(clique).reshape(-1) - exact).max() < most


def test_the_block_update_solves_its_equation():
    rng = np.random.default_rng(4)
    for _ in range(50):
        size, total = int(rng.integers(2, 400)), 10 ** rng.uniform(0, 6)
        b = rng.dirichlet(np.full(size, 0.5)) * total
        y = b + rng.normal(size=size) * 10 ** rng.uniform(-2, 4)
        m = b * _block(y, b, 10 ** rng.uniform(-2, 4), total)
        assert m.sum() == pytest.approx(total, rel=1e-6)
        assert (m >= 0).all()
    # Accurate tables are followed, useless ones are not.
    b, y = np.array([50.0, 30.0, 20.0]), np.array([20.0, 20.0, 60.0])
    np.testing.assert_allclose(b * _block(y, b, 1e-3, 100.0), y, rtol=1e-4)
    np.testing.assert_allclose(b * _block(y, b, 1e6, 100.0), b, rtol=1e-3)


def test_maximal_cliques_cover_every_column():
    assert maximal([(0,), (0, 1), (0, 1), (1, 2)], 5) == ((0, 1), (1, 2), (3,), (4,))


def test_columns_outside_the_workload_are_measured_too():
    design = tiny_design((2, 3), rows=100, order=1)
    only = type(design)((2, 3), ((0,),), (1.0,), design.relation, 100)
    plan = Plan(HDMM().charges(only, Fraction(1)))
    query, _ = HDMM().players(only, plan)
    assert {c for level in query.levels for c in level.cliques} == {(0,), (1,)}


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction(2, 7), Fraction(50)], ids=str)
def test_the_plan_uses_the_whole_budget_and_no_more(rho, relation):
    plan = Plan(HDMM().charges(tiny_design((3, 2, 2, 4, 2), relation, 500, order=3), rho))
    cost = accounting.total_rho(plan)
    assert cost <= rho
    assert float(cost / rho) == pytest.approx(1.0, abs=1e-9)


def test_the_forecast_gives_the_expected_error():
    design = tiny_design((3, 4), rows=1_000)
    plan = Plan(HDMM().charges(design, Fraction(1, 50)))
    forecast = HDMM().forecast(design, plan, 1_000)
    sigmas = {c.purpose: c.event.sigma for c in plan if isinstance(c.event, Gaussian)}
    assert forecast.noise == sigmas
    query, _ = HDMM().players(design, plan)
    variances = {c: level.sigma**2 for level in query.levels for c in level.cliques}
    worst = math.sqrt(max(cell_variance((3, 4), variances, design.cliques))) / 1_000
    assert f"{worst:.2g} in the worst marginal" in forecast.measured


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
        HDMM(**parameters).check(tiny_design((2, 3)))


def test_the_players_conform():
    check_data_player(lambda problem: Reconstruction(), kinds=("tables",))
    check_data_player(
        lambda problem: Reconstruction(sweeps=4, points=3_000, enumerate_up_to=1), kinds=("tables",)
    )
    design = tiny_design((3, 2, 1, 2))
    plan = Plan(HDMM().charges(design, Fraction(1)))
    check_query_player(lambda: HDMM().players(design, plan)[0], plan)


def test_other_tables_than_the_workload_are_fitted_as_they_are():
    problem = Problem((2, 2), ((0, 1),), (1.0,), 100)
    data, rng = Reconstruction(), np.random.default_rng(0)
    answer = Measured((0,), np.array([90, 10]), 0.1)
    state = data.respond(problem, data.start(problem), (answer,), rng)
    np.testing.assert_allclose(data.finish(problem, state).marginal((0,)), [0.9, 0.1], atol=1e-3)
