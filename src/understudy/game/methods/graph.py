"""`graph`: degrees, edges between public blocks and between classes, and a graph that has them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from understudy.errors import InputError
from understudy.game.methods.base import Design, Forecast, Method
from understudy.players.data.matching import Matching
from understudy.players.query.graph import DegreesAndBlocks
from understudy.privacy import planning
from understudy.privacy.cost import Charge, Gaussian, Plan

_NAMES, _CLASSES, _PAIRS = Fraction(3, 20), Fraction(1, 20), Fraction(7, 20)
"""Of ρ; sorted degrees get the rest, and blocks nothing where there is one: most of a graph's shape is
in its degrees. Named ones need less, because they only say who has which."""
_TRIANGLES = Fraction(1, 5)  # Of ρ, if they are asked for; the rest is shared as without


@dataclass(frozen=True, slots=True)
class GraphMethod(Method):
    """Serves the table of a graph's edges alone: two ends and their blocks, nodes in their order."""

    sizes: tuple[int, ...]
    triangles: bool = False
    name: str = "graph"

    whole = True

    def check(self, design: Design) -> None:
        """The columns are those of an edge."""
        nodes, blocks = sum(self.sizes), len(self.sizes)
        if design.shape != (nodes, nodes, blocks, blocks):
            raise InputError("method = graph serves lists of edges alone; use release_graph")

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """Gaussian releases: three, one more where there are blocks, one more for triangles."""
        ends = design.relation.marginal_l2_squared(2)
        cell = design.relation.marginal_l2_squared()
        blocks = _PAIRS if len(self.sizes) > 1 else Fraction(0)
        shares = {
            DegreesAndBlocks.DEGREES: (1 - _NAMES - _CLASSES - blocks, ends),
            DegreesAndBlocks.NAMES: (_NAMES, ends),
            DegreesAndBlocks.PAIRS: (blocks, cell),
            DegreesAndBlocks.CLASSES: (_CLASSES, cell),
        }
        left = 1 - _TRIANGLES if self.triangles else Fraction(1)
        found = [
            Charge(purpose, planning.gaussian(rho * left * share, changes=changes))
            for purpose, (share, changes) in shares.items()
            if share
        ]
        if self.triangles:
            closed = planning.gaussian(rho * _TRIANGLES, step=max(1, sum(self.sizes) - 2))
            found.append(Charge(DegreesAndBlocks.TRIANGLES, closed))
        return tuple(found)

    def players(self, design: Design, plan: Plan) -> tuple[DegreesAndBlocks, Matching]:
        """Measure, match, measure how classes mix, swap."""
        noise = self._noise(plan)
        query = DegreesAndBlocks(
            self.sizes,
            noise[DegreesAndBlocks.DEGREES],
            noise[DegreesAndBlocks.NAMES],
            noise[DegreesAndBlocks.CLASSES],
            noise.get(DegreesAndBlocks.PAIRS),
            noise.get(DegreesAndBlocks.TRIANGLES),
        )
        # What is measured of the number of edges, beside degrees and blocks; see `releases.plan`.
        rows = next((c.event for c in plan if c.purpose == "number of rows"), None)
        rows_sigma = rows.sigma if isinstance(rows, Gaussian) and design.rows is None else 0.0
        return query, Matching(self.sizes, rows_sigma)

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Matching dominates."""
        return Forecast(
            "degrees, edges between blocks and between classes of degrees are measured; clustering is "
            + ("measured too" if self.triangles else "the model's"),
            2e8 + 2000.0 * rows + 8.0 * len(self.sizes) ** 2,
            1.0 + 1e-4 * rows,
        )

    def describe(self) -> dict[str, Any]:
        """Name, the sizes of the blocks, and triangles if they were asked for."""
        asked = {"triangles": True} if self.triangles else {}
        return {"name": self.name, "sizes": list(self.sizes), **asked}

    @staticmethod
    def _noise(plan: Plan) -> dict[str, float]:
        own = (charge for charge in plan if charge.purpose in DegreesAndBlocks.PURPOSES)
        return {each.purpose: plan.event(each.purpose, Gaussian).sigma for each in own}
