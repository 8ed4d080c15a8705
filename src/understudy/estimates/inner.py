"""Numbers inside the cells of a column.

Tables know a binned number up to its cell. Inside a cell values lie as the column says: evenly, or by
the shape that a release found. That is assumed and not known, so its error is part of every interval.
Densities of neighbouring cells tell how: inside a cell density is taken to be the straight line
1 + s·(2t − 1) that leads from one to the other, and to be off by another line at most, of steepness s',
which moves the mean of a cell of width w by w·s'/6 and the share below a point t by t(1 − t)·s'. Steps
and heaps are no lines: s' stands for them, and may be steeper than a line can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from understudy.columns.amounts import NUMBER, amounts
from understudy.columns.base import Modelled
from understudy.columns.binned import Binned
from understudy.columns.category import Boolean
from understudy.columns.shape import Search
from understudy.errors import WorkloadError

DRAWN = 64
"""Points, equally likely, that stand for the values of a cell."""

_STEP, _HEAP = 0.4, 2.5
"""How steep, for half of what the densities of both neighbours are apart, and for what a cell has
beyond their mean, both over its own. Chosen on generated densities that no validation uses: smooth,
skewed, in blocks, and with one heap."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Inner:
    """Equally likely points of every cell that holds numbers, sorted; codes beyond them hold none."""

    points: Floats
    uncertain: Floats
    """The deviation of the sum of each cell by the noise of a found shape, for one row."""
    beyond: tuple[float, float] = (0.0, 0.0)
    """By how much what lies below all that was found may lower the sum of the first cell, and what lies
    above may raise that of the last one, for one row."""

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def mean(self) -> Floats:
        """Of every cell."""
        return self.points.mean(axis=1)

    @cached_property
    def deviation(self) -> Floats:
        """Inside every cell."""
        return self.points.std(axis=1)

    @cached_property
    def relative(self) -> Floats:
        """`uncertain` in deviations."""
        wide = self.deviation > 0
        return np.divide(self.uncertain, self.deviation, out=np.zeros(len(self)), where=wide)

    def below(self, point: float) -> Floats:
        """The share of each cell that is at most a point."""
        return np.mean(self.points <= point, axis=1)


def inner(
    column: Modelled,
    slopes: Floats | None = None,
    search: Search | None = None,
    shares: Floats | None = None,
) -> Inner:
    """The numbers of a column.

    `slopes` are those of the density inside each cell, beside what the column says. `search` says how
    its shape was found, with noise in shares of rows; `shares` are those of its cells.

    Raises:
        WorkloadError: The column holds no numbers.
    """
    if isinstance(column, Boolean):
        return Inner(np.array([[0.0], [1.0]]), np.zeros(2))
    known = amounts(column)
    if known is None or known.unit != NUMBER:
        raise WorkloadError(
            f"column {column.name!r} ({column.kind}) holds no numbers; name a number, or a share such "
            f"as share({column.name} = …)"
        )
    unit = 10.0 ** -(known.decimals or 0)
    if not isinstance(column, Binned):
        return Inner(known.lows[:, None] * unit, np.zeros(len(known)))
    even = (np.arange(DRAWN) + 0.5) / DRAWN
    points = np.sort(column.quantiles(even), axis=1) * unit
    if slopes is not None:
        s = slopes[: len(points), None]
        at = 2 * even / (1 - s + np.sqrt((1 - s) ** 2 + 4 * s * even))  # (1 − s)·t + s·t² = even
        points = np.take_along_axis(points, (at * DRAWN).astype(np.int64), axis=1)
    if search is None or shares is None:
        return Inner(points, np.zeros(len(points)))
    own = np.maximum(shares[: len(points)], 0.0)
    low, high = (unit * share * far for share, far in column.beyond(search, own))
    return Inner(points, unit * column.uncertain(search, own), (low, high))


def lines(column: Modelled, shares: Floats) -> tuple[Floats, Floats]:
    """For each code, the slope of the density inside its cell, and how steep what it misses may be.

    Nothing for single values, for codes without a place in the order, and inside a found shape, whose
    own error is told apart. Beyond the first and the last cell density is 0: it may begin inside them.
    """
    slopes, steep = np.zeros((2, column.size))
    if not isinstance(column, Binned) or column.shape is not None:
        return slopes, steep
    lows, highs = column.grid.lows.astype(np.float64), column.grid.highs.astype(np.float64)
    width = highs - lows + (1.0 if column.grid.discrete else 0.0)
    cells = len(lows)
    dense = np.zeros(cells + 2)
    dense[1:-1] = np.maximum(shares[:cells], 0.0) / np.maximum(width, 1e-300)
    before, own, after = dense[:-2], np.maximum(dense[1:-1], 1e-300), dense[2:]
    apart = (after - before) / (2 * own)
    beyond = np.minimum(np.abs(1 - (before + after) / (2 * own)), 1.0)
    wide = highs > lows
    slopes[:cells] = wide * np.clip(apart / 2, -1.0, 1.0)
    steep[:cells] = wide * (_STEP * np.minimum(np.abs(apart), 1.0) + _HEAP * beyond)
    return slopes, steep
