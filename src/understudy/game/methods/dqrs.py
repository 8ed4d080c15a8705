"""`dqrs`: DualQuery that keeps queries by rejection sampling where that is cheaper than drawing anew.

Vietri et al. (2020), Algorithm 4, with its errata: see `understudy.players.query.recycling`. T and s
are `dualquery`'s public rules and η is solved from the budget. Recycling pays where η = n/B is well
below 1/4: large samples, or few rows for the budget; elsewhere the plan is DualQuery's, without coins.
Where n is private, 10 000 rows are assumed to choose s~_t; costs do not depend on n.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from understudy.game.methods.base import Design, Forecast, planned
from understudy.game.methods.dualquery import DualQueryMethod, sizes
from understudy.players.data import BestResponse
from understudy.players.query import QueryWeights, Recycling
from understudy.privacy.cost import Charge, Plan, Selection

__all__ = ["DQRSMethod"]


@dataclass(frozen=True, slots=True)
class DQRSMethod(DualQueryMethod):
    """DualQuery's settings, oracle and data player; queries are recycled, and no theorem is known."""

    name: str = "dqrs"

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """For every round from the second on: coins where they pay, and new draws."""
        rounds, samples = sizes(design, rho, self.rounds, self.samples)
        return Recycling.charges(rounds, samples, design.assumed_rows, rho)

    def players(self, design: Design, plan: Plan) -> tuple[Recycling, BestResponse]:
        """Recycled weights over queries against best responses."""
        return Recycling.of(plan), self.responses(_samples(plan))

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Counting the workload and drawing dominate."""
        player, samples = Recycling.of(plan), _samples(plan)
        drawn = sum(
            planned(plan, QueryWeights.purpose(t), Selection).k for t in range(2, player.rounds + 1)
        )
        recycled = len(player.recycled)
        return self.expected(
            design,
            rows,
            player.rounds,
            f"up to {samples} queries, {recycled} of them partly recycled",
            drawing=3e-4 * drawn + 2e-4 * recycled * samples,
        )

    def theorem(self, design: Design, plan: Plan, rows: int, beta: float) -> None:
        """None: what is kept is no independent sample (`understudy.players.query.recycling`)."""


def _samples(plan: Plan) -> int:
    """s: the coins of a recycled round, the draws of any other."""
    return max(charge.event.k for charge in plan if isinstance(charge.event, Selection))
