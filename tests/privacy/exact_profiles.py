"""Exact privacy profiles δ(ε), as oracles for accountants: closed forms, finite sums, inversion.

For a pair of laws (P, Q) with loss L = ln(dP/dQ) the profile is the hockey-stick divergence

    δ(ε) = E_P[(1 − e^{ε−L})₊].

Every function here returns ln δ(ε), so that 10⁻³⁰ has as many digits as 10⁻³. Nothing is rounded to one
side: what a function computes it computes to `PRECISION`, relative to δ. Three ways are used.

* Closed forms in mpmath with 60 digits: Gaussians, one Poisson-sampled Gaussian, a few selections.
* Finite sums of positive terms in float64, which lose no relative precision: discrete Gaussian noise on
  its lattice, discrete Laplace noise, randomised responses.
* Inversion of the Laplace transform for everything composed. With K(s) = ln E_P[e^{sL}], which adds up
  under composition, and any c > 0,

      δ(ε) = (1/2πi) ∫_{c−i∞}^{c+i∞} e^{K(s)−sε} / (s(s+1)) ds,

  because (1 − e^{−x})₊ is the inverse transform of 1/(s(s+1)). At the saddle point c of the integrand
  nothing cancels: an absolute error of the sum is a relative error of δ. The trapezoidal rule with step
  2π/W errs by Σ_{k≠0} e^{ckW}·δ(ε + kW); W is chosen such that Chernoff's bound on that is e^−40·δ.

References: Balle-Wang 2018 (Gaussian profile), Canonne-Kamath-Steinke 2020 (discrete Gaussian, zCDP),
Dong-Durfee-Rogers 2020 (bounded range), Zhu-Dong-Wang 2022 (profiles by characteristic functions).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import mpmath as mp
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaln

__all__ = [
    "FAR",
    "PRECISION",
    "Finite",
    "Law",
    "Normal",
    "Profile",
    "Sampled",
    "Uniformly",
    "bounded_range",
    "composed",
    "convolved",
    "discrete_gaussian",
    "discrete_laplace",
    "finite",
    "gaussian",
    "laplace_side",
    "lattice_gaussian",
    "responses",
    "sampled_once",
    "selections",
    "two_point",
    "zcdp_epsilon",
]

mp.mp.dps = 60

PRECISION = 1e-6
"""Every ln δ(ε) is right within this; closed forms are far better."""

FAR = 90.0
"""Below δ = e^−90 Chernoff's bound is enough: no plan asks for a δ as small."""

Profile = Callable[[float], float]
Vector = NDArray[np.float64]


# --- Gaussians ------------------------------------------------------------------------------------


def _upper_tail(x: mp.mpf) -> mp.mpf:
    return mp.erfc(x / mp.sqrt(2)) / 2


def gaussian(mu: mp.mpf, epsilon: float) -> float:
    """δ(ε) = Φ̄(ε/μ − μ/2) − e^ε·Φ̄(ε/μ + μ/2): N(μ, 1) against N(0, 1)."""
    mu, eps = mp.mpf(mu), mp.mpf(epsilon)
    delta = _upper_tail(eps / mu - mu / 2) - mp.exp(eps) * _upper_tail(eps / mu + mu / 2)
    return float(mp.log(delta))


def discrete_gaussian(mu: mp.mpf, variance: float, epsilon: float) -> float:
    """A lower bound for many coordinates of discrete Gaussian noise, of which the closed form has μ.

    The profile is a sum over a lattice of (1 − e^{ε−L})₊ times a density, and the closed form the
    integral. By Poisson summation they differ by the transform of it at the dual lattice. The
    Gaussian factor makes this e^{−2π²σ²}, nothing from σ = 3 on, but for directions along L, in which
    the function has a kink: there the sum over all multiples is at most J/12, J the jump of the slope.
    With x = ε/μ − μ/2 and λ(x) ≤ x₊ + 1 the inverse of Mills' ratio, J ≤ λ(x)·λ(x + μ)/variance of the
    integral, for noise of `variance` in that direction. Where several scales are mixed, it is at least
    that of one coordinate at the least scale; where there is one, that of the sum of all coordinates.
    """
    x = max(0.0, float(epsilon / mu - mu / 2))
    apart = (x + 1) * (x + 1 + float(mu)) / (12 * variance)
    return gaussian(mu, epsilon) + math.log1p(-min(apart, 0.99))


