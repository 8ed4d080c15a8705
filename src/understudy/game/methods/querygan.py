"""`querygan`: private critics against a generator network.

The game of Fine's thesis, repaired: in every round an oracle releases a critic D_θ that tells the table
from the generator's records, and the generator, which never meets a row, moves against the leader of
all critics so far. Only the oracle is charged:

    moments      all means m of a public feature map, once, with Gaussian noise; every critic of every
                 round follows from m̃, so rounds are free. `features` are the cells of tables, the
                 features of the all-subsets kernel, or public random units of one layer
    exponential  one pick a round over all cells of the workload and complements, ρ/T each
    weights      draws from multiplicative weights over them, as `dualquery`
    logistic     a regression of rows against records by objective perturbation, pure ε0 a round

The columns are measured first, with a share of ρ, and are where the generator starts. What the
generator does is post-processing. No regret bound holds for a network, so nothing is promised before
the run; the certificate is measured after it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from understudy.errors import InputError, require_extra
from understudy.game.methods.base import Design, Forecast, Method, Theorem
from understudy.game.methods.dualquery import assumed, sizes
from understudy.players.base import Clique, Model, PaidOff, QueryPlayer
from understudy.players.data import FTPLGenerator
from understudy.players.data.ftpl_generator import Judged
from understudy.players.query import (
    CellPicker,
    FixedMarginals,
    InTurn,
    LogisticCritics,
    Payoffs,
    QueryWeights,
    RandomMoments,
    Together,
)
from understudy.players.query.logistic import grouped
from understudy.privacy import accounting, planning
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT
from understudy.privacy.budget import split
from understudy.privacy.cost import Charge, Gaussian, Laplace, Plan, SampledGaussian, Selection
from understudy.privacy.objective import MarginalFeatures, event_for
from understudy.privacy.questions.moments import GRID, KINDS, RandomFeatures
from understudy.privacy.questions.moments import event_for as noise_for

__all__ = ["QueryGAN"]

COLUMNS = "one-way marginals"
TABLES = "moments of the critics"
FEATURES = ("cells", "subsets", *KINDS)
ORACLES = ("moments", "exponential", "weights", "logistic")
OBJECTIVES = ("tv", "mmd", "max", "wasserstein")
PLAYS = ("last", "ftl", "ftpl", "sftpl")
_LEARNABLE = 2.0
_HELD = 50_000_000
"""Weights of a layer of random units."""


@dataclass(frozen=True, slots=True)
class QueryGAN(Method):
    """`oracle`, `objective` and `play` choose the two players; the rest are public settings.

    `features` and `objective` are what the critics of "moments" look at and maximise; the other oracles
    have their own. `degree` is the order of the monomials that critics of "moments" and "logistic" are
    made of: 2 for all pairs of columns inside the workload's marginals. `units` random features look
    at every marginal of the workload, drawn from the public number `seed`. `rounds`, `objective`,
    `play`, `steps`, `rate` and `anchor` follow from the oracle where they are None. `kernel` is w of
    the all-subsets kernel, 1/d if None. `alpha` is the share of the budget that the payoff of picked
    queries gets, 0 to leave it private.
    """

    oracle: str = "moments"
    features: str = "cells"
    objective: str | None = None
    play: str | None = None
    degree: int = 2
    rounds: int | None = None
    samples: int | None = None
    columns: float = 0.15
    alpha: float = 0.02
    units: int = 32
    seed: int = 0
    steps: int | None = None
    rate: float | None = None
    batch: int = 512
    anchor: float | None = None
    scale: float = 0.01
    history: int = 32
    kernel: float | None = None
    tilt: float = 0.0
    keep: float = 0.25
    records: int = 100_000
    width: int = 128
    cells: int = 300
    limit: int = 4_000_000
    name: str = "querygan"

    def check(self, design: Design) -> None:
        """JAX must be there, choices must be known, and what critics look at must fit memory."""
        require_extra(f"method = {self.name}", "nets")
        for option, value, known in (
            ("oracle", self.oracle, ORACLES),
            ("features", self.features, FEATURES),
            ("objective", self._objective, OBJECTIVES),
            ("play", self._play, PLAYS),
        ):
            if value not in known:
                raise InputError(
                    f"method = querygan: {option} = {value!r} is not one of {', '.join(known)}"
                )
        for option, least in (
            ("degree", 1), ("batch", 1), ("history", 1), ("records", 1), ("width", 1), ("cells", 1),
            ("units", 1), ("seed", 0), ("steps", 1), ("samples", 1),
            ("rounds", 2 if self.oracle == "weights" else 1),
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
        if not 0 <= self.alpha < 1:
            raise InputError(
                f"method = querygan: alpha = {self.alpha} must be at least 0 and below 1; it is the "
                f"share of the budget that the payoff of the critics gets, 0 for none"
            )
        if self.features != "cells" and self.oracle != "moments":
            raise InputError(
                f"method = querygan: features = {self.features} are released by oracle = moments; "
                f"oracle = {self.oracle} has critics of its own"
            )
        if self.features == "subsets" and not self._orders(design):
            raise InputError(
                f"method = querygan: features = subsets needs tables of two columns: degree = "
                f"{self.degree} must be at least 2, and the workload must have marginals of two columns"
            )
        if not 0 < self.keep <= 1:
            raise InputError(f"method = querygan: keep = {self.keep} must be in (0, 1]")
        if self.oracle in ("moments", "logistic"):
            self._check_features(design)

    def _check_features(self, design: Design) -> None:
        if self.features in KINDS:
            held = self.units * len(design.cliques) * sum(design.shape)
            if held > _HELD:
                raise InputError(
                    f"method = querygan: {self.units} units on each of {len(design.cliques)} marginals "
                    f"over {sum(design.shape)} values have {held:.3g} weights, above the limit of "
                    f"{_HELD:.3g} that fits memory; use fewer units, fewer bins, or a workload of "
                    f"fewer marginals"
                )
            return
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
        if self.features == "subsets":
            return self._kernel_charges(design, rho)
        share = self._columns_share(design, rho) * rho
        noise = Gaussian.of_tables(share, design.relation, len(design.shape))
        first = Charge(COLUMNS, noise)
        return first, *self._looks(design, rho - share)

    def _columns_share(self, design: Design, rho: Fraction) -> Fraction:
        """`columns`; more where tables have so many cells that noise hides them.

        Tables get (1 − columns)·min(1, 2n/(Kσ)), K their mean number of cells and σ the noise they
        would have with all of it.
        """
        least = Fraction(self.columns)
        if self.oracle != "moments" or self.features != "cells":
            return least
        tables = self._tables(design)
        cells = sum(_size(clique, design.shape) for clique in tables) / len(tables)
        noise = Gaussian.of_tables((1 - least) * rho, design.relation, len(tables))
        seen = min(1.0, _LEARNABLE * assumed(design) / (cells * noise.sigma))
        return 1 - (1 - least) * Fraction(max(1e-6, round(seen, 6)))

    def _kernel_charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """The kernel's features Π_{i∈A} x_i·w^{|A|/2} with one noise σ, as tables of every order.

        A row has one cell in each of J_k tables of order k, so ‖φ(x)‖² = κ = Σ_k J_k·w^k; a table of
        order k, unscaled, has noise σ·w^{−k/2}, and orders cost shares J_k·w^k/κ of ρ = c·κ/(2σ²).
        """
        w = self._weight(design)
        orders = {1: len(design.shape)} | {
            order: len(tables) for order, tables in self._orders(design).items()
        }
        kappa = sum(number * w**order for order, number in orders.items())
        shares = split(rho, {str(k): number * w**k / kappa for k, number in orders.items()})
        return tuple(
            Charge(
                COLUMNS if order == 1 else _order(order),
                Gaussian.of_tables(shares[str(order)], design.relation, number),
            )
            for order, number in orders.items()
        )

    def _looks(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        match self.oracle:
            case "moments" if self.features in KINDS:
                noise = noise_for(self._maps(design), design.relation, rho)
                return (Charge(RandomMoments.PURPOSE, noise),)
            case "moments":
                tables = len(self._tables(design))
                return (Charge(TABLES, Gaussian.of_tables(rho, design.relation, tables)),)
            case "exponential":
                T = self._rounds(design, rho)
                paid = Fraction(self.alpha) * rho if self._pays(design) else Fraction(0)
                pick = Selection.within((rho - paid) / T, sensitivity=SCORE_SENSITIVITY)
                picks = Charge(CellPicker.PICK, pick, T)
                if not paid:
                    return (picks,)
                l1 = UNIT * (T - math.floor(T * (1 - self.keep)))
                sum_of = Laplace.within(planning.laplace_epsilon(paid), l1=l1)
                return picks, Charge(Payoffs.PURPOSE, sum_of)
            case "weights":
                return QueryWeights.charges(*sizes(design, rho, self.rounds, self.samples), rho)
            case _:
                groups, T = self._groups(design), self._rounds(design, rho)
                each = planning.laplace_epsilon(rho / T)
                looks = [MarginalFeatures(design.shape, group) for group in groups]
                return tuple(
                    Charge(
                        LogisticCritics.purpose(i), event_for(look, design.relation, each),
                        len(range(i, T, len(groups))),
                    )
                    for i, look in enumerate(looks[:T])
                )  # fmt: skip

    def _pays(self, design: Design) -> bool:
        """Whether the payoff is released: it is of use where n is public and all records are kept."""
        return self.alpha > 0 and design.rows is not None and not self.tilt

    def _rounds(self, design: Design, rho: Fraction) -> int:
        if self.rounds is not None:
            return self.rounds
        if self.oracle == "logistic":
            return len(self._groups(design))
        return max(1, round(2 * math.sqrt(assumed(design) * math.sqrt(2 * float(rho)))))

    def players(self, design: Design, plan: Plan) -> tuple[QueryPlayer, FTPLGenerator]:
        """The columns, then the oracle, against the generator."""
        ones = tuple((i,) for i in range(len(design.shape)))
        opening = FixedMarginals(ones, _sigma(plan, COLUMNS), COLUMNS)
        features: tuple[Clique, ...] = ()
        oracle: QueryPlayer
        match self.oracle:
            case "moments" if self.features in KINDS:
                T = self._free(design, plan)
                oracle = RandomMoments(self._maps(design), _sigma(plan, RandomMoments.PURPOSE))
            case "moments" if self.features == "subsets":
                T = self._free(design, plan)
                oracle = Together(
                    tuple(
                        FixedMarginals(tables, _sigma(plan, _order(order)), _order(order))
                        for order, tables in self._orders(design).items()
                    )
                )
            case "moments":
                T = self._free(design, plan)
                oracle = FixedMarginals(self._tables(design), _sigma(plan, TABLES), TABLES)
            case "exponential":
                T = plan[CellPicker.PICK].times
                oracle = CellPicker(T)
                if Payoffs.PURPOSE in plan:
                    event = plan[Payoffs.PURPOSE].event
                    assert isinstance(event, Laplace)
                    oracle = InTurn(oracle, Payoffs(event.scale / UNIT))
            case "weights":
                T, _, _ = QueryWeights.read(plan)
                oracle = QueryWeights(T)
            case _:
                groups = self._groups(design)
                T = sum(charge.times for charge in plan if charge.purpose in _purposes(groups))
                features = tuple(clique for group in groups for clique in group)
                oracle = LogisticCritics(T, groups)
        leader = FTPLGenerator(
            T, features, self._objective, self._play, self.batch, self._steps, self._rate,
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

    def _free(self, design: Design, plan: Plan) -> int:
        if self.rounds is not None:
            return self.rounds
        tables = self._tables(design)
        cells = sum(_size(clique, design.shape) for clique in tables) / len(tables)
        own = [charge for charge in plan if charge.purpose in self._measured(design)]
        return _free(design, accounting.total_rho(Plan(tuple(own))), cells, len(tables))

    def _measured(self, design: Design) -> frozenset[str]:
        """The charges of "moments"."""
        orders = (_order(order) for order in self._orders(design))
        return frozenset((COLUMNS, TABLES, RandomMoments.PURPOSE, *orders))

    @property
    def _objective(self) -> str:
        return self.objective or ("tv" if self.features == "cells" else "mmd")

    @property
    def _rate(self) -> float:
        return self.rate or (1e-2 if self.oracle == "moments" else 1e-3)

    @property
    def _steps(self) -> int:
        return self.steps or {"moments": 1, "exponential": 2}.get(self.oracle, 5)

    @property
    def _anchor(self) -> float:
        if self.anchor is not None:
            return self.anchor
        return 0.0 if self._play == "last" else 200.0

    def _kernel(self, design: Design) -> float:
        return self._weight(design) if self._objective == "mmd" else 1.0

    def _weight(self, design: Design) -> float:
        return self.kernel if self.kernel is not None else 1 / len(design.shape)

    def _maps(self, design: Design) -> RandomFeatures:
        return RandomFeatures(
            design.shape, tuple(design.cliques), self.features, self.units, self.seed
        )

    def _orders(self, design: Design) -> dict[int, tuple[Clique, ...]]:
        """The tables of two columns and more, by their order."""
        tables = [clique for clique in self._tables(design) if len(clique) > 1]
        orders = sorted({len(clique) for clique in tables})
        return {k: tuple(clique for clique in tables if len(clique) == k) for k in orders}

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
        tables = (COLUMNS, TABLES, *(_order(order) for order in self._orders(design)))
        noise = {purpose: s for purpose, s in noise.items() if purpose in tables}
        features = sum(_size(clique, design.shape) for clique in self._tables(design))
        if self.features in KINDS:
            maps = self._maps(design)
            features = self.units * sum(design.shape)
            words = f"all columns and the means of {maps.size:,} random features ({self.features})"
        elif self.oracle == "moments":
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

    def judged(
        self, design: Design, plan: Plan, rows: int, beta: float, model: Model, size: int
    ) -> Theorem | None:
        """What was proved after the run where n is public: the thesis's α; otherwise None.

        *Critics of noisy tables.* Their payoff against m̃ is known, and m̃ is off by at most its noise,
        so over the K cells of the measured tables, with probability 1 − β,

            error ≤ max_j (|m̃ − q(D̄)|_j + σ_j·√(2·ln(4K/β))/n) + √(ln(4K/β)/(2N))

        for N rows drawn from D̄. It speaks of the cells that critics look at, not of the workload.

        *Picked queries.* Over the whole workload, |Q| cells and complements, with probability 1 − β,

            error ≤ P/(nT) + b·ln(3/(2β))/(nT) + (2/(n·ε₀))·ln(3|Q|T/β) + √(ln(6|Q|/β)/(2N)):

        the released payoff P of the T rounds that are kept, its Laplace noise b, how far a pick is from
        the best query, and the sampling of N rows.
        """
        if not isinstance(model, Judged) or design.rows is None:
            return None
        if model.paid is not None:
            return self._alpha(design, plan, model.paid, beta, size)
        if not model.gaps:
            return None
        ones = tuple((i,) for i in range(len(design.shape)))
        tables = self._tables(design)
        sigmas = [_sigma(plan, COLUMNS)] * len(ones)
        for clique in tables:
            orders = self.features == "subsets"
            sigmas.append(_sigma(plan, _order(len(clique)) if orders else TABLES))
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

    def _alpha(self, design: Design, plan: Plan, paid: PaidOff, beta: float, size: int) -> Theorem:
        n, T = design.rows, paid.rounds
        pick = plan[CellPicker.PICK].event
        assert n is not None
        assert isinstance(pick, Selection)
        queries = 2 * sum(_size(clique, design.shape) for clique in design.cliques)
        # Rounding of scores and of expected counts to 1/65536 row, and of the noise to whole units.
        rounding = (SCORE_SENSITIVITY - UNIT + 1) / UNIT
        payoff = paid.value + paid.scale * math.log(3 / (2 * beta)) + T * rounding
        missed = pick.scale / UNIT * math.log(3 * queries * T / beta) + rounding
        drawn = math.sqrt(math.log(6 * queries / beta) / (2 * size))
        return Theorem(
            min(1.0, max(0.0, payoff / (n * T) + missed / n) + drawn),
            beta,
            f"the thesis's α over the workload's {queries} cells and complements: the released payoff "
            f"of the last T = {T} picks and its noise, (2/(n·ε₀))·ln(3|Q|T/β) for picks that are not "
            f"the best, √(ln(6|Q|/β)/(2N)) for the sampling of N rows",
        )


def _free(design: Design, rho: Fraction, cells: float, tables: int) -> int:
    """Rounds of the critic that costs nothing: 1000·√(r/1.5), from 300 to 4000.

    r = n/(Kσ), what the noisy tables show: rows per cell against the noise of a cell. The longer the
    play, the closer the generator comes to the means; where they are mostly noise it need not.
    """
    changes = design.relation.marginal_l2_squared(tables)
    sigma = math.sqrt(changes / (2 * float(rho)))
    shown = assumed(design) / (cells * sigma)
    return round(1000 * min(4.0, max(0.3, math.sqrt(shown / 1.5))))


def _order(order: int) -> str:
    return f"moments of order {order}"


def _purposes(groups: tuple[tuple[Clique, ...], ...]) -> frozenset[str]:
    return frozenset(LogisticCritics.purpose(i) for i in range(len(groups)))


def _size(clique: Clique, shape: tuple[int, ...]) -> int:
    return math.prod(shape[i] for i in clique)


def _sigma(plan: Plan, purpose: str) -> float:
    """In rows."""
    event = plan[purpose].event
    if isinstance(event, SampledGaussian):
        return event.sigma / GRID
    assert isinstance(event, Gaussian)
    return event.sigma
