"""Pairs of which one column is almost a function of the other: a code and its group, near-copies.

Let r and c be the counts of two columns, n their sum, and y their pair with noise σ. Under the function
f with a leak λ the cells are t_ij = λ·r_i·c_j/n + (1 − λ)·r_i·[j = f(i)]. Every f(i) has the other
column's shares as its prior, so that its posterior and the likelihood of y have closed forms, row by
row of the table. λ and the direction are those that explain y best.

The function is believed if y is likelier under it than under the law that the fit takes otherwise,
independence with variance κ·r_i·c_j/n around it, if what is left of y is no more than noise, in sum
and in every cell, and if it moves a tenth of the rows. What is believed then is the posterior mean,
with both columns put in place: sure where a value has many rows, undecided between several where it
has few.
"""

from __future__ import annotations

import math

import numpy as np

from understudy._types import Table
from understudy.models import _kernels as kernels
from understudy.models.margins import stands_out

# Chosen on generated tables; see docs/methods/maxent.md.
_LEAKS = (0.001, 0.01, 0.03, 0.1)
_LIKELIER = 5.0  # Nats by which the function must be ahead,
_NOISE = 4.0  # and deviations that what is left of y may be above noise
_MATTERS = 0.1
"""The share of the rows that the function must move: every skewed column is nearly a constant."""
_PART = 0.4  # Of Σ t² under a function, what must be seen for a direction to be tried
_PASSES = 30


def determined(y: Table, base: Table, sigma: float) -> Table | None:
    """The pair's counts where y shows that one column is almost a function of the other, or None.

    `base` has the counts of independent columns; so do row and column sums of what is returned.
    """
    free = (base.shape[0] - 1) * (base.shape[1] - 1)
    spread = sigma**2 * math.sqrt(2 * y.size)
    squares = float((y * y).sum()) - sigma**2 * y.size + 3 * spread
    best, found = _otherwise(y, base, sigma, free) + _LIKELIER, None
    for one, other in ((y, base), (y.T, base.T)):
        if squares < _PART * float((other.sum(axis=1) ** 2).sum()):
            continue
        for leak in _LEAKS:
            likelihood, table = _function(one, other, sigma, leak)
            if likelihood > best:
                best, found = likelihood, table if one is y else table.T
    if found is None:
        return None
    table = np.maximum(np.ascontiguousarray(found), 1e-6)
    kernels.balance(table.reshape(-1), base.sum(axis=1), base.sum(axis=0), _PASSES)
    matters = float(np.abs(table - base).sum()) / 2 >= _MATTERS * float(base.sum())
    return table if matters and agrees(y - table, sigma) else None


def agrees(left: Table, sigma: float) -> bool:
    """Whether what is left of a noisy pair beyond its columns is noise, in sum and in every cell."""
    free = (left.shape[0] - 1) * (left.shape[1] - 1)
    beyond = float((left**2).sum()) / sigma**2 - free
    largest = float(np.abs(left).max()) / sigma
    return beyond <= _NOISE * math.sqrt(2 * free) and largest <= stands_out(np.ones(left.size))[0]


def _function(y: Table, base: Table, sigma: float, leak: float) -> tuple[float, Table]:
    """(log likelihood of y against that of no rows at all, posterior mean), the second of the first."""
    rows = base.sum(axis=1, keepdims=True)
    lost, kept = leak * base, (1 - leak) * rows
    prior = np.log(np.maximum(base.sum(axis=0) / base.sum(), 1e-12))
    scores = prior + ((y - lost) * kept - kept * kept / 2) / sigma**2
    top = scores.max(axis=1, keepdims=True)
    weight = np.exp(scores - top)
    total = weight.sum(axis=1, keepdims=True)
    likelihood = float((top + np.log(total)).sum() + ((y - lost / 2) * lost).sum() / sigma**2)
    return likelihood, lost + kept * weight / total


def _otherwise(y: Table, base: Table, sigma: float, free: int) -> float:
    """The log likelihood against that of no rows under independence and normal deviations from it."""
    off = (y - base) ** 2
    kappa = max((float(off.sum()) - sigma**2 * free) / float(base.sum()), 1e-9)
    found: list[float] = []
    for times in (0.25, 1.0, 4.0):
        variance = 1 + times * kappa * base / sigma**2
        found.append(-0.5 * float((off / (variance * sigma**2) + np.log(variance)).sum()))
    return max(found) + 0.5 * float((y * y).sum()) / sigma**2
