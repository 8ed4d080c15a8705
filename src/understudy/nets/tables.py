"""Marginal tables of a mixture of products, exactly, and only those that are asked for.

A latent gives independent columns with heads p_i, so a batch of B latents has the marginal

    m(x_c) = (1/B) Σ_b Π_{i in c} p_i^b(x_i),

a matrix product of the *lead* (all columns of the clique but one) with the *last*, the column with most
values. One pass computes all tables: leads that meet the same lasts are stacked, so are the lasts, the
stacks are cut into tiles of equal size, and all tiles are one batched product. The compiled program has
about the same size for one table and for a thousand.

Columns whose values were merged before counting are merged before multiplying. Where batch × leads
passes `entries`, the batch is taken in slices and recomputed on the way back. Gradients are gathered as
well, never scattered: the same bits in every run, also on a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from understudy._types import Clique, Floats, Whole

Index = NDArray[np.int32]

_ENTRIES = 50_000_000
_NOWHERE = np.iinfo(np.int32).max  # An index beyond every array
_FAN = 16  # Rows added at once when gradients are summed
_TILES = [(rows, width) for rows in (16, 32, 64, 128) for width in range(8, 257, 8)]
"""Rows and width of a tile."""
_GATHER = 20  # What a gathered number costs, in products


@dataclass(frozen=True, eq=False, slots=True)
class Table:
    """Which table: columns, and labels[k][v], what value v of the k-th column is counted as."""

    clique: Clique
    labels: tuple[Whole, ...] | None = None

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Values per column, after merging."""
        if self.labels is None:
            return tuple(shape[i] for i in self.clique)
        return tuple(int(label.max()) + 1 for label in self.labels)


