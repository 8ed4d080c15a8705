"""The encoding of a column as a small table, which any engine can compile.

`Modelled.encode` says what the code of a value is. On an ordered physical type (whole numbers,
doubles, decimals, days, moments) it is constant between finitely many values, so it can be written
down whole: the values where it changes, found by bisection over every value of the type with
the column's own reader, and the code from each of them on (`Pieces`). On texts it is a list of words
(`Words`), or of words among numbers (`Spelled`). An engine that looks values up in such a table agrees
with `encode` by construction.

How round values are (`Divided`) is not constant between few of them: their kinds are listed, by steps
and rests.

Forms are public: they follow from the schema and from the type of the stored column alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import pairwise, product
from math import ceil, isfinite
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Whole
from understudy.columns.base import Modelled
from understudy.columns.binned import Binned, doubles, keys
from understudy.columns.category import Boolean, Category
from understudy.columns.numeric import Integer, Number
from understudy.columns.reading import FALSE_WORDS, TRUE_WORDS, is_number
from understudy.columns.roundness import Roundness
from understudy.columns.temporal import RESOLUTIONS, Datetime
from understudy.errors import SchemaError

ANY_DECIMAL = pa.decimal256(76, 38)
"""Stands for decimals of no declared precision."""

_LONGEST = 400
_EXACT = Context(prec=_LONGEST)
# No decimal that engines exchange has more than 38 digits, so the next one of 38 will do as a start.
_UP = Context(prec=38, rounding=ROUND_CEILING)
_EPOCH = datetime(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = (day.toordinal() - _EPOCH.toordinal() for day in (date.min, date.max))
_DAY_MICROS = 86_400 * 10**6


@dataclass(frozen=True)
class Pieces:
    """The code of x is `codes[i]`, with i the number of `starts` that are at most x.

    `missing` is the code of null, and of NaN where the type has it. `starts` increase, and are
    Python values of the physical type.
    """

    type: pa.DataType
    starts: tuple[Any, ...]
    codes: tuple[int, ...]
    missing: int


@dataclass(frozen=True)
class Words:
    """The code of a text, by the first rule that fits.

    1. a text of `exact` has its code; 2. a text of `blanks`, as it is or without the `BLANKS`
    around it, is `missing`, as null is; 3. a text that is in `trimmed` without the blanks around it
    has its code; 4. a text whose first characters, so many as a pair of `parents` says, are listed
    there has that code, the first pair first; 5. any other has `otherwise`. What is stored as a whole
    number is looked up as its text.
    """

    exact: Mapping[str, int]
    trimmed: Mapping[str, int]
    blanks: tuple[str, ...]
    missing: int
    otherwise: int
    parents: tuple[tuple[int, Mapping[str, int]], ...] = ()
    type: pa.DataType = field(default_factory=pa.string)


@dataclass(frozen=True)
class Spelled:
    """The code of a text that holds a number or a special value, by the first rule that fits.

    1. a text of `blanks`, as it is or without the `BLANKS` around it, is `missing`, as null is; 2. a
    text that is in `words` without the blanks around it has its code; 3. one that is a `PLAIN_NUMBER`
    without them has the code that `pieces` give the double; 4. any other is `missing`.
    """

    words: Mapping[str, int]
    blanks: tuple[str, ...]
    pieces: Pieces
    missing: int
    type: pa.DataType = field(default_factory=pa.string)


@dataclass(frozen=True)
class Divided:
    """How round a value is (`Roundness`): its cell by `over`, and its kind.

    That is the first of `kinds`, pairs of a step and a rest, whose step leaves this rest of the
    absolute value of the point, or else their number.

    A number x is read as the nearest whole number of 1/scale, ties to the even one, and moved into
    `ends`: that is its point. The point of a moment, moved into `ends`, is the number of whole `tick`s
    of so many microseconds since 1970. Of the codes of `over`, the first `cells` have kinds.
    """

    over: Pieces | Words | Spelled
    cells: int
    kinds: tuple[tuple[int, int], ...]
    ends: tuple[Any, Any]
    scale: int = 1
    tick: int | None = None
    missing: int = 0

    @property
    def type(self) -> pa.DataType:
        """The physical type."""
        return self.over.type


Form: TypeAlias = Pieces | Words | Spelled | Divided


def form(column: Modelled, type_: pa.DataType, null_values: Sequence[str] = ()) -> Form:
    """The encoding of a column that is stored as `type_`.

    Guarantee: for every value x of the type, the form gives `column.encode([x], null_values)`.
    `type_` is bool, int64, float64, a decimal, date32, timestamp[us], timestamp[us, tz=UTC] or
    string; narrower types are compared as these.

    Raises:
        SchemaError: Values of this type are not read as such a column.
    """
    if isinstance(column, Roundness):
        return _divided(column, type_, null_values)
    if not _suits(column, type_):
        raise SchemaError(
            f"column {column.name!r} is of type {column.kind!r} in the schema and "
            f"{_called(type_)} in the table"
        )
    if pa.types.is_string(type_) and isinstance(column, Binned):
        return _spelled(column, tuple(null_values))
    if pa.types.is_string(type_) or _prefixes(column):
        return replace(_words(column, tuple(null_values)), type=type_)
    if pa.types.is_decimal(type_) and _text_values(column) is None:
        return _decimal_form(column, type_)
    return _pieces(column, _Order(type_))


def _divided(column: Roundness, type_: pa.DataType, null_values: Sequence[str]) -> Divided:
    over, grid = column.over, column.over.grid
    within = form(over, type_, null_values)
    assert not isinstance(within, Divided)
    made = Divided(
        within,
        len(grid),
        column.kinds.classed,
        (grid.lows[0].item(), grid.highs[-1].item()),
        10 ** (over.decimals or 0) if isinstance(over, Number) else 1,
        missing=_code(column, pa.nulls(1, type_)),
    )
    if not isinstance(over, Datetime):
        return made
    zone = UTC if pa.types.is_timestamp(type_) and type_.tz is not None else None
    ends = (over.lower.replace(tzinfo=zone), over.upper.replace(tzinfo=zone))  # type: ignore[union-attr]
    return replace(made, ends=ends, tick=RESOLUTIONS[over.resolution] // 1000)


def unit_steps(pieces: Pieces) -> tuple[int, int] | None:
    """(lo, hi) where the code is x − lo for every whole x from lo to hi, and clamped outside."""
    if not pa.types.is_integer(pieces.type) or not pieces.starts:
        return None
    if pieces.codes != tuple(range(len(pieces.codes))):
        return None
    if any(right - left != 1 for left, right in pairwise(pieces.starts)):
        return None
    return pieces.starts[0] - 1, pieces.starts[-1]


BLANKS = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008"
    "\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""The characters that are taken off around texts."""


