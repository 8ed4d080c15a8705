"""The one loop. Every method of the query-release family is played here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from understudy.players.base import DataPlayer, Model, Problem, QueryPlayer
from understudy.privacy.gate import Gate

__all__ = ["Progress", "last_state", "play", "remarks", "silent"]

Progress = Callable[[str, int, int], None]
"""progress(stage, done, total): released facts only."""


def silent(stage: str, done: int, total: int) -> None:
    """Say nothing."""


def play(
    problem: Problem,
    query: QueryPlayer,
    data: DataPlayer[Any],
    gate: Gate,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Model:
    """Let the two players take turns and return the data player's model.

    Only the query player meets the gate; what it returns is released. The number of rounds is
    public and fixed, so nothing here depends on private data except through charged answers.
    """
    return data.finish(problem, last_state(problem, query, data, gate, rng, progress))


def last_state(
    problem: Problem,
    query: QueryPlayer,
    data: DataPlayer[Any],
    gate: Gate,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Any:
    """The data player's state after the last round of `play`."""
    watched = getattr(data, "watched", None)  # players that take long may say how far they are
    data = data if watched is None or progress is silent else watched(progress)
    state = data.start(problem)
    for round in range(query.rounds):
        progress("playing", round, query.rounds)
        answers = query.play(problem, gate, data.view(problem, state), round)
        state = data.respond(problem, state, answers, rng)
    progress("playing", query.rounds, query.rounds)
    return state


def remarks(data: DataPlayer[Any], state: Any) -> Mapping[str, Any]:
    """What a data player has to say of a game, for the record; most have nothing (no `remarks`).

    It speaks of released answers and public randomness, as all that a data player does.
    """
    own = getattr(data, "remarks", None)
    return {} if own is None else dict(own(state))
