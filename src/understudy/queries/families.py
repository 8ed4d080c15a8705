"""Exact tables of the views of encoded families; `understudy.schema.family` says what views are.

Tables of parents and numbers of children are counted from one row a family, those of children from one
row a child, and only those that hold a sibling from pairs of children: the weights of what is left out
add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Codes
from understudy.queries.evaluate import Counter, SparseCounter
from understudy.schema.family import POSITIONS, Layout

__all__ = ["EncodedFamilies", "ViewCounts", "level_of"]

_ONLY, _FIRST, _MIDDLE, _LAST = range(len(POSITIONS))
_CHUNK = 1 << 21
"""Pairs of children that are held at once."""

Whole = NDArray[np.int64]
Rows = tuple[list[Codes], Whole]
"""Codes of every column of the views, those that do not matter 0, and weights."""


@dataclass(frozen=True, eq=False)
class EncodedFamilies:
    """Families as codes: parents, how many children each has, and the children in the same order."""

    parents: tuple[Codes, ...]
    sizes: Whole
    children: tuple[Codes, ...]

    def __post_init__(self) -> None:
        if any(len(column) != len(self.sizes) for column in self.parents):
            raise ValueError("columns of parents differ in length")
        if any(len(column) != int(self.sizes.sum()) for column in self.children):
            raise ValueError("columns of children differ in length from the sizes of families")


class ViewCounts:
    """Tables of the views of some families, in whole weights."""

    def __init__(
        self, families: EncodedFamilies, layout: Layout, weight: int, shape: Sequence[int]
    ) -> None:
        self._families, self._layout, self._shape = families, layout, tuple(shape)
        sizes = families.sizes
        divisors = np.maximum(sizes, 1) if layout.ordered else np.maximum(sizes * (sizes - 1), 1)
        self._view = weight // divisors
        """The weight of one view of each family."""
        self._total = self._view * divisors

    @property
    def total(self) -> int:
        """The weight of all families."""
        return int(self._total.sum())

    def tables(self, cliques: Sequence[Clique]) -> tuple[Whole, ...]:
        """Exact tables, in the order of the cliques."""
        wanted = [tuple(clique) for clique in cliques]
        found: dict[Clique, Whole] = {}
        for level in range(3):
            own = [c for c in dict.fromkeys(wanted) if level_of(c, self._layout) == level]
            if own:
                counter = Counter(self._shape, own)
                for codes, weights in self._rows(level):
                    counter.add(codes, weights)
                found |= dict(zip(own, counter.tables(), strict=True))
        return tuple(found[clique] for clique in wanted)

    def sparse(self, cliques: Sequence[Clique]) -> tuple[tuple[Whole, Whole], ...]:
        """Occupied cells and their weights, of tables of any size."""
        found = []
        for clique in cliques:
            counter = SparseCounter(self._shape, [clique])
            for codes, weights in self._rows(level_of(clique, self._layout)):
                counter.add(codes, weights)
            found += counter.tables()
        return tuple(found)

    def one_each(self, rng: np.random.Generator) -> list[Codes]:
        """Of every family one view, each as likely as any other of the family."""
        sizes = self._families.sizes
        starts = np.cumsum(sizes) - sizes
        first = np.where(sizes > 0, starts + rng.integers(0, np.maximum(sizes, 1)), -1)
        place = first - starts
        if self._layout.ordered:
            second = np.where(place > 0, first - 1, -1)
        else:
            other = rng.integers(0, np.maximum(sizes - 1, 1))
            second = np.where(sizes > 1, starts + other + (other >= place), -1)
        position = np.where(sizes > 0, _positions(place, sizes), len(POSITIONS))
        return self._filled(np.arange(sizes.size), first, second, position)

    def _rows(self, level: int) -> Iterator[Rows]:
        _families, sizes = self._families, self._families.sizes
        if level == 0:
            yield self._filled(np.arange(sizes.size), None, None), self._total
            return
        starts = np.cumsum(sizes) - sizes
        childless = np.flatnonzero(sizes == 0)
        if childless.size:
            none = np.full(childless.size, -1)
            yield self._filled(childless, none, none), self._total[childless]
        if level == 1 or self._layout.ordered:
            family = np.repeat(np.arange(sizes.size), sizes)
            child = np.arange(family.size)
            place = child - starts[family]
            before = np.where(place > 0, child - 1, -1)
            per_child = self._total[family] // sizes[family]
            position = _positions(place, sizes[family])
            yield self._filled(family, child, before, position), per_child
            return
        alone = np.flatnonzero(sizes == 1)
        if alone.size:
            none = np.full(alone.size, -1)
            yield self._filled(alone, starts[alone], none), self._view[alone]
        many = np.flatnonzero(sizes > 1)
        pairs = sizes[many] * (sizes[many] - 1)
        part = np.cumsum(pairs) // _CHUNK
        for number in np.unique(part):
            own = many[part == number]
            s = sizes[own]
            each = s * (s - 1)
            family = np.repeat(own, each)
            at = np.arange(int(each.sum())) - np.repeat(np.cumsum(each) - each, each)
            others = np.repeat(s - 1, each)
            first, second = at // others, at % others
            second = second + (second >= first)  # any other child
            start = starts[family]
            yield self._filled(family, start + first, start + second), self._view[family]

    def _filled(
        self,
        family: Whole,
        child: Whole | None,
        sibling: Whole | None,
        position: Whole | None = None,
    ) -> list[Codes]:
        """Views; a child or sibling of −1 is none."""
        layout, shape = self._layout, self._shape
        nothing = np.zeros(family.size, np.uint8)
        codes: list[Codes] = [nothing] * len(shape)
        for i, column in zip(layout.parent, self._families.parents, strict=True):
            codes[i] = column[family]
        top = shape[layout.size] - 1
        codes[layout.size] = np.minimum(self._families.sizes[family] - (not layout.childless), top)
        if child is None:
            return codes
        for i, column in zip(layout.child, self._families.children, strict=True):
            codes[i] = _taken(column, child, shape[i] - 1)
        if layout.pos is not None:
            none = np.full(family.size, len(POSITIONS))
            codes[layout.pos] = (none if position is None else position).astype(np.uint8)
        if sibling is not None:
            for i, column in zip(layout.sibling, self._families.children, strict=True):
                if i is not None:
                    codes[i] = _taken(column, sibling, shape[i] - 1)
        return codes


def level_of(clique: Clique, layout: Layout) -> int:
    """What one row of its count is: 0 a family, 1 a child, 2 a child with a sibling."""
    if any(i in layout.sibling for i in clique):
        return 2
    return int(any(i in layout.child or i == layout.pos for i in clique))


def _positions(place: Whole, sizes: Whole) -> Whole:
    """The code of where a child stands among so many."""
    inner = np.where(place == 0, _FIRST, np.where(place == sizes - 1, _LAST, _MIDDLE))
    return np.where(sizes == 1, _ONLY, inner)


def _taken(column: Codes, at: Whole, none: int) -> Codes:
    """The codes at some places; `none` where the place is −1."""
    absent = np.min_scalar_type(none).type(none)
    if not column.size:
        return np.full(at.size, absent)
    return np.where(at >= 0, column[np.maximum(at, 0)], absent)
