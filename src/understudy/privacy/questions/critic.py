"""A logistic critic that tells private rows from public records, by objective perturbation.

Its weights, one table per clique: positive where the table has rows and the records have none.
Guarantee and proof are in `understudy.privacy.objective`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy._types import Clique, Table
from understudy.errors import PrivacyError
from understudy.privacy.cost import Perturbation
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.objective import MOST_ROWS, MarginalFeatures, Sides, covers, perturbed
from understudy.privacy.questions.requests import (
    Codes,
    require_cliques,
    require_records,
    shape_of,
    tables_of,
)


@dataclass(frozen=True, slots=True, eq=False)
class Critic:
    """The critic of tables on `cliques` against `records` of a total `weight`."""

    cliques: Sequence[Clique]
    records: Sequence[Codes]
    weight: float

    mechanism = staticmethod(perturbed)

    def need(self, facts: Facts) -> Need:
        """What `objective` proves."""
        require_cliques(self.cliques, facts)
        require_records(self.records, facts)
        if type(self.weight) not in (int, float) or not 0 < self.weight <= MOST_ROWS:
            raise PrivacyError(f"weight = {self.weight} must be a number above 0, up to 2^27")
        looks = MarginalFeatures(facts.shape, tuple(self.cliques))
        if math.prod(shape_of(looks.columns, facts)) > 2**62:
            raise PrivacyError(
                f"a critic of {len(looks.columns)} columns together has too many cells"
            )
        return Need(
            (Perturbation,),
            lambda e: covers(e, looks, facts.relation),
            f"a critic of {len(self.cliques)} tables with {looks.size} cells",
            None,
        )

    def exact(self, rows: Tables, event: Perturbation) -> Sides:
        """The occupied cells of rows and of records, over all columns of the tables."""
        looks = MarginalFeatures(rows.shape, tuple(self.cliques))
        domain = tuple(rows.shape[i] for i in looks.columns)
        ((cells, counts),) = rows.sparse([looks.columns])
        codes = require_records(self.records, rows.facts)[list(looks.columns)]
        public = np.ravel_multi_index(tuple(codes), domain)
        kept, times = np.unique(public, return_counts=True)
        shares = np.asarray(times * (self.weight / public.size), np.float64)
        return Sides(
            looks,
            (np.unravel_index(cells, domain), counts),
            (np.unravel_index(kept, domain), shares),
        )

    def decode(self, drawn: Table, facts: Facts) -> tuple[Table, ...]:
        """One table per clique."""
        return tables_of(drawn, self.cliques, facts)
