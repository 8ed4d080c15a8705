"""Released measurements of marginals, what they are held against, and the simplest use of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Table

__all__ = ["Measured", "View", "simplex"]


class View(Protocol):
    """A distribution over the universe, as far as marginals show it."""

    def marginal(self, clique: Clique) -> Table:
        """Shares summing to one, axes in the order of `clique`."""
        ...

    def marginals(self, cliques: Sequence[Clique]) -> list[Table]:
        """The marginals of many cliques."""
        return [self.marginal(clique) for clique in cliques]


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
