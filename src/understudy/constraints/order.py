"""Columns in an order: `start <= end`, `low < high`, `paid <= owed + 100`.

Each such rule is a bound on a difference, x - y <= k. All bounds that follow are made explicit first
(`closed`), so that cells of the columns hold a row that keeps all rules if and only if every pair of
them does; the model never gives pairs that do not. In those where only some values keep the rules,
values are drawn again, each from its own cell, and at last from the part that the rules leave.
Categories with an order are compared by their places in it, with others of the same values.

A row says nothing about a column in which it has no number (null, OTHER, a special value). Bounds that
follow from two rules hold all the same: `a <= b` and `b <= c` make `a <= c`, also where b is null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Bools, Rng, Whole
from understudy.columns.amounts import Amounts, Linear, amounts, points_of
from understudy.columns.base import Modelled
from understudy.columns.binned import Binned, doubles, keys
from understudy.columns.category import Category
from understudy.errors import SchemaError

_TRIES = 24
_LARGEST = 2**52


@dataclass(frozen=True)
class Bound:
    """In every row x - y <= `most`, or, if `strict`, less."""

    x: str
    y: str
    most: Fraction
    strict: bool


@dataclass(frozen=True)
class Edge:
    """In every row x - y <= `most`, in units of the last decimal, or in steps of doubles."""

    x: str
    y: str
    most: int


def bound(left: Linear, op: str, right: Linear, columns: Mapping[str, Modelled]) -> Bound:
    """What `left op right` says of two columns; SchemaError where it cannot be kept."""
    difference = left - right if op in ("<", "<=") else right - left
    if sorted(factor for _, factor in difference.terms) != [-1, 1]:
        raise SchemaError(
            "only two columns can be compared; declare a sum as a column of its own, "
            "'total = a + b', or write several rules"
        )
    x, y = (next(n for n, f in difference.terms if f == sign) for sign in (1, -1))
    one, two = (_require_numbers(columns[name]) for name in (x, y))
    if one.unit != two.unit:
        raise SchemaError(f"{x!r} and {y!r} are not of one kind, and have no order")
    if difference.constant and amounts(columns[x]) is None:
        raise SchemaError(f"{x!r} holds no numbers, and a constant cannot be added to it")
    return Bound(x, y, -difference.constant, op in ("<", ">"))


def _require_numbers(column: Modelled) -> Amounts:
    known = _known(column)
    if known is None:
        raise SchemaError(f"column {column.name!r} is no number, and has no order to compare by")
    if known.decimals is None and column.dtype not in ("float64", "string", "large_string"):
        raise SchemaError(
            f"column {column.name!r} of dtype {column.dtype!r} rounds its values; declare its "
            "decimals to compare it"
        )
    if (
        known.decimals is not None
        and max(-int(known.lows.min()), int(known.highs.max())) > _LARGEST
    ):
        raise SchemaError(f"the bounds of column {column.name!r} are too far apart to compare it")
    return known


def ordered(bounds: Sequence[Bound], columns: Mapping[str, Modelled]) -> Order:
    """Columns that bounds tie together, with all that follows from them.

    Raises:
        SchemaError: They contradict each other, or the columns are written too differently.
    """
    names = list(dict.fromkeys(name for each in bounds for name in (each.x, each.y)))
    places = {name: _require_numbers(columns[name]).decimals for name in names}
    doubles = None in places.values()
    if doubles and set(places.values()) - {None, 0}:
        raise SchemaError("compare numbers with and without decimals; declare those of all of them")
    finest = None if doubles else max(p for p in places.values() if p is not None)
    # Multiples of what each column holds; of doubles, only that whole numbers are fewer.
    steps = {name: _step(place, finest) for name, place in places.items()}
    edges = [Edge(each.x, each.y, _limit(each, finest)) for each in bounds]
    every = closed(edges, {} if doubles else steps)
    _require_simple(every, steps)
    # Columns with few points first: what is left for the others is never empty.
    line = sorted(names, key=lambda name: -steps[name])
    return Order(tuple(columns[name] for name in line), tuple(every), finest)


def _step(places: int | None, finest: int | None) -> int:
    if places is None:
        return 1
    return 2 if finest is None else 10 ** (finest - places)


def _limit(each: Bound, places: int | None) -> int:
    if places is None:
        if each.most:
            raise SchemaError("compare numbers with a constant; declare their decimals")
        return -each.strict
    most = each.most * 10**places
    if abs(most) > _LARGEST:
        raise SchemaError("hold a constant that is too large")
    return most.numerator // most.denominator - (each.strict and most.denominator == 1)


def _require_simple(edges: Sequence[Edge], steps: Mapping[str, int]) -> None:
    """A column of few points between two of many may leave none, which no pair of cells tells."""
    fine = {name for name in steps if steps[name] == min(steps.values())}
    coarse = set(steps) - fine
    above, below = {e.y for e in edges if e.x in fine}, {e.x for e in edges if e.y in fine}
    if len({steps[name] for name in coarse}) > 1 or (len(steps) > 2 and coarse & above & below):
        raise SchemaError("compare numbers of different decimals; declare the same for all of them")


def closed(edges: Sequence[Edge], steps: Mapping[str, int]) -> list[Edge]:
    """All edges that follow, one for each pair of columns; SchemaError if they contradict.

    Two columns that are both multiples of a step differ by a multiple of it.
    """
    names = list(dict.fromkeys(name for each in edges for name in (each.x, each.y)))
    most: dict[tuple[str, str], int] = {}
    for each in edges:
        _lower(most, (each.x, each.y), each.most, steps)
    for _ in range(2):  # rounding to steps may tighten once more
        for middle in names:
            for x in names:
                for y in names:
                    one, two = most.get((x, middle)), most.get((middle, y))
                    if one is not None and two is not None:
                        _lower(most, (x, y), one + two, steps)
    if any(x == y and limit < 0 for (x, y), limit in most.items()):
        raise SchemaError("contradict each other: together they leave no row at all")
    return [Edge(x, y, limit) for (x, y), limit in most.items() if x != y]


def _lower(
    most: dict[tuple[str, str], int], pair: tuple[str, str], limit: int, steps: Mapping[str, int]
) -> None:
    shared = math.gcd(*(steps.get(name, 1) for name in pair))
    limit = limit // shared * shared
    most[pair] = min(limit, most.get(pair, limit))


@dataclass(frozen=True, eq=False)
class Order:
    """Columns that are tied together and the edges between them, closed; made by `ordered`.

    `finest` are the decimals that all are compared with; None if they are compared as doubles.
    """

    columns: tuple[Modelled, ...]
    edges: tuple[Edge, ...]
    finest: int | None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(column.name for column in self.columns)

    @property
    def amounts(self) -> tuple[Amounts, ...]:
        """The numbers, or places, that each column is compared by."""
        return tuple(map(_amounts, self.columns))

    def impossible(self, each: Edge) -> Bools:
        """Pairs of codes of `each.x` and `each.y` in which no values keep the edge."""
        x, y = (self.columns[self.names.index(name)] for name in (each.x, each.y))
        mask = np.zeros((x.size, y.size), np.bool_)
        low, high = self._ends(x)[0], self._ends(y)[1]
        mask[: len(low), : len(high)] = low[:, None] > high[None, :] + each.most
        return mask

    def broken(self, table: Mapping[str, Any] | pa.Table) -> Bools:
        """Which rows break an edge, by their values."""
        return self._off(*self.read(table))

    def mended(
        self, arrays: Mapping[str, pa.Array], rng: Rng, rows: Bools | None = None
    ) -> dict[str, pa.Array]:
        """The columns with the values of rows that break an edge drawn anew, in their cells.

        Codes stay as they are. `rows` are those that the edges hold in, by default all.
        """
        found, there = self.read(arrays)
        bad = self._off(found, there)
        at = np.flatnonzero(bad if rows is None else bad & rows)
        if not at.size:
            return {}
        now, held = np.stack(found)[:, at], np.stack(there)[:, at]
        taken = pa.array(at)
        codes = np.stack([c.encode(arrays[c.name].take(taken)) for c in self.columns])
        left = np.arange(at.size)
        for _ in range(_TRIES):
            here = zip(self.columns, codes[:, left], held[:, left], now[:, left], strict=True)
            drawn = np.stack([self._drawn(*each, rng) for each in here])
            good = ~self._off(drawn, held[:, left])
            now[:, left[good]] = drawn[:, good]
            left = left[~good]
            if not left.size:
                break
        now[:, left] = self._within(codes[:, left], now[:, left], held[:, left], rng)
        return {
            column.name: self.patched(column, arrays[column.name], at[own], points[own])
            for column, points, own in zip(self.columns, now, held, strict=True)
        }

    # Points of a column and what they are compared by

    def _keys(self, column: Modelled, points: NDArray[Any]) -> Whole:
        if self.finest is None:
            return keys(np.asarray(points, np.float64))
        places = _amounts(column).decimals
        assert places is not None
        return points.astype(np.int64) * 10 ** (self.finest - places)

    def _points(self, column: Modelled, found: Whole) -> NDArray[Any]:
        places = _amounts(column).decimals
        if self.finest is None:
            return doubles(found) if places is None else doubles(found).astype(np.int64)
        assert places is not None
        return found // 10 ** (self.finest - places)

    def _ends(self, column: Modelled) -> tuple[Whole, Whole]:
        known = _amounts(column)
        return self._keys(column, known.lows), self._keys(column, known.highs)

    def cells(self, column: Modelled, codes: Any, there: Bools) -> tuple[Whole, Whole]:
        """The ends of the cells of some codes; of any cell where there is nothing to compare."""
        at = np.where(there, codes, 0).astype(np.intp)
        low, high = self._ends(column)
        return low[at], high[at]

    def read(self, table: Mapping[str, Any] | pa.Table) -> tuple[list[Whole], list[Bools]]:
        """What the values of every column are compared by, and which have something to compare."""
        read = [points_of(c, table[c.name], _amounts(c)) for c in self.columns]
        found = [self._keys(c, points) for c, (points, _) in zip(self.columns, read, strict=True)]
        return found, [there for _, there in read]

    @cached_property
    def _pairs(self) -> list[tuple[int, int, int]]:
        """The edges by places of columns."""
        return [(self.names.index(e.x), self.names.index(e.y), e.most) for e in self.edges]

    def _off(self, found: Sequence[Whole] | Whole, there: Sequence[Bools] | Bools) -> Bools:
        off = np.zeros(len(found[0]), np.bool_)
        for x, y, most in self._pairs:
            off |= (found[x] > found[y] + most) & there[x] & there[y]
        return off

    # New values

    def _drawn(self, column: Modelled, codes: Any, there: Bools, now: Whole, rng: Rng) -> Whole:
        if not isinstance(column, Binned):
            return now
        points = column._draw(np.where(there, codes, 0).astype(np.intp), rng)
        return np.where(there, self._keys(column, points), now)

    def _within(self, codes: NDArray[Any], now: Whole, there: Bools, rng: Rng) -> Whole:
        """Values of their cells that keep all edges, one column after the other.

        Since the edges are closed, there always is one for the next.
        """
        ends = map(self.cells, self.columns, codes, there)
        low, high = map(np.stack, zip(*ends, strict=True))
        for at, column in enumerate(self.columns):
            for x, y, most in self._pairs:
                if at == x:
                    high[x] = np.where(there[y], np.minimum(high[x], high[y] + most), high[x])
                elif at == y:
                    low[y] = np.where(there[x], np.maximum(low[y], low[x] - most), low[y])
            inside = (low[at] <= now[at]) & (now[at] <= high[at]) | ~there[at]
            drawn = self.between(column, low[at], high[at], rng)
            low[at] = high[at] = np.where(inside, now[at], drawn)
        return low

    def between(self, column: Modelled, low: Whole, high: Whole, rng: Rng) -> Whole:
        """Points of the column's own, uniform from `low` to `high`, where there are some."""
        places = _amounts(column).decimals
        if places is None:
            first, last = doubles(low), doubles(high)
            drawn = first + rng.random(len(first)) * (last - first)
            return keys(np.clip(drawn, first, last))
        if self.finest is None:
            first, last = np.ceil(doubles(low)), np.floor(doubles(high))
        else:
            step = 10 ** (self.finest - places)
            first, last = -(-low // step), high // step
        first, last = first.astype(np.int64), last.astype(np.int64)
        drawn = rng.integers(first, np.maximum(first, last), endpoint=True)
        special = [*column._special_points] if isinstance(column, Binned) else []
        for _ in range(_TRIES if special else 0):
            hit = np.isin(drawn, special)
            drawn[hit] = rng.integers(first[hit], np.maximum(first, last)[hit], endpoint=True)
        return self._keys(column, drawn)

    def patched(self, column: Modelled, array: pa.Array, rows: Any, found: Whole) -> pa.Array:
        """The array with points written into some rows."""
        if not isinstance(column, Binned) or not len(rows):
            return array
        more = column._emit(self._points(column, found), np.zeros(len(found), np.bool_))
        index = np.arange(len(array))
        index[rows] = len(array) + np.arange(len(rows))
        return pa.concat_arrays([array, more]).take(pa.array(index))


def _known(column: Modelled) -> Amounts | None:
    """What a column is compared by: numbers, or places in a declared order of values."""
    if isinstance(column, Category) and column.ordinal and amounts(column) is None:
        places = np.arange(len(column.values))
        return Amounts(places, places, 0, f"places among {column.values!r}")
    return amounts(column)


def _amounts(column: Modelled) -> Amounts:
    known = _known(column)
    assert known is not None
    return known
