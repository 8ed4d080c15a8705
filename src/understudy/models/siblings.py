"""How much a child's column and one of its sibling depend on each other, read from their noisy table.

Such a table has a column for children without a sibling, most of them, and what it says of who has one
is no sign of what siblings have in common. So κ, where κ·b is the variance that a cell of expectation b
is believed to have (`blocks`), is found twice: for that column by its mean square, and for the others,
around independence of those who have a sibling, as what makes them likeliest: with y's noise of
variance v, a cell's deviation is normal with variance v + κ·b. Of two ordered columns the trend is left
out, for it is believed by itself (`trends`).

A column and the same of a sibling mostly agree, or one of them is never below the other: an age does
not fall from visit to visit. κ is large then, and believes noise in cells where nothing is. So the
cells on one side of the diagonal are also explained by two numbers, with much less noise than single
cells have: the shares of siblings beside the diagonal and of others, spread as those of independent
columns, both zero as likely as not. Where that makes the cells likelier than κ does, it is believed:
that the side is empty if this is likelier than not, and otherwise the mean of what else may be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from understudy._types import Table
from understudy.models.residual import centered

__all__ = ["Joined", "apart", "believed", "sides"]

_TRIED = np.geomspace(1e-3, 1e7, 81)
"""κ, where 1 would give a cell as much variance as noise does."""
_LEAST = 0.05
"""The least κ of who has a sibling, in deviations of noise."""
_SHARES = np.append(0.0, np.geomspace(0.01, 0.5, 30))
_PRIOR = np.append(math.sqrt(0.5), np.full(30, (1 - math.sqrt(0.5)) / 30))
"""Shares of siblings on one side of the diagonal, beside it and anywhere, and how likely each is before
the table is seen: that there are neither is as likely as not."""
_LIKELIER = 5.0
"""By how many nats they must explain the cells of a side better than κ."""


@dataclass(frozen=True, eq=False)
class Joined:
    """A table of a child's column and one of a sibling, and what is known of it."""

    same: bool
    """Whether it is the same column."""
    trend: Table | None
    """The products of both columns' scores, where both are ordered."""


def apart(residual: Table, base: Table) -> Table:
    """Counts of siblings who have nothing in common, without the column of those who have none.

    Args:
        residual: What was measured beyond the counts of independent columns.
        base: Those counts; the last column of the table is for those without a sibling.
    """
    mine = np.maximum(base[:, :-1].sum(axis=1) - residual[:, -1], 1e-9)
    return np.multiply.outer(mine / mine.sum(), base[:, :-1].sum(axis=0))


def believed(residual: Table, base: Table, noise: Table, trend: Table | None = None) -> Table:
    """κ of every cell, flat.

    Args:
        residual: As of `apart`.
        base: As of `apart`.
        noise: The variance of the noise in every cell, flat.
        trend: The products of both columns' scores, where both are ordered.
    """
    noise = noise.reshape(base.shape)
    kappa = np.empty(base.shape)
    kappa[:, -1] = _by_square(residual[:, -1], base[:, -1], noise[:, -1])
    expected = apart(residual, base)
    beyond = centered(base[:, :-1] + residual[:, :-1] - expected)
    if trend is not None:
        along = centered(expected * trend[:, :-1])
        beyond = beyond - along * float((along * beyond).sum() / max((along**2).sum(), 1e-300))
    kappa[:, :-1] = _likeliest(beyond, expected, noise[:, :-1])
    return kappa.reshape(-1)


def sides(values: Table, expected: Table, noise: float) -> Table:
    """Counts of a column and the same of a sibling where one number explains a side; NaN elsewhere.

    Args:
        values: What was measured, of those with a sibling.
        expected: The same of siblings who have nothing in common.
        noise: The variance of the noise in every cell.
    """
    found = np.full(values.shape, np.nan)
    size = min(values.shape)  # a child that is not there is no value
    y, base = values[:size, :size], expected[:size, :size]
    kappa = _likeliest(y - base, base, np.full(base.shape, noise))
    above = np.subtract.outer(np.arange(size), np.arange(size))
    beside = np.sqrt(np.multiply.outer(base.sum(axis=1), base.sum(axis=0)))
    rows = float(base.sum())
    prior = np.multiply.outer(_PRIOR, _PRIOR).reshape(-1)
    tried = np.stack(np.meshgrid(_SHARES, _SHARES, indexing="ij"), axis=-1).reshape(-1, 2)
    for gap in (above, -above):
        side = gap > 0
        shapes = np.stack([np.where(gap == 1, beside, 0.0)[side], base[side]])
        shapes /= shapes.sum(axis=1, keepdims=True)
        spread = noise + kappa * base[side]
        usual = (y[side] - base[side]) ** 2 / spread + np.log(spread / noise) - y[side] ** 2 / noise
        likelihood = tried @ (shapes @ y[side]) * rows
        likelihood -= ((tried @ (shapes @ shapes.T)) * tried).sum(axis=1) * rows**2 / 2
        likelihood /= noise
        most = float(likelihood.max())
        chance = prior * np.exp(likelihood - most)
        total = float(chance.sum())
        if most + math.log(total) < _LIKELIER - float(usual.sum()) / 2:
            continue
        shares = (
            np.zeros(2) if chance[0] >= total / 2 else chance[1:] @ tried[1:] / chance[1:].sum()
        )
        found[:size, :size][side] = rows * shares @ shapes
    return found


def _by_square(off: Table, base: Table, noise: Table) -> float:
    """κ from what the squares of deviations have beyond noise and one deviation of its squares."""
    beyond = float((off**2).sum()) - float(noise.mean()) * (off.size + math.sqrt(2 * off.size))
    return max(beyond / max(float(base.sum()), 1e-9), _LEAST * math.sqrt(float(noise.mean())))


def _likeliest(off: Table, base: Table, noise: Table) -> float:
    """The κ of those tried under which these deviations are likeliest."""
    off, base, noise = off.reshape(-1), np.maximum(base.reshape(-1), 1e-9), noise.reshape(-1)
    tried = _TRIED * noise.mean() / base.mean()
    variance = noise + np.multiply.outer(tried, base)
    likelihood = -(off**2 / variance + np.log(variance)).sum(axis=1)
    return float(tried[int(likelihood.argmax())])
