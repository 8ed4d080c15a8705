"""The ladder: which cells of an ordered column are counted, level by level, to find its shape.

A level is an ordinary one-way table over contiguous cells that cover the whole column: a row lies in
exactly one cell, so a level costs what any one-way table costs (L2² = 1 for add-remove, 2 for
replace). The first level is public: sign × decade × {1, 2, 5} with zero and the usual codes for
missing values as points of their own, equal steps where the bounds lie close together, years or
months for dates. Every further level opens the cells that earlier *released* counts found heavy, into
about ten parts each, the round left end of the cell a point of its own, and more where all rows of a
cell may have one value. A cell that is not opened is counted again, so no level is wasted on it.

Everything here is public or post-processing of released counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from functools import cached_property, lru_cache
from math import floor, inf, log10, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Floats
from understudy.columns.kinds import Kinds
from understudy.columns.reading import DAY, tick_of

SHARES = (0.30, 0.22, 0.16, 0.12, 0.10)
"""Of a column's ρ, what each level gets: the number of levels is the length."""
ROUNDNESS = 0.10
"""Of a column's ρ, what the table of round values gets."""
ENDINGS = ((100, 99), (100, 95), (25, 0), (10, 9), (5, 0))
"""Kinds after multiples of 10, where a column reaches 100 points: prices of 5.99 and 49, quarters."""

OPENS = 3.0
"""A cell is opened if its count exceeds so many standard deviations of either level."""
PER_PART = 1.2
"""It gets a part for each so many standard deviations in it, from two to ten."""
ALONE, AMONG, CLEAR, CHASED = 0.65, 4, 3.5, 30
"""A part that holds such a share of its cell, which has so many parts at least, and so many deviations,
may hold rows of one value only: it is cut into so many parts, for the levels to reach that value."""
FEW = 128
"""Below so many public values, a column is cut evenly from the first level."""
MOST_OPENED = 64
"""Of these, at most so many at a level, the heaviest: a bound on the size of a level."""

