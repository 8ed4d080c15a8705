"""Answers of private training: what a critic's step and a choice among checkpoints release."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Chosen", "CriticGradient"]


@dataclass(frozen=True, slots=True, eq=False)
class CriticGradient:
    """A noisy mean gradient of the critic's loss on the rows, layer after layer, biases last.

    `below` is, for every group of weights that was watched, the noisy share of rows whose gradient was
    not clipped.
    """

    gradient: NDArray[np.float32]
    below: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """Checkpoints that were picked, best first, as far as the noise lets one see."""

    checkpoints: tuple[int, ...]
