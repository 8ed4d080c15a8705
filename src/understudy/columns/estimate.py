"""From the released levels of a ladder to the shape of its column: post-processing."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.columns.ladder import Measured, Scale
from understudy.columns.shape import Shape

__all__ = ["learned"]


def learned(
    scale: Scale,
    history: Sequence[Measured],
    roundness: Measured | None,
    rows: float,
    cuts: Sequence[Any] = (),
) -> Shape:
    """The shape that released counts tell.

    `roundness` has the counts of the codes of `rounds(scale)`, `rows` is a public or released number
    of rows, and `cuts` are public values at which a cell of the shape must begin.
    """
    levels = [
        (np.array([scale.point(edge) for edge in level.edges]), np.asarray(level.counts, float))
        for level in history
    ]
    edges = levels[-1][0]
    mass = np.maximum(_consistent(levels, [level.sigma for level in history]), 0.0)
    if not mass.any():
        mass = np.ones(len(mass))
    bins = _bins(edges, mass, history[0].sigma, rows)
    at = {scale.point(cut) for cut in cuts}
    starts = sorted({0, *bins, *(int(np.searchsorted(edges, p)) for p in at if p in edges[:-1])})
    own = [scale.own(edges[i]) for i in starts]
    weights = np.rint(mass / mass.max() * 1e6).astype(int)
    return Shape(
        (*own, scale.own(scale.high)),
        tuple(edges.tolist()),
        tuple(starts),
        tuple(weights.tolist()),
    )


def _consistent(levels: Sequence[Any], sigmas: Sequence[float]) -> NDArray[np.float64]:
    """Counts of the last level's cells, scaled to those of the levels above."""
    (edges, counts), sigma = levels[-1], sigmas[-1]
    estimate, variance = counts, np.full(len(counts), sigma**2)
    for (above, own), deviation in zip(levels[-2::-1], sigmas[-2::-1], strict=True):
        place = np.searchsorted(edges, above[:-1])
        sums, spread = np.add.reduceat(estimate, place), np.add.reduceat(variance, place)
        weight = spread / (spread + deviation**2)
        gain = np.repeat(weight * (own - sums) / spread, np.diff([*place, len(estimate)]))
        estimate = estimate + gain * variance
        variance = (
            variance - np.repeat(weight / spread, np.diff([*place, len(variance)])) * variance**2
        )
    return estimate


def _bins(edges: NDArray[Any], mass: NDArray[np.float64], sigma: float, rows: float) -> list[int]:
    count = int(np.clip(0.6 * sqrt(max(rows, 1.0) / sigma), 6, 32))
    reached = np.concatenate([[0.0], np.cumsum(mass)]) / mass.sum()
    wanted = np.arange(1, count) / count
    found = sorted({int(np.argmin(np.abs(reached - share))) for share in wanted})
    return [at for at in found if 0 < at < len(edges) - 2]
