"""`gaussian`: every marginal of the workload with the same Gaussian noise, then least squares and rows.

The floor of the methods that measure: J marginals, and columns that none of them holds, share ρ, so σ²
= J/(2ρ) (twice that under replace). Before they are made shares, answers are unbiased and `forecast`
says their error exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from understudy._types import Clique
from understudy.errors import InputError
from understudy.game.methods.base import Design, Forecast, Method, least
from understudy.models.residual import cell_variance
from understudy.players.data.reconstruction import Reconstruction
from understudy.players.query.fixed import FixedMarginals
from understudy.privacy.cost import Charge, Gaussian, Plan
from understudy.wording import points as in_points

PURPOSE = "all marginals of the workload"


@dataclass(frozen=True, slots=True)
class GaussianMethod(Method):
    """`limit` cells of measured marginals; `points` to fit."""

    points: Annotated[int, least(1)] = 200_000
    limit: int = 20_000_000
    name: str = "gaussian"

    def check(self, design: Design) -> None:
        """Every marginal of the workload is measured whole, so all of them must fit."""
        Method.check(self, design)
        cells = design.cells(_measured(design))
        if cells > self.limit:
            raise InputError(
                f"method = gaussian measures every cell of the workload, {cells:.3g} of them, above "
                f"its limit of {self.limit:.3g}; use method = auto, or a workload of fewer or "
                f"smaller marginals"
            )

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """One Gaussian release."""
        return (Charge(PURPOSE, design.gaussian(rho, len(_measured(design)))),)

    def players(self, design: Design, plan: Plan) -> tuple[FixedMarginals, Reconstruction]:
        """The whole workload against least squares."""
        sigma = plan.event(PURPOSE, Gaussian).sigma
        query = FixedMarginals(_measured(design), sigma, PURPOSE)
        return query, Reconstruction(points=self.points)

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """The expected error of the answers, exactly; counting and fitting take the time."""
        measured, sigma = _measured(design), plan.event(PURPOSE, Gaussian).sigma
        variances = dict.fromkeys(measured, sigma**2)
        spread = [math.sqrt(v) for v in cell_variance(design.shape, variances, design.cliques)]
        cells, points = design.cells(measured), min(design.universe, self.points)
        return Forecast(
            f"all {len(design.cliques)} marginals of the workload are measured; expected error of "
            f"a cell {in_points(max(spread) / max(rows, 1))} in the worst marginal",
            3e8 + 40.0 * rows * len(design.shape) + 64.0 * cells + 16.0 * points * len(measured),
            2.0 + 1e-8 * rows * len(measured) + 4e-7 * cells + 4e-7 * points * len(measured),
        )


def _measured(design: Design) -> tuple[Clique, ...]:
    """The workload's marginals, once each, and the columns that none of them holds."""
    seen = {i for clique in design.cliques for i in clique}
    alone = (column for column in design.columns if column[0] not in seen)
    return (*dict.fromkeys(design.cliques), *alone)
