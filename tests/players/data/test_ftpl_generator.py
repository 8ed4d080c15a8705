"""A generator that follows the leader of all critics."""

from dataclasses import replace
from fractions import Fraction

import jax
import numpy as np
import pytest

from understudy.errors import WorkError
from understudy.game import play
from understudy.game.methods.querygan import COLUMNS, QueryGANMethod
from understudy.models import Empirical
from understudy.nets.generator import one_hot
from understudy.players.base import LinearCritic, Measured, MeasuredCell, MeasuredMoments, Problem
from understudy.players.data.ftpl_generator import (
    FTPLGenerator,
    _arranged,
    _chosen,
    _consistent,
    _units,
)
from understudy.players.query.picking import CellPicker
from understudy.privacy.cost import Plan
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Cell
from understudy.privacy.questions.moments import RandomFeatures
from understudy.testing import SeededNoise, StrictCharges, TinyCounts, tiny_design

TINY = QueryGANMethod(rounds=2, batch=8, width=4, records=60, steps=1)


@pytest.mark.parametrize("kind", ["fourier", "relu", "softplus"])
def test_units_of_the_generator_are_the_features_that_were_measured(kind):
    shape = (2, 3, 2)
    maps = RandomFeatures(shape, ((0, 1), (1, 2), (0, 1, 2)), kind, 5)
    every = np.array(list(np.ndindex(shape)))
    found = np.asarray(
        _units(MeasuredMoments(maps, np.zeros(0), 1.0)).features(
            one_hot(shape, jax.numpy.asarray(every))
        )
    )
    parts = [maps.features(at, list(every[:, c].T)) for at, c in enumerate(maps.cliques)]
    rows = np.concatenate(parts, axis=1)
    expected = np.stack([_arranged(MeasuredMoments(maps, row, 1.0)) for row in rows])
    np.testing.assert_allclose(found, expected, atol=2e-6)


PROBLEM = Problem((2, 3), ((0, 1),), (1.0,), 100)


def leader(**settings):
    given = {"rounds": 3, "batch": 32, "width": 8, "records": 90, "keep": 1.0, **settings}
    return FTPLGenerator(**given)


@pytest.mark.slow
def test_picked_cells_pull_the_records_there():
    player = leader(rounds=30, steps=5, rate=0.02, eta=0.3, records=9_000, keep=0.1)
    state, rng = player.start(PROBLEM), np.random.default_rng(0)
    for _ in range(30):
        answer = MeasuredCell((0, 1), Cell(0, (1, 2), 1))
        state = player.respond(PROBLEM, state, (answer,), rng)
    model = player.finish(PROBLEM, state)
    assert model.size == 9_000
    assert model.marginal((0, 1))[1, 2] > 0.7


@pytest.mark.slow
def test_linear_critics_are_added_up_by_table_and_clipped():
    player = leader(features=((0,), (0, 1)), whole=True)
    state, rng = player.start(PROBLEM), np.random.default_rng(0)
    pair = np.zeros((2, 3))
    pair[0, 1] = 25.0
    state = player.respond(PROBLEM, state, (LinearCritic(((0, 1),), (pair,)),), rng)
    assert state.past is not None
    assert float(state.past.total.sum()) == 1.0
    state = player.respond(PROBLEM, state, (LinearCritic(((0,),), (np.array([0.5, -0.5]),)),), rng)
    assert state.past.rounds == 2
    assert player.view(PROBLEM, state).size == 60


def test_no_answers_change_nothing_and_wrong_ones_are_said():
    player = leader(width=4, batch=8)
    state, rng = player.start(PROBLEM), np.random.default_rng(0)
    assert player.respond(PROBLEM, state, (), rng) is state
    with pytest.raises(WorkError, match="picked cell and its side"):
        player.respond(PROBLEM, state, (MeasuredCell((0, 1), Cell(0, (1, 2))),), rng)
    with pytest.raises(WorkError, match="critic over tables"):
        leader(features=((0, 1),)).respond(
            PROBLEM, state, (MeasuredCell((0, 1), Cell(0, (1, 2), 1)),), rng
        )


def test_coins_of_the_first_rounds_may_leave_no_critic():
    """Half of all first rounds of S-FTPL have an empty sample; they are played all the same."""
    player = leader(play="sftpl", scale=0.3, steps=1, width=4, batch=8)
    answer = MeasuredCell((0, 1), Cell(0, (1, 2), 1))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        state = player.respond(PROBLEM, player.start(PROBLEM), (answer,), rng)
        assert state.round == 1


