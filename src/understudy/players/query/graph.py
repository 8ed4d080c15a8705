"""Measures a graph in two rounds: degrees and edges between blocks, then between classes of degrees."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.models.graphs import classes
from understudy.players.base import (
    Answers,
    Kind,
    Measured,
    MeasuredDegrees,
    MeasuredTriangles,
    Problem,
    View,
)
from understudy.privacy.coarsened import Coarsened
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Degrees, Marginals, Triangles


@dataclass(frozen=True, slots=True)
class DegreesAndBlocks:
    """The degrees of every block's nodes, sorted; every node's own; edges between blocks, and classes.

    The columns of the table are those of an edge: two ends, and their blocks. `sizes` are the blocks'.
    `pair_sigma` is None where there is one block: then its edges are all edges. Classes are cut by the
    degrees of the graph that was drawn in the first round, so they are public when their edges are
    counted: an edge is one of one count. `triangle_sigma` is None where triangles are not asked for.
    """

    sizes: tuple[int, ...]
    degree_sigma: float
    name_sigma: float
    class_sigma: float
    pair_sigma: float | None
    triangle_sigma: float | None = None
    rounds: int = 2

    DEGREES = "degrees"
    NAMES = "degrees by name"
    PAIRS = "edges between blocks"
    CLASSES = "edges between classes of degrees"
    TRIANGLES = "triangles"
    PURPOSES = (DEGREES, NAMES, PAIRS, CLASSES, TRIANGLES)

    gives = frozenset({Kind.TABLE, Kind.COARSENED, Kind.DEGREES, Kind.TRIANGLES})
    needs = ()

    def play(self, problem: Problem, gate: Gate, view: View, round: int) -> Answers:
        """What is asked is public, or follows from what was released."""
        if round == 1:
            labels = classes(view.marginal((0,)) + view.marginal((1,)))
            (table,) = gate.ask(self.CLASSES, Marginals([Coarsened((0, 1), (labels, labels))]))
            mixture = Measured((0, 1), table, self.class_sigma, (labels, labels))
            if self.triangle_sigma is None:
                return (mixture,)
            closed = gate.ask(self.TRIANGLES, Triangles((0, 1)))
            return mixture, MeasuredTriangles(closed, self.triangle_sigma)
        groups = np.repeat(np.arange(len(self.sizes)), self.sizes)
        nobody = np.arange(len(groups))  # groups of one: nothing is sorted
        found: Answers = (
            MeasuredDegrees(gate.ask(self.DEGREES, Degrees((0, 1), groups)), self.degree_sigma),
            MeasuredDegrees(gate.ask(self.NAMES, Degrees((0, 1), nobody)), self.name_sigma, True),
        )
        if self.pair_sigma is None:
            return found
        (table,) = gate.ask(self.PAIRS, Marginals([(2, 3)]))
        return (*found, Measured((2, 3), table, self.pair_sigma))
