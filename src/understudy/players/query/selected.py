"""All columns and pairs once, then, round by round, the marginals that are farthest off, again.

A candidate's score is ‖c − n·p‖₁ − Σ_cells min(penalty·σ, n·p), p the data player's table: its error,
less what noise would put in its place on cells that hold rows. The exponential mechanism (one-shot
Gumbel) takes the best `picks` of a round, which are then measured whole with noise σ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.players.base import Answer, Clique, Kind, Measured, Problem, View
from understudy.players.query.survey import Survey
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Marginals, WorstMarginals

__all__ = ["WorstAgain"]


@dataclass(frozen=True, slots=True)
class WorstAgain:
    """`first` measures columns and pairs; then `again` rounds of `picks` candidates, at `sigma`."""

    first: Survey
    candidates: tuple[Clique, ...]
    sigma: float
    picks: int
    again: int
    penalty: float

    SELECT = "select the worst"
    AGAIN = "measure the worst"

    gives = frozenset({Kind.TABLE, Kind.COARSENED})
    needs = ()

    @property
    def rounds(self) -> int:
        """Those of the first look, and one for every selection."""
        return self.first.rounds + (self.again if self.candidates else 0)

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        if round < self.first.rounds:
            return self.first.play(problem, gate, view, round)
        references = [problem.rows * view.marginal(clique) for clique in self.candidates]
        penalties = [float(np.minimum(self.penalty * self.sigma, r).sum()) for r in references]
        numbers = gate.ask(self.SELECT, WorstMarginals(self.candidates, references, penalties))
        chosen = [self.candidates[number] for number in numbers]
        tables = gate.ask(self.AGAIN, Marginals(chosen))
        return tuple(
            Measured(clique, table, self.sigma)
            for clique, table in zip(chosen, tables, strict=True)
        )
