"""The one loop. Every method of the query-release family is played here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from understudy.players.base import DataPlayer, Model, Problem, QueryPlayer
from understudy.privacy.curator import Curator

__all__ = ["Progress", "play", "silent"]

Progress = Callable[[str, int, int], None]
"""progress(stage, done, total): released facts only."""


def silent(stage: str, done: int, total: int) -> None:
    """Say nothing."""


def play(
    problem: Problem,
    query: QueryPlayer,
    data: DataPlayer[Any],
    curator: Curator,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> Model:
    """Let the two players take turns and return the data player's model.

    Only the query player meets the curator; what it returns is released. The number of rounds is
    public and fixed, so nothing here depends on private data except through charged answers.
    """
    state = data.start(problem)
    for round in range(query.rounds):
        progress("playing", round, query.rounds)
        answers = query.play(problem, curator, data.view(problem, state), round)
        state = data.respond(problem, state, answers, rng)
    progress("playing", query.rounds, query.rounds)
    return data.finish(problem, state)
