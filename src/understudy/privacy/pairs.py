"""Dominating pairs: what a plan costs at worst, as laws of the privacy loss.

A pair (P, Q) dominates a mechanism M if, for all neighbours and every x,

    sup_A Pr[M(D) ∈ A] − e^x·Pr[M(D') ∈ A]  ≤  δ(x) = E_P[(1 − e^{x−L})₊],   L = ln dP/dQ.

Products of dominating pairs dominate the composition, also where a later mechanism looks at earlier
results (Zhu-Dong-Wang 2022, Theorem 10). Lowering Q or raising P on any set raises δ(x), and so
does spreading dQ/dP inside an interval to its two ends with P and Q of the interval kept, because
(1 − e^x·z)₊ is convex in z and falls ("connect the dots", Doroshenko et al. 2022). Every pair here is
a list of `Losses`: finitely many values with masses that dominate in these two ways, all roundings
included, and the mass for which the loss is taken to be infinite. Gaussians are kept apart, as they
add up to one, of μ² = Σμ_i².

* **Gaussian** on integers, σ ≥ 20. Let ρ_v(y) = e^{−y²/2v} and ρ_v(ℤ − y) = Σ_k ρ_v(k − y). By Poisson
  summation ρ_c(ℤ − y) = √(2πc)·(1 ± θ), θ = 2Σ_{m≥1} e^{−2π²cm²}. Round a real y at random to k with
  probability ρ_c(k − y)/ρ_c(ℤ − y). For y ~ N(x, σ² − c), x whole, k then has the probability
  ρ_{σ²}(k − x)/√(2πσ²)/(1 ± θ), as the convolution of Gaussians is one; the discrete Gaussian has
  ρ_{σ²}(k − x)/ρ_{σ²}(ℤ), and 1 ≤ ρ_{σ²}(ℤ)/√(2πσ²) ≤ 1 + θ. So its law is within e^{±η} of a function
  of N(x, σ² − c), η = ln((1 + θ)/(1 − θ)). Where T coordinates move, (ε, δ·e^{−Tη}) of Gaussians with
  μ² = Σ step²/(σ² − c) is (ε + 2Tη, δ) of what is drawn. c follows from T: 1.2 for one coordinate, 2.7
  for 10¹³. `group` rows move the reals by `group` times as much, in `group` times as many coordinates.
* **Gaussian** on integers, σ < 20, one row: the loss (step/σ²)·(z + step/2) itself. The noise is
  log-concave, so smaller steps are dominated by the largest.
* **Pure** ε0: randomised response, losses ±ε0 with odds e^{ε0} (Kairouz-Oh-Viswanath 2015).
* **Selection**: the losses of a pick lie in an interval of length ε0 (bounded range, Dong-Durfee-Rogers
  2020), hence the pick is dominated by two losses t and t − ε0, of which t has the mass
  (1 − e^{t−ε0})/(1 − e^{−ε0}). Over t its δ(x) is largest at t = (x + ε0)/2, where it is
  (1 − e^{(x−ε0)/2})²/(1 − e^{−ε0}), −ε0 ≤ x ≤ ε0. That is convex in e^x, so it is the profile of a
  pair, which dominates whatever t is, chosen adaptively too: its loss has the density
  e^{x/2}/(4·sinh(ε0/2)) on [−ε0, ε0].
* **Poisson samples** at rate q. Given who else is in the sample, neighbours give (1 − q)N(0) + qN(a)
  and N(0), or under `replace` (1 − q)N(0) + qN(b), with ‖a‖, ‖b‖ ≤ Δ in units of the noise. Fix A with
  N(0)(A) = Φ(z). By Neyman-Pearson N(a)(A) ≤ Φ(z + ‖a‖) and N(b)(A) ≥ Φ(z − ‖b‖), and one half-line
  attains both if a = Δ and b = −Δ on the line. So for every γ = e^x, P(A) − γQ(A) is at most that of
  the scalar pair: ((1 − q)N(0) + qN(Δ), (1 − q)N(0) + qN(−Δ)) dominates. A replaced row is not a shift
  of 2Δ: with probability (1 − q)² nothing moves. Adding and removing a row are two pairs, and a plan
  costs what the worse of the two does. Losses grow with x; cells of x of width 0.05 are connected,
  which adds some 0.05²/6 to the variance of a loss relative to itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from understudy._types import Floats
from understudy.privacy.budget import round_up
from understudy.privacy.cost import (
    Discovery,
    Event,
    Gaussian,
    Perturbation,
    SampledGaussian,
    SampledGroups,
    Selection,
    Zcdp,
)

_U = 2.0**-53
# Discrete noise from here on is taken for a rounded real one; below, by its own law, if few differ.
_REAL_SIGMA = 20.0
_MOST_LATTICES = 24
_MOST_PARTS = 256  # Beyond this a plan would take seconds to account for, and zCDP takes over
_APART = 1e-9  # ε may grow by so much for that
# Cells of a continuous law: in units of its noise, and in number for a pick.
_CELL = 0.05
_CELLS = 128
# Densities are kept far from the smallest float64.
_FARTHEST, _LOWEST = 36.0, 10.0
_LARGEST = 300.0


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """Privacy losses with the logarithms of their masses under P, and the mass of an infinite loss."""

    loss: Floats
    log_mass: Floats
    infinite: float = 0.0


@dataclass(frozen=True, slots=True)
class Pairs:
    """What dominates a plan: one Gaussian, losses with multiplicities in each direction, and η.

    (ε, δ·e^{−apart}) of the pairs is (ε + 2·apart, δ) of the plan.
    """

    mu2: float
    directions: tuple[tuple[tuple[Losses, int], ...], ...]
    apart: float


def theta(c: float) -> float:
    """η(c) = ln((1 + θ)/(1 − θ)), θ = 2Σ e^{−2π²cm²}; rounded up."""
    first = math.exp(-2 * math.pi**2 * c)
    whole = 2 * first / (1 - first**3) * (1 + 1e-12)
    return (math.log1p(whole) - math.log1p(-whole)) * (1 + 1e-12)


def _variance_lost(coordinates: int) -> float:
    """c at which 2·coordinates·η(c) is about `_APART`."""
    return math.log(8 * max(coordinates, 1) / _APART) / (2 * math.pi**2)


def _losses(loss: Floats, mass: Floats, error: Floats | float, infinite: float = 0.0) -> Losses:
    """Losses and masses that are wrong by at most `error` (masses relatively), to the private side.

    P may have become e^{2·error} times as large, so that losses rise by 3·error: Q has not grown.
    """
    some = mass > 0
    error = np.broadcast_to(np.asarray(error, dtype=np.float64), loss.shape)[some]
    return Losses(loss[some] + 3 * error, np.log(mass[some]) + error, infinite)


def _connected(
    edge: Floats, log_p: Floats, log_q: Floats, error: Floats, below: float, above: float
) -> Losses:
    """Cells between neighbouring losses `edge`, each moved to its two ends with P and Q kept.

    `error` bounds what is wrong with p, q (relatively) and with the losses at the ends of a cell. A
    cell's mean z̄ of z = dQ/dP is taken e^{5·error} too low and its ends e^{2·error}: min(z·e^{−error},
    upper end) ≤ z lies between the ends, and its mean is not below the one that is used. `below` is
    all mass with smaller losses and is put at the first edge; `above` is infinite.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = np.expm1(log_q - log_p - 5 * error + edge[1:]) / np.expm1(np.diff(edge))
    share = np.clip(np.nan_to_num(share, nan=0.0, posinf=0.0, neginf=0.0), 0.0, 1.0)
    share[np.diff(edge) <= 0] = 0.0
    cell = np.exp(log_p)
    mass = np.concatenate([[below], cell * (1 - share)])
    mass[:-1] += cell * share
    wrong = np.maximum(np.concatenate([error[:1], error]), np.concatenate([error, error[-1:]]))
    return _losses(edge, mass, wrong, above)


