"""Marginal tables of counts, whole or merged, with discrete Gaussian noise on every cell.

J tables move by one in J cells (add-remove) or 2J (replace): `Gaussian` with step 1 and that many
changes. A table that is named again is one more table, with noise of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.privacy.coarsened import Coarsened
from understudy.privacy.cost import Gaussian
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import added
from understudy.privacy.questions.requests import Clique, Counts, require_tables, shape_of

__all__ = ["Marginals"]


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
        return Need(
            (Gaussian,),
            lambda e: e.step >= 1 and e.changes >= changes,
            f"{len(self.tables)} marginal tables, which move {changes} cells by 1",
            (cells,),
        )

    def exact(self, rows: Tables, event: Gaussian) -> Counts:
        """All cells, table after table."""
        return np.concatenate([table.reshape(-1) for table in rows.tables(self.tables)])

    def decode(self, drawn: Counts, facts: Facts) -> tuple[Counts, ...]:
        """The tables."""
        shapes = [shape_of(each, facts) for each in self.tables]
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        parts = zip(np.split(drawn, ends), shapes, strict=True)
        return tuple(part.reshape(shape) for part, shape in parts)
