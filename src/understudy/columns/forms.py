"""The encoding of a column as a small table, which any engine can compile.

`Modelled.encode` says what the code of a value is. On an ordered physical type (whole numbers,
doubles, decimals, days, moments) it is constant between finitely many values, so it can be written
down whole: the values where it changes, found by bisection over every value of the type with
`encode` itself, and the code from each of them on (`Pieces`). On texts it is a list of words
(`Words`). An engine that looks values up in such a table agrees with `encode` by construction.

Forms are public: they follow from the schema and from the type of the stored column alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import pairwise, product
from math import ceil, isfinite
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.columns import Boolean, Category, Modelled
from understudy.columns.numeric import Integer, Number
from understudy.columns.reading import FALSE_WORDS, TRUE_WORDS
from understudy.errors import SchemaError

__all__ = ["ANY_DECIMAL", "BLANKS", "Form", "Pieces", "Words", "form", "unit_steps"]

ANY_DECIMAL = pa.decimal256(76, 38)
"""Stands for decimals of no declared precision."""

_EXACT = Context(prec=400)
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
    has its code; 4. any other has `otherwise`.
    """

    exact: Mapping[str, int]
    trimmed: Mapping[str, int]
    blanks: tuple[str, ...]
    missing: int
    otherwise: int
    type: pa.DataType = field(default_factory=pa.string)


Form: TypeAlias = Pieces | Words


def form(column: Modelled, type_: pa.DataType, null_values: Sequence[str] = ()) -> Form:
    """The encoding of a column that is stored as `type_`.

    Guarantee: for every value x of the type, the form gives `column.encode([x], null_values)`.
    `type_` is bool, int64, float64, a decimal, date32, timestamp[us], timestamp[us, tz=UTC] or
    string; narrower types are compared as these.

    Raises:
        SchemaError: Values of this type are not read as such a column.
    """
    if not any(suits(type_) for suits in _readable(column)):
        raise SchemaError(
            f"column {column.name!r} is of type {column.kind!r} in the schema and "
            f"{_words(type_)} in the table"
        )
    if pa.types.is_string(type_):
        return _words_form(column, tuple(null_values))
    if pa.types.is_decimal(type_) and _text_values(column) is None:
        return _decimal_form(column, type_)
    return _pieces(column, type_, _starts(column, type_))


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


def _is_number(type_: pa.DataType) -> bool:
    return (
        pa.types.is_boolean(type_)
        or pa.types.is_integer(type_)
        or pa.types.is_floating(type_)
        or pa.types.is_decimal(type_)
    )


def _is_day_or_moment(type_: pa.DataType) -> bool:
    return pa.types.is_date(type_) or pa.types.is_timestamp(type_)


def _is_text(type_: pa.DataType) -> bool:
    return pa.types.is_string(type_)


def _is_written(type_: pa.DataType) -> bool:
    """Numbers and days whose text is one and the same wherever it is written."""
    return type_ != ANY_DECIMAL and (_is_number(type_) or pa.types.is_date(type_))


def _readable(column: Modelled) -> tuple[Callable[[pa.DataType], bool], ...]:
    if isinstance(column, Integer | Number):
        return (_is_number,)
    if isinstance(column, Boolean):
        return (_is_number, _is_text)
    if isinstance(column, Category):
        kind = type(column.values[0])
        return {
            str: (_is_text, _is_written),
            bool: (_is_number, _is_text),
            int: (_is_number,),
            float: (_is_number,),
            date: (_is_day_or_moment,),
        }[kind]
    return (_is_day_or_moment,)


def _words(type_: pa.DataType) -> str:
    return "a decimal" if type_ == ANY_DECIMAL else "text" if _is_text(type_) else str(type_)


# --- texts ----------------------------------------------------------------------------------------


