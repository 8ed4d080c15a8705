"""How much a child's column and one of its sibling depend on each other, read from their noisy table.

Such a table has a column for children without a sibling, most of them, and what it says of who has one
is no sign of what siblings have in common. So κ, where κ·b is the variance that a cell of expectation b
is believed to have (`blocks`), is found twice: for that column by its mean square, and for the others,
around independence of those who have a sibling, as what makes them likeliest: with y's noise of
variance v, a cell's deviation is normal with variance v + κ·b.
"""

from __future__ import annotations

import math

import numpy as np

from understudy._types import Table

__all__ = ["believed"]

_TRIED = np.geomspace(1e-3, 1e7, 81)
"""κ, where 1 would give a cell as much variance as noise does."""
_LEAST = 0.05
"""The least κ of who has a sibling, in deviations of noise."""


def believed(residual: Table, base: Table, noise: Table) -> Table:
    """κ of every cell, flat; the last column of the table is for those without a sibling.

    Args:
        residual: What was measured beyond the counts of independent columns.
        base: Those counts.
        noise: The variance of the noise in every cell, flat.
    """
    noise = noise.reshape(base.shape)
    kappa = np.empty(base.shape)
    kappa[:, -1] = _by_square(residual[:, -1], base[:, -1], noise[:, -1])
    some, many = base[:, :-1], base[:, :-1].sum(axis=0)
    mine = np.maximum(some.sum(axis=1) - residual[:, -1], 1e-9)
    apart = np.multiply.outer(mine / mine.sum(), many)
    beyond = some + residual[:, :-1] - apart
    for axis in (0, 1):
        beyond = beyond - beyond.mean(axis=axis, keepdims=True)
    kappa[:, :-1] = _likeliest(beyond, apart, noise[:, :-1])
    return kappa.reshape(-1)


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
