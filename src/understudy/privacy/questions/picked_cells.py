"""k independent picks by the exponential mechanism over all cells and their complements.

Score of a cell: c − n·ĉ/m, where ĉ counts the m public records in it and n is a public number of rows;
of its complement: the negative. Every score moves by 1, with rounding by `SCORE_SENSITIVITY` units.
Marginals may have any number of cells: see `understudy.privacy.buckets`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.errors import PrivacyError
from understudy.privacy.buckets import MOST_NOISE, MOST_ROWS, SCORE_SENSITIVITY
from understudy.privacy.cost import Selection
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import Buckets, sparse
from understudy.privacy.questions.requests import (
    Cell,
    Clique,
    Codes,
    Counts,
    require_cliques,
    require_records,
    shape_of,
    whole,
)

__all__ = ["PickedCells", "require_rows"]


def require_rows(rows: int) -> None:
    """Rounding is proved up to so many rows."""
    if not whole(rows) or not 1 <= rows <= MOST_ROWS:
        raise PrivacyError(f"rows = {rows} must be between 1 and 2^33")


@dataclass(frozen=True, slots=True, eq=False)
class PickedCells:
    """k cells with their sides: +1 for the cell, −1 for its complement.

    Without `every_complement` only cells that hold a record offer theirs, a public choice: no other
    can have a score above 0.
    """

    cliques: Sequence[Clique]
    records: Sequence[Codes]
    rows: int
    every_complement: bool = True

    mechanism = staticmethod(sparse)

    def need(self, facts: Facts) -> Need:
        """One row, and what rounding adds."""
        require_cliques(self.cliques, facts)
        require_records(self.records, facts)
        require_rows(self.rows)
        return Need(
            (Selection,),
            lambda e: e.sensitivity >= SCORE_SENSITIVITY and e.scale <= MOST_NOISE,
            f"cell scores, which move by {SCORE_SENSITIVITY} units",
            None,
        )

    def exact(self, rows: Tables, event: Selection) -> Buckets:
        """Cells of equal score, in buckets."""
        codes = require_records(self.records, rows.facts)
        occupied = rows.occupied(self.cliques)
        candidates = occupied.candidates(rows.touched(self.cliques, codes), self.rows)
        every = candidates.scores.size
        return Buckets(
            occupied, candidates, every if self.every_complement else candidates.touched.size
        )

    def decode(self, drawn: Counts, facts: Facts) -> tuple[Cell, ...]:
        """Cells by their index."""
        cells: list[Cell] = []
        for marginal, packed, sign in drawn.tolist():
            index = np.unravel_index(packed, shape_of(self.cliques[marginal], facts))
            cells.append(Cell(marginal, tuple(int(i) for i in index), sign))
        return tuple(cells)
