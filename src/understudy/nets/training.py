"""Training a generator on released tables.

What is minimised is the data player's loss over all tables j that were released,

    Σ_j Σ_cells [(m − y)²/(2e) + λ(m·ln(m/b) − m + b)]  +  λ·(1/B) Σ_b Σ_i KL(p_i^b ‖ q_i),

m the mixture's own table, y what was measured, b what was expected of it and e the ratio of noise to
prior variance of a cell (that which it is believed to have around b, see `understudy.models.fitting`),
all of them shares. A table is believed as far as it shows something beyond noise. The last term, q_i
the columns, is at least the relative entropy of the mixture to independent columns (convexity): it
keeps products wide, so that long training makes up no dependence that nobody measured. Columns are
held to their estimates by Σ (m − y)²/y.

Adam, with a rate that rises for a twentieth of the steps and falls along a cosine; the latents are
trained with the weights (a fixed batch of them *is* the mixture). Steps run in compiled stretches;
after each the loss, a function of released numbers, is looked at: where it is no number, training ends
with the last stretch that was good. Deterministic given its arguments on one kind of device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.typing import NDArray

from understudy.nets.generator import Generator, Params
from understudy.nets.tables import Layout, Pass, Table

__all__ = ["Effort", "Evidence", "Mixture", "Trained", "start", "train"]

Float = NDArray[np.float64]
Report = Callable[[int, int, float], None]
"""report(step, steps, loss)."""

_STRETCH = 50
_COLUMNS = 10.0
"""Weight of the columns, which are known best."""
_TABLES = 0.3
"""Weight of what was expected of a table."""
_LEAST = 1e-4
"""Shares below this are held no closer than this one."""
_TINY = 1e-9
_ADAM = optax.scale_by_adam(b2=0.99)


@dataclass(frozen=True, eq=False, slots=True)
class Evidence:
    """A released table in shares: what was seen, what independence expects, and e of a cell."""

    table: Table
    values: Float
    expected: Float
    ratio: Float


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to train. `rate` is the highest learning rate."""

    steps: int = 1000
    rate: float = 0.02
    spread: float = 0.3
    """Weight of the pull towards independent columns."""
    memory: float = math.inf
    """Refuse nothing, but take the batch in slices that keep within about so many bytes."""


@dataclass(frozen=True, eq=False, slots=True)
class Mixture:
    """A generator with trained parameters and latents: one product distribution per latent."""

    generator: Generator
    params: Params
    latents: Array

    def heads(self) -> list[Float]:
        """One (B, size) array of probabilities per column, each row summing to one."""
        flat = _heads(self.generator, self.params, self.latents)
        parts = [np.asarray(part, np.float64) for part in self.generator.split(flat)]
        return [part / part.sum(axis=1, keepdims=True) for part in parts]


@dataclass(frozen=True, eq=False, slots=True)
class Trained:
    """What training ended with; `diverged` says that it ended early, with the last good state."""

    mixture: Mixture
    loss: float
    steps: int
    diverged: bool = False


def start(
    generator: Generator, batch: int, key: int, shares: Sequence[Float] | None = None
) -> Mixture:
    """Fresh parameters and latents from an integer key; heads about at `shares`."""
    weights, noise = jax.random.split(jax.random.key(key % 2**32))
    return Mixture(generator, generator.init(weights, shares), generator.latents(noise, batch))


def train(
    mixture: Mixture,
    columns: Sequence[Float],
    evidence: Sequence[Evidence],
    effort: Effort,
    report: Report | None = None,
) -> Trained:
    """Fit the mixture to released tables; `columns` are the estimated shares of every column."""
    told = _told(mixture.generator, evidence, effort)
    flat = jnp.asarray(np.concatenate(columns), jnp.float32)
    stretches = max(1, round(effort.steps / _STRETCH))
    state: Any = {"params": mixture.params, "latents": mixture.latents}
    moments = _ADAM.init(state)
    plan = jnp.asarray([effort.rate, stretches * _STRETCH, effort.spread], jnp.float32)
    good, last = state, math.nan
    for k in range(stretches):
        first = jnp.int32(k * _STRETCH)
        state, moments, losses = _stretch(
            mixture.generator, state, moments, told, flat, first, plan
        )
        seen = float(jnp.mean(losses))
        if not math.isfinite(seen) or not _finite(state):
            kept = Mixture(mixture.generator, good["params"], good["latents"])
            return Trained(kept, last, k * _STRETCH, diverged=True)
        good, last = state, seen
        if report is not None:
            report((k + 1) * _STRETCH, stretches * _STRETCH, last)
    return Trained(
        Mixture(mixture.generator, good["params"], good["latents"]), last, stretches * _STRETCH
    )


