"""The cell farthest from public reference tables of counts, by the exponential mechanism.

Unsigned score |c − ref|. Signed: every cell is two candidates, with scores c − ref and ref − c, so that
the side is selected together with the cell. Each score moves by 1, which is 16 on the grid, under both
relations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.privacy.cost import Selection
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import top
from understudy.privacy.questions.requests import (
    GRID,
    Cell,
    Clique,
    Counts,
    Table,
    on_grid,
    require_cliques,
    require_references,
    shape_of,
)

__all__ = ["WorstCell"]


@dataclass(frozen=True, slots=True, eq=False)
class WorstCell:
    """One cell, with its side if `signed`."""

    cliques: Sequence[Clique]
    references: Sequence[Table]
    signed: bool = False

    mechanism = staticmethod(top)

    def need(self, facts: Facts) -> Need:
        """One row, one pick."""
        require_cliques(self.cliques, facts)
        require_references(self.cliques, self.references, [0.0] * len(self.cliques), facts)
        cells = sum(math.prod(shape_of(clique, facts)) for clique in self.cliques)
        return Need(
            (Selection,),
            lambda e: e.sensitivity >= GRID and e.k == 1,
            f"cell scores, which move by {GRID}/{GRID}, one at a time",
            (cells * (1 + self.signed),),
        )

    def exact(self, rows: Tables, event: Selection) -> Counts:
        """All cells, then all of them from the other side."""
        parts = zip(rows.marginals(self.cliques), self.references, strict=True)
        difference = np.concatenate(
            [(GRID * table - on_grid(reference)).reshape(-1) for table, reference in parts]
        )
        return np.concatenate([difference, -difference]) if self.signed else np.abs(difference)

    def decode(self, drawn: Counts, facts: Facts) -> Cell:
        """The cell at that place."""
        shapes = [shape_of(clique, facts) for clique in self.cliques]
        starts = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
        side, place = divmod(int(drawn[0]), int(starts[-1]))
        marginal = int(np.searchsorted(starts, place, side="right")) - 1
        index = np.unravel_index(place - int(starts[marginal]), shapes[marginal])
        sign = (1 - 2 * side) if self.signed else 0
        return Cell(marginal, tuple(int(i) for i in index), sign)
