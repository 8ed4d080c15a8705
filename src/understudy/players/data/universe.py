"""Data players over a universe that is written out, row by possible row.

`MultiplicativeWeights` (docs/methods/mwem.md) projects onto every measured answer, and replays all
earlier ones by the mean of their values; towards answers without measurement it takes steps of η = √(8
ln|X|/T), and the result is the average over rounds. `SoftmaxResponse` (docs/methods/frankwolfe.md)
answers a convex combination q of queries by softmax(q/α), which minimises ⟨q, p_D − p⟩ + α·Σ p ln p
over distributions p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from understudy._types import Clique, Rng, Table
from understudy.models import Decomposable, View
from understudy.models.decomposable import project
from understudy.players.base import Answers, DataPlayer, Kind, MeasuredCell, Problem

_FLOOR = 1e-9  # A measured share is kept off 0 and 1, from where no later answer could move it
_RANGE = 1e60  # Weights are normalised again before their sum leaves this range


@dataclass(frozen=True, slots=True, eq=False)
class Universe(View):
    """A joint table as a view. Tables that many cliques sum to on their way are kept."""

    p: Table
    _sums: dict[Clique, Table] = field(default_factory=dict, repr=False)

    def marginal(self, clique: Clique) -> Table:
        """See `View.marginal`."""
        return self._sum(tuple(sorted(clique))).transpose(np.argsort(np.argsort(clique)))

    def _sum(self, clique: Clique) -> Table:
        """Sum out one column at a time, from the table that has the fewest left to sum out."""
        if len(clique) == self.p.ndim:
            return self.p
        if clique not in self._sums:
            above = self._above(clique)
            self._sums[clique] = project(above, self._sum(above), clique)
        return self._sums[clique]

    def _above(self, clique: Clique) -> Clique:
        # The columns left out are added back smallest first, so cliques share the large sums.
        shape = self.p.shape
        left_out = [i for i in range(len(shape)) if i not in clique]
        return tuple(sorted((*clique, min(left_out, key=lambda i: (shape[i], i)))))


def inside(answer: MeasuredCell) -> tuple[Any, ...]:
    """Where in the universe the rows of a cell lie; indexing with it gives a view."""
    where: list[Any] = [slice(None)] * (max(answer.clique) + 1)
    for column, code in zip(answer.clique, answer.cell.index, strict=True):
        where[column] = code
    return (*where, ...)


def log_softmax(logits: Table) -> Table:
    """log of exp(logits)/Σ exp(logits), without overflow."""
    top = float(logits.max())
    return logits - (top + math.log(np.exp(logits - top).sum()))


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The log-weights (normalised), the running sum of distributions and the answers so far."""

    log_weights: Table
    total: Table
    plays: int
    answers: tuple[MeasuredCell, ...]


