"""Follow the perturbed leader, through an oracle over records (docs/methods/fem.md).

Each of s records a round is the best response to all queries picked so far under fresh noise, which is
for stability, not for privacy: everything here is post-processing of released queries, and a weak
oracle costs accuracy only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Rng
from understudy.errors import WorkError
from understudy.models import Empirical
from understudy.oracles import Annealed, History, Law, LazyNoise, Oracle, Proofs
from understudy.players.base import (
    Answer,
    Answers,
    DataPlayer,
    Kind,
    MeasuredCell,
    PickedQuery,
    Problem,
)
from understudy.players.data.response import uniform_queries

Records = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Leader:
    """The queries so far, the records being played, and those kept for the result."""

    history: History
    records: Records
    kept: tuple[Records, ...]
    round: int
    proofs: Proofs = field(default_factory=Proofs)


@dataclass(frozen=True, slots=True)
class PerturbedLeader(DataPlayer[Leader]):
    """s records a round; the rounds of the last part of the game are the result.

    The query of round t comes to be satisfied by a share max(`step`, (1 + t·k/d)^−`decay`) more of
    the records, or by half of those that do not if that is fewer; d/k queries of k of d attributes
    touch each once. Noise has the scale 1/(0.58 + ln g) for an attribute of g values: weights adapt
    to it, so only the ratios of scales matter.
    """

    rounds: int
    samples: int = 300
    law: Law = Law.EXPONENTIAL
    step: float = 0.04
    decay: float = 1.5
    keep: float = 0.5
    oracle: Oracle = field(default_factory=Annealed)

    accepts = frozenset({Kind.PICKED_CELL, Kind.PICKED_QUERY})
    shows = Empirical

    def start(self, problem: Problem) -> Leader:
        """Before any query every record is as good as another: uniform, from a fixed public key."""
        rng = np.random.default_rng(0)
        columns = [rng.integers(0, size, self.samples) for size in problem.shape]
        records = np.stack(columns, axis=1)
        return Leader(History.empty(problem.shape), records, self._kept((), records, 0), 0)

    def view(self, problem: Problem, state: Leader) -> Empirical:
        """The records of this round."""
        return Empirical.of(problem.shape, state.records)

    def respond(self, problem: Problem, state: Leader, answers: Answers, rng: Rng) -> Leader:
        """Add the query and play against all of them, unless the game is over."""
        played = state.round + 1
        if played >= self.rounds:
            return replace(state, round=played)
        noise = LazyNoise(self.law, self._scales(problem), self.samples)
        order = max(len(clique) for clique in problem.cliques)
        step = max(self.step, (1 + played * order / len(problem.shape)) ** -self.decay)
        history, records, late = state.history, state.records, False
        for answer in answers:
            query = _query(problem.shape, answer)
            if not query.terms:
                continue
            known = Leader(history, records, (), played)
            history, records, slow = self._learn(known, query, noise, step, rng)
            late |= slow
        kept = self._kept(state.kept, records, played)
        return Leader(history, records, kept, played, state.proofs.after(late))

    def finish(self, problem: Problem, state: Leader) -> Empirical:
        """All records of the kept rounds, equally weighted."""
        return Empirical.of(problem.shape, np.concatenate(state.kept or (state.records,)))

    def most_rounds(self) -> int:
        """Later queries would not be learned from."""
        return self.rounds

    def diagnostics(self, state: Leader) -> dict[str, int]:
        """How often an oracle that proves its records ran out of time."""
        return state.proofs.diagnostics(self.oracle)

    def _learn(
        self, known: Leader, query: History, noise: LazyNoise, step: float, rng: Rng
    ) -> tuple[History, Records, bool]:
        """(history with the query, the records it leads to, whether a proof was late)."""
        pair = self.oracle.split(known.history, query, noise, warm=known.records, rng=rng)
        share = float((pair.gap <= 0).mean())
        weight = pair.weight(min(share + step, (1 + share) / 2))
        return known.history.plus(query, weight), pair.at(weight), pair.late

    def _kept(self, kept: tuple[Records, ...], records: Records, round: int) -> tuple[Records, ...]:
        first = math.floor(self.rounds * (1 - self.keep))
        return (*kept, records) if round >= first else kept

    def _scales(self, problem: Problem) -> tuple[float, ...]:
        return tuple(1 / (0.58 + math.log(size)) for size in problem.shape)


@dataclass(frozen=True, slots=True)
class UnitLeader(PerturbedLeader):
    """The perturbed leader as published: every query has weight 1, every coordinate noise of `scale`.

    q_0, a cell or its complement drawn uniformly from a fixed public key, comes first. The records of
    all rounds are the result.
    """

    keep: float = 1.0
    scale: float = 1.0

    def start(self, problem: Problem) -> Leader:
        """The response to q_0."""
        rng = np.random.default_rng(0)
        (first,) = uniform_queries(problem, 1, rng)
        history = History.empty(problem.shape).plus(_query(problem.shape, first), 1.0)
        noise = LazyNoise(self.law, self._scales(problem), self.samples)
        records, late = self.oracle.best(history, noise, rng=rng)
        return Leader(history, records, (records,), 0, Proofs().after(late))

    def _learn(
        self, known: Leader, query: History, noise: LazyNoise, step: float, rng: Rng
    ) -> tuple[History, Records, bool]:
        history = known.history.plus(query, 1.0)
        return history, *self.oracle.best(history, noise, warm=known.records, rng=rng)

    def _scales(self, problem: Problem) -> tuple[float, ...]:
        return (self.scale,) * len(problem.shape)


def _query(shape: tuple[int, ...], answer: Answer) -> History:
    """What was picked, as 1 on the records that satisfy it and 0 on the others."""
    nothing = History.empty(shape)
    if isinstance(answer, MeasuredCell):
        complement = answer.cell.sign < 0
        return nothing.add(answer.clique, answer.cell.index, complement=complement)
    if not isinstance(answer, PickedQuery):
        raise WorkError("the perturbed leader plays against picked queries, not measured tables")
    query = nothing.add_query(answer.query)
    return query if answer.sign > 0 else replace(nothing, constant=1.0).plus(query, -1.0)
