"""Privacy noise: the only module that touches OpenDP.

Integers go *into* OpenDP's exact discrete samplers; nothing is drawn at zero and added to a float.
The samplers use a cryptographic source and take no seed. `SeededNoise` exists for tests of
everything that comes after the noise; what it produces is stamped NOT PRIVATE.
"""

from __future__ import annotations

import math
import secrets
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import PrivacyError

__all__ = ["Noise", "OpenDPNoise", "SeededNoise", "picks"]

Integers = NDArray[np.int64]


class Noise(Protocol):
    """Three mechanisms on exact integers."""

    @property
    def private(self) -> bool:
        """Whether the noise protects anyone."""
        ...

    def laplace(self, values: Integers, scale: float) -> Integers:
        """values + Z, P(z) ∝ exp(−|z|/scale), independent per coordinate."""
        ...

    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """values + Z, P(z) ∝ exp(−z²/2σ²) on the integers, independent per coordinate."""
        ...

    def top_k(self, scores: Integers, scale: float, k: int) -> tuple[int, ...]:
        """Indices of the k largest scores after one draw of Gumbel(scale) each, in order."""
        ...

    def below(self, number: int) -> int:
        """A whole number from 0 to `number` − 1, uniformly."""
        ...


def picks(noise: Noise, scores: Integers, scale: float, draws: int) -> tuple[int, ...]:
    """`draws` independent picks, each that of `noise.top_k(scores, scale, 1)`.

    A source that has a quicker way to the same law says so by a method `picks`.
    """
    own = getattr(noise, "picks", None)
    if own is not None:
        return own(scores, scale, draws)
    return tuple(noise.top_k(scores, scale, 1)[0] for _ in range(draws))


def _integers(values: Integers) -> Integers:
    array = np.ascontiguousarray(values).reshape(-1)
    if array.dtype != np.int64:
        raise PrivacyError(f"noise is added to int64 values only, got {array.dtype}")
    return array


def _scale(value: float) -> float:
    """A scale of zero would switch the noise off; nothing falsy or infinite may pass."""
    scale = float(value)
    if not (math.isfinite(scale) and scale > 0):
        raise PrivacyError(f"a noise scale of {scale} is not a finite number above 0")
    return scale


class OpenDPNoise:
    """The real source: OpenDP's samplers with proofs, from a cryptographic generator."""

    private = True

    def __init__(self) -> None:
        from importlib import import_module

        self._dp: Any = import_module("opendp.prelude")
        self._dp.enable_features("contrib")
        self._scored: Any = None
        # Methods draw thousands of times with one scale; a measurement holds no state.
        self._selection = lru_cache(maxsize=64)(self._make_selection)

    def laplace(self, values: Integers, scale: float) -> Integers:
        """See `Noise.laplace`."""
        dp = self._dp
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
        noisy = dp.m.make_laplace(*space, scale=_scale(scale))(_integers(values))
        return np.asarray(noisy, dtype=np.int64).reshape(np.shape(values))

    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """See `Noise.gaussian`."""
        dp = self._dp
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
        noisy = dp.m.make_gaussian(*space, scale=_scale(sigma))(_integers(values))
        return np.asarray(noisy, dtype=np.int64).reshape(np.shape(values))

    def top_k(self, scores: Integers, scale: float, k: int) -> tuple[int, ...]:
        """See `Noise.top_k`. The zCDP measure is what makes OpenDP use Gumbel noise."""
        array = _integers(scores)
        if not 1 <= k <= array.size:
            raise PrivacyError(f"cannot select {k} of {array.size} candidates")
        picked = self._selection(int(k), _scale(scale))(array)
        return tuple(int(index) for index in picked)

    def picks(self, scores: Integers, scale: float, draws: int) -> tuple[int, ...]:
        """See `picks`: one call of a measurement composed of `draws` equal ones.

        A call costs far more than a draw. Composing runs every part on the same scores with noise
        of its own.
        """
        array = _integers(scores)
        if draws < 1 or not array.size:
            raise PrivacyError(f"cannot make {draws} picks of {array.size} candidates")
        one = self._selection(1, _scale(scale))
        found = self._dp.c.make_composition([one] * int(draws))(array)
        return tuple(int(index) for (index,) in found)

    def below(self, number: int) -> int:
        """See `Noise.below`."""
        return secrets.randbelow(number)

    def _make_selection(self, k: int, scale: float) -> Any:
        dp = self._dp
        if self._scored is None:
            integers = dp.vector_domain(dp.atom_domain(T="i64"))
            self._scored = integers, dp.linf_distance(T="i64"), dp.zero_concentrated_divergence()
        return dp.m.make_noisy_top_k(*self._scored, k=k, scale=scale)


class SeededNoise:
    """For tests only: repeatable noise of the same shape. Releases made with it are NOT PRIVATE."""

    private = False

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def laplace(self, values: Integers, scale: float) -> Integers:
        """A difference of geometric variables: the discrete Laplace law, from float arithmetic."""
        array = _integers(values)
        p = -np.expm1(-1.0 / _scale(scale))
        z = self._rng.geometric(p, array.size) - self._rng.geometric(p, array.size)
        return (array + z).reshape(np.shape(values))

    def gaussian(self, values: Integers, sigma: float) -> Integers:
        """A discrete Gaussian by inversion on ±12σ, in float arithmetic."""
        array, sigma = _integers(values), _scale(sigma)
        reach = int(np.ceil(12 * sigma)) + 1
        support = np.arange(-reach, reach + 1)
        law = np.exp(-(support.astype(float) ** 2) / (2 * sigma * sigma))
        cdf = np.cumsum(law) / law.sum()
        z = support[np.searchsorted(cdf, self._rng.random(array.size)).clip(0, support.size - 1)]
        return (array + z).reshape(np.shape(values))

    def top_k(self, scores: Integers, scale: float, k: int) -> tuple[int, ...]:
        """Gumbel top-k in float arithmetic."""
        array = _integers(scores)
        if not 1 <= k <= array.size:
            raise PrivacyError(f"cannot select {k} of {array.size} candidates")
        noisy = array + self._rng.gumbel(scale=_scale(scale), size=array.size)
        return tuple(int(i) for i in np.argsort(-noisy, kind="stable")[:k])

    def below(self, number: int) -> int:
        """Uniform; numbers beyond 2^63 lose their lowest bits, which no test minds."""
        if number <= 2**63:
            return int(self._rng.integers(number))
        return int(self._rng.random() * number)
