"""Counts with discrete Gaussian noise on each: marginal tables, single cells, n, and errors of tables.

* **Marginals**: J tables, whole or merged, move by one in J cells (add-remove) or 2J (replace). A table
  that is named again is one more table, with noise of its own.
* **Single counts**: each moves by at most one under both relations, a change for every cell that is
  asked for, once or several times.
* **Thresholded L1 errors**: how far tables are from public references beyond a threshold,
  ⌊Σ_cells (|c − ref| − θ)₊⌋ rows, ref and θ on the grid 1/16. A neighbour moves one cell by one, or two
  under replace, and (·)₊ and |·| move no two values apart, so every error moves by at most 1
  (add-remove) or 2 (replace), rounded down or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy._types import Clique, Table, Whole
from understudy.errors import PrivacyError
from understudy.privacy.coarsened import Coarsened
from understudy.privacy.cost import Gaussian
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import added
from understudy.privacy.questions.requests import (
    GRID,
    Cell,
    Noised,
    NoisedOne,
    gaussian,
    on_grid,
    require_cells,
    require_references,
    require_tables,
    shape_of,
    tables_of,
)


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    """One noisy table of counts for each of `tables`."""

    tables: Sequence[Clique | Coarsened]

    mechanism = staticmethod(added)

    def need(self, facts: Facts) -> Need:
        """Step 1, one change for each table and side."""
        require_tables(self.tables, facts)
        changes = facts.relation.marginal_l2_squared(len(self.tables))
        cells = sum(math.prod(shape_of(each, facts)) for each in self.tables)
        words = f"{len(self.tables)} marginal tables, which move {changes} cells by 1"
        return gaussian(1, changes, words, cells)

    def exact(self, rows: Tables, event: Gaussian) -> Whole:
        """All cells, table after table."""
        return np.concatenate([table.reshape(-1) for table in rows.tables(self.tables)])

    def decode(self, drawn: Whole, facts: Facts) -> tuple[Whole, ...]:
        """The tables."""
        return tables_of(drawn, self.tables, facts)


@dataclass(frozen=True, slots=True)
class CellCounts(Noised):
    """The noisy counts of some cells."""

    cliques: Sequence[Clique]
    cells: Sequence[Cell]

    def need(self, facts: Facts) -> Need:
        """Step 1, a change for each cell."""
        require_cells(self.cliques, self.cells, facts)
        count = len(self.cells)
        if not count:
            raise PrivacyError("a request needs at least one cell")
        return gaussian(1, count, f"{count} cells, each of which moves by 1", count)

    def exact(self, rows: Tables, event: Gaussian) -> Whole:
        """One count for each cell."""
        wanted = sorted({cell.marginal for cell in self.cells})
        found = rows.marginals([self.cliques[i] for i in wanted])
        tables = dict(zip(wanted, found, strict=True))
        counts = [tables[cell.marginal][tuple(map(int, cell.index))] for cell in self.cells]
        return np.array(counts, np.int64)


@dataclass(frozen=True, slots=True)
class RowCount(NoisedOne):
    """The noisy number of rows; it moves by one."""

    def need(self, facts: Facts) -> Need:
        """Step 1."""
        return gaussian(1, 1, "the number of rows, which moves by 1", 1)

    def exact(self, rows: Tables, event: Gaussian) -> Whole:
        """n."""
        return np.array([rows.rows()], np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdedErrors(Noised):
    """One noisy error for each of `tables`, against its reference and beyond its threshold; in rows."""

    tables: Sequence[Clique | Coarsened]
    references: Sequence[Table]
    thresholds: Sequence[float]

    def need(self, facts: Facts) -> Need:
        """The L1 change of a table as the step, one change for each table."""
        require_tables(self.tables, facts)
        require_references(self.tables, self.references, self.thresholds, facts)
        if min(self.thresholds) < 0:
            raise PrivacyError("a threshold is below 0")
        step, count = facts.relation.marginal_l1(), len(self.tables)
        return gaussian(
            step, count, f"{count} thresholded errors, each of which moves by {step}", count
        )

    def exact(self, rows: Tables, event: Gaussian) -> Whole:
        """Whole rows, rounded down."""
        parts = zip(rows.tables(self.tables), self.references, self.thresholds, strict=True)
        sums = [
            np.maximum(np.abs(GRID * table - on_grid(reference)) - round(GRID * threshold), 0).sum()
            for table, reference, threshold in parts
        ]
        return np.array([int(s) // GRID for s in sums], np.int64)
