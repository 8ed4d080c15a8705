"""Draws a graph from released degrees and edges between blocks and classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy._types import Rng, Whole
from understudy.models import Empirical
from understudy.models.graphs import closed, counted, fitted, matched, rewired
from understudy.players.base import (
    Answers,
    DataPlayer,
    Kind,
    Measured,
    MeasuredDegrees,
    MeasuredTriangles,
    Problem,
)


@dataclass(frozen=True, slots=True)
class Matching(DataPlayer[Empirical]):
    """A simple graph of as many edges as there seem to be; the model is the list of its edges."""

    sizes: tuple[int, ...]
    rows_sigma: float
    """The noise of the number of rows; 0 where that is public."""

    accepts = frozenset({Kind.TABLE, Kind.COARSENED, Kind.DEGREES, Kind.TRIANGLES})
    requires = frozenset({Kind.DEGREES})
    shows = Empirical

    def start(self, problem: Problem) -> Empirical:
        """One edge: nothing is known."""
        return Empirical.of(problem.shape, np.zeros((1, len(problem.shape)), np.int64))

    def view(self, problem: Problem, state: Empirical) -> Empirical:
        """The graph so far."""
        return state

    def respond(self, problem: Problem, state: Empirical, answers: Answers, rng: Rng) -> Empirical:
        """The graph that the measurements describe; a later one changes it by swaps."""
        pairs, pair_sigma = None, 0.0
        degrees, degree_sigma, named = np.zeros(sum(self.sizes)), 1.0, None
        for answer in answers:
            if isinstance(answer, MeasuredDegrees) and answer.named:
                named = answer.values
            elif isinstance(answer, MeasuredDegrees):
                degrees, degree_sigma = answer.values, answer.sigma
            elif isinstance(answer, Measured) and answer.labels is not None:
                return self._swapped(problem, state, answer, answer.labels[0], answers, rng)
            elif isinstance(answer, Measured):
                pairs, pair_sigma = answer.values, answer.sigma
        edges = counted(problem.rows, self.rows_sigma, degrees, degree_sigma, pairs, pair_sigma)
        between = np.full((1, 1), float(edges)) if pairs is None else pairs
        numbers = fitted(degrees, degree_sigma, between, pair_sigma, self.sizes, edges, rng, named)
        return self._graph(problem, *matched(*numbers, self.sizes, rng))

    def _swapped(
        self,
        problem: Problem,
        state: Empirical,
        answer: Measured,
        labels: Whole,
        answers: Answers,
        rng: Rng,
    ) -> Empirical:
        # Which end of an edge is named first says nothing: the two halves of the table are added up.
        table = np.asarray(answer.values, float)
        wanted = np.triu(table + np.triu(table.T, 1))
        u, v = (np.asarray(codes, np.int64) for codes in state.codes[:2])
        u, v = rewired(u, v, self.sizes, labels, wanted, answer.sigma * 2**0.5, rng)
        for each in answers:
            if isinstance(each, MeasuredTriangles):
                u, v = closed(u, v, self.sizes, labels, each.value, each.sigma, rng)
        return self._graph(problem, u, v)

    def _graph(self, problem: Problem, u: Whole, v: Whole) -> Empirical:
        block = np.repeat(np.arange(len(self.sizes)), self.sizes)
        return Empirical.of(problem.shape, np.stack([u, v, block[u], block[v]], axis=1))

    def finish(self, problem: Problem, state: Empirical) -> Empirical:
        """The graph."""
        return state
