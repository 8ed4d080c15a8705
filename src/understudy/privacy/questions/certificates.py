"""How wrong fixed synthetic rows are: the worst error, and the total variation of every marginal.

With M synthetic rows, fixed and public, ĉ their counts and n the public number of rows (the exact one
where it is private), everything is computed from M·c − n·ĉ.

**Worst error.** K = max |M·c − n·ĉ| over all cells, or over all queries of some classes; the answer is
⌈L·K/M⌉ + Z with discrete Laplace noise, L the `l1` of the planned event: errors in units of 1/L row. A
query is a 0/1 function of a row and 0 ≤ ĉ ≤ M, so a neighbour moves M·c − n·ĉ by at most M (by
M·q(x) − ĉ where n moves too), hence K by M and the answer by L.

**Total variations.** ⌈2·Σ_cells |M·c − n·ĉ| / M⌉ for every marginal, before rounding 4·n·TV, with
discrete Gaussian noise. A neighbour moves each by at most `variation_step`.

M·c may pass 64 bits for tables beyond 2·10⁹ rows, so differences are kept in two parts. Counts and n
are cut off at 2^44 there: that moves no two of them apart, so what a neighbour moves stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from understudy._types import Clique, Whole
from understudy.privacy.cost import Gaussian, Laplace
from understudy.privacy.exact import Tables, answers
from understudy.privacy.gate import Facts, Need
from understudy.privacy.products import ProductQueries
from understudy.privacy.questions.requests import (
    Codes,
    Noised,
    NoisedOne,
    gaussian,
    require_classes,
    require_cliques,
    require_numbered,
    require_records,
    require_synthetic,
)
from understudy.privacy.relation import Relation

VARIATION_GRID = 2
"""Sums of absolute errors are multiples of half a row: coarse enough to be accounted exactly."""

# Cells of records that are held at once.
_CHUNK_CELLS = 8_000_000
_LOW = 20  # bits of the lower part
_MOST = 2**44


def variation_step(relation: Relation, *, rows_public: bool) -> int:
    """How far a neighbour moves one entry of `TotalVariations`."""
    return VARIATION_GRID * relation.total_variation_steps(rows_public=rows_public)


_WORST = Need((Laplace,), lambda e: True, "the worst error", (1,))
"""Any `Laplace`: its l1 is the lattice."""


def _answer(event: Laplace, worst: int, size: int) -> Whole:
    """⌈L·K/M⌉, cut off, which moves no two values apart; an error beyond int64 would tell of K."""
    return np.array([min(-(-event.l1 * worst // size), 2**61)], np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _OfTables:
    """Over all cells of `cliques`, given the tables of `size` synthetic rows."""

    cliques: Sequence[Clique]
    synthetic: Sequence[Whole]
    size: int

    def _require(self, facts: Facts) -> None:
        require_cliques(self.cliques, facts)
        require_synthetic(self.cliques, self.synthetic, self.size, facts)

    def _apart(self, rows: Tables) -> Iterator[tuple[Whole, Whole]]:
        """M·c − n·ĉ of every table, in two parts."""
        n = rows.total()
        for table, fixed in zip(rows.tables(self.cliques), self.synthetic, strict=True):
            yield apart(self.size, table, n, fixed)


@dataclass(frozen=True, slots=True, eq=False)
class WorstError(_OfTables, NoisedOne):
    """The worst error of a cell."""

    def need(self, facts: Facts) -> Need:
        """Any `Laplace`: its l1 is the lattice."""
        self._require(facts)
        return _WORST

    def exact(self, rows: Tables, event: Laplace) -> Whole:
        """⌈L·K/M⌉."""
        return _answer(event, max(largest(*parts) for parts in self._apart(rows)), self.size)


@dataclass(frozen=True, slots=True, eq=False)
class WorstQueryError(NoisedOne):
    """Over all queries of `classes`, given the synthetic rows' tables, one per class."""

    classes: Sequence[ProductQueries]
    synthetic: Sequence[Whole]
    size: int

    def need(self, facts: Facts) -> Need:
        """Any `Laplace`: its l1 is the lattice."""
        require_classes(self.classes, facts)
        cliques = [each.clique for each in self.classes]
        require_synthetic(cliques, self.synthetic, self.size, facts)
        return _WORST

    def exact(self, rows: Tables, event: Laplace) -> Whole:
        """⌈L·K/M⌉."""
        fixed = answers(self.classes, self.synthetic)
        difference = apart(self.size, rows.answers(self.classes), rows.total(), fixed)
        return _answer(event, largest(*difference), self.size)


