"""Multiplicative weights over the whole universe, for universes that can be enumerated.

Measured answers (MWEM): the mass of the selected cell is moved to its measured share m,
p(x) ← p(x)·m/q(p) inside and p(x)·(1−m)/(1−q(p)) outside, the exact projection of which the update
p(x)·exp(q(x)(m − q(p))/2) of Hardt, Ligett and McSherry is one small step, and all earlier answers
are replayed the same way; a cell that was measured again counts with the mean of its values. The last
distribution is the result.

Answers without measurement (signed selection): p(x) ← p(x)·exp(η·s·q(x)), η = √(8 ln|X|/T), and the
result is the average over rounds: max error ≤ √(ln|X|/(2T)) + (2/(n ε0)) ln(|Q|T/β) with probability
1−β.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.models import Decomposable
from understudy.players.base import Answer, DataPlayer, Kind, MeasuredCell, Problem
from understudy.players.data.universe import Universe, inside, log_softmax

__all__ = ["MultiplicativeWeights"]

# A measured share is kept off 0 and 1, from where no later answer could move it.
_FLOOR = 1e-9
# Weights are normalised again before their sum leaves this range.
_RANGE = 1e60


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The log-weights (normalised), the running sum of distributions and the answers so far."""

    log_weights: NDArray[np.float64]
    total: NDArray[np.float64]
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

    def respond(
        self,
        problem: Problem,
        state: Weights,
        answers: tuple[Answer, ...],
        rng: np.random.Generator,
    ) -> Weights:
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

    def _replay(
        self, problem: Problem, p: NDArray[np.float64], known: tuple[MeasuredCell, ...]
    ) -> NDArray[np.float64]:
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
