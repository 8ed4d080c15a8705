"""From events to (ε, δ): pure composition, zCDP with the tight conversion, and PLD; the smallest.

* pure: ε adds up, for any adaptive choice of mechanisms.
* zCDP: ρ adds up, also when parameters are chosen adaptively and through a filter that checks
  before each draw (Feldman-Zrnic 2021). Converted by
  δ(ε) = inf_{α>1} exp((α−1)(αρ − ε))/(α−1) · (1−1/α)^α   (Canonne-Kamath-Steinke 2020).
* PLD: dominating pairs of a plan whose parameters were fixed in advance are convolved by
  dp-accounting. A discrete Gaussian that moves `changes` coordinates by `step` is exactly a product
  of one-dimensional pairs; a pure ε0 step is dominated by randomised response with ratio e^{±ε0}.
* Poisson samples: a sum of integer vectors with discrete Gaussian noise differs in total variation
  by at most τ = 1/(40σ²) a coordinate from the same sum with *rounded* Gaussian noise (midpoint
  rule: ½·(1/24)·∫|φ''| = 0.0202/σ², plus terms of 1/σ³; σ ≥ 16). Rounding is post-processing, so the
  pair of the Poisson-sampled Gaussian mechanism dominates that, and T sums of d coordinates are
  (ε, δ + (1 + e^ε)·T·d·τ)-DP where that pair gives (ε, δ). For the relation `replace` the pair is
  ((1−q)N(0) + qN(Δ), (1−q)N(0) + qN(−Δ)). In zCDP a sample is charged like the whole table.
* Rounded noise on samples (`SampledGroups`) is post-processing of that pair, at the joint multiplier of
  its groups; its law as drawn is within e^±η of that, η = 2^−38 a coordinate, so that (ε, δ·e^−η) of
  the pairs is (ε + 2η, δ) of what is drawn; where ρ itself adds up it is a little larger, see `rho`.
* groups: where neighbours differ in up to `group` rows (see `units`), pure ε is `group` times and ρ is
  `group`² times that of one row (Bun-Steinke 2016, Proposition 27); a pure event may take the ρ of
  its larger ε instead. PLD is left out.
* discoveries are δ-approximately ρ-zCDP for a whole unit, so that their δ is taken off before ρ is
  converted: (ε, δ' + Σδ) (Bun-Steinke 2016, Section 8). PLD is left out.

Each of the three is an upper bound on its own, so the smallest is one. Nothing here draws or reads
private data; every result is rounded to the private side.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from understudy.errors import InputError, PrivacyError
from understudy.privacy.budget import Budget, round_up
from understudy.privacy.cost import (
    Discovery,
    Event,
    Gaussian,
    Laplace,
    Perturbation,
    Plan,
    SampledGaussian,
    SampledGroups,
    SampledSelection,
    Selection,
    Zcdp,
)
from understudy.privacy.noise import LAW

__all__ = [
    "Spent",
    "calibrate",
    "delta_from_rho",
    "epsilon",
    "epsilon_from_rho",
    "fits",
    "laplace_epsilon",
    "nominal",
    "pure",
    "rho",
    "rho_for",
    "total_delta",
    "total_rho",
]

# Wider than any rounding of float64 along the way; results are moved by this to the private side.
_SLACK = 1e-12
# Losses are rounded up to a grid of this fraction of the ε that zCDP finds.
_PLD_RESOLUTION = 1e-4
# The table of losses grows with the noise; beyond this a plan would take seconds to account for, and
# zCDP, which is a few per cent looser, takes over.
_PLD_MAX_SIGMA = 20_000.0
# Beyond this e^ε has no meaning left, and the library overflows.
_PLD_MAX_INTERVAL = 1.0
# Below this the noise on integers is too far from rounded noise to be accounted for as such.
_ROUNDED_MIN_SIGMA = 16.0
# So it does with many different events; those plans are mostly selections, for which zCDP is better.
_PLD_MAX_EVENTS = 24


@dataclass(frozen=True, slots=True)
class Spent:
    """An upper bound on what a list of events reveals, and how it was found."""

    epsilon: float
    delta: float
    by: Literal["pure", "zcdp", "pld"]


def pure(event: Event, group: int = 1) -> Fraction | None:
    """The pure ε of an event for neighbours that differ in `group` rows, or None if it has none."""
    one = _pure(event)
    return None if one is None else group * one


def _pure(event: Event) -> Fraction | None:
    match event:
        case Laplace(scale, l1):
            return Fraction(l1) / Fraction(scale)
        case Selection(scale, sensitivity, k):
            return k * 2 * Fraction(sensitivity) / Fraction(scale)
        case SampledSelection(scale, sensitivity, rate):
            whole = 2 * Fraction(sensitivity) / Fraction(scale)
            if whole > 700:
                return whole
            return Fraction(math.log1p(rate * math.expm1(round_up(whole))) * (1 + 1e-14))
        case Perturbation(scale, l1, jacobian, output_scale, output_l1):
            noise = Fraction(l1) / Fraction(scale) + Fraction(output_l1) / Fraction(output_scale)
            return noise + Fraction(math.log1p(jacobian) * (1 + 1e-15))
        case _:
            return None


def rho(event: Event, group: int = 1) -> Fraction:
    """The zCDP parameter ρ of an event for neighbours that differ in `group` rows; never below.

    group²·ρ of one row; where the event is pure at most that of a mechanism of group·ε. Laws that are
    drawn within e^±η of those accounted for have D_α ≤ ρα + η·(2α − 1)/(α − 1). For every t > 0 that is
    at most ρ'·α with ρ' = ρ·(1 + t) + η·(2 + 1/t): from α = 1 + t on as it stands, and below because
    D_α grows with α.
    """
    exact, apart = _exact_rho(event, group), Fraction(_apart(Counter([event])))
    if not apart:
        return exact
    t = Fraction(math.sqrt(min(apart / exact, Fraction(2**100))))
    return exact * (1 + t) + apart * (2 + 1 / t)


def _exact_rho(event: Event, group: int) -> Fraction:
    """ρ of the law that is accounted for."""
    one = _rho(event)
    if group == 1 or isinstance(event, Discovery):  # which speaks of units itself
        return one
    if pure(event) is None:
        return group * group * one
    return min(group * group * one, _rho_of_pure(event, group))


def _rho(event: Event) -> Fraction:
    """ρ where neighbours differ in one row.

    Gaussian changes·step²/(2σ²); Selection k·ε0²/8 with ε0 = 2Δ/scale (bounded range; Cesar-Rogers
    2021); Laplace, objective perturbation and sampled picks ε·tanh(ε/2), valid for every pure ε
    mechanism; a sampled Gaussian (sides·l2)²/(2σ²), as if the sample were the table; an allowance
    is its own ρ.
    """
    match event:
        case Gaussian(sigma, step, changes):
            return Fraction(changes * step * step) / (2 * Fraction(sigma) ** 2)
        case Selection(scale, sensitivity, k):
            return k * (2 * Fraction(sensitivity) / Fraction(scale)) ** 2 / 8
        case SampledGaussian(sigma, l2, _, _, sides):
            return Fraction(sides * l2) ** 2 / (2 * Fraction(sigma) ** 2)
        case SampledGroups(_, _, _, sides):
            return Fraction(sides) ** 2 / (2 * Fraction(event.multiplier) ** 2)
        case SampledSelection(scale, sensitivity, _):
            # A sample is a mixture, and mixtures are no farther apart than their parts.
            return min(_rho_of_pure(event), _rho(Selection(scale, sensitivity)))
        case Laplace() | Perturbation():
            return _rho_of_pure(event)
        case Discovery(sigma, _, values, sides):
            return Fraction(sides * values) / (2 * Fraction(sigma) ** 2)
        case Zcdp(allowance):
            return Fraction(allowance)


def _rho_of_pure(event: Event, group: int = 1) -> Fraction:
    eps = pure(event, group)
    assert eps is not None
    bound = eps * Fraction(math.tanh(float(eps) / 2) * (1 + 1e-15))
    return min(bound, eps * eps / 2)


def total_rho(events: Plan | Iterable[Event], group: int = 1) -> Fraction:
    """ρ of all events together."""
    return sum((rho(e, group) * times for e, times in _grouped(events).items()), Fraction(0))


def nominal(event: Event) -> Fraction:
    """ρ, or of a sampled Gaussian sum about the ρ that many of them are worth; no guarantee.

    By the central limit a draw at rate q with multiplier m is worth min(ρ, q²(e^{(sides/m)²} − 1)/2)
    (Bu et al. 2020). Plans are laid out by this and found by `calibrate`, which counts exactly.
    """
    whole = _rho(event)
    if not isinstance(event, SampledGaussian | SampledGroups):
        return whole
    each = event.rate**2 * math.expm1(min(2 * float(whole), 700.0)) / 2
    return min(whole, Fraction(each))


def fits(plan: Plan, allowance: Zcdp) -> bool:
    """Whether an allowance covers a plan: its ρ, and no δ, which an allowance does not hold."""
    return total_rho(plan) <= Fraction(allowance.rho) and total_delta(plan) == 0


def total_delta(events: Plan | Iterable[Event]) -> Fraction:
    """δ that events cost by themselves, whatever ε is: that of discoveries."""
    found = _grouped(events).items()
    return sum((Fraction(e.delta) * n for e, n in found if isinstance(e, Discovery)), Fraction(0))


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


def epsilon_from_rho(rho: Fraction | float, delta: Fraction | float) -> float:
    """The ε at which ρ-zCDP gives (ε, δ), by the tight conversion; every α gives a valid ε."""
    r, d = round_up(Fraction(rho)), float(delta)
    if r < 0:
        raise PrivacyError(f"ρ = {r} must not be negative")
    if r == 0:
        return 0.0
    if d <= 0:
        return math.inf
    log_delta = math.log(d)

    def bound(t: float) -> float:
        beyond = math.exp(t)  # α − 1, kept apart: α loses it where it is small
        log_alpha = math.log1p(beyond)
        return r * (1 + beyond) + (t - log_alpha) - (log_delta + log_alpha) / beyond

    # The bound is unimodal in ln(α − 1); start around the minimiser of the quick form.
    centre = math.log(math.sqrt(max(-log_delta, 1e-3) / r))
    best = _minimise(bound, centre - 8.0, centre + 8.0)
    return max(0.0, best + _SLACK * (1 + abs(best)))


def delta_from_rho(rho: Fraction | float, epsilon: Fraction | float) -> float:
    """The δ at which ρ-zCDP gives (ε, δ), by the tight conversion."""
    r, e = round_up(Fraction(rho)), float(epsilon)
    if r == 0:
        return 0.0

    def log_delta(t: float) -> float:
        beyond = math.exp(t)
        log_power = (1 + beyond) * (t - math.log1p(beyond))
        return beyond * ((1 + beyond) * r - e) - t + log_power

    centre = math.log(max((e - r) / (2 * r), 1e-6))
    best = min(_minimise(log_delta, centre - 8.0, centre + 8.0), _minimise(log_delta, -20.0, 20.0))
    return min(1.0, math.exp(min(0.0, best + _SLACK * (1 + abs(best)))))


def _minimise(f: Callable[[float], float], low: float, high: float) -> float:
    """Least value seen by a grid and golden sections; the caller needs a value, not an argmin."""

    def guarded(t: float) -> float:
        try:
            return f(t)
        except (OverflowError, ZeroDivisionError, ValueError):
            return math.inf

    grid = [low + (high - low) * i / 64 for i in range(65)]
    values = [guarded(t) for t in grid]
    at = min(range(65), key=values.__getitem__)
    a, b = grid[max(at - 1, 0)], grid[min(at + 1, 64)]
    golden = (math.sqrt(5) - 1) / 2
    best = values[at]
    c, d = b - golden * (b - a), a + golden * (b - a)
    fc, fd = guarded(c), guarded(d)
    for _ in range(80):
        best = min(best, fc, fd)
        if fc < fd:
            b, d, fd = d, c, fc
            c = b - golden * (b - a)
            fc = guarded(c)
        else:
            a, c, fc = c, d, fd
            d = a + golden * (b - a)
            fd = guarded(d)
    return best


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
    while epsilon_from_rho(high, budget.delta) <= target:
        low, high = high, high * 2
    while low == 0.0 and epsilon_from_rho(high, budget.delta) > target:
        high /= 2
        if high < 1e-300:
            return Fraction(0)
        if epsilon_from_rho(high, budget.delta) <= target:
            low, high = high, high * 2
    for _ in range(80):
        middle = (low + high) / 2
        if epsilon_from_rho(middle, budget.delta) <= target:
            low = middle
        else:
            high = middle
    return Fraction(low)


def _grouped(events: Plan | Iterable[Event]) -> Counter[Event]:
    grouped: Counter[Event] = Counter()
    if isinstance(events, Plan):
        for charge in events:
            grouped[charge.event] += charge.times
    else:
        grouped.update(events)
    return grouped


def epsilon(
    events: Plan | Iterable[Event], delta: Fraction | float, group: int = 1
) -> Spent:  # fmt: skip
    """The smallest valid ε at `delta` for events whose parameters were fixed in advance.

    `group`: the number of rows in which neighbours may differ.
    """
    grouped = _grouped(events)
    given = float(delta)
    d = given * math.exp(-_apart(grouped))
    if shown := total_delta(grouped.elements()):
        d = max(0.0, (d - float(shown)) * (1 - _SLACK))
    candidates: list[Spent] = []
    pures = [(pure(event, group), times) for event, times in grouped.items()]
    if all(eps is not None for eps, _ in pures):
        total = sum((eps * times for eps, times in pures if eps is not None), Fraction(0))
        candidates.append(Spent(round_up(total), d, "pure"))
    if d > 0:
        whole = sum((_exact_rho(e, group) * times for e, times in grouped.items()), Fraction(0))
        by_zcdp = epsilon_from_rho(whole, d)
        candidates.append(Spent(by_zcdp, d, "zcdp"))
        # A power of two, so that nearby plans share a grid.
        about = _about(grouped, d, by_zcdp)
        interval = 2.0 ** math.floor(math.log2(max(about, 1e-12) * _PLD_RESOLUTION))
        by_pld = None
        if group == 1:
            by_pld = _pld_epsilon(tuple(sorted(grouped.items(), key=repr)), d, interval)
        if by_pld is not None:
            candidates.append(Spent(by_pld, d, "pld"))
    candidates = [_as_drawn(grouped, spent, given) for spent in candidates]
    if not candidates and shown:
        return Spent(math.inf, given, "zcdp")  # discoveries alone cost more than δ
    if not candidates:
        raise InputError("delta = 0 cannot cover Gaussian noise; give a small delta such as 1e-9")
    return min(candidates, key=lambda spent: spent.epsilon)


def _apart(grouped: Counter[Event]) -> float:
    """η: how far the law of what is drawn may be from the one accounted for, on the log scale."""
    drawn = (e.coordinates * times for e, times in grouped.items() if isinstance(e, SampledGroups))
    return LAW * sum(drawn)


def _as_drawn(grouped: Counter[Event], spent: Spent, delta: float) -> Spent:
    return Spent(spent.epsilon + 2 * _apart(grouped), delta, spent.by)


def _about(grouped: Counter[Event], delta: float, by_zcdp: float) -> float:
    """About what ε to expect, for the grid of losses; not a guarantee."""
    if not any(isinstance(event, SampledGaussian | SampledGroups) for event in grouped):
        return by_zcdp
    total = sum((nominal(event) * times for event, times in grouped.items()), Fraction(0))
    return epsilon_from_rho(total, delta)


@lru_cache(maxsize=256)
def _pld_epsilon(
    grouped: tuple[tuple[Event, int], ...], delta: float, interval: float
) -> float | None:
    """ε by privacy loss distributions, or None where an event has no usable pair."""
    if len(grouped) > _PLD_MAX_EVENTS:
        return None
    for event, _ in grouped:
        if isinstance(event, Zcdp | Discovery):
            return None
        if isinstance(event, Gaussian) and event.sigma > _PLD_MAX_SIGMA:
            return None
    from dp_accounting import NeighboringRelation
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = pld.identity(value_discretization_interval=interval)
    apart = 0.0  # total variation between the noise that is drawn and the one accounted for
    for event, times in grouped:
        if isinstance(event, SampledGaussian | SampledGroups):
            if isinstance(event, SampledGroups):
                scale, moved = event.multiplier, 1
            else:
                scale, moved = event.sigma, event.l2
                apart += times * event.coordinates / (40 * event.sigma**2)
                if event.sigma < _ROUNDED_MIN_SIGMA:
                    return None
            if interval > _PLD_MAX_INTERVAL:
                return None
            pair = pld.from_gaussian_mechanism(
                scale,
                sensitivity=moved,
                value_discretization_interval=interval,
                sampling_prob=event.rate,
                neighboring_relation=(
                    NeighboringRelation.ADD_OR_REMOVE_ONE
                    if event.sides == 1
                    else NeighboringRelation.REPLACE_ONE
                ),
            )
            count = times
        elif isinstance(event, Gaussian):
            pair = pld.from_discrete_gaussian_mechanism(
                event.sigma,
                sensitivity=event.step,
                value_discretization_interval=interval,
                use_connect_dots=True,
            )
            count = times * event.changes
        else:
            each = pure(event)
            assert each is not None
            picks = event.k if isinstance(event, Selection) else 1
            pair = pld.from_privacy_parameters(
                common.DifferentialPrivacyParameters(round_up(each / picks), 0.0),
                value_discretization_interval=interval,
            )
            count = times * picks
        total = total.compose(pair.self_compose(count) if count > 1 else pair)
    found = float(total.get_epsilon_for_delta(delta))
    if apart and math.isfinite(found):
        # (1 + e^ε)·apart is paid from δ at an ε that is not passed.
        most = found + 1.0
        left = delta - (1 + math.exp(min(most, 700.0))) * apart
        found = float(total.get_epsilon_for_delta(left)) if left > 0 else math.inf
        if found > most:
            return None
    # The library's convolutions are exact up to float64; move to the private side of that.
    return found * (1 + 1e-9) + 1e-9 if math.isfinite(found) else None


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
    """ρ = μ²/2 for the μ of Gaussian DP at (ε, δ) (Dong-Roth-Su 2022); a guess, not a guarantee."""
    target, delta = float(budget.epsilon), float(budget.delta)

    def tail(x: float) -> float:
        return math.erfc(x / math.sqrt(2)) / 2

    def failure(mu: float) -> float:
        return tail(target / mu - mu / 2) - math.exp(min(target, 700.0)) * tail(
            target / mu + mu / 2
        )

    low, high = 0.0, 1.0
    while failure(high) < delta and high < 1e3:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if failure(middle) <= delta else (low, middle)
    return low * low / 2


def calibrate(
    build: Callable[[Fraction], Plan], budget: Budget, group: int = 1
) -> Plan:  # fmt: skip
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
        return _searched(build, budget, low, lambda p: epsilon(p, budget.delta, group).epsilon)
    spent = epsilon(plan, budget.delta, group).epsilon
    if spent > budget.epsilon:
        # Rounding of the conversion itself; a hair less ρ puts the plan on the private side.
        low *= 1 - Fraction(1, 10**9)
        plan = build(low)
        spent = epsilon(plan, budget.delta, group).epsilon
    if spent > budget.epsilon:
        raise PrivacyError(f"the plan costs ε = {spent}, above the budget {budget}")
    # PLD may allow more than zCDP. A plan of Gaussians alone would allow what Gaussian DP does; from
    # that guess a few steps leave at most a per mille of ρ unused. Only what is checked is returned.
    if spent > float(budget.epsilon) * 0.999:
        return plan
    guess = max(low, Fraction(_gaussian_rho(budget)) / group**2)
    high: Fraction | None = None
    for step in range(6):
        candidate = build(guess)
        if epsilon(candidate, budget.delta, group).epsilon <= budget.epsilon:
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
