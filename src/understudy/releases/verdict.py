"""What a release is good for, in plain words: thresholds on public numbers, and what would help.

Judged by two figures, both shares of n: the mean total variation that is expected of a table of the
workload, and the bound on the worst cell (measured by the certificate; before a release, the expected
worst cell and what the certificate adds to it). A forecast is an interval: the verdict before a release
is that of its pessimistic end, and says so where the other end would be judged better. Nothing here
reads a row or costs anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from itertools import combinations
from statistics import median
from typing import TypeVar

from understudy.errors import VerificationError
from understudy.game.forecast import Errors
from understudy.game.methods import Design
from understudy.game.methods.maxent import ONE_WAY
from understudy.privacy import planning
from understudy.privacy.budget import Budget, decimal
from understudy.privacy.cost import Gaussian
from understudy.releases.agreement import SMALL, Miss, contradiction
from understudy.releases.certificate import forecast_margin
from understudy.releases.plan import Blueprint, Prepared
from understudy.releases.release import Release
from understudy.releases.replan import blueprint
from understudy.units import group, things
from understudy.wording import at_most, percent, points, up

T = TypeVar("T")

_GOOD, _LIMITED = 0.05, 0.15
"""Mean total variation up to which a release is good for most analyses, and for large groups."""
_GOOD_BOUND, _LIMITED_BOUND = SMALL, 0.10  # The same for the bound on the worst cell
_MEAN_BETWEEN = (0.5, 2.0)
"""Before a release: the mean total variation is between so many times its forecast."""
_SINGLE = 0.05  # The same for shares of single columns, where tables of several are poor
_EXACT = 10  # A share of so many times the bound is accurate to one part in so many
_SURE = 2.0
"""Deviations of a value's share in one column that are called typical: 95 % of values are within."""
_EPSILONS = tuple(map(Fraction, ("0.1", "0.2", "0.5", "1", "2", "4", "8", "10")))
_CLEARLY = 0.7  # An error of at most so much of another is worth a word
_BETA = 0.05  # At which margins of certificates are compared with each other


class Level(StrEnum):
    """How much a release is worth to somebody who analyses it."""

    GOOD = "Useful for most analyses of its tables"
    DOUBTFUL = "Use with care: its rows contradict a table that was measured"
    LIMITED = "Useful for large groups only"
    POOR = "Not useful for analysis: its errors are too large"

    @property
    def lower_case(self) -> str:
        """Inside a sentence."""
        return self[:1].lower() + self[1:]


@dataclass(frozen=True)
class Verdict:
    """The level, what to use a release for, what not, which figure decided, and what would help."""

    level: Level
    """Before a release, at the pessimistic end of the forecast."""
    good_for: str
    not_for: str
    advice: str = ""
    best: Level | None = None
    """At the optimistic end of a forecast, where that is another level."""
    decided: str = ""
    """The figure that the level follows from."""

    @property
    def headline(self) -> str:
        """The level; before a release, what is safe to expect."""
        if self.best is None:
            return str(self.level)
        if self.level is Level.LIMITED:
            return "Useful for large groups, perhaps for most analyses of its tables"
        if self.best is Level.GOOD:
            return "Perhaps useful: at best for most analyses of its tables, at worst not at all"
        return "Perhaps useful for large groups"

    def to_json(self) -> dict[str, str]:
        """For shells."""
        told = {"good_for": self.good_for, "not_for": self.not_for, "advice": self.advice}
        level = {"level": self.level.name.lower(), "verdict": self.headline}
        return {**level, **told, "decided": self.decided}

    def __str__(self) -> str:
        told = f"{self.headline}. Good for: {self.good_for}. Not good for: {self.not_for}."
        decided = f"Decided by {self.decided}." if self.decided else ""
        return " ".join(filter(None, (told, decided, self.advice)))


@dataclass(frozen=True)
class _Figures:
    """What a verdict follows from; `mean` is None where a method forecasts nothing."""

    rows: int
    mean: float | None
    bound: float
    widest: int
    noise: bool = False
    miss: Miss | None = None
    """The table whose synthetic rows contradict most what was measured."""
    things: str = "rows"
    single: float = 1.0
    """Two deviations of the noise of a value's share, in the median column; 1 where none is known."""


