"""Which cells, marginals or queries are farthest from public references, by the exponential mechanism.

Every score is a whole number on a grid; where the side of an error matters, (query, side) is selected
jointly, with scores c − ref and ref − c, otherwise the score is |c − ref|.

* `WorstCell`: a count moves by 1 under both relations, which is 16 on the grid.
* `WorstMarginals`: w_j·(Σ_cells |c − ref| − penalty), w_j = 1 without weights. A neighbour moves one
  cell by one, or two under replace, so the sensitivity in grid units is 16·max w (add-remove) or
  32·max w (replace). Scores may rise and fall: ε0 = 2·Δ/scale.
* `PickedQueries`: c counts the rows that satisfy a query, a 0/1 function of a row, so every score moves
  by at most 1 under both relations, with rounding to 1/65536 by `SCORE_SENSITIVITY` units.
* `PickedCells`: c − n·ĉ/m for a cell, where ĉ counts the m public records in it and n is a public
  number of rows, and the negative for its complement. Every score moves by 1, with rounding by
  `SCORE_SENSITIVITY` units. Marginals may have any number of cells: see `understudy.privacy.buckets`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from understudy._types import Clique, Table, Whole
from understudy.errors import PrivacyError
from understudy.privacy.buckets import MOST_NOISE, MOST_ROWS, SCORE_SENSITIVITY, UNIT, clipped
from understudy.privacy.cost import Selection
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import Buckets, independent, sparse, top
from understudy.privacy.products import ProductQueries
from understudy.privacy.questions.requests import (
    GRID,
    Cell,
    Codes,
    Positions,
    on_grid,
    require_classes,
    require_cliques,
    require_numbered,
    require_plain,
    require_records,
    require_references,
    require_rows,
    selection,
    shape_of,
)
from understudy.privacy.relation import Relation

LARGEST_WEIGHT = 4096
"""Weights of marginals are whole numbers up to this."""


def _on_sides(difference: Whole, signed: bool) -> Whole:
    """Candidates' scores: all, then all of them from the other side; or either side alike."""
    return np.concatenate([difference, -difference]) if signed else np.abs(difference)


def _places(
    drawn: Whole, shapes: Sequence[tuple[int, ...]], signed: bool
) -> Iterator[tuple[int, tuple[int, ...], int]]:
    """(table, index, side) of places in stacked tables, as `_on_sides` has them."""
    starts = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
    for number in drawn.tolist():
        side, place = divmod(number, int(starts[-1]))
        at = int(np.searchsorted(starts, place, side="right")) - 1
        index = np.unravel_index(place - int(starts[at]), shapes[at])
        yield at, tuple(int(i) for i in index), (1 - 2 * side) if signed else 0


@dataclass(frozen=True, slots=True, eq=False)
class WorstCell:
    """One cell, with its side if `signed`."""

    cliques: Sequence[Clique]
    references: Sequence[Table]
    signed: bool = False

    mechanism = staticmethod(top)

    def need(self, facts: Facts) -> Need:
        """One row, one pick."""
        require_cliques(self.cliques, facts)
        require_references(self.cliques, self.references, [0.0] * len(self.cliques), facts)
        cells = sum(math.prod(shape_of(clique, facts)) for clique in self.cliques)
        words = f"cell scores, which move by {GRID}/{GRID}, one at a time"
        return selection(GRID, 1, words, cells * (1 + self.signed))

    def exact(self, rows: Tables, event: Selection) -> Whole:
        """All cells on the grid."""
        parts = zip(rows.marginals(self.cliques), self.references, strict=True)
        gaps = [(GRID * table - on_grid(reference)).reshape(-1) for table, reference in parts]
        return _on_sides(np.concatenate(gaps), self.signed)

    def decode(self, drawn: Whole, facts: Facts) -> Cell:
        """The cell at that place."""
        shapes = [shape_of(clique, facts) for clique in self.cliques]
        return Cell(*next(_places(drawn, shapes, self.signed)))


