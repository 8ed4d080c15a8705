"""Maximum entropy of what was measured, and how far an answer moves it."""

import math

import numpy as np
import pytest

from understudy.models import Measured
from understudy.players.base import Problem
from understudy.players.data.maxent import MaximumEntropy, Move, _merged
from understudy.players.query.fixed import FixedMarginals
from understudy.privacy.cost import Charge, Gaussian, Plan
from understudy.privacy.gate import Gate
from understudy.privacy.relation import Relation
from understudy.testing import StillNoise, StrictCharges, TinyCounts


def test_maximum_entropy_of_one_ways_is_independence_without_mbi():
    problem = Problem((2, 3), ((0,), (1,)), (1.0, 1.0), 10)
    data, rng = MaximumEntropy(), np.random.default_rng(0)
    account = StrictCharges(Plan((Charge("one-way marginals", Gaussian(1.0, changes=2)),)))
    rows = [(0, 0)] * 4 + [(1, 2)] * 6
    gate = Gate(TinyCounts((2, 3), rows), account, Relation.ADD_REMOVE, StillNoise())
    player = FixedMarginals(((0,), (1,)), 1.0)
    state = data.start(problem)
    answers = player.play(problem, gate, data.view(problem, state), 0)
    model = data.finish(problem, data.respond(problem, state, answers, rng))
    assert model.cliques == ((0,), (1,))
    np.testing.assert_allclose(model.marginal((0, 1)), np.outer([0.4, 0.6], [0.4, 0, 0.6]))


def test_what_counts_as_noise():
    assert Move((0, 1), 3.0, 10, 0.0).noise == pytest.approx(math.sqrt(2 / math.pi) * 30)


def test_repeated_tables_are_merged_by_precision():
    first = Measured((0,), np.array([10, 0]), 1.0)
    again = Measured((0,), np.array([20, 8]), 2.0)
    other = Measured((1,), np.array([1, 2]), 5.0)
    merged = _merged((first, other, again))
    assert [m.clique for m in merged] == [(0,), (1,)]
    np.testing.assert_allclose(merged[0].values, [12.0, 1.6])
    assert merged[0].sigma == pytest.approx(math.sqrt(0.8))
    assert merged[1] is other


def test_the_view_tells_how_far_an_answer_moved_the_model():
    problem = Problem((2, 2), ((0, 1),), (1.0,), 100)
    data, rng = MaximumEntropy(), np.random.default_rng(0)
    ones = (Measured((0,), np.array([60, 40]), 1.0), Measured((1,), np.array([50, 50]), 1.0))
    state = data.respond(problem, data.start(problem), ones, rng)
    assert state.moves == ()
    state = data.respond(problem, state, (Measured((0,), np.array([80, 20]), 1.0),), rng)
    (found,) = state.moves
    assert (found.clique, found.sigma, found.cells) == ((0,), 1.0, 2)
    assert found.moved == pytest.approx(20.0)  # from 60 to 70, and from 40 to 30
    assert data.respond(problem, state, (), rng) is state
