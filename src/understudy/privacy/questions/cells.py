"""Single counts with discrete Gaussian noise: cells of marginals, and the number of rows.

Each moves by at most one under both relations: `Gaussian` with step 1 and a change for every cell that
is asked for, once or several times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.errors import PrivacyError
from understudy.privacy.cost import Gaussian
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import added
from understudy.privacy.questions.requests import Cell, Clique, Counts, require_cells

__all__ = ["CellCounts", "RowCount"]


@dataclass(frozen=True, slots=True)
class CellCounts:
    """The noisy counts of some cells."""

    cliques: Sequence[Clique]
    cells: Sequence[Cell]

    mechanism = staticmethod(added)

    def need(self, facts: Facts) -> Need:
        """Step 1, a change for each cell."""
        require_cells(self.cliques, self.cells, facts)
        if not self.cells:
            raise PrivacyError("a request needs at least one cell")
        return Need(
            (Gaussian,),
            lambda e: e.step >= 1 and e.changes >= len(self.cells),
            f"{len(self.cells)} cells, each of which moves by 1",
            (len(self.cells),),
        )

    def exact(self, rows: Tables, event: Gaussian) -> Counts:
        """One count for each cell."""
        wanted = sorted({cell.marginal for cell in self.cells})
        found = rows.marginals([self.cliques[i] for i in wanted])
        tables = dict(zip(wanted, found, strict=True))
        counts = [tables[cell.marginal][tuple(map(int, cell.index))] for cell in self.cells]
        return np.array(counts, np.int64)

    def decode(self, drawn: Counts, facts: Facts) -> Counts:
        """As drawn."""
        return drawn


@dataclass(frozen=True, slots=True)
class RowCount:
    """The noisy number of rows; it moves by one."""

    mechanism = staticmethod(added)

    def need(self, facts: Facts) -> Need:
        """Step 1."""
        return Need(
            (Gaussian,), lambda e: e.step >= 1, "the number of rows, which moves by 1", (1,)
        )

    def exact(self, rows: Tables, event: Gaussian) -> Counts:
        """n."""
        return np.array([rows.rows()], np.int64)

    def decode(self, drawn: Counts, facts: Facts) -> int:
        """As drawn."""
        return int(drawn[0])
