"""`maxent`, the default: all pairs measured, the worst again, under regularised maximum entropy.

A charged look after the pairs finds where the model is wrong, and a fixed number of equal measurements
goes there (`understudy.players.query.survey`). The data player fits weighted records
(`understudy.models.fitting`). docs/methods/maxent.md has the public rule that divides ρ, what is looked
at outside the workload, and how wide tables select their pairs.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache
from itertools import chain, combinations
from typing import Any

from understudy._types import Clique
from understudy.game.forecast import Errors, Knowledge, expected
from understudy.game.methods.base import Design, Forecast, Method, least
from understudy.players.data.particles import Particles
from understudy.players.query.fixed import FixedMarginals
from understudy.players.query.interactions import Interactions
from understudy.players.query.survey import Opening, Slot, Survey, WorstAgain
from understudy.privacy import planning
from understudy.privacy.cost import Charge, Gaussian, Plan, Selection
from understudy.privacy.planning import Draws, errors, tables, worst

ONE_WAY = "one-way marginals"

# The rule's stand-in for a private number of rows.
_ROWS = 20_000
_PAIRS, _LOOK, _HIGHER, _AGAIN = 0.45, 0.04, 0.01, 0.41
_LEARNABLE = 2.0
# Measurements of an adaptive round: a third of the pairs, within these; chosen on generated tables.
_UNITS = 30, 60
# Pairs with more cells than this times n/σ are looked at in two merged forms as well.
_BIG = 4.0
_MERGED = (1.0, 0.125)
# Tables of more columns that are looked at; more would drown each other's answers in noise.
_MOST_HIGHER = 2_000
# Looking outside the workload: the share of ρ, and of how many columns with fewest values, by the
# number of columns of a table.
_BEYOND = 0.005
_COLUMNS = {3: 24, 4: 16}
_SMALL, _SELECTED = 256, 4
# Wide tables, chosen on generated ones of 60 and 90 columns: shares of ρ, and where pairs of eight
# times the weight of others are measured before, theirs, which the selected ones go without.
_WIDE, _HIDDEN = 20, 60.0
_SHARES = {"one": 0.25, "select": 0.10, "worst": 0.65}
_WANTED = {"pairs": 0.3, "worst": 0.35}
_ROUNDS, _PICKS, _PENALTY = 4, 2, 0.5
_SEEN = 80.0  # n/σ of a pair from which on a fit has all of its work to do
# Cells of all pairs together, and of one: what is counted, kept and compared in memory.
_MOST_CELLS = 200_000_000
_MOST_TABLE = 20_000_000


@dataclass(frozen=True, slots=True)
class MaxEntMethod(Method):
    """Public settings of the default method."""

    records: int = 200_000
    """Weighted records of the final model, at most."""
    quanta: int | None = None
    """Measurements that every adaptive round places; None: a third of the pairs, from 30 to 60."""
    pairs: int | None = None
    """At most this many pairs, those that most of the workload holds; None: all."""
    interactions: bool = True
    """Look for dependence of three and four columns that neither pairs nor the workload show."""
    name: str = "maxent"

    def check(self, design: Design) -> None:
        """Refuse settings out of range, and workloads whose pairs do not fit in memory."""
        if not 1_000 <= self.records <= 10_000_000:
            self.refuse(f"records = {self.records} must be from 1,000 to 10,000,000")
        if self.quanta is not None and not 1 <= self.quanta <= 1_000:
            self.refuse(f"quanta = {self.quanta} must be from 1 to 1,000")
        self.require(least(1), pairs=self.pairs)
        closure = self._closure(design)
        total = _cells(design, closure)
        largest = max((design.pair_sizes[pair] for pair in closure), default=0)
        if total > _MOST_CELLS or largest > _MOST_TABLE:
            held = {i for pair in closure for i in pair}
            widest = sorted(held, key=lambda i: (-design.shape[i], i))[:3]
            columns = ", ".join(
                f"{design.column(i)} ({design.shape[i]:,} values)"
                for i in widest
                if 10 * design.shape[i] >= design.shape[widest[0]]
            )
            fits = _fitting(design, closure)
            select = (
                f", or keep only the pairs that matter most: --set pairs={fits}" if fits else ""
            )
            self.refuse(
                f"the {len(closure):,} pairs of the workload have {total:,} cells, "
                f"the largest {largest:,}, where {_MOST_CELLS:,} in all and "
                f"{_MOST_TABLE:,} in one fit; give the columns with most values fewer bins or "
                f"categories: {columns}, leave them out of the workload{select}"
            )

    def charges(self, design: Design, rho: Fraction) -> tuple[Charge, ...]:
        """Gaussian draws and selections, all fixed in advance."""
        closure = self._closure(design)
        columns = _column_tiers(design)
        if not closure:
            return planning.charges(design.relation, _tier_draws(rho, columns))
        sigma = design.sigma(rho * Fraction(_PAIRS), len(closure))
        if _wide(design, closure, sigma):
            pairs = _pair_tiers(design, closure)[:-1]
            return planning.charges(design.relation, _wide_draws(design, rho, columns, pairs))
        beyond = self._beyond(design, closure)
        part = _split(design, rho, closure, sigma, [f"beyond {order}" for order in beyond])
        rounds = self._rounds(design, closure, part["again"])
        again = part["again"] / rounds
        units = self._units(closure)
        slots, higher = _slots(design, closure, design.sigma(again, units))
        draws = _tier_draws(part["one"], columns)
        draws += _tier_draws(part["pairs"], _pair_tiers(design, closure))
        draws.append(Draws(Survey.LOOK, errors, part["look"] / rounds, len(slots), rounds))
        if higher:
            draws.append(Draws(Survey.HIGHER, errors, part["higher"], len(higher)))
        for order, candidates in beyond.items():
            half, picks = part[f"beyond {order}"] / 2, min(_SELECTED, len(candidates))
            draws.append(Draws(Interactions.SELECT.format(order), worst, half, picks))
            draws.append(Draws(Interactions.LOOK.format(order), errors, half, picks))
        draws.append(Draws(Survey.AGAIN, tables, again, units, rounds))
        return planning.charges(design.relation, draws)

    def counted(self, design: Design) -> tuple[Clique, ...]:
        """And pairs, and what is looked at outside the workload."""
        closure = self._closure(design)
        beyond = self._beyond(design, closure).values()
        return (*Method.counted(self, design), *closure, *chain(*beyond))

    def players(
        self, design: Design, plan: Plan
    ) -> tuple[Opening | Survey | WorstAgain, Particles]:
        """The survey, or selections, against weighted records; columns alone without pairs."""
        closure, sigma, times = self._closure(design), _sigmas(plan), _times(plan)
        data = Particles(
            self.records, ordered=_in_order(design), twins=design.twins, told=design.told
        )
        columns, pairs = (
            tuple(
                FixedMarginals(tier.cliques, sigma[tier.purpose], tier.purpose)
                for tier in tiers
                if tier.purpose in sigma
            )
            for tiers in (_column_tiers(design), _pair_tiers(design, closure))
        )
        runs = data.ordered if design.weight == 1 else ()  # of families not tried
        first = Opening(columns, pairs, runs)
        if not closure:
            return first, data
        if WorstAgain.AGAIN in sigma:
            picks = plan.event(WorstAgain.SELECT, Selection).k
            rounds, noise = times[WorstAgain.SELECT], sigma[WorstAgain.AGAIN]
            return WorstAgain(first, closure, noise, picks, rounds, _PENALTY), data
        slots, higher = _slots(design, closure, sigma[Survey.AGAIN])
        survey = Survey(
            first,
            slots,
            sigma[Survey.LOOK],
            higher,
            sigma[Survey.HIGHER] if higher else 1.0,
            self._units(closure),
            sigma[Survey.AGAIN],
            _column_weights(design),
            times[Survey.AGAIN],
            tuple(
                Interactions(
                    order,
                    candidates,
                    min(_SELECTED, len(candidates)),
                    sigma[Interactions.LOOK.format(order)],
                )
                for order, candidates in self._beyond(design, closure).items()
            ),
        )
        return survey, data

    def forecast(self, design: Design, plan: Plan, rows: int) -> Forecast:
        """Counting pairs, drawing their noise and fitting the records."""
        closure = self._closure(design)
        d, many, counted = len(design.shape), _cells(design, closure), rows / design.weight
        records = Particles(self.records, twins=design.twins).size(rows, d)
        pairs = "1 pair" if len(closure) == 1 else f"{len(closure):,} pairs"
        measured, rest = f"all {d} columns and {pairs} are measured", "the rest is inferred"
        left = 0
        if WorstAgain.SELECT in plan:
            tiers = (t for t in _pair_tiers(design, closure) if t.purpose in plan)
            many = min(len(closure), _picked(plan) + sum(len(tier.cliques) for tier in tiers))
            left = len(closure) - many
            measured = f"all {d} columns and {many:,} of {pairs} are measured"
            rest = f"the other {left:,} follow from the model alone"
        elif closure:
            times = _times(plan)[Survey.AGAIN] * self._units(closure)
            measured += f"; the least accurate again, {times} times in all"
        return Forecast(
            f"{measured}; {rest}",
            2e8 + 20.0 * counted * d + 8.0 * records * d + 20.0 * many,
            self._seconds(design, plan, rows, records),
            inferred=left if 2 * left > len(closure) else 0,
        )

    def _seconds(self, design: Design, plan: Plan, rows: int, records: int) -> float:
        """CPU seconds, imports included; coefficients from generated tables (docs/benchmarks.md).

        Pairs that noise hides are not fitted: `seen` is how much of the fit there will be to do. Of
        many records, half may have to be moved, over every value of every pair that is measured.
        """
        closure, d, counted = self._closure(design), len(design.shape), rows / design.weight
        fitted = 2.8e-7 * records * d
        if not closure:
            return fitted
        picked = _picked(plan) if WorstAgain.SELECT in plan else len(closure)
        sigma = next(iter(self._knowledge(design, plan).pairs.values()))
        seen = min(1.0, rows / (_SEEN * sigma))
        values = sum(design.shape[i] + design.shape[j] for i, j in closure) * picked / len(closure)
        moved = min(records / 2, 3e9 / values) * min(values, 400_000)
        fitted += 1e-8 * records * picked * seen + 1e-9 * moved
        cells = min(_cells(design, closure), 10_000_000)
        return 4.5e-9 * counted * len(closure) + 1.5e-6 * cells + fitted

    def errors(self, design: Design, plan: Plan, rows: int) -> Errors:
        """Expected errors from the plan's noise."""
        knowledge = self._knowledge(design, plan)
        return expected(design.shape, design.cliques, design.weights, rows, knowledge)

    def describe(self) -> dict[str, Any]:
        """Name and settings; `interactions` only where it is on, for earlier versions had none."""
        described = asdict(self)
        if not self.interactions:
            del described["interactions"]
        return described

    def _closure(self, design: Design) -> tuple[Clique, ...]:
        """Pairs inside cliques of the workload, or the most wanted of them."""
        return tuple(sorted(_most_wanted(design.pair_weights)[: self.pairs]))

    def _units(self, closure: tuple[Clique, ...]) -> int:
        """Measurements of a round: the more pairs, the more and the less precise."""
        return self.quanta or min(_UNITS[1], max(_UNITS[0], len(closure) // 3))

    def _knowledge(self, design: Design, plan: Plan) -> Knowledge:
        """Deviations of columns and pairs; units are thought of as spread over pairs by weight."""
        closure, sigma = self._closure(design), _sigmas(plan)
        columns = [math.inf] * len(design.shape)
        for tier in _column_tiers(design):
            for (i,) in tier.cliques:
                columns[i] = sigma[tier.purpose]
        if not closure:
            return Knowledge(tuple(columns), {})
        if WorstAgain.AGAIN in sigma:
            spread = _picked(plan) * sigma[WorstAgain.AGAIN] ** -2
        else:
            times = self._units(closure) * _times(plan)[Survey.AGAIN]
            spread = times * sigma[Survey.AGAIN] ** -2
        weights = design.pair_weights
        total = sum(weights[pair] for pair in closure)
        precision = {pair: spread * weights[pair] / total for pair in closure}
        for tier in _pair_tiers(design, closure):
            for pair in tier.cliques:
                precision[pair] += sigma.get(tier.purpose, math.inf) ** -2
        for i, own in enumerate(columns):  # whole pairs tell of their columns as well
            others = sum(p / design.shape[sum(at) - i] for at, p in precision.items() if i in at)
            columns[i] = math.sqrt(1 / (own**-2 + others))
        pairs = {pair: math.sqrt(1 / each) for pair, each in precision.items()}
        return Knowledge(tuple(columns), pairs)

    def _beyond(self, design: Design, closure: tuple[Clique, ...]) -> dict[int, tuple[Clique, ...]]:
        """Small tables outside the workload whose pairs are all measured, by the number of columns."""
        if not self.interactions:
            return {}
        known, workload = set(closure), set(design.cliques)
        held = sorted({i for pair in closure for i in pair}, key=lambda i: (design.shape[i], i))
        found: dict[int, list[Clique]] = {}
        for order, most in _COLUMNS.items():
            for clique in combinations(sorted(held[:most]), order):
                small = math.prod(design.shape[i] for i in clique) <= _SMALL
                measured = known.issuperset(combinations(clique, 2))
                if small and measured and clique not in workload:
                    found.setdefault(order, []).append(clique)
        return {order: tuple(cliques) for order, cliques in found.items()}

    def _rounds(self, design: Design, closure: tuple[Clique, ...], rho: Fraction) -> int:
        """Two rounds of looking where most pairs are too large to be seen whole, otherwise one."""
        sigma = design.sigma(rho, self._units(closure))
        big = sum(_too_large(design, pair, sigma) for pair in closure)
        return 2 if 2 * big > len(closure) else 1


def _rows(design: Design) -> int:
    return design.rows or _ROWS * design.weight


def _cells(design: Design, closure: tuple[Clique, ...]) -> int:
    return sum(design.pair_sizes[pair] for pair in closure)


def _too_large(design: Design, pair: Clique, sigma: float) -> bool:
    """Whether a pair has too many cells to be seen whole."""
    return design.pair_sizes[pair] > _BIG * (_rows(design) / sigma)


def _fitting(design: Design, closure: tuple[Clique, ...]) -> int:
    """How many pairs fit, taken in the order in which they would be kept."""
    total = fits = 0
    for pair in _most_wanted({pair: design.pair_weights[pair] for pair in closure}):
        total += design.pair_sizes[pair]
        if total > _MOST_CELLS or design.pair_sizes[pair] > _MOST_TABLE:
            break
        fits += 1
    return fits


def _split(
    design: Design, rho: Fraction, closure: tuple[Clique, ...], sigma: float, beyond: list[str]
) -> dict[str, Fraction]:
    """ρ by parts; `sigma` is the noise of all pairs if they had the whole of their share."""
    mean = _cells(design, closure) / len(closure)
    pairs = round(_PAIRS * min(1.0, _LEARNABLE * _rows(design) / (mean * sigma)), 6)
    higher = _HIGHER if any(len(clique) > 2 for clique in design.cliques) else 0.0
    one = 1 - pairs - _LOOK - higher - _AGAIN
    shares = {"one": one, "pairs": max(pairs, 1e-6), "look": _LOOK, "again": _AGAIN}
    if higher:
        shares["higher"] = higher
    parts = _parts(tuple((shares | dict.fromkeys(beyond, _BEYOND)).items()))
    return {name: rho * part for name, part in parts.items()}


@cache
def _parts(shares: tuple[tuple[str, float], ...]) -> dict[str, Fraction]:
    """Of 1; worked out once for all the plans that a budget is tried with."""
    return planning.split(Fraction(1), dict(shares))


def _slots(
    design: Design, closure: tuple[Clique, ...], sigma: float
) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
    """Pairs, those too large also merged, and larger tables."""
    wanted = design.pair_weights
    slots: list[Slot] = []
    for pair in closure:
        big = _too_large(design, pair, sigma)
        slots.append(Slot(pair, None, wanted[pair], dense=not big))
        if big:
            slots += [Slot(pair, share, wanted[pair]) for share in _MERGED]
    larger: dict[Clique, float] = {}
    for clique, weight, size in zip(design.cliques, design.weights, design.sizes, strict=True):
        if len(clique) > 2 and size <= _MOST_TABLE:
            larger[clique] = larger.get(clique, 0.0) + weight
    most = _most_wanted(larger)[:_MOST_HIGHER]
    # What pairs do not explain is worth as much as the heaviest of them.
    worth = {c: max(wanted[pair] for pair in combinations(c, 2)) for c in most}
    return tuple(slots), tuple(Slot(clique, 1.0, worth[clique]) for clique in sorted(most))


def _wide(design: Design, closure: tuple[Clique, ...], sigma: float) -> bool:
    """Whether so many pairs share ρ that each would be hidden by noise; a public rule."""
    return len(closure) > _WIDE * len(design.shape) and _rows(design) < _HIDDEN * sigma


def _wide_draws(
    design: Design, rho: Fraction, columns: list[_Tables], pairs: list[_Tables]
) -> list[Draws]:
    """Columns, the pairs that weigh more than others, and the pairs that are selected."""
    part = planning.split(rho, {**_SHARES, **_WANTED} if pairs else _SHARES)
    picks = math.ceil(_PICKS * len(design.shape) / _ROUNDS)
    return [
        *_tier_draws(part["one"], columns),
        *(_tier_draws(part["pairs"], pairs) if pairs else ()),
        Draws(WorstAgain.SELECT, worst, part["select"] / _ROUNDS, picks, _ROUNDS),
        Draws(WorstAgain.AGAIN, tables, part["worst"] / _ROUNDS, picks, _ROUNDS),
    ]


def _picked(plan: Plan) -> int:
    """How many pairs are selected and measured."""
    return plan.event(WorstAgain.SELECT, Selection).k * _times(plan)[WorstAgain.SELECT]


def _most_wanted(weights: dict[Clique, float]) -> list[Clique]:
    return sorted(weights, key=lambda clique: (-weights[clique], clique))


def _column_weights(design: Design) -> tuple[float, ...]:
    """How much of the workload holds a column; never nothing, for every column is released."""
    weights = [0.0] * len(design.shape)
    for clique, weight in zip(design.cliques, design.weights, strict=True):
        for i in clique:
            weights[i] += weight
    least = min((w for w in weights if w > 0), default=1.0)
    return tuple(max(w, least) for w in weights)


@dataclass(frozen=True, slots=True)
class _Tables:
    """Tables that are measured with one noise level; `precision` relative to that of other tiers."""

    purpose: str
    cliques: tuple[Clique, ...]
    precision: int


def _in_order(design: Design) -> tuple[int, ...]:
    """How many of each column's values, the first ones, are in an order."""
    none = (0,) * len(design.shape)
    facts = zip(design.shape, design.ordered or none, design.apart or none, strict=True)
    return tuple(size - apart if ordered else 0 for size, ordered, apart in facts)


def _column_tiers(design: Design) -> list[_Tables]:
    """Columns by precision, in steps of two: (weight · values)^½."""
    weighed = zip(_column_weights(design), design.shape, strict=True)
    steps = [round(math.log2(weight * size) / 2) for weight, size in weighed]
    return _tiers(ONE_WAY, dict(zip(design.columns, steps, strict=True)), 2)


def _pair_tiers(design: Design, closure: tuple[Clique, ...]) -> list[_Tables]:
    """Pairs by precision, in steps of four: weight^⅔, which makes the weighted error least."""
    weights = design.pair_weights
    least = min((weights[pair] for pair in closure), default=1.0)
    steps = {pair: int(math.log2(weights[pair] / least) / 3) for pair in closure}
    return _tiers(Opening.PAIRS, steps, 4)


def _tiers(name: str, steps: dict[Clique, int], base: int) -> list[_Tables]:
    """The most precise first, and none more than three steps behind it."""
    most = max(steps.values(), default=0)
    tiers: dict[int, list[Clique]] = {}
    for clique, step in steps.items():
        tiers.setdefault(max(step, most - 3), []).append(clique)
    return [
        _Tables(
            name if len(tiers) == 1 else f"{name}, tier {number}",
            tuple(tiers[step]),
            base ** (step - min(tiers)),
        )
        for number, step in enumerate(sorted(tiers, reverse=True), 1)
    ]


def _tier_draws(rho: Fraction, tiers: list[_Tables]) -> list[Draws]:
    """ρ is divided by how many tables a tier has, and how precise each is."""
    parts = [len(tier.cliques) * tier.precision for tier in tiers]
    return [
        Draws(tier.purpose, tables, rho * part / sum(parts), len(tier.cliques))
        for tier, part in zip(tiers, parts, strict=True)
    ]


def _sigmas(plan: Plan) -> dict[str, float]:
    """The noise of every Gaussian charge, by its purpose."""
    return {c.purpose: c.event.sigma for c in plan.charges if isinstance(c.event, Gaussian)}


def _times(plan: Plan) -> dict[str, int]:
    """How often every charge may be drawn, by its purpose."""
    return {c.purpose: c.times for c in plan.charges}
