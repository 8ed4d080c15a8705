"""Families, parents with their children, made from a model of their views (`schema.family`).

A release learns the law of views; here families are made whose views follow it.

1. Parents and their numbers of children are rows of the model.
2. The children of families of one size, and at one place where there is an order, are rows of the model
   of that size and place. They go to families whose parent, and whose child before, is like those that
   came with them.
3. Two children change places if that lowers Σ (c − m)²/√(1 + m) over all tables with a column of a
   child, c what the families' views have in a cell and m what the model expects; cells with m < 1
   count four times, for most of what is in them should not be there. Most offers are
   between families of one size, and at one place: these leave tables of children alone as they were.
   But a size may have been given more heads of households than it has families, or visits that fit
   none before them, so any two children with siblings may change places as well.
4. With an order, what a column has in common with itself before is held for every size of family, or
   large families, which weigh little, would be left with what does not fit. Without one it is not:
   who the siblings are, and so what they share, differs between small and large families, and the
   model does not know how.

Some rounds offer a child any other, some one that is like it in most columns: the first moves more, the
second breaks less. Some offer many others to the few children in the fullest cells. With an order most
look at one table of siblings, the likelier the more it is off: a child in too full a cell is offered
one that is like it, but of a value and beside a sibling such that both families gain. The last rounds
look at every column beside itself before, and in them an empty cell is heard as much as a full one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique
from understudy.errors import InputError
from understudy.models.weighted import Weighted
from understudy.queries.families import EncodedFamilies
from understudy.schema.family import Layout
from understudy.schema.views import positions

Codes = NDArray[Any]
Whole = NDArray[np.int64]
Forbidden = Mapping[Clique, NDArray[np.bool_]]

EFFORT = 60
"""Exchanges that are tried, a child, as long as there are not too many children."""
_MOST_TRIES, _LEAST_EFFORT = 20_000_000, 6
_TRIED, _TABLE, _COLUMN, _PAIR = 3.3e-7, 7.5e-9, 2e-8, 1.2e-9
"""CPU seconds of an exchange that is tried: for itself, for a table without siblings, and for every
other child of the family for a column and for a table of siblings."""
_FAR, _NEARBY, _COUNTED = 8e-7, 500_000, 2e-6
"""The same for fetching children where there are more than a cache holds; and for reading one."""
_WANTED = 5
"""Rounds of what tables of siblings lack, with an order after every other round. A round tries as many
exchanges as a quarter of the children with siblings, so there are half as many of the others."""
_NEAR = 8
"""How far apart two children may stand that are sorted by their columns."""
_DEAR = 16
"""One child in so many is offered so many others at once, where most would be gained."""
_LAST = 3
"""Rounds at the end, with an order, of a column beside itself before, evenly for all its cells."""
_GAINS = 400_000
"""Pairs of cells that are compared at once."""
_EMPTY = 4.0
"""How much more a cell weighs in which the model has less than one family."""
_REPAIRS = 40
"""Partners that a child in a forbidden view is offered."""
_FORBIDDEN = 1e9
"""The price of a view in a forbidden cell: more than anything else could be worth."""


def generate(
    model: Weighted,
    layout: Layout,
    families: int,
    cliques: Sequence[Clique],
    rng: np.random.Generator,
    effort: int = EFFORT,
    forbidden: Forbidden | None = None,
) -> EncodedFamilies:
    """So many families, whose views have the tables of `cliques` as the model has them.

    Deterministic given `rng`. No view is in a forbidden cell: children in such views change places
    first, or become copies of others; a family for which that does not help becomes a copy of another;
    and no exchange enters such a cell. No row of the model may be in one.

    Args:
        model: The law of views.
        layout: What its columns are.
        families: How many.
        cliques: Tables of views; those that exchanges cannot move are left alone.
        rng: All randomness comes from it.
        effort: Exchanges that are tried, a child; fewer where there are very many children.
        forbidden: Tables of views that join a child with its parent or a sibling, True where no view
            may be.

    Raises:
        InputError: The model has no row from which such families could be made.
    """
    rows = model.sample(families, rng)
    sizes = rows[layout.size].astype(np.int64) + (not layout.childless)
    parents = np.stack([rows[i] for i in layout.parent], axis=1)
    children = _first_children(model, layout, (parents, sizes), cliques, rng)
    crowd = _Crowd(layout, model.shape, parents, sizes, children)
    if forbidden:
        crowd = crowd.mended(forbidden, rng) or _alone(model, layout, families, rng)
    crowd.settle(model, cliques, forbidden or {}, effort, rng)
    return crowd.families()


def expected_seconds(layout: Layout, cliques: Sequence[Clique], families: int, most: int) -> float:
    """CPU seconds that `generate` takes; from generated families (docs/benchmarks.md).

    How many children they have is not known: half of `most` each is assumed, √`most` of few. A child
    has a third more siblings than that, for it is likelier in a large family.
    """
    each = max(math.sqrt(most), most / 2)
    children, siblings = families * each, {twin for _, twin in layout.twins}
    pairs = sum(not siblings.isdisjoint(clique) for clique in cliques)
    others = 2.0 if layout.ordered else each * 4 / 3 - 1
    views = others * (_COLUMN * len(layout.child) + _PAIR * pairs) if pairs else 0.0
    tried = _TRIED + _TABLE * (len(cliques) - pairs) + views + _FAR * (children > _NEARBY)
    return children * (_COUNTED + _turns(children, EFFORT) * tried)


def _turns(children: float, effort: int) -> int:
    """Exchanges that are tried for each of so many children."""
    return min(effort, max(_LEAST_EFFORT, int(_MOST_TRIES // children)))


def copied(
    sizes: Whole, broken: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[Whole, Whole]:
    """(families, children): broken families replaced by others of the nearest size, at random."""
    clean = np.flatnonzero(~broken)
    chosen = np.arange(sizes.size)
    for size in np.unique(sizes[broken]):
        away = np.abs(sizes[clean] - size)
        nearest = clean[away == away.min()]
        places = np.flatnonzero(broken & (sizes == size))
        chosen[places] = rng.choice(nearest, places.size)
    starts, sizes = (np.cumsum(sizes) - sizes)[chosen], sizes[chosen]
    at = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    return chosen, at + np.arange(at.size)


# --- children to begin with ----------------------------------------------------------------------


def _alone(model: Weighted, layout: Layout, families: int, rng: np.random.Generator) -> _Crowd:
    """Families of one child, each a row of the model: what is left where no others keep the rules."""
    rows = _drawn(model, layout, (1, 0), families, (), rng)
    parents, children = (
        np.stack([rows[i] for i in part], axis=1) for part in (layout.parent, layout.child)
    )
    return _Crowd(layout, model.shape, parents, np.ones(families, np.int64), children)


def _first_children(
    model: Weighted,
    layout: Layout,
    homes: tuple[Codes, Whole],
    cliques: Sequence[Clique],
    rng: np.random.Generator,
) -> Codes:
    """Children of the model's rows of every size, each with a parent like its own; a row a child."""
    parents, sizes = homes
    starts = np.cumsum(sizes) - sizes
    children = np.zeros((int(sizes.sum()), len(layout.child)), np.int64)
    twins = [(layout.child.index(i), twin) for i, twin in layout.twins]
    told = _importance(model, layout, cliques)
    for size in range(1, int(sizes.max(initial=0)) + 1):
        own = np.flatnonzero(sizes == size)
        if not own.size:
            continue
        pool: list[Codes] = []
        for index in range(size):
            place = int(positions(np.array(index), np.array(size)))
            if layout.ordered or index == 0:
                many = own.size * (1 if layout.ordered else size)
                pool = _drawn(model, layout, (size, place), many, cliques, rng)
                _fill_in(pool, model, layout, rng)
            slots = starts[own] + index
            pairs = [(i, parents[own, k]) for k, i in enumerate(layout.parent)]
            if index > 0:
                pairs += [(i, children[slots - 1, k]) for k, i in twins]
            pairs.sort(key=lambda pair: -told.get(pair[0], 0.0))
            chosen = _matched([want for _, want in pairs], [pool[i] for i, _ in pairs], rng)
            for k, i in enumerate(layout.child):
                children[slots, k] = pool[i][chosen]
            rest = np.ones(pool[0].size, np.bool_)
            rest[chosen] = False
            pool = [column[rest] for column in pool]
    return children


