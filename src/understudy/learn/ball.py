"""The L1 ball: projection, also in a metric that weighs coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["project"]

Reals = NDArray[np.float64]


def project(weights: Reals, radius: float, metric: Reals | None = None) -> Reals:
    """argmin Σ d_j·(w_j − weights_j)² over ‖w‖₁ ≤ radius; d = 1 without `metric` (Duchi et al. 2008).

    Soft thresholding at θ/d_j, with the θ ≥ 0 for which the L1 norm is the radius. Steps scaled by 1/d
    need the projection of that metric: in another one they rest at a point that is not the minimum.
    """
    sizes = np.abs(weights).reshape(-1)
    if sizes.sum() <= radius:
        return weights
    ease = np.ones(sizes.size) if metric is None else 1.0 / metric.reshape(-1)
    order = np.argsort(-sizes / ease)
    excess = np.cumsum(sizes[order]) - radius
    thresholds = excess / np.cumsum(ease[order])
    last = np.flatnonzero(sizes[order] / ease[order] > thresholds)[-1]
    left = np.maximum(sizes - thresholds[last] * ease, 0.0)
    return np.sign(weights) * left.reshape(weights.shape)
