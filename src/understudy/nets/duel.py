"""Rounds that cost nothing: critics of noisy means against a generator.

All that critics know of the table is m̃, the noisy means of a feature map, so a round is
post-processing: V(θ, G) = ⟨θ, m̃ − ψ̄(G)⟩ is linear in θ. Critics are the `Best` response to the
generator of the round, or `Regularised` leaders; answers are the leader of all critics
(`understudy.nets.leader`), or `match`, one gradient step against the last critic alone, which is
gradient descent on the distance that critics measure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Protocol, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from understudy._types import Floats, Rng
from understudy.nets.critics import Cells, Objective, Units, best_response
from understudy.nets.generator import Params
from understudy.nets.leader import Diverged, Player, Trained, descend, key_of

_TEMPERATURE = 0.5


@dataclass(frozen=True, eq=False)
class Truth:
    """What is known of the table: noisy means of the features, all released.

    `noise` is their standard deviation, `weights` what a feature counts.
    """

    features: Cells | Units
    means: Floats
    noise: Floats
    weights: Floats


class Critics(Protocol):
    """Who plays against the generator."""

    def play(self, difference: Array, noise: Array) -> tuple[Array, Self]:
        """(θ_t, who plays the next round), given m̃ − ψ̄ and its standard deviation."""
        ...


@dataclass(frozen=True, eq=False)
class Best:
    """The best critic of an objective, every round anew."""

    objective: Objective
    truth: Truth

    def play(self, difference: Array, noise: Array) -> tuple[Array, Best]:
        """See `Critics.play`."""
        weights = jnp.asarray(self.truth.weights, jnp.float32)
        return _best(self.objective, self.truth.features, difference, noise, weights), self


@dataclass(frozen=True, slots=True, eq=False)
class Regularised:
    """θ_t = argmax_{‖θ‖₂ ≤ 1} ⟨Σ_{i<t} g_i, θ⟩ − (√T/(2η))·‖θ‖², g_i = m̃ − ψ̄(G_i).

    Follow the regularised leader on linear payoffs: for any sequence g_1 … g_T whatever

        regret = ‖Σ g_t‖₂ − Σ ⟨θ_t, g_t⟩  ≤  √T/(2η) + (η/(2√T))·Σ ‖g_t‖²

    *Proof.* With λ = √T/η, Φ(S) = max_θ ⟨S, θ⟩ − (λ/2)‖θ‖² has gradient θ and is 1/λ-smooth, so that
    Φ(Σ_{i≤t} g_i) ≤ Φ(Σ_{i<t} g_i) + ⟨θ_t, g_t⟩ + ‖g_t‖²/(2λ). Added up from Φ(0) = 0, and with
    Φ(S) ≥ ‖S‖₂ − λ/2, that is the claim.
    """

    rounds: int
    eta: float
    played: int = 0
    total: Floats | None = None
    paid: float = 0.0
    squares: float = 0.0

    def play(self, difference: Array, noise: Array) -> tuple[Array, Regularised]:
        """See `Critics.play`. The critic of a round follows from the rounds before it."""
        gradient = np.asarray(difference, np.float64)
        total = np.zeros_like(gradient) if self.total is None else self.total
        theta = total * self.eta / math.sqrt(self.rounds)
        theta /= max(1.0, float(np.linalg.norm(theta)))
        done = Regularised(
            self.rounds,
            self.eta,
            self.played + 1,
            total + gradient,
            self.paid + float(theta @ gradient),
            self.squares + float(gradient @ gradient),
        )
        return jnp.asarray(theta, jnp.float32), done

    @property
    def regret(self) -> float:
        """A round's average: how much the best critic in hindsight would have earned more."""
        best = 0.0 if self.total is None else float(np.linalg.norm(self.total))
        return (best - self.paid) / max(self.played, 1)

    @property
    def bound(self) -> float:
        """What the theorem says of `regret`, for the sequence that was played."""
        root = math.sqrt(self.rounds)
        return (root / (2 * self.eta) + self.eta / (2 * root) * self.squares) / max(self.played, 1)


def duel(
    player: Player,
    trained: Trained,
    truth: Truth,
    critics: Critics,
    answer: Callable[[Trained, Array, int, Array], Trained],
    rounds: int,
    rng: Rng,
) -> Iterator[tuple[int, Trained, Critics, float]]:
    """Rounds between the critics of `truth` and the generator; all post-processing.

    Yields (round, the generator after it, the critics, max |m̃ − ψ̄| of what these saw), from round 1.
    Critics see `player.seen` latents of the generator's mixture. `answer(trained, critic, round, key)`
    is the generator's move. Differences are held against the noise of m̃ and of what was seen,
    σ² + |ψ̄|(1 − |ψ̄|)/B: within it a sign says nothing, and large errors go first.
    """
    means, noise = (jnp.asarray(each, jnp.float32) for each in (truth.means, truth.noise))
    key = key_of(rng)
    for t in range(1, rounds + 1):
        key, seen, moved = jax.random.split(key, 3)
        difference, within = _seen(player, truth.features, trained.params, means, noise, seen)
        critic, critics = critics.play(difference, within)
        trained = answer(trained, critic, t, moved)
        yield t, trained, critics, float(jnp.abs(difference).max())


def match(
    player: Player,
    trained: Trained,
    features: Cells | Units,
    critic: Array,
    rate: float,
    round: int,
    key: Array,
) -> Trained:
    """`player.steps` steps down −⟨θ, ψ̄(φ)⟩: the answer to one critic, without any past.

    Raises:
        Diverged: The loss is not a number any more.
    """
    moved, loss = _match(player, features, trained, critic, jnp.float32(rate), key)
    Diverged.unless(loss, round)
    return moved


def moments_of(
    player: Player, features: Cells | Units, params: Params, number: int, key: Array
) -> Array:
    """ψ̄ of so many latents: from the heads where features are multilinear, else of relaxed records."""
    generator = player.generator
    if isinstance(features, Cells):
        return features.moments(generator.probabilities(params, generator.latents(key, number)))
    first, second = jax.random.split(key)
    soft = generator.relaxed(
        params, generator.latents(first, number), second, temperature=_TEMPERATURE
    )
    hard = [jax.nn.one_hot(p.argmax(axis=-1), p.shape[-1]) for p in generator.split(soft)]
    # Hard rows with the gradient of relaxed ones.
    return features.moments(soft + jax.lax.stop_gradient(jnp.concatenate(hard, axis=-1) - soft))


@partial(jax.jit, static_argnums=(0, 1))
def _match(
    player: Player,
    features: Cells | Units,
    trained: Trained,
    critic: Array,
    rate: Array,
    key: Array,
) -> tuple[Trained, Array]:
    def loss(params: Params, key: Array) -> Array:
        return -(critic @ moments_of(player, features, params, player.batch, key))

    return descend(loss, trained, player.steps, rate, key)


@partial(jax.jit, static_argnums=(0, 1))
def _seen(
    player: Player, features: Cells | Units, params: Params, means: Array, noise: Array, key: Array
) -> tuple[Array, Array]:
    seen = moments_of(player, features, params, player.seen, key)
    size = jnp.abs(seen)
    spread = size * jnp.maximum(1 - size, 0) / player.seen
    return means - seen, jnp.sqrt(noise**2 + spread)


_best = jax.jit(best_response, static_argnums=(0, 1))