# --- which types are read as which columns --------------------------------------------------------


def _is_day_or_moment(type_: pa.DataType) -> bool:
    return pa.types.is_date(type_) or pa.types.is_timestamp(type_)


def _suits(column: Modelled, type_: pa.DataType) -> bool:
    """Whether values of the type are read as such a column."""
    number = pa.types.is_boolean(type_) or is_number(type_)
    if isinstance(column, Integer | Number):
        plain = column.format is None  # engines know no other notation
        return number or (
            plain and pa.types.is_string(type_) and any(map(_is_text, column.special))
        )
    if _prefixes(column):
        return pa.types.is_string(type_) or pa.types.is_integer(type_)
    kind = type(column.values[0]) if isinstance(column, Category) else None
    if kind in (int, float):
        return number
    if kind is bool or isinstance(column, Boolean):
        return number or pa.types.is_string(type_)
    if kind is str:  # numbers and days whose text is one and the same wherever it is written
        written = type_ != ANY_DECIMAL and (number or pa.types.is_date(type_))
        return written or pa.types.is_string(type_)
    return _is_day_or_moment(type_)


def _prefixes(column: Modelled) -> tuple[int, ...]:
    return column.prefixes if isinstance(column, Category) else ()


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _called(type_: pa.DataType) -> str:
    return {ANY_DECIMAL: "a decimal", pa.string(): "text"}.get(type_, str(type_))


