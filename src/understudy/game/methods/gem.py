"""`gem`: a generator network against the exponential mechanism with measurements.

After Liu, Vietri and Wu, "Iterative Methods for Private Synthetic Data" (2021). Columns and pairs are
measured first, all of them; then rounds select the marginals that are farthest off and measure those.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from understudy._types import Codes
from understudy.errors import InputError, require_extra
from understudy.game.methods.base import Design, Forecast, Method
from understudy.players.base import Clique
from understudy.players.data.generator import GeneratorPlayer
from understudy.players.query.selected import WorstAgain
from understudy.players.query.survey import Survey, Tier
from understudy.privacy.budget import split
from understudy.privacy.cost import Charge, Gaussian, Plan, Selection
from understudy.privacy.questions import WorstMarginals

__all__ = ["GEM"]


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
class GEM(Method):
    """Public settings. `rounds` of `picks` selections; a network of `blocks` × `width`.

    `batch` latents make the mixture, by default 1000, or fewer, where all columns together have more
    than 1000 values; the first training takes `steps` at `rate`, every later round
    0.7 of them at a third of it; `megabytes` is what training may hold. `steps` are 1200, fewer where
    the pairs have more than 500 000 cells together, 600 at least.
    """

    rounds: int = 1
    picks: int = 30
    batch: int | None = None
    width: int = 128
    blocks: int = 1
    latent: int = 64
    steps: int | None = None
    rate: float = 0.03
    megabytes: float = 4000.0
    public: tuple[Codes, ...] | None = field(default=None, repr=False)
    name: str = "gem"

    def warm(self, codes: tuple[Codes, ...]) -> GEM:
        """The same, starting from rows that anybody may know."""
        return replace(self, public=codes)

    def check(self, design: Design) -> None:
        """Settings in range, the libraries there, and the network and its tables within memory."""
        for name, low, high in (
            ("rounds", 0, 100), ("picks", 1, 1000), ("batch", 1, 10**6), ("width", 1, 10**5),
            ("blocks", 0, 100), ("latent", 1, 10**5), ("steps", 1, 10**7),
        ):  # fmt: skip
            value = getattr(self, name)
            if name in ("batch", "steps") and value is None:
                continue
            if not isinstance(value, int) or not low <= value <= high:
                raise InputError(
                    f"method = gem: {name} = {value} must be a whole number from {low:,} to {high:,}"
                )
        if not 0 < self.rate < math.inf or not 0 < self.megabytes < math.inf:
            raise InputError(
                f"method = gem: rate = {self.rate} and megabytes = {self.megabytes} must be above 0"
            )
        if self.public is not None and not _fits(self.public, design.shape):
            raise InputError(
                "method = gem: public is no setting; give a table of the same schema by the option "
                "--public (public= in Python)"
            )
        require_extra(f"method = {self.name}", "nets")
        self._check_memory(design)

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """Columns, pairs, and the rounds; all fixed in advance."""
        relation, closure = design.relation, _pairs(design)
        part = self._split(design, rho, closure)
        columns = Gaussian.of_tables(part["one"], relation, len(design.shape))
        charges = [Charge(_ONE_WAY, columns)]
        if not closure:
            return tuple(charges)
        pairs = Gaussian.of_tables(part["pairs"], relation, len(closure))
        charges.append(Charge(Survey.PAIRS, pairs))
        picks = self._picks(design, rho)
        if picks:
            selection = Selection.within(
                part["select"] / self.rounds,
                sensitivity=WorstMarginals.sensitivity(relation),
                k=picks,
            )
            again = Gaussian.of_tables(part["again"] / self.rounds, relation, picks)
            charges.append(Charge(WorstAgain.SELECT, selection, self.rounds))
            charges.append(Charge(WorstAgain.AGAIN, again, self.rounds))
        return tuple(charges)

    def players(self, design: Design, plan: Plan) -> tuple[WorstAgain, GeneratorPlayer]:
        """The selection against the network."""
        closure, picks = _pairs(design), _planned_picks(plan)
        tier = Tier(_ONE_WAY, _sigma(plan, _ONE_WAY), tuple(range(len(design.shape))))
        weights = (1.0,) * len(design.shape)
        first = Survey(
            (tier,), closure, _sigma(plan, Survey.PAIRS) if closure else 1.0,
            (), 1.0, (), 1.0, 0, 1.0, weights, again=0,
        )  # fmt: skip
        sigma = _sigma(plan, WorstAgain.AGAIN) if picks else math.inf
        query = WorstAgain(
            first,
            _candidates(design, sigma),
            sigma,
            picks,
            self.rounds,
            _PENALTY,
        )
        data = GeneratorPlayer(
            query.rounds, self._batch(design), self.latent, self.width, self.blocks,
            self._steps(design), self.rate, self.megabytes * 5e5, self.public,
        )  # fmt: skip
        return query, data

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Training dominates, and compiling it."""
        noise = {c.purpose: c.event.sigma for c in plan if isinstance(c.event, Gaussian)}
        closure, picks = _pairs(design), _planned_picks(plan)
        more = f"; the worst {self.rounds} × {picks} marginals again" if picks else ""
        steps = self._steps(design) * (1 + 0.7 * self.rounds * bool(picks))
        batch = self._batch(design)
        work = batch * (2.0 * self._weights(design) + 20.0 * sum(design.shape))
        work += 2.0 * batch * sum(_cells(design, pair) for pair in closure)
        return Forecast(
            noise,
            f"all {len(design.shape)} columns and {len(closure)} pairs are measured{more}; other "
            f"tables are model",
            8e8 + 40.0 * rows * len(design.shape) + self._bytes(design),
            20.0 + 10.0 * (self.rounds + 1) + 3 * steps * work / 4e10,
        )

    def describe(self) -> dict[str, Any]:
        """Name and parameters; of public rows their number and a digest."""
        described = {
            name: getattr(self, name) for name in self.__dataclass_fields__ if name != "public"
        }
        if self.public is not None:
            digest = hashlib.sha256()
            for column in self.public:
                digest.update(np.ascontiguousarray(column, np.int64).tobytes())
            described["public"] = {"rows": int(self.public[0].size), "digest": digest.hexdigest()}
        return described

    def _batch(self, design: Design) -> int:
        if self.batch is not None:
            return self.batch
        return max(_FEWEST, min(_BATCH, _BATCH * _BATCH // sum(design.shape)))

    def _steps(self, design: Design) -> int:
        if self.steps is not None:
            return self.steps
        cells = sum(_cells(design, pair) for pair in _pairs(design))
        return round(_STEPS * max(0.5, min(1.0, _MANY / max(cells, 1))))

    def _picks(self, design: Design, rho: Fraction) -> int:
        """How many of the candidates a round takes; fewer of them are measured with less noise."""
        if not self.rounds:
            return 0
        changes = design.relation.marginal_l2_squared(self.picks)
        sigma = math.sqrt(changes * self.rounds / (2 * _AGAIN * float(rho)))
        return min(self.picks, len(_candidates(design, sigma)))

    def _split(
        self, design: Design, rho: Fraction, closure: tuple[Clique, ...]
    ) -> dict[str, Fraction]:
        if not closure:
            return {"one": rho}
        rows = design.rows or _ROWS
        cells = sum(_cells(design, pair) for pair in closure) / len(closure)
        sigma = math.sqrt(
            design.relation.marginal_l2_squared(len(closure)) / (2 * _PAIRS * float(rho))
        )
        pairs = max(1e-6, round(_PAIRS * min(1.0, _LEARNABLE * rows / (cells * sigma)), 6))
        if not self._picks(design, rho):
            return split(rho, {"one": 1 - pairs, "pairs": pairs})
        one = 1 - pairs - _SELECT - _AGAIN
        return split(rho, {"one": one, "pairs": pairs, "select": _SELECT, "again": _AGAIN})

    def _weights(self, design: Design) -> float:
        """Numbers to train: the network, and the latents with it."""
        inner = 2.0 * self.width * self.width
        return (
            self.latent * self.width + self.blocks * inner + self.width * sum(design.shape)
        )  # fmt: skip

    def _bytes(self, design: Design) -> float:
        """What training holds: Adam's copies, activations, heads, tables, and one slice of a lead."""
        heads, batch = sum(design.shape), self._batch(design)
        activations = batch * (8.0 * heads + 6.0 * self.width * (self.blocks + 1))
        tables = sum(_cells(design, pair) for pair in _pairs(design))
        candidates = _candidates(design, 0.0)
        selected = sorted((_cells(design, c) for c in candidates), reverse=True)
        tables += sum(selected[: self.rounds * self.picks])
        lead = max((_lead(design, c) for c in (*_pairs(design), *candidates)), default=1)
        sliced = min(3.0 * batch * lead, self.megabytes * 1e6 / 8)
        return 4.0 * (
            4 * self._weights(design) + 4 * batch * self.latent + activations
            + 10.0 * tables + sliced
        )  # fmt: skip

    def _check_memory(self, design: Design) -> None:
        need = self._bytes(design)
        if need <= self.megabytes * 1e6:
            return
        widest = max(range(len(design.shape)), key=lambda i: design.shape[i])
        raise InputError(
            f"method = gem: training would hold about {need / 1e6:,.0f} MB, above megabytes = "
            f"{self.megabytes:,.0f}: batch = {self._batch(design):,} × {sum(design.shape):,} values "
            f"of all columns, width = {self.width:,}, "
            f"{sum(_cells(design, p) for p in _pairs(design)):,} cells of pairs; lower batch or "
            f"width, give column {design.column(widest)} ({design.shape[widest]:,} values) fewer "
            f"values, take a smaller workload, or raise megabytes"
        )


def _fits(public: Any, shape: tuple[int, ...]) -> bool:
    """One array of codes inside the domain per column."""
    return (
        isinstance(public, tuple)
        and len(public) == len(shape)
        and all(
            isinstance(codes, np.ndarray) and codes.size and 0 <= codes.min() <= codes.max() < size
            for codes, size in zip(public, shape, strict=True)
        )
    )


def _cells(design: Design, clique: Clique) -> int:
    return math.prod(design.shape[i] for i in clique)


def _lead(design: Design, clique: Clique) -> int:
    return _cells(design, clique) // max(design.shape[i] for i in clique)


def _pairs(design: Design) -> tuple[Clique, ...]:
    """Pairs inside marginals of the workload."""
    found = {pair for clique in design.cliques for pair in combinations(clique, 2)}
    return tuple(sorted(found))


def _candidates(design: Design, sigma: float) -> tuple[Clique, ...]:
    """Pairs and the workload's larger marginals, as far as they can be seen whole."""
    larger = {clique for clique in design.cliques if len(clique) > 2}
    most = _LARGEST if sigma == 0 else min(_LARGEST, _WHOLE * (design.rows or _ROWS) / sigma)
    return tuple(c for c in (*_pairs(design), *sorted(larger)) if _cells(design, c) <= most)


def _planned_picks(plan: Plan) -> int:
    event = plan[WorstAgain.SELECT].event if WorstAgain.SELECT in plan else None
    return event.k if isinstance(event, Selection) else 0


def _sigma(plan: Plan, purpose: str) -> float:
    event = plan[purpose].event
    assert isinstance(event, Gaussian)
    return event.sigma
