"""Critics: functions of a record that tell a table from the records of a generator.

A critic is D(x) = ⟨θ, ψ(x)⟩ with a public feature map ψ. Two maps:

    Cells    ψ_{c,a}(x) = 1[x agrees with a on the columns c]: the monomials of the one-hot code
    Units    ψ_k(x) = s(⟨ω_k, x⟩ + b_k) over the one-hot code, ω and b public and fixed: networks of one
             layer of which the last is trained. s is cos and sin (random Fourier features of a Gaussian
             kernel, Rahimi and Recht 2007), ReLU, or softplus

All that a critic needs to know of the table is the mean m of ψ over its rows, or a noisy m̃ of it. The
objective is the set Θ that critics come from, and max over Θ of ⟨θ, m̃ − ψ̄⟩ is a distance
(`Objective`); `best_response` is its maximiser, exact. The weighted all-subsets kernel
k_w(x, z) = Π_i (1 + w·x_i·z_i) has the monomials scaled by w^{|A|/2} as its features, so its MMD is a
weighted sum of squares over cells of all orders and needs no kernel matrix of private rows.

Everything here is a function of public and of released numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from understudy._types import Clique
from understudy.nets.tables import Layout, Table

__all__ = [
    "Cells",
    "Objective",
    "Units",
    "best_response",
    "reject",
]

Reals = NDArray[np.float64]


class Objective(StrEnum):
    """Which critics there are, and so which distance between tables they measure."""

    TV = "tv"
    """‖θ‖_∞ ≤ 1 on the cells of every table: 2·TV, summed over the tables."""
    MMD = "mmd"
    """The unit ball of the weighted all-subsets kernel, cut off at the measured tables."""
    MAX = "max"
    """‖θ‖₁ ≤ 1: the worst cell."""
    WASSERSTEIN = "wasserstein"
    """Clipped weights |θ| ≤ 1, found by gradient ascent: Lipschitz critics on ordered columns."""


@dataclass(frozen=True)
class Cells:
    """Cells of the tables of `cliques`, side by side; hashable, for jitted functions."""

    shape: tuple[int, ...]
    cliques: tuple[Clique, ...]

    @cached_property
    def layout(self) -> Layout:
        """Where every table lies among the features: their order is that of the layout."""
        return Layout(self.shape, tuple(Table(clique) for clique in self.cliques))

    @property
    def size(self) -> int:
        """K, the number of features."""
        return self.layout.cells

    def spread(self, values: Sequence[float]) -> Reals:
        """One value per table, repeated for its cells."""
        return self.flat([z + value for z, value in zip(self._zeros, values, strict=True)])

    def flat(self, tables: Sequence[NDArray[Any]]) -> Reals:
        """Tables, in the order of `cliques`, as one vector."""
        return self.layout.arrange(tables).astype(np.float64)

    def tables(self, flat: NDArray[Any]) -> list[Reals]:
        """The reverse of `flat`."""
        return self.layout.restore(flat)

    def moments(self, heads: Array) -> Array:
        """ψ̄ (K,) of a mixture of products: `heads` (B, S) has a distribution per row and column.

        Exact, also for one-hot rows: a cell is a product of coordinates of different columns.
        """
        return self.layout.marginals(heads)

    def scores(self, theta: NDArray[Any], codes: NDArray[np.integer[Any]]) -> Reals:
        """D(x) = ⟨θ, ψ(x)⟩ of hard records (N, d)."""
        total = np.zeros(len(codes))
        for clique, table in zip(self.cliques, self.tables(theta), strict=True):
            total += table[tuple(codes[:, i] for i in clique)]
        return total

    @property
    def _zeros(self) -> list[Reals]:
        return [np.zeros(tuple(self.shape[i] for i in clique)) for clique in self.cliques]


@dataclass(frozen=True, eq=False)
class Units:
    """Q units of a kind over the one-hot code: `weights` (S, Q), `bias` (Q,), all divided by `over`.

    With weights 0/1 that take values V_i of |A| columns and the bias 1 − |A|, a rectified unit *is* the
    conjunction 1[x_i in V_i for all i in A] on one-hot rows. The bias may be as low as 1 − d, and θ of
    either sign closes the class under negation. On relaxed rows a unit is no conjunction, which is why
    hard records are judged. softplus(κz)/κ is within ln2/κ of ReLU(z) and κ/4-smooth in z.
    """

    kind: str
    weights: Reals
    bias: Reals
    over: float = 1.0
    kappa: float = 8.0

    @property
    def size(self) -> int:
        """How many features: 2Q for waves, which have a cosine and a sine each, otherwise Q."""
        return self.bias.size * (2 if self.kind == "fourier" else 1)

    def features(self, rows: Array) -> Array:
        """ψ (B, size) of one-hot or relaxed rows (B, S); all cosines before all sines."""
        inside = rows @ jnp.asarray(self.weights, rows.dtype) + jnp.asarray(self.bias, rows.dtype)
        if self.kind == "fourier":
            return jnp.concatenate([jnp.cos(inside), jnp.sin(inside)], axis=-1) / self.over
        if self.kind == "relu":
            return jax.nn.relu(inside) / self.over
        return jax.nn.softplus(self.kappa * inside) / self.kappa / self.over

    def moments(self, rows: Array) -> Array:
        """Their mean. Not multilinear in the columns: a mixture of products is not enough."""
        return self.features(rows).mean(axis=0)

    def scores(self, theta: NDArray[Any], rows: NDArray[Any]) -> Reals:
        """D(x) = ⟨θ, ψ(x)⟩ of one-hot rows (B, S)."""
        psi = self.features(jnp.asarray(rows, jnp.float32))
        return np.asarray(psi @ jnp.asarray(theta, jnp.float32), np.float64)


def best_response(
    objective: Objective,
    difference: Array,
    noise: Array,
    weights: Array,
    before: Array,
) -> Array:
    """The critic that tells m̃ from ψ̄ best, for difference = m̃ − ψ̄.

    `noise` is the standard deviation of m̃ per feature, `weights` scale features (w^{|A|} for the
    all-subsets kernel, times the workload's), `before` is the critic of the round before, which only
    gradient ascent starts from.

    TV       θ = clip(d/2σ, ±1): sign(d), softened where the difference is within the noise, which is
             the maximiser of ⟨θ, d⟩ − σ‖θ‖² over the ball
    MMD      θ = W d/‖W^{1/2} d‖
    MAX      θ = ±e_j at the largest |d_j|
    WASSERSTEIN  θ = clip(θ_before + d/σ, ±1)
    """
    match objective:
        case Objective.TV:
            return weights * jnp.clip(difference / (2 * noise), -1, 1)
        case Objective.MMD:
            scaled = weights * difference
            return scaled / jnp.maximum(jnp.sqrt((scaled * difference).sum()), 1e-12)
        case Objective.MAX:
            at = jnp.argmax(jnp.abs(difference))
            return jnp.zeros_like(difference).at[at].set(jnp.sign(difference[at]))
        case _:
            return jnp.clip(before + difference / noise, -1, 1)


def reject(scores: Reals, tilt: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which records of a pool are kept: with probability exp(λ·(D̄(x) − max D̄)).

    One step of exponentiated gradient on the pool, p'(x) ∝ p(x)·e^{λ·D̄(x)}. Post-processing; that it
    helps is not proved, which is why the certificate comes afterwards. λ = 0 keeps all.
    """
    chances = np.exp(tilt * (scores - scores.max()))
    return rng.random(scores.size) < chances