def _drawn(
    model: Weighted,
    layout: Layout,
    where: tuple[int, int],
    rows: int,
    cliques: Sequence[Clique],
    rng: np.random.Generator,
) -> list[Codes]:
    """Rows of the model with children of families of this size and place, or of the nearest size."""
    size, place = where
    sizes = model.codes[layout.size].astype(np.int64) + (not layout.childless)
    legal = (sizes > 0) & (model.weights > 0)
    for i, values in zip(layout.child, layout.values, strict=True):
        legal &= model.codes[i] < values
    if layout.pos is not None:
        stands = legal & (model.codes[layout.pos] == place)
        legal = stands if stands.any() else legal
    if not legal.any():
        raise InputError(
            "the model has no row with a child, so no family with children can be made"
        )
    away = np.where(legal, np.abs(sizes - size), np.iinfo(np.int64).max)
    legal &= away == away.min()
    outside = {layout.size, layout.pos}
    codes = tuple(column[legal] for column in model.codes)
    held = tuple(clique for clique in cliques if not outside & set(clique))
    return replace(model, codes=codes, weights=model.weights[legal], cliques=held).sample(rows, rng)


def _fill_in(pool: list[Codes], model: Weighted, layout: Layout, rng: np.random.Generator) -> None:
    """Draw for rows without a sibling one by the law of every column given the child's own.

    A model that knows pairs alone does not know that all columns of a sibling are there or none.
    """
    for i, twin in layout.twins:
        law = np.cumsum(_rounded(model.marginal((i, twin))[:, :-1]), axis=1)
        places = np.flatnonzero(pool[twin] == model.shape[twin] - 1)
        own = law[pool[i][places]]
        reached = own <= rng.random(places.size)[:, None] * own[:, -1:]
        drawn = np.minimum(reached.sum(axis=1), law.shape[1] - 1)
        pool[twin] = pool[twin].copy()
        pool[twin][places] = drawn


