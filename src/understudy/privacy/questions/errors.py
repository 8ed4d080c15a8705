"""Thresholded L1 errors: how far tables are from public references beyond a threshold.

Error of a table: ⌊Σ_cells (|c − ref| − θ)₊⌋ rows, ref and θ on the grid 1/16. A neighbour moves one
cell by one, or two under replace, and (·)₊ and |·| move no two values apart, so every error moves by at
most 1 (add-remove) or 2 (replace), rounded down or not: `Gaussian` with that step, a change for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.errors import PrivacyError
from understudy.privacy.coarsened import Coarsened
from understudy.privacy.cost import Gaussian
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import added
from understudy.privacy.questions.requests import (
    GRID,
    Clique,
    Counts,
    Table,
    on_grid,
    require_references,
    require_tables,
)

__all__ = ["ThresholdedErrors"]


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdedErrors:
    """One noisy error for each of `tables`, against its reference and beyond its threshold."""

    tables: Sequence[Clique | Coarsened]
    references: Sequence[Table]
    thresholds: Sequence[float]

    mechanism = staticmethod(added)

    def need(self, facts: Facts) -> Need:
        """The L1 change of a table as the step, one change for each table."""
        require_tables(self.tables, facts)
        require_references(self.tables, self.references, self.thresholds, facts)
        if min(self.thresholds) < 0:
            raise PrivacyError("a threshold is below 0")
        step = facts.relation.marginal_l1()
        return Need(
            (Gaussian,),
            lambda e: e.step >= step and e.changes >= len(self.tables),
            f"{len(self.tables)} thresholded errors, each of which moves by {step}",
            (len(self.tables),),
        )

    def exact(self, rows: Tables, event: Gaussian) -> Counts:
        """Whole rows, rounded down."""
        parts = zip(rows.tables(self.tables), self.references, self.thresholds, strict=True)
        sums = [
            np.maximum(np.abs(GRID * table - on_grid(reference)) - round(GRID * threshold), 0).sum()
            for table, reference, threshold in parts
        ]
        return np.array([int(s) // GRID for s in sums], np.int64)

    def decode(self, drawn: Counts, facts: Facts) -> Counts:
        """As drawn, in rows."""
        return drawn
