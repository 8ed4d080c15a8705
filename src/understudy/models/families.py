"""Families: parents with their children, made from a model of their views.

A *view* of a family is a row (parent, number of children, a child A, a sibling B of A); where children
have an order, B is the child before A. The views of a family have equal weights. A release learns the
law of views; here families are made whose views follow it.

1. Parents and their numbers of children are rows of the model.
2. The children of families of one size, and at one place where there is an order, are rows of the model
   of that size and place. They go to families whose parent, and whose child before, is like those that
   came with them.
3. Children of families of one size change places as long as that lowers Σ (c − m)²/√(1 + m) over the
   tables of parents and children and of siblings, c what the families' views have in a cell and m what
   the model expects. Tables of children alone stay as they were.

Cells that rules forbid are emptied first and never entered. Deterministic given `rng`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique
from understudy.errors import InputError
from understudy.models.weighted import Weighted

__all__ = ["EFFORT", "Families", "generate"]

Codes = NDArray[Any]

EFFORT = 120
"""Exchanges that are tried, a child."""
_AT_ONCE = 2**20
_PLACES = 4
"""Where a child may stand: alone, first, in the middle, last."""
_FORBIDDEN = 1e9
"""The price of a view in a forbidden cell: more than anything else could be worth."""


class Layout(Protocol):
    """Where the parts of a view stand among the columns of a model; see `schema.family`."""

    @property
    def parent(self) -> tuple[int, ...]: ...
    @property
    def size(self) -> int: ...
    @property
    def child(self) -> tuple[int, ...]: ...
    @property
    def sibling(self) -> tuple[int | None, ...]: ...
    @property
    def values(self) -> tuple[int, ...]: ...
    @property
    def pos(self) -> int | None: ...
    @property
    def childless(self) -> bool: ...


@dataclass(frozen=True, eq=False)
class Families:
    """Parents, how many children each has, and all children, family after family, in their order.

    Every child belongs to a family by where it stands, so there are no orphans. Codes are those of the
    columns of parents and children.
    """

    parents: tuple[Codes, ...]
    sizes: NDArray[np.int64]
    children: tuple[Codes, ...]

    def __post_init__(self) -> None:
        if any(column.shape != self.sizes.shape for column in self.parents):
            raise InputError("the parents' columns differ in length from the numbers of children")
        total = int(self.sizes.sum())
        if (self.sizes < 0).any() or any(column.shape != (total,) for column in self.children):
            raise InputError(f"families with {total} children have columns of another length")

    def views(
        self, layout: Layout, shape: Sequence[int], weight: int
    ) -> tuple[list[Codes], NDArray[np.int64]]:
        """The views of all families as rows of codes, and their weights, at most `weight` a family.

        ⌊weight/(s(s − 1))⌋ for each of s(s − 1) views without an order, ⌊weight/s⌋ for each of s with
        one, `weight` for the one view of a family with at most one child.
        """
        ordered = layout.pos is not None
        sizes, starts = self.sizes, np.cumsum(self.sizes) - self.sizes
        many = np.where(ordered, sizes, np.where(sizes > 1, sizes * (sizes - 1), 1))
        many = np.maximum(many, 1)
        whose = np.repeat(np.arange(sizes.size), many)
        index = np.arange(whose.size) - np.repeat(np.cumsum(many) - many, many)
        s = sizes[whose]
        if ordered:
            a, b = index, index - 1
        else:
            others = np.maximum(s - 1, 1)
            a, b = index // others, index % others
            b = np.where(s > 1, b + (b >= a), -1)
        a, b = np.where(s > 0, starts[whose] + a, -1), np.where(b >= 0, starts[whose] + b, -1)
        codes: list[Codes] = [np.zeros(0, np.int64)] * len(shape)
        for at, column in zip(layout.parent, self.parents, strict=True):
            codes[at] = column[whose]
        least = 0 if layout.childless else 1
        codes[layout.size] = np.clip(s - least, 0, shape[layout.size] - 1)
        for at, twin, column in zip(layout.child, layout.sibling, self.children, strict=True):
            codes[at] = _picked(column, a, shape[at] - 1)
            if twin is not None:
                codes[twin] = _picked(column, b, shape[twin] - 1)
        if layout.pos is not None:
            codes[layout.pos] = np.where(s > 0, _places(index, s), _PLACES)
        codes = [c.astype(np.min_scalar_type(n - 1)) for c, n in zip(codes, shape, strict=True)]
        return codes, (weight // many)[whose]


def generate(
    model: Weighted,
    layout: Layout,
    families: int,
    cliques: Sequence[Clique],
    rng: np.random.Generator,
    effort: int = EFFORT,
    forbidden: Mapping[Clique, NDArray[np.bool_]] | None = None,
) -> Families:
    """So many families, whose views have the tables of `cliques` as the model has them.

    Args:
        model: The law of views.
        layout: What its columns are.
        families: How many.
        cliques: Tables of views; those that exchanges cannot move are left out.
        rng: All randomness comes from it.
        effort: Exchanges that are tried, a child.
        forbidden: Tables of views, True where no view may be.

    Raises:
        InputError: The model has no row from which such families could be made.
    """
    least = 0 if layout.childless else 1
    rows = model.sample(families, rng)
    sizes = rows[layout.size].astype(np.int64) + least
    parents = np.stack([rows[i] for i in layout.parent], axis=1)
    children = _first_children(model, layout, parents, sizes, cliques, rng)
    crowd = _Crowd(layout, model.shape, parents, sizes, children)
    crowd.settle(model, cliques, forbidden or {}, effort, rng)
    return crowd.families()


def _picked(column: Codes, at: NDArray[np.int64], none: int) -> Codes:
    """The codes at these places, `none` where there is no place."""
    if not column.size:
        return np.full(at.size, none)
    return np.where(at >= 0, column[np.maximum(at, 0)], none)


def _places(index: NDArray[np.int64], size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where a child stands: 0 alone, 1 first, 2 in the middle, 3 last."""
    return np.where(size == 1, 0, np.where(index == 0, 1, np.where(index < size - 1, 2, 3)))


