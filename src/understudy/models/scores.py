"""Numbers for the values of an ordered column: normal scores, of mean 0 and variance 1."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from understudy._types import Table

_INSIDE = 0.5  # The share of rows in order from which on their order is the score


def normal_scores(estimate: Table, ordered: int) -> tuple[Table, Table]:
    """(shares, normal scores) of the first `ordered` values, the others left out."""
    share = np.maximum(estimate[:ordered], 1e-9 * max(float(estimate.sum()), 1e-300))
    share = share / share.sum()
    return share, np.array([NormalDist().inv_cdf(at) for at in np.cumsum(share) - share / 2])


def scores(estimate: Table, ordered: int, *, sibling: bool = False) -> Table:
    """A number for every value, of mean 0 and variance 1.

    The normal score of the first `ordered` values, and the mean for all others; where fewer than half
    of the rows lie in these, whether a row does. But of a `sibling` always its order: most rows may
    have none.
    """
    share = np.maximum(estimate, 1e-9 * max(float(estimate.sum()), 1e-300))
    share = share / share.sum()
    found = np.zeros(share.size)
    if float(share[:ordered].sum()) < _INSIDE and not sibling:
        found[:ordered] = 1.0
    else:
        inside, normal = normal_scores(estimate, ordered)
        found[:ordered] = normal - float(normal @ inside)
    found -= float(found @ share)
    return found / max(float(np.sqrt(found**2 @ share)), 1e-300)
