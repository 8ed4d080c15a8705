"""What a fit does and may draw, fixed by public facts before any row is read.

Facts are n, the width of the box, the loss, the radius, the relation and the budget. The rules came
from generated tables (dense, sparse and indicator features; `bench learn` shows what they do on a real
one), never from the rows of a fit:

* `frank-wolfe` picks T = 0.6·n·√(8ρ)/(c·L0·ln²K) of K vertices (classes), or 1.8·n·√(8ρ)/(c·L0·ln³K)
  (numbers), 1 to 1000, all rows at every pick, ρ what picks have. One pick then has noise of
  c·L0·√(T/2ρ): the more picks, the less each is worth, and where few rows or many features leave
  little to be seen, few picks see more of it; least squares, whose steps are short, most of all.
* A tenth of ρ says where scores begin: a noisy mean of the targets, or share of each class. Picks of
  the intercept would have to find it step by step.
* The first step moves a weight by 1 (classes) or ⅛ (numbers) at most, not by the whole radius, and by
  √(T/8) of that where T is below 8: steps are 2/(t + 2 + k) with k = 2r/(first step) − 2. A step of
  the radius, as in the textbook, overshoots so far that picks may undo each other to the end.
* `sgd` draws 400 noisy gradients on a tenth of the rows each, norm 2.
* radius of the L1 ball: so wide that it hardly binds.

Both take the least noise whose whole plan stays within (ε, δ).
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from understudy.errors import InputError
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget
from understudy.privacy.cost import (
    Charge,
    Gaussian,
    Laplace,
    Plan,
    SampledGaussian,
    SampledSelection,
    Selection,
)
from understudy.privacy.losses import Loss, Squared
from understudy.privacy.questions.descent import UNIT, l2_units
from understudy.privacy.relation import Relation

__all__ = [
    "GRADIENT",
    "PICK",
    "START",
    "Facts",
    "Picks",
    "Rule",
    "descent_plan",
    "on_words",
    "picks_plan",
    "radius_for",
    "require_signal",
    "rule_for",
]

PICK = "pick a vertex"
START = "level of the targets"
GRADIENT = "noisy gradient"

_SOLVERS = ("frank-wolfe", "sgd")
_MOST_STEPS = 100_000
_FEWEST_PICKS, _MOST_PICKS = 1, 1_000
_STEPS, _RATE, _CLIP = 400, 0.1, 2.0
_LONGEST_DELAY = 10**6  # far from where whole numbers of weights would not fit
_NOISES = ("gumbel", "laplace")
_START = 0.1
"""Of ρ, what the constant that frank-wolfe begins at gets."""
_PICKS = {"classes": (0.6, 2), "numbers": (1.8, 3)}
"""Factor and power of ln K in the number of picks."""
_FIRST_STEP = {"classes": 1.0, "numbers": 0.125}
_SURE = 8
"""Fewer picks than this are taken for uncertain ones."""
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
    clip: float
    delay: int = 0
    kept: range = range(0)
    noise: str = "gumbel"
    start: float = 0.0


@dataclass(frozen=True, slots=True)
class Picks:
    """Settings of frank-wolfe alone, as they were given.

    delay    k ≥ 0 of its steps 2/(t + 2 + k); None makes the first one short
    iterate  what is returned: "tail", the average of the last half of the iterates, the "last", or
             "one" of them all, drawn uniformly beforehand
    noise    of a pick: "gumbel", or "laplace", whose scale is about twice as large at the same cost
    start    the share of ρ for the constant that it begins at, 0 for the textbook's w = 0; None is 0.1
             where there is an intercept
    intercept  whether there is one
    """

    delay: Any = None
    iterate: Any = "tail"
    noise: Any = "gumbel"
    start: Any = None
    intercept: bool = True

    def settle(self, rule: Rule, facts: Facts) -> Rule:
        """The rule with these settings."""
        steps, kept = rule.steps, _KEPT.get(self.iterate)
        if kept is None:
            raise InputError(f"iterate = {self.iterate!r} must be one of {', '.join(_KEPT)}")
        if self.noise not in _NOISES:
            raise InputError(f"noise = {self.noise!r} must be one of {', '.join(_NOISES)}")
        if self.noise == "laplace" and rule.rate < 1:
            raise InputError(
                f"noise = 'laplace' sees all rows; rate = {rule.rate:g} needs noise = 'gumbel'"
            )
        return replace(
            rule,
            delay=self._delay(facts, steps),
            kept=kept(steps),
            noise=self.noise,
            start=self.share(),
        )

    def share(self) -> float:
        """Of ρ, for the constant.

        Raises:
            InputError: It is none, or there is no intercept for it.
        """
        if self.start is None:
            return _START if self.intercept else 0.0
        share = _number("start", self.start)
        if not 0 <= share < 1:
            raise InputError(
                f"start = {self.start!r} must be at least 0 and below 1; it is the share of the "
                f"budget for the constant that frank-wolfe begins at"
            )
        if share and not self.intercept:
            raise InputError(
                f"start = {self.start!r} is that of an intercept; with fit_intercept=False leave it "
                f"out"
            )
        return share

    def refuse(self, rule: Rule) -> Rule:
        """The rule as it is; sgd knows none of these."""
        usual = asdict(Picks(intercept=self.intercept))
        for name, value in asdict(self).items():
            if value != usual[name]:
                raise InputError(f"{name} = {value!r} is a setting of frank-wolfe; sgd has none")
        return rule

    def _delay(self, facts: Facts, steps: int) -> int:
        if self.delay is None:
            first = _FIRST_STEP[_kind(facts)]
            first *= min(1.0, math.sqrt(steps / _SURE))
            return max(0, round(min(2 * facts.radius / first, _LONGEST_DELAY)) - 2)
        whole = isinstance(self.delay, int | np.integer) and not isinstance(self.delay, bool)
        if not whole or not 0 <= self.delay <= _LONGEST_DELAY:
            raise InputError(
                f"delay = {self.delay!r} must be a whole number from 0 to {_LONGEST_DELAY:,}"
            )
        return int(self.delay)


def _one(steps: int) -> range:
    """One iterate, drawn before anything is read: which one says nothing about the rows."""
    at = secrets.randbelow(steps)
    return range(at, at + 1)


_KEPT: dict[str, Callable[[int], range]] = {
    "tail": lambda steps: range(steps // 2, steps),
    "last": lambda steps: range(steps - 1, steps),
    "one": _one,
}


def radius_for(solver: str, given: Any, *, classes: bool) -> float:
    """The radius that was given, or the usual one.

    Raises:
        InputError: No such solver, or a radius that is not above 0.
    """
    if solver not in _SOLVERS:
        raise InputError(f"solver = {solver!r} must be one of {', '.join(_SOLVERS)}")
    if given is None:
        return _RADIUS[solver, "classes" if classes else "numbers"]
    return _above_zero("radius", given)


def rule_for(
    facts: Facts,
    solver: str,
    steps: Any = None,
    rate: Any = None,
    clip: Any = None,
    picks: Picks | None = None,
) -> Rule:
    """The public settings of a fit: those given, the others by rule.

    Raises:
        InputError: A setting that cannot be.
    """
    picks = Picks() if picks is None else picks
    if steps is None:
        steps = _picks(facts, 1 - picks.share()) if solver == "frank-wolfe" else _STEPS
    elif isinstance(steps, bool) or not isinstance(steps, int | np.integer):
        raise InputError(f"steps = {steps!r} must be a whole number")
    if not 1 <= steps <= _MOST_STEPS:
        raise InputError(f"steps = {steps} must be between 1 and {_MOST_STEPS}")
    usual = 1.0 if solver == "frank-wolfe" else _RATE
    share = usual if rate is None else _number("rate", rate)
    if not 0 < share <= 1:
        raise InputError(f"rate = {rate!r} must be above 0 and at most 1")
    if clip is not None and solver == "frank-wolfe":
        raise InputError(
            f"clip = {clip!r} is a setting of sgd; frank-wolfe needs none, for no row moves a score "
            f"by more than the loss allows"
        )
    norm = _CLIP if clip is None else _above_zero("clip", clip)
    rule = Rule(int(steps), on_words(share), norm)
    return picks.settle(rule, facts) if solver == "frank-wolfe" else picks.refuse(rule)


def _picks(facts: Facts, share: float) -> int:
    """The number of picks, which have this share of ρ."""
    factor, power = _PICKS[_kind(facts)]
    spread = facts.relation.marginal_l1() * facts.loss.bound
    spread *= math.log(2 * facts.coordinates) ** power
    signal = facts.rows * math.sqrt(8 * share * float(planning.rho_for(facts.budget)))
    return min(max(round(factor * signal / spread), _FEWEST_PICKS), _MOST_PICKS)


def _kind(facts: Facts) -> str:
    return "numbers" if isinstance(facts.loss, Squared) else "classes"


def _above_zero(name: str, value: Any) -> float:
    number = _number(name, value)
    if not number > 0:
        raise InputError(f"{name} = {value!r} must be above 0")
    return number


def _number(name: str, value: Any) -> float:
    number = isinstance(value, int | float | np.integer | np.floating)
    if not number or isinstance(value, bool) or not math.isfinite(value):
        raise InputError(f"{name} = {value!r} must be a finite number")
    return float(value)


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
            return Selection.within(rho, sensitivity=sensitivity)
        return _sampled_pick(rho, sensitivity, rate)

    def build(rho: Fraction) -> Plan:
        first = Fraction(start) * rho
        picks = Charge(PICK, event((rho - first) / steps), steps)
        if not start:
            return Plan((picks,))
        step, changes = facts.loss.moves(facts.relation)
        level = Gaussian.within(first, step=step, changes=changes)
        return Plan((Charge(START, level), picks))

    return planning.calibrate(build, facts.budget)


def _sampled_pick(rho: Fraction, sensitivity: int, rate: float) -> Selection | SampledSelection:
    """The least noise that costs at most ρ: ε = ln(1 + q(e^ε0 − 1)), or the bounded range of all."""
    amplified = float(planning.laplace_epsilon(rho))
    whole = math.log1p(math.expm1(amplified) / rate) * (1 - 1e-12)
    scale = min(2 * sensitivity / whole, Selection.within(rho, sensitivity=sensitivity).scale)
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


def require_signal(facts: Facts, plan: Plan) -> None:
    """Refuse a plan that would release noise alone.

    A draw sees q·n rows, each of which moves it by at most one (L0, or the norm C): noise as large as
    all of them together hides everything.

    Raises:
        InputError: The noise of a draw is not below q·n rows.
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
