"""Cells: contiguous intervals that cut an ordered domain, and what a comparison does to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cells", "Masks"]

Masks = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""`(inner, outer)`: cells all of whose points satisfy a predicate; cells some of whose do."""


@dataclass(frozen=True, eq=False)
class Cells:
    """Cell i holds the points from `lows[i]` to `highs[i]`, both included.

    The points are all integers in between (int64 arrays) or all doubles (float64 arrays). Cells
    are sorted, disjoint and not empty.
    """

    lows: NDArray[Any]
    highs: NDArray[Any]

    def __len__(self) -> int:
        return len(self.lows)

    @property
    def discrete(self) -> bool:
        """Whether the points are integers."""
        return self.lows.dtype.kind == "i"

    def clip(self, points: NDArray) -> NDArray:
        """The nearest point inside the domain."""
        return np.clip(points, self.lows[0], self.highs[-1])

    def find(self, points: NDArray) -> NDArray[np.intp]:
        """The cell of each point; a point outside the domain falls into the nearest cell."""
        if self.discrete and int(self.highs[-1]) - int(self.lows[0]) == len(self) - 1:
            return self.clip(points) - self.lows[0]
        return np.maximum(np.searchsorted(self.lows, points, side="right") - 1, 0)

    def draw(self, cells: NDArray, rng: np.random.Generator) -> NDArray:
        """One point of each cell, uniformly."""
        lows, highs = self.lows[cells], self.highs[cells]
        if self.discrete:
            return rng.integers(lows, highs, endpoint=True)
        return np.clip(lows + rng.random(len(cells)) * (highs - lows), lows, highs)

    def among(self, literals: Sequence[Fraction]) -> Masks:
        """Cells whose points are among the literals."""
        inner, outer = np.zeros(len(self), np.bool_), np.zeros(len(self), np.bool_)
        points = set(literals)
        if self.discrete:
            held = np.zeros(len(self), np.int64)
            for point in points:
                if point.denominator == 1 and self.lows[0] <= point.numerator <= self.highs[-1]:
                    held[self.find(np.array([point.numerator], np.int64))] += 1
            outer = held > 0
            for cell in np.flatnonzero(outer):  # in Python's integers: a width can exceed int64
                inner[cell] = held[cell] == int(self.highs[cell]) - int(self.lows[cell]) + 1
            return inner, outer
        for point in (float(literal) for literal in points):
            touched = (self.lows <= point) & (point <= self.highs)
            outer |= touched
            inner |= touched & (self.lows == self.highs)
        return inner, outer

    def ordered(self, op: str, literal: Fraction) -> Masks:
        """Cells on one side of a literal; `op` is one of < <= > >=."""
        if self.discrete:
            below = ceil(literal) - 1 if op in ("<", ">=") else floor(literal)
            inner, outer = self.highs <= below, self.lows <= below
        else:
            bound = float(literal)
            if op in ("<", ">="):
                inner, outer = self.highs < bound, self.lows < bound
            else:
                inner, outer = self.highs <= bound, self.lows <= bound
        return (inner, outer) if op in ("<", "<=") else (~outer, ~inner)
