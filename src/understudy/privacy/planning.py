"""Plans that use a budget well: noise scales from ρ, and ρ from (ε, δ).

Nothing here is trusted. A plan that came out too dear is refused when it is reserved, because the
ledger asks `accounting` again; one that came out too cheap wastes budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from understudy.errors import InputError
from understudy.privacy import accounting
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Event, Laplace, Plan, SampledGaussian, SampledGroups

__all__ = [
    "calibrate",
    "calibrated",
    "laplace",
    "laplace_epsilon",
    "nominal",
    "rho_for",
    "sampled_multiplier",
]


def nominal(event: Event) -> Fraction:
    """ρ, or of a sampled Gaussian sum about the ρ that many of them are worth; no guarantee.

    By the central limit a draw at rate q with multiplier m is worth min(ρ, q²(e^{(sides/m)²} − 1)/2)
    (Bu et al. 2020). Plans are laid out by this and found by `calibrate`, which counts exactly.
    """
    if not isinstance(event, SampledGaussian | SampledGroups):
        return accounting.rho(event)
    moved = 1 / event.multiplier if isinstance(event, SampledGroups) else event.l2 / event.sigma
    whole = Fraction(event.sides * moved) ** 2 / 2
    each = event.rate**2 * math.expm1(min(2 * float(whole), 700.0)) / 2
    return min(whole, Fraction(each))


def sampled_multiplier(rho: float, rate: float, sides: int) -> float:
    """The reverse of `nominal`: about the noise at which one sampled draw is worth `rho`."""
    inverse = math.log1p(2 * rho / rate**2) / sides**2
    # Where samples do not help, as for all rows.
    return min(1 / math.sqrt(inverse), sides / math.sqrt(2 * rho))


def laplace_epsilon(rho: Fraction) -> Fraction:
    """A pure ε whose ρ = ε·tanh(ε/2) stays within `rho`, rounded to the private side."""
    low, high = 0.0, 1.0
    target = float(rho)
    while high * math.tanh(high / 2) < target:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if Fraction(middle) * Fraction(math.tanh(middle / 2) * (1 + 1e-15)) <= rho:
            low = middle
        else:
            high = middle
    return Fraction(low)


def laplace(rho: Fraction, *, l1: int) -> Laplace:
    """The least Laplace noise that costs at most ρ."""
    return Laplace.within(laplace_epsilon(rho), l1=l1)


def rho_for(budget: Budget) -> Fraction:
    """The largest ρ (to float precision) whose tight conversion stays within the budget."""
    if budget.delta <= 0:
        raise InputError(
            "delta = 0 leaves no room for Gaussian noise; give a small one such as 1e-9"
        )
    target = float(budget.epsilon)
    if Fraction(target) > budget.epsilon:
        target = math.nextafter(target, 0)
    low, high = 0.0, 1.0
    while accounting.epsilon_from_rho(high, budget.delta) <= target:
        low, high = high, high * 2
    while low == 0.0 and accounting.epsilon_from_rho(high, budget.delta) > target:
        high /= 2
        if high < 1e-300:
            return Fraction(0)
        if accounting.epsilon_from_rho(high, budget.delta) <= target:
            low, high = high, high * 2
    for _ in range(80):
        middle = (low + high) / 2
        if accounting.epsilon_from_rho(middle, budget.delta) <= target:
            low = middle
        else:
            high = middle
    return Fraction(low)


def calibrate(build: Callable[[Fraction], Plan], budget: Budget, group: int = 1) -> Plan:
    """The plan that uses the budget best; see `calibrated`."""
    return calibrated(build, budget, group)[1]


def calibrated(
    build: Callable[[Fraction], Plan], budget: Budget, group: int = 1
) -> tuple[Fraction, Plan]:
    """(ρ, build(ρ)) for the largest ρ, a float, whose plan stays within (ε, δ).

    `build` must return plans whose cost for one row grows with ρ and is at most ρ in zCDP, or
    nominally ρ where rows are sampled (see `nominal`). ε grows about as √ρ, so a few trials come
    within half a per mille of the budget; only what `accounting.epsilon` allows is returned.
    """
    target = float(budget.epsilon)
    low, high = 0.0, math.inf
    found: Plan | None = None
    # A hair less than zCDP allows, which rounding of the conversion cannot take back.
    guess = float(rho_for(budget) / group**2) * (1 - 1e-9)
    for _ in range(24):
        if guess <= 0:
            break
        try:
            plan = build(Fraction(guess))
            spent = accounting.epsilon(plan, budget.delta, group).epsilon
        except OverflowError:  # the trials leave floating point
            raise InputError(f"epsilon = {target:g} is too small to plan with") from None
        if spent <= budget.epsilon:
            low, found = guess, plan
            if spent >= 0.9995 * target:
                break
        else:
            high = guess
        if high < low * 1.001:
            break
        step = (0.9998 * target / spent) ** 2 if math.isfinite(spent) and spent > 0 else 0.25
        guess *= min(16.0, max(1 / 16.0, step))
        if not low < guess < high:  # the power law misled
            guess = math.sqrt(low * high) if low > 0 else high / 16
    if found is None:
        raise InputError(f"epsilon = {target:g} is too small to plan with")
    return Fraction(low), found
