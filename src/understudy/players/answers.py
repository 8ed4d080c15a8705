"""What a query player hands on: answers that were charged and released, and their kinds.

A data player learns from some kinds and not from others; both players say which, and the loop refuses a
pairing in which a charged answer would be lost (`understudy.game.pairing`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Table
from understudy.models import Measured
from understudy.privacy.questions import Cell
from understudy.privacy.questions.moments import RandomFeatures
from understudy.queries import Query

__all__ = [
    "Answer", "Chosen", "CriticGradient", "Kind", "LinearCritic", "Measured", "MeasuredCell",
    "MeasuredDegrees", "MeasuredMoments", "MeasuredTriangles", "PaidOff", "PickedQuery", "kind_of",
    "kinds_of",
]  # fmt: skip


class Kind(StrEnum):
    """Kinds of answers, in the words of a message."""

    TABLE = "noisy marginals"
    COARSENED = "noisy coarsened marginals"
    CELL = "noisy counts of cells"
    PICKED_CELL = "picked cells"
    PICKED_QUERY = "picked queries"
    CRITIC = "linear critics"
    MOMENTS = "sums of random features"
    PAYOFF = "payoffs of picked cells"
    DEGREES = "degrees of nodes"
    TRIANGLES = "numbers of triangles"
    GRADIENT = "gradients of a critic"
    CHOICE = "choices among checkpoints"


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

    maps: RandomFeatures
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


@dataclass(frozen=True, slots=True, eq=False)
class CriticGradient:
    """A noisy mean gradient of the critic's loss on the rows, layer after layer, biases last.

    `below` is, for every group of weights that was watched, the noisy share of rows whose gradient was
    not clipped.
    """

    gradient: NDArray[np.float32]
    below: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """Checkpoints that were picked, best first, as far as the noise lets one see."""

    checkpoints: tuple[int, ...]


Answer = (
    Measured
    | MeasuredCell
    | MeasuredDegrees
    | MeasuredTriangles
    | PickedQuery
    | LinearCritic
    | MeasuredMoments
    | PaidOff
    | CriticGradient
    | Chosen
)

_KINDS: dict[type, Kind] = {
    MeasuredDegrees: Kind.DEGREES,
    MeasuredTriangles: Kind.TRIANGLES,
    PickedQuery: Kind.PICKED_QUERY,
    LinearCritic: Kind.CRITIC,
    MeasuredMoments: Kind.MOMENTS,
    PaidOff: Kind.PAYOFF,
    CriticGradient: Kind.GRADIENT,
    Chosen: Kind.CHOICE,
}


def kinds_of(answers: Iterable[Answer]) -> frozenset[Kind]:
    """The kinds that are among released answers."""
    return frozenset(map(kind_of, answers))


def kind_of(answer: Answer) -> Kind:
    """The kind of a released answer."""
    match answer:
        case Measured(labels=labels):
            return Kind.TABLE if labels is None else Kind.COARSENED
        case MeasuredCell(value=value):
            return Kind.PICKED_CELL if value is None else Kind.CELL
        case _:
            return _KINDS[type(answer)]
