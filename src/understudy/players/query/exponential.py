"""The exponential mechanism over all cells of the workload, with or without a measurement.

Scores are |c − n·p| per cell (unsigned) or ±(c − n·p) with the side selected together with the cell
(signed), sensitivity 1. Cost per round: one selection, and one Gaussian count where `sigma` is given.
The mechanism is ε0²/8-zCDP by bounded range.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.players.base import Answer, Kind, MeasuredCell, Problem, View
from understudy.privacy.gate import Gate
from understudy.privacy.questions import CellCounts, WorstCell

__all__ = ["ExponentialMechanism"]


@dataclass(frozen=True, slots=True)
class ExponentialMechanism:
    """Selects one cell a round. `sigma = None` selects without measuring, then signed."""

    rounds: int
    sigma: float | None

    SELECT = "select a cell"
    MEASURE = "measure the cell"

    needs = ()

    @property
    def gives(self) -> frozenset[Kind]:
        """Counts where it measures, otherwise sides."""
        return frozenset({Kind.PICKED_CELL if self.sigma is None else Kind.CELL})

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        expected = [problem.rows * view.marginal(clique) for clique in problem.cliques]
        signed = self.sigma is None
        cell = gate.ask(self.SELECT, WorstCell(problem.cliques, expected, signed))
        clique = problem.cliques[cell.marginal]
        if self.sigma is None:
            return (MeasuredCell(clique, cell),)
        (value,) = gate.ask(self.MEASURE, CellCounts(problem.cliques, [cell]))
        return (MeasuredCell(clique, cell, float(value), self.sigma),)
