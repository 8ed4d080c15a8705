"""Our own players keep the players' contracts, and bad ones are found out."""

import contextlib
from dataclasses import dataclass, replace

import numpy as np
import pytest

from understudy.models import Decomposable, Measured
from understudy.players.base import DataPlayer, Kind
from understudy.players.data.maxent import MaximumEntropy
from understudy.players.data.universe import MultiplicativeWeights
from understudy.players.query.fixed import FixedMarginals
from understudy.players.query.picking import ExponentialMechanism
from understudy.players.query.tree import SpanningTree
from understudy.privacy.cost import Charge, Gaussian, Plan, Selection
from understudy.privacy.questions import GRID, Marginals, RowCount
from understudy.privacy.relation import Relation
from understudy.testing import (
    ContractBroken,
    check_data_player,
    check_query_player,
    data_player_checks,
    query_player_checks,
)
from understudy.testing.distributions import tiny_problem

COLUMNS = len(tiny_problem().shape)
ONES = tuple((i,) for i in range(COLUMNS))


def one_way_plan(sigma=3.0, columns=COLUMNS):
    return Plan((Charge("one-way marginals", Gaussian(sigma, changes=2 * columns)),))


def tree_plan():
    return Plan(
        (
            *one_way_plan(),
            Charge(SpanningTree.SELECT, Selection(40.0, sensitivity=2 * GRID), COLUMNS - 1),
            Charge(SpanningTree.PAIRS, Gaussian(4.0, changes=2 * (COLUMNS - 1))),
        )
    )


def cell_plan(rounds, measured=True):
    select = Charge(ExponentialMechanism.SELECT, Selection(40.0, sensitivity=GRID), rounds)
    measure = Charge(ExponentialMechanism.MEASURE, Gaussian(2.0), rounds)
    return Plan((select, measure) if measured else (select,))


QUERY_PLAYERS = {
    "fixed": (lambda: FixedMarginals(ONES, 3.0), one_way_plan()),
    "tree": (lambda: SpanningTree(3.0, 4.0), tree_plan()),
    "measured cells": (lambda: ExponentialMechanism(3, 2.0), cell_plan(3)),
    "signed cells": (lambda: ExponentialMechanism(3, None), cell_plan(3, measured=False)),
}
RELATIONS = [
    pytest.param(Relation.ADD_REMOVE, None, id="add-remove"),
    pytest.param(Relation.REPLACE, 40, id="replace"),
]


@pytest.mark.parametrize(("relation", "rows"), RELATIONS)
@pytest.mark.parametrize("name", QUERY_PLAYERS)
def test_our_query_players_conform(name, relation, rows):
    make, plan = QUERY_PLAYERS[name]
    assert check_query_player(make, plan, relation=relation, rows_public=rows) >= 7


def test_checks_are_yielded_one_by_one_with_names():
    make, plan = QUERY_PLAYERS["fixed"]
    names = [str(check) for check in query_player_checks(make, plan)]
    assert len(set(names)) == len(names)
    assert all(name.startswith("query player: ") for name in names)


@dataclass
class Wrapped:
    """A good player, with one thing done badly."""

    rounds: int = 1

    gives = frozenset({Kind.TABLE})
    needs = ()

    def play(self, problem, gate, view, round):
        (table,) = gate.ask("one-way marginals", Marginals([(0,)]))
        return (Measured((0,), table, 3.0),)


class ReadsTheCounts(Wrapped):
    def play(self, problem, gate, view, round):
        gate._rows.marginals([(0,)])
        return super().play(problem, gate, view, round)


class ReadsAndHidesIt(Wrapped):
    def play(self, problem, gate, view, round):
        with contextlib.suppress(AssertionError):
            gate._counts.marginals([(0,)])
        return super().play(problem, gate, view, round)


class GoesRoundTheGate(Wrapped):
    def play(self, problem, gate, view, round):
        (answer,) = super().play(problem, gate, view, round)
        (exact,) = gate.ask.__self__._rows.marginals([(0,)])
        return (replace(answer, values=exact),)


class SteersByExactCounts(Wrapped):
    def play(self, problem, gate, view, round):
        (exact,) = gate.ask.__self__._rows.marginals([(0,)])
        clique = (0,) if exact.sum() > 0 else (1,)
        (table,) = gate.ask("one-way marginals", Marginals([clique]))
        return (Measured(clique, table, 3.0),)


