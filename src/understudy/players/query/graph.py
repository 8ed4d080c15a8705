"""Measures a graph in one round: sorted degrees, and edges between blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.players.base import Answer, Measured, MeasuredDegrees, Problem, View
from understudy.privacy.curator import Curator

__all__ = ["DegreesAndBlocks"]


@dataclass(frozen=True, slots=True)
class DegreesAndBlocks:
    """The degrees of every block's nodes, sorted, and the table of edges between blocks.

    The columns of the table are those of an edge: two ends, and their blocks. `sizes` are the blocks'.
    `pair_sigma` is None where there is one block: then its edges are all edges.
    """

    sizes: tuple[int, ...]
    degree_sigma: float
    pair_sigma: float | None
    rounds: int = 1

    DEGREES = "degrees"
    PAIRS = "edges between blocks"

    def play(
        self, problem: Problem, curator: Curator, view: View, round: int
    ) -> tuple[Answer, ...]:
        """Both measurements; what is asked is public."""
        groups = np.repeat(np.arange(len(self.sizes)), self.sizes)
        degrees = MeasuredDegrees(curator.degrees(self.DEGREES, (0, 1), groups), self.degree_sigma)
        if self.pair_sigma is None:
            return (degrees,)
        (table,) = curator.measure(self.PAIRS, [(2, 3)])
        return degrees, Measured((2, 3), table, self.pair_sigma)
