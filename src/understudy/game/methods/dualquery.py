"""`dualquery`: multiplicative weights over queries against best responses (Gaboardi et al. 2014).

The query player keeps the weights, privately, and samples from them (`understudy.players.query.weights`
has the cost); the data player answers each sample with the records that satisfy most of it, found by an
oracle. No table over the universe and none over a marginal is ever made. T and s are public rules of κ
= n√(2ρ) (docs/methods/dualquery.md); η follows from the budget: all of ρ is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated

from understudy.game.methods.base import Design, Forecast, Method, Theorem, whole
from understudy.game.methods.oracle import ORACLE, SECONDS, exact, seconds_of_search
from understudy.oracles.exact import require_solver
from understudy.players.data.response import ANNEALED, BestResponse
from understudy.players.query.recycling import Recycling
from understudy.players.query.weights import QueryWeights
from understudy.privacy.buckets import UNIT
from understudy.privacy.cost import Charge, Plan

# The rules stay below these; what is asked for by hand may reach the limits of the settings.
_MOST_ROUNDS, _MOST_SAMPLES = 400, 100
# Perturbation between equals, in parts of the least weight: over tens of columns it stays below 1.
_TIES = 0.02


@dataclass(frozen=True, slots=True)
class DualQueryMethod(Method):
    """`rounds` (T) and `samples` (s) are public rules where they are None.

    `records` best responses are taken each round: they differ where records are equally good, and
    their mixture is a best response as well. `oracle` may be "exact", with `seconds` for a search.
    """

    rounds: Annotated[
        int | None,
        whole(2, 5_000, "; the first round is blind and the second is the first that learns"),
    ] = None
    samples: Annotated[
        int | None,
        whole(1, 10_000, ": every round draws that many queries and holds them in memory"),
    ] = None
    records: Annotated[int, whole(1, 1_000)] = 2
    oracle: Annotated[str, ORACLE] = "annealed"
    seconds: Annotated[float, SECONDS] = 1.0
    name: str = "dualquery"

    max_cells = 2**62

    def check(self, design: Design) -> None:
        """Serves every table and marginals of any size."""
        Method.check(self, design)
        if self.oracle == "exact":
            require_solver()

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """s draws for every round from the second on; the first is free."""
        return QueryWeights.charges(*sizes(design, rho, self.rounds, self.samples), rho)

    def players(self, design: Design, plan: Plan) -> tuple[QueryWeights | Recycling, BestResponse]:
        """Weights over queries against best responses."""
        rounds, samples, _ = QueryWeights.read(plan)
        return QueryWeights(rounds), self.responses(samples)

    def responses(self, samples: int) -> BestResponse:
        """By the oracle that was chosen; one that proves its records needs ties broken."""
        own = BestResponse(samples, self.records)
        if self.oracle == "annealed":
            return own
        return replace(own, oracle=exact(self.seconds, ANNEALED), ties=_TIES)

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Counting the workload and drawing dominate."""
        rounds, samples, _ = QueryWeights.read(plan)
        return self.expected(
            design, rows, rounds, f"{samples} queries", drawing=3e-4 * rounds * samples
        )

    def expected(
        self, design: Design, rows: int, rounds: int, queries: str, drawing: float
    ) -> Forecast:
        """The forecast of so many rounds, of which each draws `queries`: in all so many seconds."""
        occupied = min(float(rows), 1e5) * len(design.cliques)
        records = rounds * self.records
        return Forecast(
            f"nothing is measured; {records} records answer {rounds} rounds of {queries}",
            3e8 + 40.0 * rows * len(design.shape) + 64.0 * occupied,
            1.0
            + drawing
            + 1e-8 * rows * len(design.cliques)
            + records * seconds_of_search(self.oracle, self.seconds),
        )

    def theorem(self, design: Design, plan: Plan, rows: int, beta: float) -> Theorem | None:
        """Regret of the weights plus what sampling loses, for this T, s and η = n/B."""
        rounds, samples, scale = QueryWeights.read(plan)
        eta = rows * UNIT / scale
        log_universe = sum(math.log(size) for size in design.shape)
        regret = eta + math.log(2 * design.queries) / (eta * rounds)
        union = math.log(2 * rounds / beta) + log_universe
        return Theorem(
            min(1.0, regret + 2 * math.sqrt(union / (2 * samples))),
            beta,
            "η + ln|Q|/(ηT) + 2·√(ln(2|X|T/β)/(2s)): regret of the weights plus twice the sampling "
            "error (Hoeffding, union over |X| records and T rounds); it takes an exact oracle for "
            "granted",
        )


def sizes(
    design: Design, rho: Fraction, rounds: int | None, samples: int | None
) -> tuple[int, int]:
    """(T, s): as given, or by the public rule."""
    kappa = design.kappa(rho)
    root = math.sqrt(kappa)
    telling = 3 * (kappa / (5 * math.log(2.0 * design.queries))) ** 2
    draws = min(2 * root * max(3, root / 15), telling)
    if samples is None:
        samples = min(_MOST_SAMPLES, max(1, int(draws / (rounds or 2 * root) + 1e-9)))
    if rounds is None:
        rounds = min(_MOST_ROUNDS, max(2, round(min(draws / samples, 3 * root))))
    return rounds, samples