def _importance(model: Weighted, layout: Layout, cliques: Sequence[Clique]) -> dict[int, float]:
    """How much better a child is guessed from each column of parents and siblings, in all pairs."""
    told: dict[int, float] = {}
    for clique in cliques:
        others = [i for i in clique if i not in layout.child]
        if len(clique) == 2 and len(others) == 1:
            law = np.moveaxis(model.marginal(clique), clique.index(others[0]), 1)
            known = float(law.max(axis=0).sum() - law.sum(axis=1).max())
            told[others[0]] = told.get(others[0], 0.0) + known
    return {i: round(value, 6) for i, value in told.items()}


def _matched(wanted: Sequence[Codes], offered: Sequence[Codes], rng: np.random.Generator) -> Whole:
    """For every row wanted another one of those offered, alike in as many leading columns as can be."""
    one, other = rng.permutation(wanted[0].size), rng.permutation(offered[0].size)
    found = np.empty(one.size, np.int64)
    keys = [np.zeros(one.size + other.size, np.int64)]
    for want, offer in zip(wanted, offered, strict=True):
        both = np.concatenate([want[one], offer[other]]).astype(np.int64)
        key = keys[-1] * (int(both.max(initial=0)) + 1) + both
        keys.append(np.unique(key, return_inverse=True)[1])
    for key in reversed(keys):
        here, i = _numbered(key[: one.size], np.flatnonzero(one >= 0), key.size)
        there, j = _numbered(key[one.size :], np.flatnonzero(other >= 0), key.size)
        _, first, second = np.intersect1d(here, there, assume_unique=True, return_indices=True)
        i, j = i[first], j[second]
        found[one[i]] = other[j]
        one[i] = other[j] = -1
    return found


def _numbered(keys: Whole, at: Whole, most: int) -> tuple[Whole, Whole]:
    """(a number for every one of these places, by its key and how many equal keys precede, places)."""
    order = at[np.argsort(keys[at], kind="stable")]
    some = keys[order]
    before = np.arange(order.size) - np.searchsorted(some, some, side="left")
    return some * (most + 1) + before, order


