"""Numbers inside the cells of a column.

Tables know a binned number up to its cell. Inside a cell values lie as the column says: evenly, or by
the shape that a release found. That is assumed and not known, so its error is part of every interval: a
density that is a straight line 1 + s·(2t − 1) over the cell, |s| ≤ 1 its steepness, moves the mean of a
cell of width w by w·s/6 and the share below a point t by t(1 − t)·s.
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

STEEPEST = 2.0
"""Of the first and the last cell: steeper than a line can be, for a density may begin or end inside the
cell. Chosen on skewed distributions that no validation uses."""

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


def steepness(column: Modelled, shares: Floats) -> Floats:
    """For each code, how steep the density inside its cell is, at most 1, as its neighbours suggest.

    None for single values, for codes without a place in the order, and inside a found shape, whose own
    error is told apart.
    """
    found = np.zeros(column.size)
    if not isinstance(column, Binned) or column.shape is not None:
        return found
    lows, highs = column.grid.lows.astype(np.float64), column.grid.highs.astype(np.float64)
    width = highs - lows + (1.0 if column.grid.discrete else 0.0)
    cells = len(lows)
    if cells == 1:
        found[0] = 1.0
        return found
    dense = np.maximum(shares[:cells], 0.0) / np.maximum(width, 1e-300)
    # At both ends densities often bend: the slope there goes on changing as it does beside them.
    slope = np.gradient(dense, (lows + highs) / 2, edge_order=2 if cells > 2 else 1)
    most = np.ones(cells)
    most[[0, -1]] = STEEPEST
    with np.errstate(divide="ignore", invalid="ignore"):
        steep = np.abs(slope) * width / (2 * dense)
    steep = np.where(np.isfinite(steep), np.minimum(steep, most), most)
    found[:cells] = np.where(highs > lows, steep, 0.0)
    return found
