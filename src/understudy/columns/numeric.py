"""Integers and numbers between public bounds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, floor, isfinite
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Bools, Floats, Whole
from understudy.columns.base import is_whole
from understudy.columns.binned import Binned, Cells, decimals_from_units, largest
from understudy.columns.notation import Notation
from understudy.columns.reading import (
    Read,
    array_of,
    converted,
    floats,
    integers,
    is_text,
    round_to_integers,
    writes_text,
)


def _notation(column: Integer | Number) -> Notation | None:
    """How texts of the column are written; SchemaError where `format` does not say it."""
    if column.format is None:
        return None
    found = Notation.of(column.format) if isinstance(column.format, str) else None
    if found is None:
        column._refuse(
            f'format = {column.format!r} must say how numbers are written, such as "#.##0,00 €"'
        )
    return found


_NUMBERS = (pa.types.is_floating, pa.types.is_decimal128, writes_text)
_FAR = re.compile(r"[eE][+-]?0*[\d_]{4}")


@dataclass(frozen=True)
class Integer(Binned):
    """A whole number in `lower..upper`; without bins at most 1000 values, one cell each.

    Fractions are read as the nearest integer, what lies outside as the nearest bound, a null
    where none is allowed as the lower bound. Decoding draws uniformly from the integers of a cell.
    Texts are read, and written, as `format` says: "#.##0 €".
    """

    kind: ClassVar[str] = "integer"
    usual: ClassVar[str] = "int64"
    held_by = (pa.types.is_integer, *_NUMBERS)
    example: ClassVar[str] = "0"

    lower: int | None = None
    upper: int | None = None
    edges: tuple[int, ...] | None = None
    format: str | None = None

    def _normalise(self) -> None:
        _ = self._notation
        super()._normalise()

    @cached_property
    def _notation(self) -> Notation | None:
        return _notation(self)

    def _bound(self, key: str, value: Any) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            self._refuse(f'{key} holds {value!r}; it must be whole here (or use type = "number")')
        if not -(2**63) <= value < 2**63:
            self._refuse(f"{key} holds {value}, which lies beyond 64 bits; narrow the bounds")
        if self._words and abs(value) > 2**53:
            self._refuse(f"{key} holds {value}, beyond 2^53; special texts need narrower bounds")
        return value

    def _point(self, bound: Any) -> int:
        return int(bound)

    def _read(self, array: pa.Array, tokens: Sequence[str]) -> Read:
        if self._notation is not None and is_text(array.type):
            return integers(self._notation.plain(array), tokens)
        if self._words and is_text(array.type):
            values, valid = floats(array, tokens, plain=True)
            return round_to_integers(values), valid
        return integers(array, tokens)

    def _emit(self, points: NDArray, null: Bools) -> pa.Array:
        type_ = self.arrow_type
        if pa.types.is_decimal(type_):
            return decimals_from_units(_times(points, type_.scale), type_, null)
        return _spelled(self._notation, array_of(points, null), type_)

    def _show_point(self, point: Any) -> str:
        return str(int(point))

    def _place(self, literal: Any) -> Fraction:
        return _number(self, literal)


@dataclass(frozen=True)
class Number(Binned):
    """A number in `lower..upper`, cut by `bins` or `edges`.

    With `decimals = d` the legal values are the multiples of 10^-d, and what is read is rounded
    to one of them; without, every double. NaN is null, infinities are the nearest bound, a null
    where none is allowed becomes the lower bound. Decoding draws uniformly within a cell and
    never leaves it, whatever the rounding and the declared type. Texts are read, and written, as
    `format` says: "#.##0,00 €"; it needs `decimals`.
    """

    kind: ClassVar[str] = "number"
    usual: ClassVar[str] = "float64"
    held_by = _NUMBERS
    example: ClassVar[str] = "0.0"

    lower: float | None = None
    upper: float | None = None
    edges: tuple[float, ...] | None = None
    decimals: int | None = None
    format: str | None = None

    def __post_init__(self) -> None:
        if self.decimals is not None and not is_whole(self.decimals, 0, 15):
            self._refuse(f"decimals = {self.decimals!r} must be a whole number from 0 to 15")
        if self.bins is None and self.edges is None:
            self._refuse(
                "bins is missing; cut a number into cells with bins = 32, or edges (in a schema file "
                "leave both out, and a release finds its shape)"
            )
        super().__post_init__()

    @cached_property
    def _notation(self) -> Notation | None:
        return _notation(self)

    def _normalise(self) -> None:
        if self._notation is not None and self.decimals is None:
            self._refuse(f"format = {self.format!r} needs decimals; decimals = 2, for instance")
        super()._normalise()
        assert self.lower is not None
        assert self.upper is not None
        if not isfinite(self.upper - self.lower):
            self._refuse(f"lower = {self.lower} and upper = {self.upper} lie too far apart")

    def _check_cells(self) -> None:
        if pa.types.is_decimal(self.arrow_type) and self.decimals is None:
            self._set("decimals", self.arrow_type.scale)
        super()._check_cells()

    def _bound(self, key: str, value: Any) -> float:
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not isfinite(value):
            self._refuse(f"{key} holds {value!r}; it must be a finite number")
        return float(value)

    @cached_property
    def _cut(self) -> Cells:
        """Over multiples of 10^-decimals counted as integers, or over doubles."""
        return self._continuous() if self.decimals is None else self._decimal(self.decimals)

    def _continuous(self) -> Cells:
        assert self.bins is not None or self.edges is not None
        if self.edges is not None:
            edges = np.array(self.edges)
        else:
            edges = np.linspace(self.lower, self.upper, self.bins + 1)  # type: ignore[arg-type, operator]
        highs = np.append(np.nextafter(edges[1:-1], -np.inf), edges[-1])
        up, down = self._narrow(edges[:-1], np.inf), self._narrow(highs, -np.inf)
        if np.any(np.diff(edges) <= 0) or np.any(up > down):
            self._refuse(
                f"{self._cuts()} leaves a cell without any value of dtype = {self.dtype!r}; "
                "use fewer bins or wider edges"
            )
        return Cells(edges[:-1], highs)

    def _decimal(self, decimals: int) -> Cells:
        if self.edges is not None:
            cuts = [_exact(edge) for edge in self.edges]
        else:
            assert self.bins is not None
            lower, upper = _exact(self.lower), _exact(self.upper)
            cuts = [lower + (upper - lower) * i / self.bins for i in range(self.bins + 1)]
        scaled = [cut * 10**decimals for cut in cuts]
        last = floor(scaled[-1])
        if max(abs(last), abs(ceil(scaled[0]))) >= 2**51:
            self._refuse(
                f"decimals = {decimals} is finer than a double allows between {self.lower} and "
                f"{self.upper}; use fewer decimals"
            )
        return Cells.starting([ceil(cut) for cut in scaled[:-1]], last)

    @property
    def _narrow_type(self) -> type[np.floating] | None:
        return {"float32": np.float32, "float16": np.float16}.get(self.dtype)

    def _narrow(self, points: Floats, towards: float) -> NDArray:
        """The nearest values of the declared float type that do not pass the points."""
        if (narrow_type := self._narrow_type) is None:
            return points
        with np.errstate(over="ignore"):
            narrow = points.astype(narrow_type)
            back = narrow.astype(np.float64)
            passed = back < points if towards > 0 else back > points
            return np.where(passed, np.nextafter(narrow, narrow_type(towards)), narrow)

    def _point(self, bound: Any) -> Any:
        if self.decimals is None:
            with np.errstate(over="ignore"):
                point = float((self._narrow_type or np.float64)(bound))
            return point if isfinite(point) else self._refuse_special(bound)
        units = _exact(float(bound)) * 10**self.decimals
        if units.denominator != 1:
            self._refuse(
                f"special holds {bound!r}, which needs more than decimals = {self.decimals}"
            )
        return units.numerator if abs(units) < 2**51 else self._refuse_special(bound)

    def _as_stored(self, points: NDArray) -> pa.Array:
        if self.decimals is None and pa.types.is_floating(self.arrow_type):
            return array_of(points.astype(self._narrow_type or np.float64))
        return super()._as_stored(points)

    def _read(self, array: pa.Array, tokens: Sequence[str]) -> Read:
        if self._notation is not None and is_text(array.type):
            array = self._notation.plain(array)
        values, valid = floats(array, tokens, plain=bool(self._words))
        values = np.where(valid, values, 0.0)
        with np.errstate(over="ignore"):
            if self.decimals is not None:
                clipped = np.clip(values, -1e300, 1e300)
                return round_to_integers(clipped * 10.0**self.decimals), valid
            if self._narrow_type is not None:  # only values of the declared type are legal
                values = values.astype(self._narrow_type).astype(np.float64)
        return values, valid

    def _emit(self, points: NDArray, null: Bools) -> pa.Array:
        type_ = self.arrow_type
        if self.decimals is None:
            cells = self.grid.find(points)
            if pa.types.is_floating(type_):
                low = self._narrow(self.grid.lows.astype(np.float64), np.inf)[cells]
                high = self._narrow(self.grid.highs.astype(np.float64), -np.inf)[cells]
                return array_of(self._beside(np.clip(points.astype(low.dtype), low, high)), null)
            return converted(array_of(points, null), type_)
        if pa.types.is_floating(type_):
            return array_of(points / 10.0**self.decimals, null).cast(type_)
        if pa.types.is_decimal(type_):
            return decimals_from_units(_times(points, type_.scale - self.decimals), type_, null)
        written = decimals_from_units(points, pa.decimal128(38, self.decimals), null)
        return _spelled(self._notation, written, type_)

    def _remedy(self) -> str:
        return "choose a wider dtype, fewer decimals or narrower bounds"

    def _show_point(self, point: Any) -> str:
        if self.decimals is None:
            return f"{float(point):.6g}"
        return f"{int(point) / 10**self.decimals:.{self.decimals}f}"

    def _ordered_labels(self) -> list[str]:
        if self.decimals is not None:
            return super()._ordered_labels()
        shown = [f"{edge:.6g}" for edge in (*self._cut.lows, self._cut.highs[-1])]
        *labels, last = (f"[{low}, {high})" for low, high in pairwise(shown))
        return [*labels, last[:-1] + "]"]

    def _place(self, literal: Any) -> Fraction:
        number = _number(self, literal)
        return number if self.decimals is None else number * 10**self.decimals


def _spelled(notation: Notation | None, numbers: pa.Array, type_: pa.DataType) -> pa.Array:
    """Numbers in the declared type, as texts in the column's notation."""
    if notation is None or not writes_text(type_):
        return converted(numbers, type_)
    return converted(notation.written(numbers), type_)


def exact_number(text: str) -> Fraction:
    """What a text says; ValueError where it is no number, or one too large to write down."""
    if _FAR.search(text):  # 10^9999 and beyond would never end
        raise ValueError(f"{text!r} has too large an exponent")
    return Fraction(text)


def _exact(value: float | None) -> Fraction:
    """The decimal a person wrote, not the binary fraction nearest to it."""
    return Fraction(repr(value))


def _times(points: Whole, power: int) -> Whole:
    """points · 10^power; ValueError where that leaves int64 or the digits do not fit."""
    if power < 0:
        raise ValueError("the type has fewer digits after the point than the column")
    if largest(points) * 10**power >= 2**63:
        raise ValueError("a value has more digits than the type")
    return points * 10**power


def _number(column: Binned, literal: Any) -> Fraction:
    if isinstance(literal, bool):
        column._misuse(f"{literal!r} is not a number")
    try:
        return exact_number(str(literal))
    except (ValueError, ZeroDivisionError):
        column._misuse(f"{literal!r} is not a finite number")
