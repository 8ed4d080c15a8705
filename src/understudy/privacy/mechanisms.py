"""How noise meets exact integers. Besides `noise` and the gate, the only place that draws.

A mechanism takes what a question's `exact` gave, the event that was charged and the noise, and returns
what may be released. The event states every scale: none is computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Whole
from understudy.errors import PrivacyError
from understudy.privacy.buckets import Candidates, DataSupport, pick
from understudy.privacy.cost import (
    Discovery,
    Gaussian,
    Laplace,
    SampledGaussian,
    SampledGroups,
    SampledSelection,
    Selection,
)
from understudy.privacy.noise import Noise, rounded

Integers = Whole
Mechanism = Callable[[Any, Any, Noise], Any]


def added(exact: Integers, event: Gaussian | SampledGaussian | Laplace, noise: Noise) -> Integers:
    """exact + Z, discrete Gaussian or Laplace noise on every coordinate."""
    if isinstance(event, Laplace):
        return noise.laplace(exact, event.scale)
    return noise.gaussian(exact, event.sigma)


def top(scores: Integers, event: Selection | SampledSelection | Laplace, noise: Noise) -> Integers:
    """The k largest scores after one draw of Gumbel noise each, in order; or one by Laplace noise.

    Laplace noise (report noisy max): of equals the first. For fixed noise on all others, candidate r is
    picked if its own noise is at least a whole number m, and a neighbour moves m by at most l1 = 2Δ: Δ
    for r, Δ for the others. P(Z ≥ m) and P(Z ≥ m + 1) differ by at most e^{1/scale}, so every answer's
    probability changes by a factor of at most e^{l1/scale}. Pure, without the bounded range of Gumbel
    noise.
    """
    if isinstance(event, Laplace):
        return np.array([noise.laplace(scores, event.scale).argmax()], np.int64)
    k = event.k if isinstance(event, Selection) else 1
    return np.array(noise.top_k(scores, event.scale, k), np.int64)


def independent(scores: Integers, event: Selection, noise: Noise) -> Integers:
    """k independent picks by the exponential mechanism; see `buckets.pick` for its rounding."""
    return np.array(pick(noise, scores, np.ones(scores.size), event.scale, event.k), np.int64)


def bernoulli(half_log_odds: Integers, event: Selection, noise: Noise) -> Whole:
    """1 where +h beats −h under Gumbel noise: a selection between two candidates for every h."""
    return np.array(
        [int(noise.top_k(np.array([h, -h]), event.scale, 1) == (0,)) for h in half_log_odds],
        np.int64,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Buckets:
    """Cells of equal score, in buckets; of the first `offered` the complements are candidates too."""

    occupied: DataSupport
    candidates: Candidates
    offered: int


def sparse(exact: Buckets, event: Selection, noise: Noise) -> Integers:
    """k independent picks over all cells and complements: (marginal, packed cell, side) each.

    A bucket is drawn by its size and score, then a cell of it uniformly: the exponential mechanism
    over all cells (`understudy.privacy.buckets`).
    """
    every, offered = exact.candidates, slice(exact.offered)
    scores = np.concatenate([every.scores, -every.scores[offered]])
    sizes = np.concatenate([every.sizes, every.sizes[offered]])
    cells: list[tuple[int, int, int]] = []
    for bucket in pick(noise, scores, sizes, event.scale, event.k):
        side, at = divmod(bucket, every.scores.size)
        cell = exact.occupied.resolve(every, at, noise)
        cells.append((*exact.occupied.split(cell), 1 - 2 * side))
    return np.array(cells, np.int64).reshape(-1, 3)


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """Values that somebody holds, and how many do."""

    texts: Sequence[str]
    counts: Integers


def found(exact: Held, event: Discovery, noise: Noise) -> list[tuple[str, int]]:
    """(value, noisy count) of those whose noisy count reaches the threshold, the commonest first."""
    if not len(exact.texts):
        return []
    noisy = noise.gaussian(exact.counts, event.sigma)
    pairs = zip(exact.texts, noisy, strict=True)
    shown = [(text, int(n)) for text, n in pairs if n >= event.threshold]
    return sorted(shown, key=lambda each: (-each[1], each[0]))


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """Sums in groups of coordinates: `group` names one multiplier of the event for each."""

    sums: Integers
    group: NDArray[np.integer[Any]]
    unit: int


def noised(exact: Grouped, event: SampledGroups, noise: Noise) -> Integers:
    """Rounded Gaussian noise of every group's own scale, m_j units (`understudy.privacy.noise`)."""
    known = np.isin(exact.group, np.arange(len(event.multipliers)))
    right = exact.sums.dtype == np.int64 and exact.sums.shape == known.shape and known.all()
    if not right or exact.sums.size > event.coordinates:
        raise PrivacyError("a question gave another answer than it declared; nothing was drawn")
    noisy = np.empty(exact.sums.size, np.int64)
    for j, multiplier in enumerate(event.multipliers):
        where = exact.group == j if len(event.multipliers) > 1 else slice(None)
        noisy[where] = rounded(noise, exact.sums[where], exact.unit * multiplier)
    return noisy
