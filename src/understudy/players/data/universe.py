"""A distribution over a universe that is written out, row by possible row; what two players share."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from understudy._types import Table
from understudy.models import View
from understudy.models.decomposable import project
from understudy.players.base import Clique, MeasuredCell

__all__ = ["Universe", "inside", "log_softmax"]


@dataclass(frozen=True, slots=True, eq=False)
class Universe(View):
    """A joint table as a view. Tables that many cliques sum to on their way are kept."""

    p: Table
    _sums: dict[Clique, Table] = field(default_factory=dict, repr=False)

    def marginal(self, clique: Clique) -> Table:
        """See `View.marginal`."""
        return self._sum(tuple(sorted(clique))).transpose(np.argsort(np.argsort(clique)))

    def _sum(self, clique: Clique) -> Table:
        """Sum out one column at a time, from the table that has the fewest left to sum out."""
        if len(clique) == self.p.ndim:
            return self.p
        if clique not in self._sums:
            above = self._above(clique)
            self._sums[clique] = project(above, self._sum(above), clique)
        return self._sums[clique]

    def _above(self, clique: Clique) -> Clique:
        # The columns left out are added back smallest first, so cliques share the large sums.
        shape = self.p.shape
        left_out = [i for i in range(len(shape)) if i not in clique]
        return tuple(sorted((*clique, min(left_out, key=lambda i: (shape[i], i)))))


def inside(answer: MeasuredCell) -> tuple[Any, ...]:
    """Where in the universe the rows of a cell lie; indexing with it gives a view."""
    where: list[Any] = [slice(None)] * (max(answer.clique) + 1)
    for column, code in zip(answer.clique, answer.cell.index, strict=True):
        where[column] = code
    return (*where, ...)


def log_softmax(logits: Table) -> Table:
    """log of exp(logits)/Σ exp(logits), without overflow."""
    top = float(logits.max())
    return logits - (top + math.log(np.exp(logits - top).sum()))
