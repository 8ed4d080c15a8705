"""Junction trees: how large they are, which dependences a tractable one holds, its fit, and its rows.

The model is p(x) ∝ Π_j exp θ_j(x_j) over blocks that lie in cliques of a chordal graph; clique tables
are kept calibrated by passing separators along the tree (Lauritzen-Spiegelhalter 1988).

`tree_cliques` and `tree_cells` say how large a tree will be without making one. Columns are eliminated
greedily, the one whose clique has fewest cells first; the cliques that appear are those of a junction
tree of the triangulated graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Rng, Table, Whole
from understudy.models import _kernels as kernels

Refine = Callable[[int, Table], Table]
"""refine(block, its current table) → factors of the same shape."""

# A pair whose table is larger is left to the weights.
_LARGEST = 2_000_000
_PATIENCE = 40


def grow(
    shape: tuple[int, ...], gains: Mapping[Clique, float], cells: float
) -> tuple[list[Clique], list[int]]:
    """(cliques, parent of each): a maximum spanning tree of `gains`, and more while they fit.

    Cliques come in running-intersection order; beyond the tree, cliques of measured columns are added
    by descending gain as long as the triangulated model has at most `cells` cells.
    """
    d = len(shape)
    component = list(range(d))

    def root(i: int) -> int:
        while component[i] != i:
            component[i] = component[component[i]]
            i = component[i]
        return i

    edges: list[Clique] = []
    rest: list[Clique] = []
    for clique, gain in sorted(gains.items(), key=lambda item: (-item[1], item[0])):
        if gain <= 0 or math.prod(shape[i] for i in clique) > _LARGEST:
            continue
        roots = {root(i) for i in clique}
        if len(roots) == len(clique):
            for i in clique[1:]:
                component[root(i)] = root(clique[0])
            edges.append(clique)
        else:
            rest.append(clique)
    cliques, size = _triangulate(shape, edges)
    failures = 0
    for clique in rest:
        wider, larger = _triangulate(shape, [*edges, clique])
        if larger <= max(cells, size):
            edges.append(clique)
            cliques, size = wider, larger
        else:
            failures += 1
            if failures > _PATIENCE:
                break
    return ordered(cliques)


def _triangulate(
    shape: tuple[int, ...], edges: Sequence[Clique]
) -> tuple[list[frozenset[int]], float]:
    """Cliques of an elimination by least table, and the number of their cells."""
    logs = [math.log(size) for size in shape]
    around: list[set[int]] = [set() for _ in shape]
    for clique in edges:
        for i in clique:
            around[i] |= set(clique) - {i}
    left = set(range(len(shape)))
    cliques: list[frozenset[int]] = []
    cost = {i: logs[i] + sum(logs[j] for j in around[i]) for i in left}
    while left:
        i = min(left, key=lambda v: (cost[v], v))
        clique = frozenset(around[i] | {i})
        if not any(clique <= other for other in cliques):
            cliques.append(clique)
        for j in around[i]:
            around[j] |= around[i]
            around[j] -= {i, j}
        left.remove(i)
        for j in around[i]:
            cost[j] = logs[j] + sum(logs[k] for k in around[j])
    return cliques, sum(math.exp(sum(logs[i] for i in clique)) for clique in cliques)


def ordered(cliques: Iterable[Iterable[int]]) -> tuple[list[Clique], list[int]]:
    """(cliques of a chordal graph, parent of each) such that what a clique shares with all earlier
    ones lies in its parent.

    Prim's order of the maximum spanning tree of overlaps, which is a junction tree.
    """
    left = sorted(tuple(sorted(clique)) for clique in cliques)
    order = [left.pop(0)]
    parents = [-1]
    overlap = [(len(set(c) & set(order[0])), 0) for c in left]
    while left:
        at = max(range(len(left)), key=lambda k: overlap[k][0])
        clique, (_, parent) = left.pop(at), overlap.pop(at)
        order.append(clique)
        parents.append(parent)
        new = len(order) - 1
        for k, other in enumerate(left):
            shared = len(set(other) & set(clique))
            if shared > overlap[k][0]:
                overlap[k] = (shared, new)
    return order, parents


def tree_cliques(shape: Sequence[int], cliques: Iterable[Clique]) -> list[Clique]:
    """The maximal cliques of a junction tree that holds `cliques`; every column is in one.

    Sets of columns are bits of integers.
    """
    near = [1 << i for i in range(len(shape))]
    for clique in cliques:
        bits = sum(1 << i for i in clique)
        for i in clique:
            near[i] |= bits
    left, found = set(range(len(shape))), list[int]()
    cells = {i: _cells(shape, near[i]) for i in left}
    while left:
        column = min(left, key=lambda i: (cells[i], i))
        clique = near[column]
        left.remove(column)
        if not any(clique & ~before == 0 for before in found):
            found.append(clique)
        rest = clique & ~(1 << column)
        for i in _columns(rest):
            near[i] = (near[i] | rest) & ~(1 << column)
            cells[i] = _cells(shape, near[i])
    return [tuple(_columns(bits)) for bits in found]


def tree_cells(shape: Sequence[int], cliques: Iterable[Clique]) -> int:
    """Cells of all tables of that junction tree."""
    return sum(math.prod(shape[i] for i in clique) for clique in tree_cliques(shape, cliques))


def _columns(bits: int) -> list[int]:
    return [i for i in range(bits.bit_length()) if bits >> i & 1]


def _cells(shape: Sequence[int], bits: int) -> int:
    return math.prod(shape[i] for i in _columns(bits))


class JunctionTree:
    """Clique tables of one distribution, from uniform on; `sweep` refines it block by block."""

    def __init__(
        self, shape: tuple[int, ...], cliques: Sequence[Clique], parents: Sequence[int]
    ) -> None:
        self.shape = shape
        self.cliques = tuple(cliques)
        self.tables = [np.full([shape[i] for i in c], 1.0) for c in cliques]
        self.tables = [table / table.sum() for table in self.tables]
        self._children: list[list[int]] = [[] for _ in cliques]
        for child, parent in enumerate(parents):
            if parent >= 0:
                self._children[parent].append(child)

    @property
    def order(self) -> list[int]:
        """The columns in the order in which they are drawn; records are sorted by the last first."""
        return list(dict.fromkeys(i for clique in self.cliques for i in clique))

    def home(self, clique: Clique) -> int | None:
        """The first clique that holds these columns."""
        for at, own in enumerate(self.cliques):
            if set(clique) <= set(own):
                return at
        return None

    def sweep(self, blocks: Sequence[Sequence[tuple[int, Clique]]], refine: Refine) -> None:
        """Visit every clique along the tree and refine its blocks, given as (block, columns)."""
        # (clique, None) enters, (clique, parent) leaves: a walk without recursion.
        stack: list[tuple[int, int | None, bool]] = [(0, None, True)]
        while stack:
            at, parent, entering = stack.pop()
            if not entering:
                assert parent is not None
                self._send(at, parent)
                continue
            if parent is not None:
                self._send(parent, at)
                stack.append((at, parent, False))
            for block, columns in blocks[at]:
                current = self._project(at, set(columns))
                self._scale(at, set(columns), refine(block, current / current.sum()))
            self.tables[at] /= self.tables[at].sum()
            stack += [(child, at, True) for child in reversed(self._children[at])]
        down = [0]
        while down:
            at = down.pop()
            for child in self._children[at]:
                self._send(at, child)
                down.append(child)

    def sample(self, rows: int, rng: Rng) -> list[NDArray[np.unsignedinteger[Any]]]:
        """Records of low discrepancy, neighbours alike: see `understudy.models._kernels.draw`."""
        codes: list[Whole] = [np.zeros(0, np.int64)] * len(self.shape)
        order = np.arange(rows)
        seen: set[int] = set()
        for own, table in zip(self.cliques, self.tables, strict=True):
            shared = tuple(i for i in own if i in seen)
            fresh = tuple(i for i in own if i not in seen)
            if not fresh:
                continue
            seen |= set(own)
            group = np.zeros(rows, np.int64)
            for i in shared:
                group = group * self.shape[i] + codes[i]
            groups = math.prod(self.shape[i] for i in shared)
            block = np.moveaxis(table, [own.index(i) for i in shared + fresh], range(len(own)))
            block = block.reshape(groups, -1)
            empty = block.sum(axis=1) <= 0  # reached by rounding alone
            if empty.any():
                block = np.where(empty[:, None], block.sum(axis=0), block)
            small = group.astype(np.min_scalar_type(groups - 1))  # sorted faster
            along = order[np.argsort(small[order], kind="stable")] if shared else order
            picked = np.empty(rows, np.int64)
            laws = np.ascontiguousarray(np.cumsum(block, axis=1))
            kernels.draw(laws, group, along, rng.random(groups), picked)
            sizes = tuple(self.shape[i] for i in fresh)
            for i, values in zip(fresh, np.unravel_index(picked, sizes), strict=True):
                codes[i] = values.astype(np.int64)
                small = codes[i].astype(np.min_scalar_type(self.shape[i] - 1))
                order = order[np.argsort(small[order], kind="stable")]
        return [
            column[order].astype(np.min_scalar_type(size - 1))
            for column, size in zip(codes, self.shape, strict=True)
        ]

    def _project(self, at: int, columns: set[int]) -> Table:
        own = self.cliques[at]
        return self.tables[at].sum(axis=tuple(a for a, i in enumerate(own) if i not in columns))

    def _scale(self, at: int, columns: set[int], factors: Table) -> None:
        own = self.cliques[at]
        self.tables[at] *= factors.reshape([self.shape[i] if i in columns else 1 for i in own])

    def _send(self, source: int, target: int) -> None:
        shared = set(self.cliques[source]) & set(self.cliques[target])
        if not shared:
            return
        ours, theirs = self._project(source, shared), self._project(target, shared)
        self._scale(
            target, shared, np.divide(ours, theirs, out=np.zeros_like(ours), where=theirs > 0)
        )
