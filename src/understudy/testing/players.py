"""Conformance kits for players: one new file under `players/` and one line in a test.

check_query_player(lambda: MyPlayer(sigma=3.0), plan)
check_data_player(lambda problem: MyLearner())
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from understudy.models import Decomposable, Measured
from understudy.players.base import (
    Answer,
    DataPlayer,
    Kind,
    MeasuredCell,
    Problem,
    QueryPlayer,
    View,
    kind_of,
)
from understudy.privacy.cost import Event, Gaussian, Plan
from understudy.privacy.gate import Gate
from understudy.privacy.noise import Noise
from understudy.privacy.questions import Cell
from understudy.privacy.relation import Relation
from understudy.testing.checks import Check, all_of, require
from understudy.testing.distributions import (
    fingerprint,
    require_answer,
    require_distribution,
    require_model,
    tiny_problem,
)
from understudy.testing.stand_ins import (
    Front,
    RecordingNoise,
    Rows,
    SeededNoise,
    StrictCharges,
    Tape,
    TinyCounts,
)

AnswerKind = Literal["tables", "cells", "signs"]
"""Noisy marginals; selected cells with a noisy count; selected cells with a side only."""


def tiny_tables(shape: tuple[int, ...], rows: int = 30) -> dict[str, Rows]:
    """Private tables that differ as much as tables can: none, one row, one value, random."""
    rng = np.random.default_rng(7)
    drawn = [tuple(int(rng.integers(size)) for size in shape) for _ in range(rows)]
    return {
        "random rows": drawn,
        "no rows": [],
        "one row": [tuple(0 for _ in shape)],
        "equal rows": [tuple(size - 1 for size in shape)] * rows,
    }


# --- query players ------------------------------------------------------------------------------


@dataclass
class _Game:
    """One run of a query player alone, against views that are fixed and public."""

    player: QueryPlayer
    rounds: int
    answers: list[tuple[Answer, ...]] = field(default_factory=list)
    charged: list[list[tuple[str, Event]]] = field(default_factory=list)
    released: list[list[Any]] = field(default_factory=list)


def _views(problem: Problem, rounds: int) -> list[View]:
    rng = np.random.default_rng(3)
    return [
        Decomposable.independent([rng.dirichlet(np.ones(size)) for size in problem.shape])
        for _ in range(rounds)
    ]


def _run(
    make: Callable[[], QueryPlayer],
    plan: Plan,
    problem: Problem,
    relation: Relation,
    rows_public: int | None,
    table: Rows,
    noise: Noise,
    tape: Tape | None = None,
) -> _Game:
    recording = RecordingNoise(noise)
    charges = StrictCharges(plan, relation)
    counts = TinyCounts(problem.shape, table)
    gate, trespasses = Front.around(Gate(counts, charges, relation, recording, rows_public), tape)
    player = make()
    game = _Game(player, player.rounds)
    for round, view in enumerate(_views(problem, game.rounds)):
        charged, released = len(charges.charged), len(recording.released)
        answers = player.play(problem, gate, view, round)
        require(
            not trespasses,
            f"reached for {', '.join(map(repr, trespasses))} of the gate; a player asks, with "
            f"the public methods",
        )
        require(isinstance(answers, tuple), f"play returned a {type(answers).__name__}, no tuple")
        game.answers.append(answers)
        game.charged.append(charges.charged[charged:])
        game.released.append(recording.released[released:])
    return game


def query_player_checks(
    make: Callable[[], QueryPlayer],
    plan: Plan,
    *,
    problem: Problem | None = None,
    relation: Relation = Relation.ADD_REMOVE,
    rows_public: int | None = None,
) -> Iterator[Check]:
    """Everything a query player owes, when `make()` is played under `plan`.

    * `rounds` is a public number that never moves
    * it asks the gate's public questions and nothing else
    * it never draws what the plan does not hold, with tables of any kind
    * a round with an answer has a charge, and a table is passed on with the sigma it was drawn with
    * answers and questions follow from released numbers alone: the same numbers, the same game
    """
    problem = problem or tiny_problem()
    tables = tiny_tables(problem.shape)
    run = partial(_run, make, plan, problem, relation, rows_public)

    def rounds_are_fixed() -> None:
        seen: set[int] = set()
        for table in tables.values():
            game = run(table, SeededNoise(1))
            seen |= {game.rounds, game.player.rounds}
        require(
            len(seen) == 1 and all(type(r) is int and r >= 0 for r in seen),
            f"rounds was {', '.join(map(repr, sorted(seen)))}; expected one whole number, fixed "
            f"before anything is read",
        )

    def plays(table: Rows) -> None:
        game = run(table, SeededNoise(2))
        for answers in game.answers:
            for answer in answers:
                require_answer(answer, problem.shape)
                require(
                    kind_of(answer) in game.player.gives,
                    f"answered with {kind_of(answer)}, which `gives` does not name",
                )

    def answers_are_charged() -> None:
        game = run(tables["random rows"], SeededNoise(3))
        for round, answers in enumerate(game.answers):
            require(
                not answers or bool(game.charged[round]), f"round {round} answered without a charge"
            )
            _require_honest_sigma(answers, game.released[round], game.charged[round])

    def same_numbers_same_game() -> None:
        tape = Tape()
        first = run(tables["random rows"], SeededNoise(4), tape)
        for name, table in tables.items():
            replay = tape.again()
            again = run(table, SeededNoise(9), replay)
            require(
                replay.faithful and again.charged == first.charged,
                f"asked other questions of a table with {name} after the same answers; only "
                f"released numbers may steer it",
            )
            require(
                fingerprint(again.answers) == fingerprint(first.answers),
                f"answered otherwise for a table with {name} though the gate released the "
                f"same numbers; only released numbers may reach an answer",
            )

    yield Check("query player: rounds are public and fixed", rounds_are_fixed)
    for name, table in tables.items():
        yield Check(f"query player: plays within its plan on {name}", partial(plays, table))
    yield Check("query player: every answer has its charge", answers_are_charged)
    yield Check("query player: the same released numbers, the same game", same_numbers_same_game)


def _require_honest_sigma(
    answers: tuple[Answer, ...], released: list[Any], charged: list[tuple[str, Event]]
) -> None:
    sigmas = {event.sigma for _, event in charged if isinstance(event, Gaussian)}
    flat = [np.ravel(numbers) for numbers in released if isinstance(numbers, np.ndarray)]
    pool = np.concatenate(flat) if flat else np.zeros(0, dtype=np.int64)
    for answer in answers:
        if isinstance(answer, Measured) and bool(np.isin(answer.values, pool).all()):
            require(
                answer.sigma in sigmas,
                f"passed table {answer.clique} on with sigma = {answer.sigma}; drawn with "
                f"{', '.join(map(str, sorted(sigmas)))}",
            )


check_query_player = all_of(query_player_checks)


# --- data players -------------------------------------------------------------------------------

_KINDS: dict[AnswerKind, Kind] = {
    "tables": Kind.TABLE,
    "cells": Kind.CELL,
    "signs": Kind.PICKED_CELL,
}
_API = {
    "start": ("problem",),
    "view": ("problem", "state"),
    "respond": ("problem", "state", "answers", "rng"),
    "finish": ("problem", "state"),
}


def _answers(
    problem: Problem, kind: AnswerKind, number: Callable[[int], Any]
) -> list[tuple[Answer, ...]]:
    """Two rounds of answers; `number(size)` draws the noisy counts."""
    shape = problem.shape

    def table(*clique: int) -> Measured:
        sizes = tuple(shape[i] for i in clique)
        counts = np.asarray(number(math.prod(sizes)), dtype=np.int64)
        return Measured(clique, counts.reshape(sizes), 2.0)

    if kind == "tables":
        columns = range(len(shape))
        return [tuple(map(table, columns)), tuple(map(table, columns, columns[1:]))]
    games: list[tuple[Answer, ...]] = []
    for round in range(2):
        chosen: list[Answer] = []
        for position, clique in enumerate(problem.cliques):
            index = tuple((round + position) % shape[i] for i in clique)
            sign = 1 if (round + position) % 2 else -1
            if kind == "signs":
                chosen.append(MeasuredCell(clique, Cell(position, index, sign)))
            else:
                value = float(np.ravel(number(1))[0])
                chosen.append(MeasuredCell(clique, Cell(position, index), value, 2.0))
        games.append(tuple(chosen))
    return games


def data_player_checks(
    make: Callable[[Problem], DataPlayer[Any]],
    *,
    problem: Problem | None = None,
    kinds: Iterable[AnswerKind] | None = None,
) -> Iterator[Check]:
    """Everything a data player owes; `make(problem)` gives a fresh one.

    * its methods take public things and released answers; no gate, no table
    * the same answers and the same rng give the same state, bit by bit, and the state is all there
      is: a fresh player continues from it, and an earlier state is never changed
    * `view` and `finish` are distributions, before, during and after the game; rows are legal
    * answers that noise has made absurd (all negative, huge, of one row) do no harm

    `kinds` are those that it accepts, unless some are named.
    """
    problem = problem or tiny_problem()
    if kinds is None:
        accepts = make(problem).accepts
        kinds = [name for name, kind in _KINDS.items() if kind in accepts]

    def takes_public_things() -> None:
        player = make(problem)
        for name, expected in _API.items():
            taken = tuple(inspect.signature(getattr(player, name)).parameters)
            require(
                taken == expected,
                f"{name} takes ({', '.join(taken)}); expected ({', '.join(expected)}): a data "
                f"player sees released answers only",
            )

    def before_any_answer() -> None:
        player = make(problem)
        state = player.start(problem)
        require_distribution(player.view(problem, state), problem.shape)
        require_model(player.finish(problem, state), problem.shape)
        state = player.respond(problem, state, (), np.random.default_rng(0))
        require_model(player.finish(problem, state), problem.shape)

    def usual(kind: AnswerKind) -> list[tuple[Answer, ...]]:
        rng = np.random.default_rng(11)
        mean = problem.rows / 4
        return _answers(problem, kind, lambda size: np.rint(rng.normal(mean, mean / 2, size)))

    def gives_distributions(kind: AnswerKind) -> None:
        _play_out(make(problem), problem, usual(kind))

    def repeats(kind: AnswerKind) -> None:
        rounds = usual(kind)
        results = [_continue(make, problem, rounds, fresh) for fresh in (False, False, True)]
        require(
            results[0] == results[1],
            "the same answers and the same rng gave another distribution; all randomness comes "
            "from rng, and nothing but released answers may reach the state",
        )
        require(
            results[0] == results[2],
            "a fresh player continued otherwise from the same state; the state is all that a "
            "data player may remember",
        )

    def keeps_states(kind: AnswerKind) -> None:
        player, rng = make(problem), np.random.default_rng(0)
        state = player.start(problem)
        before = _shown(player, problem, state)
        for answers in usual(kind):
            after = player.respond(problem, state, answers, rng)
            require(
                _shown(player, problem, state) == before,
                "respond changed the state it was given; return a new one",
            )
            state, before = after, _shown(player, problem, after)

    def survives(kind: AnswerKind, value: int, rows: int) -> None:
        absurd = replace(problem, rows=rows)
        rounds = _answers(absurd, kind, lambda size: np.full(size, value))
        _play_out(make(absurd), absurd, rounds)

    yield Check("data player: takes public things only", takes_public_things)
    yield Check("data player: a distribution before any answer", before_any_answer)
    for kind in kinds:
        of = f"data player: {kind}:"
        yield Check(f"{of} view and finish are distributions", partial(gives_distributions, kind))
        yield Check(f"{of} the same answers give the same bits", partial(repeats, kind))
        yield Check(f"{of} earlier states stay as they are", partial(keeps_states, kind))
        for value, rows in ((-1000, problem.rows), (0, problem.rows), (10**9, 1), (-1, 1)):
            name = f"{of} survives every count being {value} of {rows} rows"
            yield Check(name, partial(survives, kind, value, rows))


def _play_out(player: DataPlayer[Any], problem: Problem, rounds: list[tuple[Answer, ...]]) -> None:
    rng = np.random.default_rng(0)
    state = player.start(problem)
    for round, answers in enumerate(rounds):
        state = player.respond(problem, state, answers, rng)
        view = player.view(problem, state)
        require_distribution(view, problem.shape, f"the view after round {round}")
    require_model(player.finish(problem, state), problem.shape)


def _shown(player: DataPlayer[Any], problem: Problem, state: Any) -> Any:
    view = player.view(problem, state)
    tables = tuple(fingerprint(view.marginal(clique)) for clique in problem.cliques)
    return tables, fingerprint(player.finish(problem, state))


def _continue(
    make: Callable[[Problem], DataPlayer[Any]],
    problem: Problem,
    rounds: list[tuple[Answer, ...]],
    fresh: bool,
) -> Any:
    player, rng = make(problem), np.random.default_rng(0)
    state = player.start(problem)
    for answers in rounds:
        player = make(problem) if fresh else player
        state = player.respond(problem, state, answers, rng)
    return _shown(player, problem, state)


check_data_player = all_of(data_player_checks)
