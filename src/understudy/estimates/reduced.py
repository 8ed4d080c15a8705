"""Noisy tables as they speak of some columns: summed over all others, equal ones pooled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy._types import Clique, Floats, Whole
from understudy.models import Measured


@dataclass(frozen=True, eq=False)
class Reduced:
    """Noisy counts over some of the columns that are asked about; independent of all others.

    `labels[k][v]` is where value v of column `clique[k]` is counted; `sigma` the noise of every cell.
    """

    clique: Clique
    labels: tuple[Whole, ...]
    values: Floats
    sigma: float


def reduced(
    tables: Sequence[Measured], columns: Clique, shape: tuple[int, ...]
) -> tuple[Reduced, ...]:
    """What the tables tell of `columns`.

    A table inside them stays as it is. Others are summed over the rest of their columns: the variance
    of a cell is σ² times the cells that were summed. Equal tables are pooled by precision. A table
    without any of the columns tells of the number of rows alone, and has an empty clique.
    """
    pooled: dict[tuple[Clique, tuple[bytes, ...]], list[Reduced]] = {}
    for table in tables:
        kept = [k for k, i in enumerate(table.clique) if i in columns]
        gone = tuple(k for k in range(len(table.clique)) if k not in kept)
        clique = tuple(table.clique[k] for k in kept)
        labels = tuple(
            np.arange(shape[table.clique[k]]) if table.labels is None else table.labels[k]
            for k in kept
        )
        values = np.asarray(table.values, np.float64)
        over = math.prod(values.shape[k] for k in gone)
        one = Reduced(clique, labels, values.sum(axis=gone), table.sigma * math.sqrt(over))
        key = clique, tuple(np.asarray(each, np.int64).tobytes() for each in labels)
        pooled.setdefault(key, []).append(one)
    return tuple(_pooled(group) for _, group in sorted(pooled.items(), key=lambda item: item[0]))


def _pooled(group: Sequence[Reduced]) -> Reduced:
    first = group[0]
    precision = sum(each.sigma**-2 for each in group)
    values = sum((each.values / each.sigma**2 for each in group), np.zeros(first.values.shape))
    return Reduced(first.clique, first.labels, values / precision, precision**-0.5)


def column_noise(tables: Sequence[Reduced], column: int, size: int) -> float:
    """The noise of the rows of one value of a column; infinite where no table tells each apart."""
    found = [t.sigma for t in tables if t.clique == (column,) and t.values.size == size]
    return min(found, default=math.inf)