@dataclass(frozen=True, slots=True, eq=False)
class WorstErrorOfRows(NoisedOne):
    """Over all cells of `cliques`, given the synthetic rows, for marginals too large to tabulate."""

    cliques: Sequence[Clique]
    records: Sequence[Codes]

    def need(self, facts: Facts) -> Need:
        """Any `Laplace`: its l1 is the lattice."""
        require_numbered(self.cliques, facts)
        require_records(self.records, facts)
        return _WORST

    def exact(self, rows: Tables, event: Laplace) -> Whole:
        """⌈L·K/M⌉, from the cells that rows or records occupy."""
        codes = require_records(self.records, rows.facts)
        occupied, n, worst = rows.occupied(self.cliques), rows.total(), 0
        step = max(1, _CHUNK_CELLS // codes.shape[1])
        for first in range(0, len(self.cliques), step):
            packed = rows.packed(self.cliques[first : first + step], codes)
            counts, often, rest = occupied.compared(occupied.numbers(packed, first), first)
            worst = max(worst, largest(*apart(codes.shape[1], counts, n, often)))
            worst = max(worst, codes.shape[1] * rest)
        return _answer(event, worst, codes.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class TotalVariations(_OfTables, Noised):
    """One for each of `cliques`, in quarters of n·TV."""

    def need(self, facts: Facts) -> Need:
        """`variation_step`, one change for each marginal."""
        self._require(facts)
        step = variation_step(facts.relation, rows_public=facts.rows_public is not None)
        count = len(self.cliques)
        words = f"{count} total variations, each of which moves by {step}"
        return gaussian(step, count, words, count)

    def exact(self, rows: Tables, event: Gaussian) -> Whole:
        """⌈2·Σ |M·c − n·ĉ| / M⌉."""
        sums = [absolute(*parts) for parts in self._apart(rows)]
        return np.array([-(-VARIATION_GRID * s // self.size) for s in sums], np.int64)


def apart(size: int, counts: Whole, n: int, fixed: Whole) -> tuple[Whole, Whole]:
    """(high, low) with size·counts − n·fixed = 2^20·high + low, 0 ≤ low < 2^20.

    For a size up to `MOST_SYNTHETIC` = 2^38, of which no part passes 2^62 + 2^39.
    """
    mask = (1 << _LOW) - 1
    counts, n = np.minimum(counts, _MOST), min(n, _MOST)
    whole = np.asarray(fixed, np.int64)
    low = size * (counts & mask) - (n & mask) * whole
    high = size * (counts >> _LOW) - (n >> _LOW) * whole
    return high + (low >> _LOW), low & mask


def largest(high: Whole, low: Whole) -> int:
    """The largest absolute value of numbers in two parts; 0 for none."""
    if not high.size:
        return 0
    most, least = int(high.max()), int(high.min())
    top = (most << _LOW) + int(low[high == most].max())
    bottom = (least << _LOW) + int(low[high == least].min())
    return max(top, -bottom)


def absolute(high: Whole, low: Whole) -> int:
    """The sum of the absolute values of numbers in two parts."""
    below, mask = high < 0, (1 << _LOW) - 1
    sums = [
        (int((high[at] >> _LOW).sum()) << 2 * _LOW)
        + (int((high[at] & mask).sum()) << _LOW)
        + int(low[at].sum())
        for at in (~below, below)
    ]
    return sums[0] - sums[1]