def lattice_gaussian(sigma: float, shift: int, coordinates: int, epsilon: float) -> float:
    """`coordinates` discrete Gaussians N_ℤ(0, σ²), each moved by `shift`; exact.

    The loss is linear in the sum Z of the noise, L = (shift/σ²)·Z + coordinates·shift²/(2σ²), so that
    δ(ε) is one sum over the lattice.
    """
    variance = coordinates * sigma**2
    offset = coordinates * shift**2 / (2 * sigma**2)
    slope = shift / sigma**2
    first = math.floor((epsilon - offset) / slope) + 1
    if sigma >= 1.5 or coordinates > 1:
        first = max(first, math.floor(-15 * math.sqrt(variance)))
    z, log_p = _lattice_sum(sigma, coordinates, first)
    gain = -np.expm1(np.minimum(epsilon - offset - slope * z, 0.0))
    kept = gain > 0
    return _logsumexp(log_p[kept] + np.log(gain[kept]))


def _lattice_sum(sigma: float, coordinates: int, first: int) -> tuple[Vector, Vector]:
    """Values from `first` on, and ln P, of a sum of discrete Gaussians.

    From σ = 1.5 on, the sum of c of them has the probabilities N(z; 0, cσ²) up to a factor of
    1 ± 4c·e^{−π²σ²}: by Poisson summation over the lattice of all ways to write z as a sum, whose dual
    has no vector shorter than √(1 − 1/c) ≥ √½, and 2c of the shortest. That is 10⁻⁹·c at 1.5 (for one
    the normalising constant alone, e^{−2π²σ²}). Below, the law is convolved, term by positive term.
    """
    if 4 * coordinates * math.exp(-((math.pi * sigma) ** 2)) < PRECISION / 4:
        sd = sigma * math.sqrt(coordinates)
        z = np.arange(first, max(first, 0) + math.ceil(16 * sd) + 40, dtype=np.float64)
        if len(z) > 6_000_000:
            raise ValueError("use the closed form where the lattice is this fine")
        return z, -(z**2) / (2 * sd**2) - math.log(sd * math.sqrt(2 * math.pi))
    law = convolved(sigma, coordinates)
    middle = len(law) // 2
    z = np.arange(max(first, -middle), middle + 1, dtype=np.float64)
    p = law[len(law) - len(z) :] if len(z) else np.zeros(0)
    some = p > 0
    return z[some], np.log(p[some])


@lru_cache(maxsize=64)
def convolved(sigma: float, coordinates: int) -> Vector:
    """P of a sum of discrete Gaussians on −m, …, m, by direct convolution of positive terms."""
    reach = math.ceil(18 * sigma) + 2
    z = np.arange(-reach, reach + 1)
    one = np.exp(-(z.astype(np.float64) ** 2) / (2 * sigma**2))
    one /= one.sum()
    total, power, left = np.ones(1), one, coordinates
    while left:
        if left & 1:
            total = np.convolve(total, power)
        left >>= 1
        if left:
            power = np.convolve(power, power)
    return total


def _logsumexp(terms: Vector) -> float:
    if not len(terms):
        return -math.inf
    top = float(terms.max())
    return top + math.log(float(np.exp(terms - top).sum()))


# --- Laws of a loss -------------------------------------------------------------------------------


