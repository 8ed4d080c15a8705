"""A data player that holds the maximum-entropy distribution of everything measured so far.

Repeated measurements of a table are merged by inverse variance. The view also tells how far each answer
moved the model, by which AIM sets its noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from understudy._types import Clique, Rng, Table
from understudy.models import Decomposable, Measured, View, simplex
from understudy.players.base import Answers, DataPlayer, Kind, Problem


@dataclass(frozen=True, slots=True)
class Move:
    """One answer after the first round, and what it did."""

    clique: Clique
    sigma: float
    cells: int
    moved: float
    """Σ |n·p_after − n·p_before| over the cells of the clique."""

    @property
    def noise(self) -> float:
        """What the noise alone adds up to, σ·√(2/π) a cell."""
        return math.sqrt(2 / math.pi) * self.sigma * self.cells


@dataclass(frozen=True, eq=False)
class EntropyModel(View):
    """The current model, all that was measured, and what each answer did: state and view."""

    model: Decomposable
    measured: tuple[Measured, ...] = ()
    moves: tuple[Move, ...] = ()
    potentials: Any = field(default=None, repr=False)

    def marginal(self, clique: Clique) -> Table:
        """The model's."""
        return self.model.marginal(clique)


@dataclass(frozen=True, slots=True)
class MaximumEntropy(DataPlayer[EntropyModel]):
    """Refits after every round, from where the last fit ended.

    One-way answers alone have a closed form: independent columns.
    """

    iterations: int = 1000

    accepts = frozenset({Kind.TABLE})
    shows = EntropyModel

    def start(self, problem: Problem) -> EntropyModel:
        """Uniform."""
        return EntropyModel(Decomposable.independent(problem.uniform))

    def view(self, problem: Problem, state: EntropyModel) -> EntropyModel:
        """The state: all of it was released, or follows from what was."""
        return state

    def respond(
        self, problem: Problem, state: EntropyModel, answers: Answers, rng: Rng
    ) -> EntropyModel:
        """Add the answers, refit, and say how far the measured tables moved."""
        fresh = tuple(answer for answer in answers if isinstance(answer, Measured))
        if not fresh:
            return state
        measured = _merged((*state.measured, *fresh))
        model, potentials = self._fit(problem, measured, state.potentials)
        moves = state.moves
        if state.measured:
            moves += tuple(_move(problem.rows, each, state.model, model) for each in fresh)
        return EntropyModel(model, measured, moves, potentials)

    def finish(self, problem: Problem, state: EntropyModel) -> Decomposable:
        """The current model."""
        return state.model

    def _fit(
        self, problem: Problem, measured: tuple[Measured, ...], start: Any
    ) -> tuple[Decomposable, Any]:
        if all(len(m.clique) == 1 for m in measured):
            tables = problem.uniform
            for m in measured:
                tables[m.clique[0]] = simplex(m.values, problem.rows)
            return Decomposable.independent(tables), None
        from understudy.models.graphical import fit

        return fit(problem.shape, measured, problem.rows, iterations=self.iterations, start=start)


def _move(rows: int, answer: Measured, before: Decomposable, after: Decomposable) -> Move:
    change = after.marginal(answer.clique) - before.marginal(answer.clique)
    moved = rows * float(np.abs(change).sum())
    return Move(answer.clique, float(answer.sigma), change.size, moved)


def _merged(measured: tuple[Measured, ...]) -> tuple[Measured, ...]:
    """One table per clique: means by inverse variance."""
    together: dict[Clique, list[Measured]] = {}
    for each in measured:
        together.setdefault(each.clique, []).append(each)
    return tuple(
        parts[0] if len(parts) == 1 else _mean(clique, parts) for clique, parts in together.items()
    )


def _mean(clique: Clique, parts: list[Measured]) -> Measured:
    precision = sum(each.sigma**-2 for each in parts)
    values = sum(np.asarray(each.values, np.float64) * each.sigma**-2 for each in parts) / precision
    return Measured(clique, np.asarray(values), precision**-0.5)