def test_the_regret_of_regularised_critics_is_told():
    rng = np.random.default_rng(0)
    tables = (Measured((0, 1), np.array([[20, 30, 0], [0, 20, 30]]), 2.0),)
    for eta, says in ((4.0, False), (0.01, True)):
        player = leader(regularised=eta, steps=1, width=4, batch=8, rounds=4)
        state = player.respond(PROBLEM, player.start(PROBLEM), tables, rng)
        told = player.diagnostics(state)
        bound = told["bound_on_their_regret"]
        assert (bound == "says nothing here") is says
        assert says or told["regret_of_the_critics"] <= bound < 1
    assert leader().diagnostics(player.start(PROBLEM)) == {}


@pytest.mark.parametrize("oracle", ["exponential", pytest.param("moments", marks=pytest.mark.slow)])
def test_divergence_keeps_the_last_good_round_and_asks_nothing_more(oracle):
    made = replace(TINY, oracle=oracle, rounds=4, rate=1e38)
    design = tiny_design((2, 3), rows=4)
    plan = Plan(made.charges(design, Fraction(1)))
    charges = StrictCharges(plan, design.relation)
    rows = TinyCounts(design.shape, [(0, 1), (1, 2), (1, 1), (0, 0)])
    gate = Gate(rows, charges, design.relation, SeededNoise(1), 4)
    query, data = made.players(design, plan)
    with pytest.warns(RuntimeWarning, match="diverged in round .* nothing more is asked"):
        model = play(design.problem(4), query, data, gate, np.random.default_rng(0)).model
    asked = [purpose for purpose, _ in charges.charged]
    assert model.size >= 60
    assert model.paid is None
    if oracle == "exponential":
        assert asked[:2] == [COLUMNS, CellPicker.PICK]
        assert len(asked) < query.rounds


def test_tables_are_scaled_to_their_columns():
    rng = np.random.default_rng(3)
    true = rng.dirichlet(np.ones(12)).reshape(3, 4) * 1_000
    columns = [true.sum(axis=1), true.sum(axis=0)]
    noisy = np.maximum(true + rng.normal(0, 20, true.shape), 0.0)
    noisy[1] = 0.0  # a row that noise took away stays empty
    cliques = ((0,), (1,), (0, 1))
    first, second, joint = _consistent(cliques, [*columns, noisy])
    assert (first == columns[0]).all()
    assert (second == columns[1]).all()
    np.testing.assert_allclose(joint.sum(axis=0), columns[1], rtol=1e-9)
    assert not joint[1].any()
    joint = _consistent(cliques, [*columns, np.maximum(noisy, 1.0)])[2]
    np.testing.assert_allclose(joint.sum(axis=1), columns[0], rtol=1e-3)
    np.testing.assert_allclose(joint.sum(axis=0), columns[1], rtol=1e-9)


def test_chosen_records_have_the_columns_that_tables_state_and_the_records_own_dependence():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 60_000)
    second = np.where(rng.random(60_000) < 0.7, first, rng.integers(0, 4, 60_000))
    pool = Empirical.of((4, 4), np.stack([first, second], axis=1))
    columns = [np.array([1.0, 2.0, 3.0, 4.0]), np.array([4.0, 3.0, 2.0, 1.0])]
    made = _chosen(Problem((4, 4), ((0, 1),), (1.0,), 30_000), pool, columns)
    assert made.size == 30_000
    for i, column in enumerate(columns):
        # A sample of as many records would be off by about 1/√30,000 = .006.
        assert np.abs(made.marginal((i,)) - column / 10).max() < 3e-4
    odds = [_log_odds(each.marginal((0, 1))) for each in (pool, made)]
    np.testing.assert_allclose(odds[1], odds[0], atol=0.06)


def test_a_small_table_has_records_enough():
    pool = Empirical.of((2,), np.arange(30_000)[:, None] % 2)
    made = _chosen(Problem((2,), ((0,),), (1.0,), 200), pool, [np.array([50.0, 150.0])])
    assert made.size == 10_000
    np.testing.assert_allclose(made.marginal((0,)), [0.25, 0.75], atol=1e-4)


def _log_odds(table):
    """Scaling rows and columns leaves them as they are."""
    logs = np.log(table)
    return logs[1:, 1:] - logs[1:, :1] - logs[:1, 1:] + logs[:1, :1]
