"""The perturbed leader: limits of its noise, its steps, and what it keeps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from understudy.errors import WorkError
from understudy.oracles import Law
from understudy.players.base import Measured, MeasuredCell, Problem
from understudy.players.data.ftpl import PerturbedLeader, UnitLeader
from understudy.privacy.questions import Cell


def leader(step, law=Law.EXPONENTIAL, answers=20, decay=np.inf):
    """Records after the same query was picked again and again."""
    problem = Problem((3, 4), ((0, 1),), (1.0,), 100)
    player = PerturbedLeader(answers + 1, samples=400, step=step, decay=decay, law=law)
    state, rng = player.start(problem), np.random.default_rng(0)
    for _ in range(answers):
        picked = MeasuredCell((0, 1), Cell(0, (2, 1), 1))
        state = player.respond(problem, state, (picked,), rng)
    return player.view(problem, state)


@pytest.mark.parametrize("law", list(Law))
def test_noise_without_end_hides_the_queries(law):
    """Weights are in units of the noise, so noise without end is a step of nothing."""
    shares = leader(0.0, law).marginal((0, 1))
    assert np.abs(shares - 1 / 12).max() < 0.06


@pytest.mark.parametrize("law", list(Law))
def test_without_noise_the_leader_follows_the_queries(law):
    assert leader(1.0, law).marginal((0, 1))[2, 1] > 0.99


@pytest.mark.parametrize("law", list(Law))
def test_a_round_takes_its_step(law):
    before, after = leader(0.1, law, 0), leader(0.1, law, 1)
    moved = after.marginal((0, 1))[2, 1] - before.marginal((0, 1))[2, 1]
    assert moved == pytest.approx(0.1, abs=0.04)


def test_steps_begin_large_and_end_small():
    before = leader(0.04, answers=0).marginal((0, 1))[2, 1]
    for answers, steps in ((1, 2**-1.5), (2, 2**-1.5 + 3**-1.5)):
        share = leader(0.04, answers=answers, decay=1.5).marginal((0, 1))[2, 1]
        assert share == pytest.approx(before + steps, abs=0.08)
    assert leader(0.04, answers=1).marginal((0, 1))[2, 1] < 0.2


def test_a_cell_among_millions_is_met_at_once():
    problem = Problem((100, 100, 100), ((0, 1, 2),), (1.0,), 100)
    player = PerturbedLeader(10, samples=300)
    state, rng = player.start(problem), np.random.default_rng(0)
    for wanted in (2**-1.5, 2**-1.5 + 3**-1.5):
        picked = MeasuredCell((0, 1, 2), Cell(0, (7, 70, 99), 1))
        state = player.respond(problem, state, (picked,), rng)
        share = (state.records == (7, 70, 99)).all(axis=1).mean()
        assert share == pytest.approx(wanted, abs=0.12)


def test_a_complement_drives_records_away():
    problem = Problem((2, 2), ((0, 1),), (1.0,), 100)
    player = PerturbedLeader(10, samples=200, step=1.0)
    state, rng = player.start(problem), np.random.default_rng(0)
    shares = [player.view(problem, state).marginal((0, 1))[1, 1]]
    for _ in range(4):
        state = player.respond(problem, state, (MeasuredCell((0, 1), Cell(0, (1, 1), -1)),), rng)
        shares.append(player.view(problem, state).marginal((0, 1))[1, 1])
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 0.06


def test_measured_tables_are_refused():
    problem = Problem((2, 2), ((0, 1),), (1.0,), 100)
    player = PerturbedLeader(10)
    table = Measured((0, 1), np.zeros((2, 2), np.int64), 1.0)
    with pytest.raises(WorkError, match="picked queries"):
        player.respond(problem, player.start(problem), (table,), np.random.default_rng(0))


def test_the_kept_rounds_are_the_last_ones():
    problem = Problem((2, 2), ((0, 1),), (1.0,), 100)
    player = PerturbedLeader(10, samples=7, keep=0.3)
    state, rng = player.start(problem), np.random.default_rng(0)
    for _ in range(10):
        state = player.respond(problem, state, (MeasuredCell((0, 1), Cell(0, (1, 1), 1)),), rng)
    assert player.finish(problem, state).size == 3 * 7


def table(rows=4000):
    rng = np.random.default_rng(1)
    a = rng.choice(4, rows, p=[0.6, 0.2, 0.15, 0.05])
    b = np.where(rng.random(rows) < 0.8, a % 3, rng.integers(0, 3, rows))
    c = (a + b + (rng.random(rows) < 0.2)) % 5
    return pa.table({"a": a, "b": b, "c": c})


def test_the_published_leader_adds_every_query_with_weight_one():
    """A record is in the cell picked t times if its noise is at most t behind: P = 1 − e^(−t/b)/2."""
    problem = Problem((2,), ((0,),), (1.0,), 100)
    player = UnitLeader(9, samples=4000, scale=2.0)
    state, rng = player.start(problem), np.random.default_rng(0)
    assert state.history.terms == 1
    assert abs(float(state.history.weights[0])) == 1.0
    for t in range(1, 4):
        state = player.respond(problem, state, (MeasuredCell((0,), Cell(0, (1,), 1)),), rng)
        values = state.history.evaluate(np.array([[0], [1]]))
        ahead = float(values[1] - values[0])
        assert ahead in (t - 1, t + 1)  # q_0 is for one of the two
        share = float((state.records[:, 0] == 1).mean())
        expected = 1 - np.exp(-ahead / 2) / 2 if ahead >= 0 else np.exp(ahead / 2) / 2
        assert share == pytest.approx(expected, abs=0.05)  # 6 standard deviations
    assert len(player.finish(problem, state).codes[0]) == 4 * 4000  # all rounds are kept
