"""How columns look to a critic and come out of a generator, by their kind.

A critic sees features of a code, looked up in a small public table; a generator has heads of logits,
read in two ways: *relaxed*, differentiable rows of the same features for training, and *hard* codes.

    choice   one feature a value; Gumbel-softmax (Jang et al. 2017), a hard draw at the end. Two values
             are one feature and a sigmoid
    bits     whole numbers with few values: ⌈log₂ m⌉ binary features; codes beyond the last value are
             taken for the last
    real     numbers, dates and longer integers: one feature in [−1, 1] and a tanh. Values are placed by
             rank under public shares of the column, evenly where none are given; rounded to the
             nearest value, in range by construction

The last code is null where it may be; a null of the last two kinds is a binary feature of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from understudy._types import Floats, Whole

_TINY = 1e-6


@dataclass(frozen=True)
class Coding:
    """Kinds of columns, hashable; `ranks` holds the public shares that place real values."""

    shape: tuple[int, ...]
    kinds: tuple[str, ...]
    nullable: tuple[bool, ...]

    @property
    def columns(self) -> range:
        """Positions of all columns."""
        return range(len(self.shape))

    def values(self, column: int) -> int:
        """Codes that are no null."""
        null = self.nullable[column] and self.kinds[column] != "choice"
        return self.shape[column] - null

    def bits(self, column: int) -> int:
        """Binary digits of the values."""
        return max(1, math.ceil(math.log2(max(2, self.values(column)))))

    @cached_property
    def heads(self) -> tuple[int, ...]:
        """Sizes of the generator's heads, column after column; a tanh is a head of one."""
        sizes: list[int] = []
        for column in self.columns:
            match self.kinds[column]:
                case "choice":
                    sizes.append(self.shape[column])
                case "bits":
                    sizes += [2] * self.bits(column)
                case _:
                    sizes.append(1)
            if self._null(column):
                sizes.append(2)
        return tuple(sizes)

    @property
    def width(self) -> int:
        """How many features a row has."""
        return sum(table.shape[1] for table in self.tables())

    def tables(self, shares: Sequence[Floats] | None = None) -> list[NDArray[np.float32]]:
        """One table (size, features) per column: the features of every code."""
        found: list[NDArray[np.float32]] = []
        for column in self.columns:
            values, size = self.values(column), self.shape[column]
            match self.kinds[column]:
                case "choice":
                    table = np.eye(size)[:, 1:] if size == 2 else np.eye(size)
                case "bits":
                    codes = np.arange(values)
                    digits = [(codes >> b) & 1 for b in range(self.bits(column))]
                    table = np.stack(digits, axis=1).astype(float)
                case _:
                    _, middles = self._ranks(column, shares)
                    table = (2 * middles - 1)[:, None]
            if self._null(column):
                table = np.pad(table, ((0, 1), (0, 1)))
                table[-1, -1] = 1.0
            found.append(table.astype(np.float32))
        return found

    def features(
        self, tables: Sequence[NDArray[np.float32]], codes: NDArray[Any]
    ) -> NDArray[np.float32]:
        """(B, F) of rows of codes (B, d): looked up, each row by itself."""
        return np.concatenate([table[codes[:, i]] for i, table in enumerate(tables)], axis=1)

    def relaxed(self, logits: Array, key: Array, temperature: float | Array) -> Array:
        """(B, S), one entry per logit: drawn softly at a temperature, tanh for reals.

        One-hot in the forward pass, soft in the backward one.
        """
        noisy = logits + jax.random.gumbel(key, logits.shape, logits.dtype)
        soft = jnp.exp(self.log_softmax(noisy / temperature))
        hard = soft + jax.lax.stop_gradient(self.one_hot(noisy) - soft)
        lone = np.repeat(np.array(self.heads) == 1, self.heads)
        return jnp.where(lone, jnp.tanh(logits), hard)

    def seen(self, entries: Array) -> Array:
        """(B, F) features of entries (B, S): of two values the second is enough."""
        return entries @ self._kept

    def log_softmax(self, logits: Array) -> Array:
        """(B, S): head by head, all at once."""
        top = jax.lax.stop_gradient(self._tops(logits)) @ self.owns
        lowered = logits - top
        sums = jnp.exp(lowered) @ self.owns.T
        return lowered - jnp.log(sums) @ self.owns

    def one_hot(self, logits: Array) -> Array:
        """(B, S): 1 at the largest logit of every head."""
        return (logits == self._tops(logits) @ self.owns).astype(logits.dtype)

    def drawn(self, logits: Array, key: Array) -> Array:
        """(B, H): a drawn value per head; of reals the tanh."""
        noisy = logits + jax.random.gumbel(key, logits.shape, logits.dtype)
        values = jnp.argmax(self._padded(noisy), axis=2)
        first = np.cumsum([0, *self.heads])[:-1]
        lone = np.array(self.heads) == 1
        return jnp.where(lone, jnp.tanh(logits[:, first]), values.astype(logits.dtype))

    def _padded(self, logits: Array) -> Array:
        """(B, H, largest head), padded by what is never the largest."""
        low = jnp.full((logits.shape[0], 1), -1e30, logits.dtype)
        return jnp.concatenate([logits, low], axis=1)[:, self._places]

    def _tops(self, logits: Array) -> Array:
        return self._padded(logits).max(axis=2)

    @cached_property
    def _places(self) -> Whole:
        starts = np.cumsum([0, *self.heads])
        places = np.full((len(self.heads), max(self.heads)), starts[-1])
        for h, size in enumerate(self.heads):
            places[h, :size] = starts[h] + np.arange(size)
        return places

    @cached_property
    def owns(self) -> NDArray[np.float32]:
        """(H, S): which head a logit belongs to."""
        return np.repeat(np.eye(len(self.heads), dtype=np.float32), self.heads, axis=1)

    @cached_property
    def _kept(self) -> NDArray[np.float32]:
        """(S, F): entries that are features; the first of two values is not."""
        starts = np.cumsum([0, *self.heads])[:-1]
        two = starts[np.array(self.heads) == 2]
        return np.delete(np.eye(sum(self.heads), dtype=np.float32), two, axis=1)

    def codes(self, drawn: Any, shares: Sequence[Floats] | None = None) -> tuple[Whole, ...]:
        """Codes of what was `drawn` (B, H); always in range."""
        left = list(np.asarray(drawn).T)[::-1]
        columns: list[Whole] = []
        for column in self.columns:
            match self.kinds[column]:
                case "choice":
                    # A column of one value is a head of one, which says nothing.
                    value = left.pop()
                    found = value.astype(np.int64) if self.shape[column] > 1 else 0 * value
                case "bits":
                    digits = [left.pop().astype(np.int64) << b for b in range(self.bits(column))]
                    found = np.minimum(np.sum(digits, axis=0), self.values(column) - 1)
                case _:
                    ends, _ = self._ranks(column, shares)
                    rank = (left.pop().astype(np.float64) + 1) / 2
                    found = np.searchsorted(ends, rank, side="right")
                    found = np.minimum(found, self.values(column) - 1)
            if self._null(column):
                found = np.where(left.pop() == 1, self.shape[column] - 1, found)
            columns.append(np.asarray(found, np.int64))
        return tuple(columns)

    def start(self, shares: Sequence[Floats]) -> NDArray[np.float32]:
        """Biases of the heads at which every column has about its shares; bits are independent."""
        biases: list[Floats] = []
        for column in self.columns:
            known = np.maximum(np.asarray(shares[column], np.float64), _TINY)
            known = known / known.sum()
            values = known[: self.values(column)]
            match self.kinds[column]:
                case "choice":
                    biases.append(np.log(known))
                case "bits":
                    for b in range(self.bits(column)):
                        on = values[(np.arange(values.size) >> b) & 1 == 1].sum() / values.sum()
                        on = min(max(on, _TINY), 1 - _TINY)
                        biases.append(np.log(np.array([1 - on, on])))
                case _:
                    biases.append(np.zeros(1))
            if self._null(column):
                biases.append(np.log(np.array([1 - known[-1], known[-1]])))
        return np.concatenate(biases).astype(np.float32)

    def _null(self, column: int) -> bool:
        return self.nullable[column] and self.kinds[column] != "choice"

    def _ranks(self, column: int, shares: Sequence[Floats] | None) -> tuple[Floats, Floats]:
        """(upper ends, middles) of the values' ranks in [0, 1]."""
        size = self.values(column)
        known = np.ones(size)
        if shares is not None:
            known = np.maximum(np.asarray(shares[column], np.float64)[:size], _TINY)
        ends = np.cumsum(known) / known.sum()
        return ends, ends - known / known.sum() / 2