# --- exchanges -----------------------------------------------------------------------------------


class _Crowd:
    """Families as the compiled loops have them (`_exchange`)."""

    def __init__(
        self, layout: Layout, shape: Sequence[int], parents: Codes, sizes: Whole, children: Codes
    ) -> None:
        self.layout, self.shape, self.sizes = layout, tuple(shape), sizes
        self.starts = np.cumsum(sizes) - sizes
        self.owner = np.repeat(np.arange(sizes.size), sizes)
        index = np.arange(self.owner.size) - self.starts[self.owner]
        self.group = sizes[self.owner]
        place = np.zeros_like(index)
        if layout.ordered:
            place = positions(index, self.group)
            self.group = self.group * (int(sizes.max(initial=0)) + 1) + index
        self.people = np.column_stack([children, place, self.owner]).astype(np.uint32)
        codes = sizes - (not layout.childless)
        self.homes = np.column_stack([parents, codes, self.starts, sizes]).astype(np.uint32)

    @property
    def parents(self) -> Codes:
        """Codes of parents, a row each."""
        return self.homes[:, : len(self.layout.parent)]

    @property
    def children(self) -> Codes:
        """Codes of children, a row each."""
        return self.people[:, : len(self.layout.child)]

    def families(self) -> EncodedFamilies:
        """As they are now."""
        domains = [self.shape[i] for i in self.layout.parent]
        return EncodedFamilies(
            _columns(self.parents, domains), self.sizes, _columns(self.children, self.layout.values)
        )

    def settle(
        self,
        model: Weighted,
        cliques: Sequence[Clique],
        forbidden: Forbidden,
        effort: int,
        rng: np.random.Generator,
    ) -> None:
        """Exchange children until the effort is spent; the objective only falls."""
        if not self.owner.size:
            return
        movable, same = {*self.layout.child, *self.layout.sibling}, self.layout.twins
        held = [clique for clique in cliques if len(clique) > 1 and movable & set(clique)]
        if self.layout.ordered:
            held += [(self.layout.size, *clique) for clique in held if clique in same]
        tables = _Tables(self, [*held, *forbidden])
        goals = [_rounded(model.marginal(clique) * self.sizes.size) for clique in held]
        tables.aim(goals, list(forbidden.values()))
        parts = set(self.layout.child), set(self.layout.sibling)
        joined = [c for c, has in enumerate(held) if all(len(p & set(has)) == 1 for p in parts)]
        pairs = joined if self.layout.ordered else []

        def offer(table: int, part: float, *, evenly: bool) -> None:
            tables.exchange(self._wanted(held[table], tables.slope(table), part, evenly, rng))

        turns = _turns(self.owner.size, effort)
        ways = (self._any, self._alike, self._anywhere, partial(self._dear, tables))
        for turn in range((turns + 1) // 2 if pairs else turns):
            tables.exchange(ways[turn % len(ways)](rng))
            for _ in range(_WANTED * bool(pairs)):
                offer(_drawn_one(pairs, [tables.error(c) for c in pairs], rng), 0.25, evenly=False)
        for _ in range(_LAST):
            for c in pairs:
                if held[c] in same:
                    offer(c, turns / EFFORT, evenly=True)

    def mended(self, forbidden: Forbidden, rng: np.random.Generator) -> _Crowd | None:
        """Families without a view in a forbidden cell; None if there is not a single one."""
        tables = _Tables(self, list(forbidden))
        tables.aim([], list(forbidden.values()))
        for _ in range(_REPAIRS):
            broken = self._broken(tables)
            if not broken.any():
                return self
            pairs = self._any(rng)
            tables.exchange(pairs[:, broken[self.owner[pairs[0]]]])
        for _ in range(_REPAIRS):
            self._replace(tables, rng)
        broken = self._broken(tables)
        if broken.all():
            return None
        chosen, at = copied(self.sizes, broken, rng)
        return _Crowd(
            self.layout, self.shape, self.parents[chosen], self.sizes[chosen], self.children[at]
        )

    def _replace(self, tables: _Tables, rng: np.random.Generator) -> None:
        """Make a child of every broken family a copy of one of its group, where that helps."""
        prices, codes = tables.prices(), len(self.layout.child)
        guilty = rng.permutation(np.flatnonzero(prices > 0))
        families, first = np.unique(self.owner[guilty], return_index=True)
        some, pairs = guilty[first], self._any(rng)
        models = np.empty(self.owner.size, np.int64)
        models[pairs[0]] = pairs[1]
        before = self.people[some, :codes]
        self.people[some, :codes] = self.people[models[some], :codes]
        sums = [
            np.bincount(self.owner, each, self.sizes.size) for each in (prices, tables.prices())
        ]
        worse = sums[1][families] >= sums[0][families]
        self.people[some[worse], :codes] = before[worse]

    def _broken(self, tables: _Tables) -> NDArray[np.bool_]:
        """Which families have a view in a cell with a price."""
        return np.bincount(self.owner, tables.prices(), self.sizes.size) > 0

    def _any(self, rng: np.random.Generator) -> NDArray[np.uint32]:
        """Every child with one of its group."""
        order = np.argsort(self.group, kind="stable")
        some = self.group[order]
        first, end = np.searchsorted(some, some, "left"), np.searchsorted(some, some, "right")
        one = rng.permutation(order.size)
        other = first + (rng.random(order.size) * (end - first)).astype(np.int64)
        return np.stack([order[one], order[other[one]]]).astype(np.uint32)

    def _dear(self, tables: _Tables, rng: np.random.Generator) -> NDArray[np.uint32]:
        """The children of a group in the fullest cells, with any of it, and with each other."""
        order = np.lexsort([-_rounded(tables.prices()), self.group])
        some = self.group[order]
        first, end = np.searchsorted(some, some, "left"), np.searchsorted(some, some, "right")
        many = (end - first + _DEAR - 1) // _DEAR
        dear = np.flatnonzero(np.arange(order.size) - first < many)
        one = rng.permutation(np.tile(dear, _DEAR))
        among = np.where(rng.random(one.size) < 0.5, many[one], (end - first)[one])
        other = first[one] + (rng.random(one.size) * among).astype(np.int64)
        return np.stack([order[one], order[other]]).astype(np.uint32)

    def _anywhere(self, rng: np.random.Generator) -> NDArray[np.uint32]:
        """Any two children with siblings, as many pairs as there are such children."""
        some = np.flatnonzero(self.sizes[self.owner] > 1)
        return some[rng.integers(0, max(some.size, 1), (2, some.size))].astype(np.uint32)

    def _alike(self, rng: np.random.Generator) -> NDArray[np.uint32]:
        """Every child with one of its group, alike in the leading columns of a random order."""
        order = rng.permutation(self.owner.size)
        key = self.group[order].copy()
        self._refine([(key, order)], range(len(self.layout.child)), rng)
        order = order[np.argsort(key, kind="stable")]
        one = rng.permutation(order.size)
        other = np.minimum(one + rng.integers(1, _NEAR + 1, one.size), order.size - 1)
        pairs = np.stack([order[one], order[other]]).astype(np.uint32)
        return pairs[:, self.group[pairs[0]] == self.group[pairs[1]]]

    def _refine(
        self, keys: Sequence[tuple[Whole, Whole]], columns: Sequence[int], rng: np.random.Generator
    ) -> None:
        """Tell equal keys of children apart by as many columns as fit, in random order."""
        room = 2**62 // (int(keys[0][0].max(initial=0)) + 1)
        for k in map(int, rng.permutation(columns)):
            values = self.layout.values[k]
            if values > room:
                break
            room //= values
            for key, who in keys:
                key *= values
                key += self.people[who, k]

    def _wanted(
        self,
        clique: Clique,
        slope: NDArray[np.float64],
        part: float,
        evenly: bool,
        rng: np.random.Generator,
    ) -> NDArray[np.uint32]:
        """Children of views in too full a cell, with others where the table would gain by both.

        Either child of a view may be the one that is offered another, with an order. The likelier a
        view is taken the fuller its cell is, and then another view the more all four cells gain. Of
        the children there the other one is as much alike in other columns as can be, half of the time
        of its group. As many tries as this part of the children with siblings.
        """
        layout = self.layout
        some = np.flatnonzero(self.sizes[self.owner] > 1)
        one = some[some > self.starts[self.owner[some]]]
        other = one - 1
        moved, own = ((one, layout.child), (other, layout.sibling))[int(rng.integers(2))]
        varied = next(i for i in clique if i in own)
        k = own.index(varied)
        slope = np.moveaxis(slope, clique.index(varied), -1)[..., : layout.values[k]]
        view = tuple(self._code(i, one, other) for i in clique if i != varied)
        row = np.ravel_multi_index(view, slope.shape[:-1])
        cell = row * layout.values[k] + self.people[moved, k]
        tries = int(part * some.size)
        at, goal = _gaining(slope.reshape(-1, layout.values[k]), cell, tries, evenly, rng)
        group = self.group[moved] * int(rng.integers(2))
        key, wanted = cell * (int(group.max(initial=0)) + 1) + group, group[at]
        wanted = goal * (int(group.max(initial=0)) + 1) + wanted
        others = [c for c in range(len(layout.child)) if c != k]
        self._refine([(key, moved), (wanted, moved[at])], others, rng)
        shuffled = rng.permutation(moved.size)
        order = shuffled[np.argsort(key[shuffled], kind="stable")]
        near = np.searchsorted(key[order], wanted) + rng.integers(0, _NEAR, at.size)
        found = order[np.minimum(near, moved.size - 1)]
        fits = (group[found] == group[at]) & (cell[found] == goal)
        return np.stack([moved[at], moved[found]])[:, fits].astype(np.uint32)

    def _code(self, column: int, one: Whole, other: Whole) -> Codes:
        """A column of the views of these children with these siblings."""
        layout = self.layout
        if column in layout.child:
            return self.people[one, layout.child.index(column)]
        if column in layout.sibling:
            return self.people[other, layout.sibling.index(column)]
        if column == layout.pos:
            return self.people[one, -2]
        return self.homes[self.owner[one], [*layout.parent, layout.size].index(column)]


class _Tables:
    """Tables of the views of a crowd, and what it costs them when children change places."""

    def __init__(self, crowd: _Crowd, cliques: Sequence[Clique]) -> None:
        from understudy.models import _exchange as kernels

        layout, shape = crowd.layout, crowd.shape
        siblings = {twin for _, twin in layout.twins}
        # Those without a sibling come first.
        order = sorted(range(len(cliques)), key=lambda c: bool(siblings & set(cliques[c])))
        ordered = [cliques[c] for c in order]
        alone = sum(not siblings & set(clique) for clique in ordered)
        rows = [*layout.parent, layout.size, layout.pos, *layout.child, *layout.sibling]
        strides = np.zeros((len(rows) + 2, len(ordered)), np.uint32)
        ends = np.cumsum([math.prod(shape[i] for i in clique) for clique in ordered])
        strides[-2, 1:] = ends[:-1]
        for c, clique in enumerate(ordered):
            stride = 1
            for i in reversed(clique):
                strides[rows.index(i), c] = stride
                strides[-1, c] += stride * (shape[i] - 1) * (i in siblings)
                stride *= shape[i]
        parts = {
            c: slice(end - math.prod(shape[i] for i in cliques[c]), end)
            for c, end in zip(order, ends.tolist(), strict=True)
        }
        self.parts = [parts[c] for c in range(len(cliques))]
        self.shapes = [[shape[i] for i in clique] for clique in cliques]
        self.people = crowd.people
        self.where = crowd.people, crowd.homes, strides, alone, int(layout.ordered)
        self.scratch = np.zeros((kernels.SCRATCH, len(ordered)), np.uint32)
        self.slopes = np.zeros((2, int(ends[-1]) if ends.size else 0))

    def aim(self, goals: Sequence[Codes], forbidden: Sequence[NDArray[np.bool_]]) -> None:
        """Towards these counts in the first tables, and away from these cells in the others."""
        found = self.found()
        for c, part in enumerate(self.parts):
            if c < len(goals):
                scale = _rounded(np.where(goals[c] < 1, _EMPTY, 1.0) / np.sqrt(1 + goals[c]))
                self.slopes[0, part] = (scale * (found[c] - goals[c])).reshape(-1)
                self.slopes[1, part] = scale.reshape(-1)
            else:
                self.slopes[0, part] = forbidden[c - len(goals)].reshape(-1) * _FORBIDDEN

    def found(self) -> list[NDArray[np.float64]]:
        """The tables as they are, in families; those without children are not counted."""
        from understudy.models import _exchange as kernels

        cells = np.zeros(self.slopes.shape[1])
        if cells.size:
            kernels.count(*self.where, cells, self.scratch)
        return [cells[part].reshape(s) for part, s in zip(self.parts, self.shapes, strict=True)]

    def exchange(self, pairs: NDArray[np.uint32]) -> int:
        """Let pairs of children change places where that helps; how many did."""
        from understudy.models import _exchange as kernels

        if not self.slopes.size:
            return 0
        pairs = np.ascontiguousarray(pairs)
        return int(kernels.exchange(*self.where, self.slopes, pairs, self.scratch))

    def slope(self, table: int) -> NDArray[np.float64]:
        """How much the objective rises with every cell of a table, halved."""
        return self.slopes[0, self.parts[table]].reshape(self.shapes[table])

    def error(self, table: int) -> float:
        """What a table that is aimed at adds to the objective."""
        slope, scale = self.slopes[:, self.parts[table]]
        return float((slope * slope / scale).sum())

    def prices(self) -> NDArray[np.float64]:
        """For every child the sum of the slopes of the cells of its views."""
        from understudy.models import _exchange as kernels

        sums = np.zeros(len(self.people))
        kernels.flag(*self.where, self.slopes[0].copy(), self.scratch, sums)
        return sums


def _gaining(
    slope: NDArray[np.float64], cell: Whole, tries: int, evenly: bool, rng: np.random.Generator
) -> tuple[Whole, Whole]:
    """(views in too full a cell, for each a cell with which to exchange values).

    `slope` has a row for what stays and a column for every value that is exchanged, `cell` the place in
    it of every view. Views are drawn by the square of the slope, or `evenly` first their cell and then
    any view in it; the other cells by how many views they have and how much all four cells gain.
    """
    values, flat = slope.shape[1], slope.reshape(-1)
    there, own, many = np.unique(cell, return_inverse=True, return_counts=True)
    ends = np.cumsum((np.maximum(flat[there], 0) ** 2 / (many if evenly else 1))[own])
    if not cell.size or ends[-1] <= 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    at = np.minimum(np.searchsorted(ends, rng.random(tries) * ends[-1], "right"), cell.size - 1)
    full = rng.permutation(np.unique(cell[at]))[: max(_GAINS // there.size, 1)]
    (row, value), (rows, others) = np.divmod(full, values), np.divmod(there, values)
    gain = flat[full][:, None] + flat[there] - slope[row][:, others] - slope[:, value][rows].T
    drawn = np.cumsum(np.maximum(gain, 0) * many, axis=1)
    which = np.full(flat.size, -1)
    which[full] = np.where(drawn[:, -1] > 0, np.arange(full.size), -1)
    at = at[which[cell[at]] >= 0]
    which = which[cell[at]]
    share = drawn / np.maximum(drawn[:, -1:], 1e-300) + np.arange(full.size)[:, None]
    found = np.searchsorted(share.reshape(-1), which + rng.random(at.size), "right")
    return at, there[np.clip(found - which * there.size, 0, there.size - 1)]


def _drawn_one(items: Sequence[int], weights: Sequence[float], rng: np.random.Generator) -> int:
    """One of these, by its weight."""
    ends = np.cumsum(_rounded(np.array(weights)))
    at = int(np.searchsorted(ends, rng.random() * ends[-1], "right"))
    return items[min(at, len(items) - 1)]


def _rounded(values: Codes) -> NDArray[np.float64]:
    """Without the last bits, in which machines may differ."""
    return values.astype(np.float32).astype(np.float64)


def _columns(rows: Codes, domains: Sequence[int]) -> tuple[Codes, ...]:
    return tuple(
        column.astype(np.min_scalar_type(max(size - 1, 0)))
        for column, size in zip(rows.T, domains, strict=True)
    )
