"""`mwem`: multiplicative weights with the exponential mechanism, for universes that fit.

Each of T rounds selects the worst cell of the workload privately and measures it, ρ/(2T) each. T is
a public rule: T = 0.9·√κ with κ = n√(2ρ), where n is declared; 10 000 rows are assumed where it is not.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from understudy.errors import InputError
from understudy.game.methods.base import Design, Forecast, Theorem
from understudy.players.data import MultiplicativeWeights
from understudy.players.query import ExponentialMechanism
from understudy.privacy.cost import Charge, Gaussian, Plan, Selection
from understudy.privacy.curator import GRID

__all__ = ["MWEM"]

_ASSUMED_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class MWEM:
    """`rounds = None` takes the public rule; `measure = False` is the signed variant without it."""

    rounds: int | None = None
    replays: int = 4
    measure: bool = True
    limit: int = 4_000_000
    name: str = "mwem"

    def check(self, design: Design) -> None:
        """The universe must be enumerable."""
        universe = math.prod(design.shape)
        if universe > self.limit:
            raise InputError(
                f"method = mwem keeps one weight for each of the {universe:.3g} possible rows, "
                f"above its limit of {self.limit:.3g}; use method = mst, or fewer columns or bins"
            )
        if self.rounds is not None and self.rounds < 1:
            raise InputError(f"method = mwem: rounds = {self.rounds} must be at least 1")
        if self.replays < 1:
            raise InputError(f"method = mwem: replays = {self.replays} must be at least 1")

    def _rounds(self, design: Design, rho: Fraction) -> int:
        if self.rounds is not None:
            return self.rounds
        kappa = (design.rows or _ASSUMED_ROWS) * math.sqrt(2 * float(rho))
        return max(1, round(0.9 * math.sqrt(kappa)))

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """T selections and, where measured, T Gaussian counts."""
        T = self._rounds(design, rho)
        parts = 2 if self.measure else 1
        each = rho / (parts * T)
        select = Charge(ExponentialMechanism.SELECT, Selection.within(each, sensitivity=GRID), T)
        if not self.measure:
            return (select,)
        return select, Charge(ExponentialMechanism.MEASURE, Gaussian.within(each), T)

    def players(
        self, design: Design, plan: Plan
    ) -> tuple[ExponentialMechanism, MultiplicativeWeights]:
        """The exponential mechanism against multiplicative weights."""
        T = plan[ExponentialMechanism.SELECT].times
        sigma = None
        if ExponentialMechanism.MEASURE in plan:
            event = plan[ExponentialMechanism.MEASURE].event
            assert isinstance(event, Gaussian)
            sigma = event.sigma
        return ExponentialMechanism(T, sigma), MultiplicativeWeights(T, self.replays)

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Replays over the universe dominate."""
        universe = math.prod(design.shape)
        T = plan[ExponentialMechanism.SELECT].times
        noise: dict[str, float] = {}
        if ExponentialMechanism.MEASURE in plan:
            event = plan[ExponentialMechanism.MEASURE].event
            assert isinstance(event, Gaussian)
            noise[ExponentialMechanism.MEASURE] = event.sigma
        work = T * universe * (len(design.cliques) + 2.0 * self.replays * T)
        return Forecast(
            noise,
            f"{T} cells of the workload are measured; the rest is model",
            2e8 + 64.0 * universe + 40.0 * rows * len(design.shape),
            1.0 + 2e-9 * work,
        )

    def theorem(self, design: Design, plan: Plan, rows: int, beta: float) -> Theorem | None:
        """The signed variant's bound; with measurement and replays none has been proved."""
        if self.measure:
            return None
        charge = plan[ExponentialMechanism.SELECT]
        event = charge.event
        assert isinstance(event, Selection)
        queries = 2 * sum(math.prod(design.shape[i] for i in c) for c in design.cliques)
        universe = math.prod(design.shape)
        game = math.sqrt(math.log(max(universe, 2)) / (2 * charge.times))
        picking = event.scale / GRID / rows * math.log(queries * charge.times / beta)
        return Theorem(
            min(1.0, game + picking),
            beta,
            "√(ln|X|/(2T)) + (2/(n·ε0))·ln(|Q|T/β): regret of multiplicative weights plus the "
            "error of T private selections",
        )

    def describe(self) -> dict[str, Any]:
        """Name and parameters."""
        return asdict(self)
