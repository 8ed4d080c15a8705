"""`aim`: the adaptive and iterative mechanism on mbi, weighted by the workload, with annealed noise.

McKenna, Mullins, Sheldon, Miklau (VLDB 2022), as a reference for comparison. T = 16·d rounds at most;
all columns get d/T of the part of ρ for measurements, the rounds draw the rest from a zCDP filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from understudy.errors import InputError, require_extra
from understudy.game.methods.base import POSITIVE, Design, Forecast, Method, least
from understudy.models.residual import closure
from understudy.players.data.maxent import MaximumEntropy
from understudy.players.query.aim import SELECTION, AdaptiveRounds, candidates
from understudy.privacy import accounting
from understudy.privacy.budget import round_down
from understudy.privacy.cost import Charge, Gaussian, Plan, Zcdp


@dataclass(frozen=True, slots=True)
class AIMMethod(Method):
    """`rounds = None` takes 16·d; `megabytes` of junction tree; `limit` candidates."""

    rounds: int | None = None
    megabytes: Annotated[float, POSITIVE] = 80.0
    iterations: Annotated[int, least(1)] = 1000
    limit: int = 20_000
    name: str = "aim"

    def check(self, design: Design) -> None:
        """The libraries must be there, and the candidates must be few enough to be tried each round."""
        Method.check(self, design)
        d = len(design.shape)
        if self.rounds is not None and self.rounds <= d:
            self.refuse(
                f"rounds = {self.rounds} must be above the number of columns, {d}; "
                f"leave it out for 16·d = {16 * d}"
            )
        subsets = sum(2 ** len(clique) for clique in design.cliques)
        number = len(closure(design.cliques)) - 1 if subsets < 10**6 else subsets
        if number > self.limit:
            raise InputError(
                f"method = aim tries every subset of every marginal in each round, {number:,} of "
                f"them, above its limit of {self.limit:,}; use a workload of fewer or smaller "
                f"marginals, or method = auto"
            )
        require_extra(f"method = {self.name}", "reference")

    def _rounds(self, design: Design) -> int:
        return self.rounds if self.rounds is not None else 16 * len(design.shape)

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """All columns at the noise of the first round, and a zCDP filter for the rounds."""
        d = len(design.shape)
        first = (1 - SELECTION) * rho * d / self._rounds(design)
        return (
            Charge(AdaptiveRounds.ONE_WAY, design.gaussian(first, d)),
            Charge(AdaptiveRounds.ADAPTIVE, Zcdp(round_down(rho - first))),
        )

    def players(self, design: Design, plan: Plan) -> tuple[AdaptiveRounds, MaximumEntropy]:
        """Adaptive rounds against maximum entropy."""
        one = plan.event(AdaptiveRounds.ONE_WAY, Gaussian)
        left = Fraction(plan.event(AdaptiveRounds.ADAPTIVE, Zcdp).rho)
        total, most = accounting.rho(one) + left, self._rounds(design)
        query = AdaptiveRounds(
            1 + most,
            one.sigma,
            candidates(design.cliques, design.weights),
            total,
            left,
            total / most,
            self.megabytes,
        )
        return query, MaximumEntropy(self.iterations)

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Every round fits a model of its own, which JAX compiles first."""
        d, most = len(design.shape), self._rounds(design)
        number = len(closure(design.cliques))
        cells = self.megabytes * 2**20 / 8
        return Forecast(
            f"all {d} columns are measured, then up to {most} marginals as they are chosen, with "
            f"noise that falls as the model improves; the rest is inferred",
            1e9 + 40.0 * rows * d + 40.0 * cells,
            10.0 + 0.3 * most * (4.0 + 1e-9 * self.iterations * cells) + 1e-8 * rows * number,
        )
