"""`independent`: every column by itself. The floor that anything else must beat."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from understudy.game.methods.base import Design, Forecast, Method
from understudy.players.data.maxent import MaximumEntropy
from understudy.players.query.fixed import FixedMarginals
from understudy.privacy.cost import Charge, Gaussian, Plan


@dataclass(frozen=True, slots=True)
class IndependentMethod(Method):
    """All one-way marginals with Gaussian noise; no dependence between columns is kept."""

    name: str = "independent"

    ONE_WAY = "one-way marginals"

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """One Gaussian release of d tables."""
        return (Charge(self.ONE_WAY, design.gaussian(rho, len(design.shape))),)

    def players(self, design: Design, plan: Plan) -> tuple[FixedMarginals, MaximumEntropy]:
        """A fixed strategy against maximum entropy, which here has a closed form."""
        sigma = plan.event(self.ONE_WAY, Gaussian).sigma
        return FixedMarginals(design.columns, sigma, self.ONE_WAY), MaximumEntropy()

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Counting dominates."""
        return Forecast(
            "every column is measured; no dependence between columns is kept",
            2e8 + 40.0 * rows * len(design.shape),
            1.0 + 2e-7 * rows * len(design.shape),
        )
