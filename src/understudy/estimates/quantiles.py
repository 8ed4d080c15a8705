"""Quantiles, the Gini coefficient, and any function of weighted records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Floats
from understudy.errors import WorkloadError
from understudy.estimates.frame import Frame
from understudy.estimates.inner import MEAN_OF_POINTS
from understudy.estimates.statistic import Fitted, Interval, Measured, Statistic, Undefined, Within

MOST_POINTS = 4_096
"""Cells that a function of one's own is differentiated at."""
_STEP = 1e-4


@dataclass(frozen=True, eq=False)
class _OfNumber(Within):
    """A statistic of one number in a domain."""

    of: int

    @property
    def numbers(self) -> tuple[int, ...]:
        """The number."""
        return (self.of,)

    def _held(self, frame: Frame) -> Floats:
        return self.domain.share(frame) * frame.there(self.of)

    def _cells(self, frame: Frame, weights: Floats) -> Floats:
        """The weight of the domain in every cell."""
        size = len(frame.numbers[self.of])
        codes = np.minimum(frame.codes(self.of), size - 1)  # those without a number have no weight
        return np.bincount(codes, weights * self._held(frame), size).astype(np.float64)

    def _distribution(self, frame: Frame, weights: Floats) -> tuple[Floats, Floats, float]:
        """(values, increasing; their weights, which sum to one; the share of rows in the domain)."""
        cells = self._cells(frame, weights)
        share = float(cells.sum())
        if share <= 1e-12:
            raise Undefined("no row of the model is in the group")
        points = frame.numbers[self.of].points
        each = np.repeat(cells / share / points.shape[1], points.shape[1])
        order = np.argsort(points, axis=None, kind="stable")
        return points.reshape(-1)[order], each[order], share


@dataclass(frozen=True, eq=False)
class Quantile(_OfNumber):
    """The least value that at least a share `at` of the rows do not exceed.

    For every cell, E[D·(1{x up to its end} − at)] is fitted, which is linear in the shares. A value is
    in the interval if neither these at it nor just before it rule it out (Woodruff 1952): no density is
    needed. Inside a cell they are interpolated, which is wrong by what the cell may hide.
    """

    first_order = True
    ranks = True

    at: float

    @property
    def linear(self) -> bool:
        """All that is fitted is."""
        return True

    def _gaps(self, frame: Frame) -> Floats:
        """D·(1{up to the end of a cell} − at), a column for each cell: where cells end is known."""
        codes = frame.codes(self.of)[:, None]
        held = self._held(frame)[:, None]
        return held * ((codes <= np.arange(len(frame.numbers[self.of]))) - self.at)

    def fit(self, frame: Frame, weights: Floats) -> Fitted:
        """One number for each cell, in the order of the cells, which is that of numbers."""
        means = weights @ self._gaps(frame)
        held = self._held(frame)
        share = float(weights @ held)
        if share <= 1e-12:
            raise Undefined("no row of the model is in the group")

        def influence(at: Frame) -> Floats:
            return np.concatenate([self._gaps(at) - means, self._held(at)[:, None] - share], axis=1)

        return Fitted(means, influence, np.array([share]), ((0,),) * len(means))

    def combined(self, frame: Frame, measured: Sequence[Measured]) -> Sequence[Measured | Interval]:
        """The values that are not ruled out."""
        held = frame.numbers[self.of]
        cells, many = held.points.shape
        inside = np.arange(1, many + 1) / many
        ends = np.array([m.value for m in measured])
        # Averaged with what the order of cells makes of it, which is nowhere farther from the truth
        # than the worst error was.
        ends = (np.maximum.accumulate(ends) + np.minimum.accumulate(ends[::-1])[::-1]) / 2
        halves = np.array([m.half for m in measured])
        # Up to the last cell all rows of the domain count: 1 − at of them, up to noise.
        share = max(float(ends[-1]), 0.0) / (1 - self.at)
        begins = np.append(-self.at * share, ends[:-1])
        before = np.append(halves[0], halves[:-1])
        reached = (begins[:, None] + inside * (ends - begins)[:, None]).reshape(-1)
        sure = (before[:, None] + inside * (halves - before)[:, None]).reshape(-1)
        wrong = np.abs(ends - begins) * frame.steep[self.of][:cells] + 8 * held.relative
        hidden = (wrong[:, None] * inside * (1 - inside)).reshape(-1)
        half, values = sure + hidden, held.points.reshape(-1)
        last = len(values) - 1
        low = int(np.argmax(reached + half >= 0)) if np.any(reached + half >= 0) else last
        below = np.flatnonzero(reached - half < 0)
        high = min(int(below[-1]) + 1, last) if below.size else 0
        middle = int(np.searchsorted(reached, 0.0))
        middle = min(max(min(middle, last), low), high)
        cell = middle // many
        why = measured[cell].why
        if low <= many // 2 and high >= last - many // 2:
            why = why or "every value that is possible lies in the interval"
        # In shares of the domain: the parts of a quantile itself need a density.
        parts, own = measured[cell].parts, float(hidden[middle])
        parts = replace(parts, inside=parts.inside + own).times(1 / max(share, 1e-12))
        told = float(values[middle]), float(values[low]), float(values[high])
        return [Interval(*told, parts, max(m.reliance for m in measured), why)]


