"""Columns as numbers that can be compared, added and subtracted: `sqft_above + sqft_basement`.

A point is a whole number of units of 10^-decimals, of days or of ticks, or a double. Values that are no
numbers (null, OTHER, special values) have no point, and nothing is computed with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Bools
from understudy.columns.base import Column, Modelled
from understudy.columns.binned import Binned
from understudy.columns.category import Category
from understudy.columns.numeric import Number
from understudy.columns.reading import flat
from understudy.columns.temporal import Date, Datetime
from understudy.errors import SchemaError

NUMBER, DAY = "number", "day"

Points = NDArray[Any]
Mask = Bools


@dataclass(frozen=True, eq=False)
class Amounts:
    """The cells of a column that hold numbers: cell i those from `lows[i]` to `highs[i]`.

    `decimals` is None for doubles. `unit` tells what can be compared: numbers, days, or moments of one
    resolution.
    """

    lows: Points
    highs: Points
    decimals: int | None
    unit: str

    def __len__(self) -> int:
        return len(self.lows)


def amounts(column: Column) -> Amounts | None:
    """The numbers of a column; None if it has none."""
    if isinstance(column, Binned):
        decimals = column.decimals if isinstance(column, Number) else 0
        return Amounts(column.grid.lows, column.grid.highs, decimals, _unit(column))
    if not isinstance(column, Category) or isinstance(column.values[0], (str, bool)):
        return None
    points = column.points[: len(column.values)]
    dated = isinstance(column.values[0], date)
    return Amounts(
        points, points, 0 if points.dtype.kind == "i" else None, DAY if dated else NUMBER
    )


def _unit(column: Binned) -> str:
    if isinstance(column, Datetime):
        return f"moments by the {column.resolution}" + " in UTC" * column._zoned
    return DAY if isinstance(column, Date) else NUMBER


def points_of(
    column: Modelled, array: pa.Array | pa.ChunkedArray, known: Amounts | None = None
) -> tuple[Points, Mask]:
    """The point of every value of a decoded column, and which have one; `known` are its `amounts`."""
    known = known or amounts(column)
    assert known is not None
    codes = column.encode(array)
    there = codes < len(known)
    if isinstance(column, Category):
        return known.lows[np.where(there, codes, 0)], there
    read = [column._read(chunk, ())[0] for chunk in flat(array)]
    return np.where(there, np.concatenate(read), known.lows[0]), there


@dataclass(frozen=True)
class Linear:
    """Columns added and subtracted: the sum of factor · column, and a constant."""

    terms: tuple[tuple[str, int], ...]
    constant: Fraction = Fraction(0)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order they were written."""
        return tuple(name for name, _ in self.terms)

    def __sub__(self, other: Linear) -> Linear:
        negated = Linear(tuple((n, -f) for n, f in other.terms), -other.constant)
        return self.expanded({}, negated)

    def expanded(self, known: Mapping[str, Linear], more: Linear | None = None) -> Linear:
        """With columns that are sums themselves written out, and `more` added."""
        factors: dict[str, int] = {}
        constant = self.constant + (more.constant if more else 0)
        for name, factor in (*self.terms, *(more.terms if more else ())):
            inner = known.get(name, Linear(((name, 1),)))
            constant += factor * inner.constant
            for each, times in inner.terms:
                factors[each] = factors.get(each, 0) + factor * times
        return Linear(tuple((n, f) for n, f in factors.items() if f), constant)

    def __str__(self) -> str:
        return " ".join(f"{'+' if f > 0 else '-'} {n}" for n, f in self.terms).removeprefix("+ ")

    def decimals(self, parts: Sequence[Amounts]) -> int | None:
        """The decimals of the sum; None for doubles."""
        places = [part.decimals for part in parts]
        if None in places:
            return None
        own = next((d for d in range(40) if (self.constant * 10**d).denominator == 1), None)
        if own is None:
            raise SchemaError("a constant has more than 39 decimals; write fewer")
        return max([own, *(p for p in places if p is not None)])

    def of(self, parts: Sequence[Amounts], points: Sequence[Points]) -> Points:
        """The sum of the points of its columns, in units of 10^-`decimals`; points broadcast."""
        places = self.decimals(parts)
        total: Any = 0
        for (_, factor), part, each in zip(self.terms, parts, points, strict=True):
            if places is not None:
                assert part.decimals is not None
                total = total + each * (factor * 10 ** (places - part.decimals))
            else:
                total = total + (each / 10.0 ** (part.decimals or 0)) * factor
        exact = self.constant * 10 ** (places or 0)
        return total + (int(exact) if places is not None else float(exact))

    def read(
        self, columns: Sequence[Modelled], arrays: Mapping[str, Any] | pa.Table
    ) -> tuple[Points, Mask]:
        """The sum for every row of its decoded columns, and which rows have one."""
        read = [points_of(column, arrays[column.name]) for column in columns]
        known = [part for column in columns if (part := amounts(column)) is not None]
        there = np.all([valid for _, valid in read], axis=0)
        return self.of(known, [points for points, _ in read]), there

    def fits(self, parts: Sequence[Amounts]) -> bool:
        """Whether no sum of points leaves 64 bits on the way; doubles always fit."""
        places = self.decimals(parts)
        if places is None:
            return True
        largest = abs(self.constant) * 10**places
        for (_, factor), part in zip(self.terms, parts, strict=True):
            farthest = max(-int(part.lows.min()), int(part.highs.max()), 0)
            largest += abs(factor) * farthest * 10 ** (places - (part.decimals or 0))
        return largest < 2**63

    def range(self, parts: Sequence[Amounts], ends: Sequence[tuple[Points, Points]]) -> Any:
        """(least, greatest) of the sum where each column lies between its ends."""
        signs = [factor > 0 for _, factor in self.terms]
        low = [pair[0] if up else pair[1] for pair, up in zip(ends, signs, strict=True)]
        high = [pair[1] if up else pair[0] for pair, up in zip(ends, signs, strict=True)]
        return self.of(parts, low), self.of(parts, high)
