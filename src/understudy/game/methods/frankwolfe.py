"""`frankwolfe`: Frank-Wolfe on the entropic dual of the query-release game, for universes that fit.

The query player picks a noisy vertex, a cell and its side, by one selection a round (ρ/T each); the
data player answers with softmax(q_t/α), q_t the running convex combination of the vertices.
docs/methods/frankwolfe.md has the public rule, and the theorem with its proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

from understudy import wording
from understudy.game.methods.base import POSITIVE, Design, Forecast, Method, Theorem, least
from understudy.players.data.universe import SoftmaxResponse
from understudy.players.query.picking import CellPicker, NoisyVertex
from understudy.privacy import planning
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT
from understudy.privacy.cost import Charge, Plan, Selection


@dataclass(frozen=True, slots=True)
class FrankWolfeMethod(Method):
    """`rounds = None` takes the public rule; `step` is c, in units of the theory's step."""

    rounds: Annotated[int | None, least(1, "; leave it out for 2·√(n·√(2ρ))")] = None
    alpha: Annotated[float, POSITIVE] = 0.001
    step: Annotated[float, POSITIVE] = 2.5
    limit: int = 4_000_000
    name: str = "frankwolfe"

    population: ClassVar[bool] = True

    def check(self, design: Design) -> None:
        """The universe must be enumerable."""
        Method.check(self, design)
        self.require_universe(design, self.limit)

    def _gamma(self, design: Design, rounds: int) -> float:
        log_universe = math.log(max(design.universe, 2))
        return min(1.0, self.step * self.alpha / 2 * math.sqrt(2 * log_universe / rounds))

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """T selections."""
        rounds = self.rounds or max(1, round(2 * math.sqrt(design.kappa(rho))))
        event = planning.selection(rho / rounds, sensitivity=SCORE_SENSITIVITY)
        return (Charge(NoisyVertex.SELECT, event, rounds),)

    def players(self, design: Design, plan: Plan) -> tuple[NoisyVertex, SoftmaxResponse]:
        """The noisy vertex against the softmax response."""
        rounds = plan[NoisyVertex.SELECT].times
        gamma = self._gamma(design, rounds)
        query = NoisyVertex.over(rounds, design.cliques, design.shape)
        return query, SoftmaxResponse(self.alpha, gamma, rounds // 2)

    def query_player(self, design: Design, plan: Plan) -> CellPicker:
        """As many picks, without the list of every query."""
        return CellPicker(plan[NoisyVertex.SELECT].times)

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """One pass over the universe per round, and the marginals of the workload."""
        universe, rounds = design.universe, plan[NoisyVertex.SELECT].times
        return Forecast(
            f"nothing is measured: {rounds} private selections steer the model",
            2e8 + 64.0 * universe + 40.0 * rows * len(design.shape),
            1.0 + 3e-9 * rounds * universe * (10.0 + len(design.cliques)),
        )

    def theorem(self, design: Design, plan: Plan, rows: int, beta: float) -> Theorem:
        """The bound above, in numbers, and what it says of the population."""
        rounds, event = plan[NoisyVertex.SELECT].times, plan.event(NoisyVertex.SELECT, Selection)
        cells = design.queries
        log_universe = math.log(max(design.universe, 2))
        gamma, kept = self._gamma(design, rounds), rounds - rounds // 2
        scale, grid = event.scale / UNIT / rows, 3 / UNIT / rows

        def bound(log_candidates: float) -> float:
            game = self.alpha * log_universe / (kept * gamma)
            each = 2 * gamma / self.alpha + scale * log_candidates + grid
            return min(1.0, game + rounds / kept * each + self.alpha * log_universe)

        proved = bound(math.log(2 * cells * rounds / beta))
        sampling = math.sqrt(math.log(2 * cells / beta) / (2 * rows))
        return Theorem(
            proved,
            beta,
            "α·ln|X|/(mγ) + (T/m)·(2γ/α + (2/(n·ε0))·ln(2|Q|T/β)) + α·ln|X|: the gap of Frank-Wolfe "
            "on the entropic dual, the error of T private selections and the entropy; in "
            f"expectation {wording.bound(bound(math.log(2 * cells)))}. For the population that the n "
            f"rows were drawn from independently it adds √(ln(2|Q|/β')/(2n)) = {sampling:.3g} at "
            f"β' = {beta:g}: {wording.bound(proved + sampling)}, with probability 1 − β − β'",
        )