def _words_form(column: Modelled, tokens: tuple[str, ...]) -> Words:
    blanks = tuple(dict.fromkeys((*column.null_values, *tokens, "")))
    missing = _code(column, pa.array([None], pa.string()))
    if isinstance(column, Category) and (listed := _text_values(column)) is not None:
        odd = _code(column, pa.array(["\0" + "".join(listed)], pa.string()))
        return Words({text: code for code, text in enumerate(listed)}, {}, blanks, missing, odd)
    words = [cased for word in (*TRUE_WORDS, *FALSE_WORDS) for cased in _cases(word)]
    codes = column.encode(pa.array(words, pa.string()))
    odd = _code(column, pa.array(["\0"], pa.string()))
    return Words({}, dict(zip(words, map(int, codes), strict=True)), blanks, missing, odd)


def _text_values(column: Modelled) -> list[str] | None:
    """The listed texts of a category of texts, in the order of their codes."""
    if isinstance(column, Category) and isinstance(column.values[0], str):
        return [str(value) for value in column.listed]
    return None


def _cases(word: str) -> list[str]:
    """A word in all mixtures of upper and lower case."""
    return ["".join(one) for one in product(*({c.lower(), c.upper()} for c in word))]


# --- ordered types --------------------------------------------------------------------------------


def _starts(column: Modelled, type_: pa.DataType) -> list[Any]:
    if pa.types.is_boolean(type_):
        return [True]
    if not isinstance(column, Category):
        return _bisected(column, type_)
    if isinstance(column.values[0], bool):
        return _bisected(Boolean(column.name), type_)
    return _around(_candidates(column, type_), type_)


def _pieces(column: Modelled, type_: pa.DataType, starts: Iterable[Any]) -> Pieces:
    """Pieces at these starts, which name every value where the code changes, and maybe others."""
    starts = sorted(set(starts))
    probes = [_least(type_), *starts]
    codes = [int(code) for code in column.encode(pa.array(probes, type_))]
    kept = [at for at in range(len(starts)) if codes[at] != codes[at + 1]]
    return Pieces(
        type_,
        tuple(starts[at] for at in kept),
        (codes[0], *(codes[at + 1] for at in kept)),
        _code(column, pa.array([None], type_)),
    )


def _code(column: Modelled, one: pa.Array) -> int:
    return int(column.encode(one)[0])


def _least(type_: pa.DataType) -> Any:
    """The least value of a type."""
    if pa.types.is_boolean(type_):
        return False
    if pa.types.is_floating(type_):
        return -np.inf
    if pa.types.is_decimal(type_):
        return _EXACT.scaleb(Decimal(1 - 10**type_.precision), -type_.scale)
    return _value(int(_range(type_)[0]), type_)


def _candidates(column: Category, type_: pa.DataType) -> list[Any]:
    """Values of the type that may be listed ones."""
    found: list[Any] = []
    for value in column.listed:
        try:
            found += _readings(value, type_)
        except (ValueError, ArithmeticError):
            continue  # a text that is no number or day: no value of the type is written so
    return found


def _readings(value: Any, type_: pa.DataType) -> list[Any]:
    if isinstance(value, date):
        if pa.types.is_date(type_):
            return [value]
        midnight = datetime(value.year, value.month, value.day, tzinfo=_zone(type_))
        return [midnight, midnight + timedelta(days=1) - timedelta(microseconds=1)]
    if pa.types.is_integer(type_):
        whole = int(value)
        return [whole] if -(2**63) <= whole < 2**63 and whole == Fraction(value) else []
    if pa.types.is_floating(type_):
        return [float(value)] if isfinite(float(value)) else []
    if pa.types.is_decimal(type_):
        units = Fraction(value) * 10**type_.scale
        fits = units.denominator == 1 and abs(units) < 10**type_.precision
        return [_EXACT.scaleb(Decimal(int(units)), -type_.scale)] if fits else []
    return [date.fromisoformat(value)]


def _around(values: Iterable[Any], type_: pa.DataType) -> list[Any]:
    """The values, and the next after each."""
    found: list[Any] = []
    for value in values:
        found.append(value)
        try:
            found.append(_after(value, type_))
        except (OverflowError, ValueError):
            continue  # the last of its type
    return found


