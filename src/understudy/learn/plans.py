"""What a fit may draw: steps, rates, norms and noise, fixed by public facts before any row is read.

Facts are n, the width of the box, the loss, the radius, the relation and the budget. `frank-wolfe`
plans T picks, `sgd` T noisy gradients; both take the least noise whose whole plan stays within (ε, δ).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from understudy.errors import InputError
from understudy.privacy import accounting
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Charge, Plan, SampledGaussian, SampledSelection, Selection
from understudy.privacy.descent import UNIT, l2_units
from understudy.privacy.losses import Loss
from understudy.privacy.relation import Relation

__all__ = ["GRADIENT", "PICK", "Facts", "descent_plan", "on_words", "picks_plan"]

PICK = "pick a vertex"
GRADIENT = "noisy gradient"

_BISECTIONS = 12


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

    return accounting.calibrate(build, facts.budget)


def _sampled_pick(rho: Fraction, sensitivity: int, rate: float) -> Selection | SampledSelection:
    """The least noise that costs at most ρ: ε = ln(1 + q(e^ε0 − 1)), or the bounded range of all."""
    amplified = float(accounting.laplace_epsilon(rho))
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

    def fits(multiplier: float) -> bool:
        spent = accounting.epsilon(build(multiplier), facts.budget.delta)
        return spent.epsilon <= facts.budget.epsilon

    # Without sampling this is the right one but for the gap between zCDP and PLD; samples need less.
    high = sides * math.sqrt(steps / (2 * float(accounting.rho_for(facts.budget)))) * (1 + 1e-9)
    if not (math.isfinite(high) and high > 0 and fits(high)):
        raise InputError(
            f"epsilon = {float(facts.budget.epsilon):g} is too small for {steps} steps; take fewer "
            f"steps or a larger epsilon"
        )
    low = 0.0
    guess = high * max(rate, 1e-3) ** 0.5
    for _ in range(_BISECTIONS):
        if fits(guess):
            high = guess
        else:
            low = guess
        if high < low * 1.001:
            break
        guess = math.sqrt(low * high) if low else high / 2
    return build(high)
