"""A generator of rows against a critic: pure steps over explicit state, in JAX and optax.

The critic's loss of the made-up rows is computed here; that of the real ones comes in as a *vector*, Σ
of gradients over a sample divided by its expected size: noisy where the rows are private (the question
`NetworkGradient`), exact where they are public. So everything here is post-processing.

A generator's rows are one-hot in the forward pass and Gumbel-softmax in the backward one. Where columns
are to be conditioned on, a latent carries a value of one column, drawn from its released shares, and
the generator is held to it; columns are drawn towards the released shares.

The critic has dense layers, f(x) = W_L φ(… φ(W_1 x + b_1) …) + b_L with φ the leaky rectifier, without
normalisation, which would tie rows to each other. A layer's gradient for one row is a ⊗ δ: what goes in
and what comes back (`Critic.factors`), so that norms and clipped sums need no gradient of a single row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.typing import NDArray

from understudy._types import Floats, Whole
from understudy.errors import WorkError
from understudy.nets.coding import Coding
from understudy.nets.generator import Generator, Params

Report = Callable[[int, int], None]
Layers = tuple[tuple[Array, Array], ...]
"""(weights (inputs, outputs), biases (outputs,)) of every layer."""

_SLOPE = 0.2
_ADAM = optax.scale_by_adam(b1=0.5, b2=0.9)
_HELD = 1.0  # Weight of holding the generator to the value it was conditioned on
_LEAST = 1e-3
_CHUNK = 4096


class Loss(StrEnum):
    """What a critic with one output maximises, as losses of real and made-up rows."""

    WASSERSTEIN = "wasserstein"
    """E f(x) − E f(G(z)), with weights kept in a box (Arjovsky et al. 2017)."""
    SATURATING_NOT = "non-saturating"
    """E ln D(x) + E ln(1 − D(G(z))), D = σ(f); the generator maximises E ln D(G(z))."""

    def real(self, scores: Array) -> Array:
        """The critic's loss of real rows, and the generator's of its own."""
        return -scores if self is Loss.WASSERSTEIN else jax.nn.softplus(-scores)

    def fake(self, scores: Array) -> Array:
        """The critic's loss of made-up rows."""
        return scores if self is Loss.WASSERSTEIN else jax.nn.softplus(scores)


@dataclass(frozen=True)
class Critic:
    """Sizes from the features to the outputs; hashable."""

    sizes: tuple[int, ...]

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """(inputs, outputs) of every layer."""
        return tuple(pairwise(self.sizes))

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
        ends = np.cumsum([size for i, o in self.layers for size in (i * o, o)])[:-1].tolist()
        parts = jnp.split(jnp.asarray(flat), ends)
        layers = zip(parts[::2], parts[1::2], self.layers, strict=True)
        return tuple((weights.reshape(shape), biases) for weights, biases, shape in layers)

    def flat(self, layers: Sequence[tuple[Array, Array]]) -> Array:
        """The reverse of `join`."""
        return jnp.concatenate([part.reshape(-1) for layer in layers for part in layer])


@dataclass(frozen=True)
class Gan:
    """The architecture; hashable, so that steps are compiled once."""

    coding: Coding
    latent: int = 64
    width: int = 128
    blocks: int = 1
    critic_width: int = 128
    critic_layers: int = 2
    loss: Loss = Loss.SATURATING_NOT
    conditioned: bool = True

    @property
    def critic(self) -> Critic:
        """From the features of a row to one score."""
        inner = (self.critic_width,) * self.critic_layers
        return Critic((self.coding.width, *inner, 1))

    @property
    def generator(self) -> Generator:
        """From latents, and the condition, to the logits of all heads."""
        extra = sum(self.coding.heads) if self.conditions else 0
        return Generator(self.coding.heads, self.latent + extra, self.width, self.blocks)

    @property
    def conditions(self) -> bool:
        """Whether latents ask for a value: some column must have several."""
        return self.conditioned and max(self.coding.heads) > 1

    def start(self, key: int, shares: Sequence[Floats]) -> Playing:
        """Fresh networks; the generator starts at independent columns with about these shares."""
        return _start(self, np.uint32(key % 2**32), self.coding.start(shares))


@dataclass(frozen=True)
class Pace:
    """Public constants of training."""

    batch: int = 512
    rate: float = 5e-4
    critic_rate: float = 5e-4
    box: float = 0.05
    """Weights of a Wasserstein critic stay within ±box."""
    shares: float = 10.0
    """Weight of the released shares of columns."""
    average: float = 0.99
    """Weights that are kept are an exponential average over steps."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Playing:
    """Both networks, their optimisers, and the generator's running average."""

    generator: Params
    average: Params
    critic: Layers
    generator_moments: Any
    critic_moments: Any

    @classmethod
    def fresh(cls, generator: Params, critic: Layers) -> Playing:
        """Networks as they are, optimisers at their start."""
        return cls(generator, generator, critic, _ADAM.init(generator), _ADAM.init(critic))


