"""`independent`: every column by itself. The floor that anything else must beat."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from understudy.game.methods.base import Design, Forecast, Method
from understudy.players.data import MaximumEntropy
from understudy.players.query import FixedMarginals
from understudy.privacy.cost import Charge, Gaussian, Plan

__all__ = ["Independent"]


@dataclass(frozen=True, slots=True)
class Independent(Method):
    """All one-way marginals with Gaussian noise; no dependence between columns is kept."""

    name: str = "independent"

    ONE_WAY = "one-way marginals"

    def check(self, design: Design) -> None:
        """Serves every table."""

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """One Gaussian release of d tables."""
        noise = Gaussian.of_tables(rho, design.relation, len(design.shape))
        return (Charge(self.ONE_WAY, noise),)

    def players(self, design: Design, plan: Plan) -> tuple[FixedMarginals, MaximumEntropy]:
        """A fixed strategy against maximum entropy, which here has a closed form."""
        event = plan[self.ONE_WAY].event
        assert isinstance(event, Gaussian)
        cliques = tuple((i,) for i in range(len(design.shape)))
        return FixedMarginals(cliques, event.sigma, self.ONE_WAY), MaximumEntropy()

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Counting dominates."""
        event = plan[self.ONE_WAY].event
        assert isinstance(event, Gaussian)
        return Forecast(
            {self.ONE_WAY: event.sigma},
            "every column is measured; no dependence between columns is kept",
            2e8 + 40.0 * rows * len(design.shape),
            1.0 + 2e-7 * rows * len(design.shape),
        )
