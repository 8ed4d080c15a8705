"""Piecewise constant fits to noisy counts: the least squares with a price on every step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["fitted"]

Floats = NDArray[np.float64]


def fitted(
    counts: Floats,
    sigma: Floats,
    width: Floats,
    enter: float,
    step: float,
    inside: bool,
    faint: float,
) -> Floats:
    """Counts of neighbouring cells, at least zero, one fit for every row of the arrays.

    Segments are empty or have one density. The sum of squared errors in units of `sigma`, plus
    `enter` for each segment that follows an empty one and `step` for each that follows another, is
    the least possible (dynamic programming). `inside`: to begin with a segment costs nothing, and an
    empty one costs `step` too. A segment with less than `faint` deviations in it is empty. Inside a
    segment counts are then shrunk towards its density (James-Stein). Cells of infinite `sigma` and
    width 0 fill up short rows.
    """
    rows, cells = counts.shape
    precision = sigma**-2.0
    squares = _sums(counts**2 * precision)
    products = _sums(counts * width * precision)
    widths = _sums(width**2 * precision)
    held = np.full((rows, cells + 1), np.inf)  # the least cost so far, the last segment holding
    empty = np.full((rows, cells + 1), np.inf)  # or empty
    held[:, 0] = -step if inside else np.inf
    leave = step if inside else 0.0
    empty[:, 0] = leave
    begins = np.zeros((rows, cells + 1), np.intp)
    after = np.zeros((rows, cells + 1), np.bool_)  # the empty cell before follows another empty one
    for end in range(1, cells + 1):
        product = np.maximum(products[:, end, None] - products[:, :end], 0.0)
        whole = np.maximum(widths[:, end, None] - widths[:, :end], 1e-300)
        rest = squares[:, end, None] - squares[:, :end] - product**2 / whole
        cost = np.minimum(held[:, :end] + step, empty[:, :end] + enter) + rest
        begins[:, end] = np.argmin(cost, axis=1)
        held[:, end] = np.take_along_axis(cost, begins[:, end, None], axis=1)[:, 0]
        alone = squares[:, end] - squares[:, end - 1]
        left = np.inf if end == 1 else held[:, end - 1] + leave
        after[:, end] = empty[:, end - 1] <= left
        empty[:, end] = np.minimum(empty[:, end - 1], left) + alone
    out = np.zeros_like(counts)
    for row in range(rows):
        end, holds = cells, held[row, cells] <= empty[row, cells]
        while end > 0:
            if not holds:
                holds, end = not after[row, end], end - 1
                continue
            begin = int(begins[row, end])
            out[row, begin:end] = _shrunk(
                counts[row, begin:end], precision[row, begin:end], width[row, begin:end], faint
            )
            holds, end = held[row, begin] + step < empty[row, begin] + enter, begin
    return out


def _shrunk(counts: Floats, precision: Floats, width: Floats, faint: float) -> Floats:
    """The counts of a segment, drawn towards its density as far as they differ by noise."""
    total = float(np.sum(width**2 * precision))
    if total <= 0:
        return np.zeros(len(counts))
    product = float(np.sum(counts * width * precision))
    if product < faint * total**0.5:
        return np.zeros(len(counts))
    level = product / total * width
    rest = float(np.sum((counts - level) ** 2 * precision))
    freedom = int(np.count_nonzero(precision)) - 1
    keep = max(0.0, 1.0 - freedom / rest) if rest > 0 else 0.0
    return np.maximum(level + keep * (counts - level), 0.0)


def _sums(values: Floats) -> Floats:
    return np.concatenate([np.zeros((len(values), 1)), np.cumsum(values, axis=1)], axis=1)