# --- children to begin with ----------------------------------------------------------------------


def _first_children(
    model: Weighted,
    layout: Layout,
    parents: Codes,
    sizes: NDArray[np.int64],
    cliques: Sequence[Clique],
    rng: np.random.Generator,
) -> Codes:
    """Children of the model's rows of every size, each with a parent like its own; a row a child."""
    starts = np.cumsum(sizes) - sizes
    children = np.zeros((int(sizes.sum()), len(layout.child)), np.int64)
    twins = [k for k, twin in enumerate(layout.sibling) if twin is not None]
    siblings = [layout.sibling[k] for k in twins]
    importance = _importance(model, layout, cliques)
    for size in range(1, int(sizes.max(initial=0)) + 1):
        homes = np.flatnonzero(sizes == size)
        if not homes.size:
            continue
        pool: list[Codes] = []
        for index in range(size):
            place = int(_places(np.array(index), np.array(size)))
            if layout.pos is not None:
                pool = _drawn(model, layout, size, place, homes.size, cliques, rng)
            elif index == 0:
                pool = _drawn(model, layout, size, None, size * homes.size, cliques, rng)
            slots = starts[homes] + index
            wanted = [parents[homes, k] for k in range(parents.shape[1])]
            offered = [pool[i] for i in layout.parent]
            keys = list(layout.parent)
            if index > 0:
                wanted += [children[slots - 1, k] for k in twins]
                offered += [pool[i] for i in siblings]
                keys += siblings
            order = sorted(range(len(keys)), key=lambda k: -importance.get(keys[k], 0.0))
            chosen = _matched([wanted[k] for k in order], [offered[k] for k in order], rng)
            for k, i in enumerate(layout.child):
                children[slots, k] = pool[i][chosen]
            rest = np.ones(pool[0].size, np.bool_)
            rest[chosen] = False
            pool = [column[rest] for column in pool]
    return children


