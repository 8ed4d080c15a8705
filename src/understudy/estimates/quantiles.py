"""Quantiles, the Gini coefficient, and any function of weighted records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique
from understudy.errors import WorkloadError
from understudy.estimates.frame import Condition, Frame
from understudy.estimates.means import Domain
from understudy.estimates.statistic import Fitted, Statistic, Undefined

__all__ = ["Custom", "Gini", "Quantile"]

MOST_POINTS = 4_096
"""Cells that a function of one's own is differentiated at."""
_STEP = 1e-4

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _OfNumber(Statistic):
    """A statistic of one number in a domain."""

    domain: Domain
    of: int

    @property
    def columns(self) -> Clique:
        """Of the domain and the number."""
        return tuple(sorted(self.domain.columns | {self.of}))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The number."""
        return (self.of,)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """That of the domain."""
        return self.domain.conditions

    def _held(self, frame: Frame) -> Floats:
        return self.domain.share(frame) * frame.there(self.of)

    def _distribution(self, frame: Frame, weights: Floats) -> tuple[Floats, Floats, float]:
        """(values, increasing; their weights, which sum to one; the share of rows in the domain)."""
        counted = weights * self._held(frame)
        share = float(counted.sum())
        if share <= 1e-12:
            raise Undefined("no row of the model is in the group")
        points = frame.numbers[self.of].points
        codes = np.minimum(frame.codes(self.of), len(points) - 1)
        cells = np.bincount(codes, counted, len(points)) / share
        each = np.repeat(cells / points.shape[1], points.shape[1])
        order = np.argsort(points, axis=None, kind="stable")
        return points.reshape(-1)[order], each[order], share


@dataclass(frozen=True, eq=False)
class Quantile(_OfNumber):
    """The least value that at least a share `at` of the rows do not exceed.

    It is fitted as the share of rows up to the present quantile, which the tables correct; the interval
    is that of this share, inverted (Woodruff 1952), and needs no density.
    """

    at: float

    def limits(self, frame: Frame) -> tuple[float, float]:
        """Of a share."""
        return 0.0, 1.0

    @property
    def jumps(self) -> bool:
        """From one value to the next."""
        return True

    def fit(self, frame: Frame, weights: Floats) -> Fitted:
        """The share at or below the quantile less `at`, for one row of the domain."""
        values, each, share = self._distribution(frame, weights)
        point = _quantile(values, each, self.at)
        reached = float(each[values <= point].sum())

        def influence(at: Frame) -> Floats:
            held = self._held(at)
            own = held * (at.below(self.of, point) - reached) / share
            return np.stack([own, held - share], axis=1)

        return Fitted(np.array([self.at]), influence, np.array([share]), ((0,),))

    def interval(
        self, frame: Frame, weights: Floats, value: float, half: float
    ) -> tuple[float, float, float]:
        """The quantiles at the ends of the interval of the share."""
        values, each, _ = self._distribution(frame, weights)
        ends = (value, value - half, value + half)
        told = [_quantile(values, each, float(np.clip(end, 0.0, 1.0))) for end in ends]
        return told[0], told[1], told[2]


def _quantile(values: Floats, weights: Floats, at: float) -> float:
    reached = np.cumsum(weights)
    return float(values[min(np.searchsorted(reached, at - 1e-12), len(values) - 1)])


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

        return Fitted(np.array([far / (2 * mean)]), influence, np.array([share]), ((0,),))


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
