"""What a fit does and may draw, fixed by public facts before any row is read.

Facts are n, the width of the box, the loss, the radius, the relation and the budget. The rules came
from generated tables (dense, sparse and indicator features; `bench learn` shows what they do on a real
one), never from the rows of a fit:

* `frank-wolfe` picks T vertices: the bound (2Δ/ε0)·ln K + 2·L1·diam²/(T+2) with ε0 = √(8ρ/T) is least
  at T = (8·r·L1·n·√(8ρ)/(c·L0·ln K))^{2/3}. Its curvature is that of the worst rows, far above what
  rows show: a tenth of those steps is taken. All rows at every step.
* `sgd` draws 400 noisy gradients on a tenth of the rows each, norm 2.
* radius of the L1 ball: it bounds the bias of Frank-Wolfe's steps, which shorter ones keep small, and
  hardly binds the noisy gradients.

Both take the least noise whose whole plan stays within (ε, δ).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from understudy.errors import InputError
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Charge, Plan, SampledGaussian, SampledSelection, Selection
from understudy.privacy.losses import Loss
from understudy.privacy.questions.descent import UNIT, l2_units
from understudy.privacy.relation import Relation

__all__ = [
    "GRADIENT",
    "PICK",
    "Facts",
    "Rule",
    "descent_plan",
    "on_words",
    "picks_plan",
    "radius_for",
    "require_signal",
    "rule_for",
]

PICK = "pick a vertex"
GRADIENT = "noisy gradient"

_SOLVERS = ("frank-wolfe", "sgd")
_MOST_STEPS = 100_000
_FEWEST_PICKS, _MOST_PICKS, _SHARE_OF_PICKS = 10, 2_000, 0.1
_STEPS, _RATE, _CLIP = 400, 0.1, 2.0
_RADIUS = {
    ("frank-wolfe", "classes"): 30.0,
    ("frank-wolfe", "numbers"): 2.0,
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
    """What a solver does."""

    steps: int
    rate: float
    clip: float


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
    facts: Facts, solver: str, steps: Any = None, rate: Any = None, clip: Any = None
) -> Rule:
    """The public settings of a fit: those given, the others by rule.

    Raises:
        InputError: A setting that cannot be.
    """
    if steps is None:
        steps = _picks(facts) if solver == "frank-wolfe" else _STEPS
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
    return Rule(int(steps), on_words(share), norm)


def _picks(facts: Facts) -> int:
    spread = facts.relation.marginal_l1() * facts.loss.bound * math.log(2 * facts.coordinates)
    signal = facts.rows * math.sqrt(8 * float(planning.rho_for(facts.budget)))
    best = (8 * facts.radius * facts.loss.smooth * signal / spread) ** (2 / 3)
    return min(max(round(_SHARE_OF_PICKS * best), _FEWEST_PICKS), _MOST_PICKS)


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


def picks_plan(facts: Facts, steps: int, rate: float = 1.0) -> Plan:
    """T picks over all rows, or over Poisson samples of `rate`."""
    sensitivity = UNIT * facts.relation.marginal_l1()

    def build(rho: Fraction) -> Plan:
        event = (
            Selection.within(rho / steps, sensitivity=sensitivity)
            if rate == 1.0
            else _sampled_pick(rho / steps, sensitivity, rate)
        )
        return Plan((Charge(PICK, event, steps),))

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
    event = plan.charges[0].event
    if isinstance(event, SampledGaussian):
        noise, rate = event.sigma / event.l2, event.rate
    else:
        assert isinstance(event, Selection | SampledSelection)
        rate = event.rate if isinstance(event, SampledSelection) else 1.0
        noise = event.scale / UNIT
    if noise >= rate * facts.rows:
        raise InputError(
            f"n = {facts.rows} rows are too few at epsilon = {float(facts.budget.epsilon):g}: the "
            f"noise of a draw is as large as {noise:.3g} rows, and it sees {rate * facts.rows:.3g}; "
            f"take fewer steps, a larger epsilon, or more rows"
        )
