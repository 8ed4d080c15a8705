"""`graph`: sorted degrees and edges between public blocks, and a graph that has them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from understudy.errors import InputError
from understudy.game.methods.base import Design, Forecast
from understudy.players.data.matching import Matching
from understudy.players.query.graph import DegreesAndBlocks
from understudy.privacy.cost import Charge, Gaussian, Plan

__all__ = ["GraphMethod"]

_DEGREES = Fraction(3, 5)
"""Of ρ, what degrees get where there are blocks; most of a graph's shape is in its degrees."""


@dataclass(frozen=True, slots=True)
class GraphMethod:
    """Serves the table of a graph's edges alone: two ends and their blocks, nodes in their order."""

    sizes: tuple[int, ...]
    name: str = "graph"

    whole = True
    """The model is the release: its records are the rows, not a sample of as many as were asked for."""

    def check(self, design: Design) -> None:
        """The columns are those of an edge."""
        nodes, blocks = sum(self.sizes), len(self.sizes)
        if design.shape != (nodes, nodes, blocks, blocks):
            raise InputError("method = graph serves lists of edges alone; use release_graph")

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """Two Gaussian releases, or one where there is one block."""
        two = len(self.sizes) > 1
        degrees = Gaussian.within(
            rho * _DEGREES if two else rho, changes=design.relation.marginal_l2_squared(2)
        )
        found = [Charge(DegreesAndBlocks.DEGREES, degrees)]
        if two:
            pairs = Gaussian.within(
                rho * (1 - _DEGREES), changes=design.relation.marginal_l2_squared()
            )
            found.append(Charge(DegreesAndBlocks.PAIRS, pairs))
        return tuple(found)

    def players(self, design: Design, plan: Plan) -> tuple[DegreesAndBlocks, Matching]:
        """Measure once, then match."""
        noise = self._noise(plan)
        pair = noise.get(DegreesAndBlocks.PAIRS)
        query = DegreesAndBlocks(self.sizes, noise[DegreesAndBlocks.DEGREES], pair)
        # What is measured of the number of edges, beside degrees and blocks; see `releases.make`.
        rows = next((c.event for c in plan if c.purpose == "number of rows"), None)
        rows_sigma = rows.sigma if isinstance(rows, Gaussian) and design.rows is None else 0.0
        return query, Matching(self.sizes, rows_sigma)

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Matching dominates."""
        return Forecast(
            self._noise(plan),
            "sorted degrees and edges between blocks are measured; clustering is the model's",
            2e8 + 400.0 * rows + 8.0 * len(self.sizes) ** 2,
            1.0 + 2e-5 * rows,
        )

    def theorem(self, design: Design, plan: Plan, rows: int, beta: float) -> None:
        """None."""

    def describe(self) -> dict[str, Any]:
        """Name and the sizes of the blocks."""
        return {"name": self.name, "sizes": list(self.sizes)}

    @staticmethod
    def _noise(plan: Plan) -> dict[str, float]:
        found: dict[str, float] = {}
        for charge in plan:
            if charge.purpose in (DegreesAndBlocks.DEGREES, DegreesAndBlocks.PAIRS):
                assert isinstance(charge.event, Gaussian)
                found[charge.purpose] = charge.event.sigma
        return found