@dataclass(frozen=True, slots=True, eq=False)
class WorstMarginals(Positions):
    """The positions of k of `cliques`, in order."""

    cliques: Sequence[Clique]
    references: Sequence[Table]
    penalties: Sequence[float]
    weights: Sequence[int] | None = None

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
        count = len(self.cliques)
        return selection(moved, count, f"{count} L1 scores, which move by {moved}/{GRID}", count)

    def exact(self, rows: Tables, event: Selection) -> Whole:
        """One score for each marginal."""
        weights = self.weights or (1,) * len(self.cliques)
        tables = rows.tables(self.cliques)
        parts = zip(tables, self.references, self.penalties, weights, strict=True)
        scores = [
            w * (int(np.abs(GRID * table - on_grid(reference)).sum()) - round(GRID * penalty))
            for table, reference, penalty, w in parts
        ]
        return np.array(scores, np.int64)


def _picks(what: str, shape: tuple[int, ...] | None) -> Need:
    """One row, and what rounding adds."""
    return Need(
        (Selection,),
        lambda e: e.sensitivity >= SCORE_SENSITIVITY and e.scale <= MOST_NOISE,
        f"{what} scores, which move by {SCORE_SENSITIVITY} units",
        shape,
    )


@dataclass(frozen=True, slots=True, eq=False)
class PickedCells:
    """k independent picks over all cells and their complements: +1 for the cell, −1 for its complement.

    Without `every_complement` only cells that hold a record offer theirs, a public choice: no other
    can have a score above 0.
    """

    cliques: Sequence[Clique]
    records: Sequence[Codes]
    rows: int
    every_complement: bool = True

    mechanism = staticmethod(sparse)

    def need(self, facts: Facts) -> Need:
        """One row, and what rounding adds."""
        require_numbered(self.cliques, facts)
        require_records(self.records, facts)
        require_rows(self.rows)
        return _picks("cell", None)

    def exact(self, rows: Tables, event: Selection) -> Buckets:
        """Cells of equal score, in buckets."""
        codes = require_records(self.records, rows.facts)
        occupied = rows.occupied(self.cliques)
        candidates = occupied.candidates(rows.touched(self.cliques, codes), self.rows)
        every = candidates.scores.size
        return Buckets(
            occupied, candidates, every if self.every_complement else candidates.touched.size
        )

    def decode(self, drawn: Whole, facts: Facts) -> tuple[Cell, ...]:
        """Cells by their index."""
        cells: list[Cell] = []
        for marginal, packed, sign in drawn.tolist():
            index = np.unravel_index(packed, shape_of(self.cliques[marginal], facts))
            cells.append(Cell(marginal, tuple(int(i) for i in index), sign))
        return tuple(cells)


@dataclass(frozen=True, slots=True, eq=False)
class PickedQueries:
    """k independent picks over all queries of `classes`, with their sides if `signed`.

    Of a pick `marginal` is the class, and `index` the number of a literal for every column.
    """

    classes: Sequence[ProductQueries]
    references: Sequence[Table]
    signed: bool = True

    mechanism = staticmethod(independent)

    def need(self, facts: Facts) -> Need:
        """One row, and what rounding adds."""
        require_classes(self.classes, facts)
        require_plain(self.references, *self.references)
        if len(self.references) != len(self.classes):
            raise PrivacyError(f"{len(self.classes)} classes need as many references")
        for each, reference in zip(self.classes, self.references, strict=True):
            array = np.asarray(reference, dtype=np.float64)
            where = f"the reference of the queries on {each.clique}"
            if array.shape != each.shape:
                raise PrivacyError(f"{where} has shape {array.shape}, not {each.shape}")
            if not np.isfinite(array).all() or np.abs(array).max() > MOST_ROWS:
                raise PrivacyError(f"{where} is not finite or too large")
        queries = sum(each.size for each in self.classes)
        return _picks("query", (queries * (1 + self.signed),))

    def exact(self, rows: Tables, event: Selection) -> Whole:
        """All queries in units."""
        flat = np.concatenate([np.asarray(r, np.float64).reshape(-1) for r in self.references])
        counts = clipped(rows.answers(self.classes))
        return _on_sides(UNIT * counts - np.rint(UNIT * flat).astype(np.int64), self.signed)

    def decode(self, drawn: Whole, facts: Facts) -> tuple[Cell, ...]:
        """Queries by the numbers of their literals."""
        shapes = [each.shape for each in self.classes]
        return tuple(Cell(*place) for place in _places(drawn, shapes, self.signed))
