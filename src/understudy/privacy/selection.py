"""The law of private selection, for tests, audits and forecasts.

`Noise.top_k` adds Gumbel(scale) once to every integer score and returns the k largest in order.
Its law is that of peeling: P(r₁, …, r_k) = Π_j softmax over what is left at r_j of scores/scale.
With sensitivity Δ per score, each pick is the exponential mechanism at ε0 = 2Δ/scale.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["log_law", "log_law_top_k"]


def log_law(scores: ArrayLike, scale: float) -> NDArray[np.float64]:
    """log P(index) of one pick: log softmax(scores/scale)."""
    logits = np.asarray(scores, dtype=np.float64).reshape(-1) / scale
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())


def log_law_top_k(scores: ArrayLike, scale: float, k: int) -> dict[tuple[int, ...], float]:
    """log P of every ordered k-tuple. Enumerates: for small candidate sets only."""
    values = np.asarray(scores, dtype=np.float64).reshape(-1)
    law: dict[tuple[int, ...], float] = {}
    for picks in permutations(range(values.size), k):
        left = list(range(values.size))
        log_p = 0.0
        for pick in picks:
            log_p += float(log_law(values[left], scale)[left.index(pick)])
            left.remove(pick)
        law[picks] = log_p
    return law
