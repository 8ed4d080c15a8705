"""The exponential mechanism over the queries of a workload: one pick a round, where it is worst.

A query's score is how far the rows are from the data player, in rows: |c − n·p|, or ±(c − n·p) with
the side picked together with the query (reading the side afterwards would leak). Scores move by one
row under both relations. Cost per round: one selection, ε0²/8-zCDP by bounded range, and one Gaussian
count where the pick is measured as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy._types import Clique
from understudy.models import Empirical
from understudy.players.base import Answers, Kind, MeasuredCell, PickedQuery, Problem, View
from understudy.privacy.gate import Gate
from understudy.privacy.products import ProductQueries
from understudy.privacy.questions import CellCounts, PickedCells, PickedQueries, WorstCell
from understudy.queries import Family


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

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`."""
        expected = [problem.rows * view.marginal(clique) for clique in problem.cliques]
        signed = self.sigma is None
        cell = gate.ask(self.SELECT, WorstCell(problem.cliques, expected, signed))
        clique = problem.cliques[cell.marginal]
        if self.sigma is None:
            return (MeasuredCell(clique, cell),)
        (value,) = gate.ask(self.MEASURE, CellCounts(problem.cliques, [cell]))
        return (MeasuredCell(clique, cell, float(value), self.sigma),)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyVertex:
    """One signed cell a round: a noisy vertex of conv(±Q), of cells that are tabulated once."""

    rounds: int
    products: tuple[ProductQueries, ...]

    SELECT = "select a vertex"

    gives = frozenset({Kind.PICKED_CELL})
    needs = ()

    @classmethod
    def over(cls, rounds: int, cliques: tuple[Clique, ...], shape: tuple[int, ...]) -> NoisyVertex:
        """All cells of these marginals; the gate knows them again from round to round."""
        return cls(rounds, tuple(Family(clique).products(shape) for clique in cliques))

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`."""
        expected = [problem.rows * view.marginal(each.clique) for each in self.products]
        picks = gate.ask(self.SELECT, PickedQueries(self.products, expected))
        return tuple(MeasuredCell(self.products[pick.marginal].clique, pick) for pick in picks)


@dataclass(frozen=True, slots=True)
class CellPicker:
    """One cell, or its complement, a round, where listed records are most wrong; never tabulated."""

    rounds: int

    PICK = "pick a query"

    gives = frozenset({Kind.PICKED_CELL})
    needs = (Empirical,)

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`."""
        assert isinstance(view, Empirical)  # by `needs`
        picks = PickedCells(problem.cliques, view.codes, problem.rows, every_complement=False)
        cells = gate.ask(self.PICK, picks)
        return tuple(MeasuredCell(problem.cliques[cell.marginal], cell) for cell in cells)


@dataclass(frozen=True, slots=True, eq=False)
class QueryPicker:
    """One query of any family, or its complement, a round, where the data player is most wrong."""

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

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """See `QueryPlayer.play`."""
        expected = [
            problem.rows * each.answers(view.marginal(each.clique)) for each in self.products
        ]
        picked = gate.ask(self.PICK, PickedQueries(self.products, expected))
        families = [self.families[pick.marginal] for pick in picked]
        return tuple(
            PickedQuery(family.clique, family.query(pick.index, problem.shape), pick.sign)
            for pick, family in zip(picked, families, strict=True)
        )
