"""CPU seconds of one round, query player and data player apart, as queries and columns grow.

Generated tables of 10 values a column; 3-way marginals of 1000 cells each, so that a thousand marginals
are a million queries. The first round counts the workload once; the rounds after it are the game.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.game.methods import Design, method
from understudy.privacy.cost import Plan
from understudy.releases.run import release
from understudy.schema import Integer, Schema

__all__ = ["Round", "measure", "over_columns", "over_queries"]

_VALUES, _ORDER = 10, 3
_CELLS = _VALUES**_ORDER
_GROUPS = 4
_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Round:
    """What one round took, on average after the first."""

    method: str
    columns: int
    queries: int
    rounds: int
    counting: float
    """CPU seconds of the query player's first round, in which the workload is counted."""
    query: float
    data: float


@dataclass
class _Timed:
    """A player that keeps time."""

    player: Any
    spent: list[float] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.player, name)

    def _clocked(self, name: str, *arguments: Any) -> Any:
        begun = time.process_time()
        try:
            return getattr(self.player, name)(*arguments)
        finally:
            self.spent.append(time.process_time() - begun)

    def play(self, *arguments: Any) -> Any:
        return self._clocked("play", *arguments)

    def respond(self, *arguments: Any) -> Any:
        return self._clocked("respond", *arguments)


@dataclass
class _Watched:
    """A method whose players keep time."""

    method: Any
    query: _Timed | None = None
    data: _Timed | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.method, name)

    def players(self, design: Design, plan: Plan) -> tuple[Any, Any]:
        query, data = self.method.players(design, plan)
        self.query, self.data = _Timed(query), _Timed(data)
        return self.query, self.data


def measure(name: str, columns: int, marginals: int, rows: int = 10_000) -> Round:
    """Play a few rounds on a generated table and time them."""
    rng = np.random.default_rng(columns)
    latent = rng.integers(0, _VALUES, (_GROUPS, rows))
    made = {
        f"c{i}": np.where(
            rng.random(rows) < 0.6, latent[i % _GROUPS], rng.integers(0, _VALUES, rows)
        )
        for i in range(columns)
    }
    schema = Schema(tuple(Integer(column, 0, _VALUES - 1) for column in made))
    watched: Any = _Watched(method(name, rounds=_ROUNDS))
    release(
        pa.table(made), schema, epsilon="1", rows_public=rows, method=watched,
        workload=f"marginals:{_ORDER}:{marginals}@0",
    )  # fmt: skip
    assert watched.query is not None
    assert watched.data is not None
    first, *later = watched.query.spent
    return Round(
        name,
        columns,
        marginals * _CELLS,
        _ROUNDS,
        first,
        sum(later) / max(len(later), 1),
        sum(watched.data.spent[1:]) / max(len(watched.data.spent) - 1, 1),
    )


def over_queries(
    name: str, marginals: Sequence[int] = (1, 10, 100, 1000), columns: int = 30
) -> Iterator[Round]:
    """From a thousand queries to a million."""
    return (measure(name, columns, number) for number in marginals)


def over_columns(
    name: str, columns: Sequence[int] = (10, 20, 50, 100, 200), marginals: int = 100
) -> Iterator[Round]:
    """From ten columns to two hundred."""
    return (measure(name, number, marginals) for number in columns)