@lru_cache(maxsize=64)
def response(epsilon: float) -> Losses:
    """Randomised response: dominates every pure ε mechanism."""
    up = 1 / (1 + math.exp(-epsilon))
    mass = np.array([math.exp(-epsilon) * up, up])
    return _losses(np.array([-epsilon, epsilon]), mass, 16 * _U * (1 + epsilon))


@lru_cache(maxsize=64)
def bounded_range(epsilon: float) -> Losses:
    """All pairs whose losses lie in some interval of length ε."""
    edge = np.linspace(-epsilon, epsilon, _CELLS + 1)
    each = np.log(np.expm1(np.diff(edge) / 2)) - math.log(2 * math.sinh(epsilon / 2))
    error = np.full(_CELLS, 64 * _U * (1 + epsilon))
    return _connected(edge, each + edge[:-1] / 2, each - edge[1:] / 2, error, 0.0, 0.0)


@lru_cache(maxsize=64)
def lattice(sigma: float, step: int, reach: float) -> Losses:
    """One coordinate of discrete Gaussian noise, moved by `step`; infinite beyond reach·σ."""
    last = math.ceil(reach * sigma) + 1
    z = np.arange(-last, last + 1, dtype=np.float64)
    square = z * z / (2 * sigma**2)
    mass = np.exp(-square)
    mass /= mass.sum()
    # Σ e^{−z²/2σ²} over z > last is below σ·√(π/2)·e^{−last²/2σ²}, of a whole sum above 1. As reach is
    # at least 10, it is no more than a rounding of that sum.
    tail = 2 * sigma * math.exp(-((last / sigma) ** 2) / 2)
    mass[0] += tail
    loss = step / sigma**2 * (z + step / 2)
    return _losses(loss, mass, _U * (64 + 2 * last + 8 * square + 8 * np.abs(loss)), tail)


