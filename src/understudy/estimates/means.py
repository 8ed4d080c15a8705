"""Shares, means, sums, differences, correlations and odds ratios."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy._types import Clique, Floats
from understudy.estimates.frame import Condition, Frame
from understudy.estimates.statistic import Fitted, Statistic, Undefined, Within


def _share(weights: Floats, held: Floats) -> float:
    share = float(weights @ held)
    if share <= 1e-12:
        raise Undefined("no row of the model is in the group")
    return share


@dataclass(frozen=True, eq=False)
class Mean(Within):
    """The mean of a number, or the share of a condition, in a domain."""

    first_order = True

    of: int | Condition

    @property
    def numbers(self) -> tuple[int, ...]:
        """The column, if it is one."""
        return (self.of,) if isinstance(self.of, int) else ()

    @property
    def unit(self) -> str:
        """Per cent of a share."""
        return "" if isinstance(self.of, int) or self.per_row else "%"

    @property
    def counted(self) -> tuple[Condition, ...]:
        """The condition, if it is one."""
        return () if isinstance(self.of, int) else (self.of,)

    def limits(self, frame: Frame) -> tuple[float, float]:
        """Of the numbers of the column, or of a share."""
        if isinstance(self.of, int):
            points = frame.numbers[self.of].points
            return float(points.min()), float(points.max())
        return 0.0, 1.0

    @property
    def linear(self) -> bool:
        """A share of all rows."""
        return not isinstance(self.of, int) and not self.domain.columns

    def _parts(self, frame: Frame) -> tuple[Floats, Floats]:
        """(values, how much of every point counts)."""
        held = self.domain.share(frame)
        if isinstance(self.of, int):
            return frame.number(self.of), held * frame.there(self.of)
        return frame.share(self.of), held

    def fit(self, frame: Frame, weights: Floats) -> Fitted:
        """Σ w·D·v / Σ w·D, with influence D·(v − mean)/share."""
        values, held = self._parts(frame)
        share = _share(weights, held)
        mean = float(weights @ (held * values)) / share
        if bool(np.all(held == 1)):
            return Fitted(np.array([mean]), lambda at: self._parts(at)[0][:, None] - mean)

        def influence(at: Frame) -> Floats:
            values, held = self._parts(at)
            return np.stack([held * (values - mean) / share, held - share], axis=1)

        return Fitted(np.array([mean]), influence, np.array([share]), ((0,),))


@dataclass(frozen=True, eq=False)
class Total(Mean):
    """The sum of a number, or the count of a condition, over a domain."""

    per_row = True

    def limits(self, frame: Frame) -> tuple[float, float]:
        """For one row: none is nothing, all is the limit of a mean."""
        low, high = super().limits(frame)
        return min(low, 0.0), max(high, 0.0)

    @property
    def linear(self) -> bool:
        """Always."""
        return True

    def fit(self, frame: Frame, weights: Floats) -> Fitted:
        """Σ w·D·v: for one row."""
        values, held = self._parts(frame)
        mean = float(weights @ (held * values))

        def influence(at: Frame) -> Floats:
            values, held = self._parts(at)
            return (held * values - mean)[:, None]

        return Fitted(np.array([mean]), influence)


@dataclass(frozen=True, eq=False)
class Difference(Statistic):
    """One mean or share less another."""

    first_order = True

    first: Mean
    second: Mean

    @property
    def unit(self) -> str:
        """Percentage points of two shares."""
        return "points" if self.first.unit else ""

    @property
    def columns(self) -> Clique:
        """Of both."""
        return tuple(sorted({*self.first.columns, *self.second.columns}))

    @property
    def numbers(self) -> tuple[int, ...]:
        """Of both."""
        return tuple(sorted({*self.first.numbers, *self.second.numbers}))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Of both."""
        return tuple(dict.fromkeys((*self.first.conditions, *self.second.conditions)))

    def limits(self, frame: Frame) -> tuple[float, float]:
        """As far as the limits of both are apart."""
        low, high = self.first.limits(frame)
        return low - high, high - low

    def fit(self, frame: Frame, weights: Floats) -> Fitted:
        """Both, and their influences subtracted."""
        one, other = self.first.fit(frame, weights), self.second.fit(frame, weights)

        def influence(at: Frame) -> Floats:
            first, second = one.influence(at), other.influence(at)
            return np.concatenate([first[:, :1] - second[:, :1], first[:, 1:], second[:, 1:]], 1)

        shares = np.concatenate([one.shares, other.shares])
        return Fitted(one.values - other.values, influence, shares, (tuple(range(len(shares))),))


