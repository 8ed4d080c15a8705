"""The one loop, the registry of methods, and what plans add up to."""

import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from understudy.errors import InputError, WorkError
from understudy.game import play
from understudy.game.methods import (
    METHODS,
    AIMMethod,
    GaussianMethod,
    IndependentMethod,
    MaxEntMethod,
    MSTMethod,
    MWEMMethod,
    method,
)
from understudy.players.base import DataPlayer, Kind, Measured, Problem
from understudy.privacy import accounting
from understudy.privacy.cost import Gaussian, Plan, Selection
from understudy.privacy.relation import Relation
from understudy.progress import Progress
from understudy.testing import tiny_design

TABLE = Measured((0,), np.array([3, 2]), 1.0)


class Query:
    gives, needs = frozenset({Kind.TABLE}), ()

    def __init__(self, rounds, log):
        self.rounds, self._log = rounds, log

    def play(self, problem, gate, view, round):
        self._log.append(("play", gate, view, round))
        return (TABLE,)


class Data(DataPlayer):
    accepts, shows = frozenset({Kind.TABLE}), str

    def __init__(self, log):
        self._log = log

    def start(self, problem):
        return 0

    def view(self, problem, state):
        return f"view {state}"

    def respond(self, problem, state, answers, rng):
        self._log.append(("respond", state, answers))
        rng.random()
        return state + 1

    def finish(self, problem, state):
        return f"model {state}"


PROBLEM = Problem((2,), ((0,),), (1.0,), 5)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_the_players_take_turns(rounds):
    log, told = [], []
    played = play(
        PROBLEM,
        Query(rounds, log),
        Data(log),
        "gate",
        np.random.default_rng(0),
        told.append,
    )
    assert played.model == f"model {rounds}"
    assert played.answers == ((TABLE,),) * rounds
    assert played.diagnostics == {}
    assert log == [
        entry
        for t in range(rounds)
        for entry in (("play", "gate", f"view {t}", t), ("respond", t, (TABLE,)))
    ]
    assert told == [Progress("playing", t, rounds) for t in range(rounds + 1)]


def test_an_answer_that_was_not_declared_is_an_error():
    query = Query(1, [])
    query.gives = frozenset()
    with pytest.raises(WorkError, match="Query gives noisy marginals, which it does not declare"):
        play(PROBLEM, query, Data([]), "gate", np.random.default_rng(0))


def test_nothing_more_is_asked_once_the_data_player_can_learn_no_more():
    log = []

    class Tired(Data):
        def over(self, state):
            return state == 2

    played = play(PROBLEM, Query(5, log), Tired(log), "gate", np.random.default_rng(0))
    assert len(played.answers) == 2
    assert [entry[3] for entry in log if entry[0] == "play"] == [0, 1]


def test_methods_by_name():
    assert set(METHODS) >= {"independent", "mst", "mwem"}
    assert method("auto") == MaxEntMethod()
    assert method("mwem", rounds=7) == MWEMMethod(rounds=7)
    for name, make in METHODS.items():
        described = make().describe()
        assert described["name"] == name
        parameters = {k: v for k, v in json.loads(json.dumps(described)).items() if k != "name"}
        assert method(name, **parameters) == make()


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [("mts", {}, "choose auto, .*independent"), ("mst", {"round": 3}, "method = mst")],
)
def test_wrong_names_and_parameters_are_named(name, parameters, message):
    with pytest.raises(InputError, match=message):
        method(name, **parameters)


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction(2, 7), Fraction(50)], ids=str)
@pytest.mark.parametrize(
    "made",
    [
        AIMMethod(),
        GaussianMethod(),
        IndependentMethod(),
        MSTMethod(),
        MWEMMethod(),
        MWEMMethod(measure=False),
        MWEMMethod(rounds=9),
    ],
    ids=str,
)
def test_charges_use_the_whole_budget_and_no_more(made, rho, relation):
    for columns in (1, 2, 5):
        plan = Plan(made.charges(tiny_design((3, 2, 2, 4, 2)[:columns], relation, 500), rho))
        cost = accounting.total_rho(plan)
        assert cost <= rho
        assert float(cost / rho) == pytest.approx(1.0, abs=1e-12)


def test_mst_splits_as_it_says():
    plan = Plan(MSTMethod().charges(tiny_design((2, 3, 4, 2), Relation.REPLACE, 100), Fraction(1)))
    cost = {c.purpose: float(accounting.rho(c.event)) * c.times for c in plan}
    assert list(cost.values()) == pytest.approx([0.3, 0.1, 0.6])
    events = {c.purpose: (c.event, c.times) for c in plan}
    (one, _), (select, times), (pair, _) = events.values()
    assert isinstance(one, Gaussian)
    assert isinstance(select, Selection)
    assert (one.changes, select.sensitivity, times, pair.changes) == (8, 32, 3, 6)


def test_mwem_takes_its_rounds_from_public_facts():
    known = tiny_design((2, 3), rows=400)
    unknown = tiny_design((2, 3))
    for design, rows in ((known, 400), (unknown, 10_000)):
        for rho in (Fraction(1, 100), Fraction(1)):
            select, measure = MWEMMethod().charges(design, rho)
            expected = max(1, round(0.9 * math.sqrt(rows * math.sqrt(2 * rho))))
            assert select.times == measure.times == expected
            assert MWEMMethod().players(design, Plan((select, measure)))[0].rounds == expected


def test_mwem_refuses_what_it_cannot_enumerate():
    with pytest.raises(InputError, match="use method = auto"):
        MWEMMethod().check(tiny_design((100, 100, 100, 100)))
    with pytest.raises(InputError, match="rounds = 0"):
        MWEMMethod(rounds=0).check(tiny_design((2,)))
    MWEMMethod().check(tiny_design((100, 100)))


@pytest.mark.parametrize("made", [IndependentMethod(), MSTMethod(), MWEMMethod()], ids=str)
def test_methods_are_frozen(made):
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "another"


@pytest.mark.parametrize("name", METHODS)
def test_forecasts_grow_with_the_table(name):
    made, design = METHODS[name](), tiny_design((2, 3, 4), rows=1_000)
    plan = Plan(made.charges(design, Fraction(1)))
    small, large = (made.forecast(design, plan, rows) for rows in (1_000, 10**7))
    assert small.memory_bytes < large.memory_bytes
    assert small.seconds <= large.seconds
    noises = {c.purpose: c.event.sigma for c in plan if isinstance(c.event, Gaussian)}
    assert small.noise == noises
