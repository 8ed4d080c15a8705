"""Fisher's discriminant between two sets of noisy vectors: the best test if both are normal with one
covariance, which is what Gaussian noise on counts makes of two neighbours.

By hand, since scikit-learn's gives no weight to a feature that never moves within a class: a mechanism
that forgot its noise would look safe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError

__all__ = ["Discriminant", "fit"]

Floats = NDArray[np.float64]

_SHRINK = 0.1
"""Towards the diagonal, so that few runs and equal features do no harm."""


@dataclass(frozen=True, slots=True, eq=False)
class Discriminant:
    """Score w·(x − middle); above 0 the vector is nearer to "with"."""

    weights: Floats
    middle: Floats

    def score(self, vectors: Floats) -> Floats:
        """Larger means more like the vectors with the record."""
        return (vectors - self.middle) @ self.weights


def fit(vectors: Floats, inside: NDArray[np.bool_]) -> Discriminant:
    """Learn from runs with and without the record; at least two of each."""
    with_, without = vectors[inside], vectors[~inside]
    if min(len(with_), len(without)) < 2:
        raise InputError(
            f"a shadow attack needs at least 2 runs with the record and 2 without to learn from; "
            f"there are {len(with_)} and {len(without)}: give more runs"
        )
    apart = with_.mean(axis=0) - without.mean(axis=0)
    centred = np.vstack([with_ - with_.mean(axis=0), without - without.mean(axis=0)])
    shared = centred.T @ centred / (len(vectors) - 2)
    scale = np.diag(shared)
    floor = np.maximum(scale, max(1e-12, 1e-9 * float(scale.max(initial=0.0))))
    shrunk = (1 - _SHRINK) * shared + np.diag(_SHRINK * scale + (floor - scale))
    middle = (with_.mean(axis=0) + without.mean(axis=0)) / 2
    return Discriminant(np.linalg.solve(shrunk, apart), middle)