class DrawsTwice(Wrapped):
    def play(self, problem, gate, view, round):
        super().play(problem, gate, view, round)
        return super().play(problem, gate, view, round)


class DrawsUnplanned(Wrapped):
    def play(self, problem, gate, view, round):
        gate.ask("how many there are", RowCount())
        return super().play(problem, gate, view, round)


class AsksForMore(Wrapped):
    def play(self, problem, gate, view, round):
        tables = gate.ask("one-way marginals", Marginals([(0,)] * (2 * COLUMNS + 1)))
        return (Measured((0,), tables[0], 3.0),)


class AnswersForFree(Wrapped):
    def play(self, problem, gate, view, round):
        return (Measured((0,), np.zeros(problem.shape[0], np.int64), 3.0),)


class FlattersItself(Wrapped):
    def play(self, problem, gate, view, round):
        return (replace(super().play(problem, gate, view, round)[0], sigma=0.1),)


class AnswersInTheWrongShape(Wrapped):
    def play(self, problem, gate, view, round):
        return (replace(super().play(problem, gate, view, round)[0], clique=(1,)),)


class PlaysOnWhileItLikes(Wrapped):
    def play(self, problem, gate, view, round):
        (answer,) = super().play(problem, gate, view, round)
        self.rounds = 1 + int(answer.values.sum() > 20)
        return (answer,)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (ReadsTheCounts, "'_rows' of the gate"),
        (ReadsAndHidesIt, "'_counts' of the gate"),
        (GoesRoundTheGate, "only released numbers may reach an answer"),
        (SteersByExactCounts, "only released numbers may steer"),
        (DrawsTwice, "planned draws have been made"),
        (DrawsUnplanned, "no charge for 'how many there are'"),
        (AsksForMore, "does not cover"),
        (AnswersForFree, "without a charge"),
        (FlattersItself, "sigma = 0.1"),
        (AnswersInTheWrongShape, "a table of shape"),
        (PlaysOnWhileItLikes, "fixed before anything is read"),
    ],
)
def test_bad_query_players_are_found_out(bad, message):
    with pytest.raises(ContractBroken, match=message):
        check_query_player(bad, one_way_plan())


def test_the_wrapped_player_alone_is_fine():
    check_query_player(Wrapped, one_way_plan())


# --- data players -------------------------------------------------------------------------------

DATA_PLAYERS = {
    "multiplicative weights": (lambda problem: MultiplicativeWeights(2), ("cells", "signs")),
    "no replays": (lambda problem: MultiplicativeWeights(2, replays=1), None),
    "maximum entropy": (lambda problem: MaximumEntropy(), None),
}


@pytest.mark.parametrize("name", DATA_PLAYERS)
def test_our_data_players_conform(name):
    make, kinds = DATA_PLAYERS[name]
    assert check_data_player(make, kinds=kinds) >= 9


@pytest.mark.parametrize("shape", [(1,), (4,), (2, 2)])
def test_our_data_players_conform_on_small_shapes(shape):
    check_data_player(lambda problem: MultiplicativeWeights(2), problem=tiny_problem(shape))
    kinds = ("tables",) if len(shape) == 1 else ("signs",)
    check_data_player(lambda problem: MaximumEntropy(), problem=tiny_problem(shape), kinds=kinds)


class Independent(DataPlayer):
    """A good data player: one-way tables, floored and normalised."""

    accepts, shows = frozenset({Kind.TABLE}), Decomposable

    def start(self, problem):
        return {i: np.ones(size) / size for i, size in enumerate(problem.shape)}

    def view(self, problem, state):
        return self.finish(problem, state)

    def respond(self, problem, state, answers, rng):
        fresh = dict(state)
        for answer in answers:
            if isinstance(answer, Measured) and len(answer.clique) == 1:
                kept = np.maximum(answer.values, 1e-9)
                fresh[answer.clique[0]] = kept / kept.sum()
        return fresh

    def finish(self, problem, state):
        return Decomposable.independent([state[i] for i in range(len(problem.shape))])


class View:
    def __init__(self, model, change):
        self._model, self._change = model, change

    def marginal(self, clique):
        return self._change(clique, self._model.marginal(clique))


class SumsToMore(Independent):
    def view(self, problem, state):
        return View(super().finish(problem, state), lambda clique, table: table * 1.01)


