"""The exponential mechanism over all cells of the workload and their complements, of any size.

Score of a cell: c − n·ĉ/m against the m records of the data player; of its complement the negative.
Sensitivity 1 row. Cost per round: one pick, ε0²/8 in zCDP. Cells are never tabulated, so marginals with
10¹¹ cells are as good as small ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.errors import WorkError
from understudy.models import Empirical
from understudy.players.base import Answer, Kind, MeasuredCell, Problem, View
from understudy.privacy.gate import Gate
from understudy.privacy.questions import PickedCells

__all__ = ["CellPicker"]


@dataclass(frozen=True, slots=True)
class CellPicker:
    """One query a round, where the data player's records are most wrong."""

    rounds: int

    PICK = "pick a query"

    gives = frozenset({Kind.PICKED_CELL})
    needs = (Empirical,)

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        if not isinstance(view, Empirical):
            raise WorkError("the cell picker plays against a data player of listed records")
        picks = PickedCells(problem.cliques, view.codes, problem.rows, every_complement=False)
        cells = gate.ask(self.PICK, picks)
        return tuple(MeasuredCell(problem.cliques[cell.marginal], cell) for cell in cells)