def judge(figures: _Figures, advice: str = "", best: _Figures | None = None) -> Verdict:
    """The verdict on some figures; `best` are those at the optimistic end of a forecast."""
    level = _level(figures)
    other = level if best is None else _level(best)
    tables = "single columns" if figures.widest == 1 else f"up to {figures.widest} columns together"
    single = figures.widest > 1 and figures.single <= min(_GOOD_BOUND, figures.bound / 2)
    least = _EXACT * figures.bound * max(figures.rows, 1)
    bad = f"groups under {_ends(figures, best, 1)}, single people, more columns together"
    if level is Level.POOR and other is Level.POOR:
        single = figures.widest > 1 and figures.single <= _SINGLE and not figures.noise
        good = "trying out code on rows of the right form"
        bad = "numbers of several columns together" if single else "any number that matters"
    elif least <= max(figures.rows, 1) / 2:
        held = _ends(figures, best, _EXACT)
        good = f"cells of {tables} that hold {held} or more (accurate to ±10 %)"
    else:
        good = f"cells of {tables} with shares far above {percent(figures.bound)}"
    if single:
        near = points(figures.single)
        good = f"shares in single columns (their estimates are typically within ±{near}); {good}"
    if (miss := figures.miss) is not None:
        unfit = miss.unusable
        if miss.share and miss.small:
            unfit = f"differences of up to {points(miss.share)} in {miss.where}"
        bad = f"{unfit}; {bad}"
    decided = _decided(figures, level, best)
    return Verdict(level, good, bad, advice, None if other is level else other, decided)


def _ends(figures: _Figures, best: _Figures | None, times: float) -> str:
    """So many times the bound in rows, at the pessimistic end; and at the other, if that differs."""
    said = up if best is None else _about
    ends = [said(times * f.bound * max(f.rows, 1)) for f in (figures, best) if f is not None]
    perhaps = f" (perhaps {ends[-1]})" if len(set(ends)) > 1 else ""
    return f"{ends[0]} {figures.things}{perhaps}"


def _decided(figures: _Figures, level: Level, best: _Figures | None) -> str:
    """Which of the figures the level follows from, with its limits."""
    ends = [f for f in (best, figures) if f is not None]
    if figures.noise:
        return "the tables, which say hardly more than the schema does"
    if level is Level.DOUBTFUL and figures.miss is not None:
        return f"{figures.miss.where}, which the model could not fit"
    limits = "(limits: {} for most analyses, {} for large groups)"
    if _level(replace(figures, mean=0.0)) is level:  # the worst cell alone would do
        told = limits.format(percent(_GOOD_BOUND).removesuffix(" %"), percent(_LIMITED_BOUND)[:-2])
        if best is None:
            bound = at_most(min(figures.bound, 1.0))
            return f"the bound on the worst cell, {bound} percentage points {told}"
        between = " to ".join(dict.fromkeys(percent(each.bound)[:-2] for each in ends))
        return f"the bound on the worst cell, forecast at {between} percentage points {told}"
    told = limits.format(percent(_GOOD), percent(_LIMITED))
    between = " to ".join(dict.fromkeys(percent(each.mean or 0.0) for each in ends))
    return f"the typical table, with about {between} of its {figures.things} in another cell {told}"


def _about(rows: float) -> str:
    """Two digits, as a forecast is no more exact."""
    return f"{float(f'{rows:.2g}'):,.0f}"


def _level(figures: _Figures) -> Level:
    mean = figures.mean or 0.0
    if figures.noise or mean > _LIMITED or figures.bound > _LIMITED_BOUND:
        return Level.POOR
    if figures.miss is not None and not figures.miss.small:
        return Level.DOUBTFUL
    return Level.GOOD if mean <= _GOOD and figures.bound <= _GOOD_BOUND else Level.LIMITED


def foreseen(prepared: Prepared, rows: int, errors: Errors | None) -> Verdict | None:
    """The verdict before a release, for about `rows` rows; None where nothing can be forecast."""
    if errors is None:
        return None
    widest = max(map(len, prepared.design.cliques))
    counted, margin = things(prepared.schema.unit), prepared.margin(rows)
    number = errors.rows // prepared.design.weight
    noises = [
        charge.event.sigma
        for charge in prepared.usual(rows).game_plan
        if charge.purpose.startswith(ONE_WAY) and isinstance(charge.event, Gaussian)
        for _ in range(charge.times)
    ]
    single = _SURE * median(noises) / errors.rows if noises else 1.0

    def at(end: float, worst: float) -> _Figures:
        then = replace(errors, mean=min(1.0, end * errors.mean))
        bound = min(1.0, worst + margin)
        return _Figures(number, then.mean, bound, widest, then.noise, things=counted, single=single)

    low, high = errors.worst_between or (errors.worst, errors.worst)
    best, worst = at(_MEAN_BETWEEN[0], low), at(_MEAN_BETWEEN[1], high)
    own = prepared.usual(rows).blueprint
    advice = _advice(
        own,
        prepared.budget,
        group(prepared.schema.unit),
        worst,
        errors.mean,
        prepared.options.purposes,
    )
    return judge(worst, advice, best)


def verdict(release: Release) -> Verdict:
    """The verdict on a release, from released numbers alone."""
    rows, errors = release.number, release.forecast
    widest = max(len(clique) for clique in release.workload.cliques)
    mean = None if errors is None else errors.mean
    noise = errors is not None and errors.noise
    miss = contradiction(release.diagnostics)
    bound, counted = release.certificate.bound, things(release.schema.unit)
    single = median(release.hidden(column.name, _SURE) for column in release.schema.modelled)
    now = _Figures(rows, mean, bound, widest, noise, miss, counted, single)
    if errors is None:
        return judge(now)
    try:
        own = blueprint(release)
    except VerificationError:  # an older release, or a method of the caller's own
        return judge(now)
    return judge(
        now,
        _advice(
            own, release.budget, group(release.schema.unit), now, errors.mean, release.purposes
        ),
    )