def _drawn(
    model: Weighted,
    layout: Layout,
    size: int,
    place: int | None,
    rows: int,
    cliques: Sequence[Clique],
    rng: np.random.Generator,
) -> list[Codes]:
    """Rows of the model with children of families of this size, or of the size that is nearest."""
    legal = np.ones(model.size, np.bool_)
    for i, values in zip(layout.child, layout.values, strict=True):
        legal &= model.codes[i] < values
    sizes = model.codes[layout.size].astype(np.int64) + (0 if layout.childless else 1)
    legal &= (sizes > 0) & (model.weights > 0)
    if layout.pos is not None and place is not None:
        stands = legal & (model.codes[layout.pos] == place)
        legal = stands if stands.any() else legal
    if not legal.any():
        raise InputError("the model has no row with a child: allow parents without children only")
    away = np.where(legal, np.abs(sizes - size), np.iinfo(np.int64).max)
    legal &= away == away.min()
    inner = {*layout.parent, *layout.child, *(i for i in layout.sibling if i is not None)}
    own = Weighted(
        model.shape,
        tuple(column[legal] for column in model.codes),
        model.weights[legal],
        tuple(clique for clique in cliques if inner.issuperset(clique)),
        model.swaps,
    )
    return own.sample(rows, rng)


def _importance(model: Weighted, layout: Layout, cliques: Sequence[Clique]) -> dict[int, float]:
    """How much each column of parents and siblings tells of a child, in all pairs that are held."""
    told: dict[int, float] = {}
    for clique in cliques:
        if len(clique) == 2 and len(own := [i for i in clique if i in layout.child]) == 1:
            (other,) = (i for i in clique if i != own[0])
            law = model.marginal(clique)
            apart = np.outer(law.sum(axis=1), law.sum(axis=0))
            some = law > 0
            told[other] = told.get(other, 0.0) + float(
                (law[some] * np.log(law[some] / apart[some])).sum()
            )
    return told


def _matched(
    wanted: Sequence[Codes], offered: Sequence[Codes], rng: np.random.Generator
) -> NDArray[np.int64]:
    """For every row wanted another one of those offered, alike in as many leading columns as can be."""
    one, other = rng.permutation(wanted[0].size), rng.permutation(offered[0].size)
    found = np.empty(one.size, np.int64)
    keys = [np.zeros(one.size + other.size, np.int64)]
    for want, offer in zip(wanted, offered, strict=True):
        both = np.concatenate([want[one], offer[other]]).astype(np.int64)
        key = keys[-1] * (int(both.max(initial=0)) + 1) + both
        keys.append(np.unique(key, return_inverse=True)[1])
    for key in reversed(keys):
        here, there = key[: one.size], key[one.size :]
        left, right = (
            _ranked(here, np.flatnonzero(one >= 0)),
            _ranked(there, np.flatnonzero(other >= 0)),
        )
        _, i, j = np.intersect1d(left[0], right[0], assume_unique=True, return_indices=True)
        i, j = left[1][i], right[1][j]
        found[one[i]] = other[j]
        one[i] = other[j] = -1
    return found


