"""Values that no term tells apart, folded into one.

Between the terms of a history, two codes of an attribute that lie in the same literals are the same:
they form an *atom*. A history of a few hundred cells over thousands of one-hot positions has few atoms:
each mentioned code, and all others together. Oracles solve the problem over atoms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy._types import Whole
from understudy.oracles.history import History, Records, offsets


@dataclass(frozen=True, eq=False)
class Atoms:
    """A partition of every attribute's codes. An atom has a position, as one-hot codes have.

    `start[a]..start[a+1]` are the positions of attribute a; `of[p]` is the atom of one-hot position p;
    `sizes[q]` counts the codes of atom q, and `members` lists one-hot positions, atom after atom.
    `terms` are those of non-zero weight, with codes of atoms in place of codes of values.
    """

    shape: tuple[int, ...]
    start: Whole
    of: Whole
    sizes: Whole
    members: Whole
    terms: History

    @classmethod
    def of_history(cls, history: History) -> Atoms:
        """The coarsest runs: cut where a literal begins or ends; runs in no literal become one atom.

        Runs inside literals keep their order, so that a literal is an interval of atoms again.
        """
        begin = offsets(history.shape)
        length = int(begin[-1])
        attribute = np.repeat(np.arange(len(history.shape)), history.shape)
        live = history.weights != 0
        columns, low, high, negated = (part[live] for part in history.parts)
        used = columns >= 0
        lows, highs = begin[np.maximum(columns, 0)] + low, begin[np.maximum(columns, 0)] + high
        first, last = lows[used], highs[used]
        depth = (
            np.bincount(first, minlength=length) - np.bincount(last + 1, minlength=length + 1)[:-1]
        )
        covered = np.cumsum(depth) > 0
        cut = np.zeros(length + 1, np.bool_)
        cut[first] = cut[last + 1] = cut[begin] = True
        opens = (cut[:-1] & covered).astype(np.int64)
        runs = np.add.reduceat(opens, begin[:-1])
        rest = np.add.reduceat(~covered, begin[:-1], dtype=np.int64) > 0
        start = np.concatenate([[0], np.cumsum(runs + rest)])
        rank = np.cumsum(opens) - 1 - (np.cumsum(runs) - runs)[attribute]
        of = start[attribute] + np.where(covered, rank, runs[attribute])
        code = of - start[attribute]
        literals = np.stack([columns, code[lows], code[highs], negated], axis=2, dtype=np.int64)
        shape = tuple(int(size) for size in np.diff(start))
        terms = History(shape, literals, history.weights[live])
        sizes = np.bincount(of, minlength=int(start[-1]))
        return cls(history.shape, start, of, sizes, np.argsort(of, kind="stable"), terms)

    @property
    def first(self) -> Whole:
        """Where the codes of every atom begin in `members`."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def positions(self) -> int:
        """The number of atoms of all attributes together."""
        return len(self.sizes)

    def fold(self, records: Records) -> Whole:
        """Records with codes of atoms in place of codes of values."""
        return self.of[records + offsets(self.shape)[:-1]] - self.start[:-1]

    def guesses(self, warm: Records | None) -> Whole:
        """Warm records, one per perturbation, with codes of atoms; no row where there are none."""
        return np.empty((0, len(self.shape)), np.int64) if warm is None else self.fold(warm)
