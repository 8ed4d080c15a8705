"""`querygan`: private critics against a generator network.

In every round an oracle releases a critic D_θ that tells the table from the generator's records, and
the generator, which never meets a row, answers (`understudy.nets.leader`). Only the oracle is charged;
docs/methods/querygan.md has the four of them, features, objectives and public rules. The columns are
measured first, and are where the generator starts. No regret bound holds for a network, so nothing is
promised before the run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Annotated

from understudy._types import Clique
from understudy.errors import require_extra
from understudy.game.methods.base import (
    POSITIVE,
    SHARE,
    Design,
    Forecast,
    Limit,
    Method,
    Theorem,
    between,
    least,
    one_of,
)
from understudy.game.methods.dualquery import sizes
from understudy.players.base import Model, PaidOff, QueryPlayer
from understudy.players.data.ftpl_generator import MATCHING, FTPLGenerator, Judged
from understudy.players.query.fixed import FixedMarginals, InTurn, Together
from understudy.players.query.picking import CellPicker
from understudy.players.query.querygan import LogisticCritics, Payoffs, RandomMoments, grouped
from understudy.players.query.weights import QueryWeights
from understudy.privacy import accounting, planning
from understudy.privacy.buckets import SCORE_SENSITIVITY, UNIT
from understudy.privacy.cost import Charge, Gaussian, Laplace, Plan, SampledGaussian, Selection
from understudy.privacy.objective import MOST_ROWS, MarginalFeatures, event_for
from understudy.privacy.questions.moments import GRID, KINDS, RandomFeatures
from understudy.privacy.questions.moments import event_for as noise_for
from understudy.wording import nothing

COLUMNS = "one-way marginals"
ORDERED = "ordered columns"
TABLES = "moments of the critics"
FEATURES = ("cells", "subsets", *KINDS)
_LEARNABLE = 2.0
_USUAL, _LIPSCHITZ = 0.15, 0.5
"""Shares of ρ that columns get, the second where critics are Lipschitz functions of them."""
_PASSES, _MOST_CRITICS = 10, 100
"""Regressions of every group of tables, as long as there are not too many of them altogether."""
_CLEAR = 4.0
"""Rows of a cell over the noise of its weight, from which on regressions are taken as they are."""
_CURVATURE = 0.05
"""Of the ρ of a regression, what its curvature gets; less where cells do not stand out."""
_HELD = 50_000_000  # Weights of a layer of random units
_ETA = 0.8  # η in parts of √(ln|X|/T)
_FTRL = 4.0
"""η of critics that follow the regularised leader: differences of norm 1/4 are about the usual ones."""
_FREE = (100, 400)  # Rounds of a leader against noisy means, which cost time alone
_SOONER = 0.05
"""Picks in parts of the number at which both regrets are equal: that of the leader is far below its
bound, because it begins at the columns."""
_PICKED = (10, 400)  # Rounds of the exponential mechanism, by the rule


@dataclass(frozen=True, slots=True)
class _Answered:
    """How the critics of an oracle are answered, unless it is said otherwise."""

    play: str
    keep: float
    """The share of the rounds, the last ones, whose mixture is the result."""
    records: int
    """Of all kept rounds together; a picked query is judged by those of its round."""
    whole: bool
    """Whether the oracle looks at the records of all rounds so far, not of the last one alone."""
    steps: int = 10
    """Of a leader, every round."""
    eta: float | None = None
    """η of a leader; None for the rule. A regression estimates a log-ratio, which counts as it is."""


ORACLES = {
    "moments": _Answered(MATCHING, 0.25, 100_000, whole=False),
    "exponential": _Answered("ftl", 0.5, 500_000, whole=False),
    "weights": _Answered("ftl", 1.0, 200_000, whole=True),
    "logistic": _Answered("ftl", 0.5, 200_000, whole=False, steps=100, eta=1.0),
}
"""Critics of noisy means are exact and fresh every round, so that gradient steps against the last one,
which is gradient descent on a distance, are the most accurate answer to them. Every other oracle is
answered by the leader of all critics. Weights over queries speak of the average of all rounds, and that
is kept. Regressions are few and say much: each is answered by many steps."""
_COLUMNS = between(0, 1, "; it is the share of the budget that columns get, 0.15 is usual")
_ALPHA = Limit(
    lambda share: 0 <= share < 1,
    "must be at least 0 and below 1; it is the share of the budget that the payoff of the critics "
    "gets, 0 for none",
)


@dataclass(frozen=True, slots=True)
class QueryGANMethod(Method):
    """`oracle`, `objective` and `play` choose the two players; what is None follows from them.

    `features` and `objective` are what the critics of "moments" look at and maximise. `degree` is the
    order of the monomials that critics of "moments" and "logistic" are made of. `units` random features
    look at every marginal of the workload, drawn from the public number `seed`. `columns` is the share
    of ρ that columns get. `critics` of "moments" are best responses, or follow the regularised leader
    ("ftrl"). `eta` is the learning rate η of a leader, `scale` that of its perturbation; `history` how
    many past critics "sftpl" draws, each with probability 1/2 if None. `kernel` is w of the all-subsets
    kernel, 1/d if None. `alpha` is the share of the budget that the payoff of picked queries gets, 0 to
    leave it private.
    """

    oracle: Annotated[str, one_of(*ORACLES)] = "moments"
    features: Annotated[str, one_of(*FEATURES)] = "cells"
    objective: Annotated[str | None, one_of("tv", "mmd", "max", "wasserstein", "parity")] = None
    play: Annotated[str | None, one_of(MATCHING, "ftl", "ftpl", "sftpl")] = None
    critics: Annotated[str | None, one_of("best", "ftrl")] = None
    degree: Annotated[int, least(1)] = 2
    rounds: Annotated[int | None, least(1)] = None
    samples: Annotated[int | None, least(1)] = None
    columns: Annotated[float | None, _COLUMNS] = None
    alpha: Annotated[float, _ALPHA] = 0.02
    units: Annotated[int, least(1)] = 32
    seed: Annotated[int, least(0)] = 0
    steps: Annotated[int | None, least(1)] = None
    rate: Annotated[float | None, POSITIVE] = None
    batch: Annotated[int, least(1)] = 512
    eta: Annotated[float | None, POSITIVE] = None
    scale: Annotated[float, least(0)] = 0.3
    history: Annotated[int | None, least(1)] = None
    kernel: Annotated[float | None, POSITIVE] = None
    keep: Annotated[float | None, SHARE] = None
    records: Annotated[int | None, least(1)] = None
    width: Annotated[int, least(1)] = 128
    cells: Annotated[int, least(1)] = 1500
    limit: int = 4_000_000
    name: str = "querygan"

    def check(self, design: Design) -> None:
        """JAX must be there, choices must be known, and what critics look at must fit memory."""
        require_extra(f"method = {self.name}", "nets")
        Method.check(self, design)
        if self.oracle == "weights":
            self.require(least(2), rounds=self.rounds)
        if self.features != "cells" and self.oracle != "moments":
            self.refuse(
                f"features = {self.features} are released by oracle = moments; "
                f"oracle = {self.oracle} has critics of its own"
            )
        if self.features == "subsets" and not self._orders(design):
            self.refuse(
                f"features = subsets needs tables of two columns: degree = "
                f"{self.degree} must be at least 2, and the workload must have marginals of two columns"
            )
        self._check_play()
        self._check_objective(design)
        if self.oracle in ("moments", "logistic"):
            self._check_features(design)

    def _check_play(self) -> None:
        """Which play answers which critics."""
        if self._play == MATCHING and self.oracle != "moments":
            self.refuse(
                f"play = {MATCHING} has no past, and a critic of oracle = {self.oracle} says nothing "
                f"of its own size: use play = ftl, ftpl or sftpl, or oracle = moments"
            )
        if self._critics == "ftrl" and self.objective is not None:
            self.refuse(
                f"critics = ftrl have an objective of their own, the unit ball of the features: leave "
                f"objective = {self.objective} out, or use critics = best"
            )
        if self._critics == "ftrl" and (self.oracle != "moments" or self._play == MATCHING):
            self.refuse(
                f"critics = ftrl follow the leader of noisy means, and are answered by a leader: use "
                f"oracle = moments and play = ftl, ftpl or sftpl, not oracle = {self.oracle} and "
                f"play = {self._play}"
            )

    def _check_objective(self, design: Design) -> None:
        if self.objective is not None and self.oracle != "moments":
            self.refuse(
                f"objective = {self.objective} is what critics of oracle = moments maximise; "
                f"oracle = {self.oracle} has critics of its own"
            )
        if self._objective in ("wasserstein", "parity") and self.features in KINDS:
            self.refuse(
                f"objective = {self._objective} asks about cells of tables; features = "
                f"{self.features} have none: use features = cells"
            )
        if self._objective == "wasserstein" and set(self._questions(design)) == {"cell"}:
            self.refuse(
                "objective = wasserstein needs a column with an order and three values or more, and "
                "the schema has none: declare numbers or dates as such, a category as ordinal, or use "
                "objective = tv"
            )

    def _check_features(self, design: Design) -> None:
        if self.features in KINDS:
            held = self.units * len(design.cliques) * sum(design.shape)
            if held > _HELD:
                self.refuse(
                    f"{self.units} units on each of {len(design.cliques)} marginals "
                    f"over {sum(design.shape)} values have {held:.3g} weights, above the limit of "
                    f"{_HELD:.3g} that fits memory; use fewer units, fewer bins, or a workload of "
                    f"fewer marginals"
                )
            return
        features = design.cells(self._tables(design))
        if features > self.limit:
            self.refuse(
                f"critics of oracle = {self.oracle} would look at {features:.3g} "
                f"cells of tables, above the limit of {self.limit:.3g} that fits memory; use oracle = "
                f"exponential, a smaller degree, fewer bins, or a workload of fewer marginals"
            )
        if self.oracle != "logistic":
            return
        if design.rows is not None and design.rows > MOST_ROWS:
            self.refuse(
                f"oracle = logistic solves its regressions up to {MOST_ROWS:,.0f} rows, and the table "
                f"has {design.rows:,}; use oracle = moments, which takes any number"
            )
        for clique in self._tables(design):
            if (cells := design.cells([clique])) > 2 * self.cells:
                self.refuse(
                    f"oracle = logistic solves for one weight per cell, and the "
                    f"table of columns {', '.join(map(design.column, clique))} has {cells}, above "
                    f"{2 * self.cells}; use oracle = moments, degree = 1, or fewer bins"
                )

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """The columns, then the oracle's looks."""
        if self.features == "subsets":
            return self._kernel_charges(design, rho)
        share = self._columns_share(design, rho)
        levels = self._levels(design)
        plain = min(share, Fraction(_USUAL)) * len(levels.get(COLUMNS, ())) / len(design.shape)
        shares = {ORDERED: share - plain, COLUMNS: plain if ORDERED in levels else share}
        firsts = (
            Charge(purpose, design.gaussian(shares[purpose] * rho, len(columns)))
            for purpose, columns in levels.items()
        )
        return *firsts, *self._looks(design, (1 - share) * rho)

    def _levels(self, design: Design) -> dict[str, tuple[Clique, ...]]:
        """Which columns are measured with one noise, by the purpose of its charge.

        W1 speaks of ordered columns alone. For a Lipschitz critic the others get what they would
        have for any critic, and the ordered ones all that is left of the columns' share.
        """
        if self._objective != "wasserstein" or self.features != "cells":
            return {COLUMNS: design.columns}
        cuts = [question != "cell" for question in self._questions(design)]
        found = {
            ORDERED: tuple(c for c, cut in zip(design.columns, cuts, strict=True) if cut),
            COLUMNS: tuple(c for c, cut in zip(design.columns, cuts, strict=True) if not cut),
        }
        return {purpose: columns for purpose, columns in found.items() if columns}

    def _columns_share(self, design: Design, rho: Fraction) -> Fraction:
        """That of the option; more where tables have so many cells that noise hides them.

        Tables get (1 − columns)·min(1, 2n/(Kσ)), K their mean number of cells and σ the noise they
        would have with all of it.
        """
        least = Fraction(self._columns)
        if self.oracle != "moments" or self.features != "cells":
            return least
        tables = self._tables(design)
        cells = design.cells(tables) / len(tables)
        noise = design.gaussian((1 - least) * rho, len(tables))
        seen = min(1.0, _LEARNABLE * design.assumed_rows / (cells * noise.sigma))
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
        shares = planning.split(
            rho, {str(k): number * w**k / kappa for k, number in orders.items()}
        )
        return tuple(
            Charge(
                COLUMNS if order == 1 else _order(order),
                design.gaussian(shares[str(order)], number),
            )
            for order, number in orders.items()
        )

    def _looks(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        match self.oracle:
            case "moments" if self.features in KINDS:
                noise = noise_for(self._maps(design), design.relation, rho)
                return (Charge(RandomMoments.PURPOSE, noise),)
            case "moments":
                return (Charge(TABLES, design.gaussian(rho, len(self._tables(design)))),)
            case "exponential":
                T = self._rounds(design, rho)
                # The payoff is released where n is public: it is of use there alone.
                paid = Fraction(0) if design.rows is None else Fraction(self.alpha) * rho
                pick = planning.selection((rho - paid) / T, sensitivity=SCORE_SENSITIVITY)
                picks = Charge(CellPicker.PICK, pick, T)
                if not paid:
                    return (picks,)
                l1 = UNIT * (T - math.floor(T * (1 - self._keep)))
                sum_of = planning.laplace(paid, l1=l1)
                return picks, Charge(Payoffs.PURPOSE, sum_of)
            case "weights":
                return QueryWeights.charges(*sizes(design, rho, self.rounds, self.samples), rho)
            case _:
                groups, T = self._groups(design), self._rounds(design, rho)
                each = self._clear(design, rho) * len(groups) / T
                curvature = _CURVATURE * min(1.0, max(1e-6, round(each, 6)))
                looks = [MarginalFeatures(design.shape, group) for group in groups]
                return tuple(
                    Charge(
                        LogisticCritics.purpose(i),
                        event_for(look, design.relation, rho / T, curvature),
                        len(range(i, T, len(groups))),
                    )
                    for i, look in enumerate(looks[:T])
                )

    def _rounds(self, design: Design, rho: Fraction) -> int:
        if self.rounds is not None:
            return self.rounds
        if self.oracle == "logistic":
            groups = len(self._groups(design))
            clear = math.floor(self._clear(design, rho))
            return groups * max(1, min(_PASSES, clear, _MOST_CRITICS // groups))
        # The leader's regret √(2·ln|X|/T) is that of the picks, ln(2|Q|)·√T/κ, at T = `even`/ln(2|Q|).
        even = design.kappa(rho) * math.sqrt(2 * self._log_universe(design))
        return _within(_PICKED, _SOONER * even / math.log(2 * design.queries))

    def _clear(self, design: Design, rho: Fraction) -> float:
        """(n/(4·K·σ))²: how many regressions of each table could have weights that stand out.

        K is the mean number of cells of a table and σ the noise of one regression with all of ρ.
        """
        tables = self._tables(design)
        sigma = design.gaussian(rho, len(tables)).sigma
        return (design.assumed_rows * len(tables) / (_CLEAR * design.cells(tables) * sigma)) ** 2

    def players(self, design: Design, plan: Plan) -> tuple[QueryPlayer, FTPLGenerator]:
        """The columns, then the oracle, against the generator."""
        levels = self._levels(design).items()
        opening = Together(
            tuple(
                FixedMarginals(columns, _sigma(plan, purpose), purpose)
                for purpose, columns in levels
            )
        )
        own, oracle = ORACLES[self.oracle], self._oracle(design, plan)
        rounds = self._free(design, plan) if self.oracle == "moments" else oracle.rounds
        matching = self._play == MATCHING
        if Payoffs.PURPOSE in plan:
            scale = plan.event(Payoffs.PURPOSE, Laplace).scale / UNIT
            oracle = InTurn(oracle, Payoffs(scale))
        leader = FTPLGenerator(
            rounds,
            self._tables(design) if self.oracle == "logistic" else (),
            objective=self._objective,
            questions=self._questions(design),
            play=self._play,
            batch=self.batch,
            steps=self.steps or (1 if matching else own.steps),
            rate=self.rate or (0.01 if matching else 0.005),
            eta=self.eta or own.eta or self._eta(design, rounds),
            scale=self.scale,
            history=self.history,
            regularised=_FTRL if self._critics == "ftrl" else None,
            kernel=self._weight(design) if self._objective == "mmd" else 1.0,
            keep=self._keep,
            records=self.records or own.records,
            whole=own.whole,
            latent=64 if matching else 32,
            width=self.width,
            blocks=1 if matching else 2,
        )
        return InTurn(opening, oracle), leader

    def _oracle(self, design: Design, plan: Plan) -> QueryPlayer:
        match self.oracle:
            case "moments" if self.features in KINDS:
                return RandomMoments(self._maps(design), _sigma(plan, RandomMoments.PURPOSE))
            case "moments" if self.features == "subsets":
                return Together(
                    tuple(
                        FixedMarginals(tables, _sigma(plan, _order(order)), _order(order))
                        for order, tables in self._orders(design).items()
                    )
                )
            case "moments":
                return FixedMarginals(self._tables(design), _sigma(plan, TABLES), TABLES)
            case "exponential":
                return CellPicker(plan[CellPicker.PICK].times)
            case "weights":
                return QueryWeights(QueryWeights.read(plan)[0])
            case _:
                groups = self._groups(design)
                own = {LogisticCritics.purpose(i) for i in range(len(groups))}
                times = sum(charge.times for charge in plan if charge.purpose in own)
                return LogisticCritics(times, groups)

    @property
    def _columns(self) -> float:
        """Distribution functions are sums of many cells: columns show them best, and get more."""
        if self.columns is not None:
            return self.columns
        return _LIPSCHITZ if self.objective == "wasserstein" else _USUAL

    @property
    def _play(self) -> str:
        return self.play or ORACLES[self.oracle].play

    def _eta(self, design: Design, rounds: int) -> float:
        """Half of it where picks are sampled: a sum of t of them then has the variance of t picks."""
        part = _ETA / 2 if self._play == "sftpl" and self.oracle != "moments" else _ETA
        return part * math.sqrt(self._log_universe(design) / rounds)

    @property
    def _critics(self) -> str:
        """Against a leader critics of noisy means follow the regularised one, without an objective."""
        leads = self.oracle == "moments" and self._play != MATCHING
        own = "ftrl" if leads and self.objective is None else "best"
        return self.critics or own

    @property
    def _keep(self) -> float:
        if self.keep is not None:
            return self.keep
        if self._critics == "ftrl":
            return 1.0
        leads = self.oracle == "moments" and self._play != MATCHING
        return 0.5 if leads else ORACLES[self.oracle].keep

    @staticmethod
    def _log_universe(design: Design) -> float:
        """ln|X|, at least ln 2."""
        return max(math.log(2), sum(math.log(size) for size in design.shape))

    def _free(self, design: Design, plan: Plan) -> int:
        """Rounds against the critic that costs nothing.

        Matching: 1000·√(r/1.5), from 300 to 4000. r = n/(Kσ), what the noisy tables show: rows per
        cell against the noise of a cell. The longer the play, the closer the generator comes to the
        means; where they are mostly noise it need not. A leader: 400·√(r/1.5), from 100 to 400.
        """
        if self.rounds is not None:
            return self.rounds
        tables, orders = self._tables(design), map(_order, self._orders(design))
        purposes = {ORDERED, COLUMNS, TABLES, *orders, RandomMoments.PURPOSE}
        own = Plan(tuple(charge for charge in plan if charge.purpose in purposes))
        sigma = design.sigma(accounting.total_rho(own), len(tables))
        shown = design.assumed_rows / (design.cells(tables) / len(tables) * sigma)
        if self._play != MATCHING:
            return _within(_FREE, 400 * math.sqrt(shown / 1.5))
        return round(1000 * min(4.0, max(0.3, math.sqrt(shown / 1.5))))

    @property
    def _objective(self) -> str:
        own = "tv" if self._play == MATCHING else "max"
        return self.objective or (own if self.features == "cells" else "mmd")

    def _questions(self, design: Design) -> tuple[str, ...]:
        """What critics ask of each column: cells, points of its distribution function, or signs."""
        if self._objective == "parity":
            return ("sign",) * len(design.shape)
        if self._objective != "wasserstein":
            return ()
        none = (False,) * len(design.shape)
        facts = zip(design.shape, design.ordered or none, design.apart or none, strict=True)
        cuts = {0: "cut", 1: "cut or null"}  # more values beside the order: cell by cell
        return tuple(
            cuts.get(apart, "cell") if order and size > 2 else "cell"
            for size, order, apart in facts
        )

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
        return tuple(sorted(found, key=lambda clique: (len(clique), clique))) or design.columns

    def _groups(self, design: Design) -> tuple[tuple[Clique, ...], ...]:
        return grouped(self._tables(design), design.shape, self.cells)

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Gradient steps dominate: each has a pass through the network for every latent, and every cell
        that critics look at (matching), or the density of as many records (a leader)."""
        _, leader = self.players(design, plan)
        features = design.cells(self._tables(design))
        if self.features in KINDS:
            maps = self._maps(design)
            features = self.units * sum(design.shape)
            words = f"all columns and the means of {maps.size:,} random features ({self.features})"
        elif self.oracle == "moments":
            words = (
                f"all columns and {len(self._tables(design))} tables of up to {self.degree} columns"
            )
        elif self.oracle == "exponential":
            scale = plan.event(CellPicker.PICK, Selection).scale / UNIT
            off = scale * math.log(1e4) / rows
            words = (
                f"all columns; {leader.rounds} queries are picked, within about {off:.4f} of the "
                f"worst{nothing(off)}"
            )
        else:
            words = f"all columns; {leader.rounds} rounds of critics steer the rest"
        outputs = sum(design.shape)
        weights = self.width * (2 * leader.blocks * self.width + outputs + leader.latent)
        matching = self._play == MATCHING
        work = self.batch * (weights + (features if matching else self.batch * outputs))
        history = leader.rounds if self._play == "sftpl" else 4
        return Forecast(
            f"measured: {words}; the rest is model",
            1.2e9 + 40.0 * rows * len(design.shape) + 4.0 * features * history,
            12.0
            + (1.2e-10 if matching else 1.6e-10) * work * leader.rounds * leader.steps
            + 2e-8 * rows * len(design.cliques),
        )

    def judged(
        self, design: Design, plan: Plan, rows: int, beta: float, model: Model, size: int
    ) -> Theorem | None:
        """What was proved after the run where n is public: the thesis's α; otherwise None.

        *Critics of noisy tables.* m̃ is off by at most its noise, so over the K cells of the measured
        tables, for N rows drawn from D̄, with probability 1 − β,

            error ≤ max_j (|m̃ − q(D̄)|_j + σ_j·√(2·ln(4K/β))/n) + √(ln(4K/β)/(2N)).

        *Picked queries.* Over the whole workload, |Q| cells and complements, with P the released payoff
        of the T rounds that are kept and b its Laplace noise, with probability 1 − β,

            error ≤ P/(nT) + b·ln(3/(2β))/(nT) + (2/(n·ε₀))·ln(3|Q|T/β) + √(ln(6|Q|/β)/(2N)).
        """
        if not isinstance(model, Judged) or design.rows is None:
            return None
        if model.paid is not None:
            return self._alpha(design, plan, model.paid, beta, size)
        if not model.gaps:
            return None
        ones, tables = design.columns, self._tables(design)
        sigmas = [
            _sigma(plan, purpose)
            for purpose, columns in self._levels(design).items()
            for _ in columns
        ]
        for clique in tables:
            orders = self.features == "subsets"
            sigmas.append(_sigma(plan, _order(len(clique)) if orders else TABLES))
        cells = design.cells((*ones, *tables))
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
        n, T, pick = design.rows, paid.rounds, plan.event(CellPicker.PICK, Selection)
        assert n is not None
        queries = 2 * design.queries
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


def _within(limits: tuple[int, int], rounds: float) -> int:
    return round(min(max(limits[0], rounds), limits[1]))


def _order(order: int) -> str:
    return f"moments of order {order}"


def _sigma(plan: Plan, purpose: str) -> float:
    """In rows."""
    if purpose == RandomMoments.PURPOSE:
        return plan.event(purpose, SampledGaussian).sigma / GRID
    return plan.event(purpose, Gaussian).sigma
