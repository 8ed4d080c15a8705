"""Released measurements of marginals, and the simplest thing to do with one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Measured", "simplex"]


@dataclass(frozen=True, eq=False)
class Measured:
    """A released noisy table of counts: exact counts plus independent noise of deviation sigma.

    With `labels`, value v of the k-th column was counted as labels[k][v].
    """

    clique: tuple[int, ...]
    values: NDArray[np.int64] | NDArray[np.float64]
    sigma: float
    labels: tuple[NDArray[np.int64], ...] | None = None


def simplex(values: NDArray[np.float64] | NDArray[np.int64], total: float) -> NDArray[np.float64]:
    """The nearest table (least squares) that is non-negative and sums to `total`, over `total`.

    Euclidean projection onto the scaled simplex: max(v − τ, 0) with τ from the sorted values.
    """
    flat = np.asarray(values, dtype=np.float64).reshape(-1)
    total = max(float(total), 1.0)
    descending = np.sort(flat)[::-1]
    excess = np.cumsum(descending) - total
    support = np.nonzero(descending - excess / np.arange(1, flat.size + 1) > 0)[0]
    last = support[-1]
    projected = np.maximum(flat - excess[last] / (last + 1), 0.0)
    return (projected / projected.sum()).reshape(np.shape(values))
