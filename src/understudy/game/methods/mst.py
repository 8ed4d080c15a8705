"""`mst`: a private spanning tree of pairs under a maximum-entropy model (NIST-MST).

ρ is split between the one-way marginals, the d−1 selections and the d−1 pairs. Selection scores are
thousands of rows where its noise is tens, so it gets the smallest share.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from understudy.errors import require_extra
from understudy.game.methods.base import POSITIVE, Design, Forecast, Method, least
from understudy.players.data.maxent import MaximumEntropy
from understudy.players.query.tree import SpanningTree
from understudy.privacy import planning
from understudy.privacy.cost import Charge, Gaussian, Plan


@dataclass(frozen=True, slots=True)
class MSTMethod(Method):
    """Shares of ρ: one-ways, selection, pairs."""

    one_ways: Annotated[float, POSITIVE] = 0.3
    selection: Annotated[float, POSITIVE] = 0.1
    pairs: Annotated[float, POSITIVE] = 0.6
    iterations: Annotated[int, least(1)] = 1000
    name: str = "mst"

    def check(self, design: Design) -> None:
        """Serves every table: a tree of pairs always fits. Shares must be above 0."""
        Method.check(self, design)
        if len(design.shape) > 1:  # one column needs no fit
            require_extra(f"method = {self.name}", "reference")

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """Gaussian, d−1 selections, Gaussian."""
        d = len(design.shape)
        if d == 1:
            return (Charge(SpanningTree.ONE_WAY, design.gaussian(rho)),)
        part = planning.split(
            rho, {"one": self.one_ways, "select": self.selection, "pair": self.pairs}
        )
        selection = design.worst_marginals(part["select"] / (d - 1))
        return (
            Charge(SpanningTree.ONE_WAY, design.gaussian(part["one"], d)),
            Charge(SpanningTree.SELECT, selection, d - 1),
            Charge(SpanningTree.PAIRS, design.gaussian(part["pair"], d - 1)),
        )

    def players(self, design: Design, plan: Plan) -> tuple[SpanningTree, MaximumEntropy]:
        """The tree player against maximum entropy."""
        one = plan.event(SpanningTree.ONE_WAY, Gaussian)
        if SpanningTree.PAIRS not in plan:
            return SpanningTree(one.sigma, one.sigma, rounds=1), MaximumEntropy(self.iterations)
        pair = plan.event(SpanningTree.PAIRS, Gaussian)
        return SpanningTree(one.sigma, pair.sigma), MaximumEntropy(self.iterations)

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Compilation of the fit and counting of all pairs dominate."""
        d = len(design.shape)
        pairs = d * (d - 1) / 2
        cells = sum(a * b for i, a in enumerate(design.shape) for b in design.shape[:i])
        return Forecast(
            f"all {d} columns and {max(d - 1, 0)} pairs are measured; the rest is inferred",
            7e8 + 40.0 * rows * d + 32.0 * cells,
            8.0 + 1.0 * d + 1e-8 * rows * pairs,
        )
