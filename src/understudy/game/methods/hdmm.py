"""`hdmm`: the matrix mechanism with a strategy of marginals, Gaussian noise and least squares.

McKenna, Miklau, Hay, Machanavajjhala (2018). The query player measures a fixed strategy once, marginals
in the closure of the workload with the noise that makes its expected squared error least (a public,
convex optimisation); the data player reconstructs the workload by least squares and fits a distribution
for the rows. Before they are made shares, answers are unbiased with known variance, whatever the data
(docs/methods/hdmm.md): `forecast` says it beforehand. About the fitted rows there is no theorem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from understudy._types import Clique
from understudy.errors import InputError
from understudy.game.methods.base import Design, Forecast, Method, least
from understudy.models.residual import Strategy, cell_variance, optimise
from understudy.players.data.reconstruction import Reconstruction, maximal
from understudy.players.query.fixed import FixedMarginals, Together
from understudy.privacy.cost import Charge, Gaussian, Plan
from understudy.wording import points as in_points


@dataclass(frozen=True, slots=True)
class HDMMMethod(Method):
    """`levels` different noises at most; `limit` cells of measured marginals; `points` to fit."""

    levels: Annotated[int, least(1)] = 6
    points: Annotated[int, least(1)] = 200_000
    limit: int = 20_000_000
    name: str = "hdmm"

    def check(self, design: Design) -> None:
        """Every marginal of the workload is measured whole, so all of them must fit."""
        Method.check(self, design)
        cells = design.cells(maximal(design.cliques, len(design.shape)))
        if cells > self.limit:
            raise InputError(
                f"method = hdmm measures every cell of the workload, {cells:.3g} of them, above its "
                f"limit of {self.limit:.3g}; use method = fem, which never lists cells, or auto, or "
                f"a workload of smaller marginals"
            )

    def _strategy(self, design: Design) -> Strategy:
        weight: dict[Clique, float] = {}
        for clique, each in zip(design.cliques, design.weights, strict=True):
            weight[clique] = weight.get(clique, 0.0) + each
        for clique in maximal(design.cliques, len(design.shape)):
            weight.setdefault(clique, 1.0)  # a column outside the workload, for the rows
        return optimise(design.shape, tuple(weight), tuple(weight.values()), self.levels)

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """One Gaussian release per level of noise."""
        strategy = self._strategy(design)
        shares = [Fraction(share) for share in strategy.shares]
        return tuple(
            Charge(_purpose(at), design.gaussian(rho * share / sum(shares), len(cliques)))
            for at, (cliques, share) in enumerate(zip(strategy.levels, shares, strict=True))
        )

    def players(self, design: Design, plan: Plan) -> tuple[Together, Reconstruction]:
        """A fixed strategy against least squares."""
        return Together(self._levels(design, plan)), Reconstruction(points=self.points)

    def _levels(self, design: Design, plan: Plan) -> tuple[FixedMarginals, ...]:
        return tuple(
            FixedMarginals(cliques, plan.event(_purpose(at), Gaussian).sigma, _purpose(at))
            for at, cliques in enumerate(self._strategy(design).levels)
        )

    def spread(self, design: Design, plan: Plan) -> list[float]:
        """The standard error of a cell of each marginal of the workload, in rows, exactly."""
        variances = {
            clique: level.sigma**2
            for level in self._levels(design, plan)
            for clique in level.cliques
        }
        return [math.sqrt(v) for v in cell_variance(design.shape, variances, design.cliques)]

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """The expected error of the answers, exactly; counting and fitting take the time."""
        levels = self._levels(design, plan)
        measured = [clique for level in levels for clique in level.cliques]
        spread = self.spread(design, plan)
        sizes = [design.cells([clique]) for clique in design.cliques]
        mean = math.sqrt(
            sum(s * s * size for s, size in zip(spread, sizes, strict=True)) / sum(sizes)
        )
        cells, points = design.cells(measured), min(design.universe, self.points)
        return Forecast(
            f"all {len(design.cliques)} marginals of the workload are measured; expected error of "
            f"a cell {in_points(mean / max(rows, 1))} (root mean square), "
            f"{in_points(max(spread) / max(rows, 1))} in the worst marginal",
            3e8 + 40.0 * rows * len(design.shape) + 64.0 * cells + 16.0 * points * len(sizes),
            2.0 + 1e-8 * rows * len(measured) + 4e-7 * cells + 4e-7 * points * len(sizes),
        )


def _purpose(level: int) -> str:
    return f"marginals, noise level {level + 1}"
