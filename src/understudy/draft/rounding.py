"""Round bounds and cuts around what was seen: how a draft keeps the extremes to itself."""

from datetime import date, timedelta
from fractions import Fraction
from math import ceil, floor, log10

import numpy as np
from numpy.typing import NDArray

__all__ = ["amount_edges", "calendar_edges", "fewest_decimals", "nice_bounds"]


def _step(size: Fraction) -> Fraction:
    """The smallest of 1, 2, 5 times a power of ten that is at least `size`."""
    power = Fraction(10) ** floor(log10(size))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= size)


def nice_bounds(low: float, high: float) -> tuple[Fraction, Fraction]:
    """Round bounds that enclose low..high, with low < high."""
    least, most = Fraction(repr(float(low))), Fraction(repr(float(high)))
    step = _step((most - least) / 20)
    return floor(least / step) * step, ceil(most / step) * step


def amount_edges(
    values: NDArray[np.float64], counts: NDArray[np.integer], grid: Fraction | None
) -> list[Fraction] | None:
    """Cuts for amounts, or None where even bins do: zero apart if frequent, finer where rows are.

    `values` are distinct and sorted; the cuts enclose them and are multiples of `grid`.
    """
    low, high = values[0], values[-1]
    if low < 0 or len(values) < 3:
        return None
    zeros = int(counts[0]) if low == 0 else 0
    spiked = zeros * 5 >= int(counts.sum())
    positive, weights = values[values > 0], counts[values > 0]
    least = float(positive[0])
    middle = float(positive[np.searchsorted(np.cumsum(weights), weights.sum() / 2)])
    skewed = middle - least < (high - least) / 10
    if not (spiked or skewed):
        return None
    start = nice_bounds(least, high)[0] if least > high / 10 else _decade(least)
    if skewed:
        cuts = _ladder(max(start, _decade(middle) / 100), Fraction(repr(float(high))))
    else:
        lower, upper = nice_bounds(least, high)
        step = _step((upper - lower) / 20)
        cuts = [step * i for i in range(floor(lower / step), ceil(upper / step) + 1)]
    if spiked:
        cuts.append(grid or min(_decade(least), Fraction(1, 100)))
    if low == 0 or not cuts or cuts[0] > Fraction(repr(float(low))):
        cuts.append(Fraction(0))
    if grid is not None:
        cuts = [ceil(cut / grid) * grid for cut in cuts]
    cuts = sorted(set(cuts))
    return cuts if len(cuts) > 2 else None


def _decade(value: float) -> Fraction:
    """The power of ten at or below a positive value."""
    return Fraction(10) ** floor(log10(value))


def _ladder(start: Fraction, end: Fraction) -> list[Fraction]:
    """1, 1.5, 2, 3, 5, 7, 10, ... times a power of ten, from `start` until `end` is covered."""
    cuts, power = [], _decade(float(start))
    while True:
        for factor in (1, Fraction(3, 2), 2, 3, 5, 7):
            cuts.append(power * factor)
            if power * factor >= end:
                return [cut for cut in cuts if cut >= start]
        power *= 10


def fewest_decimals(values: NDArray[np.float64]) -> int | None:
    """The fewest decimals that write every value, if six are enough."""
    for decimals in range(1, 7):
        with np.errstate(over="ignore"):
            if np.all(np.round(values, decimals) == values):
                return decimals
    return None


def calendar_edges(first: date, last: date) -> tuple[date, ...]:
    """Starts of the days, months, quarters, years or decades in between, then the last day."""
    months = (last.year - first.year) * 12 + last.month - first.month + 1
    step = next(
        s for s in (1, 3, 12, 60, 120, 1200, 12000, 10**6) if months <= 40 * s or s == 10**6
    )
    start = first.year * 12 + (first.month - 1)
    start -= start % step
    end = last.year * 12 + last.month
    end += -end % step
    starts = [date(at // 12, at % 12 + 1, 1) for at in range(max(start, 12), end, step)]
    final = date.max if end // 12 > 9999 else date(end // 12, end % 12 + 1, 1) - timedelta(days=1)
    return (*starts, final)
