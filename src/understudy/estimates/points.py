"""The released model as weighted cells of a few columns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique
from understudy.models import Empirical, View, Weighted

__all__ = ["Points", "collapsed"]

DENSE = 20_000
"""Cells up to which all are kept, held by the model or not."""
TABULATED = 2_000_000
"""Cells up to which a model without records is tabulated; beyond, it is sampled."""
MOST = 50_000
"""Cells of large tables that stand for the model. Drawing them adds 1/√50,000 = 0.0045 deviations of
what no table explains; what tables explain is corrected by them."""
APART = 5_000
"""Cells drawn from the product of the columns' shares."""
INDEPENDENT = 0.05
"""The weight of that product in the distribution that errors are averaged over, so that nothing rests
on a cell being empty in the model."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Points:
    """Distinct cells of `columns`: codes, the model's shares, and .95 of these + .05 independence.

    Both sum to one. Cells that only independence knows have no share in the model.
    """

    columns: Clique
    codes: tuple[NDArray[np.int64], ...]
    shares: Floats
    spread: Floats

    def __len__(self) -> int:
        return len(self.shares)


def collapsed(model: View, columns: Clique, shape: tuple[int, ...]) -> Points:
    """The model on `columns`, with public and fixed randomness where it has to be sampled."""
    sizes = tuple(shape[i] for i in columns)
    if math.prod(sizes) <= DENSE:
        shares = np.asarray(model.marginal(columns), np.float64).reshape(-1)
        shares = shares / shares.sum()
        table = shares.reshape(sizes)
        product = np.ones(())
        for axis in range(len(sizes)):
            others = tuple(k for k in range(len(sizes)) if k != axis)
            product = np.multiply.outer(product, table.sum(axis=others))
        codes = tuple(np.unravel_index(np.arange(shares.size), sizes))
        spread = (1 - INDEPENDENT) * shares + INDEPENDENT * product.reshape(-1)
        return Points(columns, codes, shares, spread)
    held, shares = _records(model, columns, sizes)
    rng = np.random.default_rng(0)
    apart = [
        rng.choice(size, APART, p=np.bincount(codes, shares, size))
        for codes, size in zip(held, sizes, strict=True)
    ]
    codes = tuple(np.concatenate(both) for both in zip(held, apart, strict=True))
    spread = np.concatenate(
        [(1 - INDEPENDENT) * shares, np.full(APART, INDEPENDENT / APART)],
    )
    return Points(columns, codes, np.concatenate([shares, np.zeros(APART)]), spread)


def _records(
    model: View, columns: Clique, sizes: tuple[int, ...]
) -> tuple[list[NDArray[np.int64]], Floats]:
    """Distinct cells that the model holds, at most `MOST`, and their shares."""
    if isinstance(model, Weighted | Empirical):
        codes = [model.codes[i].astype(np.int64) for i in columns]
        weights = np.ones(model.size)
        if isinstance(model, Weighted):
            weights = model.weights.astype(np.float64)
    elif math.prod(sizes) <= TABULATED:
        table = np.asarray(model.marginal(columns), np.float64)
        codes = [each.astype(np.int64) for each in np.nonzero(table)]
        weights = table[tuple(codes)]
    else:
        drawn = model.sample(4 * MOST, np.random.default_rng(1))  # type: ignore[attr-defined]
        codes = [np.asarray(drawn[i], np.int64) for i in columns]
        weights = np.ones(4 * MOST)
    packed = np.ravel_multi_index(tuple(codes), sizes)
    cells, where = np.unique(packed, return_inverse=True)
    shares = np.bincount(where, weights)
    shares /= shares.sum()
    if len(cells) > MOST:
        at = (np.arange(MOST) + 0.5) / MOST
        chosen = np.searchsorted(np.cumsum(shares), at * (1 - 1e-12))
        cells, times = np.unique(cells[chosen], return_counts=True)
        shares = times / MOST
    return list(np.unravel_index(cells, sizes)), shares