_LARGEST = 12  # decades, without bounds
_SMALLEST = -6  # decades, of continuous columns
_ATOM = 2.0**-20  # the relative width of a point of a continuous column: one float32 at least
_DOUBLE = 2**51  # decimals beyond are not exact
_SENTINELS = (-1, *(sign * (10**k - 1) for k in range(1, 9) for sign in (-1, 1)))
_EVEN = 5.0  # bounds of one sign whose ratio is below: cut evenly
_TOPS = 40  # cells of the first level there, at most
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Scale:
    """The points of an ordered column, in the order of its values.

    `lower` and `upper` are public bounds in the column's own terms, None where there is none. `grid`
    is the value of one point: 1 for integers, 10^-d for d decimals, None where every double is one.
    `calendar` is the number of nanoseconds of one point of a date or datetime, None for numbers.
    """

    lower: Any = None
    upper: Any = None
    grid: Fraction | None = Fraction(1)
    calendar: int | None = None

    @property
    def discrete(self) -> bool:
        """Whether the points are integers."""
        return self.grid is not None

    @property
    def bounded(self) -> bool:
        """Whether both bounds are public."""
        return self.lower is not None and self.upper is not None

    @cached_property
    def low(self) -> Any:
        """The first point."""
        return -self._farthest if self.lower is None else self.point(self.lower)

    @cached_property
    def high(self) -> Any:
        """The last point."""
        return self._farthest if self.upper is None else self.point(self.upper, up=False)

    @property
    def end(self) -> Any:
        """Where the last cell of a level ends: after the last point, as far as it can be written."""
        if not self.discrete:
            return self.after(self.high)
        if self.calendar is not None:
            return min(self.high + 1, tick_of(datetime.max, self.calendar))
        return min(self.high + 1, _DOUBLE if self.grid != 1 else 2**63 - 1)

    @property
    def _farthest(self) -> Any:
        if self.calendar is not None:
            return tick_of(datetime(2200, 1, 1), self.calendar)
        if self.grid is None:
            return 10.0**_LARGEST
        return min(int(10**_LARGEST / self.grid), 10**15 if self.grid != 1 else 10**18)

    @property
    def even(self) -> bool:
        """Whether the first level is cut evenly: the bounds are close, or there are few values."""
        if not self.bounded:
            return False
        if self.calendar is not None or (self.discrete and self.high - self.low < FEW):
            return True
        small, large = sorted((abs(self.low), abs(self.high)))
        return self.low * self.high > 0 and large <= _EVEN * small

    def point(self, value: Any, *, up: bool = True) -> Any:
        """The point of a value; of one between two points, the upper one (or the lower)."""
        if self.calendar is not None:
            if not isinstance(value, datetime):
                value = datetime(value.year, value.month, value.day)
            return tick_of(value, self.calendar)
        if self.grid is None:
            return float(value)
        if type(value) is int:
            return value * self.grid.denominator
        exact = Fraction(repr(value)) / self.grid
        return -floor(-exact) if up else floor(exact)

    def own(self, point: Any) -> Any:
        """A point in the column's own terms: an int, float or naive datetime."""
        if self.calendar is not None:
            return _EPOCH + timedelta(microseconds=int(point) * self.calendar // 1000)
        if self.grid is None:
            return float(point)
        return int(point) if self.grid == 1 else int(point) / self.grid.denominator

    def after(self, point: Any) -> Any:
        """Where a cell that holds this point alone ends."""
        if self.discrete:
            return point + 1
        return point + max(abs(point) * _ATOM, 10.0 ** (self.smallest - 6))

    @property
    def smallest(self) -> int:
        """The first decade of a continuous column that has cells of its own."""
        farthest = max(abs(self.low), abs(self.high))
        return min(_SMALLEST, floor(log10(farthest)) - 6) if 0 < farthest < inf else _SMALLEST


@dataclass(frozen=True, eq=False)
class Measured:
    """One released level: its edges in the column's own terms, noisy counts, their deviation."""

    edges: tuple[Any, ...]
    counts: NDArray[Any]
    sigma: float


@dataclass(frozen=True)
class Rounds:
    """The table of round values: a point's cell, and its kind.

    `edges` cut the column into decades, in its own terms; `kinds` are of points. The code of a point
    is `cell·kinds.classes + i`, i its kind: it has one, so a row lies in exactly one cell.
    """

    edges: tuple[Any, ...]
    kinds: Kinds


def rounds(scale: Scale) -> Rounds | None:
    """The table of round values of a column; None where there are none, as of doubles and days."""
    low = scale.low
    if scale.calendar is not None:
        units = (DAY, 3600 * 10**9, 60 * 10**9, 10**9, 10**6, 1000)
        steps = tuple(u // scale.calendar for u in units if u > scale.calendar)
        return Rounds(_owned(scale, (), low), Kinds(steps)) if steps else None
    if scale.grid is None:
        return None
    digits = len(str(max(abs(low), abs(scale.high), 1)))
    tops = [10**k for k in range(digits)]
    cuts = sorted({*tops, *(1 - top for top in tops)})
    steps = tuple(m * 10**k for k in reversed(range(digits)) for m in (5, 1))[:-1]
    kinds = Kinds(steps)
    if 100 in steps:
        endings, rests = zip(*ENDINGS, strict=True)
        kinds = Kinds((*steps[:-1], *endings), (*(0 for _ in steps[:-1]), *rests))
    return Rounds(_owned(scale, [cut for cut in cuts if low < cut < scale.end], low), kinds)


def first(scale: Scale) -> tuple[Any, ...]:
    """The edges of the first level, public: in the column's own terms, increasing.

    The last cell ends one point after the upper bound, so that the bound itself, where what lies
    beyond is counted, is a cell of its own.
    """
    low, high = scale.low, scale.high
    if scale.calendar is not None:
        inner = _calendar(scale, low, high)
    elif scale.even:
        inner = _multiples(low, high, _step(high - low, _TOPS, scale.discrete))
    else:
        inner = _decades(scale)
    ends = [low, high] if scale.discrete else [high]
    points = {*inner, *ends, *(scale.after(end) for end in ends)}
    return _owned(scale, sorted(p for p in points if low < p < scale.end), low)


def finer(scale: Scale, history: Sequence[Measured]) -> tuple[Any, ...]:
    """The edges of the next level, from released counts alone: those of the last one, and more."""
    last = edge_points(scale, history[-1].edges).tolist()
    counts = repeated(scale, history)
    following = history[0].sigma * sqrt(SHARES[0] / SHARES[min(len(history), len(SHARES) - 1)])
    bar = OPENS * max(history[-1].sigma, following)
    heaviest = np.argsort(-counts, kind="stable")
    alone = _alone(scale, history, counts) & (counts > CLEAR * following)
    edges, opened = set(last), 0
    for at in heaviest:
        if counts[at] <= bar or opened >= MOST_OPENED:
            break
        parts = int(min(max(counts[at] / (PER_PART * following), 2), 10))
        parts = CHASED if alone[at] and parts < 10 else parts
        inner = _children(scale, last[at], last[at + 1], parts)
        edges.update(inner)
        opened += bool(inner)
    return _owned(scale, sorted(edges - {last[0], last[-1]}), last[0])


def _alone(scale: Scale, history: Sequence[Measured], counts: Floats) -> NDArray[np.bool_]:
    """Cells of the last level that hold nearly all of a cell opened for it: of one value, perhaps."""
    if len(history) < 2:
        return np.zeros(len(counts), np.bool_)
    before = edge_points(scale, history[-2].edges)
    parts = np.diff(np.searchsorted(edge_points(scale, history[-1].edges), before))
    whole = np.repeat(repeated(scale, history[:-1]), parts)
    return (counts > ALONE * whole) & (np.repeat(parts, parts) >= AMONG)


def repeated(scale: Scale, history: Sequence[Measured]) -> Floats:
    """For each cell of the last level, the mean of all counts of just this cell, by precision."""
    cells = edge_points(scale, history[-1].edges)
    sums, weights = np.zeros(len(cells) - 1), np.zeros(len(cells) - 1)
    for level in history:
        edges = edge_points(scale, level.edges)
        at = np.minimum(np.searchsorted(edges, cells[:-1]), len(edges) - 2)
        same = (edges[at] == cells[:-1]) & (edges[at + 1] == cells[1:])
        sums += np.where(same, np.asarray(level.counts, np.float64)[at] / level.sigma**2, 0.0)
        weights += np.where(same, 1 / level.sigma**2, 0.0)
    return sums / weights


@lru_cache(maxsize=256)
def edge_points(scale: Scale, edges: tuple[Any, ...]) -> NDArray[Any]:
    """The points of the edges of a level; not to be written to."""
    found = np.array([scale.point(edge) for edge in edges])
    found.flags.writeable = False
    return found


def _owned(scale: Scale, inner: Sequence[Any], low: Any) -> tuple[Any, ...]:
    return tuple(scale.own(point) for point in (low, *inner, scale.end))


def _step(width: Any, parts: int, discrete: bool) -> Any:
    """The least of 1, 2, 5, 10, 20, ... that cuts a width into at most so many parts."""
    power = floor(log10(width / parts)) if width > 0 else 0
    for k in range(power - 1, power + 3):
        if discrete and k < 0:
            continue
        for m in (1, 2, 5):
            step = m * 10**k if k >= 0 else m / 10**-k
            if width <= step * parts * (1 + 1e-9):
                return step
    return width


def _multiples(low: Any, high: Any, step: Any) -> list[Any]:
    """The multiples of a step inside an interval, its left end not included."""
    if isinstance(step, int) and isinstance(low, int):
        return list(range((low // step + 1) * step, high, step))
    begin = floor(low / step) + 1
    count = max(0, floor((high - low) / step) + 2)
    places = 0 if step >= 1 else -floor(log10(step))
    # Doubles throughout: of large ones, the whole number of the same digits is another value.
    found = [float(round((begin + i) * step, places + 1)) for i in range(count)]
    return [p for p in found if low < p < high]


def _decades(scale: Scale) -> list[Any]:
    """Sign × decade × {1, 2, 5}, zero, and the usual codes for missing values as points."""
    unit = 1 if scale.grid is None else scale.grid
    large = max(abs(scale.low), abs(scale.high))
    if scale.discrete:
        tops: list[Any] = [m * 10**k for k in range(len(str(large)) + 1) for m in (1, 2, 5)]
        edges = [*tops, *(1 - top for top in tops)]
    else:
        tops = [
            float(f"{m}e{k}")
            for k in range(scale.smallest, floor(log10(large)) + 2)
            for m in (1, 2, 5)
        ]
        edges = [*tops, *(-top for top in tops), 0.0, scale.after(0.0)]
    for value in _SENTINELS:
        at = Fraction(value) / unit if scale.discrete else float(value)
        at = int(at) if scale.discrete else at
        edges += [at, scale.after(at)]
    return edges


def _children(scale: Scale, low: Any, high: Any, parts: int) -> list[Any]:
    """The inner edges of a cell opened into about so many parts; none where it is a single point."""
    if scale.after(low) >= high:
        return []
    if scale.calendar is not None:
        return sorted({low + 1, *_calendar(scale, low, high)})
    if scale.discrete and high <= 0:  # mirrored: the right end of a negative cell is the round one
        return sorted(1 - cut for cut in _round_parts(scale, 1 - high, 1 - low, parts))
    return _round_parts(scale, low, high, parts)


def _round_parts(scale: Scale, low: Any, high: Any, parts: int) -> list[Any]:
    step = _step(high - low, parts, scale.discrete)
    return sorted({scale.after(low), *_multiples(low, high, step)})


_PARTS = (
    ("Y", 10, 3653 * DAY),
    ("Y", 1, 366 * DAY),
    ("M", 1, 31 * DAY),
    ("D", 1, DAY),
    ("h", 1, 3600 * 10**9),
    ("m", 1, 60 * 10**9),
    ("s", 1, 10**9),
)
"""Of the calendar: so many of a unit of NumPy's, and their nanoseconds, at most."""


def _calendar(scale: Scale, low: int, high: int) -> list[int]:
    """Where parts of the calendar begin inside an interval: the largest that it holds two of."""
    assert scale.calendar is not None
    width = (high - low) * scale.calendar
    held = (part for part in _PARTS if width >= 2 * part[2])
    unit, many, _ = next(held, _PARTS[-1])
    first, last = (np.datetime64(scale.own(end), unit).astype(int) for end in (low, high))
    begins = np.arange(first // many * many, last + 1, many).astype(f"M8[{unit}]").astype("M8[us]")
    points = begins.astype(np.int64) // (scale.calendar // 1000)
    return points[(low < points) & (points < high)].tolist()
