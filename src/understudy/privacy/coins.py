"""Coins whose probability depends on private counts: rejection sampling, paid for.

A coin of a query with score s (in rows; a neighbour moves it by 1) comes up with probability

    p = exp(−γ − (n − s)₊/B) ≤ e^{−γ}.

Its log-odds move by at most 1/(B·(1 − e^{−γ})): d logit(p)/d ln p = 1/(1−p). The log-ratio of the two
outcomes between neighbours has exactly that range, so the coin is a selection between two candidates,
and is drawn and charged as one: the larger of the integers +h and −h under Gumbel(b) noise, 2h the
log-odds in units of b. Each of the two moves by `UNIT` at b = `coin_scale`, and by one more because
h is rounded: `Selection(coin_scale(B, γ), SCORE_SENSITIVITY)` covers it. Bounded range gives

    ρ = 1/(8·B²·(1 − e^{−γ})²) a coin,

a quarter of 1/(2γ²B²), the square of the pure ε = 1/(γB) over two, where γ is small.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from understudy.privacy.buckets import UNIT

__all__ = ["coin_scale", "covered", "halves"]


def coin_scale(scale: float, gamma: float) -> float:
    """The Gumbel scale at which each of a coin's two integers moves by `UNIT`."""
    return 2.0 * UNIT * scale * -math.expm1(-gamma)


def covered(sensitivity: int, drawn: float, scale: float, gamma: float) -> bool:
    """Whether a coin's integers, made for noise of scale `drawn`, move by at most `sensitivity`."""
    return UNIT * (drawn / coin_scale(scale, gamma)) * (1 + 1e-9) + 2 <= sensitivity


def halves(
    scores: NDArray[np.int64], rows: int, scale: float, gamma: float, drawn: float
) -> NDArray[np.float64]:
    """h of every coin, rounded; `scores` in units of 1/`UNIT` row."""
    minus_log = gamma + np.maximum(UNIT * rows - scores, 0) / (UNIT * scale)
    logit = -(minus_log + np.log(-np.expm1(-minus_log)))
    return np.rint(drawn * logit / 2)
