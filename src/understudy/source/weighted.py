"""Exact counts of rows that weigh more or less than others, in whole numbers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from understudy.privacy.sensitive import Sensitive
from understudy.queries.evaluate import Clique, Counter, SparseCounter
from understudy.schema import Schema

__all__ = ["WeightedCounts"]


class WeightedCounts:
    """Counts of encoded rows in which a row of weight w counts as w equal rows.

    Whoever makes it owes the bound: the weights of one privacy unit sum to at most
    `schema.unit.max_rows`. Then everything that holds for a table in which every unit has at most so
    many rows holds here. Rows are never handed over one by one, so methods that need gradients are
    refused.
    """

    def __init__(
        self,
        codes: Sequence[NDArray[np.unsignedinteger]],
        weights: NDArray[np.int64],
        schema: Schema,
    ) -> None:
        self.shape: tuple[int, ...] = tuple(schema.shape)
        self.unit = schema.unit
        some = weights > 0  # a row of weight 0 is none, and occupies no cell
        self._codes = codes if some.all() else [column[some] for column in codes]
        self._weights = weights if some.all() else weights[some]

    def rows(self) -> Sensitive[int]:
        """The exact sum of the weights, sealed. One unit moves it by at most `unit.max_rows`."""
        return Sensitive(int(self._weights.sum()))

    def marginals(self, cliques: Sequence[Clique]) -> Sensitive[tuple[NDArray[np.int64], ...]]:
        """Exact marginal tables of the weights, sealed."""
        counter = Counter(self.shape, cliques)
        counter.add(self._codes, self._weights)
        return Sensitive(counter.tables())

    def sparse(
        self, cliques: Sequence[Clique]
    ) -> Sensitive[tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]]:
        """Occupied cells of marginals of any size, sealed."""
        counter = SparseCounter(self.shape, cliques)
        counter.add(self._codes, self._weights)
        return Sensitive(counter.tables())
