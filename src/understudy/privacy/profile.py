"""δ(ε) of composed pairs, never below the truth, with a relative error that is bounded.

**One Gaussian** of μ: δ(ε) = Φ̄(a) − e^ε·Φ̄(b), a = ε/μ − μ/2, b = a + μ, = φ(a)·(m(a) − m(b)) with the
Mills ratio m = Φ̄/φ (Balle-Wang 2018). m(a) is taken too large and m(b) too small.

**Any pairs.** Let L be the total loss under P, M(s) = E e^{sL} and K = ln M = Σ K_i, a sum over the
composed pairs; a Gaussian of μ has K = s(s + 1)μ²/2. As ∫₀^∞ (1 − e^{−x})·e^{−sx} dx = 1/(s(s + 1)),

    e^{λε}·δ(ε) = D(ε),   ∫ D(x)·e^{iωx} dx = M(s)/(s(s + 1)),   s = λ + iω,   for every λ > 0.

By Poisson summation the trapezoidal sum over all multiples of Δ, with period 2π/Δ, is

    (Δ/2π)·Σ_k M(s_k)/(s_k(s_k + 1))·e^{−iω_k·ε} = Σ_m D(ε + m·2π/Δ) ≥ D(ε),   ω_k = kΔ,

because D ≥ 0. So it never understates, for any Δ; the period is so long that the other terms vanish
by Chernoff's bound. Three errors are bounded and added:

* *the sum ends at Ω = NΔ.* With a Gaussian part of μ, |M(s)| ≤ M(λ)·e^{−μ²ω²/2}, and the rest is at
  most M(λ)·e^{−μ²Ω²/2}/(πμ²Ω³). Where a plan has no Gaussian, or too little, one is composed with it,
  which only raises δ: μ² = ε/(10⁴(λ + 1)) at most. That raises ε by (λ + 1)μ²/2, or where losses lie
  on a lattice by 0.4·μ at most, some per mille.
* *rounding of M(s)/M(λ)*, which is a mean of e^{iωx} over the tilted losses: at most a few u = 2^−53
  for every loss that is summed over, T times that for its T-th power, relative to every term.
* *rounding of K(λ) − λε*, the same way.

λ is near the saddle point, where K(λ) − λε − ln(λ(λ + 1)) is least. The terms then do not cancel, so
that all of this is relative to δ(ε): 10⁻³⁰ is as good as 10⁻³, and for T = 10⁷ the bound is some 10⁻⁶.
Where it is large, so is the result, and zCDP takes over. Nothing here draws or reads private data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from understudy.privacy.pairs import Floats, Losses

_U = 2.0**-53
_ROOT = math.sqrt(2 * math.pi)
_SMOOTHING = 5e-5  # What ε may grow by for a Gaussian that ends the sum, relatively
# Periods end where D has fallen by e^−20, sums 7 standard deviations of a Gaussian's transform away.
_FALL = 20.0
_END = 7.0
_MOST_TERMS = 100_000


def _mills(x: float) -> tuple[float, float]:
    """Bounds on Φ̄(x)/φ(x), from below and above."""
    if x <= 25:
        value = _ROOT / 2 * math.exp(x * x / 2) * math.erfc(x / math.sqrt(2))
        error = _U * (32 + 4 * x * x)
        return value * (1 - error), value * (1 + error)
    y = 1 / (x * x)  # an alternating asymptotic series
    fifth = 1 - y * (1 - 3 * y)
    return (fifth - 15 * y**3) / x * (1 - 16 * _U), fifth / x * (1 + 16 * _U)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """δ(ε) of the Gaussian mechanism with μ = sensitivity/σ; never below."""
    if mu == 0:
        return 0.0
    a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if a < -25:
        return 1.0
    # Where a or b was rounded, |m'| ≤ 1 + |a|·m and m(a) ≥ 1/(1 + |a|) bound what m moves by.
    error = 16 * _U * (1 + abs(a)) * (1 + abs(a) + epsilon / mu + mu)
    gap = max(_mills(a)[1] - _mills(b)[0], 0.0) + error * _mills(a)[1]
    return min(1.0, math.exp(-a * a / 2) / _ROOT * gap * (1 + error))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """An ε with δ(ε) ≤ δ, the least up to rounding."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    high = mu * mu / 2 + mu * math.sqrt(max(1.0, -2 * math.log(delta)))
    while gaussian_delta(mu, high) > delta:
        high *= 2
    return _least(lambda e: gaussian_delta(mu, e) <= delta, 0.0, high)


