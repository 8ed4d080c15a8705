"""The softmax response to a convex combination of queries: Frank-Wolfe on the entropic dual.

The data player minimises over distributions p the regularised payoff of a query q in conv(±Q),
⟨q, p_D − p⟩ + α·H(p) with H(p) = Σ p ln p; the minimiser is

    p = softmax(q/α),   and   ψ(q) = α·ln Σ_x exp(q(x)/α) − ⟨q, p_D⟩

is the function that Frank-Wolfe minimises: ∇ψ(q) = p − p_D, and ψ is 1/α-smooth in L∞ because negative
entropy is 1-strongly convex in L1 (Pinsker). With vertices s_t = ±q chosen by the query player,

    q_0 = 0,   p_t = softmax(q_t/α),   q_{t+1} = (1 − γ)·q_t + γ·s_t,

and the result is the average of the last p_t. For γ/α fixed and α → 0 this is multiplicative weights
with step γ/α.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.models import Decomposable
from understudy.players.base import Answer, DataPlayer, Kind, MeasuredCell, Problem
from understudy.players.data.universe import Universe, inside, log_softmax

__all__ = ["SoftmaxResponse"]


@dataclass(frozen=True, slots=True, eq=False)
class Combination:
    """q_t over the universe, how many answers it holds, and the sum of the kept p_t."""

    query: NDArray[np.float64]
    plays: int
    total: NDArray[np.float64]
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

    def distribution(self, query: NDArray[np.float64]) -> NDArray[np.float64]:
        """softmax(q/α), in the log domain."""
        return np.exp(log_softmax(query / self.alpha))

    def view(self, problem: Problem, state: Combination) -> Universe:
        """p_t."""
        return Universe(self.distribution(state.query))

    def respond(
        self,
        problem: Problem,
        state: Combination,
        answers: tuple[Answer, ...],
        rng: np.random.Generator,
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
