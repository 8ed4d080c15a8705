"""Public rules: how many steps, on which share of the rows, with which norm, by public facts alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from understudy.errors import InputError
from understudy.learn.plans import Facts, on_words

__all__ = ["Rule", "rule_for"]

_SOLVERS = ("frank-wolfe", "sgd")
_MOST_STEPS = 100_000


@dataclass(frozen=True, slots=True)
class Rule:
    """What a solver does."""

    steps: int
    rate: float
    clip: float


def rule_for(
    facts: Facts, solver: str, steps: Any = None, rate: Any = None, clip: Any = None
) -> Rule:
    """The public settings of a fit: those given, the others by rule.

    Raises:
        InputError: A setting that cannot be.
    """
    if solver not in _SOLVERS:
        raise InputError(f"solver = {solver!r} must be one of {', '.join(_SOLVERS)}")
    if steps is None:
        steps = 100
    elif isinstance(steps, bool) or not isinstance(steps, int | np.integer):
        raise InputError(f"steps = {steps!r} must be a whole number")
    if not 1 <= steps <= _MOST_STEPS:
        raise InputError(f"steps = {steps} must be between 1 and {_MOST_STEPS}")
    share = 1.0 if rate is None else _number("rate", rate)
    if not 0 < share <= 1:
        raise InputError(f"rate = {rate!r} must be above 0 and at most 1")
    if clip is not None and solver == "frank-wolfe":
        raise InputError(
            f"clip = {clip!r} is a setting of sgd; frank-wolfe needs none, for no row moves a score "
            f"by more than the loss allows"
        )
    norm = facts.loss.bound if clip is None else _number("clip", clip)
    if not norm > 0:
        raise InputError(f"clip = {clip!r} must be above 0")
    return Rule(int(steps), on_words(share), norm)


def _number(name: str, value: Any) -> float:
    number = isinstance(value, int | float | np.integer | np.floating)
    if not number or isinstance(value, bool) or not math.isfinite(value):
        raise InputError(f"{name} = {value!r} must be a finite number")
    return float(value)
