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

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.privacy.noise import Noise

__all__ = ["SCORE_SENSITIVITY", "UNIT", "Candidates", "Occupied", "pick"]

UNIT = 1 << 16
"""Scores are integers in units of 1/65536 row."""

SCORE_SENSITIVITY = UNIT + 3
"""How far a neighbour moves the effective score of any cell or complement."""

Integers = NDArray[np.int64]


def pick(
    noise: Noise, scores: Integers, sizes: NDArray[np.float64], scale: float, draws: int
) -> list[int]:
    """`draws` independent draws with P(i) ∝ sizes[i]·exp(scores[i]/scale), up to the rounding above.

    `sizes` are whole numbers above 0 (as floats: they may pass 2^63).
    """
    effective = scores + np.rint(scale * np.log(sizes)).astype(np.int64)
    width = max(1, math.isqrt(effective.size))
    groups = -(-effective.size // width)
    top = int(effective.max())
    # Pad the last group with candidates that have no mass; they are dropped again before drawing.
    padded = np.full(groups * width, -np.inf)
    padded[: effective.size] = (effective - top) / scale
    block = padded.reshape(groups, width)
    peak = block.max(axis=1)
    mass = peak + np.log(np.exp(block - peak[:, None]).sum(axis=1))
    group_scores = np.rint(scale * mass).astype(np.int64) + top
    picked: list[int] = []
    for _ in range(draws):
        (group,) = noise.top_k(group_scores, scale, 1)
        members = effective[group * width : (group + 1) * width]
        (member,) = noise.top_k(np.ascontiguousarray(members), scale, 1)
        picked.append(group * width + member)
    return picked


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The buckets of one selection, and what each stands for. Exact: never leaves `privacy/`."""

    scores: Integers
    sizes: NDArray[np.float64]
    touched: Integers
    """The cells that some record occupies: one bucket each, first in order."""
    values: Integers
    """Then one bucket for every count that other occupied cells have, the last for empty cells."""
    kept: Integers
    """Which of all buckets, positive side, have any cell."""


class Occupied:
    """The occupied cells of all marginals of a workload, in one numbering. Exact: never leaves.

    Marginal j owns the numbers from offsets[j] to offsets[j+1].
    """

    def __init__(self, sizes: Sequence[int], tables: Sequence[tuple[Integers, Integers]]) -> None:
        self.offsets = [0]
        for size in sizes:
            self.offsets.append(self.offsets[-1] + int(size))
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

    def numbers(self, packed: Integers) -> Integers:
        """Packed cells, one column per marginal, in the common numbering."""
        return packed + self._starts

    def at(self, cells: Integers) -> Integers:
        """Exact counts of cells."""
        place = np.searchsorted(self.keys, cells)
        place[place == self.keys.size] = 0
        if not self.keys.size:
            return np.zeros(cells.size, np.int64)
        return np.where(self.keys[place] == cells, self.counts[place], 0)

    def candidates(self, records: Integers, n: int) -> Candidates:
        """Buckets of equal score for the signed differences to `records` (numbers, m per marginal)."""
        size = records.shape[0]
        touched, often = np.unique(records.reshape(-1), return_counts=True)
        counts = self.at(touched)
        scores = UNIT * counts - np.rint(UNIT * n * (often / size)).astype(np.int64)
        left = self._sizes.copy()
        np.subtract.at(left, np.searchsorted(self._values, counts[counts > 0]), 1)
        empty = float(self.offsets[-1]) - self.keys.size - float((counts == 0).sum())
        every = np.concatenate([scores, UNIT * self._values, [0]])
        sizes = np.concatenate([np.ones(touched.size), left.astype(np.float64), [empty]])
        kept = np.nonzero(sizes > 0)[0]
        return Candidates(every[kept], sizes[kept], touched, self._values, kept)

    def resolve(self, candidates: Candidates, bucket: int) -> int:
        """A cell of the bucket, uniformly; cryptographic and exact."""
        position = int(candidates.kept[bucket])
        touched = candidates.touched
        if position < touched.size:
            return int(touched[position])
        position -= touched.size
        if position < candidates.values.size:
            first, number = int(self._first[position]), int(self._sizes[position])
            return self._free(
                touched, lambda: int(self.keys[self._order[first + secrets.randbelow(number)]])
            )
        return self._free(touched, self._empty)

    def _empty(self) -> int:
        """An unoccupied cell, uniformly, by rejection."""
        while True:
            cell = secrets.randbelow(self.offsets[-1])
            place = int(np.searchsorted(self.keys, cell))
            if place == self.keys.size or int(self.keys[place]) != cell:
                return cell

    @staticmethod
    def _free(touched: Integers, draw: Callable[[], int]) -> int:
        while True:
            cell = draw()
            place = int(np.searchsorted(touched, cell))
            if place == touched.size or int(touched[place]) != cell:
                return cell

    def split(self, cell: int) -> tuple[int, int]:
        """(marginal, packed cell) of a number."""
        marginal = int(np.searchsorted(self._starts, cell, side="right")) - 1
        return marginal, cell - self.offsets[marginal]

    def worst(self, records: Integers, n: int) -> int:
        """max over all cells of |M·c − n·ĉ|, M the number of records."""
        size = records.shape[0]
        touched, often = np.unique(records.reshape(-1), return_counts=True)
        counts = self.at(touched)
        worst = int(np.abs(size * counts - n * often).max(initial=0))
        rest = self.counts[~np.isin(self.keys, touched, assume_unique=True)]
        return max(worst, size * int(rest.max(initial=0)))
