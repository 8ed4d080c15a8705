"""`dqrs`: DualQuery that keeps queries by rejection sampling where that is cheaper than drawing anew.

Vietri et al. (2020), Algorithm 4, with its errata: see `understudy.players.query.recycling`. T and s~,
the new draws of a round, are `dualquery`'s public rules; s = 2·s~, and η_t falls as t^(−1/4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from understudy.game.methods.base import Design, Forecast
from understudy.game.methods.dualquery import DualQueryMethod, sizes
from understudy.players.data.response import BestResponse
from understudy.players.query.recycling import Recycling
from understudy.players.query.weights import QueryWeights
from understudy.privacy.cost import Charge, Plan, Selection


@dataclass(frozen=True, slots=True)
class DQRSMethod(DualQueryMethod):
    """DualQuery's settings, oracle and data player; queries are recycled, and no theorem is known.

    `samples` is s; half of them, or as many as `fresh` says, are drawn anew.
    """

    fresh: int | None = None
    name: str = "dqrs"

    def check(self, design: Design) -> None:
        """As `dualquery`; and at least one query is new in a round."""
        DualQueryMethod.check(self, design)
        most = self.samples or 10_000
        if self.fresh is not None and not 1 <= self.fresh <= most:
            self.refuse(f"fresh = {self.fresh} must be between 1 and samples, {most}")

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """For every round from the second on: coins where they pay, and new draws."""
        fresh = self.fresh
        if fresh is None and self.samples is not None:
            fresh = math.ceil(self.samples / 2)
        rounds, fresh = sizes(design, rho, self.rounds, fresh)
        return Recycling.charges(rounds, self.samples or 2 * fresh, fresh, rho)

    def players(self, design: Design, plan: Plan) -> tuple[Recycling, BestResponse]:
        """Recycled weights over queries against best responses."""
        return Recycling.of(plan), self.responses(_samples(plan))

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Counting the workload and drawing dominate."""
        player, samples = Recycling.of(plan), _samples(plan)
        drawn = sum(
            plan.event(QueryWeights.purpose(t), Selection).k for t in range(2, player.rounds + 1)
        )
        recycled = len(player.recycled)
        return self.expected(
            design,
            rows,
            player.rounds,
            f"up to {samples} queries, which {recycled} rounds partly recycle",
            drawing=3e-4 * drawn + 2e-4 * recycled * samples,
        )

    def theorem(self, design: Design, plan: Plan, rows: int, beta: float) -> None:
        """None: what is kept is no independent sample (`understudy.players.query.recycling`)."""


def _samples(plan: Plan) -> int:
    """s: the coins of a recycled round, the draws of any other."""
    return max(charge.event.k for charge in plan if isinstance(charge.event, Selection))