@partial(jax.tree_util.register_dataclass, data_fields=["forth", "back"], meta_fields=[])
@dataclass(frozen=True, eq=False, slots=True)
class _Sums:
    """A linear map over rows, y[t] = Σ x[s] over all s that belong to t, and its transpose.

    Both are gathers: rows of indices to add up, at most `_FAN` each, level by level. Nothing is
    scattered, so the bits do not depend on which thread comes first.
    """

    forth: tuple[Index, ...]
    back: tuple[Index, ...]

    @classmethod
    def of(cls, to: Whole, of: Whole, shape: tuple[int, int]) -> _Sums:
        """From pairs (t, s), to shape[0] rows of shape[1]."""
        return cls(_levels(to, of, shape[0]), _levels(of, to, shape[1]))

    def __call__(self, x: Array) -> Array:
        """The map, with its transpose as the derivative."""
        return _summed(self.forth, self.back, x)


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["merge", "take", "keep"],
    meta_fields=["tiles", "entries"],
)
@dataclass(frozen=True, eq=False, slots=True)
class Pass:
    """The one pass, as arrays: compiled functions take it as an argument, whatever its tables are."""

    merge: _Sums | None
    """Heads of merged values from those of values."""
    take: tuple[_Sums, ...]
    """Rows of all tiles from the heads and a row of ones: the lasts, then each column of a lead."""
    keep: _Sums
    """Cells of the tables from those of the tiles."""
    tiles: tuple[int, int, int]
    """How many, rows and width of each."""
    entries: int

    def marginals(self, heads: Array) -> Array:
        """All cells (K,) of all tables from heads (B, S) laid side by side; a table sums to one."""
        batch, (tiles, high, _) = heads.shape[0], self.tiles
        rows = max(1, min(batch, self.entries // (tiles * high)))  # latents that are taken at once
        if rows >= batch:
            return self._totals(heads) / batch
        parts = -(-batch // rows)
        padded = jnp.pad(heads, ((0, parts * rows - batch), (0, 0))).reshape(parts, rows, -1)

        @jax.checkpoint
        def add(totals: Array, part: Array) -> tuple[Array, None]:
            return totals + self._totals(part), None

        totals = jnp.zeros(self.keep.forth[-1].shape[0], heads.dtype)
        return jax.lax.scan(add, totals, padded)[0] / batch

    def _totals(self, heads: Array) -> Array:
        tiles, rows, width = self.tiles
        blocks, ones = [heads.T], jnp.ones((1, heads.shape[0]), heads.dtype)
        if self.merge is not None:
            blocks.append(self.merge(heads.T))
        whole = jnp.concatenate([*blocks, ones])
        last, first, *more = (take(whole) for take in self.take)
        lead = math.prod(more, start=first).reshape(tiles, rows, -1)
        found = jnp.einsum("trb,tcb->trc", lead, last.reshape(tiles, width, -1))
        return self.keep(found.reshape(-1))


@dataclass(frozen=True, eq=False)
class Layout:
    """Tables side by side in one vector, each in the order of its own cells."""

    shape: tuple[int, ...]
    tables: tuple[Table, ...]
    entries: int = _ENTRIES
    """Numbers of the largest array held: batch × leads."""

    @cached_property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """Values per column of every table, after merging."""
        return tuple(table.sizes(self.shape) for table in self.tables)

    @property
    def cells(self) -> int:
        """Cells of all tables."""
        return sum(math.prod(sizes) for sizes in self.sizes)

    def arrange(self, values: Sequence[NDArray[Any]]) -> NDArray[np.float32]:
        """One array per table as one vector (K,), in the order of `marginals`."""
        flat = [np.asarray(value).reshape(-1) for value in values]
        return np.concatenate([np.zeros(0), *flat]).astype(np.float32)

    def restore(self, flat: NDArray[Any] | Array) -> list[Floats]:
        """The reverse of `arrange`: one table each."""
        ends = np.cumsum([math.prod(sizes) for sizes in self.sizes])
        parts = np.split(np.asarray(flat, np.float64), ends[:-1])
        return [part.reshape(sizes) for part, sizes in zip(parts, self.sizes, strict=True)]

    def marginals(self, heads: Array) -> Array:
        """All cells (K,) from heads (B, S); see `Pass.marginals`."""
        return self.once.marginals(heads)

    @cached_property
    def once(self) -> Pass:
        """The pass over these tables, by the cheapest tiles and the cheaper way to stack."""
        blocks, start = _Blocks(self.shape), 0
        cells: dict[tuple[_Part, _Part], list[Whole]] = {}
        for table, sizes in zip(self.tables, self.sizes, strict=True):
            parts = [(blocks.offset(table, k), size) for k, size in enumerate(sizes)]
            at = max(range(len(sizes)), key=lambda k: (sizes[k], table.clique[k]))
            lead, last = _Part((*parts[:at], *parts[at + 1 :])), _Part((parts[at],))
            own = np.arange(start, start + math.prod(sizes)).reshape(sizes)
            own = np.moveaxis(own, at, -1).reshape(lead.rows, last.rows)
            cells.setdefault((lead, last), []).append(own)
            start += own.size
        ways = [(stacks, tile) for stacks in _stacked(list(cells)) for tile in _TILES]
        stacks, tile = min(ways, key=lambda way: sum(stack.cost(*way[1]) for stack in way[0]))
        return _tiled(stacks, tile, cells, blocks, self.entries)


@dataclass(frozen=True, slots=True)
class _Part:
    """Lead or last of a table: where the heads of each of its columns begin, and how many they are."""

    blocks: tuple[tuple[int, int], ...]

    @property
    def rows(self) -> int:
        return math.prod(size for _, size in self.blocks)

    def heads(self, factors: int, one: int) -> Whole:
        """(rows, factors): the head of every column; `one` where there are fewer columns."""
        sizes = [size for _, size in self.blocks]
        found = np.full((self.rows, factors), one)
        for k, code in enumerate(np.indices(sizes)):
            found[:, k] = self.blocks[k][0] + code.reshape(-1)
        return found


@dataclass(frozen=True, slots=True)
class _Stack:
    """Leads that all meet the same lasts: one matrix, leads below one another, lasts side by side."""

    leads: tuple[_Part, ...]
    lasts: tuple[_Part, ...]

    @property
    def factors(self) -> int:
        return max(1, *(len(lead.blocks) for lead in self.leads))

    def tiles(self, rows: int, width: int) -> tuple[int, int]:
        """How many below one another and side by side."""
        high, wide = (sum(part.rows for part in parts) for parts in (self.leads, self.lasts))
        return -(-high // rows), -(-wide // width)

    def cost(self, rows: int, width: int) -> int:
        """Work with tiles of this size: products, padding included, and what is gathered."""
        down, across = self.tiles(rows, width)
        return down * across * (rows * width + _GATHER * (self.factors * rows + width))


class _Blocks:
    """Where the values of a column lie among all heads: as they are, or behind them where merged."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.starts = np.concatenate([[0], np.cumsum(shape)]).tolist()
        self.size: int = self.starts[-1]
        self.merged: list[tuple[int, int]] = []
        """(merged value, value), merged ones counted from 0."""
        self._known: dict[tuple[int, bytes], int] = {}

    def offset(self, table: Table, k: int) -> int:
        """Of the k-th column of a table; a merging that is new is added."""
        column = table.clique[k]
        begin, end = self.starts[column], self.starts[column + 1]
        if table.labels is None or np.array_equal(table.labels[k], np.arange(end - begin)):
            return begin
        labels = np.asarray(table.labels[k], np.int64)
        key = column, labels.tobytes()
        if key not in self._known:
            self._known[key] = self.size
            first = self.size - self.starts[-1]
            self.merged += [(first + int(g), begin + v) for v, g in enumerate(labels)]
            self.size += int(labels.max()) + 1
        return self._known[key]

    def merging(self) -> _Sums | None:
        """Heads of merged values from those of values."""
        if not self.merged:
            return None
        to, of = np.array(self.merged, np.int64).T
        return _Sums.of(to, of, (self.size - self.starts[-1], self.starts[-1]))


def _stacked(tables: Sequence[tuple[_Part, _Part]]) -> tuple[list[_Stack], list[_Stack]]:
    """Two ways: leads that meet the same lasts together, and lasts that meet the same leads."""
    lasts: dict[_Part, list[_Part]] = {}
    leads: dict[_Part, list[_Part]] = {}
    for lead, last in tables:
        lasts.setdefault(lead, []).append(last)
        leads.setdefault(last, []).append(lead)
    return (
        [_Stack(alike, met) for met, alike in _alike(lasts).items()],
        [_Stack(met, alike) for met, alike in _alike(leads).items()],
    )


def _alike(met: dict[_Part, list[_Part]]) -> dict[tuple[_Part, ...], tuple[_Part, ...]]:
    groups: dict[tuple[_Part, ...], tuple[_Part, ...]] = {}
    for part, others in met.items():
        key = tuple(sorted(others, key=lambda other: other.blocks))
        groups[key] = (*groups.get(key, ()), part)
    return groups


def _tiled(
    stacks: Sequence[_Stack],
    tile: tuple[int, int],
    cells: dict[tuple[_Part, _Part], list[Whole]],
    blocks: _Blocks,
    entries: int,
) -> Pass:
    """Index arrays of all tiles, and of every cell the place where it lies among theirs."""
    (rows, width), one = tile, blocks.size
    factors = max(stack.factors for stack in stacks)
    leads: list[Whole] = []
    lasts: list[Whole] = []
    kept: list[tuple[Whole, Whole]] = []
    before = 0
    for stack in stacks:
        down, across = stack.tiles(rows, width)
        below = np.concatenate([lead.heads(factors, one) for lead in stack.leads])
        aside = np.concatenate([last.heads(1, one) for last in stack.lasts])
        leads.append(np.repeat(_padded(below, down, rows, one), across, axis=0))
        lasts.append(np.tile(_padded(aside, across, width, one), (down, 1, 1)))
        r, c = np.arange(len(below)), np.arange(len(aside))
        place = (((before + r // rows * across) * rows + r % rows) * width)[:, None]
        place = place + c // width * rows * width + c % width
        before += down * across
        down_to = np.cumsum([0, *(lead.rows for lead in stack.leads)])
        wide_to = np.cumsum([0, *(last.rows for last in stack.lasts)])
        for (i, lead), (j, last) in product(enumerate(stack.leads), enumerate(stack.lasts)):
            at = place[down_to[i] : down_to[i + 1], wide_to[j] : wide_to[j + 1]].reshape(-1)
            kept += [(own.reshape(-1), at) for own in cells[lead, last]]
    to, of = (np.concatenate(each) for each in zip(*kept, strict=True))
    return Pass(
        blocks.merging(),
        tuple(_taken(index, one) for index in (*np.concatenate(lasts).T, *np.concatenate(leads).T)),
        _Sums.of(to, of, (to.size, before * rows * width)),
        (before, rows, width),
        entries,
    )


def _padded(heads: Whole, tiles: int, rows: int, one: int) -> Whole:
    """(tiles, rows, factors)."""
    extra = tiles * rows - len(heads)
    return np.pad(heads, ((0, extra), (0, 0)), constant_values=one).reshape(tiles, rows, -1)


def _taken(index: Whole, one: int) -> _Sums:
    """Rows by their index, where `one` is the last and constant: it has no derivative."""
    flat = index.T.reshape(-1)
    used = np.flatnonzero(flat < one)
    return _Sums((flat[:, None].astype(np.int32),), _levels(flat[used], used, one + 1))


def _levels(to: Whole, of: Whole, size: int) -> tuple[Index, ...]:
    """y[to] += x[of] as gathers: rows of a level are sums of at most `_FAN` rows of the one before."""
    levels: list[Index] = []
    while True:
        order = np.argsort(to, kind="stable")
        to, of = to[order], of[order]
        counts = np.bincount(to, minlength=size)
        most = max(1, int(counts.max()))
        fan = min(_FAN, most)
        rank = np.arange(to.size) - (np.cumsum(counts) - counts)[to]
        pieces = np.maximum(1, -(-counts // fan))
        begins = np.cumsum(pieces) - pieces
        index = np.full((int(pieces.sum()), fan), _NOWHERE, np.int32)
        index[begins[to] + rank // fan, rank % fan] = of
        levels.append(index)
        if most <= fan:
            return tuple(levels)
        to, of = np.repeat(np.arange(size), pieces), np.arange(len(index))


@jax.custom_vjp
def _summed(forth: tuple[Index, ...], back: tuple[Index, ...], x: Array) -> Array:
    for index in forth:
        x = x.at[index].get(mode="fill", fill_value=0).sum(axis=1)
    return x


def _forward(forth: Any, back: Any, x: Array) -> tuple[Array, Any]:
    return _summed(forth, back, x), (forth, back)


def _backward(maps: Any, given: Array) -> tuple[None, None, Array]:
    forth, back = maps
    return None, None, _summed(back, forth, given)


_summed.defvjp(_forward, _backward)
