"""The k marginals farthest from public reference tables of counts.

Score of marginal j: w_j·(Σ_cells |c − ref| − penalty), on the grid 1/16, w_j = 1 without weights. A
neighbour moves one cell by one, or two under replace, so the sensitivity in grid units is 16·max w
(add-remove) or 32·max w (replace). Scores may rise and fall: ε0 = 2·Δ/scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.errors import PrivacyError
from understudy.privacy.cost import Selection
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import top
from understudy.privacy.questions.requests import (
    GRID,
    Clique,
    Counts,
    Table,
    on_grid,
    require_cliques,
    require_references,
)
from understudy.privacy.relation import Relation

__all__ = ["LARGEST_WEIGHT", "WorstMarginals"]

LARGEST_WEIGHT = 4096
"""Weights of marginals are whole numbers up to this."""


@dataclass(frozen=True, slots=True, eq=False)
class WorstMarginals:
    """The positions of k of `cliques`, in order."""

    cliques: Sequence[Clique]
    references: Sequence[Table]
    penalties: Sequence[float]
    weights: Sequence[int] | None = None

    mechanism = staticmethod(top)

    @staticmethod
    def sensitivity(relation: Relation, heaviest: int = 1) -> int:
        """How far a neighbour moves a score, in grid units."""
        return GRID * relation.marginal_l1() * heaviest

    def need(self, facts: Facts) -> Need:
        """The heaviest marginal's sensitivity."""
        require_cliques(self.cliques, facts)
        weights = (1,) if self.weights is None else self.weights
        if self.weights is not None and len(weights) != len(self.cliques):
            raise PrivacyError(f"{len(self.cliques)} marginals need as many weights")
        if not all(type(w) is int and 1 <= w <= LARGEST_WEIGHT for w in weights):
            raise PrivacyError(f"weights must be whole numbers from 1 to {LARGEST_WEIGHT}")
        heaviest = max(weights)
        require_references(self.cliques, self.references, self.penalties, facts, heaviest)
        moved = self.sensitivity(facts.relation, heaviest)
        return Need(
            (Selection,),
            lambda e: e.sensitivity >= moved and e.k <= len(self.cliques),
            f"{len(self.cliques)} L1 scores, which move by {moved}/{GRID}",
            (len(self.cliques),),
        )

    def exact(self, rows: Tables, event: Selection) -> Counts:
        """One score for each marginal."""
        weights = self.weights or (1,) * len(self.cliques)
        tables = rows.tables(self.cliques)
        parts = zip(tables, self.references, self.penalties, weights, strict=True)
        scores = [
            w * (int(np.abs(GRID * table - on_grid(reference)).sum()) - round(GRID * penalty))
            for table, reference, penalty, w in parts
        ]
        return np.array(scores, np.int64)

    def decode(self, drawn: Counts, facts: Facts) -> tuple[int, ...]:
        """Positions."""
        return tuple(int(i) for i in drawn)