def _least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The end of a bisection at which `holds`; it does at `high`."""
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def composed_epsilon(parts: Sequence[tuple[Losses, int]], mu2: float, delta: float) -> float | None:
    """An ε at which the composition of `parts`, T of each, and a Gaussian of μ² has at most δ.

    None where the bound on the error is too large.
    """
    if not parts:
        return gaussian_epsilon(math.sqrt(mu2) * (1 + 4 * _U), delta)
    left = (delta - sum(n * part.infinite for part, n in parts)) * (1 - 1e-12)
    if left <= 0:
        return None
    log_delta = math.log(left)
    best = math.inf if mu2 else sum(n * float(part.loss.max()) for part, n in parts) * (1 + 1e-9)
    at = _saddle(parts, mu2, lambda epsilon, log: epsilon < 0 or log > log_delta)
    for _ in range(4):
        sum_ = _Sum(parts, mu2, at)
        found = _inverted(sum_, log_delta)
        # Where tails are heavy the first λ is that of another ε; one of its own is more exact.
        near = abs(found - sum_.centre) < sum_.width / 4 or found > 0.999 * best
        best = max(0.0, min(best, found))
        if near or best == 0 or not math.isfinite(found):
            break
        at = _saddle(parts, mu2, lambda epsilon, _, aim=found: epsilon < aim)
    return best if math.isfinite(best) else None


def _inverted(sum_: _Sum, log_delta: float) -> float:
    """The ε at which a sum certainly has at most δ, infinite where none is near."""
    low = high = max(0.0, sum_.centre)
    step = sum_.width / 64
    if sum_.log_delta(high) > log_delta:
        while sum_.log_delta(high) > log_delta:
            low, high, step = high, high + step, 2 * step
            if high > sum_.centre + 4 * sum_.width:
                return math.inf
    else:
        while low > 0 and sum_.log_delta(low) <= log_delta:
            high, low, step = low, max(0.0, low - step), 2 * step
        if low == 0 and sum_.log_delta(0.0) <= log_delta:
            return 0.0
    return _least(lambda e: sum_.log_delta(e) <= log_delta, low, high)


def _tilted(part: Losses, at: float) -> tuple[float, Floats, float, float]:
    """K(λ), the tilted masses, and their mean and variance."""
    exponent = part.log_mass + at * part.loss
    top = float(exponent.max())
    mass = np.exp(exponent - top)
    total = float(mass.sum())
    mass /= total
    mean = float(mass @ part.loss)
    return top + math.log(total), mass, mean, float(mass @ (part.loss - mean) ** 2)


def _moments(
    parts: Sequence[tuple[Losses, int]], mu2: float, at: float
) -> tuple[float, float, float]:
    """K, K' and K'' at λ of all parts."""
    k, mean, variance = at * (at + 1) * mu2 / 2, (at + 0.5) * mu2, mu2
    for part, n in parts:
        found = _tilted(part, at)
        k, mean, variance = k + n * found[0], mean + n * found[2], variance + n * found[3]
    return k, mean, variance


def _saddle(
    parts: Sequence[tuple[Losses, int]], mu2: float, more: Callable[[float, float], bool]
) -> float:
    """λ to half a per cent: the least without `more` of its ε and about its ln δ."""
    low, high = math.log(1e-7), math.log(1e12)
    for _ in range(13):
        middle = (low + high) / 2
        at = math.exp(middle)
        k, mean, variance = _moments(parts, mu2, at)
        epsilon = mean - 1 / at - 1 / (at + 1)
        wide = variance + at**-2 + (at + 1) ** -2
        log = k - at * epsilon - math.log(at) - math.log1p(at) - math.log(2 * math.pi * wide) / 2
        low, high = (middle, high) if more(epsilon, log) else (low, middle)
    return math.exp(high)


def _period(parts: Sequence[tuple[Losses, int]], mu2: float, at: float, epsilon: float) -> float:
    """How far from ε, to both sides, D has fallen by e^−20 relative to e^{K(λ)}: by any other λ."""
    here = _moments(parts, mu2, at)[0]

    def fallen(factor: float) -> float:
        away = at * abs(factor - 1)
        there = _moments(parts, mu2, at * factor)[0] if factor else 0.0
        return (there - here - at * (factor - 1) * epsilon + _FALL) / away

    left = min(fallen(factor) for factor in (0, 0.3, 0.6, 0.8, 0.93, 0.98))
    return max(left, min(fallen(factor) for factor in (1.02, 1.07, 1.2, 1.6, 3, 8)))


