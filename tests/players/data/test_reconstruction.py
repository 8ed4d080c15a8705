"""The matrix mechanism over marginals: against explicit matrices, against simulation, and its rows."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from understudy.game import play
from understudy.game.methods.hdmm import HDMMMethod
from understudy.models import Empirical, Measured
from understudy.models.residual import reconstruct
from understudy.players.base import Problem
from understudy.players.data.reconstruction import Reconstruction, _block, maximal
from understudy.privacy.cost import Plan
from understudy.privacy.gate import Gate
from understudy.privacy.relation import Relation
from understudy.testing import (
    SeededNoise,
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


def test_exact_tables_come_back_exactly():
    shape, rows = (3, 2, 4), rows_of(60, (3, 2, 4))
    design = tiny_design(shape, Relation.ADD_REMOVE, 60)
    plan = Plan(HDMMMethod().charges(design, Fraction(1)))
    query, _ = HDMMMethod().players(design, plan)
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
    plan = Plan(HDMMMethod().charges(design, Fraction(10)))
    query, _ = HDMMMethod().players(design, plan)
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


def test_the_players_conform():
    check_data_player(lambda problem: Reconstruction(), kinds=("tables",))
    check_data_player(
        lambda problem: Reconstruction(sweeps=4, points=3_000, enumerate_up_to=1), kinds=("tables",)
    )
    design = tiny_design((3, 2, 1, 2))
    plan = Plan(HDMMMethod().charges(design, Fraction(1)))
    check_query_player(lambda: HDMMMethod().players(design, plan)[0], plan)


def test_other_tables_than_the_workload_are_fitted_as_they_are():
    problem = Problem((2, 2), ((0, 1),), (1.0,), 100)
    data, rng = Reconstruction(), np.random.default_rng(0)
    answer = Measured((0,), np.array([90, 10]), 0.1)
    state = data.respond(problem, data.start(problem), (answer,), rng)
    np.testing.assert_allclose(data.finish(problem, state).marginal((0,)), [0.9, 0.1], atol=1e-3)