# --- texts ----------------------------------------------------------------------------------------


def _words(column: Modelled, tokens: tuple[str, ...]) -> Words:
    blanks = tuple(dict.fromkeys((*column.null_values, *tokens, "")))
    missing = _code(column, pa.nulls(1, pa.string()))
    if (listed := _text_values(column)) is not None:
        assert isinstance(column, Category)
        odd = _code(replace(column, prefixes=()), pa.array(["\0" + "".join(listed)], pa.string()))
        exact = {text: code for code, text in enumerate(listed)}
        return Words(exact, {}, blanks, missing, odd, column.parents)
    words = [cased for word in (*TRUE_WORDS, *FALSE_WORDS) for cased in _cases(word)]
    codes = column.encode(pa.array(words, pa.string()))
    odd = _code(column, pa.array(["\0"], pa.string()))
    return Words({}, dict(zip(words, map(int, codes), strict=True)), blanks, missing, odd)


def _spelled(column: Binned, tokens: tuple[str, ...]) -> Spelled:
    words = list(filter(_is_text, column.special))
    codes = map(int, column.encode(pa.array(words, pa.string())))
    return Spelled(
        dict(zip(words, codes, strict=True)),
        tuple(dict.fromkeys((*column.null_values, *tokens, ""))),
        _pieces(column, _Order(pa.float64())),
        _code(column, pa.nulls(1, pa.string())),
    )


def _text_values(column: Modelled) -> list[str] | None:
    """The listed texts of a category of texts, in the order of their codes."""
    if isinstance(column, Category) and isinstance(column.values[0], str):
        return [str(value) for value in column.listed]
    return None


def _cases(word: str) -> list[str]:
    """A word in all mixtures of upper and lower case."""
    return ["".join(one) for one in product(*({c.lower(), c.upper()} for c in word))]


# --- ordered types --------------------------------------------------------------------------------


def _pieces(column: Modelled, order: _Order) -> Pieces:
    """Pieces at the places where the code changes, found among those where it may."""
    starts = sorted(
        place for place in set(_starts(column, order)) if order.first < place <= order.last
    )
    codes = column.encode(order.array([order.first, *starts])).tolist()
    kept = [at for at in range(len(starts)) if codes[at] != codes[at + 1]]
    return Pieces(
        order.type,
        tuple(order.value(starts[at]) for at in kept),
        (codes[0], *(codes[at + 1] for at in kept)),
        _code(column, pa.nulls(1, order.type)),
    )


def _code(column: Modelled, one: pa.Array) -> int:
    return int(column.encode(one)[0])


def _starts(column: Modelled, order: _Order) -> list[int]:
    """Places that name every one where the code changes, and maybe others."""
    if pa.types.is_boolean(order.type):
        return [1]
    if isinstance(column, Binned):
        return _reached(column, order, column.bounds)
    if not isinstance(column, Category) or isinstance(column.values[0], bool):
        return _reached(Boolean(column.name), order, np.array([1]))
    return [at + step for value in column.listed for at in order.places(value) for step in (0, 1)]


def _reached(column: Modelled, order: _Order, bounds: NDArray[Any]) -> list[int]:
    """For each bound, the least place whose point reaches it, if any: points rise with the place."""
    low, high = np.full(len(bounds), order.first), np.full(len(bounds), order.last)
    while np.any(low < high):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        reached = column._read(order.array(middle), ())[0] >= bounds
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return low.tolist()


