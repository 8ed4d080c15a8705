"""`dualquery`: multiplicative weights over queries against best responses (Gaboardi et al. 2014).

The roles of `mwem` turned round: the query player keeps the weights, privately, and samples from them;
the data player answers each sample with the records that satisfy most of it, found by an oracle. No
table over the universe and none over a marginal is ever made. See `understudy.players.query.weights`
for the cost and `understudy.players.data.response` for the records.

T and s are public rules: T = 1.5·√κ and s = max(5, √κ/10) with κ = n√(2ρ), where n is declared; 10 000
rows are assumed where it is not. η follows from the budget: all of ρ is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from understudy.errors import InputError
from understudy.game.methods.base import Design, Forecast, Method, Theorem
from understudy.game.methods.oracle import check_oracle, exact, seconds_of_search
from understudy.players.data import BestResponse
from understudy.players.data.response import ANNEALED
from understudy.players.query import QueryWeights
from understudy.privacy.buckets import UNIT
from understudy.privacy.cost import Charge, Plan

__all__ = ["DualQuery", "assumed", "check_sizes", "responding", "sizes"]

_ASSUMED_ROWS = 10_000
# The rules stay below these; what is asked for by hand may reach the limits.
_MOST_ROUNDS, _MOST_SAMPLES = 400, 100
_LIMIT_ROUNDS, _LIMIT_SAMPLES, _LIMIT_RECORDS = 5_000, 10_000, 1_000
# Perturbation between equals, in parts of the least weight: over tens of columns it stays below 1.
_TIES = 0.02


@dataclass(frozen=True, slots=True)
class DualQuery(Method):
    """`rounds` (T) and `samples` (s) are public rules where they are None.

    `records` best responses are taken each round: they differ where records are equally good, and
    their mixture is a best response as well. `oracle` may be "exact", with `seconds` for a search.
    """

    rounds: int | None = None
    samples: int | None = None
    records: int = 2
    oracle: str = "annealed"
    seconds: float = 1.0
    name: str = "dualquery"

    max_cells = 2**62

    def check(self, design: Design) -> None:
        """Serves every table and marginals of any size."""
        check_sizes(self.name, self.rounds, self.samples, self.records)
        check_oracle(self.name, self.oracle, self.seconds)

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """s draws for every round from the second on; the first is free."""
        rounds, samples = sizes(design, rho, self.rounds, self.samples)
        return QueryWeights.charges(rounds, samples, rho)

    def players(self, design: Design, plan: Plan) -> tuple[QueryWeights, BestResponse]:
        """Weights over queries against best responses."""
        rounds, samples, _ = QueryWeights.read(plan)
        return QueryWeights(rounds), responding(samples, self.records, self.oracle, self.seconds)

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Counting the workload and drawing dominate."""
        rounds, samples, _ = QueryWeights.read(plan)
        occupied = min(float(rows), 1e5) * len(design.cliques)
        return Forecast(
            {},
            f"nothing is measured; {rounds * self.records} records answer {rounds} rounds of "
            f"{samples} queries",
            3e8 + 40.0 * rows * len(design.shape) + 64.0 * occupied,
            1.0
            + 3e-4 * rounds * samples
            + 1e-8 * rows * len(design.cliques)
            + rounds * self.records * seconds_of_search(self.oracle, self.seconds),
        )

    def theorem(self, design: Design, plan: Plan, rows: int, beta: float) -> Theorem:
        """Regret of the weights plus what sampling loses, for this T, s and η = n/B."""
        rounds, samples, scale = QueryWeights.read(plan)
        eta = rows * UNIT / scale
        queries = 2 * sum(math.prod(design.shape[i] for i in c) for c in design.cliques)
        log_universe = sum(math.log(size) for size in design.shape)
        regret = eta + math.log(queries) / (eta * rounds)
        union = math.log(2 * rounds / beta) + log_universe
        return Theorem(
            min(1.0, regret + 2 * math.sqrt(union / (2 * samples))),
            beta,
            "η + ln|Q|/(ηT) + 2·√(ln(2|X|T/β)/(2s)): regret of the weights plus twice the sampling "
            "error (Hoeffding, union over |X| records and T rounds); it takes an exact oracle for "
            "granted",
        )


def responding(samples: int, records: int, oracle: str, seconds: float) -> BestResponse:
    """Best responses by the oracle that was chosen; one that proves its records needs ties broken."""
    own = BestResponse(samples, records)
    if oracle == "annealed":
        return own
    return replace(own, oracle=exact(seconds, ANNEALED), ties=_TIES)


def assumed(design: Design) -> int:
    """The declared number of rows, or the one that rules assume where it is private."""
    return design.rows or _ASSUMED_ROWS


def sizes(
    design: Design, rho: Fraction, rounds: int | None, samples: int | None
) -> tuple[int, int]:
    """(T, s): as given, or by the public rule."""
    root = math.sqrt(assumed(design) * math.sqrt(2 * float(rho)))
    if rounds is None:
        rounds = min(_MOST_ROUNDS, max(2, round(1.5 * root)))
    if samples is None:
        samples = min(_MOST_SAMPLES, max(5, round(root / 10)))
    return rounds, samples


def check_sizes(name: str, rounds: int | None, samples: int | None, records: int) -> None:
    """Refuse numbers that make no game or do not fit in memory, before anything is planned."""
    if rounds is not None and not 2 <= rounds <= _LIMIT_ROUNDS:
        raise InputError(
            f"method = {name}: rounds = {rounds} must be between 2 and {_LIMIT_ROUNDS}; the first "
            f"round is blind and the second is the first that learns"
        )
    if samples is not None and not 1 <= samples <= _LIMIT_SAMPLES:
        raise InputError(
            f"method = {name}: samples = {samples} must be between 1 and {_LIMIT_SAMPLES}: every "
            f"round draws that many queries and holds them in memory"
        )
    if not 1 <= records <= _LIMIT_RECORDS:
        raise InputError(
            f"method = {name}: records = {records} must be between 1 and {_LIMIT_RECORDS}"
        )
