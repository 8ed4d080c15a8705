"""Privacy noise, and samples as secret as it: the only module that touches OpenDP.

Integers go *into* OpenDP's exact discrete samplers; nothing is drawn at zero and added to a float.
The samplers use a cryptographic source and take no seed. For tests of everything that comes after the
noise `understudy.testing` has others; what they produce is stamped NOT PRIVATE.
"""

from __future__ import annotations

import math
import secrets
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Floats, Whole
from understudy.errors import PrivacyError

GRAIN = 8
"""Sums with rounded noise come as multiples of σ/8; that adds 0.07 % to the noise."""

LAW = 2.0**-38
"""A bound on |ln(P'/P)| for every value of one coordinate of `rounded`: P' its law as drawn, P the law
of exact Gaussian noise, rounded."""

_PAIRS = 8192
"""Normal numbers are drawn in blocks of so many pairs, which stay in a processor's cache."""

_WHEEL = np.exp(2j * np.pi * np.fft.fftfreq(4096))

Integers = Whole


class Noise(ABC):
    """Three mechanisms on exact integers, and quicker ways to two of them where a source has any."""

    private: bool
    """Whether the noise protects anyone."""

    @abstractmethod
    def laplace(self, values: Integers, scale: float) -> Integers:
        """values + Z, P(z) ∝ exp(−|z|/scale), independent per coordinate."""

    @abstractmethod
    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """values + Z, P(z) ∝ exp(−z²/2σ²) on the integers, independent per coordinate."""

    @abstractmethod
    def top_k(self, scores: Integers, scale: float, k: int) -> tuple[int, ...]:
        """Indices of the k largest scores after one draw of Gumbel(scale) each, in order."""

    @abstractmethod
    def below(self, number: int) -> int:
        """A whole number from 0 to `number` − 1, uniformly."""

    def picks(self, scores: Integers, scale: float, draws: int) -> tuple[int, ...]:
        """`draws` independent picks, each that of `top_k(scores, scale, 1)`."""
        return tuple(self.top_k(scores, scale, 1)[0] for _ in range(draws))

    def to_be_rounded(self, values: Integers, sigma: float) -> Integers:
        """values + Z for `rounded`; exact discrete noise, whose rounding is post-processing too."""
        return self.gaussian(values, sigma)


def rounded(noise: Noise, values: Integers, sigma: float) -> Integers:
    """⌊(values + σ·z)/w⌉ with w = σ/`GRAIN` and z standard normal, independent per coordinate.

    For the many coordinates of gradients, where an exact discrete sampler would take a second a step.
    With exact z this is post-processing of the Gaussian mechanism, at its cost: values are whole, so
    whole noise is noise rounded together with them. z is drawn by Box and Muller's formula, z = √s·c
    with s = −2 ln u and c the cosine or sine of an angle, in float64 from cryptographic words of 64
    bits, of 127 where the logarithm is large. Then |s' − s| ≤ 2^−50·(1 + s) and |c' − c| ≤ 2^−51. For
    every angle, z ≤ b is a statement about s, whose density is ½·e^{−s/2}: the first error changes its
    chance by at most 2^−46·φ(b) for |b| ≤ 13, φ the normal density; the second moves z by at most
    13.4·2^−51. So a chance is off by no more than if b had moved by 2^−45. A cell of the grid is 1/8
    wide in units of z, and φ changes by at most e^{13/8} across it: the mass of a cell changes by a
    factor of at most 1 ± 2·2^−45·8·e^{13/8}, which `LAW` covers. Beyond 13 lies less than e^−86 of it.
    """
    array, scale = integers(values), finite(sigma)
    if scale > 2**57:
        raise PrivacyError(f"a noise scale of {scale:g} does not fit 64 bits")
    steps = noise.to_be_rounded(array, scale).astype(np.float64)
    steps *= GRAIN / scale
    return np.rint(steps, out=steps).astype(np.int64).reshape(np.shape(values))