@dataclass(frozen=True, eq=False)
class Gini(_OfNumber):
    """The Gini coefficient E|X − X'|/(2·E X) of a number that is nowhere negative."""

    def limits(self, frame: Frame) -> tuple[float, float]:
        """Of a number that is not negative."""
        return 0.0, 1.0

    def fit(self, frame: Frame, weights: Floats) -> Fitted:
        """With influence (E|x − X| − D)/μ − D·(x − μ)/(2μ²), D = E|X − X'|."""
        values, each, share = self._distribution(frame, weights)
        if values[0] < 0:
            raise Undefined(
                "the column has negative values, for which there is no Gini coefficient"
            )
        mean = float(each @ values)
        if mean <= 0:
            raise Undefined("the mean is zero")
        below, under = np.cumsum(each), np.cumsum(each * values)

        def distance(x: Floats) -> Floats:
            """E|x − X|."""
            at = np.searchsorted(values, x, side="right") - 1
            mass, part = (np.where(at < 0, 0.0, s[at]) for s in (below, under))
            return 2 * (x * mass - part) + mean - x

        far = float(each @ distance(values))

        def influence(at: Frame) -> Floats:
            held, points = self._held(at), at.numbers[self.of].points
            x = at.number(self.of)
            # Inside a cell the distance is averaged over its points, moved as the frame is.
            moved = (
                x
                - np.append(at.numbers[self.of].mean, 0.0)[
                    np.minimum(at.codes(self.of), len(points))
                ]
            )
            spread = np.append(distance(points.reshape(-1)).reshape(points.shape).mean(axis=1), 0.0)
            apart = spread[np.minimum(at.codes(self.of), len(points))]
            if np.any(moved):
                apart = apart + distance(x) - distance(x - moved)
            own = (apart - far) / mean - far * (x - mean) / (2 * mean**2)
            return np.stack([held * own / share, held - share], axis=1)

        # Of values that stand at one place inside a cell none is far from another.
        held, off = (
            frame.numbers[self.of],
            np.minimum(frame.steep[self.of] * MEAN_OF_POINTS / 4, 1.0),
        )
        cells = self._cells(frame, weights) / share
        rank = (2 * np.arange(held.points.shape[1]) + 1) / held.points.shape[1] - 1
        apart = 2 * (held.points @ rank) / held.points.shape[1]
        hidden = np.array([float(cells**2 @ (apart * off[: len(held)])) / (2 * mean)])
        return Fitted(np.array([far / (2 * mean)]), influence, np.array([share]), ((0,),), hidden)


@dataclass(frozen=True, eq=False)
class Custom(Statistic):
    """A function of weighted records: `function(frame, weights)` gives a number.

    The frame maps names to arrays, one entry for each distinct cell: numbers where the column has them
    (the mean of the cell; NaN where there is none), labels otherwise. The weights sum to one. The
    influence function is differentiated numerically, so the function is called once for each cell.
    """

    function: Callable[[Mapping[str, NDArray[Any]], Floats], float]
    of: tuple[int, ...]
    named: tuple[str, ...]
    numeric: tuple[int, ...]
    labels: tuple[tuple[str, ...], ...]

    @property
    def columns(self) -> Clique:
        """As given, sorted."""
        return tuple(sorted(self.of))

    @property
    def numbers(self) -> tuple[int, ...]:
        """Those that hold numbers."""
        return self.numeric

    def _frame(self, frame: Frame) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {}
        for column, name, labels in zip(self.of, self.named, self.labels, strict=True):
            if column in self.numeric:
                found[name] = np.where(frame.there(column), frame.number(column), np.nan)
            else:
                found[name] = np.array(labels)[frame.codes(column)]
        return found

    def fit(self, frame: Frame, weights: Floats) -> Fitted:
        """The function's value; its influence by (T((1 − h)w + hδ) − T(w))/h, h = 1e-4."""
        if len(frame) > MOST_POINTS:
            raise WorkloadError(
                f"{', '.join(self.named)} have {len(frame):,} cells together, and a function of one's "
                f"own is differentiated at {MOST_POINTS:,} at most; name fewer columns"
            )
        base = self._frame(frame)
        value = self._value(base, weights)

        def influence(at: Frame) -> Floats:
            shown = self._frame(at)
            found = np.empty(len(at))
            for k in range(len(at)):
                more = {name: np.append(base[name], shown[name][k]) for name in base}
                moved = np.append((1 - _STEP) * weights, _STEP)
                found[k] = (self._value(more, moved) - value) / _STEP
            return found[:, None]

        return Fitted(np.array([value]), influence)

    def _value(self, frame: Mapping[str, NDArray[Any]], weights: Floats) -> float:
        value = float(self.function(frame, weights))
        if not np.isfinite(value):
            raise Undefined(f"the function gave {value}")
        return value
