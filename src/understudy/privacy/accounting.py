"""From events to (ε, δ): pure composition, zCDP with the tight conversion, and exact composition.

* pure: ε adds up, for any adaptive choice of mechanisms.
* zCDP: ρ adds up, also when parameters are chosen adaptively and through a filter that checks
  before each draw (Feldman-Zrnic 2021). Converted by
  δ(ε) = inf_{α>1} exp((α−1)(αρ − ε))/(α−1) · (1−1/α)^α   (Canonne-Kamath-Steinke 2020).
  In zCDP a sample is charged like the whole table.
* privacy loss distributions: where the parameters of a plan were fixed in advance, the dominating
  pairs of its events (`pairs`) are composed and δ(ε) is found from their moment generating function
  (`profile`), with a proved bound on all errors; where that is too large, the other two remain.
* Rounded noise on samples (`SampledGroups`) is drawn within e^±η of the law that is accounted for,
  η = 2^−38 a coordinate, so that (ε, δ·e^−η) of the pairs is (ε + 2η, δ) of what is drawn; where ρ
  itself adds up it is a little larger, see `rho`.
* groups: where neighbours differ in up to `group` rows (see `units`), pure ε and the range of a pick's
  losses are `group` times and ρ is `group`² times that of one row (Bun-Steinke 2016, Proposition 27); a
  pure event may take the ρ of its larger ε instead. Sampled events have no pairs then.
* discoveries are δ-approximately ρ-zCDP for a whole unit, so that their δ is taken off before ρ is
  converted: (ε, δ' + Σδ) (Bun-Steinke 2016, Section 8). They and zCDP filters have no pairs.

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
from understudy.privacy import pairs, profile
from understudy.privacy.budget import round_down, round_up
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

# Wider than any rounding of float64 along the way; results are moved by this to the private side.
_SLACK = 1e-12


@dataclass(frozen=True, slots=True)
class Spent:
    """An upper bound on what a list of events reveals, and how it was found."""

    epsilon: float
    delta: float
    by: Literal["pure", "zcdp", "pld"]


def pure(event: Event, group: int = 1) -> Fraction | None:
    """The pure ε of an event for neighbours that differ in `group` rows, or None if it has none."""
    match event:
        case Laplace(scale, l1):
            one = Fraction(l1) / Fraction(scale)
        case Selection(scale, sensitivity, k):
            one = k * 2 * Fraction(sensitivity) / Fraction(scale)
        case SampledSelection(scale, sensitivity, rate):
            one = 2 * Fraction(sensitivity) / Fraction(scale)
            if one <= 700:
                one = Fraction(math.log1p(rate * math.expm1(round_up(one))) * (1 + 1e-14))
        case _:
            return None
    return group * one


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
    2021); Laplace and sampled picks ε·tanh(ε/2), valid for every pure ε mechanism; objective
    perturbation as `Perturbation` says; a sampled Gaussian (sides·l2)²/(2σ²), as if the sample were
    the table; a zCDP filter is its own ρ.
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
        case Laplace():
            return _rho_of_pure(event)
        case Perturbation(sigma, step, changes, jacobian, coordinates, output_sigma, output_l2):
            first = Fraction(changes * step * step) / (2 * Fraction(sigma) ** 2)
            root = math.sqrt(round_up(first + 4 * Fraction(jacobian) ** 2))
            lattice = math.sqrt(8 * coordinates) / sigma
            noise = Fraction((root + lattice) * (1 + 1e-15)) ** 2
            return noise + Fraction(output_l2) ** 2 / (2 * Fraction(output_sigma) ** 2)
        case Discovery(sigma, _, values, sides):
            return Fraction(sides * values) / (2 * Fraction(sigma) ** 2)
        case Zcdp(own):
            return Fraction(own)


def _rho_of_pure(event: Event, group: int = 1) -> Fraction:
    eps = pure(event, group)
    assert eps is not None
    bound = eps * Fraction(math.tanh(float(eps) / 2) * (1 + 1e-15))
    return min(bound, eps * eps / 2)


def total_rho(events: Plan | Iterable[Event], group: int = 1) -> Fraction:
    """ρ of all events together."""
    return sum((rho(e, group) * times for e, times in _grouped(events).items()), Fraction(0))


def fits(plan: Plan, zcdp: Zcdp) -> bool:
    """Whether a zCDP filter covers a plan: its ρ, and no δ, which a zCDP filter does not hold."""
    return total_rho(plan) <= Fraction(zcdp.rho) and total_delta(plan) == 0


def total_delta(events: Plan | Iterable[Event]) -> Fraction:
    """δ that events cost by themselves, whatever ε is: that of discoveries."""
    found = _grouped(events).items()
    return sum((Fraction(e.delta) * n for e, n in found if isinstance(e, Discovery)), Fraction(0))


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


def _grouped(events: Plan | Iterable[Event]) -> Counter[Event]:
    if isinstance(events, Counter):
        return events
    grouped: Counter[Event] = Counter()
    if isinstance(events, Plan):
        for charge in events:
            grouped[charge.event] += charge.times
    else:
        grouped.update(events)
    return grouped


def epsilon(events: Plan | Iterable[Event], delta: Fraction | float, group: int = 1) -> Spent:
    """The smallest valid ε at `delta` for events whose parameters were fixed in advance.

    `group`: the number of rows in which neighbours may differ.
    """
    grouped, given = _grouped(events), float(delta)
    shown, apart = total_delta(grouped), _apart(grouped)
    drawn = Fraction(delta) * (Fraction(math.exp(-apart) * (1 - 1e-15)) if apart else 1)
    d = max(0.0, round_down(drawn - shown))
    found: list[tuple[float, Literal["pure", "zcdp", "pld"]]] = []
    pures = {e: eps for e in grouped if (eps := pure(e, group)) is not None}
    if len(pures) == len(grouped):
        found.append(
            (round_up(sum((pures[e] * n for e, n in grouped.items()), Fraction(0))), "pure")
        )
    if d > 0:
        whole = sum((_exact_rho(e, group) * times for e, times in grouped.items()), Fraction(0))
        found.append((epsilon_from_rho(whole, d), "zcdp"))
        if (by_pld := _by_pairs(tuple(sorted(grouped.items(), key=repr)), d, group)) is not None:
            found.append((by_pld, "pld"))
    if not found and shown:
        return Spent(math.inf, given, "zcdp")  # discoveries alone cost more than δ
    if not found:
        raise InputError("delta = 0 cannot cover Gaussian noise; give a small delta such as 1e-9")
    least, by = min(found)
    return Spent(least + 2 * apart, given, by)


@lru_cache(maxsize=256)
def _by_pairs(events: tuple[tuple[Event, int], ...], delta: float, group: int) -> float | None:
    """ε of the composed dominating pairs, or None where an event has none or errors are too large."""
    each = {
        event: eps / (event.k if isinstance(event, Selection) else 1)
        for event, _ in events
        if (eps := pure(event)) is not None
    }
    found = pairs.dominating(dict(events), each, delta, group)
    if found is None:
        return None
    left = delta * math.exp(-found.apart) * (1 - 1e-15)
    worst = 0.0
    for direction in found.directions:
        eps = profile.composed_epsilon(direction, found.mu2, left)
        if eps is None:
            return None
        worst = max(worst, eps)
    return (worst + 2 * found.apart) * (1 + _SLACK)


def _apart(grouped: Counter[Event]) -> float:
    """η: how far the law of what is drawn may be from the one accounted for, on the log scale."""
    drawn = (e.coordinates * times for e, times in grouped.items() if isinstance(e, SampledGroups))
    return LAW * sum(drawn)
