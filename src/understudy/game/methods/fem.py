"""`fem` and `sepfem`: the exponential mechanism against the perturbed leader.

Vietri, Tian, Bun, Steinke and Wu (2020): each of T rounds picks, over all cells and complements, the
query on which the data player's records are most wrong, and the data player answers through the oracle
(docs/methods/fem.md). `sepfem` has Laplace noise on the literals, which separate all records.
`published = true` plays the paper's own algorithm; its theorem is for that alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from understudy.game.methods.base import (
    POSITIVE,
    SHARE,
    Design,
    Forecast,
    Method,
    Theorem,
    least,
    one_of,
)
from understudy.game.methods.oracle import ORACLE, SECONDS, exact, seconds_of_search
from understudy.oracles import Annealed, Law
from understudy.oracles.exact import require_solver
from understudy.players.data.ftpl import PerturbedLeader, UnitLeader
from understudy.players.query.picking import CellPicker, QueryPicker
from understudy.privacy import planning
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT
from understudy.privacy.cost import Charge, Plan, Selection
from understudy.queries import separator
from understudy.wording import nothing

_MOST_CODES = 1_000_000_000
_SCALE = 1.0


@dataclass(frozen=True, slots=True)
class FEMMethod(Method):
    """`rounds = None` takes the public rule. `oracle` may be "exact", with `seconds` for a search.

    `scale` is that of the noise where `published`; None is the public rule, `step`, `decay` and `keep`
    are then not used.
    """

    rounds: Annotated[int | None, least(1)] = None
    samples: Annotated[int, least(1)] = 300
    step: Annotated[float, SHARE] = 0.04
    decay: Annotated[float, least(0)] = 1.5
    keep: Annotated[float, SHARE] = 0.5
    starts: Annotated[int, least(1)] = 3
    blocks: Annotated[int, least(0)] = 32
    law: Annotated[str, one_of(*Law)] = "exponential"
    oracle: Annotated[str, ORACLE] = "annealed"
    seconds: Annotated[float, SECONDS] = 1.0
    published: bool = False
    scale: Annotated[float | None, POSITIVE] = None
    name: str = "fem"

    max_cells = 2**62
    classes = True

    def check(self, design: Design) -> None:
        """Settings must make a game; records of all kept rounds must fit memory."""
        Method.check(self, design)
        if self.oracle == "exact":
            require_solver()
        self._check_published()
        codes = self.samples * (self.rounds or 1000) * len(design.shape)
        if codes > _MOST_CODES:
            self.refuse(
                f"samples = {self.samples} records a round would need "
                f"{codes / 1e9:.1f} GB; use fewer samples or rounds"
            )

    def _check_published(self) -> None:
        """Settings that would not be used are refused."""
        if self.scale is not None and not self.published:
            self.refuse(
                f"scale = {self.scale} is of published = true; set that too, or leave it out"
            )
        own = FEMMethod()
        if self.published and (self.step, self.decay, self.keep) != (own.step, own.decay, own.keep):
            self.refuse("step, decay and keep are not used with published = true; leave them out")

    def _rounds(self, design: Design, rho: Fraction) -> int:
        if self.rounds is not None:
            return self.rounds
        kappa = design.kappa(rho)
        # A pick is off by √T·ln|Q|/κ and the game by about 1/√T: beyond T ∝ κ/ln|Q| more rounds
        # only make worse picks, which is what small budgets and large classes run into. The larger
        # the class, the more is lost with a cell that is never found: hence the power 5/2.
        balance = 88 * kappa / math.log(2.0 * design.queries) ** 2.5
        return max(1, round(min(2.0 * math.sqrt(kappa), balance)))

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """T picks."""
        T = self._rounds(design, rho)
        pick = planning.selection(rho / T, sensitivity=SCORE_SENSITIVITY)
        return (Charge(CellPicker.PICK, pick, T),)

    def players(
        self, design: Design, plan: Plan
    ) -> tuple[CellPicker | QueryPicker, PerturbedLeader]:
        """The cell picker, or for other classes the query picker, against the perturbed leader."""
        T = plan[CellPicker.PICK].times
        annealed = Annealed(starts=self.starts, blocks=self.blocks)
        oracle = exact(self.seconds, annealed) if self.oracle == "exact" else annealed
        law = Law(self.law)
        if self.published:
            leader = UnitLeader(T, self.samples, law, oracle=oracle, scale=self._scale())
        else:
            leader = PerturbedLeader(T, self.samples, law, self.step, self.decay, self.keep, oracle)
        if design.families:
            return QueryPicker.over(T, design.families, design.shape), leader
        return CellPicker(T), leader

    def query_player(self, design: Design, plan: Plan) -> CellPicker:
        """As many picks, without the list of every query."""
        return CellPicker(plan[CellPicker.PICK].times)

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """The oracle dominates: T·s best responses to up to T queries."""
        T, event = plan[CellPicker.PICK].times, plan.event(CellPicker.PICK, Selection)
        order = max(len(clique) for clique in design.cliques)
        listed = design.queries if design.families else 0
        if any(family.kind in ("parities", "halfspaces") for family in design.families):
            order *= 2**order - 1  # so many conjunctions are one of them
        off = event.scale / UNIT * math.log(1e4) / rows
        return Forecast(
            f"nothing is measured; {T} queries are picked, each within about {off:.4f} of the worst"
            f"{nothing(off)}",
            3e8
            + 40.0 * rows * len(design.shape)
            + 16.0 * rows * len(design.cliques)
            + 4.0 * T * self.samples * len(design.shape)
            + 100.0 * listed,
            2.0
            + T * (4e-3 + 4e-7 * listed + self.samples * (4e-6 + 1.5e-8 * T * order) * self.starts)
            + 2 * T * self.samples * seconds_of_search(self.oracle, self.seconds),
        )

    def theorem(self, design: Design, plan: Plan, rows: int, beta: float) -> Theorem | None:
        """The paper's bound, corrected, for this T, s and scale; for its own algorithm only."""
        if not self.published or self.law != type(self)().law:
            return None
        T, event = plan[CellPicker.PICK].times, plan.event(CellPicker.PICK, Selection)
        queries = 2.0 * design.queries
        regret, words = self._regret(design, T)
        sampling = math.sqrt(math.log(4 * T * queries / beta) / (2 * self.samples))
        picking = event.scale / UNIT / rows * math.log(2 * T * queries / beta)
        return Theorem(
            min(1.0, regret + sampling + picking),
            beta,
            f"{words} + √(ln(4T|Q|/β)/(2s)) + (2/(n·ε0))·ln(2T|Q|/β), b the scale of the noise: regret "
            f"of the leader, its sampling and the picks; it takes an exact oracle for granted",
        )

    def _scale(self) -> float:
        """b: as given, or one of the paper's grid (1 to 4), which it searched on the private table."""
        return _SCALE if self.scale is None else self.scale

    def _regret(self, design: Design, T: int) -> tuple[float, str]:
        d, b = sum(design.shape), self._scale()
        return 125 * d * d / b + d * b / (20 * T), "125·d²/b + d·b/(20·T)"


@dataclass(frozen=True, slots=True)
class SepFEMMethod(FEMMethod):
    """FEM with Laplace noise on a separator set of the workload's classes: the literals."""

    law: Annotated[str, one_of(*Law)] = "laplace"
    name: str = "sepfem"

    def _regret(self, design: Design, T: int) -> tuple[float, str]:
        d, M, b = sum(design.shape), len(separator(design.shape)), self._scale()
        return 4 * M / b + 10 * b * math.sqrt(M) * d / T, "4·M/b + 10·b·√M·d/T"
