"""Critics: functions of a record that tell a table from the records of a generator.

A critic is D(x) = ⟨θ, ψ(x)⟩ with a public feature map ψ: of cells of tables (`Cells`), of a list of
cells that grows as they are picked (`Conjunctions`), or of random units over the one-hot code
(`Units`). All that it needs to know of the table is the mean m of ψ over its rows, or a noisy m̃ of
it. The objective is the set Θ that critics come from; max over Θ of ⟨θ, m̃ − ψ̄⟩ is an integral
probability metric (`Objective`), and `best_response` its maximiser, exact.

Distribution functions and parities are linear in the cells of a table: a public matrix for each column
(`Question`), applied to every axis. So whatever is asked of them later, a row that comes moves the
counts of J tables by √J in L2, and one that is replaced by √(2J).

Every map has `moments`, the mean of ψ, and `scores`, D of one-hot rows; both are traced by JAX.
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

from understudy._types import Clique, Floats, Whole
from understudy.nets.tables import Layout, Table


class Objective(StrEnum):
    """Which critics there are, and so which distance between tables they measure."""

    TV = "tv"
    """‖θ‖_∞ ≤ 1 on the cells of every table: 2·TV, summed over the tables."""
    MMD = "mmd"
    """The unit ball of the weighted all-subsets kernel, cut off at the measured tables."""
    MAX = "max"
    """‖θ‖₁ ≤ 1: the worst cell."""
    WASSERSTEIN = "wasserstein"
    """Lipschitz critics of ordered columns: mean |F − G| over the cuts of every table (`Question.CUT`).

    For one column that is W1 over its range: ∫|F − G| is the supremum over all Lipschitz functions. In
    a table of several columns D(x) = Σ s_{k,l}·1[x_i ≤ k, x_j ≤ l]/((g_i − 1)(g_j − 1)), |s| ≤ 1, moves
    by at most 1/(g_i − 1) where x_i moves by one cell: it is 1-Lipschitz in the distance
    Σ_i |x_i − x'_i|/(g_i − 1), so its payoff is at most W1 of the table. A column without an order is
    taken cell by cell: two of its values are 2 apart, and tables of such columns alone have 2·TV."""
    PARITY = "parity"
    """The worst parity E Π_{i∈A} (−1)^{1[x_i = v_i]} of the columns A of every table."""


class Question(StrEnum):
    """What a critic asks of a column: the rows of a public matrix over its g values."""

    CELL = "cell"
    """x = v, for every v."""
    CUT = "cut"
    """x ≤ v for all v but the last, each divided by their number g − 1."""
    CUT_OR_NULL = "cut or null"
    """The same over all values but the last, which is null and a cell of its own."""
    SIGN = "sign"
    """−1 where x = v, otherwise 1, for every v; where g = 2 only for the second."""

    def matrix(self, size: int) -> Floats:
        """(questions, g)."""
        match self:
            case Question.CELL:
                return np.eye(size)
            case Question.CUT:
                return np.tri(max(1, size - 1), size) / max(1, size - 1)
            case Question.CUT_OR_NULL:
                values = Question.CUT.matrix(size - 1)
                last = np.eye(size)[-1:]
                return np.concatenate([np.pad(values, ((0, 0), (0, 1))), last])
            case Question.SIGN:
                return (1 - 2 * np.eye(size))[1 if size == 2 else 0 :]


@dataclass(frozen=True)
class Cells:
    """Cells of the tables of `cliques`, side by side; hashable, for jitted functions.

    `questions`, one for each column, is what objectives ask that are not about cells.
    """

    shape: tuple[int, ...]
    cliques: tuple[Clique, ...]
    questions: tuple[Question, ...] = ()

    @cached_property
    def layout(self) -> Layout:
        """The tables, one after the other, each in C order: the order of the features."""
        return Layout(self.shape, tuple(Table(clique) for clique in self.cliques))

    @property
    def size(self) -> int:
        """K, the number of features."""
        return self.layout.cells

    def spread(self, values: Sequence[float]) -> Floats:
        """One value per table, repeated for its cells."""
        sizes = [math.prod(each) for each in self.layout.sizes]
        return np.repeat(np.asarray(values, np.float32), sizes).astype(np.float64)

    def flat(self, tables: Sequence[NDArray[Any]]) -> Floats:
        """Tables, in the order of `cliques`, as one vector."""
        return self.layout.arrange(tables).astype(np.float64)

    def tables(self, flat: NDArray[Any]) -> list[Floats]:
        """The reverse of `flat`."""
        return self.layout.restore(flat)

    def asked(self, flat: Array, *, squared: bool = False) -> list[Array]:
        """The answers of every table, from values of its cells: each axis times its column's matrix.

        `squared` squares the matrices: from variances of independent cells to those of answers.
        """
        tables = zip(
            self.cliques, self.layout.sizes, jnp.split(flat, self._starts[1:]), strict=True
        )
        return [
            _along(part.reshape(sizes), [m**2 if squared else m for m in map(self._matrix, clique)])
            for clique, sizes, part in tables
        ]

    def critic(self, steps: Sequence[Array]) -> Array:
        """θ (K,) of D = ⟨steps, answers⟩: the transpose of `asked`."""
        tables = [
            _along(each, [self._matrix(i).T for i in clique]).reshape(-1)
            for clique, each in zip(self.cliques, steps, strict=True)
        ]
        return jnp.concatenate(tables)

    def moments(self, heads: Array) -> Array:
        """ψ̄ (K,) of a mixture of products: `heads` (B, S) has a distribution per row and column.

        Exact, also for one-hot rows: a cell is a product of coordinates of different columns.
        """
        return self.layout.marginals(heads)

    def scores(self, theta: Array, rows: Array) -> Array:
        """D(x) = ⟨θ, ψ(x)⟩ of one-hot rows (B, S): one cell of every table."""
        values = np.zeros((sum(self.shape), len(self.shape)), np.float32)
        values[np.arange(len(values)), np.repeat(np.arange(len(self.shape)), self.shape)] = (
            np.concatenate([np.arange(size) for size in self.shape])
        )
        codes = (rows.astype(jnp.float32) @ values).astype(jnp.int32)
        return theta[codes @ self._strides + self._starts].sum(axis=1)

    @cached_property
    def _strides(self) -> NDArray[np.int32]:
        """(d, J): how far the next value of a column is, in a table in C order."""
        strides = np.zeros((len(self.shape), len(self.cliques)), np.int32)
        for j, clique in enumerate(self.cliques):
            sizes = [self.shape[i] for i in clique]
            for axis, column in enumerate(clique):
                strides[column, j] = math.prod(sizes[axis + 1 :])
        return strides

    def _matrix(self, column: int) -> Floats:
        return self.questions[column].matrix(self.shape[column])

    @cached_property
    def _starts(self) -> Whole:
        """Where each table begins."""
        return np.cumsum([0, *(math.prod(sizes) for sizes in self.layout.sizes)])[:-1]


@dataclass(frozen=True, eq=False)
class Units:
    """Q units of a kind over the one-hot code: `weights` (S, Q), `bias` (Q,), all divided by `over`.

    With weights 0/1 that take values V_i of |A| columns and the bias 1 − |A|, a rectified unit *is* the
    conjunction 1[x_i in V_i for all i in A] on one-hot rows. The bias may be as low as 1 − d, and θ of
    either sign closes the class under negation. On relaxed rows a unit is no conjunction, which is why
    hard records are judged. softplus(κz)/κ is within ln2/κ of ReLU(z) and κ/4-smooth in z.
    """

    kind: str
    weights: Floats
    bias: Floats
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

    Cells have one feature of every table, cuts at most one. Units have ‖ψ(x)‖² ≤ Q/over².
    """
    if objective in (Objective.MAX, Objective.PARITY):
        return 1.0
    if isinstance(features, Cells):
        total = sum(float(table.max()) for table in features.tables(weights))
        return total if objective is not Objective.MMD else math.sqrt(total)
    norm = math.sqrt(features.bias.size) / features.over
    return norm if objective is Objective.MMD else math.sqrt(features.size) * norm


