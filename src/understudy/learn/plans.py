"""What a fit does and may draw, fixed by public facts before any row is read.

Facts are n, the width of the box, the loss, the radius, the relation and the budget. The rules came
from generated tables, never from the rows of a fit (docs/learn.md): how many vertices `frank-wolfe`
picks, how short its first steps are and what the constant it begins at gets; how many noisy gradients
`sgd` draws; a radius so wide that it hardly binds. Both take the least noise whose whole plan stays
within (ε, δ).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from understudy.errors import InputError
from understudy.game.methods.base import POSITIVE, SHARE, Limit, one_of, typed, whole
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget
from understudy.privacy.cost import (
    Charge,
    Laplace,
    Plan,
    SampledGaussian,
    SampledSelection,
    Selection,
)
from understudy.privacy.losses import Loss, Squared
from understudy.privacy.questions.descent import UNIT, l2_units
from understudy.privacy.relation import Relation

PICK = "pick a vertex"
START = "level of the targets"
GRADIENT = "noisy gradient"

_FEWEST_PICKS, _MOST_PICKS = 1, 1_000
_STEPS, _RATE, _CLIP = 400, 0.1, 2.0
_LONGEST_DELAY = 10**6  # far from where whole numbers of weights would not fit
_OF_PICKS = {"delay": None, "iterate": "tail", "noise": "gumbel", "start": None}
"""Settings of frank-wolfe that sgd has not, as they are where nobody gives them."""
_START = 0.1  # Of ρ, what the constant that frank-wolfe begins at gets
_PICKS = {"classes": (0.6, 2), "numbers": (1.8, 3)}
"""Factor and power of ln K in the number of picks."""
_FIRST_STEP = {"classes": 1.0, "numbers": 0.125}
_SURE = 8  # Fewer picks than this are taken for uncertain ones
_RADIUS = {
    ("frank-wolfe", "classes"): 80.0,
    ("frank-wolfe", "numbers"): 8.0,
    ("sgd", "classes"): 200.0,
    ("sgd", "numbers"): 10.0,
}


@dataclass(frozen=True, slots=True)
class Facts:
    """Public facts of a problem."""

    rows: int
    width: int
    loss: Loss
    radius: float
    relation: Relation
    budget: Budget

    @property
    def coordinates(self) -> int:
        """Weights to be learnt."""
        return self.loss.outputs * self.width


def on_words(rate: float) -> float:
    """The nearest rate that can be drawn exactly: a multiple of 2^−32, at least one."""
    return min(1.0, max(1.0, float(round(rate * 2**32))) / 2**32)


@dataclass(frozen=True, slots=True)
class Rule:
    """What a solver does; `clip` is of sgd.

    Of frank-wolfe are `delay`, the k of its steps, `kept`, the iterates that are averaged, the noise
    of its picks, and `start`, the share of ρ for the constant it begins at.
    """

    steps: int
    rate: float
    clip: float = _CLIP
    delay: int = 0
    kept: range = range(0)
    noise: str = "gumbel"
    start: float = 0.0


def _one(steps: int) -> range:
    """One iterate, drawn before anything is read: which one says nothing about the rows."""
    at = secrets.randbelow(steps)
    return range(at, at + 1)


_KEPT: dict[str, Callable[[int], range]] = {
    "tail": lambda steps: range(steps // 2, steps),
    "last": lambda steps: range(steps - 1, steps),
    "one": _one,
}


_LIMITS: dict[str, tuple[type, Limit]] = {
    "solver": (str, one_of("frank-wolfe", "sgd")),
    "radius": (float, POSITIVE),
    "steps": (int, whole(1, 100_000)),
    "rate": (float, SHARE),
    "clip": (float, POSITIVE),
    "delay": (int, whole(0, _LONGEST_DELAY)),
    "iterate": (str, one_of(*_KEPT)),
    "noise": (str, one_of("gumbel", "laplace")),
    "start": (
        float,
        Limit(
            lambda share: 0 <= share < 1,
            "must be at least 0 and below 1; it is the share of the budget for the constant that "
            "frank-wolfe begins at",
        ),
    ),
}
"""What each setting may be."""


def _held(name: str, value: Any) -> Any:
    """A setting that keeps its limits; InputError for any other."""
    kind, limit = _LIMITS[name]
    found = typed(f"{name} = {value!r}", value, (kind,))
    if not limit.allows(found):
        raise InputError(f"{name} = {value!r} {limit.words}")
    return found


def radius_for(solver: str, given: Any, *, classes: bool) -> float:
    """The radius that was given, or the usual one.

    Raises:
        InputError: No such solver, or a radius that is not above 0.
    """
    solver = _held("solver", solver)
    usual = _RADIUS[solver, "classes" if classes else "numbers"]
    return usual if given is None else _held("radius", given)


def rule_for(
    facts: Facts,
    solver: str,
    steps: Any = None,
    rate: Any = None,
    clip: Any = None,
    *,
    delay: Any = None,
    iterate: Any = "tail",
    noise: Any = "gumbel",
    start: Any = None,
    intercept: bool = True,
) -> Rule:
    """The public settings of a fit: those given, the others by rule.

    Settings of frank-wolfe alone:

    delay    k ≥ 0 of its steps 2/(t + 2 + k); None makes the first one short
    iterate  what is returned: "tail", the average of the last half of the iterates, the "last", or
             "one" of them all, drawn uniformly beforehand
    noise    of a pick: "gumbel", or "laplace", whose scale is about twice as large at the same cost
    start    the share of ρ for the constant that it begins at, 0 for the textbook's w = 0; None is 0.1
             where there is an `intercept`

    Raises:
        InputError: A setting that cannot be.
    """
    if solver == "sgd":
        picks = {"delay": delay, "iterate": iterate, "noise": noise, "start": start}
        for name, value in picks.items():
            if value != _OF_PICKS[name]:
                raise InputError(f"{name} = {value!r} is a setting of frank-wolfe; sgd has none")
        norm = _CLIP if clip is None else _held("clip", clip)
        return Rule(_held("steps", _STEPS if steps is None else steps), _rate(rate, _RATE), norm)
    if clip is not None:
        raise InputError(
            f"clip = {clip!r} is a setting of sgd; frank-wolfe needs none, for no row moves a score "
            f"by more than the loss allows"
        )
    share, seen = _share(start, intercept), _rate(rate, 1.0)
    count = _held("steps", _picks(facts, 1 - share) if steps is None else steps)
    if _held("noise", noise) == "laplace" and seen < 1:
        raise InputError(f"noise = 'laplace' sees all rows; rate = {seen:g} needs noise = 'gumbel'")
    return Rule(
        count,
        seen,
        delay=_delay(delay, facts, count),
        kept=_KEPT[_held("iterate", iterate)](count),
        noise=noise,
        start=share,
    )


def _rate(given: Any, usual: float) -> float:
    return on_words(usual if given is None else _held("rate", given))


def _share(given: Any, intercept: bool) -> float:
    """Of ρ, for the constant."""
    if given is None:
        return _START if intercept else 0.0
    share = _held("start", given)
    if share and not intercept:
        raise InputError(
            f"start = {given!r} is that of an intercept; with fit_intercept=False leave it out"
        )
    return share


def _delay(given: Any, facts: Facts, steps: int) -> int:
    if given is None:
        first = _FIRST_STEP[_kind(facts)] * min(1.0, math.sqrt(steps / _SURE))
        return max(0, round(min(2 * facts.radius / first, _LONGEST_DELAY)) - 2)
    return _held("delay", given)


def _picks(facts: Facts, share: float) -> int:
    """The number of picks, which have this share of ρ."""
    factor, power = _PICKS[_kind(facts)]
    spread = facts.relation.marginal_l1() * facts.loss.bound
    spread *= math.log(2 * facts.coordinates) ** power
    signal = facts.rows * math.sqrt(8 * share * float(planning.rho_for(facts.budget)))
    return min(max(round(factor * signal / spread), _FEWEST_PICKS), _MOST_PICKS)


def _kind(facts: Facts) -> str:
    return "numbers" if isinstance(facts.loss, Squared) else "classes"


def plan_for(facts: Facts, solver: str, rule: Rule) -> Plan:
    """What a fit may draw.

    Raises:
        InputError: It would release noise alone.
    """
    if solver == "frank-wolfe":
        plan = picks_plan(facts, rule.steps, rule.rate, rule.noise, rule.start)
    else:
        plan = descent_plan(facts, rule.steps, rule.rate, rule.clip)
    _require_signal(facts, plan)
    return plan


def picks_plan(
    facts: Facts, steps: int, rate: float = 1.0, noise: str = "gumbel", start: float = 0.0
) -> Plan:
    """T picks over all rows, or over Poisson samples of `rate`; before them, with a share `start` of
    ρ, the level of the targets.

    Laplace noise has pure ε0 = 2Δ/scale and no bounded range: ρ = ε0·tanh(ε0/2) instead of ε0²/8.
    """
    sensitivity = UNIT * facts.relation.marginal_l1()

    def event(rho: Fraction) -> Selection | SampledSelection | Laplace:
        if noise == "laplace":
            return planning.laplace(rho, l1=2 * sensitivity)
        if rate == 1.0:
            return planning.selection(rho, sensitivity=sensitivity)
        return _sampled_pick(rho, sensitivity, rate)

    def build(rho: Fraction) -> Plan:
        first = Fraction(start) * rho
        picks = Charge(PICK, event((rho - first) / steps), steps)
        if not start:
            return Plan((picks,))
        step, changes = facts.loss.moves(facts.relation)
        level = planning.gaussian(first, step=step, changes=changes)
        return Plan((Charge(START, level), picks))

    return planning.calibrate(build, facts.budget)


def _sampled_pick(rho: Fraction, sensitivity: int, rate: float) -> Selection | SampledSelection:
    """The least noise that costs at most ρ: ε = ln(1 + q(e^ε0 − 1)), or the bounded range of all."""
    amplified = float(planning.laplace_epsilon(rho))
    whole = math.log1p(math.expm1(amplified) / rate) * (1 - 1e-12)
    scale = min(2 * sensitivity / whole, planning.selection(rho, sensitivity=sensitivity).scale)
    event = SampledSelection(scale, sensitivity, rate)
    while accounting.rho(event) > rho:
        event = SampledSelection(event.scale * (1 + 1e-12), sensitivity, rate)
    return event


def descent_plan(facts: Facts, steps: int, rate: float, clip: float) -> Plan:
    """T noisy gradients over Poisson samples of `rate`, rows clipped to L2 norm `clip`.

    The noise multiplier σ/C is about the least at which ε by privacy loss distributions stays within
    the budget.
    """
    l2, sides = l2_units(clip, facts.loss), facts.relation.marginal_l1()

    def build(rho: Fraction) -> Plan:
        multiplier = planning.sampled_multiplier(float(rho) / steps, rate, sides)
        event = SampledGaussian(multiplier * l2, l2, facts.coordinates, rate, sides)
        return Plan((Charge(GRADIENT, event, steps),))

    return planning.calibrate(build, facts.budget)


def _require_signal(facts: Facts, plan: Plan) -> None:
    """Refuse a plan whose draws have noise of q·n rows or more.

    A draw sees q·n rows, each of which moves it by at most one (L0, or the norm C): noise as large as
    all of them together hides everything.
    """
    event = plan.charges[-1].event
    if isinstance(event, SampledGaussian):
        noise, rate = event.sigma / event.l2, event.rate
    else:
        assert isinstance(event, Selection | SampledSelection | Laplace)
        rate = event.rate if isinstance(event, SampledSelection) else 1.0
        noise = event.scale / UNIT
    if noise >= rate * facts.rows:
        raise InputError(
            f"n = {facts.rows} rows are too few at epsilon = {float(facts.budget.epsilon):g}: the "
            f"noise of a draw is as large as {noise:.3g} rows, and it sees {rate * facts.rows:.3g}; "
            f"take fewer steps, a larger epsilon, or more rows"
        )
