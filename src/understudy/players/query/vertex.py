"""The noisy vertex of Frank-Wolfe: the signed cell that the current distribution misses most.

The polytope is the convex hull of ±q over the cells q of the workload, 2|Q| vertices. A round is the
linear minimisation of Frank-Wolfe on the entropic dual, s_t = argmax_{s in ±q} ⟨s, c − n·p_t⟩ + Gumbel,
with q and side drawn together: reading the side afterwards would leak. Scores move by 1 under both
relations. Cost per round: one selection, ε0²/8-zCDP by bounded range.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.players.base import Answer, Clique, Kind, MeasuredCell, Problem, View
from understudy.privacy.gate import Gate
from understudy.privacy.products import ProductQueries
from understudy.privacy.questions import Cell, PickedQueries
from understudy.queries import Family

__all__ = ["NoisyVertex"]


@dataclass(frozen=True, slots=True, eq=False)
class NoisyVertex:
    """One signed cell a round."""

    rounds: int
    products: tuple[ProductQueries, ...]

    SELECT = "select a vertex"

    gives = frozenset({Kind.PICKED_CELL})
    needs = ()

    @classmethod
    def over(cls, rounds: int, cliques: tuple[Clique, ...], shape: tuple[int, ...]) -> NoisyVertex:
        """All cells of these marginals; the gate knows them again from round to round."""
        return cls(rounds, tuple(Family(clique).products(shape) for clique in cliques))

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        expected = [problem.rows * view.marginal(each.clique) for each in self.products]
        return tuple(
            MeasuredCell(
                self.products[pick.products].clique, Cell(pick.products, pick.index, pick.sign)
            )
            for pick in gate.ask(self.SELECT, PickedQueries(self.products, expected))
        )
