"""The one loop. Every method of the query-release family is played here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from understudy.errors import WorkError
from understudy.game.pairing import require_pair
from understudy.players.answers import Answer, CriticGradient, kinds_of
from understudy.players.base import DataPlayer, Model, Problem, QueryPlayer
from understudy.privacy.gate import Gate
from understudy.progress import Progress, Watch, silent

__all__ = ["Played", "play"]


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """The transcript of a game. All of it is released: keeping it costs nothing.

    `answers` holds the answers of every round in the order in which they were drawn, each noisy table
    with its noise: what inference about the rows needs besides the model. Gradients are left out: they
    are many, large, and of use to the networks alone.
    """

    model: Model
    answers: tuple[tuple[Answer, ...], ...]
    diagnostics: Mapping[str, Any]
    """What the data player has to say of the game."""


def play(
    problem: Problem,
    query: QueryPlayer,
    data: DataPlayer[Any],
    gate: Gate,
    rng: np.random.Generator,
    watch: Watch = silent,
) -> Played:
    """Let the two players take turns; the model and all that was released on the way.

    Only the query player meets the gate; what it returns is released. The number of rounds is public
    and fixed; a game ends early only where the data player can learn no more, which follows from
    released answers. So nothing here depends on private data except through charged answers.

    Raises:
        InputError: The players do not fit (`understudy.game.pairing`); nothing has been asked.
    """
    require_pair(query, data)
    problem = replace(problem, watch=watch)
    state = data.start(problem)
    answered: list[tuple[Answer, ...]] = []
    rounds = query.rounds
    for round in range(rounds):
        if data.over(state):
            break
        watch(Progress("playing", round, rounds))
        answers = query.play(problem, gate, data.view(problem, state), round)
        _require_declared(query, answers)
        answered.append(tuple(each for each in answers if not isinstance(each, CriticGradient)))
        state = data.respond(problem, state, answers, rng)
    watch(Progress("playing", rounds, rounds))
    return Played(data.finish(problem, state), tuple(answered), data.diagnostics(state))


def _require_declared(query: QueryPlayer, answers: tuple[Answer, ...]) -> None:
    for kind in kinds_of(answers) - query.gives:
        raise WorkError(
            f"{type(query).__name__} gives {kind}, which it does not declare in `gives`"
        )
