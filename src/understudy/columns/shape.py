"""The shape of an ordered column inside its cells: what a decoded row is drawn from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Floats, Rng, Whole
from understudy.columns.kinds import Kinds

FACTS = ("leaves", "weights", "decades", "steps", "rests", "roundness")
"""What a schema file says of a shape."""
STEEPEST = 4.0
"""Of the power of a density inside a leaf."""
LEAST = 1e-5
"""A leaf with a smaller share was not found: it stands for what is not seen between bounds."""
POINTLIKE = 2.0**-19
"""The relative width below which a leaf of doubles is a point."""


@dataclass(frozen=True, eq=False)
class Search:
    """How the shape of a column was found; deviations are of counts of rows.

    coarse       the edges of the first level, in points
    whole, part  the noise of a cell of it, by all levels, and of a leaf inside one, at most
    low, high    whether the least value was found as well, and the largest
    """

    coarse: NDArray[Any]
    whole: float
    part: float
    low: bool = False
    high: bool = False

    def of(self, rows: float) -> Search:
        """The same with deviations of shares of so many rows."""
        return replace(self, whole=self.whole / rows, part=self.part / rows)


@dataclass(frozen=True)
class Shape:
    """Leaves nested in the cells of a column, with the share of rows of each.

    `edges` cut the column into cells, in its own terms. Leaf i holds the points `leaves[i]` up to, but
    not including, `leaves[i + 1]`, and has `weights[i]`; cell j begins with the leaf `starts[j]`. The
    points are those of the column's grid: integers, or doubles. `roundness` says how often values
    between two points of `decades` are of each of the kinds that `steps` and `rests` name, one row
    after the other; empty where that is not known. Where all rests are 0 there are none.
    """

    edges: tuple[Any, ...]
    leaves: tuple[Any, ...]
    starts: tuple[int, ...]
    weights: tuple[int, ...]
    decades: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    roundness: tuple[int, ...] = ()
    rests: tuple[int, ...] = ()
    told: tuple[tuple[float, float], ...] = field(
        default=(), compare=False, repr=False, kw_only=True
    )
    """While a release is made: what was counted in each cell on the way, and the noise's variance."""

    def facts(self) -> dict[str, tuple[Any, ...]]:
        """What a schema file says of it beside the edges, which tell where cells begin."""
        return {key: values for key in FACTS if (values := getattr(self, key))}

    @property
    def discrete(self) -> bool:
        """Whether the points are integers."""
        return isinstance(self.leaves[0], int)

    @cached_property
    def kinds(self) -> Kinds:
        """The kinds of round values."""
        return Kinds(self.steps, self.rests)

    @cached_property
    def _lows(self) -> NDArray[Any]:
        return np.array(self.leaves, np.int64 if self.discrete else np.float64)

    @cached_property
    def _reached(self) -> Floats:
        """Weights summed up to each leaf; a cell without any is drawn from evenly."""
        weights = np.array(self.weights, np.float64)
        stops = [*self.starts[1:], len(weights)]
        for begin, stop in zip(self.starts, stops, strict=True):
            if not weights[begin:stop].any():
                weights[begin:stop] = np.diff(self._lows[begin : stop + 1])
        return np.concatenate([[0.0], np.cumsum(weights)])

    def draw(self, cells: NDArray[np.intp], rng: Rng) -> NDArray[Any]:
        """One point of each cell.

        The rows of a cell are spread over its leaves as evenly as they can be (systematic sampling,
        in random order). The point lies in the cell: `encode(draw(c)) == c`.
        """
        leaf, drawn = self._at(cells, _spread(cells, len(self.starts), rng))
        return self._rounded(leaf, drawn, rng) if self.roundness else drawn

    def quantiles(self, cells: NDArray[np.intp], shares: Floats) -> NDArray[Any]:
        """The points below which these shares of each cell's rows lie, a row for each cell."""
        at = np.tile(shares, len(cells))
        return self._at(np.repeat(cells, len(shares)), at)[1].reshape(len(cells), len(shares))

    @cached_property
    def _held(self) -> Floats:
        """What was found in every leaf; what only stands for the unseen is nothing."""
        weights = np.array(self.weights, np.float64)
        return np.where(weights > LEAST * weights.sum(), weights, 0.0)

    def rows(self, cells: NDArray[np.intp]) -> Floats:
        """The share of rows that was found in each cell."""
        weights = np.array(self.weights, np.float64)
        return np.add.reduceat(weights, self.starts)[cells] / weights.sum()

    def beyond(self, search: Search) -> tuple[tuple[float, float], tuple[float, float]]:
        """Below the first leaf with rows, and above the last: which share may lie there, and how far.

        A tail falls, so it is at most the share of the outer half of what was found; as far as the
        found ones lie apart, and no further than a bound.
        """
        at = np.flatnonzero(self._held)
        first, last = float(self._lows[at[0]]), float(self._lows[at[-1] + 1])
        far, middles = last - first, (self._lows[:-1].astype(np.float64) + self._lows[1:]) / 2
        upper = middles > (first + last) / 2
        half = float(self._held @ upper) / float(self._held.sum())
        low = far if search.low else min(far, first - float(self._lows[0]))
        high = far if search.high else min(far, float(self._lows[-1]) - last)
        return (1 - half, low), (half, high)

    def uncertain(self, cells: NDArray[np.intp], search: Search) -> Floats:
        """The deviation of the sum of each cell, of as many rows as were found there, by their noise.

        √Σ (σ·(x − μ))², μ the mean of the cell: over the leaves of a cell of the first level, x
        their middles and μ its mean, and then over these. An empty leaf has its x at the end that is
        nearer to more rows, for noise may hide some there; beyond all leaves with rows there is none.
        """
        starts = np.array([*self.starts, len(self.weights)])
        lows, mass = self._lows.astype(np.float64), self._held
        beside = np.concatenate([[0.0], mass, [0.0]])
        nearest = np.where(beside[:-2] >= beside[2:], lows[:-1], lows[1:])
        places = np.where(mass > 0, (lows[:-1] + lows[1:]) / 2, nearest)
        coarse = np.searchsorted(search.coarse, self._lows[:-1], side="right")
        ends = np.flatnonzero(mass)[[0, -1]]
        found = np.zeros(len(cells))
        for k, (begin, stop) in enumerate(zip(starts[cells], starts[cells + 1], strict=True)):
            own = slice(max(begin, ends[0]), min(stop, ends[1] + 1))
            at, rows = places[own], mass[own]
            if not rows.any():
                continue
            _, group = np.unique(coarse[own], return_inverse=True)
            held, sums = np.bincount(group, rows), np.bincount(group, rows * at)
            plain = np.bincount(group, at) / np.bincount(group)
            middle = np.divide(sums, held, out=plain, where=held > 0)
            inner = search.part * np.linalg.norm(at - middle[group])
            found[k] = np.hypot(
                inner, search.whole * np.linalg.norm(middle - at @ rows / rows.sum())
            )
        return found

    def _at(self, cells: NDArray[np.intp], share: Floats) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """The leaf and the point at a share of each cell's mass."""
        reached, starts = self._reached, np.array([*self.starts, len(self.weights)])
        begin, stop = reached[starts[cells]], reached[starts[cells + 1]]
        at = begin + share * (stop - begin)
        leaf = np.clip(
            np.searchsorted(reached, at, side="right") - 1, starts[cells], starts[cells + 1] - 1
        )
        mass = reached[leaf + 1] - reached[leaf]
        inside = np.divide(at - reached[leaf], mass, out=np.zeros(len(at)), where=mass > 0)
        return leaf, self._inside(leaf, np.clip(inside, 0.0, 1.0))

    @cached_property
    def _slopes(self) -> Floats:
        """The power of |x| that the density inside each leaf follows, from its neighbours'."""
        lows = self._lows.astype(np.float64)
        width = np.diff(lows)
        weights = np.array(self.weights, np.float64)
        use = (weights > 0) & (np.abs(width) > POINTLIKE * np.maximum(np.abs(lows[1:]), 1e-300))
        if self.discrete:
            use = (weights > 0) & (width > 1)
        middle = np.log(np.maximum(np.abs(lows[:-1] + lows[1:]) / 2, 1e-300))
        dense = np.log(np.where(use, weights, 1.0) / np.where(use, width, 1.0))
        slopes = np.zeros(len(weights))
        held = np.flatnonzero(use & (lows[:-1] * lows[1:] > 0))
        if len(held) < 2:
            return slopes
        before, behind = np.roll(held, 1), np.roll(held, -1)
        before[0], behind[-1] = held[0], held[-1]
        # Only leaves that touch, a point between them not counted, say how the density goes on.
        before = np.where(held - before <= 2, before, held)
        behind = np.where(behind - held <= 2, behind, held)
        run = middle[behind] - middle[before]
        rise = dense[behind] - dense[before]
        slopes[held] = np.clip(
            np.divide(rise, run, out=np.zeros(len(held)), where=np.abs(run) > 1e-9),
            -STEEPEST,
            STEEPEST,
        )
        return slopes

    def _inside(self, leaf: NDArray[np.intp], inside: Floats) -> NDArray[Any]:
        """The point at a share of each leaf's mass."""
        low, high = self._lows[leaf], self._lows[leaf + 1]
        ends = np.abs(np.stack([low, high]).astype(np.float64))
        power = self._slopes[leaf] + 1.0
        bent = (self._slopes[leaf] != 0.0) & (ends[0] > 0) & (ends[1] > 0)
        ratio = np.divide(ends[1], ends[0], out=np.full(len(leaf), 2.0), where=bent)
        log = np.log(ratio)
        flat = np.abs(power) < 1e-6
        safe = np.where(flat, 1.0, power)
        grown = np.log1p(inside * np.expm1(safe * log)) / safe
        share = np.expm1(np.where(flat, inside * log, grown)) / (ratio - 1.0)
        share = np.clip(np.where(bent, share, inside), 0.0, 1.0)
        if self.discrete:
            steps = np.floor(share * (high - low).astype(np.float64)).astype(np.int64)
            return np.minimum(low + steps, high - 1)
        return np.clip(low + share * (high - low), low, np.nextafter(high, low))

    @cached_property
    def _kinds(self) -> Floats:
        """For each leaf, the sums of the chances that a value is of each kind.

        A kind is as frequent in a leaf as its values there are among those of the decade.
        """
        counts = np.array(self.roundness, np.float64).reshape(-1, self.kinds.classes)
        decades = np.array(self.decades, np.int64)
        lows = self._lows
        row = row_of(lows[:-1], decades)
        among = np.maximum(self.kinds.between(decades), 1)
        chances = counts[row] / among[row] * self.kinds.between(lows)
        chances[np.diff(lows) == 1] = 0.0
        return np.cumsum(chances, axis=1)

    def _rounded(self, leaf: NDArray[np.intp], points: Whole, rng: Rng) -> Whole:
        """The points moved to near values of the leaf that are as round as the column's are."""
        sums = self._kinds[leaf]
        kind = np.sum(sums <= (rng.random(len(leaf)) * sums[:, -1])[:, None], axis=1)
        kind = np.minimum(kind, len(self.steps))
        out, open_ = points.copy(), sums[:, -1] > 0
        for shift in (0, -1, 1, -2, 2):
            to = self.kinds.near(points, kind, shift)
            fits = open_ & (to >= self._lows[leaf]) & (to < self._lows[leaf + 1])
            fits &= self.kinds.of(to) == kind
            out[fits] = to[fits]
            open_ &= ~fits
        return out


def row_of(points: NDArray[Any], decades: NDArray[Any]) -> NDArray[np.intp]:
    """The decade of each point, of the nearest one where it has none."""
    return np.clip(np.searchsorted(decades, points, side="right") - 1, 0, len(decades) - 2)


def _spread(cells: NDArray[np.intp], count: int, rng: Rng) -> Floats:
    """For the rows of each cell, in random order, numbers that fill [0, 1) evenly."""
    order = np.lexsort((rng.random(len(cells)), cells))
    rows = np.bincount(cells, minlength=count)
    begins = np.concatenate([[0], np.cumsum(rows)])[:-1]
    rank = np.empty(len(cells), np.float64)
    rank[order] = np.arange(len(cells)) - begins[cells[order]]
    return (rank + rng.random(count)[cells]) / rows[cells]
