"""What players hand to each other: every answer has a kind, and defaults are those of the protocol."""

import typing

import numpy as np
import pytest

from understudy.models import Measured
from understudy.players.base import (
    Answer,
    Cell,
    Chosen,
    CriticGradient,
    DataPlayer,
    Kind,
    LinearCritic,
    MeasuredCell,
    MeasuredDegrees,
    MeasuredMoments,
    MeasuredTriangles,
    PaidOff,
    PickedQuery,
    Problem,
    kind_of,
    kinds_of,
)

LABELS = (np.array([0, 0]),)
CELL = Cell(0, (1,), 1)
ANSWERS = {
    Kind.TABLE: Measured((0,), np.zeros(2), 1.0),
    Kind.COARSENED: Measured((0,), np.zeros(1), 1.0, LABELS),
    Kind.CELL: MeasuredCell((0,), CELL, 3.0, 1.0),
    Kind.PICKED_CELL: MeasuredCell((0,), CELL),
    Kind.PICKED_QUERY: PickedQuery((0,), None, 1),
    Kind.CRITIC: LinearCritic(((0,),), (np.zeros(2),)),
    Kind.MOMENTS: MeasuredMoments(None, np.zeros(2), 1.0),
    Kind.PAYOFF: PaidOff(0.0, 1.0, 1),
    Kind.DEGREES: MeasuredDegrees(np.zeros(2, np.int64), 1.0),
    Kind.TRIANGLES: MeasuredTriangles(0, 1.0),
    Kind.GRADIENT: CriticGradient(np.zeros(2, np.float32)),
    Kind.CHOICE: Chosen((0,)),
}


@pytest.mark.parametrize("kind", list(Kind), ids=str)
def test_every_kind_has_an_answer(kind):
    assert kind_of(ANSWERS[kind]) is kind


def test_every_answer_has_a_kind():
    assert {type(answer) for answer in ANSWERS.values()} == set(typing.get_args(Answer))
    assert kinds_of(ANSWERS.values()) == set(Kind)
    assert kinds_of(()) == frozenset()


def test_a_problem_knows_its_columns():
    problem = Problem((2, 4), ((0, 1),), (1.0,), 10)
    assert problem.columns == ((0,), (1,))
    assert [table.tolist() for table in problem.uniform] == [[0.5] * 2, [0.25] * 4]


def test_a_data_player_lasts_for_ever_and_has_nothing_to_say_by_default():
    class Still(DataPlayer):
        accepts, shows = frozenset(), object

        def start(self, problem):
            return None

        def view(self, problem, state):
            return None

        def respond(self, problem, state, answers, rng):
            return state

        def finish(self, problem, state):
            return None

    still = Still()
    assert (still.most_rounds(), still.over(None), still.diagnostics(None)) == (None, False, {})
    assert still.requires == frozenset()