@dataclass(frozen=True, slots=True)
class MultiplicativeWeights(DataPlayer[Weights]):
    """`rounds` sets η for answers without measurement; `replays` passes over all measured ones."""

    rounds: int
    replays: int = 4

    accepts = frozenset({Kind.CELL, Kind.PICKED_CELL})
    shows = Universe

    def start(self, problem: Problem) -> Weights:
        """Uniform over the universe."""
        return Weights(log_softmax(np.zeros(problem.shape)), np.zeros(problem.shape), 0, ())

    def view(self, problem: Problem, state: Weights) -> Universe:
        """The current distribution."""
        return Universe(np.exp(state.log_weights))

    def respond(self, problem: Problem, state: Weights, answers: Answers, rng: Rng) -> Weights:
        """One update per answer, and replays of the measured ones."""
        cells = [answer for answer in answers if isinstance(answer, MeasuredCell)]
        log_w = state.log_weights.copy()
        for answer in cells:
            if answer.value is None:
                eta = math.sqrt(8 * math.log(max(log_w.size, 2)) / self.rounds)
                log_w[inside(answer)] += eta * answer.cell.sign
        fresh = tuple(answer for answer in cells if answer.value is not None)
        known = state.answers + fresh
        total = state.total
        if fresh:
            with np.errstate(divide="ignore"):
                log_w = np.log(self._replay(problem, np.exp(log_softmax(log_w)), known))
        elif not known:
            total = total + np.exp(state.log_weights)
        return Weights(log_softmax(log_w), total, state.plays + 1, known)

    def _replay(self, problem: Problem, p: Table, known: tuple[MeasuredCell, ...]) -> Table:
        """Project onto every measurement in turn, a few times over; changes `p` and returns it.

        Only the weights inside the cell are touched: with w(x) unnormalised and W their sum, cell
        mass m goes to share s by the factor s(1−m)/(m(1−s)) on them, and W follows.
        """
        targets = [
            (p[inside(answer)], min(max(value / problem.rows, _FLOOR), 1 - _FLOOR))
            for answer, value in _pooled(known)
        ]
        for _ in range(max(1, self.replays)):
            p /= p.sum()
            total = 1.0
            for part, share in targets:
                held = float(part.sum())
                mass = min(max(held / total, _FLOOR), 1 - _FLOOR)
                factor = share * (1 - mass) / (mass * (1 - share))
                part *= factor
                total += held * (factor - 1)
                if not 1 / _RANGE < total < _RANGE:
                    p /= p.sum()
                    total = 1.0
        return p

    def finish(self, problem: Problem, state: Weights) -> Decomposable:
        """The last distribution of a measured game, the average of an unmeasured one."""
        if state.answers or state.plays == 0:
            return Decomposable.joint(np.exp(state.log_weights))
        return Decomposable.joint(state.total / state.plays)


def _pooled(known: tuple[MeasuredCell, ...]) -> list[tuple[MeasuredCell, float]]:
    """Every measured cell once, the last measured first, with the mean of its values by 1/σ²."""
    sums: dict[tuple[object, ...], tuple[MeasuredCell, float, float]] = {}
    for answer in reversed(known):
        assert answer.value is not None
        weight = 1.0 / (answer.sigma or 1.0) ** 2
        key = (answer.clique, answer.cell.index)
        first, value, total = sums.get(key, (answer, 0.0, 0.0))
        sums[key] = (first, value + weight * answer.value, total + weight)
    return [(first, value / total) for first, value, total in sums.values()]


@dataclass(frozen=True, slots=True, eq=False)
class Combination:
    """q_t over the universe, how many answers it holds, and the sum of the kept p_t."""

    query: Table
    plays: int
    total: Table
    kept: int


@dataclass(frozen=True, slots=True)
class SoftmaxResponse(DataPlayer[Combination]):
    """`alpha` weighs the entropy, `gamma` ≤ 1 is the step; rounds from `keep_from` on are averaged."""

    alpha: float
    gamma: float
    keep_from: int = 0

    accepts = frozenset({Kind.PICKED_CELL})
    shows = Universe

    def start(self, problem: Problem) -> Combination:
        """q_0 = 0: uniform."""
        return Combination(np.zeros(problem.shape), 0, np.zeros(problem.shape), 0)

    def distribution(self, query: Table) -> Table:
        """softmax(q/α), in the log domain."""
        return np.exp(log_softmax(query / self.alpha))

    def view(self, problem: Problem, state: Combination) -> Universe:
        """p_t."""
        return Universe(self.distribution(state.query))

    def respond(
        self, problem: Problem, state: Combination, answers: Answers, rng: Rng
    ) -> Combination:
        """Keep p_t for the average and move q_t towards the vertices."""
        total, kept = state.total, state.kept
        if state.plays >= self.keep_from:
            total, kept = total + self.distribution(state.query), kept + 1
        query = state.query
        for answer in answers:
            if isinstance(answer, MeasuredCell):
                query = (1 - self.gamma) * query
                query[inside(answer)] += self.gamma * answer.cell.sign
        return Combination(query, state.plays + 1, total, kept)

    def finish(self, problem: Problem, state: Combination) -> Decomposable:
        """The average of the kept distributions; before any was kept, the current one."""
        if state.kept == 0:
            return Decomposable.joint(self.distribution(state.query))
        return Decomposable.joint(state.total / state.kept)
