"""Marginal tables of a mixture of products, exactly, and only those that are asked for.

A latent gives independent columns with heads p_i, so a batch of B latents has the marginal

    m(x_c) = (1/B) Σ_b Π_{i in c} p_i^b(x_i),

an average of outer products: a matrix product of the *lead* (all columns of the clique but one, B rows)
with the *last* column. Tables with the same lead share one product, the last is the column with most
values, so nothing larger than batch × lead is held. Columns whose values were merged before counting
are merged before multiplying. Where batch × lead passes `entries`, the batch is taken in slices and
recomputed on the way back. The universe never appears.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from understudy._types import Clique

__all__ = ["Layout", "Table"]

Labels = NDArray[np.int64]
Block = tuple[int, int]
"""(column, number of its merging); merging 0 is none."""

_ENTRIES = 50_000_000


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """Which table: columns, and labels[k][v], what value v of the k-th column is counted as."""

    clique: Clique
    labels: tuple[Labels, ...] | None = None

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Values per column, after merging."""
        if self.labels is None:
            return tuple(shape[i] for i in self.clique)
        return tuple(int(label.max()) + 1 for label in self.labels)


@dataclass(frozen=True, eq=False, slots=True)
class _Group:
    """Tables with one lead: a matrix (cells of the lead) × (cells of the lasts, side by side)."""

    lead: tuple[Block, ...]
    lasts: tuple[Block, ...]
    tables: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Layout:
    """How the tables are computed and where each of them lies in the result."""

    shape: tuple[int, ...]
    tables: tuple[Table, ...]
    entries: int = _ENTRIES
    """Numbers of the largest array held: batch × lead."""
    _groups: tuple[_Group, ...] = field(init=False)
    _merges: dict[Block, Labels] = field(init=False)
    _last: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        merges: dict[Block, Labels] = {}
        numbers: dict[tuple[int, bytes], Block] = {}
        found: dict[tuple[Block, ...], list[tuple[Block, int]]] = {}
        lasts: list[int] = []
        for number, table in enumerate(self.tables):
            blocks: list[Block] = []
            for k, column in enumerate(table.clique):
                labels = None if table.labels is None else np.asarray(table.labels[k], np.int64)
                if labels is None or int(labels.max()) + 1 == self.shape[column]:
                    # As many groups as values: an order of its own at most, kept as a merging.
                    identity = labels is None or (labels == np.arange(labels.size)).all()
                    if identity:
                        blocks.append((column, 0))
                        continue
                assert labels is not None
                new = (column, 1 + len(merges))
                block = numbers.setdefault((column, labels.tobytes()), new)
                merges[block] = labels
                blocks.append(block)
            sizes = table.sizes(self.shape)
            last = max(range(len(sizes)), key=lambda k: (sizes[k], k))
            lasts.append(last)
            lead = tuple(block for k, block in enumerate(blocks) if k != last)
            found.setdefault(lead, []).append((blocks[last], number))
        groups = [
            _Group(lead, tuple(b for b, _ in members), tuple(n for _, n in members))
            for lead, members in found.items()
        ]
        object.__setattr__(self, "_groups", tuple(groups))
        object.__setattr__(self, "_merges", merges)
        object.__setattr__(self, "_last", tuple(lasts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        """Two layouts are one where they compute the same: what is compiled for one serves both."""
        merges = tuple((block, labels.tobytes()) for block, labels in self._merges.items())
        groups = tuple((g.lead, g.lasts, g.tables) for g in self._groups)
        return self.shape, self.entries, merges, groups

    @property
    def cells(self) -> int:
        """Cells of all tables."""
        return sum(math.prod(table.sizes(self.shape)) for table in self.tables)

    def arrange(self, values: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float32]]:
        """One array per table into the layout of `marginals`: one matrix per group."""
        return [
            np.concatenate([self._matrix(values[n], n) for n in group.tables], axis=1).astype(
                np.float32
            )
            for group in self._groups
        ]

    def restore(self, matrices: Sequence[Array]) -> list[NDArray[np.float64]]:
        """Back from the layout of `marginals` to one table each, axes in the order of its clique."""
        tables: list[NDArray[np.float64] | None] = [None] * len(self.tables)
        for group, matrix in zip(self._groups, matrices, strict=True):
            at = 0
            full = np.asarray(matrix, np.float64)
            for block, number in zip(group.lasts, group.tables, strict=True):
                width = self._size((block,))
                last, sizes = self._last[number], self.tables[number].sizes(self.shape)
                lead = [size for k, size in enumerate(sizes) if k != last]
                part = full[:, at : at + width].reshape(*lead, width)
                tables[number] = np.moveaxis(part, -1, last)
                at += width
        return [table for table in tables if table is not None]

    def marginals(self, columns: Sequence[Array]) -> list[Array]:
        """One matrix per group from the heads (B, size) of every column; each table sums to one."""
        batch = columns[0].shape[0]
        rows = self._slice(batch)
        if rows >= batch:
            return [total / batch for total in self._sums(columns)]
        parts = -(-batch // rows)
        padded = [
            jnp.pad(c, ((0, parts * rows - batch), (0, 0))).reshape(parts, rows, -1)
            for c in columns
        ]
        zeros = [
            jnp.zeros((self._size(g.lead), sum(self._size((b,)) for b in g.lasts)))
            for g in self._groups
        ]

        @jax.checkpoint
        def add(sums: list[Array], part: list[Array]) -> tuple[list[Array], None]:
            return [s + t for s, t in zip(sums, self._sums(part), strict=True)], None

        sums, _ = jax.lax.scan(add, zeros, padded)
        return [total / batch for total in sums]

    def _sums(self, columns: Sequence[Array]) -> list[Array]:
        blocks: dict[Block, Array] = {(i, 0): c for i, c in enumerate(columns)}
        for block, labels in self._merges.items():
            spread = np.zeros((labels.size, int(labels.max()) + 1), np.float32)
            spread[np.arange(labels.size), labels] = 1.0
            blocks[block] = columns[block[0]] @ jnp.asarray(spread)
        sums: list[Array] = []
        for group in self._groups:
            lead = jnp.ones((columns[0].shape[0], 1), jnp.float32)
            for block in group.lead:
                lead = (lead[:, :, None] * blocks[block][:, None, :]).reshape(lead.shape[0], -1)
            sums.append(lead.T @ jnp.concatenate([blocks[b] for b in group.lasts], axis=1))
        return sums

    def _matrix(self, values: NDArray[np.float64], number: int) -> NDArray[np.float64]:
        last, sizes = self._last[number], self.tables[number].sizes(self.shape)
        table = np.moveaxis(np.asarray(values).reshape(sizes), last, -1)
        return table.reshape(-1, sizes[last])

    def _size(self, blocks: tuple[Block, ...]) -> int:
        return math.prod(
            int(self._merges[b].max()) + 1 if b[1] else self.shape[b[0]] for b in blocks
        )

    def _slice(self, batch: int) -> int:
        """How many latents are taken at once."""
        lead = max((self._size(group.lead) for group in self._groups), default=1)
        return max(1, min(batch, self.entries // max(lead, 1)))
