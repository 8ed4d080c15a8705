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
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from understudy.models import Decomposable
from understudy.models.decomposable import project
from understudy.players.base import Answer, MeasuredCell, Problem

__all__ = ["MultiplicativeWeights"]

# A measured share is kept off 0 and 1, from where no later answer could move it.
_FLOOR = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The log-weights, the running sum of distributions and the answers so far."""

    log_weights: NDArray[np.float64]
    total: NDArray[np.float64]
    plays: int
    answers: tuple[MeasuredCell, ...]

    def marginal(self, clique: tuple[int, ...]) -> NDArray[np.float64]:
        """See `View.marginal`."""
        p = _softmax(self.log_weights)
        return project(tuple(range(p.ndim)), p, clique)


@dataclass(frozen=True, slots=True)
class MultiplicativeWeights:
    """`rounds` sets η for answers without measurement; `replays` passes over all measured ones."""

    rounds: int
    replays: int = 4

    def start(self, problem: Problem) -> Weights:
        """Uniform over the universe."""
        zeros = np.zeros(problem.shape)
        return Weights(zeros, np.zeros(problem.shape), 0, ())

    def view(self, problem: Problem, state: Weights) -> Weights:
        """The current distribution."""
        return replace(state, log_weights=_log_normalised(state.log_weights))

    def respond(
        self,
        problem: Problem,
        state: Weights,
        answers: tuple[Answer, ...],
        rng: np.random.Generator,
    ) -> Weights:
        """One update per answer, and replays of the measured ones."""
        total = state.total + _softmax(state.log_weights)
        log_w = state.log_weights.copy()
        known = state.answers
        for answer in answers:
            if not isinstance(answer, MeasuredCell):
                continue
            if answer.value is None:
                eta = math.sqrt(8 * math.log(max(log_w.size, 2)) / self.rounds)
                log_w[_inside(answer)] += eta * answer.cell.sign
            else:
                known = (*known, answer)
                log_w = self._replay(problem, log_w, known)
        return Weights(_log_normalised(log_w), total, state.plays + 1, known)

    def _replay(
        self, problem: Problem, log_w: NDArray[np.float64], known: tuple[MeasuredCell, ...]
    ) -> NDArray[np.float64]:
        p = _softmax(log_w)
        targets = _pooled(known)
        for _ in range(max(1, self.replays)):
            for answer, value in targets:
                share = min(max(value / problem.rows, _FLOOR), 1 - _FLOOR)
                where = _inside(answer)
                mass = min(max(float(p[where].sum()), _FLOOR), 1 - _FLOOR)
                outside = (1 - share) / (1 - mass)
                p *= outside
                p[where] *= (share / mass) / outside
                # Where the cell had no mass left to scale, the rest takes all of it.
                p /= p.sum()
        with np.errstate(divide="ignore"):
            return np.log(p)

    def finish(self, problem: Problem, state: Weights) -> Decomposable:
        """The last distribution of a measured game, the average of an unmeasured one."""
        if state.answers or state.plays == 0:
            return Decomposable.joint(_softmax(state.log_weights))
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


def _inside(answer: MeasuredCell) -> tuple[int | slice, ...]:
    columns = max(answer.clique) + 1
    where: list[int | slice] = [slice(None)] * columns
    for column, code in zip(answer.clique, answer.cell.index, strict=True):
        where[column] = code
    return tuple(where)


def _log_normalised(log_w: NDArray[np.float64]) -> NDArray[np.float64]:
    top = log_w.max()
    return log_w - (top + math.log(np.exp(log_w - top).sum()))


def _softmax(log_w: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.exp(_log_normalised(log_w))
