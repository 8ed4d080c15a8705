"""`fem` and `sepfem`: the exponential mechanism against the perturbed leader.

Vietri, Tian, Bun, Steinke and Wu (2020), without a commercial solver and with the tight charge: each of
T rounds picks, by the exponential mechanism over all cells and complements, the query on which the data
player's records are most wrong (ρ/T, that is ε0 = √(8ρ/T)), and the data player answers through the
oracle. `fem` perturbs with exponential noise, `sepfem` with Laplace noise on the literals, which
separate all records. T is a public rule: T = min(2·√κ, 88·κ/ln(2|Q|)^(5/2)) with κ = n·√(2ρ), n
declared or assumed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from understudy.game.methods.base import Design, Forecast, Method, Theorem, planned
from understudy.game.methods.oracle import check_oracle, exact, seconds_of_search
from understudy.oracles import Annealed, Law
from understudy.players.data import PerturbedLeader
from understudy.players.query import CellPicker, QueryPicker
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT
from understudy.privacy.cost import Charge, Plan, Selection
from understudy.queries import separator
from understudy.wording import nothing

__all__ = ["FEMMethod", "SepFEMMethod"]

_MOST_CODES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class FEMMethod(Method):
    """`rounds = None` takes the public rule. `oracle` may be "exact", with `seconds` for a search."""

    rounds: int | None = None
    samples: int = 300
    step: float = 0.04
    decay: float = 1.5
    keep: float = 0.5
    starts: int = 3
    blocks: int = 32
    law: str = "exponential"
    oracle: str = "annealed"
    seconds: float = 1.0
    name: str = "fem"

    max_cells = 2**62
    classes = True

    def check(self, design: Design) -> None:
        """Settings must make a game; records of all kept rounds must fit memory."""
        self.require_least(1, rounds=self.rounds, samples=self.samples)
        self.require_share(keep=self.keep, step=self.step)
        self.require_least(0, decay=self.decay)
        self.require_one_of(tuple(Law), law=self.law)
        check_oracle(self.name, self.oracle, self.seconds)
        codes = self.samples * (self.rounds or 1000) * len(design.shape)
        if codes > _MOST_CODES:
            self.refuse(
                f"samples = {self.samples} records a round would need "
                f"{codes / 1e9:.1f} GB; use fewer samples or rounds"
            )

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
        pick = Selection.within(rho / T, sensitivity=SCORE_SENSITIVITY)
        return (Charge(CellPicker.PICK, pick, T),)

    def players(
        self, design: Design, plan: Plan
    ) -> tuple[CellPicker | QueryPicker, PerturbedLeader]:
        """The cell picker, or for other classes the query picker, against the perturbed leader."""
        T = plan[CellPicker.PICK].times
        annealed = Annealed(starts=self.starts, blocks=self.blocks)
        leader = PerturbedLeader(
            T,
            self.samples,
            Law(self.law),
            self.step,
            self.decay,
            self.keep,
            exact(self.seconds, annealed) if self.oracle == "exact" else annealed,
        )
        if design.families:
            return QueryPicker.over(T, design.families, design.shape), leader
        return CellPicker(T), leader

    def query_player(self, design: Design, plan: Plan) -> CellPicker:
        """As many picks, without the list of every query."""
        return CellPicker(plan[CellPicker.PICK].times)

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """The oracle dominates: T·s best responses to up to T queries."""
        T, event = plan[CellPicker.PICK].times, planned(plan, CellPicker.PICK, Selection)
        order = max(len(clique) for clique in design.cliques)
        listed = design.queries if design.families else 0
        if any(family.kind in ("parities", "halfspaces") for family in design.families):
            order *= 2**order - 1  # so many conjunctions are one of them
        off = event.scale / UNIT * math.log(1e4) / rows
        return Forecast(
            {},
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

    def theorem(self, design: Design, plan: Plan, rows: int, beta: float) -> Theorem:
        """The corrected bound of the paper for T rounds, for the record."""
        T, event = plan[CellPicker.PICK].times, planned(plan, CellPicker.PICK, Selection)
        queries = 2.0 * design.queries
        regret, words = self._regret(design, T)
        picking = event.scale / UNIT / rows * math.log(2 * T * queries / beta)
        return Theorem(
            min(1.0, regret + picking),
            beta,
            f"{words} + (2/(n·ε0))·ln(2T|Q|/β), for an exact oracle, the theorem's own noise and "
            f"sample size; the certificate is what was measured",
        )

    def _regret(self, design: Design, T: int) -> tuple[float, str]:
        return 5 * sum(design.shape) ** 1.5 / math.sqrt(T), "5·d^(3/2)/√T"


@dataclass(frozen=True, slots=True)
class SepFEMMethod(FEMMethod):
    """FEM with Laplace noise on a separator set of the workload's classes: the literals."""

    law: str = "laplace"
    name: str = "sepfem"

    def check(self, design: Design) -> None:
        """Every class must declare a separator set."""
        FEMMethod.check(self, design)
        separator(design.asked, design.shape)

    def _regret(self, design: Design, T: int) -> tuple[float, str]:
        d, M = sum(design.shape), len(separator(design.asked, design.shape))
        return 2 * math.sqrt(40) * M**0.75 * math.sqrt(d) / math.sqrt(T), "2√40·M^(3/4)·√d/√T"
