"""How columns look to a critic and come out of a generator, by their kind.

Every column has codes 0 … size − 1, the last of which is null where it may be. A critic sees features
of a code, looked up in a small public table; a generator has heads of logits, read in two ways:
*relaxed*, differentiable rows of the same features for training, and *hard* codes for release.

    choice   one feature a value; Gumbel-softmax (Jang et al. 2017), a hard draw at the end. Two values
             are one feature and a sigmoid
    bits     whole numbers with few values: ⌈log₂ m⌉ binary features; codes beyond the last value are
             taken for the last
    real     numbers, dates and longer integers: one feature in [−1, 1] and a tanh. Values are placed by
             rank under public shares of the column, evenly where none are given, so that the feature is
             about uniform; rounded to the nearest value, in range by construction

A null of the last two is a binary feature of its own.
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

__all__ = ["KINDS", "Coding"]

KINDS = ("choice", "bits", "real")

Float = NDArray[np.float64]
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

    def tables(self, shares: Sequence[Float] | None = None) -> list[NDArray[np.float32]]:
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

    def features(self, tables: Sequence[Array], codes: Array) -> Array:
        """(B, F) of rows of codes (B, d)."""
        parts = [table[codes[:, i]] for i, table in enumerate(tables)]
        return jnp.concatenate(parts, axis=1)

    def relaxed(self, logits: Array, key: Array, temperature: float | Array) -> Array:
        """(B, F), differentiable: soft choices and bits at a temperature, tanh for reals."""
        noise = jax.random.gumbel(key, logits.shape, logits.dtype)
        parts: list[Array] = []
        at = 0
        for size in self.heads:
            head = logits[:, at : at + size]
            if size == 1:
                parts.append(jnp.tanh(head))
            else:
                soft = jax.nn.softmax((head + noise[:, at : at + size]) / temperature, axis=-1)
                parts.append(soft[:, 1:] if size == 2 else soft)
            at += size
        return jnp.concatenate(parts, axis=1)

    def hard(self, logits: Array, key: Array) -> list[Array]:
        """One array per head: a drawn value, or the tanh itself."""
        noisy = logits + jax.random.gumbel(key, logits.shape, logits.dtype)
        drawn: list[Array] = []
        at = 0
        for size in self.heads:
            if size == 1:
                drawn.append(jnp.tanh(logits[:, at]))
            else:
                drawn.append(jnp.argmax(noisy[:, at : at + size], axis=-1))
            at += size
        return drawn

    def codes(
        self, drawn: Sequence[Any], shares: Sequence[Float] | None = None
    ) -> tuple[NDArray[np.int64], ...]:
        """Codes of what `hard` drew; always in range."""
        left = [np.asarray(each) for each in drawn][::-1]
        columns: list[NDArray[np.int64]] = []
        for column in self.columns:
            match self.kinds[column]:
                case "choice":
                    found = left.pop().astype(np.int64)
                case "bits":
                    digits = [left.pop().astype(np.int64) << b for b in range(self.bits(column))]
                    found = np.minimum(sum(digits), self.values(column) - 1)
                case _:
                    ends, _ = self._ranks(column, shares)
                    rank = (left.pop().astype(np.float64) + 1) / 2
                    found = np.searchsorted(ends, rank, side="right")
                    found = np.minimum(found, self.values(column) - 1)
            if self._null(column):
                found = np.where(left.pop() == 1, self.shape[column] - 1, found)
            columns.append(np.asarray(found, np.int64))
        return tuple(columns)

    def start(self, shares: Sequence[Float]) -> NDArray[np.float32]:
        """Biases of the heads at which every column has about its shares; bits are independent."""
        biases: list[Float] = []
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

    def _ranks(self, column: int, shares: Sequence[Float] | None) -> tuple[Float, Float]:
        """(upper ends, middles) of the values' ranks in [0, 1]."""
        size = self.values(column)
        known = np.ones(size)
        if shares is not None:
            known = np.maximum(np.asarray(shares[column], np.float64)[:size], _TINY)
        ends = np.cumsum(known) / known.sum()
        return ends, ends - known / known.sum() / 2
