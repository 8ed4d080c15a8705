"""Columns that follow from others: never modelled or paid for, computed once rows have been decoded.

`Mapped` is a function of one column, by a public list of values (`zip determines city`) or by public
thresholds (`income determines decile`). `Total` adds and subtracts columns (`total = a + b`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.columns.amounts import DAY, NUMBER, Amounts, Linear, amounts, points_of
from understudy.columns.base import Column, Masks, Modelled
from understudy.columns.binned import Binned
from understudy.columns.category import Boolean, Category
from understudy.columns.numeric import Integer, Number
from understudy.columns.temporal import Date
from understudy.columns.unmodelled import UndeclaredBins, UndeclaredShape
from understudy.errors import SchemaError

__all__ = ["Derived", "Mapped", "Total", "listed", "total"]

Codes = NDArray[np.integer[Any]]
Arrays: TypeAlias = Mapping[str, Any]
"""Decoded columns by name, as Arrow arrays."""


@dataclass(frozen=True, eq=False)
class Mapped:
    """A column whose value follows from that of `source`.

    `steps` are codes of `column`. A value of `source` whose code is c lies on one of the steps
    `first[c]` to `last[c]`; which of them, where they are several, the points `cuts` tell.
    """

    column: Modelled
    source: Modelled
    steps: Codes
    first: NDArray[np.intp]
    last: NDArray[np.intp]
    cuts: NDArray[Any] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The column that it follows from."""
        return (self.source.name,)

    def lifted(self, masks: Masks) -> Masks:
        """Masks over its codes as masks over those of its source."""
        return self._between(masks, self.first, self.last)

    def over(self, masks: Masks, low: NDArray, high: NDArray, there: NDArray[np.bool_]) -> Masks:
        """The same for intervals of the source's points, `low` to `high`, where `there` are some."""
        assert self.cuts is not None
        first, last = (np.searchsorted(self.cuts, end, side="right") for end in (low, high))
        null = self.first[-1]
        return self._between(masks, np.where(there, first, null), np.where(there, last, null))

    def _between(self, masks: Masks, first: NDArray, last: NDArray) -> Masks:
        """Whether all, or some, of the steps from one to another are inside."""
        inner, outer = (np.append(0, np.cumsum(mask[self.steps])) for mask in masks)
        return inner[last + 1] - inner[first] == last + 1 - first, outer[last + 1] > outer[first]

    def computed(self, arrays: Arrays) -> pa.Array:
        """Its values for those of its source."""
        array = arrays[self.source.name]
        at = self.first[self.source.encode(array)]
        if self.cuts is not None:
            points, there = points_of(self.source, array)
            at = np.where(there, np.searchsorted(self.cuts, points, side="right"), at)
        codes = self.steps[at]
        null = codes == self.column.cells
        return self.column._emit(np.where(null, 0, codes), null)


@dataclass(frozen=True, eq=False)
class Total:
    """A column that is the sum of others, exactly; null where one of them is no number."""

    column: Binned
    linear: Linear
    parts: tuple[Modelled, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it is computed from."""
        return self.linear.names

    def computed(self, arrays: Arrays) -> pa.Array:
        """The sum for every row."""
        read = [points_of(part, arrays[part.name]) for part in self.parts]
        there = np.all([valid for _, valid in read], axis=0)
        known = [amount for part in self.parts if (amount := amounts(part))]
        points = self.linear.of(known, [points for points, _ in read])
        return self.column._emit(np.where(there, points, self.column.grid.lows[0]), ~there)


Derived: TypeAlias = Mapped | Total


def listed(column: Column, texts: list[str]) -> Modelled:
    """A column for a list of its values that a mapping names; SchemaError where it cannot hold one."""
    if isinstance(column, Category | Boolean):
        return column
    common = {"dtype": column.dtype, "nullable": column.nullable}
    kind = column.wanted if isinstance(column, UndeclaredBins | UndeclaredShape) else column.kind
    if kind == "category":
        return Category(column.name, tuple(dict.fromkeys(texts)), **common)
    try:
        read = {"integer": int, "number": float, "date": date.fromisoformat}[kind]
        return Category(column.name, tuple(sorted({read(text) for text in texts})), **common)
    except (KeyError, ValueError):
        raise SchemaError(
            f"column {column.name!r} of type {kind!r} cannot follow from another; declare it as a "
            "category, a boolean, an integer, a number or a date"
        ) from None


def total(column: Column, linear: Linear, parts: tuple[Modelled, ...]) -> Total:
    """A column that is computed from others; SchemaError where its type cannot hold every sum."""
    known: list[Amounts] = []
    for part in parts:
        amount = amounts(part)
        if amount is None or amount.unit not in (NUMBER, DAY):
            raise SchemaError(f"column {part.name!r} is no number, and nothing can be added to it")
        if part.size > len(amount) and not column.nullable:
            raise SchemaError(
                f"column {column.name!r} must be nullable, because {part.name!r} is no number in "
                "every row, and then there is no sum"
            )
        known.append(amount)
    dated = sum(f for (_, f), a in zip(linear.terms, known, strict=True) if a.unit == DAY)
    if dated not in (0, 1):
        raise SchemaError("dates can only be subtracted from each other, or moved by days")
    places = linear.decimals(known)
    if not linear.fits(known):
        raise SchemaError(
            f"sums of {', '.join(linear.names)} may lie beyond 64 bits; declare narrower bounds"
        )
    low, high = linear.range(known, [(a.lows.min(), a.highs.max()) for a in known])
    common: dict[str, Any] = {"dtype": column.dtype, "nullable": column.nullable}
    if dated:
        if places != 0:
            raise SchemaError("a date can only be moved by whole days")
        try:
            first, last = (date(1970, 1, 1) + timedelta(days=int(end)) for end in (low, high))
        except OverflowError:
            raise SchemaError(
                f"days of {column.name!r} may lie beyond the calendar; declare narrower bounds"
            ) from None
        form = column.format if isinstance(column, Date) else None
        face: Binned = Date(column.name, first, last, 1, format=form, **common)
    elif places == 0:
        face = Integer(column.name, int(low), int(high), 1, **common)
    elif places is None:
        face = Number(column.name, float(low), float(high), 1, **common)
    else:
        least, most = (float(end) / 10.0**places for end in (low, high))
        face = Number(column.name, least, most, 1, None, places, **common)
    return Total(face, linear, parts)