@dataclass(frozen=True, eq=False)
class Correlation(Within):
    """Pearson's correlation of two numbers, over the rows that have both."""

    pair: tuple[int, int]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Both."""
        return self.pair

    def limits(self, frame: Frame) -> tuple[float, float]:
        """−1 to 1."""
        return -1.0, 1.0

    def fit(self, frame: Frame, weights: Floats) -> Fitted:
        """Covariance of cell means over deviations that have the variance inside cells in them.

        Values that are related inside cells as cells are to each other would have ρ/√((1−κ)(1−κ')), κ
        the shares of variance inside cells; the way there is `hidden`.
        """
        i, j = self.pair
        held = self.domain.share(frame) * frame.there(i) * frame.there(j)
        share = _share(weights, held)
        inside = weights * held / share
        means = [float(inside @ frame.number(k)) for k in self.pair]
        within = [float(inside @ frame.variance(k)) for k in self.pair]
        total = [
            float(inside @ (frame.number(k) - mean) ** 2) + own
            for k, mean, own in zip(self.pair, means, within, strict=True)
        ]
        if min(total) <= 0:
            raise Undefined("a column has one value only")
        sd = np.sqrt(total)
        x, y = ((frame.number(k) - m) / s for k, m, s in zip(self.pair, means, sd, strict=True))
        rho = float(inside @ (x * y))

        def influence(at: Frame) -> Floats:
            held = self.domain.share(at) * at.there(i) * at.there(j)
            x, y = ((at.number(k) - m) / s for k, m, s in zip(self.pair, means, sd, strict=True))
            squares = x**2 + at.variance(i) / total[0] + y**2 + at.variance(j) / total[1]
            own = held * (x * y - rho * squares / 2) / share
            return np.stack([own, held - share], axis=1)

        kept = np.prod([1 - min(0.99, w / t) for w, t in zip(within, total, strict=True)])
        hidden = np.array([abs(rho) * (float(kept) ** -0.5 - 1)])
        return Fitted(np.array([rho]), influence, np.array([share]), ((0,),), hidden)


@dataclass(frozen=True, eq=False)
class Odds(Within):
    """The odds ratio of two conditions; fitted as its logarithm, which follows from four shares."""

    follows = True

    pair: tuple[Condition, Condition]

    @property
    def counted(self) -> tuple[Condition, ...]:
        """Both."""
        return self.pair

    @property
    def divisor(self) -> str:
        """Of the four."""
        return "the share of one of the four cells"

    def _cells(self, frame: Frame) -> Floats:
        a, b = (frame.share(each) for each in self.pair)
        held = self.domain.share(frame)
        with_a, without = held * a, held * (1 - a)
        return np.stack([with_a * b, with_a * (1 - b), without * b, without * (1 - b)], axis=1)

    def fit(self, frame: Frame, weights: Floats) -> Fitted:
        """log p11·p00/(p10·p01), with influence Σ ± (cell/p − 1)."""
        shares = weights @ self._cells(frame)
        if shares.min() <= 1e-12:
            raise Undefined("one of the four cells is empty in the model")
        signs = np.array([1.0, -1.0, -1.0, 1.0])

        def influence(at: Frame) -> Floats:
            cells = self._cells(at)
            own = (cells / shares) @ signs
            return np.concatenate([own[:, None], cells - shares], axis=1)

        log = np.array([signs @ np.log(shares)])
        return Fitted(log, influence, shares, ((0, 1, 2, 3),))

    def shown(self, values: Floats) -> Floats:
        """Odds ratios; beyond all numbers where nothing is known."""
        return np.exp(np.minimum(values, 700.0))
