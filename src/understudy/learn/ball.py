"""The L1 ball: Euclidean projection."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["project"]

Reals = NDArray[np.float64]


def project(weights: Reals, radius: float) -> Reals:
    """The point of {‖w‖₁ ≤ radius} nearest to `weights` (Duchi et al. 2008).

    Soft thresholding at the θ ≥ 0 for which the L1 norm is the radius.
    """
    sizes = np.abs(weights).reshape(-1)
    if sizes.sum() <= radius:
        return weights
    falling = np.sort(sizes)[::-1]
    excess = np.cumsum(falling) - radius
    last = np.flatnonzero(falling * np.arange(1, falling.size + 1) > excess)[-1]
    threshold = excess[last] / (last + 1)
    return np.sign(weights) * np.maximum(np.abs(weights) - threshold, 0.0)
