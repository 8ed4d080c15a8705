"""Training a generator on released tables; docs/methods/gem.md has the loss and how it is stopped.

All tables are shares. Columns are held to their estimates by Σ (m − y)²/y, and the pull towards
independent columns, (1/B) Σ_b Σ_i KL(p_i^b ‖ q_i), is at least the relative entropy of the mixture to
them (convexity). With noise held out, training goes on at full rate until the error on that has not
fallen for as many steps as it took to its lowest value, returns to where it was lowest, and takes a
quarter as many steps on everything, at a rate that falls to a hundredth.

Adam; the latents are trained with the weights. Where the loss is no number, training ends with the
last stretch that was good. Deterministic given its arguments on one kind of device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from understudy._types import Floats
from understudy.nets.generator import Generator, Params
from understudy.nets.tables import Layout, Pass, Table

Report = Callable[[int, int, float], None]
"""report(step, steps, loss)."""

_STRETCH = 25
_COLUMNS = 10.0  # Weight of the columns, which are known best
_TABLES = 0.3  # Weight of what was expected of a table
_LEAST = 1e-4  # Shares below this are held no closer than this one
_TINY = 1e-9
_HELD = 0.1
"""f: what is trained on has this much more noise variance, what is held out 1/f times more."""
_LAST = 5  # A fifth of all steps is taken at the end, on everything
_PATIENCE = 200  # Steps without a gain that end the search, at least
_ADAM = optax.scale_by_adam(b2=0.99)
_COMPILE = {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False}
"""No search for the fastest kernels: it takes longer than training, and what it finds varies."""


@dataclass(frozen=True, eq=False, slots=True)
class Evidence:
    """A released table in shares: what was seen, what was expected, and e of a cell."""

    table: Table
    values: Floats
    expected: Floats
    ratio: Floats
    noise: Floats
    """Variance of the noise in a cell of `values`."""
    again: Floats
    """The noise drawn once more; zeros hold nothing out."""


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

    @property
    def state(self) -> dict[str, Any]:
        """What is trained."""
        return {"params": self.params, "latents": self.latents}

    def heads(self) -> list[Floats]:
        """One (B, size) array of probabilities per column, each row summing to one."""
        flat = np.asarray(_heads(self.generator, self.params, self.latents), np.float64)
        parts = np.split(flat, np.cumsum(self.generator.shape)[:-1], axis=1)
        return [part / part.sum(axis=1, keepdims=True) for part in parts]


@dataclass(frozen=True, eq=False, slots=True)
class Trained:
    """Where training is, or ended; loss and held-out error are those of the last stretch.

    `diverged` says that the next one was no number: training ends with the last good state.
    """

    mixture: Mixture
    moments: Any = field(repr=False)
    steps: int = 0
    loss: float = math.nan
    held: float = math.inf
    diverged: bool = False


def start(
    generator: Generator, batch: int, key: int, shares: Sequence[Floats] | None = None
) -> Mixture:
    """Fresh parameters and latents from an integer key; heads about at `shares`."""
    rng = np.random.default_rng(key % 2**32)
    sizes = [*generator.sizes, (batch, generator.latent)]
    *draws, latents = (rng.standard_normal(size, np.float32) for size in sizes)
    filled = jax.jit(lambda numbers: generator.filled(numbers, shares))
    return Mixture(generator, filled(draws), jax.device_put(latents))


def train(
    mixture: Mixture,
    columns: Sequence[Floats],
    evidence: Sequence[Evidence],
    effort: Effort,
    report: Report | None = None,
) -> Trained:
    """Fit the mixture to released tables; `columns` are the estimated shares of every column."""
    generator, flat = mixture.generator, np.concatenate(columns).astype(np.float32)
    told = _told(generator, evidence, effort)
    total, taken = max(1, round(effort.steps / _STRETCH)), 0

    def stretch(point: Trained, told: _Told | None, rates: Floats) -> Trained:
        nonlocal taken
        state, moments, loss, held = _stretch(
            generator,
            point.mixture.state,
            point.moments,
            told,
            flat,
            np.float32(effort.rate * rates),
            np.float32(effort.spread),
        )
        taken += _STRETCH  # also those that are taken back
        if not math.isfinite(loss):
            return replace(point, diverged=True)
        if report is not None:
            report(taken, total * _STRETCH, float(loss))
        steps = point.steps + _STRETCH
        return Trained(Mixture(generator, **state), moments, steps, float(loss), float(held))

    best = here = Trained(mixture, _moments(mixture.state))
    rise = max(1.0, total * _STRETCH / 20)
    for k in range(total - max(1, total // _LAST)):
        rates = np.minimum(1.0, (np.arange(_STRETCH) + k * _STRETCH + 1) / rise)
        here = stretch(here, told and told._replace(values=told.mixed), rates)
        if here.diverged:
            return here
        best = here if here.held < best.held else best
        if here.steps - best.steps >= max(_PATIENCE, best.steps):
            break
    here, last = best, max(1, best.steps // _STRETCH // (_LAST - 1))
    for rates in np.linspace(1.0, 0.01, last * _STRETCH).reshape(last, _STRETCH):
        here = stretch(here, told, rates)
        if here.diverged:
            break
    return here


class _Told(NamedTuple):
    """All released tables as vectors, and the pass that computes them: y, b, e, s², y₁ and y₂."""

    once: Pass
    values: Array
    expected: Array
    ratio: Array
    noise: Array
    mixed: Array
    held: Array


def _told(generator: Generator, evidence: Sequence[Evidence], effort: Effort) -> _Told | None:
    if not evidence:
        return None
    # An eighth of the memory for an array of batch × leads: factors and gradients are as large.
    entries = int(min(effort.memory / 8, 8e8) / 4)
    layout = Layout(generator.shape, tuple(e.table for e in evidence), entries)
    parts = (
        (e.values, np.maximum(e.expected, _TINY), np.maximum(e.ratio, _TINY), e.noise, e.again)
        for e in evidence
    )
    values, expected, ratio, noise, again = map(layout.arrange, zip(*parts, strict=True))
    share = np.float32(math.sqrt(_HELD))
    mixed, held = values + share * again, values - again / share
    vectors = (jnp.asarray(each) for each in (values, expected, ratio, noise, mixed, held))
    return _Told(jax.device_put(layout.once), *vectors)


def _loss(
    generator: Generator, state: Any, told: _Told | None, columns: Array, spread: Array
) -> tuple[Array, Array]:
    """The loss, and the error on what is held out, less a constant."""
    flat = generator.probabilities(state["params"], state["latents"])
    total = _COLUMNS * ((flat.mean(axis=0) - columns) ** 2 / (columns + _LEAST)).sum()
    far = flat * jnp.log(jnp.maximum(flat, _TINY) / jnp.maximum(columns, _TINY))
    total += spread * far.sum() / flat.shape[0]
    if told is None:
        return total, total
    m, b = told.once.marginals(flat), told.expected
    away = m * jnp.log(jnp.maximum(m, _TINY) / b) - m + b
    held = (m * (m - 2 * told.held) / told.noise).sum()
    return total + ((m - told.values) ** 2 / (2 * told.ratio) + _TABLES * away).sum(), held


@partial(jax.jit, static_argnums=0, compiler_options=_COMPILE)
def _stretch(
    generator: Generator,
    state: Any,
    moments: Any,
    told: _Told | None,
    columns: Array,
    rates: Array,
    spread: Array,
) -> tuple[Any, Any, Array, Array]:
    """A step for each of `rates`; compiled once per size.

    Also the mean loss, which is no number where anything that was trained is none, and the mean error
    on what is held out.
    """
    loss = jax.value_and_grad(partial(_loss, generator), has_aux=True)

    def step(carry: tuple[Any, Any], rate: Array) -> tuple[tuple[Any, Any], tuple[Array, Array]]:
        here, kept = carry
        seen, gradient = loss(here, told, columns, spread)
        updates, kept = _ADAM.update(gradient, kept)
        return (jax.tree.map(lambda x, u: x - rate * u, here, updates), kept), seen

    (state, moments), (losses, held) = jax.lax.scan(step, (state, moments), rates)
    finite = jnp.stack([jnp.isfinite(x).all() for x in jax.tree.leaves(state)]).all()
    return state, moments, jnp.where(finite, losses.mean(), jnp.nan), held.mean()


@partial(jax.jit, static_argnums=0, compiler_options=_COMPILE)
def _heads(generator: Generator, params: Params, latents: Array) -> Array:
    return generator.probabilities(params, latents)


_moments = jax.jit(_ADAM.init)
