"""The exponential mechanism over huge classes: every cell of every marginal, and its complement.

Cells with equal scores are one bucket. The largest of m equal scores with independent Gumbel(b)
noise is one score with b·ln m added, so drawing a bucket and then a cell uniformly inside it is the
exponential mechanism over all cells. Buckets in turn are drawn in two steps, a group and a member, by
the same fact with log-sum-exp. Both additions are rounded to integers, so that exact integer samplers
can draw:

    P(cell) ∝ exp(s'(cell)/b),  |s'(cell) − s(cell)| ≤ 1/2 + 1/2 (+ float error far below 1)

which *is* the exponential mechanism for scores s'. They move by at most 2 more than s does, and the
charge is made for `SCORE_SENSITIVITY` = `UNIT` + 3: rounding is paid for, not assumed away.

Scores are c − n·ĉ/m in rows, in units of 1/`UNIT`; ĉ counts the m public records in the cell, n is
public. A neighbour moves c by at most 1 under both relations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy._types import Floats, Whole
from understudy.errors import PrivacyError
from understudy.privacy.noise import Noise

UNIT = 1 << 16
"""Scores are integers in units of 1/65536 row."""

SCORE_SENSITIVITY = UNIT + 3
"""How far a neighbour moves the effective score of any cell or complement."""

MOST_NUMBERS = 1 << 63
"""Cells of all marginals together are below this, so that their numbers are 64-bit integers."""

MOST_ROWS = 1 << 33
"""Scores speak of at most so many rows. They are then below 2^50 units, where float64 keeps public
expected counts to within 1/2 of a unit and no difference of scores wraps."""

MOST_NOISE = 2.0**40
"""The largest scale: sums of b·ln(size) then stay below 2^46, far from where int64 and float64 end."""

_ALONE = 24
_SORTED = 1_000
_RUN = 2_000

_LISTED = 1_000  # Up to so many cells the free ones are listed; beyond, one is found by rejection


def pick(noise: Noise, scores: Whole, sizes: Floats, scale: float, draws: int) -> list[int]:
    """`draws` independent draws with P(i) ∝ sizes[i]·exp(scores[i]/scale), up to the rounding above.

    `sizes` are whole numbers above 0 (as floats: they may pass 2^63).
    """
    effective = scores + np.rint(scale * np.log(sizes)).astype(np.int64)
    order, edges = layout(effective)
    ordered = effective[order]
    # From each group's own best score, so that float64 loses nothing to how large scores are.
    peak = np.maximum.reduceat(ordered, edges[:-1])
    mass = np.exp((ordered - np.repeat(peak, np.diff(edges))) / scale)
    total = np.log(np.add.reduceat(mass, edges[:-1]))
    group_scores = peak + np.rint(scale * total).astype(np.int64)
    groups = np.array(noise.picks(group_scores, scale, draws), dtype=np.int64)
    members = np.zeros(draws, np.int64)
    for group in np.unique(groups).tolist():
        begin, end = int(edges[group]), int(edges[group + 1])
        if end - begin > 1:
            here = groups == group
            members[here] = noise.picks(ordered[begin:end], scale, int(here.sum()))
    return order[edges[groups] + members].tolist()


def clipped(counts: Whole) -> Whole:
    """Exact counts, cut off at `MOST_ROWS`: that moves no two values apart."""
    return np.minimum(counts, MOST_ROWS)


def layout(effective: Whole) -> tuple[Whole, Whole]:
    """(order, edges): group g is order[edges[g]:edges[g+1]].

    The `_SORTED` best come first and in order; of these the first `_ALONE` are groups by themselves
    and later groups grow by half. The others follow in runs, in no order. So few candidates are
    compared in the first step, and a large group is seldom drawn. The law does not depend on it.
    """
    best, rest = np.arange(effective.size), np.zeros(0, np.int64)
    if effective.size > _SORTED:
        parted = np.argpartition(-effective, _SORTED)
        best, rest = parted[:_SORTED], parted[_SORTED:]
    edges, width = [0], 1.0
    while edges[-1] < best.size:
        width = 1.0 if len(edges) <= _ALONE else max(width, 8.0) * 1.5
        edges.append(min(best.size, edges[-1] + int(width)))
    if rest.size:
        edges += [*range(best.size + _RUN, effective.size, _RUN), effective.size]
    order = np.concatenate([best[np.argsort(-effective[best], kind="stable")], rest])
    return order, np.array(edges, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class RecordSupport:
    """The cells that public records occupy, and what is left. Exact: never leaves `privacy/`.

    Records are added to it and none is taken away, so a game whose records grow counts each once.
    """

    records: int
    cells: Whole
    """In order; `often` records each, `counts` private rows each."""
    often: Whole
    counts: Whole
    left: Whole
    """How many cells of every count that occurs hold no record."""
    empty: float
    """How many cells hold neither a record nor a row."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The buckets of one selection, and what each stands for. Exact: never leaves `privacy/`."""

    scores: Whole
    sizes: Floats
    touched: Whole
    """The cells that some record occupies: one bucket each, first in order."""
    values: Whole
    """Then one bucket for every count that other occupied cells have, the last for empty cells."""
    kept: Whole
    """Which of all buckets, positive side, have any cell."""