class GoesBelowZero(Independent):
    def view(self, problem, state):
        def change(clique, table):
            flat = table.copy().reshape(-1)
            flat[0], flat[-1] = flat[0] - 1.0, flat[-1] + 1.0
            return flat.reshape(table.shape)

        return View(super().finish(problem, state), change)


class ContradictsItself(Independent):
    def view(self, problem, state):
        def change(clique, table):
            return np.full(table.shape, 1 / table.size) if len(clique) == 2 else table

        return View(super().finish(problem, state), change)


class SinglePrecision(Independent):
    def view(self, problem, state):
        return View(super().finish(problem, state), lambda clique, t: t.astype(np.float32))


class ForgetsItsState(Independent):
    def __init__(self):
        self.seen = 0

    def respond(self, problem, state, answers, rng):
        self.seen += 1
        fresh = super().respond(problem, state, answers, rng)
        fresh[0] = fresh[0] + self.seen * np.arange(fresh[0].size)
        return {**fresh, 0: fresh[0] / fresh[0].sum()}


class ChangesTheState(Independent):
    def respond(self, problem, state, answers, rng):
        state.update(super().respond(problem, state, answers, rng))
        return state


class RollsItsOwnDice(Independent):
    def respond(self, problem, state, answers, rng):
        drawn = np.random.default_rng().dirichlet(np.ones(problem.shape[0]))
        return {**super().respond(problem, state, answers, rng), 0: drawn}


class MeetsTheGate(Independent):
    def respond(self, problem, state, answers, rng, gate=None):
        return super().respond(problem, state, answers, rng)


class CannotStandNegatives(Independent):
    def respond(self, problem, state, answers, rng):
        fresh = dict(state)
        for answer in answers:
            if isinstance(answer, Measured) and len(answer.clique) == 1:
                fresh[answer.clique[0]] = answer.values / answer.values.sum()
        return fresh


class ModelOf:
    """A model with one thing done badly."""

    def __init__(self, model):
        self._model = model

    def __getattr__(self, name):
        return getattr(self._model, name)


class IllegalRows(Independent):
    class Model(ModelOf):
        def sample(self, rows, rng):
            return [codes + 1 for codes in self._model.sample(rows, rng)]

    def finish(self, problem, state):
        return self.Model(super().finish(problem, state))


class WrongDtype(IllegalRows):
    class Model(ModelOf):
        def sample(self, rows, rng):
            return [codes.astype(np.int64) for codes in self._model.sample(rows, rng)]


class TooManyRows(IllegalRows):
    class Model(ModelOf):
        def sample(self, rows, rng):
            return self._model.sample(rows + 1, rng)


class OtherRowsEachTime(IllegalRows):
    class Model(ModelOf):
        def sample(self, rows, rng):
            return self._model.sample(rows, np.random.default_rng())


class RowsOfAnotherModel(IllegalRows):
    class Model(ModelOf):
        def sample(self, rows, rng):
            return [np.zeros_like(codes) for codes in self._model.sample(rows, rng)]


class WrongShape(IllegalRows):
    class Model(ModelOf):
        @property
        def shape(self):
            return (*self._model.shape, 2)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (SumsToMore, "not 1"),
        (GoesBelowZero, "below 0"),
        (ContradictsItself, "one distribution has one marginal"),
        (SinglePrecision, "float64"),
        (ForgetsItsState, "the state is all that a data player may remember"),
        (ChangesTheState, "return a new one"),
        (RollsItsOwnDice, "all randomness comes from rng"),
        (MeetsTheGate, "sees released answers only"),
        (CannotStandNegatives, "survives every count being 0"),
        (IllegalRows, "outside 0"),
        (WrongDtype, "unsigned integers"),
        (TooManyRows, "expected \\(0,\\)"),
        (OtherRowsEachTime, "the same key gave other rows"),
        (RowsOfAnotherModel, "away from the model's marginal"),
        (WrongShape, "the model has shape"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_bad_data_players_are_found_out(bad, message):
    with pytest.raises(ContractBroken, match=message):
        check_data_player(lambda problem: bad(), kinds=("tables",))


def test_the_simple_data_player_alone_is_fine():
    check_data_player(lambda problem: Independent())
    names = [str(check) for check in data_player_checks(lambda problem: Independent())]
    assert len(set(names)) == len(names)
