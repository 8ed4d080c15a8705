"""The generator's play: follow the leader of all critics so far, through a network.

Critics are linear in θ, so a sum of past losses is the loss of one critic D, the leader (`Past`);
docs/methods/querygan.md has the plays. The network is moved towards p₀(x)·exp(η·D(x)), p₀ where it
began (`Player.follow`): records drawn from it are weighted by that over p_φ(x), and their weighted
log-likelihood is raised, which lowers the divergence. p_φ is a mixture of products: its density is a
sum. The noise makes the play stable; it is no privacy noise. No regret bound is claimed for a network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.typing import NDArray

from understudy._types import Floats, Rng
from understudy.errors import WorkError
from understudy.nets.critics import Cells, Conjunctions, Units
from understudy.nets.generator import Generator, Params

Critic = NDArray[np.float32]
Features = Cells | Units | Conjunctions

_ADAM = optax.scale_by_adam()


class Diverged(WorkError):
    """The loss is not a number any more; what was trained before is still good."""

    @classmethod
    def unless(cls, finite: Array, round: int) -> None:
        """Raise it for a loss that is no number."""
        if not bool(jnp.isfinite(finite)):
            raise cls(
                f"the generator diverged in round {round}: its loss is not a number; a lower rate "
                f"may help"
            )


class Play(StrEnum):
    """What the generator answers to."""

    FTL = "ftl"
    FTPL = "ftpl"
    SFTPL = "sftpl"

    @property
    def perturbed(self) -> bool:
        """Whether the score has the noise term."""
        return self is not Play.FTL


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """All critics so far, and the sum that the generator answers to.

    `total` is the sum of all; `critics` keeps them where the play samples from them. `batch` is the
    size of a sample, None for one coin a critic.
    """

    play: Play
    batch: int | None = None
    rounds: int = 0
    critics: tuple[Critic, ...] = ()
    total: Critic | None = None

    def plus(self, critic: NDArray[Any]) -> Past:
        """One more round."""
        critic = np.asarray(critic, np.float32)
        total = critic if self.total is None else np.add(self.total, critic)
        kept = (*self.critics, critic) if self.play is Play.SFTPL else ()
        return Past(self.play, self.batch, self.rounds + 1, kept, total)

    def leader(self, rng: Rng) -> Critic:
        """The sum to answer to; where it is sampled, without bias."""
        assert self.total is not None
        if self.play is not Play.SFTPL or (self.batch or 0) >= self.rounds:
            return self.total
        if self.batch is None:
            chosen = np.flatnonzero(rng.random(self.rounds) < 0.5)
            scale = 2.0
        else:
            chosen = np.sort(rng.permutation(self.rounds)[: self.batch])
            scale = self.rounds / self.batch
        total = sum((self.critics[i] for i in chosen), np.zeros_like(self.total))
        return np.float32(scale) * total


@dataclass(frozen=True, eq=False)
class Trained:
    """Parameters, the optimiser's state, and ln p₀ (S,), the logarithms of where training began."""

    params: Params
    moments: Any
    base: Array


@dataclass(frozen=True)
class Player:
    """How a generator is trained; hashable, a static argument of what is jitted.

    `steps` steps of Adam at `rate` a round, with `batch` latents and as many records. `eta` is η, the
    weight of the critics against the divergence from the start. `scale` is that of the exponential
    noise of perturbed plays. Critics of noisy means see `seen` latents.
    """

    generator: Generator
    steps: int = 10
    batch: int = 512
    seen: int = 4096
    rate: float = 0.005
    eta: float = 0.1
    scale: float = 0.0

    def start(self, shares: Sequence[Floats] | None, key: Array) -> Trained:
        """Fresh parameters at the given shares of every column, uniform without."""
        params = self.generator.init(key, shares)
        base = self.generator.log_softmax(params["heads"]["b"])
        return Trained(params, _ADAM.init(params), base)

    def follow(
        self, trained: Trained, features: Features, leader: Any, round: int, key: Array
    ) -> tuple[Trained, float]:
        """A round's steps towards p₀·exp(η·D), D the leader; the second is the loss of the last step.

        Raises:
            Diverged: The loss is not a number any more.
        """
        moved, loss = _follow(self, features, trained, leader, key)
        Diverged.unless(loss, round)
        return moved, float(loss)

    def records(self, trained: Trained, number: int, key: Array) -> NDArray[np.int32]:
        """Hard records (number, d)."""
        return np.asarray(_records(self.generator, number, trained.params, key))


def key_of(rng: Rng) -> Array:
    """A key of JAX from public randomness."""
    return jax.random.key(int(rng.integers(2**62)))


@partial(jax.jit, static_argnums=(0, 1))
def _follow(
    player: Player, features: Features, trained: Trained, leader: Any, key: Array
) -> tuple[Trained, Array]:
    key, own = jax.random.split(key)
    noise = player.scale * jax.random.exponential(own, trained.base.shape)

    def score(rows: Array) -> Array:
        total = features.scores(leader, rows)
        return total + rows @ noise if player.scale else total

    def loss(params: Params, key: Array) -> Array:
        latents, drawn = jax.random.split(key)
        z = player.generator.latents(latents, player.batch)
        heads = player.generator.log_softmax(player.generator.logits(params, z))
        rows = jax.lax.stop_gradient(player.generator.hard(heads, drawn))
        density = jax.nn.logsumexp(rows @ heads.T, axis=1) - math.log(player.batch)
        wanted = player.eta * score(rows) + rows @ trained.base
        weights = jax.nn.softmax(jax.lax.stop_gradient(wanted - density))
        return -(weights * density).sum()

    return descend(loss, trained, player.steps, player.rate, key)


def descend(
    loss: Callable[[Params, Array], Array], trained: Trained, steps: int, rate: Any, key: Array
) -> tuple[Trained, Array]:
    """Steps of Adam on a loss of (parameters, key), and the last loss."""

    def step(carry: tuple[Params, Any], key: Array) -> tuple[tuple[Params, Any], Array]:
        params, moments = carry
        at, gradient = jax.value_and_grad(loss)(params, key)
        update, moments = _ADAM.update(gradient, moments)
        return (jax.tree.map(lambda p, u: p - rate * u, params, update), moments), at

    (params, moments), losses = jax.lax.scan(
        step, (trained.params, trained.moments), jax.random.split(key, steps)
    )
    return replace(trained, params=params, moments=moments), losses[-1]


@partial(jax.jit, static_argnums=(0, 1))
def _records(generator: Generator, number: int, params: Params, key: Array) -> Array:
    first, second = jax.random.split(key)
    return generator.codes(params, generator.latents(first, number), second)


jax.tree_util.register_dataclass(Trained, ["params", "moments", "base"], [])