class _Order:
    """The values of an ordered physical type, numbered in their order."""

    def __init__(self, type_: pa.DataType) -> None:
        self.type = type_
        ends = -(2**63), 2**63 - 1
        if pa.types.is_boolean(type_):
            ends = 0, 1
        elif pa.types.is_floating(type_):
            ends = _key(-np.inf), _key(np.inf)
        elif pa.types.is_decimal(type_):
            ends = 1 - 10**type_.precision, 10**type_.precision - 1
        elif pa.types.is_date(type_):
            ends = _FIRST_DAY, _LAST_DAY
        elif pa.types.is_timestamp(type_):
            ends = _FIRST_DAY * _DAY_MICROS, (_LAST_DAY + 1) * _DAY_MICROS - 1
        self.first, self.last = ends

    def array(self, places: Sequence[int] | Whole) -> pa.Array:
        """The values at these places."""
        if pa.types.is_decimal(self.type):
            return pa.array([self.value(place) for place in places], self.type)
        at = np.asarray(places, np.int64)
        if pa.types.is_floating(self.type):
            return pa.array(doubles(at))
        return pa.array(at.astype(np.int32) if pa.types.is_date(self.type) else at).cast(self.type)

    def value(self, place: int) -> Any:
        """The value at a place, as a Python one."""
        if pa.types.is_decimal(self.type):
            return _EXACT.scaleb(Decimal(place), -self.type.scale)
        if pa.types.is_timestamp(self.type):
            zone = None if self.type.tz is None else UTC
            return (_EPOCH + timedelta(microseconds=place)).replace(tzinfo=zone)
        return self.array([place])[0].as_py()

    def places(self, value: Any) -> list[int]:
        """The first and last place that a listed value may be read at; none if it has none."""
        try:
            found = self._places(value)
        except (ValueError, ArithmeticError):
            return []  # a text that is no number or day: no value of the type is written so
        return [place for place in found if self.first <= place <= self.last]

    def _places(self, value: Any) -> list[int]:
        if _is_day_or_moment(self.type):
            day = value if isinstance(value, date) else date.fromisoformat(value)
            at = day.toordinal() - _EPOCH.toordinal()
            if pa.types.is_date(self.type):
                return [at]
            return [at * _DAY_MICROS, (at + 1) * _DAY_MICROS - 1]
        if pa.types.is_floating(self.type):
            return [_key(float(value))] if isfinite(float(value)) else []
        if isinstance(value, str) and abs((value := Decimal(value)).adjusted()) > _LONGEST:
            return []
        units = Fraction(value) * 10 ** (self.type.scale if pa.types.is_decimal(self.type) else 0)
        return [units.numerator] if units.denominator == 1 else []


def _key(value: float) -> int:
    return int(keys(np.array([value]))[0])


def _decimal_form(column: Modelled, type_: pa.DataType) -> Pieces:
    """Decimals are read as the nearest whole number or double, ties to the even one.

    So a decimal reaches the double t exactly where it reaches the middle between t and the double
    before it, that middle included where t is the even one of the two.
    """
    if type_.scale == 0:
        whole = _pieces(column, _Order(pa.int64()))
        return replace(whole, type=type_, starts=tuple(map(Decimal, whole.starts)))
    doubles = _pieces(column, _Order(pa.float64()))
    scale, most = 10**type_.scale, 10**type_.precision
    starts: dict[Decimal, int] = {}
    code_before = doubles.codes[0]
    for start, code in zip(doubles.starts, doubles.codes[1:], strict=True):
        before = float(np.nextafter(start, -np.inf))
        if not isfinite(before) or not isfinite(start):
            continue
        middle = (Fraction(before) + Fraction(start)) / 2 * scale
        units = ceil(middle)
        if units == middle and _key(start) % 2:
            units += 1
        if units <= -most:
            code_before = code  # every value of the type has reached it
        elif units < most:  # of several, the last is reached
            starts[_UP.scaleb(Decimal(units), -type_.scale)] = code
    return Pieces(type_, tuple(starts), (code_before, *starts.values()), doubles.missing)