class DataSupport:
    """The occupied cells of all marginals of a workload, in one numbering. Exact: never leaves.

    Marginal j owns the numbers from offsets[j] to offsets[j+1].
    """

    def __init__(self, sizes: Sequence[int], tables: Sequence[tuple[Whole, Whole]]) -> None:
        self.offsets = [0]
        for size in sizes:
            self.offsets.append(self.offsets[-1] + int(size))
        if self.offsets[-1] >= MOST_NUMBERS:
            raise PrivacyError("marginals have 2^63 cells or more in all")
        self._starts = np.array(self.offsets[:-1], dtype=np.int64)
        self.keys = np.concatenate(
            [keys + offset for (keys, _), offset in zip(tables, self.offsets, strict=False)]
        )
        self.counts = np.concatenate([counts for _, counts in tables])
        self._occupied = [keys.size for keys, _ in tables]
        self._order = np.argsort(self.counts, kind="stable")
        self._values, self._first, self._sizes = np.unique(
            self.counts[self._order], return_index=True, return_counts=True
        )

    def numbers(self, packed: Whole, first: int = 0) -> Whole:
        """Packed cells, one column per marginal from `first` on, in the common numbering."""
        return packed + self._starts[first : first + packed.shape[1]]

    def at(self, cells: Whole) -> Whole:
        """Exact counts of cells."""
        place = np.searchsorted(self.keys, cells)
        place[place == self.keys.size] = 0
        if not self.keys.size:
            return np.zeros(cells.size, np.int64)
        return np.where(self.keys[place] == cells, self.counts[place], 0)

    def touched(self, records: Whole, before: RecordSupport | None = None) -> RecordSupport:
        """With `records` (numbers, one row each) added to those `before`."""
        if before is None:
            none = np.zeros(0, np.int64)
            empty = float(self.offsets[-1]) - self.keys.size
            before = RecordSupport(0, none, none, none, self._sizes, empty)
        fresh, more = np.unique(records, return_counts=True)
        place = np.searchsorted(before.cells, fresh)
        known = place < before.cells.size
        known[known] = before.cells[place[known]] == fresh[known]
        often = before.often.copy()
        often[place[known]] += more[known]
        new, at = ~known, place[~known]
        counts = self.at(fresh[new])
        left = before.left.copy()
        np.subtract.at(left, np.searchsorted(self._values, counts[counts > 0]), 1)
        return RecordSupport(
            before.records + len(records),
            np.insert(before.cells, at, fresh[new]),
            np.insert(often, at, more[new]),
            np.insert(before.counts, at, counts),
            left,
            before.empty - float((counts == 0).sum()),
        )

    def candidates(self, touched: RecordSupport, n: int) -> Candidates:
        """Buckets of equal score for the signed differences to the records that touch cells."""
        expected = np.rint(UNIT * n * (touched.often / touched.records)).astype(np.int64)
        every = np.concatenate(
            [UNIT * clipped(touched.counts) - expected, UNIT * clipped(self._values), [0]]
        )
        sizes = np.concatenate(
            [np.ones(touched.cells.size), touched.left.astype(np.float64), [touched.empty]]
        )
        kept = np.nonzero(sizes > 0)[0]
        return Candidates(every[kept], sizes[kept], touched.cells, self._values, kept)

    def resolve(self, candidates: Candidates, bucket: int, noise: Noise) -> int:
        """A cell of the bucket, uniformly."""
        position = int(candidates.kept[bucket])
        touched = candidates.touched
        if position < touched.size:
            return int(touched[position])
        position -= touched.size
        if position < candidates.values.size:
            first, number = int(self._first[position]), int(self._sizes[position])
            while number > _LISTED:
                cell = int(self.keys[self._order[first + noise.below(number)]])
                if not _holds(touched, cell):
                    return cell
            alike = self.keys[self._order[first : first + number]]
            free = alike[~np.isin(alike, touched, assume_unique=True)]
            return int(free[noise.below(free.size)])
        if self.offsets[-1] <= _LISTED:
            every = np.arange(self.offsets[-1])
            free = every[~np.isin(every, np.concatenate([self.keys, touched]))]
            return int(free[noise.below(free.size)])
        while True:  # so many cells that nearly all are empty and free
            cell = noise.below(self.offsets[-1])
            if not _holds(self.keys, cell) and not _holds(touched, cell):
                return cell

    def split(self, cell: int) -> tuple[int, int]:
        """(marginal, packed cell) of a number."""
        marginal = int(np.searchsorted(self._starts, cell, side="right")) - 1
        return marginal, cell - self.offsets[marginal]

    def compared(self, records: Whole, first: int = 0) -> tuple[Whole, Whole, int]:
        """(counts, records) of every cell that a record occupies, and the largest count of another.

        `records` holds numbers, one column for each marginal from `first` on.
        """
        ends = np.array([self.offsets[first], self.offsets[first + records.shape[1]]])
        own = slice(*np.searchsorted(self.keys, ends).tolist())
        touched, often = np.unique(records.reshape(-1), return_counts=True)
        rest = self.counts[own][~np.isin(self.keys[own], touched, assume_unique=True)]
        return self.at(touched), often, int(rest.max(initial=0))


def _holds(ordered: Whole, value: int) -> bool:
    place = int(np.searchsorted(ordered, value))
    return place < ordered.size and int(ordered[place]) == value
