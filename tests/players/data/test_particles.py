"""How many records the default method keeps: a public rule that bounds its memory."""

import math

import numpy as np
import pytest

from understudy.game.methods.maxent import MaxEntMethod
from understudy.players.base import Measured
from understudy.players.data.particles import Particles
from understudy.releases import prepare
from understudy.schema import Category, Schema
from understudy.testing import data_player_checks, tiny_design


def test_eight_records_a_row_within_bounds():
    player = Particles(400_000)
    assert player.size(10, 45) == 20_000
    assert player.size(10_000, 45) == 80_000
    assert player.size(10**7, 45) == 400_000


@pytest.mark.parametrize("columns", [600, 1_000, 5_000])
def test_wide_tables_get_fewer_records_not_more_memory(columns):
    assert Particles(400_000).size(10**6, columns) * columns <= 2e8


def test_the_forecast_of_memory_stays_below_four_gigabytes():
    def memory(columns):
        schema = Schema(tuple(Category(f"c{i}", tuple(range(10))) for i in range(columns)))
        return prepare(schema, epsilon=1, method=MaxEntMethod()).forecast(10**5).memory_bytes

    few, many = memory(20), memory(100)
    assert few < many < 4e9


@pytest.mark.parametrize("kept", data_player_checks(lambda problem: Particles(1_000)), ids=str)
def test_the_data_player_conforms(kept):
    kept()


def test_no_answers_leave_the_records_as_they_are_but_for_the_key():
    problem = tiny_design((2, 3)).problem(40)
    data = Particles(1_000)
    state = data.respond(problem, data.start(problem), (), np.random.default_rng(0))
    assert state[0] == ()
    table = Measured((0,), np.array([30, 10]), 1.0)
    state = data.respond(problem, state, (table,), np.random.default_rng(0))
    assert state[0] == (table,)
    assert data.view(problem, state).model is None
    assert math.isclose(data.view(problem, state).marginal((0,))[0], 0.75, rel_tol=1e-3)
    model = data.finish(problem, state)
    assert model.cliques == problem.cliques  # what its rows are held to
    assert model.size == 20_000
