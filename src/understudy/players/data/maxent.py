"""A data player that holds the maximum-entropy distribution of everything measured so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.models import Decomposable, Measured, simplex
from understudy.players.base import Answer, DataPlayer, Kind, Problem

__all__ = ["MaximumEntropy"]

State = tuple[tuple[Measured, ...], Decomposable]


@dataclass(frozen=True, slots=True)
class MaximumEntropy(DataPlayer[State]):
    """Refits after every round. One-way answers alone have a closed form: independent columns."""

    iterations: int = 1000

    accepts = frozenset({Kind.TABLE})
    shows = Decomposable

    def start(self, problem: Problem) -> State:
        """Uniform."""
        uniform = [np.full(size, 1.0 / size) for size in problem.shape]
        return (), Decomposable.independent(uniform)

    def view(self, problem: Problem, state: State) -> Decomposable:
        """The current model."""
        return state[1]

    def respond(
        self,
        problem: Problem,
        state: State,
        answers: tuple[Answer, ...],
        rng: np.random.Generator,
    ) -> State:
        """Add the answers and refit."""
        fresh = tuple(answer for answer in answers if isinstance(answer, Measured))
        if not fresh:
            return state
        measured = state[0] + fresh
        return measured, self._fit(problem, measured)

    def finish(self, problem: Problem, state: State) -> Decomposable:
        """The current model."""
        return state[1]

    def _fit(self, problem: Problem, measured: tuple[Measured, ...]) -> Decomposable:
        if all(len(m.clique) == 1 for m in measured):
            tables = [np.full(size, 1.0 / size) for size in problem.shape]
            for m in measured:
                tables[m.clique[0]] = simplex(m.values, problem.rows)
            return Decomposable.independent(tables)
        from understudy.models.graphical import fit

        model, _ = fit(problem.shape, measured, problem.rows, iterations=self.iterations)
        return model