@partial(jax.jit, static_argnums=0)
def _start(gan: Gan, key: Array, biases: Array) -> Playing:
    one, other = jax.random.split(jax.random.key(key))
    params = gan.generator.init(one)
    params["heads"]["b"] = biases
    return Playing.fresh(params, gan.critic.init(other))


@dataclass(frozen=True, eq=False)
class Rows:
    """A critic as rows meet it: the factors of its gradients, `slots` rows at a time."""

    gan: Gan
    critic: Layers
    tables: tuple[NDArray[np.float32], ...]
    slots: int = 256

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """(inputs, outputs) of every layer."""
        return self.gan.critic.layers

    def factors(self, rows: NDArray[Any]) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        """(a, δ) of every layer, each row by itself; always of one shape."""
        features = self.gan.coding.features(self.tables, rows)
        inputs, deltas = _factors(self.gan, self.critic, features)
        pairs = zip((features, *inputs), deltas, strict=True)
        return [(np.asarray(a), np.asarray(d)) for a, d in pairs]


def require_apart(rows: Rows) -> None:
    """A row's factors do not depend on the other rows, bit for bit, on the device that is used.

    What the sensitivity of their sums rests on. Matrix products keep it where shapes are always the
    same; which they do is up to a device's libraries, so made-up rows are looked at: all of them in
    another order, and half of them among others.

    Raises:
        WorkError: They depend on them.
    """
    rng = np.random.default_rng(0)

    def drawn() -> Whole:
        return np.stack([rng.integers(n, size=rows.slots) for n in rows.gan.coding.shape], axis=1)

    codes, order = drawn(), rng.permutation(rows.slots)
    known = np.arange(rows.slots) < (rows.slots + 1) // 2
    mixed = np.where(known[:, None], codes, drawn())
    found = (rows.factors(each) for each in (codes, codes[order], mixed))
    for one, moved, among in zip(*found, strict=True):
        for a, b, c in zip(one, moved, among, strict=True):
            if not ((a[order] == b).all() and (a[known] == c[known]).all()):
                raise WorkError(
                    "on this device a row's gradient depends on the rows beside it, so clipping would "
                    "not bound what one row does; train on the processor: JAX_PLATFORMS=cpu"
                )


@partial(jax.jit, static_argnums=0)
def _factors(gan: Gan, critic: Layers, features: Array) -> tuple[list[Array], list[Array]]:
    """The inputs of all layers but the first, which has the features, and the δ of all."""
    made = gan.critic.factors(critic, features, gan.loss)
    return [a for a, _ in made[1:]], [d for _, d in made]


def _latents(gan: Gan, key: Array, batch: int, biases: Array) -> tuple[Array, Array]:
    """Latents with their condition, and the heads that are conditioned on (B, S) one-hot or 0."""
    noise, column, value = jax.random.split(key, 3)
    z = jax.random.normal(noise, (batch, gan.latent), jnp.float32)
    heads = [h for h, size in enumerate(gan.coding.heads) if size > 1]
    if not gan.conditions:
        return z, jnp.zeros((batch, sum(gan.coding.heads)))
    which = jnp.asarray(heads)[jax.random.randint(column, (batch,), 0, len(heads))]
    asked = jax.nn.one_hot(which, len(gan.coding.heads)) @ gan.coding.owns
    asked = asked * gan.coding.one_hot(biases + jax.random.gumbel(value, (batch, biases.size)))
    return jnp.concatenate([z, asked], axis=1), asked


def _made(
    gan: Gan, params: Params, key: Array, batch: int, biases: Array, temperature: Array
) -> tuple[Array, Array, Array]:
    """(features, logits, what was asked for)."""
    first, second = jax.random.split(key)
    z, asked = _latents(gan, first, batch, biases)
    logits = gan.generator.logits(params, z)
    return gan.coding.seen(gan.coding.relaxed(logits, second, temperature)), logits, asked


@partial(jax.jit, static_argnums=(0, 1))
def critic_step(
    gan: Gan, pace: Pace, state: Playing, real: Array, key: Array, biases: Array, heat: Array
) -> tuple[Playing, Array]:
    """One step against the made-up rows and the given gradient of the real ones; the fake loss.

    `key` is a whole number.
    """
    made = jax.random.fold_in(jax.random.key(key), 0)
    rows, _, _ = _made(gan, state.generator, made, pace.batch, biases, heat)
    rows = jax.lax.stop_gradient(rows)

    def fake(layers: Layers) -> Array:
        return gan.loss.fake(gan.critic.scores(layers, rows)).mean()

    value, gradient = jax.value_and_grad(fake)(state.critic)
    both = jax.tree.map(jnp.add, gradient, gan.critic.join(real))
    updates, moments = _ADAM.update(both, state.critic_moments)
    critic = jax.tree.map(lambda w, u: w - pace.critic_rate * u, state.critic, updates)
    if gan.loss is Loss.WASSERSTEIN:
        critic = jax.tree.map(lambda w: jnp.clip(w, -pace.box, pace.box), critic)
    return replace(state, critic=critic, critic_moments=moments), value


