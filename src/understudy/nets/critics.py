"""Critics: functions of a record that tell a table from the records of a generator.

A critic is D(x) = ⟨θ, ψ(x)⟩ with a public feature map ψ. Three maps:

    Cells    ψ_{c,a}(x) = 1[x agrees with a on the columns c]: the monomials of the one-hot code
    Conjunctions  the same for a list of cells that grows as they are picked
    Units    ψ_k(x) = s(⟨ω_k, x⟩ + b_k) over the one-hot code, ω and b public and fixed: networks of one
             layer of which the last is trained. s is cos and sin (random Fourier features of a Gaussian
             kernel, Rahimi and Recht 2007), ReLU, or softplus

All that a critic needs to know of the table is the mean m of ψ over its rows, or a noisy m̃ of it. The
objective is the set Θ that critics come from, and max over Θ of ⟨θ, m̃ − ψ̄⟩ is a distance
(`Objective`); `best_response` is its maximiser, exact. The weighted all-subsets kernel
k_w(x, z) = Π_i (1 + w·x_i·z_i) has the monomials scaled by w^{|A|/2} as its features, so its MMD is a
weighted sum of squares over cells of all orders and needs no kernel matrix of private rows.

Every map has `moments`, the mean of ψ, and `scores`, D of one-hot rows; both are traced by JAX.
Everything here is a function of public and of released numbers.
"""

from __future__ import annotations

import math
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
    "Conjunctions",
    "Objective",
    "Units",
    "best_response",
    "reach",
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
        matrices = self.layout.arrange([np.asarray(table, np.float64) for table in tables])
        return np.concatenate([matrix.reshape(-1) for matrix in matrices]).astype(np.float64)

    def tables(self, flat: NDArray[Any]) -> list[Reals]:
        """The reverse of `flat`."""
        like = self.layout.arrange(self._zeros)
        parts = np.split(np.asarray(flat), np.cumsum([m.size for m in like])[:-1])
        pairs = zip(parts, like, strict=True)
        return self.layout.restore([jnp.asarray(p.reshape(m.shape)) for p, m in pairs])

    def moments(self, heads: Array) -> Array:
        """ψ̄ (K,) of a mixture of products: `heads` (B, S) has a distribution per row and column.

        Exact, also for one-hot rows: a cell is a product of coordinates of different columns.
        """
        ends = np.cumsum(self.shape)[:-1].tolist()
        matrices = self.layout.marginals(jnp.split(heads, ends, axis=1))
        return jnp.concatenate([matrix.reshape(-1) for matrix in matrices])

    def scores(self, theta: Array, rows: Array) -> Array:
        """D(x) = ⟨θ, ψ(x)⟩ of one-hot rows (B, S): one cell of every table."""
        values = np.zeros((sum(self.shape), len(self.shape)), np.float32)
        values[np.arange(len(values)), np.repeat(np.arange(len(self.shape)), self.shape)] = (
            np.concatenate([np.arange(size) for size in self.shape])
        )
        codes = (rows.astype(jnp.float32) @ values).astype(jnp.int32)
        first, strides = self._places
        return theta[codes @ strides + first].sum(axis=1)

    @cached_property
    def _places(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Where tables begin (J,), and how far the next value of a column is (d, J)."""
        first = np.zeros(len(self.cliques), np.int32)
        strides = np.zeros((len(self.shape), len(self.cliques)), np.int32)
        for j, (clique, table) in enumerate(zip(self.cliques, self._numbered, strict=True)):
            first[j] = table.flat[0]
            for axis, column in enumerate(clique):
                along = np.moveaxis(table, axis, 0).reshape(table.shape[axis], -1)[:, 0]
                strides[column, j] = along[1] - along[0] if along.size > 1 else 0
        return first, strides

    @property
    def _numbered(self) -> list[NDArray[np.int32]]:
        """Every cell's place among the features: in a layout it is linear in the codes."""
        like = self.layout.arrange(self._zeros)
        ends = np.cumsum([m.size for m in like])
        parts = np.split(np.arange(ends[-1]), ends[:-1])
        shaped = [p.reshape(m.shape) for p, m in zip(parts, like, strict=True)]
        return [t.astype(np.int32) for t in self.layout.restore(shaped)]

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

    def scores(self, theta: Array, rows: Array) -> Array:
        """D(x) = ⟨θ, ψ(x)⟩ of one-hot rows (B, S)."""
        return self.features(rows) @ theta


@dataclass(frozen=True)
class Conjunctions:
    """Features Π_{a} x[l_a], one for each row of literals; `width` literals at most, rows padded.

    Literals are positions in the one-hot code; position S stands for 1. A critic is (literals, θ).
    """

    capacity: int
    width: int

    def features(self, rows: Array, literals: Array) -> Array:
        """ψ (B, Q) of one-hot rows, or of heads (B, S), whose mean is that of a mixture of products."""
        padded = jnp.concatenate([rows, jnp.ones((rows.shape[0], 1), rows.dtype)], axis=1)
        product = padded[:, literals[:, 0]]
        for a in range(1, self.width):
            product = product * padded[:, literals[:, a]]
        return product

    def scores(self, critic: tuple[Array, Array], rows: Array) -> Array:
        """D(x) of one-hot rows (B, S)."""
        literals, theta = critic
        return self.features(rows, literals) @ theta


def reach(objective: Objective, features: Cells | Units, weights: NDArray[Any]) -> float:
    """The most that |D(x)| can be for a critic of `best_response`: how large a round's payoff is.

    Cells have one feature of every table. Units are divided so that ‖ψ(x)‖² ≤ Q/over².
    """
    if objective is Objective.MAX:
        return 1.0
    if isinstance(features, Cells):
        total = sum(float(table.max()) for table in features.tables(weights))
        return total if objective is not Objective.MMD else math.sqrt(total)
    norm = math.sqrt(features.bias.size) / features.over
    return norm if objective is Objective.MMD else math.sqrt(features.size) * norm


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
