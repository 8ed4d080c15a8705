"""From a statistic and a release to estimates with intervals.

Each round corrects the means of the influence functions (`correction`), tilts the weights of the cells
towards them and fits the statistic again, always correcting from the released model. The interval is

    estimate ± h,   P(|N(b, s²)| ≤ h) = level

with s² the variance by noise, sampling and a private number of rows, and b a bound on the bias by what
the model may have missed and by what bins hide. Errors of different kinds are taken to be within an
ellipsoid: they are not at their worst all at once, so that their bounds add up as squares. Only a
certificate's bound, which no assumption is behind, is added to the others in full.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations
from math import hypot, sqrt
from statistics import NormalDist

import numpy as np

from understudy._types import Clique, Floats
from understudy.columns.binned import Binned
from understudy.columns.shape import Search
from understudy.estimates.correction import OMEGA_REST, Correction, Evidence, omega, tilted
from understudy.estimates.estimate import Estimate, Parts
from understudy.estimates.frame import Frame
from understudy.estimates.points import collapsed
from understudy.estimates.reduced import Reduced, column_noise, reduced
from understudy.estimates.statistic import Fitted, Gone, Interval, Measured, Statistic, Undefined
from understudy.models import Measured as Table
from understudy.models import View
from understudy.schema import Schema
from understudy.units import things
from understudy.wording import point

ROUNDS = 8
FLAGGED = 0.05
"""Reliance from which on an estimate carries a warning, and a certificate, where there is one, bounds
what no table shows. One cell of three independent columns with two equally frequent values has 1/7,
and where noise made these less even 0.07 or more; what rests on pairs alone has less than 0.05."""
ONLY_CERTIFIED = 0.9
"""Reliance beyond which ω says nothing and only a certificate can bound the error."""
CLEAR = 2.0
"""A share that a statistic divides by is at least so many half widths of its own interval."""
MOST_NOISE = 1.0
"""The noise of all values of a column together, in its rows, up to which a statistic that is not linear
in their shares is estimated: beyond, what its influence function leaves out is no longer small."""
MOST_SEARCHED = 0.5
"""The noise of all cells of the first level of a search, the root of their squares, in rows: beyond, a
column of many values stands out nowhere, and what was found may be noise."""
UNSEEN = (
    "it rests on what three or more columns show only together, which was never measured; a release "
    "whose certified workload has a marginal of these columns would bound it"
)
_WIDE = (
    "most of its interval is about where values stand inside wide bins, which no table shows; narrower "
    "bins there, edges at heaps and jumps, or a shape that a release finds would make it shorter"
)
_NOISY = (
    "most of its interval is about where values stand inside cells whose shape was found with noise; "
    "a larger epsilon would make it shorter, and so would public bounds in the schema, if it has none"
)
_RARER = (1, 4, 16)
"""Where nothing can be said, values that are so many times less rare are left out too."""
_SETTLED = 0.2
"""How near the rounds come, in deviations; what is left is added."""

_NORMAL = NormalDist()


@dataclass(frozen=True, eq=False)
class Known:
    """What a release tells: its model, its noisy tables and its number of rows.

    rows_sigma    the noise of the number of rows; 0 where it is public
    searches      how shapes were found privately, by column
    alike         rows of one unit, at most, which may be copies of each other
    certified     for some columns, what bounds |Σ_x (P − m)·r| for a function r of their cells, given
                  over all of them; None where no certified marginal holds them
    smooth        whether pairs that were measured in runs of neighbouring values were fitted smoothly
    """

    schema: Schema
    model: View
    tables: Sequence[Table]
    rows: float
    rows_sigma: float = 0.0
    alike: int = 1
    certified: Callable[[Clique, Floats], float | None] = lambda columns, rest: None
    smooth: bool = False
    searches: Mapping[int, Search] = field(default_factory=dict)


def estimated(
    statistics: Sequence[Statistic], known: Known, target: str, level: float
) -> tuple[Estimate, ...]:
    """An estimate for each number of each statistic. Post-processing: nothing private is read."""
    about = {columns: _About.of(known, columns) for columns in {s.columns for s in statistics}}
    found: list[Estimate] = []
    for statistic in statistics:
        told = _told(statistic, about[statistic.columns], target, level)
        found += [told[name] for name in statistic.names]
    return tuple(found)


def _told(statistic: Statistic, about: _About, target: str, level: float) -> dict[str, Estimate]:
    """Estimates by their names; without some rare values, where nothing could be said with them."""
    gone: Mapping[str, Gone] | None = None
    lacking = dict.fromkeys(statistic.names, "the noise is too large for it")
    for times in _RARER:
        kept, less = statistic.without(about.rare(times))
        if less == gone:
            continue
        gone = less
        try:
            made = _Run(kept, about, target, level).estimates()
        except Undefined as error:
            lacking = dict.fromkeys(statistic.names, str(error))
        else:
            told = {estimate.name: estimate for estimate in made}
            return told | {
                name: Estimate(name, 0.0, 0.0, 0.0, level, target, None, None, each.why)
                if each.base
                else _undetermined(name, each.why, target, level)
                for name, each in gone.items()
            }
    return {name: _undetermined(name, why, target, level) for name, why in lacking.items()}


def _undetermined(
    name: str, why: str, target: str, level: float, reliance: float | None = None
) -> Estimate:
    return Estimate(name, None, None, None, level, target, None, reliance, why)


@dataclass(frozen=True, eq=False)
class _Settled:
    """Where the rounds ended: weights that agree with the tables as well as these allow."""

    weights: Floats
    fitted: Fitted
    influence: Floats
    correction: Correction


@dataclass(frozen=True, eq=False)
class _About:
    """What a release tells of some columns.

    `crowded` are those whose noise is larger than rows, `noise` that of a share of each.
    """

    known: Known
    evidence: Evidence
    crowded: tuple[int, ...]
    noise: tuple[float, ...]

    @classmethod
    def of(cls, known: Known, columns: Clique) -> _About:
        shape = known.schema.shape
        tables = reduced(known.tables, columns, shape)
        known = _with_rows(known, tables)
        noise = [column_noise(tables, i, shape[i]) / known.rows for i in columns]
        worst = [max(own, _shape_noise(known, i)) for i, own in zip(columns, noise, strict=True)]
        crowded = (i for i, w in zip(columns, worst, strict=True) if w * shape[i] > MOST_NOISE)
        off = omega(tables, columns)
        points = collapsed(known.model, columns, shape, [_floor(own, off) for own in noise])
        held = [known.schema.modelled[i] for i in columns] if known.smooth else []
        ordered = tuple(column.size - column.apart if column.ordered else 0 for column in held)
        evidence = Evidence(points, tables, known.rows, known.rows_sigma, ordered)
        return cls(known, evidence, tuple(crowded), tuple(noise))

    def rare(self, times: float) -> dict[int, frozenset[int]]:
        """The codes of each column whose shares are below so many times what noise hides."""
        columns, model = self.evidence.points.columns, self.known.model
        return {
            i: frozenset(np.flatnonzero(model.marginal((i,)) < 2 * CLEAR * times * own).tolist())
            for i, own in zip(columns, self.noise, strict=True)
        }


def _shape_noise(known: Known, i: int) -> float:
    """The noise of a share of a column whose shape was found, and 0 for others."""
    search = known.searches.get(i)
    return 0.0 if search is None else search.part / known.rows


class _Run:
    """One statistic on one release."""

    def __init__(self, statistic: Statistic, about: _About, target: str, level: float) -> None:
        self.statistic, self.target, self.level = statistic, target, level
        self.known, self.evidence, self.crowded = about.known, about.evidence, about.crowded
        self.points = self.evidence.points
        self.frame = Frame.of(
            self.points,
            self.known.schema,
            self.known.model,
            statistic.numbers,
            {i: each.of(self.known.rows) for i, each in self.known.searches.items()},
        )

    @property
    def many(self) -> int:
        """How many numbers the statistic fits."""
        return self.settled.fitted.values.size

    @cached_property
    def settled(self) -> _Settled:
        """The rounds. What is linear needs one, and no weights."""
        evidence, weights = self.evidence, self.points.shares
        lambdas, turn = None, 0
        while True:
            fitted = self.statistic.fit(self.frame, weights)
            every = fitted.influence(self.frame)
            influence = every[:, : fitted.values.size]
            # Later rounds change φ little and begin with the λ of the one before.
            lambdas = evidence.weights(every, 0, lambdas)
            goals, many = evidence.goal(every, lambdas), fitted.values.size
            own = np.sqrt(weights @ every**2 / self.known.rows)
            nears = _SETTLED * (np.hypot(evidence.noise(lambdas), own) + 1e-9)
            goal, near = goals[:many], nears[:many]
            moved, reached = None, self.statistic.linear or bool(np.all(np.abs(goal) <= near))
            if not reached and turn < ROUNDS:
                # The shares that are divided by go where the tables say, as far as they stay shares:
                # otherwise tilting would let a group grow to change its mean.
                goals[many:] = np.maximum(goals[many:], -0.75 * fitted.shares)
                nears[many:] = np.maximum(nears[many:], 0.05 * fitted.shares)
                used = slice(many if self.statistic.follows else None)
                moved = tilted(weights, every[:, used], goals[used], nears[used] / 2)
            if moved is None:
                if not reached and not bool(np.all(np.abs(goal) <= 2 * near)):
                    raise Undefined("the noise is too large for it")
                lambdas = evidence.weights(every, many, lambdas)
                correction = evidence.correction(every, lambdas)
                return _Settled(weights, fitted, influence, correction)
            weights, turn = moved, turn + 1

    def estimates(self) -> tuple[Estimate, ...]:
        if self.known.rows < 4 * self.known.rows_sigma:
            told = f"the number of {things(self.known.schema.unit)} is hidden by its own noise"
            raise Undefined(told)
        if not self.statistic.first_order and set(self.crowded) & set(self.statistic.numbers):
            raise Undefined("the noise of a column is larger than all that it holds")
        if any(self._lost(i) for i in self.statistic.numbers):
            raise Undefined(
                "where the values of a column lie was looked for with too much noise to find them; "
                "bins that are declared, if edges are public, or a larger epsilon would show them"
            )
        alone = any(len(self.frame.numbers[i]) == 1 for i in self.statistic.numbers)
        if alone and (len(self.statistic.columns) > 1 or not self.statistic.first_order):
            raise Undefined(
                "all values of a number are in one bin, which shows neither how they are spread nor a "
                "relation to other columns"
            )
        measured = [self._measured(k) for k in range(self.many)]
        combined = self.statistic.combined(self.frame, measured)
        if self.statistic.ranks:
            combined = [self._ranked(each, measured) for each in combined]
        return tuple(
            self._shown(name, each)
            for name, each in zip(self.statistic.names, combined, strict=True)
        )

    def _lost(self, i: int) -> bool:
        """Whether the search for the shape of a column may have found noise alone."""
        search = self.known.searches.get(i)
        if search is None:
            return False
        return search.whole * sqrt(len(search.coarse)) > MOST_SEARCHED * self.known.rows

    @cached_property
    def _heaped(self) -> list[list[Frame]]:
        """The frame with round numbers, for every column that may hold them."""
        return self.frame.heaped(self.known.schema, self.statistic.conditions)

    @cached_property
    def _heaps(self) -> tuple[Floats, Floats]:
        """How far round numbers may lower each number, and raise it: the same share in all bins."""
        fitted, less, more = self.settled.fitted, np.zeros(self.many), np.zeros(self.many)
        for frames in self._heaped:
            moved = [self.statistic.fit(frame, self.settled.weights) for frame in frames]
            change = np.array([each.values - fitted.values for each in moved])
            less += np.maximum(-change, 0.0).max(axis=0)
            more += np.maximum(change, 0.0).max(axis=0)
        return less, more

    def _ranked(
        self, told: Measured | Interval, measured: Sequence[Measured]
    ) -> Measured | Interval:
        """An interval of values in order, with those that it has where values are round numbers."""
        for frame in chain.from_iterable(self._heaped):
            (other,) = self.statistic.combined(frame, measured)
            if isinstance(told, Interval) and isinstance(other, Interval):
                low, high = min(told.low, other.low), max(told.high, other.high)
                told = replace(told, low=low, high=high)
        return told

    @cached_property
    def _inside(self) -> tuple[Floats, Floats, Floats]:
        """What bins hide: (variance of one row, variance by noisy shapes, bound on the bias)."""
        one, noisy, bias = (np.zeros(self.many) for _ in range(3))
        fitted, weights = self.settled.fitted, self.settled.weights
        if fitted.hidden is not None:
            bias += fitted.hidden**2
        for source in self.frame.sources(self.statistic.conditions):
            up, down = (fitted.influence(self.frame.moved(source, by)) for by in (0.5, -0.5))
            change = (up - down)[:, : self.many]
            one += weights @ change**2
            size = len(source.bias)
            held = np.maximum(np.bincount(source.cells, weights, size), 1e-12)
            for k in range(self.many):
                moved = np.bincount(source.cells, weights * change[:, k], size)
                bias[k] += float(np.sum((moved * source.bias) ** 2))
                noisy[k] += float(np.sum((moved / held * source.noise) ** 2))
        return one, noisy, np.sqrt(bias)

    @cached_property
    def _beyond(self) -> tuple[Floats, Floats]:
        """How far rows outside all that was found of a column may lower each number, and raise it."""
        fitted, weights = self.settled.fitted, self.settled.weights
        less, more = np.zeros(self.many), np.zeros(self.many)
        for i, cell, by in self.frame.ends():
            held = float(self.points.shares @ (self.frame.codes(i) == cell))
            moved = replace(self.frame, stretched=(i, cell, by / held)) if held > 0 else self.frame
            change = (fitted.influence(moved) - fitted.influence(self.frame))[:, : self.many]
            less += np.maximum(-weights @ change, 0.0)
            more += np.maximum(weights @ change, 0.0)
        return less, more

    def _measured(self, k: int) -> Measured:
        """One number that was fitted, and what is known of its error."""
        settled, known, correction = self.settled, self.known, self.settled.correction
        reliance = float(correction.reliance[k])
        value = float(settled.fitted.values[k]) + float(correction.goal[k])
        one, noisy, bias = (float(each[k]) for each in self._inside)
        beyond = float(self._beyond[0][k]), float(self._beyond[1][k])
        heaps = float(self._heaps[0][k]), float(self._heaps[1][k])
        own = float(settled.weights @ settled.influence[:, k] ** 2)
        sampling, inside = 0.0, sqrt(noisy + one / known.rows)
        if self.target == "population":
            sampling, inside = sqrt(known.alike * (own + one) / known.rows), sqrt(noisy)
        lever = float(correction.by_rows[k]) + (value if self.statistic.per_row else 0.0)
        model = self._model(k)
        why = None
        needed = settled.fitted.needed[k] if settled.fitted.needed else ()
        unclear = next(filter(None, map(self._unclear, needed)), None)
        if unclear is not None:
            why = unclear
        elif model is None:
            why = UNSEEN
        parts = Parts(
            float(correction.noise[k]),
            abs(lever) * known.rows_sigma / known.rows,
            sampling,
            model or 0.0,
            inside + bias + max(beyond) + max(heaps),
        )
        deviation = hypot(parts.noise, parts.rows, parts.sampling, inside)
        half = half_width(deviation, hypot(parts.model, bias), self.level)
        return Measured(value, half, parts, reliance, why, beyond, heaps)

    def _shown(self, name: str, measured: Interval | Measured) -> Estimate:
        """One number as it is told."""
        if isinstance(measured, Measured):
            measured = self._between(measured)
        if measured.why is not None:
            return _undetermined(name, measured.why, self.target, self.level, measured.reliance)
        warnings: list[str] = []
        if measured.reliance >= FLAGGED:
            warnings.append(
                f"{100 * measured.reliance:.0f} % of its variance lies in what three or more columns "
                "show only together, which was never measured"
            )
        own = measured.parts
        if own.inside > hypot(own.noise, own.rows, own.sampling):
            searched = set(self.statistic.numbers) & set(self.known.searches)
            warnings.append(_NOISY if searched else _WIDE)
        warnings += self._ends(measured)
        warning = "; ".join(warnings) or None
        times = self.known.rows if self.statistic.per_row else 1.0
        parts = measured.parts.times(times)
        value, low, high = (times * each for each in (measured.value, measured.low, measured.high))
        told = (value, low, high, self.level, self.target, parts, measured.reliance, warning)
        return Estimate(name, *told, self.statistic.unit)

    def _ends(self, measured: Interval) -> list[str]:
        """Which ends of its numbers were found privately, where rows beyond would matter."""
        told: list[str] = []
        for i in self.statistic.numbers:
            search, column = self.known.searches.get(i), self.known.schema.modelled[i]
            if search is None or not isinstance(column, Binned) or column.edges is None:
                continue
            points = self.frame.numbers[i].points
            inside = points.min() < measured.low <= measured.high < points.max()
            pairs = (column.edges[0], search.low), (column.edges[-1], search.high)
            ends = [point(end) for end, found in pairs if found]
            if ends and not (inside and self.statistic.ranks):
                told.append(
                    f"{column.name} ends at {' and '.join(ends)}, found privately: rows beyond, if "
                    "there are any, count as values up to there, which the interval allows for only "
                    "roughly"
                )
        return told

    def _between(self, measured: Measured) -> Interval:
        """A number and its interval, within its limits."""
        low, high = self.statistic.limits(self.frame)
        value, why = measured.value, measured.why
        least, most = (
            value - measured.half - measured.heaps[0],
            value + measured.half + measured.heaps[1],
        )
        if min(most, high) - max(least, low) >= 0.95 * (high - low):
            why = why or f"every value that is possible lies in the interval{self._apart}"
        least, most = max(least, low) - measured.beyond[0], min(most, high) + measured.beyond[1]
        ends = self.statistic.shown(np.array([np.clip(value, low, high), least, most]))
        told = float(ends[0]), float(ends[1]), float(ends[2])
        return Interval(*told, measured.parts, measured.reliance, why)

    def _unclear(self, share: int) -> str | None:
        """Why a share that is divided by is not known well enough for that; None where it is."""
        correction, at = self.settled.correction, self.many + share
        bias = hypot(correction.missed[at], OMEGA_REST * correction.unseen[at])
        half = half_width(float(correction.noise[at]), bias, self.level)
        value = max(float(self.settled.fitted.shares[share] + correction.goal[at]), 0.0)
        if value >= CLEAR * half:
            return None
        guessed = self._apart if bias > float(correction.noise[at]) else ""
        return (
            f"{self.statistic.divisor} is {100 * value:.2g} % ± {100 * half:.2g} percentage points, "
            f"and has to be {CLEAR:g} times its error or more{guessed}"
        )

    @property
    def _apart(self) -> str:
        """What of the columns was not measured together, if anything, in words."""
        found = apart(self.known, self.points.columns)
        if not found:
            return ""
        names = ", ".join(f"{one} and {other}" for one, other in found)
        return f"; no noisy table holds {names} together"

    def _model(self, k: int) -> float | None:
        """A bound on the bias by what tables do not tell; None where there is none to trust."""
        correction = self.settled.correction
        missed, reliance = float(correction.missed[k]), correction.reliance[k]
        unseen = OMEGA_REST * float(correction.unseen[k])
        if unseen == 0.0:
            return missed
        known = self.known.certified(self.points.columns, correction.rest[:, k])
        usual, certain = hypot(missed, unseen), None if known is None else missed + known
        if reliance > ONLY_CERTIFIED or (known is not None and reliance >= FLAGGED):
            return certain
        return usual if certain is None else min(usual, certain)


def apart(known: Known, columns: Clique) -> list[tuple[str, str]]:
    """The pairs of some columns that no noisy table holds together, by name."""
    held = [set(table.clique) for table in known.tables]
    return [
        (known.schema.modelled[i].name, known.schema.modelled[j].name)
        for i, j in combinations(columns, 2)
        if not any({i, j} <= each for each in held)
    ]


def _with_rows(known: Known, tables: Sequence[Reduced]) -> Known:
    """With what tables that have none of the columns add about a private number of rows."""
    others = [table for table in tables if not table.clique]
    if not others or known.rows_sigma == 0.0:
        return known
    (other,) = others
    own, more = known.rows_sigma**-2, other.sigma**-2
    rows = (own * known.rows + more * float(other.values)) / (own + more)
    return replace(known, rows=max(rows, 1.0), rows_sigma=(own + more) ** -0.5)


def _floor(noise: float, omega: float) -> float:
    """A share below which a value's own share says nothing: u with ω²·u = 16·noise², at most noise.

    With it a column's table has at least .94 of its full weight at values that the model holds for
    empty, as long as noise is small. Frozen before it was validated, as ω.
    """
    return min(1.0, noise, (4 * noise / omega) ** 2)


def half_width(deviation: float, bias: float, level: float) -> float:
    """The least h with P(|N(b, deviation²)| ≤ h) ≥ level for every |b| ≤ bias.

    deviation · √q, q the quantile of the non-central χ² with one degree of freedom and non-centrality
    (bias/deviation)² (Armstrong and Kolesár, Optimal inference in a class of regression models,
    Econometrica 2018). Without noise it is the bias itself.
    """
    if deviation <= 0:
        return bias
    ratio = bias / deviation
    if ratio > 30:  # the other tail is nothing
        return bias + deviation * _NORMAL.inv_cdf(level)
    low, high = 0.0, ratio + _NORMAL.inv_cdf((1 + level) / 2)
    for _ in range(60):
        middle = (low + high) / 2
        inside = _NORMAL.cdf(middle - ratio) - _NORMAL.cdf(-middle - ratio)
        low, high = (middle, high) if inside < level else (low, middle)
    return deviation * high
