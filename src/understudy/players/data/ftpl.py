"""Follow the perturbed leader, through an oracle over records.

Before round t the player holds the queries q_1, …, q_{t−1} that were picked against it. It plays s
records, each the best response to all of them under fresh noise:

    x_j = argmax_x  Σ_{i<t} w_i q_i(x) + <σ_j, onehot(x)>,    σ_j independent, one scale per attribute.

The noise is for stability, not for privacy: everything here is post-processing of released queries,
and a weak oracle costs accuracy only. Positive noise (`+σ`): with exponential noise the gap between
the best and the second best of g values has mean b; with `−σ` it would be b/(g−1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.models import Empirical
from understudy.oracles import Annealed, History, Law, LazyNoise, Literal, Oracle
from understudy.players.base import Answer, MeasuredCell, PickedQuery, Problem

__all__ = ["PerturbedLeader"]

Records = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Leader:
    """The queries so far, the records being played, and those kept for the result."""

    history: History
    records: Records
    kept: tuple[Records, ...]
    round: int


@dataclass(frozen=True, slots=True)
class PerturbedLeader:
    """s records a round; the rounds of the last part of the game are the result.

    Public rules, chosen with ADULT and LOANS in view: noise of scale `strength`·√T/(0.58 + ln g) for an
    attribute of g values; weight (t/T)^`discount` for the query of round t.
    """

    rounds: int
    samples: int = 300
    law: Law = Law.EXPONENTIAL
    strength: float = 0.5
    discount: float = -0.5
    keep: float = 0.5
    oracle: Oracle = field(default_factory=Annealed)

    def start(self, problem: Problem) -> Leader:
        """Before any query every record is as good as another: uniform, from a fixed public key."""
        rng = np.random.default_rng(0)
        columns = [rng.integers(0, size, self.samples) for size in problem.shape]
        records = np.stack(columns, axis=1)
        return Leader(History.empty(problem.shape), records, self._kept((), records, 0), 0)

    def view(self, problem: Problem, state: Leader) -> Empirical:
        """The records of this round."""
        return Empirical.of(problem.shape, state.records)

    def respond(
        self,
        problem: Problem,
        state: Leader,
        answers: tuple[Answer, ...],
        rng: np.random.Generator,
    ) -> Leader:
        """Add the query and play against all of them, unless the game is over."""
        played = state.round + 1
        weight = (played / self.rounds) ** self.discount
        history = state.history
        for answer in answers:
            if isinstance(answer, MeasuredCell):
                history = history.add(
                    answer.clique, answer.cell.index, weight, complement=answer.cell.sign < 0
                )
            elif isinstance(answer, PickedQuery):
                history = _add(history, answer, weight)
        if played >= self.rounds:
            return replace(state, history=history, round=played)
        noise = LazyNoise(self.law, self._scales(problem), self.samples)
        records = self.oracle.solve(history, noise, warm=state.records, rng=rng)
        return Leader(history, records, self._kept(state.kept, records, played), played)

    def finish(self, problem: Problem, state: Leader) -> Empirical:
        """All records of the kept rounds, equally weighted."""
        return Empirical.of(problem.shape, np.concatenate(state.kept or (state.records,)))

    def _kept(self, kept: tuple[Records, ...], records: Records, round: int) -> tuple[Records, ...]:
        first = math.floor(self.rounds * (1 - self.keep))
        return (*kept, records) if round >= first else kept

    def _scales(self, problem: Problem) -> tuple[float, ...]:
        unit = self.strength * math.sqrt(self.rounds)
        return tuple(unit / (0.58 + math.log(size)) for size in problem.shape)


def _add(history: History, picked: PickedQuery, weight: float) -> History:
    """A query of any class; its complement is the query at negative weight, up to a constant."""
    literals = [
        Literal(each.column, each.low, each.high, each.negated) for each in picked.query.conditions
    ]
    signed = weight if picked.sign > 0 else -weight
    match picked.query.rule:
        case "all":
            return history.add_conjunction(literals, signed)
        case "any":
            return history.add_disjunction(literals, signed)
        case _:
            return history.add_parity(literals, signed)
