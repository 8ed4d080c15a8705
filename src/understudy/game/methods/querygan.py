"""`querygan`: private critics against a generator network.

The game of Fine's thesis, repaired: in every round an oracle releases a critic D_θ that tells the table
from the generator's records, and the generator, which never meets a row, moves against the leader of
all critics so far. Only the oracle is charged:

    moments      all means m of a public feature map, once, with Gaussian noise; every critic of every
                 round follows from m̃, so rounds are free
    exponential  one pick a round over all cells of the workload and complements, ρ/T each
    weights      draws from multiplicative weights over them, as `dualquery`
    logistic     a regression of rows against records by objective perturbation, pure ε0 a round

The columns are measured first, with a share of ρ, and are where the generator starts. What the
generator does is post-processing. No regret bound holds for a network, so nothing is promised before
the run; the certificate is measured after it.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from understudy.errors import InputError
from understudy.game.methods.base import Design, Forecast, Theorem
from understudy.game.methods.dualquery import assumed, sizes
from understudy.nets import require_nets
from understudy.players.base import Clique, Model, QueryPlayer
from understudy.players.data import NetLeader
from understudy.players.data.netleader import Judged
from understudy.players.query import (
    CellPicker,
    FixedMarginals,
    InTurn,
    LogisticCritics,
    QueryWeights,
)
from understudy.players.query.logistic import grouped
from understudy.privacy import accounting
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT
from understudy.privacy.cost import Charge, Gaussian, Plan, Selection
from understudy.privacy.objective import Looks, event_for

__all__ = ["QueryGAN"]

COLUMNS = "one-way marginals"
TABLES = "moments of the critics"
ORACLES = ("moments", "exponential", "weights", "logistic")
OBJECTIVES = ("tv", "mmd", "max", "wasserstein")
PLAYS = ("last", "ftl", "ftpl", "sftpl")


@dataclass(frozen=True, slots=True)
class QueryGAN:
    """`oracle`, `objective` and `play` choose the two players; the rest are public settings.

    `objective` is what the critics of "moments" maximise; the other oracles have their own. `degree`
    is the order of the monomials that critics of "moments" and "logistic" are made of: 2 for all pairs
    of columns inside the workload's marginals. `rounds`, `play`, `steps` and `anchor` follow from the
    oracle where they are None. `kernel` is w of the all-subsets kernel, 1/d if None.
    """

    oracle: str = "moments"
    objective: str = "tv"
    play: str | None = None
    degree: int = 2
    rounds: int | None = None
    samples: int | None = None
    columns: float = 0.15
    steps: int | None = None
    rate: float = 1e-3
    batch: int = 512
    anchor: float | None = None
    scale: float = 0.01
    history: int = 32
    kernel: float | None = None
    tilt: float = 0.0
    keep: float = 0.25
    records: int = 100_000
    width: int = 256
    cells: int = 300
    limit: int = 4_000_000
    name: str = "querygan"

    def check(self, design: Design) -> None:
        """JAX must be there, choices must be known, and what critics look at must fit memory."""
        require_nets(self.name)
        for option, value, known in (
            ("oracle", self.oracle, ORACLES),
            ("objective", self.objective, OBJECTIVES),
            ("play", self._play, PLAYS),
        ):
            if value not in known:
                raise InputError(
                    f"method = querygan: {option} = {value!r} is not one of {', '.join(known)}"
                )
        for option, least in (
            ("degree", 1), ("batch", 1), ("history", 1), ("records", 1), ("width", 1), ("cells", 1),
            ("rounds", 2 if self.oracle == "weights" else 1), ("steps", 1), ("samples", 1),
        ):  # fmt: skip
            value = getattr(self, option)
            if value is not None and value < least:
                raise InputError(f"method = querygan: {option} = {value} must be at least {least}")
        for option in ("rate", "kernel"):
            value = getattr(self, option)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise InputError(f"method = querygan: {option} = {value} must be above 0")
        for option in ("anchor", "scale", "tilt"):
            value = getattr(self, option)
            if value is not None and not (value >= 0 and math.isfinite(value)):
                raise InputError(f"method = querygan: {option} = {value} must be at least 0")
        if not 0 < self.columns < 1:
            raise InputError(
                f"method = querygan: columns = {self.columns} must lie between 0 and 1; it is the "
                f"share of the budget that columns get, 0.15 is usual"
            )
        if not 0 < self.keep <= 1:
            raise InputError(f"method = querygan: keep = {self.keep} must be in (0, 1]")
        if self.oracle in ("moments", "logistic"):
            self._check_features(design)

    def _check_features(self, design: Design) -> None:
        features = sum(_size(clique, design.shape) for clique in self._tables(design))
        if features > self.limit:
            raise InputError(
                f"method = querygan: critics of oracle = {self.oracle} would look at {features:.3g} "
                f"cells of tables, above the limit of {self.limit:.3g} that fits memory; use oracle = "
                f"exponential, a smaller degree, fewer bins, or a workload of fewer marginals"
            )
        if self.oracle != "logistic":
            return
        for clique in self._tables(design):
            if (cells := _size(clique, design.shape)) > 10 * self.cells:
                raise InputError(
                    f"method = querygan: oracle = logistic solves for one weight per cell, and the "
                    f"table of columns {', '.join(map(design.column, clique))} has {cells}, above "
                    f"{10 * self.cells}; use oracle = moments, degree = 1, or fewer bins"
                )

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """The columns, then the oracle's looks."""
        share = Fraction(self.columns) * rho
        changes = design.relation.marginal_l2_squared(len(design.shape))
        first = Charge(COLUMNS, Gaussian.within(share, changes=changes))
        return first, *self._looks(design, rho - share)

    def _looks(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        match self.oracle:
            case "moments":
                tables = self._tables(design)
                changes = design.relation.marginal_l2_squared(len(tables))
                return (Charge(TABLES, Gaussian.within(rho, changes=changes)),)
            case "exponential":
                T = self._rounds(design, rho)
                pick = Selection.within(rho / T, sensitivity=SCORE_SENSITIVITY)
                return (Charge(CellPicker.PICK, pick, T),)
            case "weights":
                return QueryWeights.charges(*sizes(design, rho, self.rounds, self.samples), rho)
            case _:
                groups, T = self._groups(design), self._rounds(design, rho)
                each = accounting.laplace_epsilon(rho / T)
                looks = [Looks(design.shape, group) for group in groups]
                return tuple(
                    Charge(
                        LogisticCritics.purpose(i), event_for(look, design.relation, each),
                        len(range(i, T, len(groups))),
                    )
                    for i, look in enumerate(looks[:T])
                )  # fmt: skip

    def _rounds(self, design: Design, rho: Fraction) -> int:
        if self.rounds is not None:
            return self.rounds
        if self.oracle == "logistic":
            return len(self._groups(design))
        return max(1, round(2 * math.sqrt(assumed(design) * math.sqrt(2 * float(rho)))))

    def players(self, design: Design, plan: Plan) -> tuple[QueryPlayer, NetLeader]:
        """The columns, then the oracle, against the generator."""
        ones = tuple((i,) for i in range(len(design.shape)))
        opening = FixedMarginals(ones, _sigma(plan, COLUMNS), COLUMNS)
        features: tuple[Clique, ...] = ()
        match self.oracle:
            case "moments":
                T = self.rounds or _free(design, plan)
                oracle = FixedMarginals(self._tables(design), _sigma(plan, TABLES), TABLES)
            case "exponential":
                T = plan[CellPicker.PICK].times
                oracle = CellPicker(T)
            case "weights":
                T, _, _ = QueryWeights.read(plan)
                oracle = QueryWeights(T)
            case _:
                groups = self._groups(design)
                T = sum(charge.times for charge in plan if charge.purpose in _purposes(groups))
                features = tuple(clique for group in groups for clique in group)
                oracle = LogisticCritics(T, groups)
        leader = NetLeader(
            T, features, self.objective, self._play, self.batch, self._steps, self.rate,
            self._anchor, self.scale, self.history, self._kernel(design), self.tilt, self.keep,
            self.records, self.oracle in ("weights", "logistic"), width=self.width,
        )  # fmt: skip
        return InTurn(opening, oracle), leader

    # What an oracle's critics need to be answered well. Critics of noisy means are exact and fresh
    # every round, so one small step against the last is gradient descent on a distance. A picked cell
    # says nothing of its size: it moves the generator a little. Weights over queries and regressions
    # against all records so far carry the history in themselves, and their mixture over rounds is what
    # converges; an anchor keeps the generator from running off to one record.

    @property
    def _play(self) -> str:
        return self.play or ("ftl" if self.oracle in ("weights", "logistic") else "last")

    @property
    def _steps(self) -> int:
        return self.steps or {"moments": 1, "exponential": 2}.get(self.oracle, 5)

    @property
    def _anchor(self) -> float:
        if self.anchor is not None:
            return self.anchor
        return 0.0 if self._play == "last" else 200.0

    def _kernel(self, design: Design) -> float:
        if self.objective != "mmd":
            return 1.0
        return self.kernel if self.kernel is not None else 1 / len(design.shape)

    def _tables(self, design: Design) -> tuple[Clique, ...]:
        """Every set of 2 to `degree` columns inside a marginal of the workload; columns if none."""
        found = {
            part
            for clique in design.cliques
            for order in range(2, min(self.degree, len(clique)) + 1)
            for part in combinations(clique, order)
        }
        ones = ((i,) for i in range(len(design.shape)))
        return tuple(sorted(found, key=lambda clique: (len(clique), clique))) or tuple(ones)

    def _groups(self, design: Design) -> tuple[tuple[Clique, ...], ...]:
        return grouped(self._tables(design), design.shape, self.cells)

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Gradient steps dominate; each touches every cell that critics look at, once a latent."""
        _, leader = self.players(design, plan)
        noise = {c.purpose: c.event.sigma for c in plan if isinstance(c.event, Gaussian)}
        noise = {purpose: s for purpose, s in noise.items() if purpose in (COLUMNS, TABLES)}
        features = sum(_size(clique, design.shape) for clique in self._tables(design))
        if self.oracle == "moments":
            words = (
                f"all columns and {len(self._tables(design))} tables of up to {self.degree} columns"
            )
        elif self.oracle == "exponential":
            event = plan[CellPicker.PICK].event
            assert isinstance(event, Selection)
            off = event.scale / UNIT * math.log(1e4) / rows
            words = (
                f"all columns; {leader.rounds} queries are picked, within {off:.4f} of the worst"
            )
        else:
            words = f"all columns; {leader.rounds} rounds of critics steer the rest"
        outputs = sum(design.shape)
        weights = self.width * (self.width * 2 + outputs + 64)
        work = self.batch * (weights + (features if self.oracle != "exponential" else outputs))
        history = leader.rounds if self._play == "sftpl" else 4
        return Forecast(
            noise,
            f"measured: {words}; the rest is model",
            1.2e9 + 40.0 * rows * len(design.shape) + 4.0 * features * history,
            12.0 + 1.2e-10 * work * leader.rounds * self._steps + 2e-8 * rows * len(design.cliques),
        )

    def theorem(self, design: Design, plan: Plan, rows: int, beta: float) -> None:
        """None before the run: a network has no regret bound. See `judged`."""

    def judged(
        self, design: Design, plan: Plan, rows: int, beta: float, model: Model, size: int
    ) -> Theorem | None:
        """What was proved after the run, for critics of noisy means and a public n; otherwise None.

        The critics' payoff against m̃ is known, and m̃ is off by at most its noise, so over the K
        cells of the measured tables, with probability 1 − β,

            error ≤ max_j (|m̃ − q(D̄)|_j + σ_j·√(2·ln(4K/β))/n) + √(ln(4K/β)/(2N))

        for N rows drawn from D̄. It speaks of the cells that critics look at, not of the workload.
        """
        if not isinstance(model, Judged) or not model.gaps or design.rows is None:
            return None
        ones = tuple((i,) for i in range(len(design.shape)))
        tables = self._tables(design)
        sigmas = [_sigma(plan, COLUMNS)] * len(ones) + [_sigma(plan, TABLES)] * len(tables)
        cells = sum(_size(clique, design.shape) for clique in (*ones, *tables))
        log = math.log(4 * cells / beta)
        noise = math.sqrt(2 * log) / max(rows, 1)
        worst = max(gap + s * noise for gap, s in zip(model.gaps, sigmas, strict=True))
        return Theorem(
            min(1.0, worst + math.sqrt(log / (2 * size))),
            beta,
            f"max |m̃ − q(D̄)| + σ·√(2·ln(4K/β))/n + √(ln(4K/β)/(2N)) over the K = {cells} cells that "
            f"critics look at (tables of up to {self.degree} columns): the critics' payoff against "
            f"the noisy means, their noise, and the sampling of N rows; the certificate speaks of "
            f"the workload",
        )

    def describe(self) -> dict[str, Any]:
        """Name and parameters."""
        return asdict(self)


def _free(design: Design, plan: Plan) -> int:
    """Rounds of the critic that costs nothing: 1000·√(κ/2000), between 1000 and 2000.

    κ = n·√(2ρ). The longer the play, the closer the generator comes to the noisy means; where they are
    mostly noise it should not.
    """
    event = plan[TABLES].event
    assert isinstance(event, Gaussian)
    kappa = assumed(design) * math.sqrt(event.changes) / event.sigma
    return round(1000 * min(2.0, max(1.0, math.sqrt(kappa / 2000))))


def _purposes(groups: tuple[tuple[Clique, ...], ...]) -> frozenset[str]:
    return frozenset(LogisticCritics.purpose(i) for i in range(len(groups)))


def _size(clique: Clique, shape: tuple[int, ...]) -> int:
    return math.prod(shape[i] for i in clique)


def _sigma(plan: Plan, purpose: str) -> float:
    event = plan[purpose].event
    assert isinstance(event, Gaussian)
    return event.sigma
