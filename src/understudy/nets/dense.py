"""A critic of dense layers, and the factors of its gradients, row by row.

    f(x) = W_L φ(… φ(W_1 x + b_1) …) + b_L,   φ the leaky rectifier,

without normalisation, which would tie rows to each other. A layer's gradient for one row is a ⊗ δ:
what goes in and what comes back. `factors` returns both for every layer, so that norms and clipped sums
need no gradient of a single row (`understudy.nets.clipping`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

__all__ = ["Critic", "Layers", "Loss"]

Layers = tuple[tuple[Array, Array], ...]
"""(weights (inputs, outputs), biases (outputs,)) of every layer."""

_SLOPE = 0.2


class Loss(StrEnum):
    """What a critic with one output maximises, as losses of real and made-up rows."""

    WASSERSTEIN = "wasserstein"
    """E f(x) − E f(G(z)), with weights kept in a box (Arjovsky et al. 2017)."""
    SATURATING_NOT = "non-saturating"
    """E ln D(x) + E ln(1 − D(G(z))), D = σ(f); the generator maximises E ln D(G(z))."""

    def real(self, scores: Array) -> Array:
        """The critic's loss of real rows."""
        return -scores if self is Loss.WASSERSTEIN else jax.nn.softplus(-scores)

    def fake(self, scores: Array) -> Array:
        """The critic's loss of made-up rows."""
        return scores if self is Loss.WASSERSTEIN else jax.nn.softplus(scores)

    def generator(self, scores: Array) -> Array:
        """The generator's loss of its rows."""
        return self.real(scores)


@dataclass(frozen=True)
class Critic:
    """Sizes from the features to the outputs; hashable."""

    sizes: tuple[int, ...]

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """(inputs, outputs) of every layer."""
        return tuple(pairwise(self.sizes))

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        return sum((i + 1) * o for i, o in self.layers)

    def init(self, key: Array) -> Layers:
        """Weights of variance 2/inputs (He et al. 2015), the last layer's 1/inputs; no biases."""
        keys = jax.random.split(key, len(self.layers))
        made: list[tuple[Array, Array]] = []
        for number, (inputs, outputs) in enumerate(self.layers):
            gain = 1.0 if number == len(self.layers) - 1 else 2.0
            spread = (gain / inputs) ** 0.5
            weights = spread * jax.random.normal(keys[number], (inputs, outputs), jnp.float32)
            made.append((weights, jnp.zeros(outputs, jnp.float32)))
        return tuple(made)

    def scores(self, layers: Layers, features: Array) -> Array:
        """(B, outputs)."""
        hidden = features
        for weights, biases in layers[:-1]:
            hidden = jax.nn.leaky_relu(hidden @ weights + biases, _SLOPE)
        return hidden @ layers[-1][0] + layers[-1][1]

    def factors(self, layers: Layers, features: Array, loss: Loss) -> list[tuple[Array, Array]]:
        """(a, δ) of every layer for the loss of real rows."""
        inputs, signs = [features], []
        for weights, biases in layers[:-1]:
            before = inputs[-1] @ weights + biases
            signs.append(jnp.where(before >= 0, 1.0, _SLOPE).astype(features.dtype))
            inputs.append(before * signs[-1])
        scores = inputs[-1] @ layers[-1][0] + layers[-1][1]
        back = jax.grad(lambda f: loss.real(f).sum())(scores)
        deltas = [back]
        for number in range(len(layers) - 1, 0, -1):
            back = (back @ layers[number][0].T) * signs[number - 1]
            deltas.append(back)
        return list(zip(inputs, deltas[::-1], strict=True))

    def join(self, flat: NDArray[np.float32] | Array) -> Layers:
        """Layers from one vector: layer after layer, a layer's biases last."""
        made: list[tuple[Array, Array]] = []
        at = 0
        for inputs, outputs in self.layers:
            weights = flat[at : at + inputs * outputs].reshape(inputs, outputs)
            at += inputs * outputs
            made.append((jnp.asarray(weights), jnp.asarray(flat[at : at + outputs])))
            at += outputs
        return tuple(made)

    def flat(self, layers: Sequence[tuple[Array, Array]]) -> Array:
        """The reverse of `join`."""
        return jnp.concatenate([part.reshape(-1) for layer in layers for part in layer])