def best_response(
    objective: Objective, features: Cells | Units, difference: Array, noise: Array, weights: Array
) -> Array:
    """The critic that tells m̃ from ψ̄ best, for difference d = m̃ − ψ̄.

    `noise` is the standard deviation of m̃ per feature, `weights` scale features (w^{|A|} for the
    all-subsets kernel).

    TV           θ = clip(d/2σ, ±1): sign(d), softened where the difference is within the noise, which
                 is the maximiser of ⟨θ, d⟩ − σ‖θ‖² over the ball
    MMD          θ = W d/‖W^{1/2} d‖
    MAX          θ = ±e_j at the largest |d_j|
    WASSERSTEIN  the critic of steps clip(d/2σ, ±1), d and σ those of the answers
    PARITY       the critic of the answer with the largest |d|, with its sign
    """
    match objective:
        case Objective.TV:
            return weights * jnp.clip(difference / (2 * noise), -1, 1)
        case Objective.MMD:
            scaled = weights * difference
            return scaled / jnp.maximum(jnp.sqrt((scaled * difference).sum()), 1e-12)
        case Objective.MAX:
            return _worst(difference)
        case Objective.WASSERSTEIN:
            assert isinstance(features, Cells)
            variances = features.asked(noise**2, squared=True)
            pairs = zip(features.asked(difference), variances, strict=True)
            return features.critic([jnp.clip(d / (2 * jnp.sqrt(v)), -1, 1) for d, v in pairs])
        case Objective.PARITY:
            assert isinstance(features, Cells)
            answers = features.asked(difference)
            chosen = _worst(jnp.concatenate([each.reshape(-1) for each in answers]))
            ends = np.cumsum([each.size for each in answers])[:-1].tolist()
            parts = zip(jnp.split(chosen, ends), answers, strict=True)
            return features.critic([part.reshape(each.shape) for part, each in parts])


def _worst(difference: Array) -> Array:
    """The signed unit vector at the largest |d|."""
    at = jnp.argmax(jnp.abs(difference))
    return jnp.zeros_like(difference).at[at].set(jnp.sign(difference[at]))


def _along(table: Array, matrices: Sequence[Floats]) -> Array:
    """Each axis of a table times a matrix (new, old)."""
    for axis, matrix in enumerate(matrices):
        moved = jnp.tensordot(jnp.asarray(matrix, table.dtype), table, axes=(1, axis))
        table = jnp.moveaxis(moved, 0, axis)
    return table
