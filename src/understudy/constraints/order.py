"""Columns in an order: `start <= end`, `low < high`, `paid <= owed + 100`.

Each such rule is a bound on a difference, x - y <= k. All bounds that follow from the rules are made
explicit first (`closed`), so that cells of the columns hold a row that keeps all rules if and only if
every pair of them does. Pairs of cells that do not are impossible, and the model never gives them. In
those where some values keep the rules and others do not, values are drawn again, each from its own
cell, until they do; what still does not is drawn from the part of its cell that the rules leave.

A row says nothing about a column in which it has no number (null, OTHER, a special value). Bounds that
follow from two rules hold all the same: `a <= b` and `b <= c` make `a <= c`, also where b is null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.columns.amounts import Amounts, Linear, amounts, points_of
from understudy.columns.base import Modelled
from understudy.columns.binned import Binned
from understudy.errors import SchemaError

__all__ = ["Bound", "Order", "bound", "closed"]

Points = NDArray[np.int64]
Mask = NDArray[np.bool_]

_TRIES = 24
_LARGEST = 2**61


@dataclass(frozen=True)
class Bound:
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
    if (one.unit, one.decimals) != (two.unit, two.decimals):
        raise SchemaError(
            f"{x!r} and {y!r} are not written alike; declare both with the same type, and numbers "
            "with the same decimals"
        )
    limit = -difference.constant
    if one.decimals is None:
        if limit:
            raise SchemaError(
                f"declare the decimals of {x!r} and {y!r} to compare their difference"
            )
        return Bound(x, y, -(op in ("<", ">")))
    limit *= 10**one.decimals
    whole = limit.numerator // limit.denominator
    strict = op in ("<", ">") and limit.denominator == 1
    if abs(whole) > _LARGEST:
        raise SchemaError("the constant is too large")
    return Bound(x, y, whole - strict)


def _require_numbers(column: Modelled) -> Amounts:
    known = amounts(column)
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


def closed(bounds: Sequence[Bound]) -> list[Bound]:
    """All bounds that follow, one for each pair of columns; SchemaError if they contradict."""
    names = list(dict.fromkeys(name for each in bounds for name in (each.x, each.y)))
    most: dict[tuple[str, str], int] = {}
    for each in bounds:
        pair = (each.x, each.y)
        most[pair] = min(each.most, most.get(pair, each.most))
    for middle in names:
        for x in names:
            for y in names:
                one, two = most.get((x, middle)), most.get((middle, y))
                if one is None or two is None:
                    continue
                most[x, y] = min(one + two, most.get((x, y), one + two))
    if any(x == y and limit < 0 for (x, y), limit in most.items()):
        raise SchemaError("contradict each other: together they leave no row at all")
    return [Bound(x, y, limit) for (x, y), limit in most.items() if x != y]


def keys(points: NDArray[Any]) -> Points:
    """Whole numbers in the order of the points, neighbours one apart: for doubles, their place."""
    if points.dtype.kind == "i":
        return points.astype(np.int64)
    bits = (np.asarray(points, np.float64) + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def _unkeyed(found: Points, known: Amounts) -> NDArray[Any]:
    if known.lows.dtype.kind == "i":
        return found
    return np.where(found < 0, np.int64(-(2**63)) - found, found).view(np.float64)


def _uniform(low: NDArray[Any], high: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    if low.dtype.kind == "i":
        return rng.integers(low, high, endpoint=True)
    return np.clip(low + rng.random(len(low)) * (high - low), low, high)


@dataclass(frozen=True, eq=False)
class Order:
    """Bounds between columns that are tied together, closed."""

    columns: tuple[Modelled, ...]
    bounds: tuple[Bound, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(column.name for column in self.columns)

    def impossible(self, each: Bound) -> Mask:
        """Pairs of codes of `each.x` and `each.y` in which no values keep the bound."""
        x, y = (next(c for c in self.columns if c.name == n) for n in (each.x, each.y))
        mask = np.zeros((x.size, y.size), np.bool_)
        one, two = amounts(x), amounts(y)
        assert one is not None
        assert two is not None
        low, high = keys(one.lows), keys(two.highs)
        mask[: len(one), : len(two)] = low[:, None] > high[None, :] + each.most
        return mask

    def broken(self, table: Mapping[str, Any], bounds: Sequence[Bound]) -> Mask:
        """Which rows break one of the bounds, by their values."""
        found, there = self._read(table)
        return _broken(found, there, bounds)

    def _read(self, table: Mapping[str, Any]) -> tuple[dict[str, Points], dict[str, Mask]]:
        found: dict[str, Points] = {}
        there: dict[str, Mask] = {}
        for column in self.columns:
            points, there[column.name] = points_of(column, table[column.name])
            found[column.name] = keys(points)
        return found, there

    def mended(
        self, arrays: Mapping[str, pa.Array], rng: np.random.Generator, rows: Mask | None = None
    ) -> dict[str, pa.Array]:
        """The columns with the values of rows that break a bound drawn anew, in their cells.

        Codes stay as they are. `rows` are those that the bounds hold in, by default all.
        """
        found, there = self._read(arrays)
        bad = _broken(found, there, self.bounds)
        at = np.flatnonzero(bad if rows is None else bad & rows)
        if not at.size:
            return {name: arrays[name] for name in self.names}
        codes = {c.name: c.encode(arrays[c.name].take(pa.array(at))) for c in self.columns}
        now = {name: found[name][at] for name in self.names}
        held = {name: there[name][at] for name in self.names}
        left = np.arange(len(at))
        for _ in range(_TRIES):
            drawn = {
                c.name: self._drawn(
                    c, codes[c.name][left], held[c.name][left], now[c.name][left], rng
                )
                for c in self.columns
            }
            good = ~_broken(drawn, {n: held[n][left] for n in self.names}, self.bounds)
            for name in self.names:
                now[name][left[good]] = drawn[name][good]
            left = left[~good]
            if not left.size:
                break
        for name, points in self._within(codes, now, held, left, rng).items():
            now[name][left] = points
        return {
            c.name: _patched(c, arrays[c.name], at[held[c.name]], now[c.name][held[c.name]])
            for c in self.columns
        }

    def _drawn(
        self, column: Modelled, codes: Any, there: Mask, now: Points, rng: np.random.Generator
    ) -> Points:
        if not isinstance(column, Binned):
            return now
        points = keys(column._draw(np.where(there, codes, 0).astype(np.intp), rng))
        return np.where(there, points, now)

    def _within(
        self,
        codes: Mapping[str, Any],
        now: Mapping[str, Points],
        held: Mapping[str, Mask],
        at: Any,
        rng: np.random.Generator,
    ) -> dict[str, Points]:
        """Values of their cells that keep all bounds, one column after the other.

        Since the bounds are closed, there always is one for the next.
        """
        lows: dict[str, Points] = {}
        highs: dict[str, Points] = {}
        for column in self.columns:
            known = amounts(column)
            assert known is not None
            cell = np.where(held[column.name][at], codes[column.name][at], 0).astype(np.intp)
            lows[column.name], highs[column.name] = keys(known.lows)[cell], keys(known.highs)[cell]
        done: dict[str, Points] = {}
        for name in self.names:
            low, high = lows[name].copy(), highs[name].copy()
            for each in self.bounds:
                other = each.y if each.x == name else each.x
                if name not in (each.x, each.y):
                    continue
                both = held[name][at] & held[other][at]
                if each.x == name:
                    most = done.get(other, highs[other]) + each.most
                    high = np.where(both, np.minimum(high, most), high)
                else:
                    least = done.get(other, lows[other]) - each.most
                    low = np.where(both, np.maximum(low, least), low)
            known = amounts(next(c for c in self.columns if c.name == name))
            assert known is not None
            inside = (low <= now[name][at]) & (now[name][at] <= high)
            fresh = keys(_uniform(_unkeyed(low, known), _unkeyed(high, known), rng))
            done[name] = np.where(inside, now[name][at], fresh)
        return done


def _broken(
    found: Mapping[str, Points], there: Mapping[str, Mask], bounds: Sequence[Bound]
) -> Mask:
    size = len(next(iter(found.values())))
    broken = np.zeros(size, np.bool_)
    for each in bounds:
        over = found[each.x] > found[each.y] + each.most
        broken |= over & there[each.x] & there[each.y]
    return broken


def _patched(column: Modelled, array: pa.Array, rows: Any, found: Points) -> pa.Array:
    """The array with points written into some rows."""
    known = amounts(column)
    if known is None or not isinstance(column, Binned) or not len(rows):
        return array
    points = _unkeyed(found, known)
    more = column._emit(points, np.zeros(len(points), np.bool_))
    index = np.arange(len(array))
    index[rows] = len(array) + np.arange(len(rows))
    return pa.concat_arrays([array, more]).take(pa.array(index))