@lru_cache(maxsize=64)
def sampled(rate: float, shift: float, way: str, cut: float) -> Losses:
    """A Poisson-sampled Gaussian of sensitivity `shift`; `way`: "remove", "add" or "replace" a row.

    Oriented so that the loss grows with x; the largest losses, of mass `cut`, are taken for infinite.
    If they were kept, tilting would make them outweigh those that matter. Masses of cells are by
    Gauss-Legendre with 8 nodes: the error relative to a cell is at most
    1.7e-23·(d·(|y| + 2.5))^16·e^{d|y|}, d its width and y the distance from a mean, as
    |He₁₆(y)| ≤ (|y| + 2.5)^16; with d·(|y| + 2.5) ≤ 2 that is below 1e-17.
    """
    p = ((1.0, 0.0),) if way == "add" else ((1 - rate, 0.0), (rate, shift))
    q = ((1.0, 0.0),) if way == "remove" else ((1 - rate, 0.0), (rate, -shift))

    def above(x: float) -> float:
        return sum(w * math.erfc((x - mean) / math.sqrt(2)) / 2 for w, mean in p) * (1 + 1e-12)

    low, high, farthest = -_LOWEST, 0.0, _FARTHEST - 2 * shift
    while above(high) > cut and high < farthest:
        high += _CELL
    below = sum(w * math.erfc((_LOWEST + mean) / math.sqrt(2)) / 2 for w, mean in p) * (1 + 1e-12)
    far = max(high, _LOWEST) + shift
    x = np.linspace(low, high, math.ceil((high - low) / min(_CELL, 2 / (far + 3))) + 1)
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = np.diff(x)[:, None] / 2
    inner = (x[:-1, None] + x[1:, None]) / 2 + half * nodes

    def log_mass(parts: tuple[tuple[float, float], ...]) -> Floats:
        density = sum(w * np.exp(-((inner - mean) ** 2) / 2) for w, mean in parts)
        total = (np.asarray(density) * weights * half).sum(axis=1)
        return np.log(total / math.sqrt(2 * math.pi))

    def log_ratio(parts: tuple[tuple[float, float], ...]) -> Floats:
        if len(parts) == 1:
            return np.zeros_like(x)
        moved = parts[1][1] * x - shift**2 / 2
        return np.logaddexp(math.log1p(-rate), math.log(rate) + moved)

    distance = np.maximum(np.abs(x[:-1]), np.abs(x[1:])) + shift
    error = _U * (128 + 8 * distance**2)
    loss = log_ratio(p) - log_ratio(q)
    return _connected(loss, log_mass(p), log_mass(q), error, below, above(float(x[-1])))


