"""Mechanisms with a claim, right and wrong, as two samplers: with the canary, and without."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

Draw = Callable[[np.random.Generator, bool, int], np.ndarray]
"""(rng, canary is in, runs) → one score per run; the score is what the auditor reads from an output."""


@dataclass(frozen=True)
class Mechanism:
    """What it claims, and what it does."""

    epsilon: float
    delta: float
    right: Draw
    wrong: Draw


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """The least σ for sensitivity 1 (Balle and Wang 2018)."""

    def spare(sigma: float) -> float:
        a, b = 1 / (2 * sigma), epsilon * sigma
        return special.ndtr(a - b) - math.exp(epsilon) * special.ndtr(-a - b) - delta

    low, high = 1e-3, 1e3
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if spare(middle) <= 0 else (middle, high)
    return high


def noisy_count(sigma: float) -> Draw:
    """A count, one more with the canary, and Gaussian noise."""
    return lambda rng, inside, runs: inside + rng.normal(0, sigma, runs)


def clipped_gradients(sigma: float, per_example: bool, batch: int = 32, clip: float = 1.0) -> Draw:
    """One step of noisy gradients, noise σ·C on the sum of clipped gradients.

    Per example, a canary moves the sum by at most C. If instead the *sum* is clipped to C, one large
    gradient turns it from one end of the ball to the other: 2C.
    """

    def draw(rng: np.random.Generator, inside: bool, runs: int) -> np.ndarray:
        gradients = np.full((runs, batch), -10.0)  # all pull the same way
        canary = np.full(runs, 1e6) if inside else np.zeros(runs)
        if per_example:
            total = np.clip(gradients, -clip, clip).sum(axis=1) + np.clip(canary, -clip, clip)
        else:
            total = np.clip(gradients.sum(axis=1) + canary, -clip, clip)
        return total + rng.normal(0, sigma * clip, runs)

    return draw


def noisy_max(scale: float) -> Draw:
    """Laplace noisy max of two scores that move in opposite directions; the index is the output.

    At scale 2Δ/ε it is ε-DP, at Δ/ε only 2ε-DP.
    """

    def draw(rng: np.random.Generator, inside: bool, runs: int) -> np.ndarray:
        first = (1.0 if inside else 0.0) + rng.laplace(0, scale, runs)
        second = 4.0 + (0.0 if inside else 1.0) + rng.laplace(0, scale, runs)
        return (first > second).astype(float)

    return draw


def grouped_gradients(sigma: float, groups: int, root: bool) -> Draw:
    """One gradient in `groups` blocks, each clipped to c_j and given noise τ_j.

    τ_j = σ·c_j·√l makes the joint multiplier σ; τ_j = σ·c_j makes it σ/√l. The score is the likelihood
    ratio of the blocks.
    """

    def draw(rng: np.random.Generator, inside: bool, runs: int) -> np.ndarray:
        clips = np.arange(1, groups + 1, dtype=float)
        spread = sigma * clips * (math.sqrt(groups) if root else 1.0)
        seen = clips * inside + rng.normal(size=(runs, groups)) * spread
        return (seen * clips / spread**2).sum(axis=1)

    return draw


def _laplace_max(epsilon: float) -> Mechanism:
    return Mechanism(epsilon, 0.0, noisy_max(2 / epsilon), noisy_max(1 / epsilon))


_SIGMA = gaussian_sigma(1.0, 1e-5)

MECHANISMS = {
    "half of sigma": Mechanism(1.0, 1e-5, noisy_count(_SIGMA), noisy_count(_SIGMA / 2)),
    "clipping of the batch": Mechanism(
        1.0, 1e-5, clipped_gradients(_SIGMA, True), clipped_gradients(_SIGMA, False)
    ),
    "noisy max at half the scale": _laplace_max(1.0),
    "groups without their root": Mechanism(
        1.0, 1e-5, grouped_gradients(_SIGMA, 5, True), grouped_gradients(_SIGMA, 5, False)
    ),
}
