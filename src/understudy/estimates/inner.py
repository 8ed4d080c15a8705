"""Numbers inside the cells of a column.

Tables know a binned number up to its cell. Inside a cell values lie as the column says: evenly, or by
the shape that a release found. That is assumed and not known, so its error is part of every interval.
Densities of neighbouring cells tell how: inside a cell density is taken to be the straight line
1 + s·(2t − 1) that leads from one to the other, and to be off by another line at most, of steepness s',
which moves the mean of a cell of width w by w·s'/6 and the share below a point t by t(1 − t)·s'. Steps
and heaps are no lines: s' stands for them, and may be steeper than a line can be.

That is another error in every cell. Whole numbers that people round have one that is the same in all
of them: bins begin at round numbers, and so rows stand at the first values. `Heaps` says how many may.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from understudy._types import Floats
from understudy.columns.amounts import NUMBER, amounts
from understudy.columns.base import Modelled
from understudy.columns.binned import Binned
from understudy.columns.category import Boolean
from understudy.columns.shape import Search
from understudy.errors import WorkloadError

DRAWN = 64
"""Points, equally likely, that stand for the values of a cell."""

_STEP, _HEAP = 0.64, 4.0
"""How steep, for half of what the densities of both neighbours are apart, and for what a cell has
beyond their mean, both over its own. Chosen on generated densities that no validation uses (normal,
log-normal, gamma, even and growing blocks): 98 % of quantiles are within it."""
MEAN_OF_POINTS, MEAN = 0.625, 0.375
"""Of that, what the mean of a cell may be off by: a density that goes up and down inside a cell is
farther off at a place than on average. More of whole numbers and of declared decimals, for these may
all stand at one point. Chosen on the same densities, with a heap and without: 95 % of means are
within it, and 93 % of Gini coefficients where blocks grow."""

_ROUNDED, _JUMPS = 0.2, 2.0
"""Of whole numbers in bins, the share that may be rounded where bins rise and fall smoothly, and what
it grows by with the share that is above a smooth curve: numbers that are rounded to the width of a bin
are rounded to more as well, which shows. Chosen on generated numbers (normal, log-normal, gamma, beta,
even, with two tops) that are rounded to several steps at once, with and without one favourite: it is
enough for the mean of 95 % of them."""


@dataclass(frozen=True)
class Heaps:
    """At multiples of which steps the values of bins may stand, and at most which share of them.

    Of 1, 2 and 5 times powers of ten, `steps` are those up to the widest bin and above a fifth of it:
    finer ones move its mean by less.
    """

    steps: tuple[int, ...] = ()
    share: float = 0.0

    @classmethod
    def of(cls, column: Modelled, shares: Floats) -> Heaps:
        """Of whole numbers in declared bins; none of decimals, or where a shape was found."""
        known = amounts(column)
        if not isinstance(column, Binned) or column.shape is not None or known is None:
            return cls()
        widest = int((known.highs - known.lows).max()) + 1 if known.decimals == 0 else 1
        if known.unit != NUMBER or widest < 2:
            return cls()
        every = (m * 10**k for k in range(len(str(widest))) for m in (1, 2, 5))
        steps = tuple(step for step in every if widest < 5 * step and 1 < step <= widest)
        own = np.maximum(shares[: len(known)], 0.0)
        beside = np.pad(own / (known.highs - known.lows + 1.0), 2)
        smooth = (4 * (beside[1:-3] + beside[3:-1]) - beside[:-4] - beside[4:]) / 6
        above = np.maximum(own - smooth * (known.highs - known.lows + 1.0), 0.0).sum()
        return cls(steps, min(_ROUNDED + _JUMPS * float(above / max(own.sum(), 1e-12)), 1.0))


@dataclass(frozen=True, eq=False)
class Inner:
    """Equally likely points of every cell that holds numbers, sorted; codes beyond them hold none."""

    points: Floats
    uncertain: Floats
    """The deviation of the sum of each cell by the noise of a found shape, for one row."""
    beyond: tuple[float, float] = (0.0, 0.0)
    """By how much what lies below all that was found may lower the sum of the first cell, and what lies
    above may raise that of the last one, for one row."""
    loose: float = MEAN_OF_POINTS
    """How much of the steepness of a density, which holds at every place, moves the mean of a cell."""

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

    def heaped(self, column: Modelled, step: int, share: float) -> Inner:
        """With a share of the points of each cell at the multiples of a step that it has, if any."""
        many = self.points.shape[1]
        moved = round(share * many)
        at = (np.arange(many - moved) + 0.5) / max(many - moved, 1) * many
        kept = self.points[:, at.astype(np.int64)]
        points = np.concatenate([kept, rounded(column, step, moved)], axis=1)
        lacking = np.isnan(points).any(axis=1, keepdims=True)
        return replace(self, points=np.where(lacking, self.points, np.sort(points, axis=1)))


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
        loose = MEAN_OF_POINTS if column.grid.discrete else MEAN
        return Inner(points, np.zeros(len(points)), loose=loose)
    own = np.maximum(shares[: len(points)], 0.0)
    low, high = (unit * share * far for share, far in column.beyond(search, own))
    return Inner(points, unit * column.uncertain(search, own), (low, high))


def rounded(column: Modelled, step: int, many: int) -> Floats:
    """So many multiples of a step in every cell, each as often as others; NaN where it has none."""
    known = amounts(column)
    assert known is not None
    first, last = -(-known.lows // step), known.highs // step
    held = (last - first + 1)[:, None]
    at = first[:, None] + np.floor((np.arange(many) + 0.5) / max(many, 1) * np.maximum(held, 1))
    return np.where(held > 0, step * at, np.nan)


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
