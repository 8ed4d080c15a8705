"""The payoff of past picks: Σ_t s_t·(c_t − ref_t) over T cells and their sides, with Laplace noise.

References are public and rounded to 1/65536 row. A row that comes, goes or is replaced moves every
count by at most 1, so the sum moves by at most T rows: l1 = 65536·T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.errors import PrivacyError
from understudy.privacy.buckets import MOST_ROWS, UNIT, clipped
from understudy.privacy.cost import Laplace
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import added
from understudy.privacy.questions.rejection import place
from understudy.privacy.questions.requests import (
    Cell,
    Clique,
    Counts,
    require_cells,
    require_sides,
)

__all__ = ["Payoff"]

_MOST = 2**62


@dataclass(frozen=True, slots=True)
class Payoff:
    """The noisy sum over `cells`, in rows."""

    cliques: Sequence[Clique]
    cells: Sequence[Cell]
    expected: Sequence[float]

    mechanism = staticmethod(added)

    def need(self, facts: Facts) -> Need:
        """T rows."""
        require_cells(self.cliques, self.cells, facts)
        require_sides(self.cells)
        count, references = len(self.cells), np.asarray(self.expected, np.float64)
        if references.shape != (count,) or not count:
            raise PrivacyError(f"{count} cells need as many expected counts, and one at least")
        if not np.isfinite(references).all() or np.abs(references).max() > MOST_ROWS:
            raise PrivacyError("an expected count is not finite or too large")
        return Need(
            (Laplace,),
            lambda e: e.l1 >= UNIT * count,
            f"the payoff of {count} cells, which moves by {count} rows",
            (1,),
        )

    def exact(self, rows: Tables, event: Laplace) -> Counts:
        """In units of 1/65536 row."""
        occupied = rows.occupied(self.cliques)
        places = [
            place(self.cliques, cell, rows.shape) + int(occupied.offsets[cell.marginal])
            for cell in self.cells
        ]
        counts = clipped(occupied.at(np.array(places, np.int64)))
        sides = np.array([cell.sign for cell in self.cells], np.int64)
        gaps = UNIT * counts - np.rint(UNIT * np.asarray(self.expected)).astype(np.int64)
        # Cut off where 64 bits end, which moves no two sums apart.
        total = sum((sides * gaps).tolist())
        return np.array([max(-_MOST, min(_MOST, total))], np.int64)

    def decode(self, drawn: Counts, facts: Facts) -> float:
        """In rows."""
        return float(drawn[0]) / UNIT
