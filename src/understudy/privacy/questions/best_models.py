"""The k of some public models that fit the rows best, by one-shot Gumbel top-k, in order.

Scores are those of a task on rows that were held out, with a declared sensitivity, or minus the mean
Jensen-Shannon divergence of marginals over all rows: see `understudy.privacy.models`. A row is held out
by a coin that belongs to it alone, so a neighbour changes one row of one of the two parts, whichever
way rows are numbered; training and selection are charged one after the other all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.errors import PrivacyError
from understudy.privacy.cost import Selection
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import top
from understudy.privacy.models import Models, divergence_scores, task_scores
from understudy.privacy.questions.picked_cells import require_rows
from understudy.privacy.questions.requests import Counts, require_cliques, require_rows_at_hand

__all__ = ["BestModels"]


@dataclass(frozen=True, slots=True, eq=False)
class BestModels:
    """Positions among `models`; `rows` is the public number of rows."""

    models: Models
    rows: int
    held_out: float = 0.0

    mechanism = staticmethod(top)

    def need(self, facts: Facts) -> Need:
        """`Models.SENSITIVITY` for every score."""
        if type(self.models) is not Models:  # a subclass might score otherwise
            raise PrivacyError(f"models must come as Models, got {type(self.models).__name__}")
        if self.models.scorers is None:
            require_rows(self.rows)
            require_cliques(self.models.cliques, facts)
        else:
            require_rows_at_hand(facts)
        return Need(
            (Selection,),
            lambda e: e.sensitivity >= Models.SENSITIVITY and e.k <= self.models.size,
            f"{self.models.size} models, whose scores move by {Models.SENSITIVITY} units",
            (self.models.size,),
        )

    def exact(self, rows: Tables, event: Selection) -> Counts:
        """One score for each model."""
        if self.models.scorers is not None:
            return task_scores(self.models, rows.records(self.held_out, inside=True))
        tables = rows.marginals(self.models.cliques)
        return divergence_scores(self.models, tables, self.rows, rows.facts.relation)

    def decode(self, drawn: Counts, facts: Facts) -> tuple[int, ...]:
        """Positions."""
        return tuple(int(i) for i in drawn)
