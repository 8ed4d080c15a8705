"""The noisy vertex of Frank-Wolfe: the signed cell that the current distribution misses most.

The polytope is the convex hull of ±q over the cells q of the workload, 2|Q| vertices. A round is the
linear minimisation of Frank-Wolfe on the entropic dual, s_t = argmax_{s in ±q} ⟨s, c − n·p_t⟩ + Gumbel,
with q and side drawn together: reading the side afterwards would leak. Scores move by 1 under both
relations. Cost per round: one selection, ε0²/8-zCDP by bounded range.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.players.base import Answer, MeasuredCell, Problem, View
from understudy.privacy.curator import Curator

__all__ = ["NoisyVertex"]


@dataclass(frozen=True, slots=True)
class NoisyVertex:
    """One signed cell a round."""

    rounds: int

    SELECT = "select a vertex"

    def play(
        self, problem: Problem, curator: Curator, view: View, round: int
    ) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        expected = [problem.rows * view.marginal(clique) for clique in problem.cliques]
        cell = curator.select_cell(self.SELECT, problem.cliques, expected, signed=True)
        return (MeasuredCell(problem.cliques[cell.marginal], cell),)
