"""Released measurements of marginals, whole or with values counted as one, and models as views.

Which values are counted as one is a public map (`Labels`), made from released estimates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Floats, Table, Whole

Labels = Whole
Merged = tuple[Labels, ...] | None
"""Which values of each column are taken together; None for a whole table."""


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

    With `labels`, value v of the k-th column was counted as labels[k][v]. `values` are the mean of
    `draws` tables of integers, and `sigma` is the deviation of that mean.
    """

    clique: tuple[int, ...]
    values: Whole | Floats
    sigma: float
    labels: tuple[Labels, ...] | None = None
    draws: int = 1


def total(measured: Sequence[Measured], rows: float, sigma: float) -> float:
    """The number of rows, known with noise of deviation `sigma`, and from the sums of all tables.

    Where it is public `sigma` is 0, and it stays as it is.
    """
    if sigma == 0:
        return rows
    weights = [sigma**-2, *(m.sigma**-2 / m.values.size for m in measured)]
    sums = [rows, *(float(m.values.sum()) for m in measured)]
    return max(float(np.average(sums, weights=weights)), 1.0)


def simplex(values: Floats | Whole, total: float) -> Floats:
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


def frequent(shares: Table, least: float) -> Labels:
    """Values with at least this share stay alone; all others are one."""
    mass = shares / shares.sum()
    kept = np.nonzero(mass >= least)[0]
    if kept.size == 0:
        kept = np.array([int(mass.argmax())])
    labels = np.full(shares.size, kept.size)
    labels[kept] = np.arange(kept.size)
    return labels


def commonest(shares: NDArray[Any], most: int) -> Labels:
    """The `most` − 1 commonest values stay alone; all others are one."""
    labels = np.empty(shares.size, np.int64)
    labels[np.argsort(-shares, kind="stable")] = np.minimum(np.arange(shares.size), most - 1)
    return labels


def merge_all(tables: Sequence[NDArray[Any]], labels: Sequence[Merged]) -> list[NDArray[Any]]:
    """`merge` of every table that has labels; the others are themselves."""
    return [
        table if own is None else merge(table, own)
        for table, own in zip(tables, labels, strict=True)
    ]


def merge(table: NDArray[Any], labels: tuple[Labels, ...]) -> NDArray[Any]:
    """Sum a table over merged values."""
    for axis, label in enumerate(labels):
        size = int(label.max()) + 1
        if label.size == size and (np.diff(label) > 0).all():
            continue
        moved = np.moveaxis(table, axis, 0)
        order = np.argsort(label, kind="stable")
        starts = np.searchsorted(label[order], np.arange(size))
        table = np.moveaxis(np.add.reduceat(moved[order], starts, axis=0), 0, axis)
    return np.ascontiguousarray(table)
