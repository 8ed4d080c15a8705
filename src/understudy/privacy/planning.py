"""Plans that use a budget well: noise scales from ρ, and ρ from (ε, δ).

Nothing here is trusted. A plan that came out too dear is refused when it is reserved, because the
ledger asks `accounting` again; one that came out too cheap wastes budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from statistics import NormalDist
from typing import NamedTuple, TypeVar

from understudy.errors import InputError
from understudy.privacy import accounting
from understudy.privacy.budget import Budget, Exact, exact, round_down
from understudy.privacy.cost import (
    Charge,
    Discovery,
    Event,
    Gaussian,
    Laplace,
    Plan,
    SampledGaussian,
    SampledGroups,
    Selection,
)
from understudy.privacy.relation import Relation

E = TypeVar("E", Gaussian, Selection, SampledGaussian)


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


def split(total: Fraction, shares: Mapping[str, Exact]) -> dict[str, Fraction]:
    """Divide `total` in proportion to `shares`. The parts add up to exactly `total`."""
    weights = {name: exact(share, f"share of {name}") for name, share in shares.items()}
    for name, weight in weights.items():
        if weight < 0:
            raise InputError(f"share of {name} = {weight} must not be negative")
    whole = sum(weights.values(), Fraction(0))
    if whole == 0:
        raise InputError("at least one share must be above 0")
    return {name: total * weight / whole for name, weight in weights.items()}


def laplace_epsilon(rho: Fraction) -> Fraction:
    """A pure ε whose ρ = ε·tanh(ε/2) stays within `rho`, rounded to the private side."""
    return _largest(lambda e: Fraction(e) * Fraction(math.tanh(e / 2) * (1 + 1e-15)) <= rho)


def laplace(rho: Fraction, *, l1: int = 1) -> Laplace:
    """The least Laplace noise whose ε costs at most ρ."""
    epsilon = laplace_epsilon(rho)
    scale = float(l1 / epsilon)
    while Fraction(l1) / Fraction(scale) > epsilon:
        scale = math.nextafter(scale, math.inf)
    return Laplace(scale, l1)


def _least(make: Callable[[float], E], scale: float, rho: Fraction) -> E:
    """The event with the first scale from `scale` on that costs at most ρ."""
    while accounting.rho(event := make(scale)) > rho:
        scale = math.nextafter(scale, math.inf)
    return event


def gaussian(rho: Fraction, *, step: int = 1, changes: int = 1) -> Gaussian:
    """The least noise that costs at most ρ."""
    start = math.sqrt(changes * step * step / (2 * float(rho)))
    return _least(lambda sigma: Gaussian(sigma, step, changes), start, rho)


def tables(rho: Fraction, relation: Relation, number: int = 1) -> Gaussian:
    """The least noise on so many marginal tables of counts that costs at most ρ."""
    return gaussian(rho, changes=relation.marginal_l2_squared(number))


def lattice(rho: Fraction, relation: Relation, l1: int) -> Laplace:
    """The least noise on an error in units of 1/`l1` row that costs at most ρ."""
    return laplace(rho, l1=l1)


def errors(rho: Fraction, relation: Relation, number: int) -> Gaussian:
    """The least noise on the L1 errors of so many tables that costs at most ρ."""
    return gaussian(rho, step=relation.marginal_l1(), changes=number)


def selection(rho: Fraction, *, sensitivity: int = 1, k: int = 1) -> Selection:
    """The least noise that costs at most ρ: scale = Δ·√(k/(2ρ))."""
    start = sensitivity * math.sqrt(k / (2 * float(rho)))
    return _least(lambda scale: Selection(scale, sensitivity, k), start, rho)


def worst(rho: Fraction, relation: Relation, picks: int = 1) -> Selection:
    """The least noise on selecting so many of the worst marginals that costs at most ρ."""
    from understudy.privacy.questions import WorstMarginals  # which plan with this module

    return selection(rho, sensitivity=WorstMarginals.sensitivity(relation), k=picks)


class Draws(NamedTuple):
    """What a plan asks for `times` times: the least noise at which `number` `of` some kind cost ρ.

    `of` is `lattice`, `tables`, `errors` or `worst`.
    """

    purpose: str
    of: Callable[[Fraction, Relation, int], Gaussian | Laplace | Selection]
    rho: Fraction
    number: int
    times: int = 1


def charges(relation: Relation, draws: Iterable[Draws]) -> tuple[Charge, ...]:
    """The charges of some draws."""
    return tuple(Charge(d.purpose, d.of(d.rho, relation, d.number), d.times) for d in draws)


def whole_sum(rho: Fraction, *, l2: int, coordinates: int, sides: int) -> SampledGaussian:
    """The least noise on a sum over all rows that costs at most ρ = (sides·l2)²/(2σ²)."""
    start = sides * l2 / math.sqrt(2 * float(rho))
    return _least(lambda sigma: SampledGaussian(sigma, l2, coordinates, sides=sides), start, rho)


def discovery(rho: Fraction, delta: float, *, values: int = 1, sides: int = 1) -> Discovery:
    """The least noise that costs at most ρ, and the least threshold that costs at most δ."""
    sigma = gaussian(rho, changes=sides * values).sigma
    z = NormalDist().inv_cdf(1 - delta / values) if delta / values > 1e-15 else 8.0
    threshold = max(2, 2 + math.floor(sigma * z) - 1)
    while (event := Discovery(sigma, threshold, values, sides)).delta > delta:
        threshold += 1
    return event


def rho_for(budget: Budget) -> Fraction:
    """The largest ρ (to float precision) whose tight conversion stays within the budget."""
    if budget.delta <= 0:
        raise InputError(
            "delta = 0 leaves no room for Gaussian noise; give a small one such as 1e-9"
        )
    target = round_down(budget.epsilon)
    return _largest(lambda rho: accounting.epsilon_from_rho(rho, budget.delta) <= target)


def _largest(holds: Callable[[float], bool]) -> Fraction:
    """The last float from 0 on at which something holds; 0 where none above 1e-300 does."""
    low, high = 0.0, 1.0
    while holds(high):
        low, high = high, 2 * high
    while high > 1e-300 and low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if holds(middle) else (low, middle)
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
