"""Exact tables of the views of encoded families; `understudy.schema.family` says what views are.

Tables of parents and numbers of children are counted from one row a family, those of children from one
row a child, and only those that hold a sibling from pairs of children: the weights of what is left out
add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from understudy._types import Clique, Codes, Rng, Whole
from understudy.queries.evaluate import Counter, SparseCounter
from understudy.schema.family import Layout
from understudy.schema.views import POSITIONS, positions

_CHUNK = 1 << 20  # Views that are held at once

At = tuple[Whole, Whole, Whole]
"""Families, a child of each and a sibling of that child; −1 where there is none."""
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

    def one_each(self, rng: Rng) -> list[Codes]:
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
        return self.codes(np.arange(sizes.size), first, second)

    def codes(self, family: Whole, child: Whole, sibling: Whole) -> list[Codes]:
        """Codes of views; a child or sibling of −1 is none."""
        layout, shape, sizes = self._layout, self._shape, self._families.sizes
        codes: list[Codes] = [np.zeros(family.size, np.uint8)] * len(shape)
        for i, column in zip(layout.parent, self._families.parents, strict=True):
            codes[i] = column[family]
        top = shape[layout.size] - 1
        codes[layout.size] = np.minimum(sizes[family] - (not layout.childless), top)
        for i, twin, column in zip(
            layout.child, layout.sibling, self._families.children, strict=True
        ):
            codes[i] = _taken(column, child, shape[i] - 1)
            if twin is not None:
                codes[twin] = _taken(column, sibling, shape[twin] - 1)
        if layout.pos is not None:
            place = child - (np.cumsum(sizes) - sizes)[family]
            found = np.where(child < 0, len(POSITIONS), positions(place, sizes[family]))
            codes[layout.pos] = found.astype(np.uint8)
        return codes

    def _rows(self, level: int) -> Iterator[Rows]:
        sizes = self._families.sizes
        every = np.arange(sizes.size)
        if level == 0:
            none = np.full(sizes.size, -1)
            yield self.codes(every, none, none), self._total
            return
        single = level == 1 or self._layout.ordered  # one row a child
        weights = self._total // np.maximum(sizes, 1) if single else self._view
        for family, child, sibling in views_of(sizes, every, ordered=single):
            yield self.codes(family, child, sibling), weights[family]


def views_of(sizes: Whole, some: Whole, *, ordered: bool) -> Iterator[At]:
    """All views of some families, as places in their tables."""
    starts = np.cumsum(sizes) - sizes
    own = sizes[some]
    each = np.maximum(own if ordered else own * (own - 1), 1)
    part = np.cumsum(each) // _CHUNK
    for number in np.unique(part):
        here = part == number
        s, many, family = own[here], each[here], some[here]
        at = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        family, s = np.repeat(family, many), np.repeat(s, many)
        if ordered:
            first, second = at, at - 1
        else:
            others = np.maximum(s - 1, 1)
            first, second = at // others, at % others
            second = np.where(s > 1, second + (second >= first), -1)
        start = starts[family]
        child = np.where(s > 0, start + first, -1)
        yield family, child, np.where((s > 0) & (second >= 0), start + second, -1)


def level_of(clique: Clique, layout: Layout) -> int:
    """What one row of its count is: 0 a family, 1 a child, 2 a child with a sibling."""
    if any(i in layout.sibling for i in clique):
        return 2
    return int(any(i in layout.child or i == layout.pos for i in clique))


def _taken(column: Codes, at: Whole, none: int) -> Codes:
    """The codes at some places; `none` where the place is −1."""
    absent = np.min_scalar_type(none).type(none)
    if not column.size:
        return np.full(at.size, absent)
    return np.where(at >= 0, column[np.maximum(at, 0)], absent)