class _Told(NamedTuple):
    """All released tables in one vector: the pass that computes them, y, b and e of every cell."""

    once: Pass
    values: Array
    expected: Array
    ratio: Array


def _told(generator: Generator, evidence: Sequence[Evidence], effort: Effort) -> _Told | None:
    if not evidence:
        return None
    layout = Layout(generator.shape, tuple(e.table for e in evidence), _entries(effort))
    values, expected, ratio = (
        layout.arrange(each)
        for each in zip(*((e.values, e.expected, e.ratio) for e in evidence), strict=True)
    )
    least = np.float32(_TINY)
    told = _Told(layout.once, values, np.maximum(expected, least), np.maximum(ratio, least))
    return jax.device_put(told)


def _loss(
    generator: Generator, state: Any, told: _Told | None, columns: Array, spread: Array
) -> Array:
    flat = generator.probabilities(state["params"], state["latents"])
    total = _COLUMNS * ((flat.mean(axis=0) - columns) ** 2 / (columns + _LEAST)).sum()
    far = flat * jnp.log(jnp.maximum(flat, _TINY) / jnp.maximum(columns, _TINY))
    total += spread * far.sum() / flat.shape[0]
    if told is None:
        return total
    m, b = told.once.marginals(flat), told.expected
    away = m * jnp.log(jnp.maximum(m, _TINY) / b) - m + b
    return total + ((m - told.values) ** 2 / (2 * told.ratio) + _TABLES * away).sum()


@partial(jax.jit, static_argnums=0)
def _stretch(
    generator: Generator,
    state: Any,
    moments: Any,
    told: _Told | None,
    columns: Array,
    first: Array,
    plan: Array,
) -> tuple[Any, Any, Array]:
    """`_STRETCH` steps from `first` on, by a `plan` (rate, steps, spread); compiled once per size."""

    def step(carry: tuple[Any, Any], number: Array) -> tuple[tuple[Any, Any], Array]:
        held, kept = carry
        loss = partial(_loss, generator)
        value, gradient = jax.value_and_grad(loss)(held, told, columns, plan[2])
        updates, kept = _ADAM.update(gradient, kept)
        rate = _rate(number, plan)
        return (jax.tree.map(lambda x, u: x - rate * u, held, updates), kept), value

    numbers = first + jnp.arange(_STRETCH)
    (state, moments), losses = jax.lax.scan(step, (state, moments), numbers)
    return state, moments, losses


def _rate(number: Array, plan: Array) -> Array:
    """Rising for a twentieth of the steps, then falling along a cosine to a hundredth."""
    rate, steps = plan[0], plan[1]
    rise = steps / 20
    share = jnp.clip((number - rise) / (steps - rise), 0.0, 1.0)
    return rate * jnp.minimum((number + 1) / rise, 0.505 + 0.495 * jnp.cos(jnp.pi * share))


@partial(jax.jit, static_argnums=0)
def _heads(generator: Generator, params: Params, latents: Array) -> Array:
    return generator.probabilities(params, latents)


@jax.jit
def _all_finite(state: Any) -> Array:
    return jnp.stack([jnp.isfinite(x).all() for x in jax.tree.leaves(state)]).all()


def _finite(state: Any) -> bool:
    return bool(_all_finite(state))


def _entries(effort: Effort) -> int:
    """An eighth of the memory for an array of batch × leads: factors and gradients are as large."""
    return int(min(effort.memory / 8, 8e8) / 4)
