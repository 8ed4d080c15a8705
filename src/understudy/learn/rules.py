"""Public rules: how many steps, on which share of the rows, with which norm, by public facts alone.

They came from generated tables (dense, sparse and indicator features; `bench learn` shows what they do
on a real one), never from the rows of a fit.

* `frank-wolfe`: the bound (2Δ/ε0)·ln K + 2·L1·diam²/(T+2) with ε0 = √(8ρ/T) is least at
  T = (8·r·L1·n·√(8ρ)/(c·L0·ln K))^{2/3}. Its curvature is that of the worst rows, far above what rows
  show: a tenth of those steps is taken. All rows at every step.
* `sgd`: 400 steps on a tenth of the rows each, norm 2.
* radius of the L1 ball: it bounds the bias of Frank-Wolfe's steps, which shorter ones keep small, and
  hardly binds the noisy gradients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.errors import InputError
from understudy.learn.plans import Facts, on_words
from understudy.privacy import planning

__all__ = ["Rule", "positive", "radius_for", "rule_for"]

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
    return positive("radius", given)


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
    norm = _CLIP if clip is None else _number("clip", clip)
    if not norm > 0:
        raise InputError(f"clip = {clip!r} must be above 0")
    return Rule(int(steps), on_words(share), norm)


def _picks(facts: Facts) -> int:
    spread = facts.relation.marginal_l1() * facts.loss.bound * math.log(2 * facts.coordinates)
    signal = facts.rows * math.sqrt(8 * float(planning.rho_for(facts.budget)))
    best = (8 * facts.radius * facts.loss.smooth * signal / spread) ** (2 / 3)
    return min(max(round(_SHARE_OF_PICKS * best), _FEWEST_PICKS), _MOST_PICKS)


def positive(name: str, value: Any) -> float:
    """A finite number above 0, or an error that says so."""
    number = _number(name, value)
    if not number > 0:
        raise InputError(f"{name} = {value!r} must be above 0")
    return number


def _number(name: str, value: Any) -> float:
    number = isinstance(value, int | float | np.integer | np.floating)
    if not number or isinstance(value, bool) or not math.isfinite(value):
        raise InputError(f"{name} = {value!r} must be a finite number")
    return float(value)
