"""The two protocols of the query-release game.

A *query player* looks at the data player's current distribution and, through the gate, picks
where it is wrong; what it returns has been released and charged. A *data player* answers with a better
distribution; it sees released answers only, so everything it does is post-processing. Neither holds
private data. A method pairs one of each (see `understudy.game.methods`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique
from understudy.models import View
from understudy.players.answers import (
    Answer,
    Chosen,
    CriticGradient,
    Kind,
    LinearCritic,
    Measured,
    MeasuredCell,
    MeasuredDegrees,
    MeasuredMoments,
    MeasuredTriangles,
    PaidOff,
    PickedQuery,
)
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Cell
from understudy.progress import Watch, silent
from understudy.queries import Family

__all__ = [
    "Answer", "Cell", "Chosen", "Clique", "CriticGradient", "DataPlayer", "Kind", "LinearCritic",
    "Measured", "MeasuredCell", "MeasuredDegrees", "MeasuredMoments", "MeasuredTriangles",
    "Mend", "Model", "PaidOff", "PickedQuery", "Problem", "QueryPlayer", "View",
]  # fmt: skip

Mend = Callable[[Sequence[NDArray[Any]]], list[NDArray[Any]]]
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Problem:
    """What everybody may know: domain sizes, the workload, and a public number of rows.

    `families` is empty where every cell of every clique is asked for, and no other query.
    """

    shape: tuple[int, ...]
    cliques: tuple[Clique, ...]
    weights: tuple[float, ...]
    rows: int
    families: tuple[Family, ...] = ()
    mend: Mend | None = field(default=None, compare=False, repr=False)
    """Moves records that public rules forbid to the nearest that they allow; None without rules."""
    watch: Watch = field(default=silent, compare=False, repr=False)
    """Told how far work that takes long is."""


@runtime_checkable
class Model(View, Protocol):
    """A distribution that can be sampled and saved."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Domain sizes."""
        ...

    def sample(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.unsignedinteger[Any]]]:
        """Encoded rows."""
        ...

    def to_arrays(self) -> tuple[dict[str, object], dict[str, NDArray[Any]]]:
        """(JSON description, arrays)."""
        ...


class QueryPlayer(Protocol):
    """Finds, privately, where the data player is wrong. The only player who meets the gate."""

    @property
    def rounds(self) -> int:
        """How many rounds it plays; public and fixed in advance."""
        ...

    @property
    def gives(self) -> frozenset[Kind]:
        """The kinds of answers that it may hand on; public and fixed in advance."""
        ...

    @property
    def needs(self) -> tuple[type | UnionType, ...]:
        """Views that it plays against, each one needed; empty if marginals are enough."""
        ...

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """Released answers of this round. Every look at the data is a charge of the gate's."""
        ...


class DataPlayer(ABC, Generic[S]):
    """Keeps a distribution. Sees released answers only; `S` is its explicit state."""

    __slots__ = ()

    accepts: frozenset[Kind]
    """The kinds of answers that it learns from; a player who gives others is refused."""
    requires: frozenset[Kind] = frozenset()
    """Those of them that it cannot do without."""
    shows: type
    """The type of its view."""

    @abstractmethod
    def start(self, problem: Problem) -> S:
        """The state before any answer."""

    @abstractmethod
    def view(self, problem: Problem, state: S) -> View:
        """The current distribution, for the query player to attack."""

    @abstractmethod
    def respond(
        self, problem: Problem, state: S, answers: tuple[Answer, ...], rng: np.random.Generator
    ) -> S:
        """The state after a round's answers. Randomness here is public: it is not privacy noise.

        What takes long is told to `problem.watch`.
        """

    @abstractmethod
    def finish(self, problem: Problem, state: S) -> Model:
        """The model that the game was played for."""

    def most_rounds(self) -> int | None:
        """The longest game that it learns from; None for any."""
        return None

    def over(self, state: S) -> bool:
        """Whether it can learn no more: then nothing more is asked. A fact about released numbers."""
        return False

    def diagnostics(self, state: S) -> Mapping[str, Any]:
        """What it has to say of a game, for the record: released numbers and public randomness."""
        return {}


AnyDataPlayer = DataPlayer[Any]
