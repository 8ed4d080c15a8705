"""The exponential mechanism over all queries of a workload of any classes, and their complements.

Score of a query: c − n·ĉ/m against the data player's distribution; of its complement the negative.
Sensitivity 1 row. Cost per round: one pick, ε0²/8 in zCDP. Queries are listed, so there may be millions
of them and not more; workloads of marginals alone have `CellPicker`.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.players.base import Answer, Kind, PickedQuery, Problem, View
from understudy.players.query.cells import CellPicker
from understudy.privacy.gate import Gate
from understudy.privacy.products import ProductQueries
from understudy.privacy.questions import PickedQueries
from understudy.queries import Family

__all__ = ["QueryPicker"]


@dataclass(frozen=True, slots=True, eq=False)
class QueryPicker:
    """One query of any family a round, where the data player is most wrong."""

    rounds: int
    families: tuple[Family, ...]
    products: tuple[ProductQueries, ...]

    PICK = CellPicker.PICK

    gives = frozenset({Kind.PICKED_QUERY})
    needs = ()

    @classmethod
    def over(cls, rounds: int, families: tuple[Family, ...], shape: tuple[int, ...]) -> QueryPicker:
        """With the matrices of all literals, made once."""
        return cls(rounds, families, tuple(family.products(shape) for family in families))

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> tuple[Answer, ...]:
        """See `QueryPlayer.play`."""
        expected = [
            problem.rows * each.answers(view.marginal(each.clique)) for each in self.products
        ]
        picked = gate.ask(self.PICK, PickedQueries(self.products, expected))
        return tuple(
            PickedQuery(family.clique, family.query(pick.index, problem.shape), pick.sign)
            for pick in picked
            for family in (self.families[pick.products],)
        )