@dataclass(frozen=True)
class _Other:
    """What a change would make of a release."""

    mean: float
    level: Level
    clearly: bool
    """Whether it is worth a word where the level stays."""


def _advice(
    own: Blueprint, budget: Budget, unit: int, now: _Figures, mean: float, purposes: object
) -> str:
    """What more budget, fewer rows of each unit or fewer columns would change; "" where all is good.

    `mean` is what is expected of a typical table; `now` has its pessimistic end before a release.
    """
    if _level(replace(now, miss=None, mean=mean)) is Level.GOOD:
        return ""
    told = f"In a typical table about {percent(mean)} of the {now.things} are in another cell"
    purpose = "" if purposes else "; a purpose makes the tables that it needs more accurate"
    better = list(_alternatives(own, budget, unit, now, mean))
    if not better:
        return f"{told}. It needs more {now.things}: no ε up to {_EPSILONS[-1]} would change that much."
    return f"{told}; {'; '.join(better)}{purpose}."


def _alternatives(
    own: Blueprint, budget: Budget, unit: int, now: _Figures, mean: float
) -> Iterator[str]:
    """Each compared with the same forecast for the budget and the columns as they are."""
    level, as_it_is = _level(replace(now, miss=None)), _forecast(own, budget, unit, now)

    def then(other: Blueprint, more: Budget, size: int = unit) -> _Other:
        to = _forecast(other, more, size, now)
        changed = (to.mean or 1.0) / (as_it_is.mean or 1.0)
        end = changed * (now.mean or 1.0)
        bound = min(1.0, now.bound * to.bound / as_it_is.bound)
        would_be = _level(replace(now, miss=None, noise=to.noise, mean=end, bound=bound))
        return _Other(mean * changed, would_be, changed < _CLEARLY)

    def said(other: _Other, how: str) -> str:
        then = other.level.lower_case.removesuffix(" only")
        lifted = f" (then {then})" if _above(other.level, level) else ""
        return f"with {how}, about {percent(other.mean)}{lifted}"

    larger = [epsilon for epsilon in _EPSILONS if epsilon > budget.epsilon]
    more = [(epsilon, then(own, Budget(epsilon, budget.delta))) for epsilon in larger]
    lifting = [each for each in more if _above(each[1].level, level)]
    for epsilon, other in (lifting or [each for each in more if each[1].clearly])[:1]:
        lost = level is Level.POOR and not lifting
        still = f", and no ε up to {_EPSILONS[-1]} would make it useful" if lost else ""
        yield said(other, f"ε = {decimal(epsilon)}") + still
    if unit > 1 and own.design.weight == 1 and (other := then(own, budget, 1)).clearly:
        yield said(other, f"1 row of each instead of {unit}, if as many rows were left")
    fewer = _half(own.design)
    if fewer is not None and (other := then(replace(own, design=fewer), budget)).clearly:
        width, half = len(own.design.shape), len(fewer.shape)
        yield said(other, f"{half} columns instead of {width}")


def _above(one: Level, other: Level) -> bool:
    """Whether a level is better; rows that contradict a table are not compared."""
    order = (Level.POOR, Level.LIMITED, Level.GOOD)
    return order.index(one) > order.index(other)


def _forecast(own: Blueprint, budget: Budget, unit: int, now: _Figures) -> _Figures:
    """What is expected of a plan by zCDP, which costs nothing to make."""
    plan, rows = own.plan(planning.rho_for(budget) / unit**2), now.rows * own.design.weight
    errors = own.method.errors(own.design, plan, rows)
    if errors is None:
        return replace(now, mean=1.0, bound=1.0)
    margin = forecast_margin(plan, _BETA, rows, own.design.rows is None)
    return replace(
        now,
        mean=max(errors.mean, 1e-9),
        bound=min(1.0, max(errors.worst + margin, 1e-9)),
        noise=errors.noise,
    )


def _half(design: Design) -> Design | None:
    """All pairs of every second column by size; None for other workloads than all pairs."""
    width = len(design.shape)
    if width < 4 or design.families or {len(clique) for clique in design.cliques} != {2}:
        return None
    by_size = sorted(range(width), key=lambda i: design.shape[i])
    kept = sorted(by_size[::2])
    pairs = tuple(combinations(range(len(kept)), 2))

    def of(values: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(values[i] for i in kept) if values else ()

    return replace(
        design,
        shape=of(design.shape),
        cliques=pairs,
        weights=(1.0,) * len(pairs),
        names=of(design.names),
        kinds=of(design.kinds),
        apart=of(design.apart),
        ordered=of(design.ordered),
        project=None,
    )