@partial(jax.jit, static_argnums=(0, 1))
def generator_step(
    gan: Gan, pace: Pace, state: Playing, key: Array, biases: Array, heat: Array
) -> tuple[Playing, Array]:
    """One step of the generator; it meets the critic and released shares, no rows."""
    made = jax.random.fold_in(jax.random.key(key), 1)
    targets = jnp.exp(gan.coding.log_softmax(biases[None, :])[0])

    def loss(params: Params) -> tuple[Array, Array]:
        rows, logits, asked = _made(gan, params, made, pace.batch, biases, heat)
        value = gan.loss.real(gan.critic.scores(state.critic, rows)).mean()
        logs = gan.coding.log_softmax(logits)
        mean = jnp.exp(logs).mean(axis=0)
        off = ((mean - targets) ** 2 / (targets + _LEAST)).sum()
        held = -(asked * logs).sum(axis=1).mean()
        return value + pace.shares * off + _HELD * held, value

    (_, value), gradient = jax.value_and_grad(loss, has_aux=True)(state.generator)
    updates, moments = _ADAM.update(gradient, state.generator_moments)
    generator = jax.tree.map(lambda w, u: w - pace.rate * u, state.generator, updates)
    average = jax.tree.map(
        lambda a, w: pace.average * a + (1 - pace.average) * w, state.average, generator
    )
    moved = replace(state, generator=generator, average=average, generator_moments=moments)
    return moved, value


@partial(jax.jit, static_argnums=(0, 4))
def _hard(gan: Gan, params: Params, key: Array, biases: Array, batch: int) -> Array:
    first, second = jax.random.split(jax.random.key(key))
    z, _ = _latents(gan, first, batch, biases)
    return gan.coding.drawn(gan.generator.logits(params, z), second)


def records(
    gan: Gan, params: Params, count: int, key: int, shares: Sequence[Floats]
) -> tuple[Whole, ...]:
    """`count` hard rows, one array of codes per column."""
    biases = gan.coding.start(shares)
    keys = np.random.default_rng(key).integers(2**32, size=max(1, -(-count // _CHUNK)))
    parts = [
        gan.coding.codes(_hard(gan, params, np.uint32(k), biases, _CHUNK), shares) for k in keys
    ]
    return tuple(np.concatenate(column)[:count] for column in zip(*parts, strict=True))


def train_without_privacy(
    gan: Gan,
    pace: Pace,
    state: Playing,
    codes: Sequence[NDArray[Any]],
    shares: Sequence[Floats],
    *,
    steps: int,
    key: int,
    critic_steps: int = 1,
    report: Report | None = None,
) -> Playing:
    """The same steps on rows that need no protection: no clipping, no noise.

    **Protects nobody.** For rows that are public already (a warm start), and as the reference that
    private training is held against. It returns networks; nothing here can write a release. The
    optimisers end as they are: `Playing.fresh` starts them anew.
    """
    rng = np.random.default_rng(key)
    matrix = np.stack([np.asarray(c) for c in codes], axis=1).astype(np.int32)
    tables = gan.coding.tables(shares)
    biases = gan.coding.start(shares)
    keys = rng.integers(2**32, size=steps)
    for step in range(steps):
        heat, number = np.float32(temperature(step, steps)), np.uint32(keys[step])
        rows = matrix[rng.integers(len(matrix), size=pace.batch)]
        real = _public_gradient(gan, state.critic, gan.coding.features(tables, rows))
        state, _ = critic_step(gan, pace, state, real, number, biases, heat)
        if (step + 1) % critic_steps == 0:
            state, _ = generator_step(gan, pace, state, number, biases, heat)
        if report is not None:
            report(step + 1, steps)
    return state


@partial(jax.jit, static_argnums=0)
def _public_gradient(gan: Gan, critic: Layers, features: Array) -> Array:
    """The mean gradient of the critic's loss over public rows, as one vector."""

    def loss(layers: Layers) -> Array:
        return gan.loss.real(gan.critic.scores(layers, features)).mean()

    return gan.critic.flat(jax.grad(loss)(critic))


def public_gradient(rows: Rows, codes: Sequence[NDArray[Any]]) -> NDArray[np.float32]:
    """The mean gradient over rows that anybody may know."""
    matrix = np.stack([np.asarray(c) for c in codes], axis=1)
    features = rows.gan.coding.features(rows.tables, matrix)
    return np.asarray(_public_gradient(rows.gan, rows.critic, features))


def temperature(step: int, steps: int) -> float:
    """Of Gumbel-softmax: from 0.66 down to 0.2."""
    return 0.66 - 0.46 * min(1.0, step / max(1, steps))
