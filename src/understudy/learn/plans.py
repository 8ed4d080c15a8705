"""What a fit may draw: steps, rates, norms and noise, fixed by public facts before any row is read.

Facts are n, the width of the box, the loss, the radius, the relation and the budget. `frank-wolfe`
plans T picks, `sgd` T noisy gradients; both take the least noise whose whole plan stays within (ε, δ).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from understudy.errors import InputError, PrivacyError
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Charge, Plan, SampledGaussian, SampledSelection, Selection
from understudy.privacy.losses import Loss
from understudy.privacy.questions.descent import UNIT, l2_units
from understudy.privacy.relation import Relation

__all__ = ["GRADIENT", "PICK", "Facts", "descent_plan", "on_words", "picks_plan", "require_signal"]

PICK = "pick a vertex"
GRADIENT = "noisy gradient"

_TRIALS, _CLOSE = 16, 0.999


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

    The noise multiplier σ/C is the least, to a per mille, at which ε by privacy loss distributions
    stays within the budget.
    """
    l2 = l2_units(clip, facts.loss)
    sides = facts.relation.marginal_l1()

    def build(multiplier: float) -> Plan:
        event = SampledGaussian(multiplier * l2, l2, facts.coordinates, rate, sides)
        return Plan((Charge(GRADIENT, event, steps),))

    target = float(facts.budget.epsilon)

    def cost(multiplier: float) -> float:
        return accounting.epsilon(build(multiplier), facts.budget.delta).epsilon

    # What all rows would need; samples need less.
    high = sides * math.sqrt(steps / (2 * float(planning.rho_for(facts.budget)))) * (1 + 1e-9)
    if not math.isfinite(high):
        raise InputError(
            f"epsilon = {target:g} is too small for {steps} steps; take fewer or a larger epsilon"
        )
    low, guess = 0.0, high * max(rate, math.sqrt(rate) / 2)
    known: dict[float, float] = {}
    for _ in range(_TRIALS):
        spent = known[guess] = cost(guess)
        if spent <= facts.budget.epsilon:
            high = guess
            if spent >= _CLOSE * target:
                break
        else:
            low = guess
        guess = _between(low, high, guess, known, target)
    if cost(high) > facts.budget.epsilon:
        raise PrivacyError(f"the plan costs ε = {cost(high)}, above the budget {facts.budget}")
    return build(high)


def _between(
    low: float, high: float, last: float, known: dict[float, float], target: float
) -> float:
    """The next noise to try: ε falls about as a power of the noise, which two trials tell."""
    aim = math.log(target * (1 + _CLOSE) / 2)
    aimed = 0.0
    if low in known and high in known and known[high] > 0:
        x0, x1 = math.log(low), math.log(high)
        y0, y1 = math.log(known[low]), math.log(known[high])
        aimed = math.exp(x0 + (aim - y0) / (y1 - y0) * (x1 - x0)) if y1 < y0 else 0.0
    elif known[last] > 0:
        aimed = last * known[last] / math.exp(aim)
    return aimed if low < aimed < high else (low + high) / 2


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
