"""The two protocols of the query-release game.

A *query player* looks at the data player's current distribution and, through the gate, picks
where it is wrong; what it returns has been released and charged. A *data player* answers with a better
distribution; it sees released answers only, so everything it does is post-processing. Neither holds
private data. A method pairs one of each (see `understudy.game.methods`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from understudy.models import Measured
from understudy.privacy.gate import Gate
from understudy.privacy.maps import Maps
from understudy.privacy.questions import Cell
from understudy.queries import Family, Query

__all__ = [
    "Answer", "Clique", "DataPlayer", "LinearCritic", "Measured", "MeasuredCell",
    "MeasuredDegrees", "MeasuredMoments", "MeasuredTriangles",
    "Mend", "Model", "PaidOff", "PickedQuery", "Problem", "QueryPlayer", "View",
]  # fmt: skip

Clique = tuple[int, ...]
Table = NDArray[np.float64]
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


@dataclass(frozen=True, slots=True)
class MeasuredCell:
    """A released cell: which query was selected and, where it was measured, its noisy count."""

    clique: Clique
    cell: Cell
    value: float | None = None
    sigma: float | None = None


@dataclass(frozen=True, slots=True)
class PickedQuery:
    """A released choice of a query of any class: on which side (±1) the data player is wrong."""

    clique: Clique
    query: Query
    sign: int


@dataclass(frozen=True, slots=True, eq=False)
class LinearCritic:
    """A released critic D(x) = Σ_c table_c[x_c]: high where the data player has too few records."""

    cliques: tuple[Clique, ...]
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredMoments:
    """Released sums of public random features over the rows; `values` and `sigma` are in rows."""

    maps: Maps
    values: Table
    sigma: float


@dataclass(frozen=True, slots=True)
class PaidOff:
    """A released sum of payoffs q(D) − q(D^t) over some rounds, in rows, with its noise's scale."""

    value: float
    scale: float
    rounds: int


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredDegrees:
    """Released degrees of a graph's nodes, with noise of deviation sigma.

    Sorted within blocks before the noise came, or `named`: every node's own, in their order.
    """

    values: NDArray[np.int64]
    sigma: float
    named: bool = False


@dataclass(frozen=True, slots=True)
class MeasuredTriangles:
    """The released number of a graph's triangles, with noise of deviation sigma."""

    value: int
    sigma: float


Answer = (
    Measured
    | MeasuredCell
    | MeasuredDegrees
    | MeasuredTriangles
    | PickedQuery
    | LinearCritic
    | MeasuredMoments
    | PaidOff
)


class View(Protocol):
    """A distribution over the universe, as far as marginals show it."""

    def marginal(self, clique: Clique) -> Table:
        """Shares summing to one, axes in the order of `clique`."""
        ...


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

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """Released answers of this round. Every look at the data is a charge of the gate's."""
        ...


class DataPlayer(Protocol[S]):
    """Keeps a distribution. Sees released answers only; `S` is its explicit state."""

    def start(self, problem: Problem) -> S:
        """The state before any answer."""
        ...

    def view(self, problem: Problem, state: S) -> View:
        """The current distribution, for the query player to attack."""
        ...

    def respond(
        self, problem: Problem, state: S, answers: tuple[Answer, ...], rng: np.random.Generator
    ) -> S:
        """The state after a round's answers. Randomness here is public: it is not privacy noise."""
        ...

    def finish(self, problem: Problem, state: S) -> Model:
        """The model that the game was played for."""
        ...


AnyDataPlayer = DataPlayer[Any]
