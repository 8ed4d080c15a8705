"""`gem`: a generator network against the exponential mechanism with measurements.

After Liu, Vietri and Wu, "Iterative Methods for Private Synthetic Data" (2021). Columns and pairs are
measured first, all of them; then rounds select the marginals that are farthest off and measure those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from understudy._types import Clique
from understudy.errors import require_extra
from understudy.game.methods.base import POSITIVE, Design, Forecast, WarmMethod, whole
from understudy.players.data.generator import GeneratorPlayer
from understudy.players.query.fixed import FixedMarginals
from understudy.players.query.survey import Opening, WorstAgain
from understudy.privacy import planning
from understudy.privacy.cost import Charge, Gaussian, Plan, Selection
from understudy.queries import cells

# Shares of ρ; see docs/methods/gem.md.
_PAIRS, _SELECT, _AGAIN = 0.45, 0.05, 0.40
_LEARNABLE = 2.0
_ROWS = 20_000
_LARGEST = 250_000
_WHOLE = 12.0
"""A marginal may be selected if it has at most so many cells, and so many for every n/σ: beyond that a
whole table shows noise alone, and takes the longest to train on."""
_PENALTY = 0.5
_BATCH, _FEWEST = 1000, 250
_STEPS, _MANY = 1200, 500_000
_ONE_WAY = "columns"


@dataclass(frozen=True)
class GEMMethod(WarmMethod):
    """Public settings. `rounds` of `picks` selections; a network of `blocks` × `width`.

    `batch` latents make the mixture, by default 1000, or fewer, where all columns together have more
    than 1000 values; the first training takes `steps` at most at `rate`, every later round 0.7 of them
    at a third of it; `megabytes` is what training may hold. `steps` are 1200, fewer where the pairs
    have more than 500 000 cells together, 600 at least. `hold_out` stops training where it fits noise.
    """

    rounds: Annotated[int, whole(0, 100)] = 1
    picks: Annotated[int, whole(1, 1000)] = 30
    batch: Annotated[int | None, whole(1, 10**6)] = None
    width: Annotated[int, whole(1, 10**5)] = 128
    blocks: Annotated[int, whole(0, 100)] = 1
    latent: Annotated[int, whole(1, 10**5)] = 64
    steps: Annotated[int | None, whole(1, 10**7)] = None
    rate: Annotated[float, POSITIVE] = 0.03
    megabytes: Annotated[float, POSITIVE] = 4000.0
    hold_out: bool = False
    name: str = "gem"

    def check(self, design: Design) -> None:
        """Settings in range, the libraries there, and the network and its tables within memory."""
        super().check(design)
        self.require_public(design.shape)
        require_extra(f"method = {self.name}", "nets")
        self._check_memory(design)

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """Columns, pairs, and the rounds; all fixed in advance."""
        closure = design.pair_weights
        part = self._split(design, rho)
        charges = [Charge(_ONE_WAY, design.gaussian(part["one"], len(design.shape)))]
        if not closure:
            return tuple(charges)
        charges.append(Charge(Opening.PAIRS, design.gaussian(part["pairs"], len(closure))))
        picks = self._picks(design, rho)
        if picks:
            rho_select = part["select"] / self.rounds
            selection = design.worst_marginals(rho_select, picks)
            again = design.gaussian(part["again"] / self.rounds, picks)
            charges.append(Charge(WorstAgain.SELECT, selection, self.rounds))
            charges.append(Charge(WorstAgain.AGAIN, again, self.rounds))
        return tuple(charges)

    def players(self, design: Design, plan: Plan) -> tuple[WorstAgain, GeneratorPlayer]:
        """The selection against the network."""
        closure, picks = tuple(design.pair_weights), _planned_picks(plan)
        sigma = plan.event(_ONE_WAY, Gaussian).sigma
        first = Opening((FixedMarginals(design.columns, sigma, _ONE_WAY),))
        if closure:
            sigma = plan.event(Opening.PAIRS, Gaussian).sigma
            first = Opening(first.columns, (FixedMarginals(closure, sigma, Opening.PAIRS),))
        again = plan.event(WorstAgain.AGAIN, Gaussian).sigma if picks else math.inf
        candidates = _candidates(design, again)
        query = WorstAgain(first, candidates, again, picks, self.rounds, _PENALTY)
        data = GeneratorPlayer(
            query.rounds,
            self._batch(design),
            self.latent,
            self.width,
            self.blocks,
            self._steps(design),
            self.rate,
            self.megabytes * 5e5,
            self.public,
            self.hold_out,
        )
        return query, data

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Training dominates, and compiling it."""
        closure, picks = design.pair_weights, _planned_picks(plan)
        more = f"; the worst {self.rounds} × {picks} marginals again" if picks else ""
        steps = self._steps(design) * (1 + 0.7 * self.rounds * bool(picks))
        batch = self._batch(design)
        work = batch * (2.0 * self._weights(design) + 20.0 * sum(design.shape))
        work += 2.0 * batch * design.cells(closure)
        return Forecast(
            f"all {len(design.shape)} columns and {len(closure)} pairs are measured{more}; other "
            f"tables are model",
            8e8 + 40.0 * rows * len(design.shape) + self._bytes(design),
            20.0 + 10.0 * (self.rounds + 1) + 3 * steps * work / 4e10,
        )

    def _batch(self, design: Design) -> int:
        if self.batch is not None:
            return self.batch
        return max(_FEWEST, min(_BATCH, _BATCH * _BATCH // sum(design.shape)))

    def _steps(self, design: Design) -> int:
        if self.steps is not None:
            return self.steps
        many = design.cells(design.pair_weights)
        return round(_STEPS * max(0.5, min(1.0, _MANY / max(many, 1))))

    def _picks(self, design: Design, rho: Fraction) -> int:
        """How many of the candidates a round takes; fewer of them are measured with less noise."""
        if not self.rounds:
            return 0
        changes = design.relation.marginal_l2_squared(self.picks)
        sigma = math.sqrt(changes * self.rounds / (2 * _AGAIN * float(rho)))
        return min(self.picks, len(_candidates(design, sigma)))

    def _split(self, design: Design, rho: Fraction) -> dict[str, Fraction]:
        closure = design.pair_weights
        if not closure:
            return {"one": rho}
        rows = design.rows or _ROWS
        mean = design.cells(closure) / len(closure)
        sigma = math.sqrt(
            design.relation.marginal_l2_squared(len(closure)) / (2 * _PAIRS * float(rho))
        )
        pairs = max(1e-6, round(_PAIRS * min(1.0, _LEARNABLE * rows / (mean * sigma)), 6))
        if not self._picks(design, rho):
            return planning.split(rho, {"one": 1 - pairs, "pairs": pairs})
        one = 1 - pairs - _SELECT - _AGAIN
        return planning.split(rho, {"one": one, "pairs": pairs, "select": _SELECT, "again": _AGAIN})

    def _weights(self, design: Design) -> float:
        """Numbers to train: the network, and the latents with it."""
        inner = 2.0 * self.width * self.width
        outer = self.width * sum(design.shape)
        return self.latent * self.width + self.blocks * inner + outer

    def _bytes(self, design: Design) -> float:
        """What training holds: Adam's copies, activations, heads, tables, a slice of the leads."""
        heads, batch = sum(design.shape), self._batch(design)
        activations = batch * (8.0 * heads + 6.0 * self.width * (self.blocks + 1))
        candidates = _candidates(design, 0.0)
        most = self.rounds * self.picks
        selected = sorted((cells(design.shape, c) for c in candidates), reverse=True)[:most]
        leads = sorted((_lead(design, c) for c in candidates), reverse=True)[:most]
        tables = design.cells(design.pair_weights) + sum(selected)
        high = sum(_lead(design, c) for c in design.pair_weights) + sum(leads)
        sliced = min(5.0 * batch * high, self.megabytes * 1e6 / 8)
        numbers = 4 * self._weights(design) + 4 * batch * self.latent + activations
        return 4.0 * (numbers + 15.0 * tables + sliced)

    def _check_memory(self, design: Design) -> None:
        need = self._bytes(design)
        if need <= self.megabytes * 1e6:
            return
        widest = max(range(len(design.shape)), key=lambda i: design.shape[i])
        self.refuse(
            f"training would hold about {need / 1e6:,.0f} MB, above megabytes = "
            f"{self.megabytes:,.0f}: batch = {self._batch(design):,} × {sum(design.shape):,} values "
            f"of all columns, width = {self.width:,}, "
            f"{design.cells(design.pair_weights):,} cells of pairs; lower batch or "
            f"width, give column {design.column(widest)} ({design.shape[widest]:,} values) fewer "
            f"values, take a smaller workload, or raise megabytes"
        )


def _lead(design: Design, clique: Clique) -> int:
    return cells(design.shape, clique) // max(design.shape[i] for i in clique)


def _candidates(design: Design, sigma: float) -> tuple[Clique, ...]:
    """Pairs and the workload's larger marginals, as far as they can be seen whole."""
    larger = sorted({clique for clique in design.cliques if len(clique) > 2})
    most = _LARGEST if sigma == 0 else min(_LARGEST, _WHOLE * (design.rows or _ROWS) / sigma)
    return tuple(c for c in (*design.pair_weights, *larger) if cells(design.shape, c) <= most)


def _planned_picks(plan: Plan) -> int:
    return plan.event(WorstAgain.SELECT, Selection).k if WorstAgain.SELECT in plan else 0
