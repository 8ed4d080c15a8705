"""`dqrs`: DualQuery that keeps queries by rejection sampling where that is cheaper than drawing anew.

Vietri et al. (2020), Algorithm 4, with its errata: see `understudy.players.query.recycling`. T and s
are `dualquery`'s public rules and η is solved from the budget. Recycling pays where η = n/B is well
below 1/4: large samples, or few rows for the budget; elsewhere the plan is DualQuery's, without coins.
Where n is private, 10 000 rows are assumed to choose s~_t; costs do not depend on n.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from understudy.game.methods.base import Design, Forecast, Method
from understudy.game.methods.dualquery import assumed, check_sizes, responding, sizes
from understudy.game.methods.oracle import check_oracle, seconds_of_search
from understudy.players.data import BestResponse
from understudy.players.query import QueryWeights, Recycling
from understudy.privacy.cost import Charge, Plan, Selection

__all__ = ["DQRS"]


@dataclass(frozen=True, slots=True)
class DQRS(Method):
    """`rounds` (T) and `samples` (s) are public rules where they are None.

    `oracle` may be "exact", with `seconds` for a search.
    """

    rounds: int | None = None
    samples: int | None = None
    records: int = 2
    oracle: str = "annealed"
    seconds: float = 1.0
    name: str = "dqrs"

    max_cells = 2**62

    def check(self, design: Design) -> None:
        """Serves every table and marginals of any size."""
        check_sizes(self.name, self.rounds, self.samples, self.records)
        check_oracle(self.name, self.oracle, self.seconds)

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """For every round from the second on: coins where they pay, and new draws."""
        rounds, samples = sizes(design, rho, self.rounds, self.samples)
        return Recycling.charges(rounds, samples, assumed(design), rho)

    def players(self, design: Design, plan: Plan) -> tuple[Recycling, BestResponse]:
        """Recycled weights over queries against best responses."""
        return Recycling.of(plan), responding(
            _samples(plan), self.records, self.oracle, self.seconds
        )

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Counting the workload and drawing dominate."""
        player = Recycling.of(plan)
        samples, drawn = _samples(plan), 0
        for t in range(2, player.rounds + 1):
            event = plan[QueryWeights.purpose(t)].event
            assert isinstance(event, Selection)
            drawn += event.k
        kept = player.rounds * self.records
        occupied = min(float(rows), 1e5) * len(design.cliques)
        return Forecast(
            {},
            f"nothing is measured; {kept} records answer {player.rounds} rounds of up to {samples} "
            f"queries, {len(player.recycled)} of them partly recycled",
            3e8 + 40.0 * rows * len(design.shape) + 64.0 * occupied,
            1.0
            + 3e-4 * drawn
            + 2e-4 * len(player.recycled) * samples
            + 1e-8 * rows * len(design.cliques)
            + player.rounds * self.records * seconds_of_search(self.oracle, self.seconds),
        )


def _samples(plan: Plan) -> int:
    """s: the coins of a recycled round, the draws of any other."""
    rounds, samples, _ = QueryWeights.read(plan)
    events = {charge.purpose: charge.event for charge in plan}
    for t in range(2, rounds + 1):
        event = events.get(Recycling.coins(t), events[QueryWeights.purpose(t)])
        assert isinstance(event, Selection)
        samples = max(samples, event.k)
    return samples
