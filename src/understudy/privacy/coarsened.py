"""Marginal tables after merging values: a public map of codes, then a count.

A row still lies in exactly one cell, so a merged table moves under a neighbour exactly as a whole one
does (see `understudy.privacy.relation`), with fewer cells for the same noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy._types import Clique, Whole
from understudy.errors import PrivacyError


@dataclass(frozen=True, eq=False, slots=True)
class Coarsened:
    """The marginal of `clique` in which value v of column k is counted as `labels[k][v]`."""

    clique: Clique
    labels: tuple[Whole, ...]

    def __post_init__(self) -> None:
        if not self.clique or len(self.labels) != len(self.clique):
            raise PrivacyError(f"{len(self.clique)} columns need as many arrays of labels")
        kept: list[Whole] = []
        for column, labels in zip(self.clique, self.labels, strict=True):
            array = np.array(labels)
            if array.ndim != 1 or not array.size or not np.issubdtype(array.dtype, np.integer):
                raise PrivacyError(f"the labels of column {column} must be a list of integers")
            used = np.sort(array)
            if used[0] != 0 or np.any(np.diff(used) > 1):
                raise PrivacyError(f"the labels of column {column} must be 0 to m − 1, all used")
            array = array.astype(np.int64)
            array.setflags(write=False)
            kept.append(array)
        object.__setattr__(self, "clique", tuple(self.clique))
        object.__setattr__(self, "labels", tuple(kept))

    @property
    def domain(self) -> tuple[int, ...]:
        """Values per column before merging."""
        return tuple(array.size for array in self.labels)

    @property
    def shape(self) -> tuple[int, ...]:
        """Values per column after it."""
        return tuple(int(array.max()) + 1 for array in self.labels)

    def table(self, counts: Whole) -> Whole:
        """Sum a whole table down to the merged one."""
        merged = np.asarray(counts)
        if merged.shape != self.domain:
            raise PrivacyError(f"the labels of {self.clique} do not fit a table of {merged.shape}")
        for axis, labels in enumerate(self.labels):
            size = int(labels.max()) + 1
            if size == labels.size and (labels[1:] > labels[:-1]).all():
                continue
            order = np.argsort(labels, kind="stable")
            starts = np.searchsorted(labels[order], np.arange(size))
            moved = np.moveaxis(merged, axis, 0)[order]
            merged = np.moveaxis(np.add.reduceat(moved, starts, axis=0), 0, axis)
        return np.ascontiguousarray(merged)

    def summed(self, cells: Whole, counts: Whole) -> Whole:
        """The merged table from the occupied cells of the whole one, for tables too large to hold."""
        places = np.unravel_index(cells, self.domain)
        merged = np.zeros(self.shape, np.int64)
        labels = tuple(each[at] for each, at in zip(self.labels, places, strict=True))
        np.add.at(merged, labels, counts)
        return merged


def clique_of(table: Clique | Coarsened) -> Clique:
    """The columns of a table, whole or merged."""
    return table.clique if isinstance(table, Coarsened) else table
