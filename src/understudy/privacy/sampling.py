"""Poisson samples of rows, and splits of them, by coins as secret as the noise."""

from __future__ import annotations

from ssl import RAND_bytes

import numpy as np
from numpy.typing import NDArray

from understudy.privacy.noise import Noise

__all__ = ["poisson"]

_WORDS = 2**32


def poisson(noise: Noise, rows: int, rate: float) -> NDArray[np.int64]:
    """The rows of a Poisson sample, each taken by itself with probability `rate` exactly.

    Which rows were taken is as secret as the noise, and comes from the same kind of source.
    """
    below = int(rate * _WORDS)
    if below == _WORDS:
        return np.arange(rows)
    if noise.private:
        words = np.frombuffer(RAND_bytes(4 * rows), np.uint32)
    else:
        words = np.array([noise.below(_WORDS) for _ in range(rows)], np.uint32)
    return np.flatnonzero(words < below)
