"""Numbers inside the cells of a column.

Tables know a binned number up to its cell. Inside a cell values lie as the column says: evenly, or by
the shape that a release found. That is assumed and not known, so its error is part of every interval.
Densities of neighbouring cells tell how far off it may be. Where they differ, the density may step
from one to the other in the middle of the cell. Where the cell has more than their mean, or less, what
it has beyond may all stand at one value, or be missing there. Both together move the share below a
point t by lean·min(t, 1 − t) + loose·max(t, 1 − t), and the mean of a cell of width w by
w·(lean/4 + loose/2).
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
from understudy.errors import WorkloadError

DRAWN = 64
"""Points, equally likely, that stand for the values of a cell."""

_LEAN, _LOOSE = 0.5, 0.75
"""How much of what densities of neighbouring cells suggest, at most, is inside one: of the step that is
as high as they are apart, and of what the cell has beyond their mean. Chosen on generated densities
that no validation uses: smooth, skewed, in blocks, and with one heap."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Inner:
    """Equally likely points of every cell that holds numbers, sorted; codes beyond them hold none."""

    points: Floats
    uncertain: Floats
    """The deviation of the sum of each cell by the noise of a found shape, for one row."""

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
    def half(self) -> Floats:
        """Half of every cell, in deviations."""
        apart, wide = self.points[:, -1] - self.points[:, 0], self.deviation > 0
        return np.divide(apart / 2, self.deviation, out=np.zeros(len(self)), where=wide)

    @cached_property
    def relative(self) -> Floats:
        """`uncertain` in deviations."""
        wide = self.deviation > 0
        return np.divide(self.uncertain, self.deviation, out=np.zeros(len(self)), where=wide)

    def below(self, point: float) -> Floats:
        """The share of each cell that is at most a point."""
        return np.mean(self.points <= point, axis=1)


def inner(column: Modelled, shape_noise: float = 0.0) -> Inner:
    """The numbers of a column; `shape_noise` is that of the shares behind a found shape.

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
    points = np.sort(column.quantiles((np.arange(DRAWN) + 0.5) / DRAWN), axis=1) * unit
    return Inner(points, column.leverage() * unit * shape_noise)


@dataclass(frozen=True, eq=False)
class Placed:
    """How unevenly values may stand inside the cell of each code: as a step, and at one value."""

    lean: Floats
    loose: Floats

    def below(self, share: Floats) -> Floats:
        """How far the share of each cell below a point may be off, if it is `share` for even values."""
        return self.lean * np.minimum(share, 1 - share) + self.loose * np.maximum(share, 1 - share)

    @property
    def mean(self) -> Floats:
        """How far the mean of each cell may be off, in halves of the cell."""
        return self.lean / 2 + self.loose

    @property
    def total(self) -> Floats:
        """How much of each cell may stand elsewhere, at most all."""
        return np.minimum(self.lean + self.loose, 1.0)


def placed(column: Modelled, shares: Floats) -> Placed:
    """What the cells of a column may hide, as the shares of their neighbours suggest.

    Nothing for single values, for codes without a place in the order, and inside a found shape, whose
    own error is told apart. Beyond the first and the last cell density is 0: it may begin inside them.
    """
    lean, loose = np.zeros((2, column.size))
    if not isinstance(column, Binned) or column.shape is not None:
        return Placed(lean, loose)
    lows, highs = column.grid.lows.astype(np.float64), column.grid.highs.astype(np.float64)
    width = highs - lows + (1.0 if column.grid.discrete else 0.0)
    cells = len(lows)
    dense = np.zeros(cells + 2)
    dense[1:-1] = np.maximum(shares[:cells], 0.0) / np.maximum(width, 1e-300)
    before, own, after = dense[:-2], np.maximum(dense[1:-1], 1e-300), dense[2:]
    wide = highs > lows
    lean[:cells] = wide * _LEAN * np.minimum(np.abs(after - before) / (2 * own), 1.0)
    loose[:cells] = wide * _LOOSE * np.minimum(np.abs(own - (before + after) / 2) / own, 1.0)
    return Placed(lean, loose)
