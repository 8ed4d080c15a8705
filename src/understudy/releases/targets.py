"""The least ε for a target error: bisection over forecasts, with one exact plan at the end or two.

Planning exactly costs seconds (privacy loss distributions), a plan by zCDP alone costs nothing. So ε
is sought by zCDP, planned exactly once, which tells how much more ρ exact accounting allows, sought
again with that, planned again and checked. Public facts alone, and nothing is spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_UP, Context, Decimal
from fractions import Fraction

from understudy.errors import InputError
from understudy.game.forecast import Errors
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget, Exact
from understudy.privacy.cost import Plan

__all__ = ["LEAST", "MOST", "OF", "require_one", "solve"]

LEAST, MOST = 0.001, 20.0
"""Below, everything is noise; above, ε is no promise any more."""

OF = {"worst": "worst cell", "mean": "mean total variation"}
"""What a target may speak of."""

_STEPS = 14
_NOISELESS = 10**4
_ONE_MORE = 1.02


def require_one(epsilon: Exact | None, target: float | None) -> None:
    """One of the two is given, not both."""
    if (epsilon is None) == (target is None):
        raise InputError(
            "give epsilon (--epsilon E), the privacy budget, or target_error (--target-error X), for "
            "which it is found; one of the two"
        )


def solve(
    build: Callable[[Fraction], Plan],
    foresee: Callable[[Plan], Errors],
    delta: Exact,
    target: float,
    of: str,
    group: int = 1,
) -> str:
    """The least ε, to three digits, for which the forecast of the exact plan is at most `target`."""
    if of not in OF:
        raise InputError(f"target_of = {of!r} must be {' or '.join(map(repr, OF))}")
    if not 0 < target < 1:
        raise InputError(
            f"target_error = {target} must be above 0 and below 1: it is a share of the rows, such as "
            f"0.01"
        )

    def error(plan: Plan) -> float:
        errors = foresee(plan)
        return errors.worst if of == "worst" else errors.mean

    def quick(epsilon: float, gain: Fraction) -> float:
        return error(build(planning.rho_for(Budget.of(epsilon, delta)) * gain / group**2))

    def least(gain: Fraction) -> float:
        low, high = math.log(LEAST), math.log(MOST)
        if quick(LEAST, gain) <= target:
            return LEAST
        for _ in range(_STEPS):
            middle = (low + high) / 2
            if quick(math.exp(middle), gain) <= target:
                high = middle
            else:
                low = middle
        return math.exp(high)

    reached = quick(MOST, Fraction(1))
    if reached > target:
        largest = planning.rho_for(Budget.of(MOST, delta)) / group**2
        floor, rows = error(build(largest * _NOISELESS)), foresee(build(largest)).rows
        raise InputError(
            f"target_error = {target} ({OF[of]}) cannot be reached: for {rows:,} rows the forecast is "
            f"{reached:.3g} at epsilon = {MOST:g}, and {floor:.3g} without any noise, by what the "
            f"model leaves out and by drawing rows. Allow more than that, or give coarser columns, a "
            f"smaller workload or more rows"
        )
    epsilon = _three(least(Fraction(1)))
    budget = Budget.of(epsilon, delta)
    plan = planning.calibrate(build, budget, group)
    gain = group**2 * accounting.total_rho(plan) / planning.rho_for(budget)
    if gain > 1:
        epsilon = _three(least(gain))
        plan = planning.calibrate(build, Budget.of(epsilon, delta), group)
    while error(plan) > target and float(epsilon) < MOST:
        epsilon = _three(float(epsilon) * _ONE_MORE)
        plan = planning.calibrate(build, Budget.of(epsilon, delta), group)
    return epsilon


def _three(value: float) -> str:
    """Three digits, rounded up."""
    return str(Context(prec=3, rounding=ROUND_UP).create_decimal(Decimal(f"{value:.6g}")))
