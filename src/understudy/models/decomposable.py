"""Decomposable distributions: clique tables joined along a junction tree.

    p(x) = Π_c p_c(x_c) / Π_s p_s(x_s)

with cliques c in running-intersection order (what a clique shares with all earlier ones lies inside a
single earlier one: its separator s). Independent columns are one clique each; a distribution over the
whole universe is a single clique; a spanning tree has pairs. One class, one file format, one sampler.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Codes, Rng, Table, Whole
from understudy.errors import InputError, WorkError
from understudy.models.measured import View

# Intermediate tables of a marginal that no clique holds; 2^27 cells are a gigabyte.
_MAX_CELLS = 2**27
_GOLDEN = (math.sqrt(5) - 1) / 2
_ONE = 1e-9  # How far shares may be from one together


@dataclass(frozen=True, eq=False)
class Decomposable(View):
    """A distribution over `shape`, given by consistent clique tables that each sum to one."""

    shape: tuple[int, ...]
    cliques: tuple[Clique, ...]
    tables: tuple[Table, ...]
    _separators: tuple[Clique, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_separators", _separators(self.shape, self.cliques))
        tables = tuple(np.ascontiguousarray(table, dtype=np.float64) for table in self.tables)
        for clique, table in zip(self.cliques, tables, strict=True):
            if table.shape != tuple(self.shape[i] for i in clique):
                raise InputError(f"model table {clique} has shape {table.shape}")
            if not np.isfinite(table).all() or (table < 0).any() or table.sum() <= 0:
                raise InputError(f"model table {clique} is not a distribution")
        object.__setattr__(self, "tables", tuple(map(_shares, tables)))

    @classmethod
    def independent(cls, tables: Sequence[Table]) -> Decomposable:
        """Independent columns from their one-way tables."""
        shape = tuple(np.size(table) for table in tables)
        return cls(shape, tuple((i,) for i in range(len(shape))), tuple(tables))

    @classmethod
    def joint(cls, table: Table) -> Decomposable:
        """A distribution over the whole universe."""
        return cls(np.shape(table), (tuple(range(np.ndim(table))),), (table,))

    # -- marginals -------------------------------------------------------------------------------

    def marginal(self, clique: Clique) -> Table:
        """The exact marginal of this distribution, summing to one, axes in the order of `clique`."""
        for own, table in zip(self.cliques, self.tables, strict=True):
            if set(clique) <= set(own):
                return project(own, table, clique)
        return self._eliminate(clique)

    def _eliminate(self, clique: Clique) -> Table:
        """Variable elimination over the conditionals p_c / p_s that the query depends on."""
        wanted = set(clique)
        factors: list[tuple[Clique, Table]] = []
        needed = set(wanted)
        # Later cliques whose new columns nobody needs sum to one and drop out.
        for own, separator, table in reversed(
            list(zip(self.cliques, self._separators, self.tables, strict=True))
        ):
            if not (set(own) - set(separator)) & needed:
                continue
            needed |= set(own)
            factors.append((own, _conditional(own, table, separator)))
        for column in sorted(needed - wanted, key=lambda c: self._cost(c, factors)):
            touching = [f for f in factors if column in f[0]]
            factors = [f for f in factors if column not in f[0]]
            scope = tuple(sorted(set().union(*(f[0] for f in touching)) - {column}))
            factors.append((scope, self._multiply(touching, scope)))
        table = self._multiply(factors, clique)
        return table / table.sum()

    def _cost(self, column: int, factors: list[tuple[Clique, Table]]) -> float:
        scope = set().union(*(scope for scope, _ in factors if column in scope))
        return sum(math.log(self.shape[i]) for i in scope)

    def _multiply(self, factors: list[tuple[Clique, Table]], scope: Clique) -> Table:
        cells = math.prod(self.shape[i] for i in scope)
        if cells > _MAX_CELLS:
            raise WorkError(
                f"a marginal of the model needs an intermediate table of {cells:.1e} cells; "
                f"ask for fewer columns at once"
            )
        # einsum knows 52 labels, tables may have more columns: number those that meet here.
        label = {i: at for at, i in enumerate(sorted(set().union(*(own for own, _ in factors))))}
        operands: list[Any] = []
        for own, table in factors:
            operands += [table, [label[i] for i in own]]
        return np.einsum(*operands, [label[i] for i in scope], optimize="greedy")

    # -- rows ------------------------------------------------------------------------------------

    def sample(self, rows: int, rng: Rng) -> list[Codes]:
        """Encoded rows by systematic sampling along the cliques.

        In every clique, each group of rows that agrees on the separator gets its share of every cell
        rounded up or down, so clique tables of the rows are within one row per group of the model,
        where independent draws would be off by its square root. Within a group the rows are sorted
        by the columns drawn before, and shares are spread evenly along that order, which keeps the
        tables that no clique holds close as well. Rows come in random order.
        """
        codes: list[Whole] = [np.zeros(rows, np.int64) for _ in self.shape]
        drawn: list[int] = []
        for own, separator, table in zip(self.cliques, self._separators, self.tables, strict=True):
            fresh = tuple(i for i in own if i not in separator)
            if not fresh:
                continue
            groups = np.zeros(rows, np.int64)
            for i in separator:
                groups = groups * self.shape[i] + codes[i]
            block = np.moveaxis(
                table, [own.index(i) for i in separator + fresh], range(len(own))
            ).reshape(math.prod(self.shape[i] for i in separator), -1)
            picked = _systematic(block, groups, [codes[i] for i in drawn if i not in own], rng)
            drawn += fresh
            sizes = tuple(self.shape[i] for i in fresh)
            for i, values in zip(fresh, np.unravel_index(picked, sizes), strict=True):
                codes[i] = values.astype(np.int64)
        order = rng.permutation(rows)
        return [
            column[order].astype(np.min_scalar_type(size - 1))
            for column, size in zip(codes, self.shape, strict=True)
        ]

    # -- disk ------------------------------------------------------------------------------------

    def to_arrays(self) -> tuple[dict[str, object], dict[str, NDArray[Any]]]:
        """(description, arrays): JSON and plain arrays, nothing executable."""
        description: dict[str, object] = {
            "kind": "decomposable",
            "shape": list(self.shape),
            "cliques": [list(clique) for clique in self.cliques],
        }
        arrays: dict[str, NDArray[Any]] = {
            f"table_{i}": table for i, table in enumerate(self.tables)
        }
        return description, arrays


def _separators(shape: tuple[int, ...], cliques: tuple[Clique, ...]) -> tuple[Clique, ...]:
    """What each clique shares with earlier ones; checks the running intersection."""
    seen: set[int] = set()
    separators: list[Clique] = []
    for position, clique in enumerate(cliques):
        shared = tuple(i for i in clique if i in seen)
        if shared and not any(set(shared) <= set(before) for before in cliques[:position]):
            raise InputError(f"clique {clique} breaks the running intersection of the model")
        separators.append(shared)
        seen |= set(clique)
    if seen != set(range(len(shape))):
        raise InputError("a model must cover every column")
    return tuple(separators)


def _shares(table: Table) -> Table:
    """The table over its sum. Shares stay as they are, so that what is read is what was written."""
    total = table.sum()
    return table if abs(total - 1) < _ONE else table / total


def project(own: Clique, table: Table, clique: Clique) -> Table:
    """Sum a table over `own` down to `clique`, axes in the order of `clique`."""
    summed = table.sum(axis=tuple(axis for axis, i in enumerate(own) if i not in clique))
    kept = [i for i in own if i in clique]
    return summed.transpose([kept.index(i) for i in clique])


def _conditional(own: Clique, table: Table, separator: Clique) -> Table:
    if not separator:
        return table
    below = project(own, table, separator)
    shape = tuple(table.shape[axis] if i in separator else 1 for axis, i in enumerate(own))
    below = below.reshape(shape)
    return np.divide(table, below, out=np.zeros_like(table), where=below > 0)


def _systematic(block: Table, groups: Whole, others: list[Whole], rng: Rng) -> Whole:
    """One cell per row, drawn from `block[group]`; within a group every share is rounded, not drawn.

    The c rows of a group, sorted by the other columns, take the quantiles π(k)/c + v modulo one: v
    uniform per group, so every row's quantile is uniform, and a cell with share p gets ⌊pc⌋ or ⌈pc⌉
    rows; π orders the multiples of the golden ratio, so every run of neighbours along the order
    gets its shares as well.
    """
    rows = groups.size
    if rows == 0:
        return np.zeros(0, np.int64)
    weight = block.sum(axis=1, keepdims=True)
    # A group without mass can only be reached by rounding; give it the overall shares.
    fallback = block.sum(axis=0) / block.sum()
    law = np.where(weight > 0, block / np.where(weight > 0, weight, 1.0), fallback)
    order = np.lexsort((rng.random(rows), *others[::-1], groups))
    present, first, count = np.unique(groups[order], return_index=True, return_counts=True)
    place = np.repeat(np.arange(present.size), count)
    rank = np.arange(rows) - first[place]
    spread = np.empty(rows, np.int64)
    spread[np.lexsort((rank * _GOLDEN % 1.0, place))] = rank
    quantile = (spread / count[place] + rng.random(present.size)[place]) % 1.0
    cumulative = np.cumsum(law[present], axis=1)
    cumulative /= cumulative[:, -1:]
    # One search for all groups: group g owns the interval (g, g + 1].
    keys = (cumulative + np.arange(present.size)[:, None]).reshape(-1)
    cell = np.searchsorted(keys, place + quantile, side="right") - place * block.shape[1]
    picked = np.empty(rows, np.int64)
    last = block.shape[1] - 1
    cell = np.clip(cell, 0, last)
    # Rounding of the sum of key and offset may land on a cell without mass; move to the last with.
    empty = law[present][place, cell] <= 0
    if empty.any():
        positive = law[present] > 0
        top = last - np.argmax(positive[:, ::-1], axis=1)
        cell[empty] = top[place[empty]]
    picked[order] = cell
    return picked
