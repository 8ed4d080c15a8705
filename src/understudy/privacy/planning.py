"""Plans that use a budget well: noise scales from ρ, and ρ from (ε, δ).

Nothing here is trusted. A plan that came out too dear is refused when it is reserved, because the
ledger asks `accounting` again; one that came out too cheap wastes budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from understudy.errors import InputError, PrivacyError
from understudy.privacy import accounting
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Event, Plan, SampledGaussian, SampledGroups
from understudy.privacy.profile import gaussian_delta

__all__ = ["calibrate", "laplace_epsilon", "nominal", "rho_for"]


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


def laplace_epsilon(allowance: Fraction) -> Fraction:
    """A pure ε whose ρ = ε·tanh(ε/2) stays within `allowance`, rounded to the private side."""
    low, high = 0.0, 1.0
    target = float(allowance)
    while high * math.tanh(high / 2) < target:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if Fraction(middle) * Fraction(math.tanh(middle / 2) * (1 + 1e-15)) <= allowance:
            low = middle
        else:
            high = middle
    return Fraction(low)


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


def _searched(
    build: Callable[[Fraction], Plan],
    budget: Budget,
    start: Fraction,
    cost: Callable[[Plan], float],
) -> Plan:
    """`calibrate` where ρ is nominal only: ε grows about as √ρ, which a dozen trials make exact."""
    target = float(budget.epsilon)
    low, high = 0.0, math.inf
    found: Plan | None = None
    guess = float(start)
    for _ in range(24):
        plan = build(Fraction(guess))
        spent = cost(plan)
        if spent <= budget.epsilon:
            low, found = guess, plan
            if spent >= 0.998 * target:
                break
        else:
            high = guess
        if high < low * 1.002:
            break
        step = (0.999 * target / spent) ** 2 if math.isfinite(spent) and spent > 0 else 0.25
        guess *= min(16.0, max(1 / 16.0, step))
        if not low < guess < high:  # the power law misled
            guess = math.sqrt(low * high) if low > 0 else high / 16
    if found is None:
        raise InputError(f"epsilon = {target:g} is too small to plan with")
    return found


def _gaussian_rho(budget: Budget) -> float:
    """ρ = μ²/2 for the μ of a Gaussian mechanism that is (ε, δ)."""
    target, delta = float(budget.epsilon), float(budget.delta)
    low, high = 0.0, 1.0
    while gaussian_delta(high, target) < delta and high < 1e3:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian_delta(middle, target) <= delta else (low, middle)
    return low * low / 2


def calibrate(build: Callable[[Fraction], Plan], budget: Budget, group: int = 1) -> Plan:
    """The plan that uses the budget best: `build(ρ)` for the largest ρ that stays within (ε, δ).

    `build` must return plans whose cost for one row grows with ρ and is at most ρ in zCDP, or
    nominally ρ where rows are sampled (see `nominal`). The result always satisfies
    `epsilon(plan, δ, group).epsilon ≤ ε`.
    """
    low = rho_for(budget) / group**2
    if low <= 0:
        raise InputError(f"epsilon = {float(budget.epsilon):g} is too small to plan with")
    plan = build(low)
    if any(isinstance(charge.event, SampledGroups) for charge in plan):
        return _searched(
            build, budget, low, lambda p: accounting.epsilon(p, budget.delta, group).epsilon
        )
    spent = accounting.epsilon(plan, budget.delta, group).epsilon
    if spent > budget.epsilon:
        # Rounding of the conversion itself; a hair less ρ puts the plan on the private side.
        low *= 1 - Fraction(1, 10**9)
        plan = build(low)
        spent = accounting.epsilon(plan, budget.delta, group).epsilon
    if spent > budget.epsilon:
        raise PrivacyError(f"the plan costs ε = {spent}, above the budget {budget}")
    # Exact composition may allow more than zCDP. A plan of Gaussians alone would allow what Gaussian DP does; from
    # that guess a few steps leave at most a per mille of ρ unused. Only what is checked is returned.
    if spent > float(budget.epsilon) * 0.999:
        return plan
    guess = max(low, Fraction(_gaussian_rho(budget)) / group**2)
    high: Fraction | None = None
    for step in range(6):
        candidate = build(guess)
        if accounting.epsilon(candidate, budget.delta, group).epsilon <= budget.epsilon:
            low, plan = guess, candidate
            if high is None and step < 3:
                guess *= 1 + Fraction(1, 500)
                continue
        else:
            high = guess
        if high is None or high < low * (1 + Fraction(3, 1000)):
            break
        guess = max((low + high) / 2, high * (1 - Fraction(1, 200)))
    return plan