def _normals(size: int) -> Floats:
    """`size` standard normal numbers from cryptographic words."""
    found = np.empty(-(-size // (2 * _PAIRS)) * _PAIRS, np.complex128)
    for start in range(0, found.size, _PAIRS):
        _draw_pairs(found[start : start + _PAIRS])
    return found.view(np.float64)[:size]


def _random(count: int) -> bytes:
    """Cryptographic bytes; OpenSSL's are the fastest at hand, and loaded where noise is drawn."""
    from ssl import RAND_bytes

    return RAND_bytes(count)


def _draw_pairs(pairs: NDArray[np.complex128]) -> None:
    words = _words(2 * _PAIRS)
    radii, turns = (words[:_PAIRS] >> 1).view(np.int64), words[_PAIRS:]
    uniform = (radii + 0.5) * 2.0**-63
    small = np.flatnonzero(radii < 2**52)
    if small.size:  # one in 2048: more bits, so that the tail is as fine as the rest
        uniform[small] = (radii[small] + (_words(small.size) + 0.5) * 2.0**-64) * 2.0**-63
    # A turn is a spoke of the wheel and a small angle, whose series end where float64 does.
    angles = (turns & (2**52 - 1)).view(np.int64) * (2 * np.pi * 2.0**-64)
    squares = angles * angles
    pairs.real = 1 - squares * (1 / 2 - squares * (1 / 24 - squares * (1 / 720)))
    pairs.imag = angles * (1 - squares * (1 / 6 - squares * (1 / 120)))
    pairs *= _WHEEL[turns.view(np.int64) >> 52]
    pairs *= np.sqrt(-2.0 * np.log(uniform))


def _words(count: int) -> NDArray[np.uint64]:
    """Words of 64 bits from OpenSSL's generator (AES in counter mode, seeded by the system)."""
    return np.frombuffer(_random(8 * count), np.uint64)


def poisson(noise: Noise, rows: int, rate: float) -> Integers:
    """The rows of a Poisson sample, each taken by itself with probability `rate` exactly.

    Which rows were taken is as secret as the noise, and comes from the same kind of source.
    """
    below = int(rate * 2**32)
    if below == 2**32:
        return np.arange(rows)
    if noise.private:
        words = np.frombuffer(_random(4 * rows), np.uint32)
    else:
        words = np.array([noise.below(2**32) for _ in range(rows)], np.uint32)
    return np.flatnonzero(words < below)


def integers(values: Integers) -> Integers:
    """In one row; anything but whole numbers of 64 bits is refused."""
    array = np.ascontiguousarray(values).reshape(-1)
    if array.dtype != np.int64:
        raise PrivacyError(f"noise is added to int64 values only, got {array.dtype}")
    return array


def finite(value: float) -> float:
    """A scale of zero would switch the noise off; nothing falsy or infinite may pass."""
    scale = float(value)
    if not (math.isfinite(scale) and scale > 0):
        raise PrivacyError(f"a noise scale of {scale} is not a finite number above 0")
    return scale


class OpenDPNoise(Noise):
    """The real source: OpenDP's exact samplers, from a cryptographic generator.

    OpenDP has these measurements under its flag `contrib`: it publishes proofs for most of them and has
    not vetted all. We rely on them as they are, and test their laws.
    """

    private = True

    def __init__(self) -> None:
        # Not opendp.prelude, which also imports whatever data frames are installed.
        from opendp import combinators, domains, measurements, measures, metrics, mod

        mod.enable_features("contrib")
        integers = domains.vector_domain(domains.atom_domain(T="i64"))
        self._with_l1 = integers, metrics.l1_distance(T="i64")
        self._with_l2 = integers, metrics.l2_distance(T="f64")
        self._scored = (
            integers,
            metrics.linf_distance(T="i64"),
            measures.zero_concentrated_divergence(),
        )
        self._make: Any = measurements
        self._composed: Any = combinators.make_composition
        # Methods draw thousands of times with one scale; a measurement holds no state.
        self._selection = lru_cache(maxsize=64)(self._make_selection)

    def laplace(self, values: Integers, scale: float) -> Integers:
        """See `Noise.laplace`."""
        noisy = self._make.make_laplace(*self._with_l1, scale=finite(scale))(integers(values))
        return np.asarray(noisy, dtype=np.int64).reshape(np.shape(values))

    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """See `Noise.gaussian`."""
        noisy = self._make.make_gaussian(*self._with_l2, scale=finite(sigma))(integers(values))
        return np.asarray(noisy, dtype=np.int64).reshape(np.shape(values))

    def top_k(self, scores: Integers, scale: float, k: int) -> tuple[int, ...]:
        """See `Noise.top_k`. The zCDP measure is what makes OpenDP use Gumbel noise."""
        array = integers(scores)
        if not 1 <= k <= array.size:
            raise PrivacyError(f"cannot select {k} of {array.size} candidates")
        picked = self._selection(int(k), finite(scale))(array)
        return tuple(int(index) for index in picked)

    def picks(self, scores: Integers, scale: float, draws: int) -> tuple[int, ...]:
        """See `Noise.picks`: one call of a measurement composed of `draws` equal ones.

        A call costs far more than a draw. Composing runs every part on the same scores with noise
        of its own.
        """
        array = integers(scores)
        if draws < 1 or not array.size:
            raise PrivacyError(f"cannot make {draws} picks of {array.size} candidates")
        one = self._selection(1, finite(scale))
        found = self._composed([one] * int(draws))(array)
        return tuple(int(index) for (index,) in found)

    def below(self, number: int) -> int:
        """See `Noise.below`."""
        return secrets.randbelow(number)

    def to_be_rounded(self, values: Integers, sigma: float) -> Integers:
        """values + Gaussian noise in whole numbers; see `rounded`. Not OpenDP's: it is too many."""
        normals = _normals(values.size)
        normals *= sigma
        return values + np.rint(normals, out=normals).astype(np.int64)

    def _make_selection(self, k: int, scale: float) -> Any:
        return self._make.make_noisy_top_k(*self._scored, k=k, scale=scale)
