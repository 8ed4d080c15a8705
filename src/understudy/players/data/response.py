"""The best response to sampled queries: the data player of DualQuery and DQRS.

Every round answers the sampled queries S_t with records that satisfy most of them, found by an oracle
without perturbation (docs/methods/dualquery.md). Ties are broken by the queries of the rounds before,
released already, which in all weigh half of one query of S_t. In a round without answers, the first
above all, S_t is `samples` draws from the uniform law over all cells and complements; answers beyond
`samples` are cut to a random subset of that size.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from understudy._types import Clique, Floats, Rng, Whole
from understudy.models import Decomposable, Empirical, View
from understudy.oracles import Annealed, History, Law, LazyNoise, Oracle, Proofs
from understudy.players.base import Answers, Cell, DataPlayer, Kind, MeasuredCell, Model, Problem
from understudy.queries import cells

ANNEALED = Annealed(starts=8, blocks=24)


@dataclass(frozen=True, eq=False)
class Responses(View):
    """The records so far, one a row, and the queries of the latest rounds: state and view."""

    shape: tuple[int, ...]
    records: Whole
    latest: tuple[tuple[MeasuredCell, ...], ...] = ()
    """The last round's queries first."""
    each: int = 1
    """Records a round."""
    proofs: Proofs = field(default_factory=Proofs)

    @property
    def codes(self) -> tuple[Whole, ...]:
        """One code array per column."""
        return tuple(self.records.T)

    @property
    def newest(self) -> tuple[Whole, ...]:
        """The records of the last round, one code array per column."""
        return tuple(self.records[-self.each :].T)

    def marginal(self, clique: Clique) -> Floats:
        """Shares of the records; uniform before the first."""
        return self.model.marginal(clique)

    @property
    def model(self) -> Model:
        """The uniform law over the records, or over everything if there are none."""
        if not len(self.records):
            return Decomposable.independent([np.full(size, 1.0 / size) for size in self.shape])
        return Empirical.of(self.shape, self.records)


@dataclass(frozen=True, slots=True)
class BestResponse(DataPlayer[Responses]):
    """`samples` is s; a round adds `records` records, and all of them are the result.

    Ties are broken by the latest `recall` queries of earlier rounds. What they leave open the default
    oracle draws by itself; for one that always finds the same record, `ties` is the size of the
    perturbation that does, in parts of the least weight of a query: far below 1.
    """

    samples: int
    records: int = 1
    recall: int = 100
    oracle: Oracle = field(default=ANNEALED)
    ties: float = 0.0

    accepts = frozenset({Kind.PICKED_CELL})
    shows = Responses

    def start(self, problem: Problem) -> Responses:
        """No records."""
        return Responses(problem.shape, np.zeros((0, len(problem.shape)), np.int64))

    def view(self, problem: Problem, state: Responses) -> Responses:
        """The records so far."""
        return state

    def respond(self, problem: Problem, state: Responses, answers: Answers, rng: Rng) -> Responses:
        """A few records more."""
        queries = [a for a in answers if isinstance(a, MeasuredCell)]
        if not queries:
            queries = uniform_queries(problem, self.samples, rng)
        elif len(queries) > self.samples:
            chosen = rng.permutation(len(queries))[: self.samples]
            queries = [queries[i] for i in sorted(chosen)]
        sample = tuple(queries)
        before = itertools.chain.from_iterable(state.latest)
        earlier = tuple(itertools.islice(before, self.recall))
        weights = np.full(len(sample) + len(earlier), 1.0 / len(sample))
        weights[len(sample) :] *= 0.5 / max(1, len(earlier))
        history = _sum(problem.shape, (*sample, *earlier), weights)
        same = LazyNoise(Law.EXPONENTIAL, self.ties * float(weights.min()), self.records)
        found, late = self.oracle.best(history, same, rng=rng)
        latest = (sample, *state.latest)[: 1 + self.recall // len(sample)]
        records = np.vstack([state.records, found])
        return Responses(state.shape, records, latest, self.records, state.proofs.after(late))

    def diagnostics(self, state: Responses) -> dict[str, int]:
        """How often an oracle that proves its records ran out of time."""
        return state.proofs.diagnostics(self.oracle)

    def finish(self, problem: Problem, state: Responses) -> Model:
        """The records of all rounds, equally weighted."""
        return state.model


def _sum(shape: tuple[int, ...], queries: Sequence[MeasuredCell], weights: Floats) -> History:
    """The weighted sum of the queries."""
    width = max(len(query.clique) for query in queries)
    columns = np.full((len(queries), width), -1, np.int64)
    codes = np.zeros((len(queries), width), np.int64)
    for row, query in enumerate(queries):
        columns[row, : len(query.clique)] = query.clique
        codes[row, : len(query.clique)] = query.cell.index
    complements = np.array([query.cell.sign < 0 for query in queries])
    return History.empty(shape).add_many(columns, codes, weights, complements)


def uniform_queries(problem: Problem, number: int, rng: Rng) -> list[MeasuredCell]:
    """Independent draws from the uniform law over all cells and their complements."""
    sizes = np.array([cells(problem.shape, c) for c in problem.cliques], dtype=np.float64)
    queries: list[MeasuredCell] = []
    for marginal in rng.choice(len(problem.cliques), size=number, p=sizes / sizes.sum()):
        clique = problem.cliques[int(marginal)]
        index = tuple(int(rng.integers(problem.shape[i])) for i in clique)
        sign = 1 if rng.random() < 0.5 else -1
        queries.append(MeasuredCell(clique, Cell(int(marginal), index, sign)))
    return queries
