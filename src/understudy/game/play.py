"""The one loop, and who may play in it. Every method of the query-release family is played here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from understudy.errors import InputError, WorkError
from understudy.players.base import (
    Answers,
    CriticGradient,
    DataPlayer,
    Model,
    Problem,
    QueryPlayer,
    kinds_of,
)
from understudy.privacy.gate import Gate
from understudy.progress import Progress, Watch, silent


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """The transcript of a game. All of it is released: keeping it costs nothing.

    `answers` holds the answers of every round in the order in which they were drawn, each noisy table
    with its noise: what inference about the rows needs besides the model. Gradients are left out: they
    are many, large, and of use to the networks alone.
    """

    model: Model
    answers: tuple[Answers, ...]
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
        InputError: The players do not fit (`require_pair`); nothing has been asked.
    """
    require_pair(query, data)
    problem = replace(problem, watch=watch)
    state = data.start(problem)
    answered: list[Answers] = []
    rounds = query.rounds
    for round in range(rounds):
        if data.over(state):
            break
        watch(Progress("playing", round, rounds))
        answers = query.play(problem, gate, data.view(problem, state), round)
        for kind in kinds_of(answers) - query.gives:
            raise WorkError(
                f"{type(query).__name__} gives {kind}, which it does not declare in `gives`"
            )
        answered.append(tuple(each for each in answers if not isinstance(each, CriticGradient)))
        state = data.respond(problem, state, answers, rng)
    watch(Progress("playing", rounds, rounds))
    return Played(data.finish(problem, state), tuple(answered), data.diagnostics(state))


def require_pair(query: QueryPlayer, data: DataPlayer[Any]) -> None:
    """Refuse players that do not fit, before anything is spent. A fact about public settings.

    They fit if the data player learns from every kind of answer that the query player may give and gets
    those that it requires, shows what the query player looks at, and lasts as long as the game.

    Raises:
        InputError: They do not fit; names what would be lost or is missing.
    """
    pair = f"{type(query).__name__} cannot play against {type(data).__name__}"
    lost = sorted(query.gives - data.accepts)
    if lost:
        raise InputError(
            f"{pair}: it gives {', '.join(lost)}, which would be paid for and not used; take a data "
            f"player that accepts them, this one accepts {', '.join(sorted(data.accepts))}"
        )
    missing = sorted(data.requires - query.gives)
    if missing:
        raise InputError(
            f"{pair}: it does not give {', '.join(missing)}, without which this data player learns "
            f"nothing; take another query player"
        )
    for needed in query.needs:
        if not issubclass(data.shows, needed):
            name = needed.__name__ if isinstance(needed, type) else str(needed)
            raise InputError(
                f"{pair}: it looks at {name}, and is shown {data.shows.__name__}; take a "
                f"data player that shows it"
            )
    most = data.most_rounds()
    if most is not None and query.rounds > most:
        raise InputError(
            f"{pair}: it plays {query.rounds} rounds, of which the data player learns from {most}; "
            f"give both the same number"
        )
