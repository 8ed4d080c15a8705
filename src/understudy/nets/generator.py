"""A generator of records: latent noise in, one categorical distribution per column out.

The network is a multilayer perceptron with residual blocks,

    h₀ = W z + b,    h ← h + V relu(U norm(h) + b) + c,    logits = A norm(h) + a,

and one softmax per column ("head"), S = Σ shape outputs in all, side by side in column order. A latent
z stands for a *product* distribution over records, and a batch of latents for a mixture of products,
whose marginals are exact averages over the batch (`understudy.nets.tables`). Three ways to read it:

    probabilities   (B, S)  the heads themselves; exact, differentiable
    relaxed         (B, S)  Gumbel-softmax: nearly one-hot rows, differentiable, for critics that are
                            not multilinear in the columns (Jang et al. 2017, Maddison et al. 2017)
    codes           (B, d)  hard records, what is released
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from understudy._types import Floats

Params = dict[str, Any]
"""A pytree of float32 arrays: {"in": …, "blocks": [...], "heads": …}."""

_EPSILON = 1e-6
# The heads start small, so that every latent starts at about the distribution of the biases.
_HEADS = 0.1


@dataclass(frozen=True, slots=True)
class Generator:
    """The architecture; hashable, so that jitted functions may take it as a static argument."""

    shape: tuple[int, ...]
    latent: int = 64
    width: int = 256
    blocks: int = 2

    @property
    def outputs(self) -> int:
        """S, the number of one-hot columns."""
        return sum(self.shape)

    def init(self, key: Array, shares: Sequence[Floats] | None = None) -> Params:
        """Fresh parameters. With `shares`, one table per column, the heads start about there."""
        *inside, first, last = jax.random.split(key, self.blocks + 2)
        keys = [each for pair in inside for each in jax.random.split(pair)]
        draws = zip([*keys, first, last], self.sizes, strict=True)
        return self.filled([jax.random.normal(k, size, jnp.float32) for k, size in draws], shares)

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Of all weights: two for every block, then those of the latents and of the heads."""
        inside = [(self.width, self.width)] * (2 * self.blocks)
        return [*inside, (self.latent, self.width), (self.width, self.outputs)]

    def filled(self, draws: Sequence[Array], shares: Sequence[Floats] | None = None) -> Params:
        """Parameters from normal numbers of these `sizes`."""
        bias = jnp.zeros(self.outputs)
        if shares is not None:
            flat = np.concatenate([np.maximum(s, 1e-7) / np.sum(s) for s in shares])
            bias = jnp.asarray(np.log(flat), jnp.float32)
        *inside, first, heads = draws
        blocks = [
            {"inner": _dense(inner), "outer": _dense(outer)}
            for inner, outer in zip(inside[::2], inside[1::2], strict=True)
        ]
        last = {"w": _dense(heads, _HEADS)["w"], "b": bias}
        return {"in": _dense(first), "blocks": blocks, "heads": last}

    def latents(self, key: Array, batch: int) -> Array:
        """(batch, latent) normal numbers. Kept fixed, they make a mixture of `batch` products."""
        return jax.random.normal(key, (batch, self.latent), jnp.float32)

    def logits(self, params: Params, z: Array) -> Array:
        """(B, S), before the softmax of every column."""
        h = _apply(params["in"], z)
        for block in params["blocks"]:
            h = h + _apply(block["outer"], jax.nn.relu(_apply(block["inner"], _normed(h))))
        return _apply(params["heads"], _normed(h))

    def probabilities(self, params: Params, z: Array) -> Array:
        """(B, S): in every row the heads, each summing to one."""
        return self.softmax(self.logits(params, z))

    def softmax(self, logits: Array) -> Array:
        """One softmax per column."""
        return jnp.concatenate([jax.nn.softmax(part, axis=-1) for part in self.split(logits)], -1)

    def log_softmax(self, logits: Array) -> Array:
        """The logarithms of the heads."""
        parts = [jax.nn.log_softmax(part, axis=-1) for part in self.split(logits)]
        return jnp.concatenate(parts, axis=-1)

    def relaxed(self, params: Params, z: Array, key: Array, *, temperature: float) -> Array:
        """(B, S): softmax((logits + Gumbel)/temperature) per column; one-hot as it falls to 0."""
        logits = self.logits(params, z)
        noise = jax.random.gumbel(key, logits.shape, logits.dtype)
        return self.softmax((logits + noise) / temperature)

    def codes(self, params: Params, z: Array, key: Array) -> Array:
        """(B, d) int32: one record per latent, every column drawn from its head."""
        return self._drawn(self.logits(params, z), key)

    def hard(self, logits: Array, key: Array) -> Array:
        """(B, S): the same records as zeros and ones, from logits or logarithms of heads."""
        return one_hot(self.shape, self._drawn(logits, key))

    def _drawn(self, logits: Array, key: Array) -> Array:
        noisy = logits + jax.random.gumbel(key, logits.shape, logits.dtype)
        drawn = [jnp.argmax(part, axis=-1) for part in self.split(noisy)]
        return jnp.stack(drawn, axis=-1).astype(jnp.int32)

    def split(self, flat: Array) -> list[Array]:
        """The S last entries, column by column."""
        ends = np.cumsum([0, *self.shape]).tolist()
        return [flat[..., a:b] for a, b in pairwise(ends)]


def one_hot(shape: tuple[int, ...], codes: Array) -> Array:
    """(B, S) zeros and ones for (B, d) codes, laid out like the heads of a generator."""
    parts = [jax.nn.one_hot(codes[..., i], size) for i, size in enumerate(shape)]
    return jnp.concatenate(parts, axis=-1)


def _dense(draws: Array, gain: float = 1.0) -> Params:
    inputs, outputs = draws.shape
    return {"w": gain * np.sqrt(2.0 / inputs) * draws, "b": jnp.zeros(outputs)}


def _apply(layer: Params, x: Array) -> Array:
    return x @ layer["w"] + layer["b"]


def _normed(h: Array) -> Array:
    """Mean 0 and variance 1 across the width."""
    centred = h - h.mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(axis=-1, keepdims=True) + _EPSILON)
