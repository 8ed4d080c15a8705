"""The generator's play: gradient steps against the leader of all critics so far.

The loss of round i is L_i(φ) = −avg_z D_{θ_i}(G_φ(z)). The mean of D_{θ_i} over private rows is
constant in φ and is left out: nothing here has ever seen a row. Critics are linear in θ, so a sum of
past losses is the loss of a sum of past critics, and the leader is a vector (`Past`):

    last     θ_t alone: the best response to the critic just played, what GAN training does
    ftl      Σ_{i≤t} θ_i                              follow the leader
    ftpl     Σ_{i≤t} θ_i, and −⟨σ, φ⟩ in the loss      with fresh exponential noise σ every round
    sftpl    (t/|B|)·Σ_{i∈B} θ_i, and −⟨σ, φ⟩          a batch B of the past, drawn anew every round

The noise makes the play stable; it is no privacy noise. An approximate argmin costs accuracy and
nothing else: no regret bound is claimed for a network, the certificate is measured afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.typing import NDArray

from understudy.errors import WorkError
from understudy.nets.critics import Cells, Objective, Units, best_response
from understudy.nets.generator import Generator, Params

__all__ = [
    "Conjunctions",
    "Diverged",
    "Past",
    "Play",
    "Player",
    "Trained",
    "Truth",
    "duel",
    "key_of",
    "moments_of",
]

Critic = NDArray[np.float32]


class Diverged(WorkError):
    """The loss is not a number any more; what was trained before is still good."""


class Play(StrEnum):
    """What the generator answers to."""

    LAST = "last"
    FTL = "ftl"
    FTPL = "ftpl"
    SFTPL = "sftpl"

    @property
    def perturbed(self) -> bool:
        """Whether the loss has the noise term."""
        return self in (Play.FTPL, Play.SFTPL)


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """All critics so far, and the one that the generator answers to: their sum over their number.

    `total` is the sum of all; `critics` keeps those that the play may still ask for by themselves.
    """

    play: Play
    batch: int = 1
    rounds: int = 0
    critics: tuple[Critic, ...] = ()
    total: Critic | None = None

    def plus(self, critic: NDArray[Any]) -> Past:
        """One more round."""
        critic = np.asarray(critic, np.float32)
        total = critic if self.total is None else np.add(self.total, critic)
        kept = (*self.critics, critic) if self.play is Play.SFTPL else (critic,)
        return Past(self.play, self.batch, self.rounds + 1, kept, total)

    def mean(self) -> Critic:
        """D̄, the average of all critics."""
        assert self.total is not None
        return np.divide(self.total, np.float32(self.rounds))

    def leader(self, rng: np.random.Generator) -> Critic:
        """The critic to answer to."""
        if self.play is Play.LAST:
            return self.critics[-1]
        if self.play is not Play.SFTPL or self.batch >= self.rounds:
            return self.mean()
        chosen = np.sort(rng.permutation(self.rounds)[: self.batch])
        batch = np.stack([self.critics[i] for i in chosen])
        return batch.mean(axis=0, dtype=np.float32)


@dataclass(frozen=True)
class Conjunctions:
    """Features Π_{a} x[l_a], one for each row of literals; `width` literals at most, rows padded.

    Literals are positions in the one-hot code; position S stands for 1.
    """

    capacity: int
    width: int

    def moments(self, heads: Array, literals: Array) -> Array:
        """(Q,): the mean of every conjunction over a mixture of products; exact."""
        padded = jnp.concatenate([heads, jnp.ones((heads.shape[0], 1), heads.dtype)], axis=1)
        product = padded[:, literals[:, 0]]
        for a in range(1, self.width):
            product = product * padded[:, literals[:, a]]
        return product.mean(axis=0)


Features = Cells | Units | Conjunctions


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known of the table: noisy means of the features, all released.

    `noise` is their standard deviation, `weights` what a feature counts.
    """

    features: Cells | Units
    means: NDArray[np.float64]
    noise: NDArray[np.float64]
    weights: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Trained:
    """Parameters, the optimiser's state, and the heads that training began with."""

    params: Params
    moments: Any
    base: Array


@dataclass(frozen=True)
class Player:
    """How a generator is trained; hashable, a static argument of what is jitted.

    `steps` gradient steps of Adam a round with `batch` latents. `anchor` weighs, against the sum of
    the critics, the mean over latents of KL(heads ‖ start), which bounds the divergence of the whole
    mixture from the start: with it "ftl" is follow the regularised leader. `scale` is that of the
    exponential noise of perturbed plays.
    """

    generator: Generator
    steps: int = 1
    batch: int = 512
    anchor: float = 0.0
    scale: float = 0.0
    temperature: float = 0.5

    def start(self, shares: Sequence[NDArray[np.float64]] | None, key: Array) -> Trained:
        """Fresh parameters at the given shares of every column, uniform without."""
        params = self.generator.init(key, shares)
        base = self.generator.softmax(params["heads"]["b"])
        return Trained(params, _ADAM.init(params), base)

    def improve(
        self,
        trained: Trained,
        features: Features,
        critic: Any,
        rate: float,
        rounds: int,
        key: Array,
    ) -> tuple[Trained, float]:
        """A few steps on −⟨θ, ψ̄(φ)⟩ − ⟨σ, φ⟩/t + (anchor/t)·KL, after t = `rounds` rounds.

        Returns what was trained and the loss of the last step, a function of released numbers.

        Raises:
            Diverged: The loss is not a number any more.
        """
        params, moments, loss = _improve(
            self, features, trained, critic, jnp.float32(rate), jnp.float32(1 / rounds), key
        )
        if not bool(jnp.isfinite(loss)):
            raise Diverged(
                f"the generator diverged in round {rounds}: its loss is not a number; a lower rate "
                f"may help"
            )
        return Trained(params, moments, trained.base), float(loss)

    def records(self, trained: Trained, number: int, key: Array) -> NDArray[np.int32]:
        """Hard records (number, d)."""
        return np.asarray(_records(self.generator, number, trained.params, key))


