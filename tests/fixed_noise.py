"""The noise of a test is fixed by its name, so that a test fails for a reason and not by chance.

The law of the real source is tested where it is the subject (`real_noise`); there the thresholds carry
their arithmetic. Everywhere else `OpenDPNoise` draws from a seeded source, and Poisson samples and keys
that nobody gave come from another. Tests in processes of their own draw real noise, and assert nothing
about it.
"""

import random
import secrets
from collections.abc import Callable
from typing import Any
from zlib import crc32

from understudy.privacy import noise as noise_module
from understudy.privacy.noise import OpenDPNoise
from understudy.testing import SeededNoise

_METHODS = ("laplace", "gaussian", "top_k", "picks", "below", "to_be_rounded")
_REAL: dict[str, Callable[..., Any]] = {name: getattr(OpenDPNoise, name) for name in _METHODS}
_real_bits = secrets.randbits
_real_bytes = noise_module._random
_seeded: SeededNoise | None = None
_keys: random.Random | None = None


def begin(name: str | None) -> tuple[Any, Any]:
    """From now on noise is that of `name`, or with None the real one; what was before, for `resume`."""
    global _seeded, _keys
    before = _seeded, _keys
    _seeded, _keys = (None, None) if name is None else _sources(crc32(name.encode()))
    return before


def resume(before: tuple[Any, Any]) -> None:
    global _seeded, _keys
    _seeded, _keys = before


def install() -> None:
    """Once, before any test."""
    for name in _METHODS:
        setattr(OpenDPNoise, name, _either(name))
    secrets.randbits = lambda k: _real_bits(k) if _keys is None else _keys.getrandbits(k)
    noise_module._random = lambda n: _real_bytes(n) if _keys is None else _keys.randbytes(n)


def _sources(seed: int) -> tuple[SeededNoise, random.Random]:
    return SeededNoise(seed), random.Random(seed)


def _either(name: str) -> Callable[..., Any]:
    def draw(self: OpenDPNoise, *arguments: Any, **named: Any) -> Any:
        if _seeded is None:
            return _REAL[name](self, *arguments, **named)
        return getattr(_seeded, name)(*arguments, **named)

    draw.__name__, draw.__doc__ = name, _REAL[name].__doc__
    return draw
