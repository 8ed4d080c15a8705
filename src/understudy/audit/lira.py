"""The likelihood-ratio attack (Carlini et al. 2022): normal laws of a score with and without a row.

`scores` and `inside` are arrays of runs × rows: the score of every row under every shadow model, and
whether the row was in its training set.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from understudy.errors import InputError

__all__ = ["offline", "online"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_POOL_BELOW = 64
"""Fewer shadows than this on a side give no variance of their own: rows share one."""
_LEAST = 1e-12


def online(target: Floats, scores: Floats, inside: Bools) -> Floats:
    """ln N(φ; μ_in, s_in²) − ln N(φ; μ_out, s_out²) for every row of a target model, or of several.

    Rows that were always in, or never, have no law to compare with and get 0.
    """
    _check(target, scores, inside)
    mean_in, spread_in = _law(scores, inside)
    mean_out, spread_out = _law(scores, ~inside)
    found = _log_normal(target, mean_in, spread_in) - _log_normal(target, mean_out, spread_out)
    return np.where(np.isfinite(found), found, 0.0)


def offline(target: Floats, scores: Floats, inside: Bools) -> Floats:
    """Φ((φ − μ_out)/s_out): how unusual the score is for a model that never saw the row."""
    _check(target, scores, inside)
    mean, spread = _law(scores, ~inside)
    found = special.ndtr((target - mean) / np.sqrt(spread))
    return np.where(np.isfinite(found), found, 0.5)


def _law(scores: Floats, chosen: Bools) -> tuple[Floats, Floats]:
    """Mean and variance of every row over the chosen runs; NaN where there is none."""
    count = chosen.sum(axis=0).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(chosen, scores, 0.0).sum(axis=0) / count
        squares = np.where(chosen, (scores - mean) ** 2, 0.0).sum(axis=0)
        own = squares / (count - 1)
    if count.min(initial=np.inf) < _POOL_BELOW:
        several = count > 1
        freedom = float((count[several] - 1).sum())
        pooled = float(squares[several].sum()) / freedom if freedom else np.nan
        own = np.full_like(mean, pooled)
    return mean, np.maximum(own, _LEAST)


def _log_normal(x: Floats, mean: Floats, variance: Floats) -> Floats:
    return -0.5 * (np.log(variance) + (x - mean) ** 2 / variance)


def _check(target: Floats, scores: Floats, inside: Bools) -> None:
    if scores.shape != inside.shape or target.shape[-1] != scores.shape[1]:
        raise InputError(
            f"shadow scores {scores.shape}, memberships {inside.shape} and target {target.shape} "
            f"must be runs × rows with the same rows"
        )
    if inside.all() or not inside.any():
        raise InputError("every shadow run has all rows or none; LiRA needs rows in half of them")