def duel(
    player: Player,
    trained: Trained,
    truth: Truth,
    objective: Objective,
    past: Past,
    rounds: int,
    rate: Callable[[int], float],
    rng: np.random.Generator,
    after: Callable[[int, Trained, float], None],
) -> tuple[Trained, Past]:
    """`rounds` rounds between the exact critic of `truth` and the generator; all post-processing.

    The critic sees a batch of the generator's mixture, answers (`best_response`), and the generator
    plays against the leader. `after(round, trained, worst)` is called after every round, from 1 on;
    `worst` is max |m̃ − ψ̄| of the batch that the critic saw. Differences are held against the noise of m̃
    and of that batch, σ² + |ψ̄|(1 − |ψ̄|)/B: within it a sign says nothing, and large errors go first.
    """
    means, noise, weights = (
        jnp.asarray(each, jnp.float32) for each in (truth.means, truth.noise, truth.weights)
    )
    key = key_of(rng)
    for t in range(1, rounds + 1):
        key, seen, moved = jax.random.split(key, 3)
        critic, worst = _answer(
            player, truth.features, objective, trained.params, means, noise, weights, seen
        )
        past = past.plus(np.asarray(critic))
        trained, _ = player.improve(trained, truth.features, past.leader(rng), rate(t), t, moved)
        after(t, trained, float(worst))
    return trained, past


def key_of(rng: np.random.Generator) -> Array:
    """A key of JAX from public randomness."""
    return jax.random.key(int(rng.integers(2**62)))


_ADAM = optax.scale_by_adam()


def moments_of(
    player: Player, features: Features, params: Params, key: Array, literals: Array | None = None
) -> Array:
    """ψ̄ of a batch: from the heads where features are multilinear, else from relaxed records."""
    if isinstance(features, Units):
        return features.moments(_relaxed(player, params, key))
    heads = _heads(player, params, key)
    if isinstance(features, Conjunctions):
        assert literals is not None
        return features.moments(heads, literals)
    return features.moments(heads)


def _heads(player: Player, params: Params, key: Array) -> Array:
    return player.generator.probabilities(params, player.generator.latents(key, player.batch))


def _relaxed(player: Player, params: Params, key: Array) -> Array:
    """Hard one-hot rows with the gradient of relaxed ones."""
    first, second = jax.random.split(key)
    z = player.generator.latents(first, player.batch)
    soft = player.generator.relaxed(params, z, second, temperature=player.temperature)
    parts = player.generator.split(soft)
    hard = [jax.nn.one_hot(part.argmax(axis=-1), part.shape[-1]) for part in parts]
    return soft + jax.lax.stop_gradient(jnp.concatenate(hard, axis=-1) - soft)


@partial(jax.jit, static_argnums=(0, 1))
def _improve(
    player: Player,
    features: Features,
    trained: Trained,
    critic: Any,
    rate: Array,
    share: Array,
    key: Array,
) -> tuple[Params, Any, Array]:
    noise_key, key = jax.random.split(key)
    leaves, form = jax.tree.flatten(trained.params)
    keys = jax.random.split(noise_key, len(leaves))
    drawn = [jax.random.exponential(k, p.shape) for k, p in zip(keys, leaves, strict=True)]
    sigma = jax.tree.unflatten(form, drawn)
    literals, theta = critic if isinstance(features, Conjunctions) else (None, critic)

    def loss(params: Params, key: Array) -> Array:
        total = -(theta @ moments_of(player, features, params, key, literals))
        if player.scale:
            pulls = jax.tree.map(lambda s, p: (s * p).sum(), sigma, params)
            total -= player.scale * share * sum(jax.tree.leaves(pulls))
        if player.anchor:
            heads = _heads(player, params, key)
            apart = heads * (jnp.log(heads + 1e-12) - jnp.log(trained.base + 1e-12))
            total += player.anchor * share * apart.sum(axis=-1).mean()
        return total

    def step(carry: tuple[Params, Any], key: Array) -> tuple[tuple[Params, Any], Array]:
        params, moments = carry
        at, gradient = jax.value_and_grad(loss)(params, key)
        update, moments = _ADAM.update(gradient, moments)
        return (jax.tree.map(lambda p, u: p - rate * u, params, update), moments), at

    (params, moments), losses = jax.lax.scan(
        step, (trained.params, trained.moments), jax.random.split(key, player.steps)
    )
    return params, moments, losses[-1]


@partial(jax.jit, static_argnums=(0, 1, 2))
def _answer(
    player: Player,
    features: Cells | Units,
    objective: Objective,
    params: Params,
    means: Array,
    noise: Array,
    weights: Array,
    key: Array,
) -> tuple[Array, Array]:
    seen = moments_of(player, features, params, key)
    size = jnp.abs(seen)
    spread = size * jnp.maximum(1 - size, 0) / player.batch
    within = jnp.sqrt(noise**2 + spread)
    difference = means - seen
    critic = best_response(objective, features, difference, within, weights)
    return critic, jnp.abs(difference).max()


@partial(jax.jit, static_argnums=(0, 1))
def _records(generator: Generator, number: int, params: Params, key: Array) -> Array:
    first, second = jax.random.split(key)
    return generator.codes(params, generator.latents(first, number), second)


jax.tree_util.register_dataclass(Trained, ["params", "moments", "base"], [])
