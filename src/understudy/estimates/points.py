"""The released model as weighted cells of a few columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy._types import Clique, Floats, Whole
from understudy.models import Empirical, View, Weighted

DENSE = 20_000
"""Cells up to which all are kept, held by the model or not."""
TABULATED = 2_000_000
"""Cells up to which a model without records is tabulated; beyond, it is sampled."""
MOST = 24_000
"""Cells of large tables that stand for the model. Drawing them adds at most 1/√24,000 = 0.006
deviations of what no table explains, which is counted as noise; what tables explain is corrected."""
APART = 4_000
"""Cells drawn from the product of the columns' shares."""
INDEPENDENT = 0.05
"""The weight of that product in what errors are averaged over, so that nothing rests on a cell being
empty in the model."""


@dataclass(frozen=True, eq=False)
class Points:
    """Distinct cells of `columns`: codes, the model's shares, and what errors are averaged over.

    `spread` is .95·m + .05·Π p_i + (Π (p_i + u_i) − Π p_i), p_i the shares of the columns' values and
    u_i a floor for each that follows from its noise. Without it, tables would have small weights at
    just those rare values that noise made rarer: that chooses by noise, and biases tails. Shares sum to
    one, `spread` to more, the more the noise is. `drawn` cells stand for the model; 0 if all are here.
    """

    columns: Clique
    codes: tuple[Whole, ...]
    shares: Floats
    spread: Floats
    drawn: int = 0

    def __len__(self) -> int:
        return len(self.shares)


def collapsed(
    model: View, columns: Clique, shape: tuple[int, ...], floors: Sequence[float]
) -> Points:
    """The model on `columns`, with public and fixed randomness where it has to be sampled.

    `floors` is u, one for each column.
    """
    sizes = tuple(shape[i] for i in columns)
    if math.prod(sizes) <= DENSE:
        shares = np.asarray(model.marginal(columns), np.float64).reshape(-1)
        shares = shares / shares.sum()
        codes = tuple(np.unravel_index(np.arange(shares.size), sizes))
        product, wide = _products(codes, _margins(codes, shares, sizes), floors)
        spread = (1 - INDEPENDENT) * (shares - product) + wide
        return Points(columns, codes, shares, np.maximum(spread, 0.0))
    held, shares, drawn = _records(model, columns, sizes)
    margins = _margins(held, shares, sizes)
    # Drawn from Π (p + u), and weighted to what is added to .95 of the model.
    rng, wider = np.random.default_rng(0), [m + u for m, u in zip(margins, floors, strict=True)]
    apart = [rng.choice(len(w), APART, p=w / w.sum()) for w in wider]
    product, wide = _products(apart, margins, floors)
    mass = math.prod(float(w.sum()) for w in wider) / APART
    added = mass * (1 - (1 - INDEPENDENT) * product / wide)
    codes = tuple(np.concatenate(both) for both in zip(held, apart, strict=True))
    spread = np.concatenate([(1 - INDEPENDENT) * shares, added])
    return Points(columns, codes, np.concatenate([shares, np.zeros(APART)]), spread, drawn)


def _margins(codes: Sequence[Whole], shares: Floats, sizes: tuple[int, ...]) -> list[Floats]:
    held = zip(codes, sizes, strict=True)
    return [np.bincount(c, shares, size).astype(np.float64) for c, size in held]


def _products(
    codes: Sequence[Whole], margins: list[Floats], floors: Sequence[float]
) -> tuple[Floats, Floats]:
    """(Π p, Π (p + u)) at some cells."""
    each = [m[c] for c, m in zip(codes, margins, strict=True)]
    wide = [p + u for p, u in zip(each, floors, strict=True)]
    return np.prod(each, axis=0), np.prod(wide, axis=0)


def _records(
    model: View, columns: Clique, sizes: tuple[int, ...]
) -> tuple[list[Whole], Floats, int]:
    """Distinct cells that the model holds, at most `MOST`; their shares; how many draws they are."""
    drawn = 0
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
        weights, drawn = np.ones(4 * MOST), 4 * MOST
    packed = np.ravel_multi_index(tuple(codes), sizes)
    cells, where = np.unique(packed, return_inverse=True)
    shares = np.bincount(where, weights)
    shares /= shares.sum()
    if len(cells) > MOST:
        at = (np.arange(MOST) + 0.5) / MOST
        chosen = np.searchsorted(np.cumsum(shares), at * (1 - 1e-12))
        cells, times = np.unique(cells[chosen], return_counts=True)
        shares, drawn = times / MOST, MOST
    return list(np.unravel_index(cells, sizes)), shares, drawn