def _ranked(
    keys: NDArray[np.int64], at: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(a number for every one of these places, different among equal keys; the places)."""
    order = at[np.argsort(keys[at], kind="stable")]
    some = keys[order]
    first = np.searchsorted(some, some, side="left")
    return some * (keys.size + 1) + np.arange(order.size) - first, order


# --- exchanges -----------------------------------------------------------------------------------


class _Crowd:
    """Families as the compiled loops have them (`_exchange`)."""

    def __init__(
        self,
        layout: Layout,
        shape: Sequence[int],
        parents: Codes,
        sizes: NDArray[np.int64],
        children: Codes,
    ) -> None:
        self.layout, self.shape, self.sizes = layout, tuple(shape), sizes
        self.ordered = int(layout.pos is not None)
        starts = np.cumsum(sizes) - sizes
        self.owner = np.repeat(np.arange(sizes.size), sizes)
        self.index = np.arange(self.owner.size) - starts[self.owner]
        place = _places(self.index, sizes[self.owner]) * self.ordered
        self.people = np.column_stack([children, place, self.owner]).astype(np.uint32)
        size = sizes - (0 if layout.childless else 1)
        self.homes = np.column_stack([parents, size, starts, sizes]).astype(np.uint32)

    def families(self) -> Families:
        """As they are now."""
        parents = self.homes[:, : len(self.layout.parent)]
        children = self.people[:, : len(self.layout.child)]
        return Families(
            tuple(
                column.astype(np.min_scalar_type(self.shape[i] - 1))
                for i, column in zip(self.layout.parent, parents.T, strict=True)
            ),
            self.sizes,
            tuple(
                column.astype(np.min_scalar_type(values - 1))
                for values, column in zip(self.layout.values, children.T, strict=True)
            ),
        )

    def settle(
        self,
        model: Weighted,
        cliques: Sequence[Clique],
        forbidden: Mapping[Clique, NDArray[np.bool_]],
        effort: int,
        rng: np.random.Generator,
    ) -> None:
        """Exchange children until the tables are those of the model, or the effort is spent."""
        from understudy.models import _exchange as kernels

        held = [clique for clique in cliques if self._moves(clique)]
        held.sort(key=self._with_sibling)
        alone = sum(not self._with_sibling(clique) for clique in held)
        if not held:
            return
        strides, ends = self._strides(held)
        scratch = np.zeros((kernels.SCRATCH, len(held)), np.uint32)
        where = self.people, self.homes, strides, alone, self.ordered
        goal = np.concatenate([model.marginal(clique).reshape(-1) for clique in held])
        goal *= self.sizes.size
        found = np.zeros(int(ends[-1]))
        kernels.count(*where, found, scratch)
        slopes = np.empty((2, found.size))
        slopes[1] = 1 / np.sqrt(1 + goal)
        slopes[0] = slopes[1] * (found - goal)
        tries = effort * self.owner.size
        for start in range(0, tries, _AT_ONCE):
            pairs = self._proposed(min(_AT_ONCE, tries - start), rng)
            kernels.exchange(*where, slopes, pairs, scratch)

    def _proposed(self, many: int, rng: np.random.Generator) -> NDArray[np.uint32]:
        """Pairs of children that may change places."""
        group = self.sizes[self.owner]
        if self.ordered:
            group = group * (int(self.sizes.max()) + 1) + self.index
        order = np.argsort(group, kind="stable")
        some = group[order]
        first, end = np.searchsorted(some, some, "left"), np.searchsorted(some, some, "right")
        one = rng.integers(order.size, size=many)
        other = first[one] + (rng.random(many) * (end - first)[one]).astype(np.int64)
        return np.stack([order[one], order[other]]).astype(np.uint32)

    def _moves(self, clique: Clique) -> bool:
        """Whether exchanges move this table: it has two of parent, child and sibling."""
        parts = (self.layout.parent, self.layout.child, self.layout.sibling)
        return sum(bool(set(clique) & set(part)) for part in parts) > 1

    def _with_sibling(self, clique: Clique) -> bool:
        return bool(set(clique) & set(self.layout.sibling))

    def _strides(self, cliques: Sequence[Clique]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """(what every code of a view adds to its cell in every table, where tables end)."""
        layout = self.layout
        rows = [*layout.parent, layout.size, layout.pos, *layout.child, *layout.sibling]
        strides = np.zeros((len(rows) + 2, len(cliques)), np.uint32)
        ends = np.cumsum([math.prod(self.shape[i] for i in clique) for clique in cliques])
        strides[-2, 1:] = ends[:-1]
        for c, clique in enumerate(cliques):
            stride = 1
            for i in reversed(clique):
                strides[rows.index(i), c] = stride
                if i in layout.sibling:
                    strides[-1, c] += stride * (self.shape[i] - 1)
                stride *= self.shape[i]
        return strides, ends
