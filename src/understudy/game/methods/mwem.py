"""`mwem`: multiplicative weights with the exponential mechanism, for universes that fit.

The query player selects the worst cell of the workload and measures it; the data player moves the cell
to what was measured and replays all earlier measurements. A round costs one selection, 3/4 of ρ/T, and
one Gaussian count, 1/4; docs/methods/mwem.md has the public rule for T.

`measure = False` is the signed variant: the cell and the side of its error are selected together,
nothing is measured, and the result is the average of all rounds. It has a theorem (`theorem`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from understudy.game.methods.base import Design, Forecast, Method, Theorem, between, least
from understudy.players.data.universe import MultiplicativeWeights
from understudy.players.query.picking import ExponentialMechanism
from understudy.privacy import planning
from understudy.privacy.cost import Charge, Gaussian, Plan, Selection
from understudy.privacy.questions import GRID


@dataclass(frozen=True, slots=True)
class MWEMMethod(Method):
    """`rounds = None` takes the public rule; `selection` is the share of ρ that selections get."""

    rounds: Annotated[int | None, least(1, "; leave it out for 0.9·√(n·√(2ρ))")] = None
    replays: Annotated[int, least(1)] = 4
    measure: bool = True
    selection: Annotated[
        float, between(0, 1, "; it is the share of the budget that selections get, 0.75 is usual")
    ] = 0.75
    limit: int = 4_000_000
    name: str = "mwem"

    def check(self, design: Design) -> None:
        """The universe must be enumerable."""
        Method.check(self, design)
        self.require_universe(design, self.limit)

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """T selections and, where measured, T Gaussian counts."""
        T = self.rounds or max(1, round(0.9 * math.sqrt(design.kappa(rho))))
        share = Fraction(self.selection) if self.measure else Fraction(1)
        selection = planning.selection(share * rho / T, sensitivity=GRID)
        select = Charge(ExponentialMechanism.SELECT, selection, T)
        if not self.measure:
            return (select,)
        count = planning.gaussian((1 - share) * rho / T)
        return select, Charge(ExponentialMechanism.MEASURE, count, T)

    def players(
        self, design: Design, plan: Plan
    ) -> tuple[ExponentialMechanism, MultiplicativeWeights]:
        """The exponential mechanism against multiplicative weights."""
        T, sigma = plan[ExponentialMechanism.SELECT].times, None
        if self.measure:
            sigma = plan.event(ExponentialMechanism.MEASURE, Gaussian).sigma
        return ExponentialMechanism(T, sigma), MultiplicativeWeights(T, self.replays)

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """The marginals of the workload and the replays over the universe dominate."""
        query, _ = self.players(design, plan)
        T, universe = query.rounds, design.universe
        cells = min(design.cells([clique]) for clique in design.cliques)
        work = T * universe * (10.0 + len(design.cliques) + self.replays * T / cells)
        return Forecast(
            f"{T} cells of the workload are measured; the rest is model",
            2e8 + 64.0 * universe + 40.0 * rows * len(design.shape),
            1.0 + 3e-9 * work,
        )

    def theorem(self, design: Design, plan: Plan, rows: int, beta: float) -> Theorem | None:
        """The signed variant's bound; with measurement and replays none has been proved."""
        if self.measure:
            return None
        T = plan[ExponentialMechanism.SELECT].times
        scale = plan.event(ExponentialMechanism.SELECT, Selection).scale / GRID / rows
        game = math.sqrt(math.log(max(design.universe, 2)) / (2 * T))
        picking = scale * math.log(2 * design.queries * T / beta)
        return Theorem(
            min(1.0, game + picking),
            beta,
            "√(ln|X|/(2T)) + (2/(n·ε0))·ln(2|Q|T/β): regret of multiplicative weights plus the "
            "error of T private selections",
        )
