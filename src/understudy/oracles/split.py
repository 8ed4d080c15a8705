"""Which weight a new query needs: the best record without regard to it, and the best that satisfies it.

For a perturbation σ let x be the best record, y the best among those that satisfy the query, and gap
what y falls short of x. With the query at weight w the best record of all is y if w > gap, and x if
not: so one pair of searches answers for every weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError
from understudy.oracles.history import History

__all__ = ["Split", "into", "weights"]

_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Split:
    """Per perturbation: the best record, the best record that satisfies the query, and the gap.

    The gap is infinite where the oracle found no record that satisfies the query. `late` says that
    an oracle that proves its records ran out of time for one.
    """

    free: NDArray[np.int64]
    held: NDArray[np.int64]
    gap: NDArray[np.float64]
    late: bool = False

    @classmethod
    def of(
        cls,
        query: History,
        free: NDArray[np.int64],
        held: NDArray[np.int64],
        gap: NDArray[np.float64],
        late: bool = False,
    ) -> Split:
        """Differences that are rounding are no gap, and a record that fails the query has none."""
        gap = np.where(gap < _ROUNDING, 0.0, gap)
        gap[query.evaluate(held) < 0.5] = np.inf
        return cls(free, held, gap, late)

    def weight(self, share: float) -> float:
        """The least weight with which a `share` of the perturbations satisfies the query."""
        order = np.sort(self.gap)
        place = min(len(order), max(1, round(share * len(order)))) - 1
        reached = order[: place + 1]
        return float(reached[np.isfinite(reached)].max(initial=0.0))

    def at(self, weight: float) -> NDArray[np.int64]:
        """The best records with the query at this weight."""
        return np.where((self.gap <= weight)[:, None], self.held, self.free)


def weights(history: History, query: History, noise: float) -> tuple[float, float]:
    """(too little to matter, more than everything else together), for noise of this size."""
    if not query.terms:
        raise InputError("a query that always holds, or never, needs no weight")
    every = float(np.abs(history.weights).sum())
    return 1e-9, 2 * (every + noise * len(history.shape)) + 1.0


def into(query: History, records: NDArray[np.int64]) -> NDArray[np.int64]:
    """Records that satisfy a single conjunction: a literal that does not hold gets a value for which
    it does.

    Other queries need one attribute to change, which any search finds: records stay as they are.
    """
    if query.terms != 1 or query.weights[0] <= 0:
        return records
    moved = records.copy()
    for column, low, high, negated in zip(
        query.columns[0], query.low[0], query.high[0], query.negated[0], strict=True
    ):
        if column < 0:
            continue
        codes = moved[:, column]
        outside = (codes < low) | (codes > high)
        value = low
        if negated:
            value = low - 1 if low > 0 else high + 1
            if value >= query.shape[column]:
                return records
        codes[outside != bool(negated)] = value
    return moved