class _Sum:
    """The trapezoidal sum at one λ, for many ε near `centre`."""

    def __init__(self, parts: Sequence[tuple[Losses, int]], mu2: float, at: float) -> None:
        self.at = at
        _, mean, variance = _moments(parts, mu2, at)
        away = 1 / at + 1 / (at + 1)
        self.centre = mean - away
        wide = variance + at**-2 + (at + 1) ** -2
        # Every period is valid; where T is absurd, its rounding may leave nothing of a sensible one.
        period = max(math.sqrt(wide), _period(parts, mu2, at, self.centre))
        least = (_END * period / (2 * math.pi * _MOST_TERMS)) ** 2
        wanted = min(2 * _SMOOTHING * self.centre / (at + 1), wide / 64)
        added = max(0.0, max(wanted, least) - mu2)
        mu2 += added
        self.centre += (at + 0.5) * added
        self.width = math.sqrt(wide + added)
        spacing = 2 * math.pi / (period + self.width)
        terms = math.ceil(_END / math.sqrt(mu2) / spacing) + 1
        self.omega = spacing * np.arange(terms)
        end = float(self.omega[-1])

        self.log_peak = at * (at + 1) * mu2 / 2
        log_size, phase = -mu2 * self.omega**2 / 2, self.omega * away
        shift = away + 4 * self.width + abs(self.centre) + (at + 1) * mu2
        relative, peak = _U * (terms + 64 + 16 * end * shift), 32 * _U * (1 + at * (at + 1) * mu2)
        for part, n in parts:
            k, mass, mean, _ = _tilted(part, at)
            self.log_peak += n * k
            kept = mass > _U / len(mass)
            values = _means(mass[kept], part.loss[kept] - mean, spacing, terms)
            log_size += n * np.log(np.maximum(np.abs(values), 1e-300))
            phase += n * np.angle(values)
            # Masses are off by u a summand and u for the size of their exponents, phases by u for
            # their own size and for that of the mean, which is counted from the centre.
            lost = (
                4 * len(mass) + 64 + 8 * float(mass @ (np.abs(part.log_mass) + at * abs(part.loss)))
            )
            turns = float(mass @ (16 * abs(part.loss - mean) + (8 + len(parts)) * abs(part.loss)))
            relative += n * _U * (lost + end * turns)
            peak += n * _U * lost
        s = at + 1j * self.omega
        weight = np.full(terms, spacing / math.pi)
        weight[0] /= 2
        self._sum = weight * np.exp(log_size + 1j * phase) / (s * (s + 1))
        sizes = weight * np.exp(-mu2 * self.omega**2 / 2) / np.abs(s * (s + 1))
        cut = math.exp(-mu2 * end**2 / 2) / (math.pi * mu2 * end**3)
        # (1 + e)^T − 1 ≤ expm1(T·e) is what T-th powers are off by.
        self._error = float(sizes.sum()) * math.expm1(min(relative, 700.0)) + cut * (1 + 1e-9)
        self._peak_error = peak

    def log_delta(self, epsilon: float) -> float:
        """A bound on ln δ(ε)."""
        turned = np.exp(-1j * self.omega * (epsilon - self.centre))
        value = max(float((self._sum * turned).real.sum()), 0.0) + self._error
        exponent = self.log_peak - self.at * epsilon
        rounding = self._peak_error + 8 * _U * (abs(self.log_peak) + self.at * epsilon)
        return exponent + rounding + math.log(value)


def _means(mass: Floats, loss: Floats, spacing: float, terms: int) -> np.ndarray:
    """Σ_i mass_i·e^{iω·loss_i}, ω = 0, spacing, …: one product by e^{i(jB + k)x} = e^{ijBx}·e^{ikx}."""
    block = math.isqrt(terms) + 1
    steps = np.arange(block)[:, None] * spacing
    fine = np.exp(1j * steps * loss)
    coarse = np.exp(1j * (block * steps) * loss) * mass
    return (coarse @ fine.T).ravel()[:terms]