def dominating(
    events: Mapping[Event, int], pures: Mapping[Event, Fraction], delta: float, group: int
) -> Pairs | None:
    """The pairs of a plan for neighbours that differ in `group` rows, or None where one has none.

    `pures`: the pure ε of those events that have one, for one row and one pick; losses are cut off
    where what is beyond cannot matter at `delta`.
    """
    moved = sum(n * group * e.changes for e, n in events.items() if isinstance(e, Gaussian))
    moved += sum(n * e.coordinates for e, n in events.items() if isinstance(e, SampledGaussian))
    lost = Fraction(_variance_lost(moved))
    draws = sum(n * (e.changes if isinstance(e, Gaussian) else 1) for e, n in events.items())
    # T·Φ̄(reach) ≤ δ·10⁻⁷/2; in steps, so that plans that are alike share their tables.
    tail = math.log(1e7) + math.log(max(draws, 1)) - math.log(delta)
    reach = max(10.0, math.ceil(2 * math.sqrt(2 * tail)) / 2)
    cut = 2.0 ** math.floor(math.log2(delta) - math.log2(max(draws, 1)) - 10)
    small = [e for e in events if isinstance(e, Gaussian) and e.sigma < _REAL_SIGMA]
    lattices = len(small) <= _MOST_LATTICES and group == 1
    mu2, apart = Fraction(0), 0
    same: Counter[Losses] = Counter()
    sides: list[tuple[float, float, int]] = []
    for event, times in events.items():
        match event:
            case Zcdp() | Discovery() | Perturbation():
                return None
            case Gaussian(sigma, step, changes) if sigma < _REAL_SIGMA and lattices:
                if step * (reach * sigma + step) > 1e6 * sigma**2:
                    return None
                same[lattice(sigma, step, reach)] += times * changes
            case Gaussian(sigma, step, changes):
                left = Fraction(sigma) ** 2 - lost
                if left <= 0:
                    return None
                mu2 += times * Fraction(changes * (group * step) ** 2) / left
                apart += times * group * changes
            case SampledGaussian() | SampledGroups():
                if isinstance(event, SampledGroups):
                    square = 1 / Fraction(event.multiplier) ** 2
                else:
                    left = Fraction(event.sigma) ** 2 - lost
                    if left <= 0:
                        return None
                    square = Fraction(event.l2) ** 2 / left
                    apart += times * event.coordinates
                if event.rate == 1:
                    mu2 += times * square * (group * event.sides) ** 2
                    continue
                shift = round_up(square) ** 0.5 * (1 + 4 * _U)
                if group > 1 or 2 * shift > _FARTHEST - _LOWEST:
                    return None
                if event.sides == 2:
                    same[sampled(event.rate, shift, "replace", cut)] += times
                else:
                    sides.append((event.rate, shift, times))
            case _:
                if (each := round_up(group * pures[event])) > _LARGEST:
                    return None
                if isinstance(event, Selection):
                    same[bounded_range(each)] += times * event.k
                else:
                    same[response(each)] += times
    directions = []
    for way in ("remove", "add") if sides else ("either",):
        parts = same.copy()
        for rate, shift, times in sides:
            parts[sampled(rate, shift, way, cut)] += times
        directions.append(tuple(parts.items()))
    if len(directions[0]) > _MOST_PARTS:
        return None
    return Pairs(round_up(mu2), tuple(directions), apart * theta(float(lost)))