def _after(value: Any, type_: pa.DataType) -> Any:
    if isinstance(value, datetime):
        return value + timedelta(microseconds=1)
    if isinstance(value, date):
        return value + timedelta(days=1)
    if isinstance(value, Decimal):
        return _EXACT.add(value, _EXACT.scaleb(Decimal(1), -type_.scale))
    if isinstance(value, float):
        return float(np.nextafter(value, np.inf))
    if value + 1 >= 2**63:
        raise OverflowError
    return value + 1


def _bisected(column: Modelled, type_: pa.DataType) -> list[Any]:
    """For each code, the least value that has it or a later one: `encode` rises with the value."""
    first, last = _range(type_)
    ends = column.encode(_array(np.array([first, last]), type_)).astype(np.int64)
    wanted = np.arange(ends[0] + 1, ends[1] + 1)
    low, high = np.full(len(wanted), first), np.full(len(wanted), last)
    while np.any(low < high):
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        reached = column.encode(_array(middle, type_)) >= wanted
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return [_value(int(at), type_) for at in low]


def _range(type_: pa.DataType) -> tuple[np.int64, np.int64]:
    """The first and last value of a type, as places in its order."""
    if pa.types.is_floating(type_):
        return _place(-np.inf), _place(np.inf)
    if pa.types.is_date(type_):
        return np.int64(_FIRST_DAY), np.int64(_LAST_DAY)
    if pa.types.is_timestamp(type_):
        return np.int64(_FIRST_DAY * _DAY_MICROS), np.int64((_LAST_DAY + 1) * _DAY_MICROS - 1)
    return np.int64(np.iinfo(np.int64).min), np.int64(np.iinfo(np.int64).max)


def _place(value: float) -> np.int64:
    """Doubles in their order, as integers: the bits, with those of negative numbers turned."""
    bits = np.array([value], np.float64).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)[0]


def _array(places: NDArray[np.int64], type_: pa.DataType) -> pa.Array:
    """The values at these places in the order of the type."""
    if pa.types.is_floating(type_):
        bits = np.where(places < 0, places ^ np.int64(2**63 - 1), places)
        return pa.array(bits.view(np.float64))
    if pa.types.is_date(type_):
        return pa.array(places.astype(np.int32)).cast(type_)
    return pa.array(places).cast(type_)


def _value(place: int, type_: pa.DataType) -> Any:
    if pa.types.is_integer(type_):
        return place
    if pa.types.is_floating(type_):
        return float(_array(np.array([place]), type_)[0].as_py()) + 0.0  # zero has no sign
    if pa.types.is_date(type_):
        return date.fromordinal(place + _EPOCH.toordinal())
    return (_EPOCH + timedelta(microseconds=place)).replace(tzinfo=_zone(type_))


def _zone(type_: pa.DataType) -> Any:
    return None if type_.tz is None else UTC


def _decimal_form(column: Modelled, type_: pa.DataType) -> Pieces:
    """Decimals are read as the nearest whole number or double, ties to the even one.

    So a decimal reaches the double t exactly where it reaches the middle between t and the double
    before it, that middle included where t is the even one of the two.
    """
    if type_.scale == 0:
        whole = form(column, pa.int64())
        assert isinstance(whole, Pieces)
        return Pieces(type_, tuple(map(Decimal, whole.starts)), whole.codes, whole.missing)
    doubles = form(column, pa.float64())
    assert isinstance(doubles, Pieces)
    scale, most = 10**type_.scale, 10**type_.precision
    starts: dict[Decimal, int] = {}
    code_before = doubles.codes[0]
    for start, code in zip(doubles.starts, doubles.codes[1:], strict=True):
        before = float(np.nextafter(start, -np.inf))
        if not isfinite(before) or not isfinite(start):
            continue
        middle = (Fraction(before) + Fraction(start)) / 2 * scale
        units = ceil(middle)
        if units == middle and _place(start) % 2:
            units += 1
        if units <= -most:
            code_before = code  # every value of the type has reached it
        elif units < most:  # of several, the last is reached
            starts[_UP.scaleb(Decimal(units), -type_.scale)] = code
    return Pieces(type_, tuple(starts), (code_before, *starts.values()), doubles.missing)