class Law:
    """The law of one privacy loss under P."""

    def cumulant(self, s: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """ln E[e^{sL}] for values of s that share one real part c > 0."""
        raise NotImplementedError

    def decay(self, c: float, y: float) -> float:
        """A bound, at most 0, on Re ln M(c + iy) − ln M(c) that holds from y on; 0 for a lattice."""
        raise NotImplementedError


@dataclass(frozen=True)
class Normal(Law):
    """N(μ²/2, μ²): Gaussian noise."""

    mu: float

    def cumulant(self, s):
        return self.mu**2 / 2 * s * (s + 1)

    def decay(self, c, y):
        return -((self.mu * y) ** 2) / 2


@dataclass(frozen=True)
class Uniformly(Law):
    """The loss with the profile δ*(x) = (1 − e^{(x−ε0)/2})²/(1 − e^{−ε0}) on [−ε0, ε0].

    That is the largest δ at x of all pairs of bounded range ε0, since the two-point loss {t, t − ε0}
    has (1 − e^{t−ε0})(1 − e^{x−t})/(1 − e^{−ε0}), which is largest at t = (x + ε0)/2. From
    P(L > x) = δ(x) − δ'(x) its density is proportional to e^{x/2}: a uniform law, tilted.
    """

    epsilon: float

    def cumulant(self, s):
        w, a = s + 0.5, self.epsilon
        log_sinh = w * a + np.log(-np.expm1(-2 * w * a)) - math.log(2)
        return log_sinh - np.log(w) - a / 2 - math.log(-math.expm1(-a))

    def decay(self, c, y):
        w = c + 0.5
        bound = -0.5 * math.log1p((y / w) ** 2) - math.log(math.tanh(w * self.epsilon))
        return min(0.0, bound)


@dataclass(frozen=True)
class Finite(Law):
    """Finitely many losses."""

    values: tuple[float, ...]
    log_p: tuple[float, ...]

    def cumulant(self, s):
        values, log_p = np.array(self.values), np.array(self.log_p)
        size = (log_p + s.real[0] * values).max()
        terms = np.exp(log_p + np.multiply.outer(s, values) - size)
        return np.log(terms.sum(axis=-1)) + size

    def decay(self, c, y):
        return 0.0


def two_point(epsilon: float) -> Finite:
    """Randomised response: ±ε, the worst pair of all that are pure ε-DP."""
    return Finite((epsilon, -epsilon), (-math.log1p(math.exp(-epsilon)), -np.logaddexp(0, epsilon)))


def bounded_range(epsilon: float, t: float) -> Finite:
    """{t, t − ε}: the exponential mechanism where a set of candidates moves against all others.

    With P(t) = (1 − e^{t−ε})/(1 − e^{−ε}), so that Q is a law as well; 0 < t < ε.
    """
    log_p = math.log(-math.expm1(t - epsilon)) - math.log(-math.expm1(-epsilon))
    log_rest = (t - epsilon) + math.log(-math.expm1(-t)) - math.log(-math.expm1(-epsilon))
    return Finite((t, t - epsilon), (log_p, log_rest))


def discrete_laplace(scale: float, shift: int) -> Finite:
    """Discrete Laplace noise, P(z) ∝ e^{−|z|/scale}, on one number that moves by `shift`."""
    j = np.arange(1, shift)
    r, rest = -1 / scale, math.log1p(math.exp(-1 / scale))
    inner = math.log(-math.expm1(r)) - rest + r * (shift - j)
    values = np.concatenate([[-shift], 2.0 * j - shift, [shift]]) / scale
    return Finite(tuple(values), (r * shift - rest, *inner, -rest))


def laplace_side(scale: float, shift: int) -> Finite:
    """The same noise, of which only the side of the middle is told: two losses, and no more δ."""
    above, r = shift // 2 + 1, math.exp(-1 / scale)
    log_q = -above / scale - math.log1p(r)  # P(z ≥ above)
    p_below = math.exp(-(shift - above + 1) / scale) / (1 + r)  # P(z < above − shift)
    log_p = math.log1p(-p_below)
    low = math.log(p_below) - math.log1p(-math.exp(log_q))
    return Finite((log_p - log_q, low), (log_p, math.log(p_below)))


@dataclass(frozen=True)
class Sampled(Law):
    """Poisson-sampled Gaussian noise of standard deviation 1, a row moving the mean by μ.

    `way`: "remove": (1−q)N(0) + qN(μ) against N(0); "add": the other way round; "replace":
    (1−q)N(0) + qN(μ) against (1−q)N(0) + qN(−μ).
    """

    mu: float
    rate: float
    way: str
    step: float = 1 / 64

    def terms(self, x: Vector) -> tuple[Vector, Vector]:
        """ln of P's density at x, and the loss there."""
        stay = math.log1p(-self.rate) if self.rate < 1 else -math.inf
        move = math.log(self.rate)
        base = -(x**2) / 2 - math.log(2 * math.pi) / 2
        up = np.logaddexp(stay, move + self.mu * x - self.mu**2 / 2)
        if self.way == "remove":
            return base + up, up
        if self.way == "add":
            return base, -up
        down = np.logaddexp(stay, move - self.mu * x - self.mu**2 / 2)
        return base + up, up - down

    def cumulant(self, s):
        c = float(s.real[0])
        # The trapezoidal rule; a step that is a power of two keeps the nodes exact.
        count = math.ceil((14 + 2 * self.mu * (1 + c)) / self.step)
        x = self.step * np.arange(-count, count + 1)
        log_p, loss = self.terms(x)
        weight = log_p + c * loss
        kept = weight > weight.max() - 46
        weight, loss, top = weight[kept], loss[kept], weight.max()
        mass = np.exp(weight - top)
        found = np.empty(len(s), dtype=np.complex128)
        for start in range(0, len(s), 256):
            part = s.imag[start : start + 256]
            found[start : start + 256] = np.exp(1j * np.multiply.outer(part, loss)) @ mass
        return np.log(found * self.step) + top

    def decay(self, c, y):
        # A smooth law: its transform falls for good once it has fallen this far.
        value = self.cumulant(np.array([c, c + 1j * y]))
        return min(0.0, float((value[1] - value[0]).real))


def sampled_once(mu: float, rate: float, way: str, epsilon: float, group: int = 1) -> float:
    """One Poisson-sampled Gaussian in closed form, also where neighbours differ in `group` rows.

    The number of sampled rows is binomial, and every one moves the mean by μ; the likelihood ratio is
    monotone in x, so δ is P beyond a threshold less e^ε times Q beyond it.
    """
    with mp.workdps(40):
        q, m, e = mp.mpf(rate), mp.mpf(mu), mp.exp(mp.mpf(epsilon))
        share = [mp.binomial(group, j) * q**j * (1 - q) ** (group - j) for j in range(group + 1)]
        ups = [(w, j * m) for j, w in enumerate(share) if w]
        nobody = [(mp.mpf(1), mp.mpf(0))]
        p, r = {
            "remove": (ups, nobody),
            "add": (nobody, [(w, -mean) for w, mean in ups]),
            "replace": (ups, [(w, -mean) for w, mean in ups]),
        }[way]
        if way == "add":  # mirrored, so that its ratio increases as well
            p = nobody

        def loss(x: float) -> float:
            def log_density(parts: list) -> float:
                return float(np.logaddexp.reduce([
                    float(mp.log(w)) + x * float(mean) - float(mean) ** 2 / 2 for w, mean in parts
                ]))  # fmt: skip

            return log_density(p) - log_density(r) - epsilon

        low, high = -1.0, 1.0
        while loss(low) > 0 and low > -1e9:
            low *= 2
        while loss(high) < 0:
            high *= 2
            if high > 1e9:
                return -math.inf
        cut = mp.mpf(brentq(loss, low, high, xtol=1e-13, rtol=1e-14)) if loss(low) < 0 else -mp.inf

        def beyond(parts: list) -> mp.mpf:
            return mp.fsum(w * _upper_tail(cut - mean) for w, mean in parts)

        delta = beyond(p) - e * beyond(r)
        return float(mp.log(delta)) if delta > 0 else -math.inf


# --- Composition ----------------------------------------------------------------------------------


def _saddle(laws: Sequence[tuple[Law, int]], epsilon: float) -> float:
    """c > 0 that minimises K(c) − cε − ln(c(c+1)), a convex function."""

    def value(u: float) -> float:
        c = math.exp(u)
        s = np.array([c + 0j])
        total = sum(times * float(law.cumulant(s)[0].real) for law, times in laws)
        return total - c * epsilon - u - math.log1p(c)

    at, best = 0, value(0.0)
    for way in (1, -1):  # downhill in steps of e, whichever way that is
        while best > -FAR - 60 and (further := value(at + way)) < best:
            at, best = at + way, further
    if best <= -FAR - 60:  # far enough for Chernoff's bound, whose best point does not matter
        return math.exp(at)
    low, high = at - 1, at + 1
    found = minimize_scalar(value, bounds=(low, high), method="bounded", options={"xatol": 1e-4})
    return math.exp(float(found.x))


def composed(laws: Sequence[tuple[Law, int]], epsilon: float) -> float:
    """ln δ(ε) of independent losses, each as often as it says, by inversion; one must be smooth."""
    c = _saddle(laws, epsilon)

    def total(s: NDArray[np.complex128]) -> NDArray[np.complex128]:
        return sum((times * law.cumulant(s) for law, times in laws), np.zeros(len(s)))

    def real(at: float) -> float:
        return float(total(np.array([at + 0j]))[0].real)

    d = 0.05 * c
    middle = real(c)
    width = math.sqrt(max(real(c + d) - 2 * middle + real(c - d), 1e-300)) / d
    tail = max(c * epsilon - middle, 0.0)
    if tail > FAR:
        return -tail  # Chernoff's bound
    step = 2 * math.pi * min(c, 1 / width) / (40 + tail)

    def left(y: float) -> float:
        return sum(times * law.decay(c, y) for law, times in laws)

    reach = 4 / width
    while left(reach) > -36:
        reach *= 1.3
        if reach > 3e6 * step:
            raise ValueError("the transform of this law falls too slowly to be inverted")
    count = math.ceil(reach / step)
    found = 0.0
    for start in range(0, count, 1 << 16):
        y = step * np.arange(start, min(start + (1 << 16), count))
        s = c + 1j * y
        terms = (np.exp(total(s) - middle - 1j * y * epsilon) / (s * (s + 1))).real
        found += float(terms.sum()) - (terms[0] / 2 if start == 0 else 0.0)
    return middle - c * epsilon + math.log(found * step / math.pi)


def responses(laws: Sequence[tuple[Finite, int]], epsilon: float) -> float:
    """ln δ(ε) of at most two kinds of two-point losses, by the sum over binomial laws.

    Terms are positive; those that are left out lie 14 standard deviations away under the law tilted to
    the saddle point, and make the result smaller.
    """
    c = _saddle(laws, epsilon)
    total, log_p = np.zeros(1), np.zeros(1)
    for law, times in laws:
        (high, low), (log_one, log_other) = law.values, law.log_p
        odds = log_one - log_other + c * (high - low)
        p = 1 / (1 + math.exp(-odds)) if odds > -700 else 0.0
        sd = math.sqrt(times * p * (1 - p))
        first = max(0, math.floor(times * p - 14 * sd - 60))
        last = min(times, math.ceil(times * p + 14 * sd + 60))
        b = np.arange(first, last + 1, dtype=np.float64)
        weight = _log_binomial(times, b) + b * log_one + (times - b) * log_other
        total = np.add.outer(total, b * high + (times - b) * low).ravel()
        log_p = np.add.outer(log_p, weight).ravel()
    gain = -np.expm1(np.minimum(epsilon - total, 0.0))
    kept = gain > 0
    return _logsumexp(log_p[kept] + np.log(gain[kept]))


def _log_binomial(n: int, k: Vector) -> Vector:
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def finite(law: Finite, times: int, epsilon: float) -> float:
    """ln δ(ε) of `times` equally spaced finite losses, by direct convolution."""
    step = law.values[1] - law.values[0]
    p, total = np.exp(np.array(law.log_p)), np.ones(1)
    for _ in range(times):
        total = np.convolve(total, p)
    values = times * law.values[0] + step * np.arange(len(total))
    gain = -np.expm1(np.minimum(epsilon - values, 0.0))
    kept = (gain > 0) & (total > 0)
    return _logsumexp(np.log(total[kept]) + np.log(gain[kept]))


def selections(epsilon0: float, times: int, epsilon: float) -> float:
    """ln δ(ε) of `times` losses `Uniformly(ε0)`, exactly: sums of uniform variables, in mpmath.

    With w = s + ½ the transform is C^T·Π sinh(wε0)/(wε0)·e^{−wε}/(w² − ¼), an alternating sum of
    e^{w·x_j}/(w^T(w² − ¼)) at x_j = (T − 2j)ε0 − ε; each is the inverse of a power series,
    F(x) = Σ_m 4^{−m}·x^{T+1+2m}/(T+1+2m)! for x > 0.
    """
    with mp.workdps(60 + 2 * times):
        e0, eps = mp.mpf(epsilon0), mp.mpf(epsilon)

        def series(x: mp.mpf) -> mp.mpf:
            term = x ** (times + 1) / mp.factorial(times + 1)
            total, n = mp.mpf(0), times + 1
            while term > total * mp.eps:
                total += term
                term *= x * x / (4 * (n + 1) * (n + 2))
                n += 2
            return total

        delta = mp.mpf(0)
        for j in range(times + 1):
            x = (times - 2 * j) * e0 - eps
            if x <= 0:
                break
            delta += (-1) ** j * mp.binomial(times, j) * series(x)
        if delta <= 0:
            return -math.inf
        scale = mp.exp(-e0 / 2) / (1 - mp.exp(-e0)) / 2
        return float(mp.log(delta) + times * mp.log(2 * scale) - times * mp.log(2) + eps / 2)


# --- zCDP -----------------------------------------------------------------------------------------


def zcdp_epsilon(rho: float, delta: float) -> float:
    """inf over α > 1 of ρα + (ln(1/δ) + (α−1)·ln(1 − 1/α) − ln α)/(α − 1).

    The ε of δ(ε) = inf_α e^{(α−1)(αρ−ε)}/(α−1)·(1−1/α)^α (Canonne-Kamath-Steinke 2020).
    """

    def bound(u: float) -> float:
        over = math.exp(u)
        alpha = 1 + over
        return rho * alpha + (
            -math.log(delta) - math.log(over) + alpha * (u - math.log1p(over))
        ) / over  # fmt: skip

    grid = np.linspace(-20, 30, 501)
    at = float(grid[int(np.argmin([bound(u) for u in grid]))])
    found = minimize_scalar(
        bound, bounds=(at - 0.2, at + 0.2), method="bounded", options={"xatol": 1e-9}
    )
    return max(0.0, float(found.fun))
