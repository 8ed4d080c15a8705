"""Draft a schema from a table, for a custodian to review.

A draft looks at private rows, so it is itself private: every fact it took from them is listed in
the column's `read_from_rows`, and no release accepts the schema before someone has confirmed
them. Column names and Arrow types are public; everything a draft guesses from them alone is not
marked.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.columns import (
    Boolean,
    Category,
    Column,
    Date,
    Datetime,
    Identifier,
    Incomplete,
    Integer,
    Number,
    Text,
)
from understudy.columns.arrow import (
    arrow_type,
    is_number,
    numpy_of,
    pc,
    texts_of,
    type_name,
    value_type,
    writes_text,
)
from understudy.columns.reading import DAY, distinct_texts, flat, floats, is_text, ticks
from understudy.draft.people import counted
from understudy.draft.rounding import amount_edges, calendar_edges, fewest_decimals, nice_bounds
from understudy.errors import SchemaError
from understudy.quoting import unquoted
from understudy.schema.schema import Schema
from understudy.source import read, read_table
from understudy.units import OPEN, ROW, Unit

__all__ = ["confirm", "draft"]

_NULL_TOKENS = ("?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL")
_NULL_AMONG_NUMBERS = (*_NULL_TOKENS, "None", "none", "-", ".", "missing", "unknown")
_ID_NAME = re.compile(r"(?i:(^|[_\- .])(id|uuid|guid|ssn|key)$)|[a-z](Id|ID)$")
_CODE_NAME = re.compile(r"zip|post|code|fips|area", re.IGNORECASE)
_INTEGER = r"^[+-]?(0|[1-9][0-9]{0,17})$"
_FLOAT = r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
_FORMATS = (
    "%Y%m%d",
    "%Y%m%dT%H%M%S",
    "%Y/%m/%d",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%d %b %Y",
    "%d-%b-%Y",
    "%b %d, %Y",
    "%Y/%m/%d %H:%M:%S",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
)

_ISO = ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S")

_BINS = 32
_STRICTLY = 200
_MOST_LISTED = 200
"""Beyond that many texts a draft lists the most frequent ones and declares OTHER."""
_FEW = 12
_SINGLES = 128
_LONG_TEXT = 40


def draft(data: Any) -> Schema:
    """A schema to review, from a table: whatever `read` takes, read as a release reads it.

    NOT PRIVATE: it looks at the rows. Whatever it took from them is marked in `read_from_rows`;
    the number of rows is not kept. Where a value of an identifier has several rows, who is protected
    is left open, and no release accepts the schema before `confirm` has answered it.
    """
    source = read(data)
    table = read_table(source)
    columns: list[Column] = []
    for field in table.schema:
        with unquoted(f"column {field.name!r}"):
            columns.append(_column(field, table.column(field.name), source.typed))
    schema = Schema(tuple(columns), unit_word=ROW, read_from_rows=("unit",))
    if any(found.repeats for found in counted(schema, table)):
        return dataclasses.replace(schema, unit_word=OPEN, read_from_rows=())
    return schema


def confirm(
    schema: Schema,
    columns: Iterable[str] | None = None,
    *,
    unit: str | None = None,
    max_rows: int | None = None,
) -> Schema:
    """The schema with the marks of these columns cleared, or of all.

    Whoever calls it states that the marked facts are public, or were replaced by public ones. `unit`
    says who is protected: the column that tells people apart, of whose rows `max_rows` count, or
    "row". A question that a draft left open (`unit = "?"`) is answered by that alone.
    """
    if unit is not None or max_rows is not None:
        schema = schema.protecting(_chosen_unit(schema, unit, max_rows))
    elif columns is None:
        schema = dataclasses.replace(schema, read_from_rows=())
    chosen = None if columns is None else set(columns)
    if unknown := (chosen or set()) - {column.name for column in schema.columns}:
        raise SchemaError(f"column {min(unknown)!r} is not in the schema; nothing was confirmed")
    marked = (c for c in schema.columns if chosen is None or c.name in chosen)
    return schema.resolved({c.name: dataclasses.replace(c, read_from_rows=()) for c in marked})


def _chosen_unit(schema: Schema, unit: str | None, max_rows: int | None) -> Unit | None:
    if unit is None:
        raise SchemaError(
            f"max_rows = {max_rows!r} says nothing without unit; name the column, too"
        )
    by_row = unit == ROW and max_rows is None
    if not by_row and max_rows is None:
        raise SchemaError(
            f"unit = {unit!r} needs max_rows: how many rows of one {unit} may count, such as 5"
        )
    salt = "" if schema.unit is None else schema.unit.salt
    return None if by_row else Unit(unit, max_rows or 0, salt)


@dataclass(frozen=True)
class _Look:
    """What a draft saw of one column, apart from its values."""

    name: str
    dtype: str
    nullable: bool
    marks: tuple[str, ...]
    tokens: tuple[str, ...] = ()

    def common(self, *marks: str) -> dict[str, Any]:
        """The facts every column has; `marks` are further facts read from the rows."""
        read = (*self.marks, *marks)
        return {
            "dtype": self.dtype,
            "nullable": self.nullable,
            "null_values": self.tokens,
            "read_from_rows": tuple(dict.fromkeys(read)),
        }

    def retyped(self, dtype: str) -> _Look:
        """The same, with another type on output."""
        return dataclasses.replace(self, dtype=dtype)

    def guessed(self) -> _Look:
        """The same, with the type itself guessed from rows."""
        return dataclasses.replace(self, marks=("type", *self.marks))


def _column(field: pa.Field, chunks: pa.ChunkedArray, typed: bool) -> Column:
    arrays = flat(chunks)
    array = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
    type_ = value_type(array.type)
    marks = ("nullable",) if field.nullable else ()
    dtype = _kept(field.type)
    look = _Look(field.name, dtype, array.null_count > 0, marks)
    if array.null_count == len(array):
        return _blank(look, array.type)
    if is_text(array.type):
        return _from_text(look, array, typed)
    if pa.types.is_dictionary(array.type):
        values = pc.unique(array.dictionary_decode()).drop_null()
        return _first(look, lambda: _listed(look.guessed(), sorted(values.to_pylist())))
    if pa.types.is_boolean(type_):
        return Boolean(look.name, **look.common())
    if is_number(type_):
        return _from_numbers(look, array)
    if pa.types.is_date(type_):
        days, valid = ticks(array, tick=DAY)
        return _first(look, lambda: _dated(look, days[valid], None))
    if pa.types.is_timestamp(type_):
        return _from_times(look, array)
    return Identifier(look.name, dtype="string", nullable=look.nullable, read_from_rows=())


def _kept(type_: pa.DataType) -> str:
    """The name of a type that a schema can keep, or of the nearest one."""
    if pa.types.is_run_end_encoded(type_):
        type_ = type_.value_type
    if pa.types.is_decimal256(type_) or (pa.types.is_decimal(type_) and type_.scale < 0):
        return type_name(pa.decimal128(38, max(type_.scale, 0)))
    if is_text(type_) and not writes_text(value_type(type_)):
        return "binary"
    name = type_name(type_)
    try:
        return "string" if pa.types.is_null(arrow_type(name)) else name
    except ValueError:
        return "string"


def _blank(look: _Look, type_: pa.DataType) -> Column:
    """A column without a single value: its domain has to come from elsewhere."""
    if pa.types.is_boolean(type_):
        return Boolean(look.name, **look.common())
    ordered = {
        "number": pa.types.is_floating,
        "integer": pa.types.is_integer,
        "date": pa.types.is_date,
        "datetime": pa.types.is_timestamp,
    }
    wanted = next((kind for kind, holds in ordered.items() if holds(type_)), "category")
    missing = ("values",) if wanted == "category" else ("lower", "upper")
    facts = {"bins": _BINS} if wanted == "number" else {}
    return Incomplete(look.name, wanted, missing, facts, **look.common())


# Texts


def _from_text(look: _Look, array: pa.Array, typed: bool) -> Column:
    texts, index = distinct_texts(array)
    counts = np.bincount(index, minlength=len(texts) + 1)[: len(texts)]
    texts, counts = texts.filter(pa.array(counts > 0)), counts[counts > 0]
    plain = pc.utf8_trim_whitespace(texts)
    null, kind = _nulls_and_kind(plain)
    tokens = sorted({text for text in plain.filter(pa.array(null)).to_pylist() if text})
    marks = (*look.marks, "nullable", *(["null_values"] if tokens else []))
    nullable = look.nullable or bool(null.any())
    look = _Look(look.name, look.dtype, nullable, ("type", *marks), tuple(tokens))
    kept = pa.array(~null)
    texts, plain, counts = texts.filter(kept), plain.filter(kept), counts[~null]
    if not len(texts):
        return _blank(look, pa.string())
    if pa.types.is_dictionary(array.type):
        return _from_words(look, texts.to_pylist(), counts)
    if kind == "boolean":
        return Boolean(look.name, **(look if typed else look.retyped("bool")).common())
    if kind == "number":
        return _from_digits(look, plain, counts, typed)
    if kind is not None:
        return _from_date_texts(look, plain, kind, typed)
    return _from_words(look, texts.to_pylist(), counts)


def _nulls_and_kind(texts: pa.Array) -> tuple[NDArray[np.bool_], str | None]:
    """Which texts stand for null, and what all the others are.

    The kind is "boolean", "number", "iso", a strptime pattern, or None for words.
    """
    usual, among_numbers = (
        numpy_of(pc.is_in(texts, texts_of(["", *tokens])))
        for tokens in (_NULL_TOKENS, _NULL_AMONG_NUMBERS)
    )
    for null in (usual, among_numbers):
        rest = texts.filter(pa.array(~null))
        if len(rest) and (kind := _kind(rest)):
            return null, kind
    return usual, None


def _kind(texts: pa.Array) -> str | None:
    words = set(pc.utf8_lower(texts.slice(0, 10)).to_pylist())
    if len(texts) <= 4 and words <= {"true", "false"}:
        return "boolean"
    dated = _date_kind(texts)
    if dated is None and _all(texts, _FLOAT):
        return "number"
    return dated


def _date_kind(texts: pa.Array) -> str | None:
    if _all(texts, r"^\d{4}-\d{2}-\d{2}") and ticks(texts, tick=DAY)[1].all():
        return "iso"
    for form in _FORMATS:
        if not all(_strict(text, form) for text in texts[:_STRICTLY].to_pylist()):
            continue
        days, valid = ticks(texts, tick=DAY, form=form)
        recent = _days(1900) <= days.min() and days.max() < _days(2100)
        if valid.all() and (form != "%Y%m%d" or (recent and len(texts) > _FEW)):
            return form
    return None


def _all(texts: pa.Array, regex: str) -> bool:
    return pc.all(pc.match_substring_regex(texts, regex)).as_py()


def _days(year: int) -> int:
    return (date(year, 1, 1) - date(1970, 1, 1)).days


def _strict(text: str, form: str) -> bool:
    try:
        return datetime.strptime(text, form).strftime(form) == text
    except ValueError:
        return False


def _from_words(look: _Look, texts: list[str], counts: NDArray[np.integer]) -> Column:
    rows, distinct = int(counts.sum()), len(texts)
    length = sum(map(len, texts)) / distinct
    named = _ID_NAME.search(look.name) is not None
    many, long, mostly = distinct > _MOST_LISTED, length >= _LONG_TEXT, distinct > rows / 2
    if (distinct == rows and rows > _FEW and not long) or (named and many):
        return Identifier(look.name, **look.common())
    if (many and (long or mostly)) or (long and mostly and rows > _FEW):
        return Text(look.name, **look.common())
    if many:
        often = sorted(range(distinct), key=lambda at: (-counts[at], texts[at]))[:_MOST_LISTED]
        listed = sorted({texts[at] for at in often})
        other = "OTHER" if "OTHER" not in listed else "(other)"
        return Category(look.name, tuple(listed), other, **look.common("values"))
    return _listed(look, sorted(set(texts)))


def _listed(look: _Look, values: Sequence[Any], *, ordinal: bool = False) -> Category:
    return Category(look.name, tuple(values), None, ordinal, **look.common("values"))


def _from_digits(look: _Look, texts: pa.Array, counts: NDArray[np.integer], typed: bool) -> Column:
    whole = _all(texts, _INTEGER)
    if not typed:
        look = look.retyped("int64" if whole else "float64")
    values, _ = floats(texts)
    return _numeric(look, values, counts)


def _from_date_texts(look: _Look, texts: pa.Array, kind: str, typed: bool) -> Column:
    form = None if kind == "iso" else kind
    seconds, _ = ticks(texts, tick=10**9, form=form)
    dated = bool(np.all(seconds % 86_400 == 0))
    if form is None and not typed:
        look = look.retyped("date32[day]" if dated else "timestamp[s]")
    elif form is None:  # written as it was read
        first = texts[:_STRICTLY].to_pylist()
        form = next((f for f in _ISO if all(_strict(text, f) for text in first)), None)
    if dated:
        return _first(look, lambda: _dated(look, seconds // 86_400, form))
    return _first(look, lambda: _timed(look, seconds, form, "second"))


# Numbers


def _from_numbers(look: _Look, array: pa.Array) -> Column:
    values, valid = floats(array)
    look = dataclasses.replace(look, nullable=look.nullable or not bool(valid.all()))
    if not valid.any():
        return _blank(look, array.type)
    values, counts = np.unique(values[valid], return_counts=True)
    inside = np.isfinite(values)
    if not inside.any():
        return _blank(look, array.type)
    return _numeric(look, values[inside], counts[inside])


def _numeric(look: _Look, values: NDArray[np.float64], counts: NDArray[np.integer]) -> Column:
    values, where = np.unique(values, return_inverse=True)
    counts = np.bincount(where, counts).astype(np.int64)
    if np.all(np.rint(values) == values) and float(np.abs(values).max()) < 2**53:
        return _whole(look, values, counts)
    look = look.guessed()
    decimals = fewest_decimals(values)
    marks = () if decimals is None else ("decimals",)
    grid = None if decimals is None else Fraction(1, 10**decimals)

    def few() -> Column | None:
        return _listed(look, values.tolist(), ordinal=True) if len(values) <= _FEW else None

    def cut() -> Column | None:
        edges = amount_edges(values, counts, grid)
        if edges is None:
            return None
        facts = look.common("edges", *marks)
        return Number(look.name, edges=tuple(map(float, edges)), decimals=decimals, **facts)

    def even(lower: Fraction | float, upper: Fraction | float, places: int | None) -> Column:
        bins = _BINS
        if places is not None:
            bins = max(1, min(bins, floor((upper - lower) * 10**places)))
        facts = look.common("lower", "upper", *(() if places is None else marks))
        return Number(look.name, float(lower), float(upper), bins, None, places, **facts)

    low, high = float(values[0]), float(values[-1])
    return _first(
        look,
        few,
        cut,
        lambda: even(*nice_bounds(low, high), decimals) if low < high else None,
        lambda: even(low, high, None),
        lambda: Number(look.name, low, high, 1, **look.common("lower", "upper")),
    )


def _first(look: _Look, *makers: Callable[[], Column | None]) -> Column:
    """The first column that can be made; one to fill in by hand if none can.

    Round bounds can leave what a narrow type holds, and cells can be finer than it.
    """
    for make in makers:
        try:
            if (column := make()) is not None:
                return column
        except (ValueError, OverflowError):  # SchemaError and Arrow's refusals are ValueErrors
            continue
    return _blank(look, arrow_type(look.dtype))


def _whole(look: _Look, values: NDArray[np.float64], counts: NDArray[np.integer]) -> Column:
    rows, distinct = int(counts.sum()), len(values)
    low, high = int(values[0]), int(values[-1])
    span = high - low + 1
    look = look.guessed()
    named = _ID_NAME.search(look.name) is not None
    counted = distinct == rows == span and rows > _SINGLES
    if (named and distinct > max(_FEW, rows / 2)) or counted:
        return Identifier(look.name, **look.common())
    coded = _CODE_NAME.search(look.name) is not None and distinct <= _MOST_LISTED
    few = distinct <= 2 or (distinct <= _FEW and span > 2 * distinct)
    listed = few or (coded and span > distinct * 3 // 2)

    def even(lower: int, upper: int) -> Column:
        bins = None if upper - lower < _SINGLES else _BINS
        return Integer(look.name, lower, upper, bins, **look.common("lower", "upper"))

    def cut() -> Column | None:
        edges = amount_edges(values, counts, Fraction(1))
        if span <= _SINGLES or edges is None:
            return None
        return Integer(look.name, edges=tuple(map(int, edges)), **look.common("edges"))

    def single() -> Column | None:
        ordinal = not coded and distinct > 2
        return _listed(look, values.astype(int).tolist(), ordinal=ordinal) if listed else None

    return _first(
        look,
        single,
        cut,
        lambda: None if span <= _BINS else even(*map(int, nice_bounds(low, high))),
        lambda: even(low, high),
    )


# Dates


def _from_times(look: _Look, array: pa.Array) -> Column:
    micros, valid = ticks(array, tick=10**3, zoned=array.type.tz is not None)
    micros = micros[valid]
    finest = (("day", DAY // 10**3), ("second", 10**6), ("microsecond", 1))
    resolution = next(name for name, size in finest if np.all(micros % size == 0))
    return _first(look, lambda: _timed(look, micros // 10**6, None, resolution))


def _dated(look: _Look, days: NDArray[np.integer], form: str | None) -> Column:
    first, last = (date(1970, 1, 1) + timedelta(days=int(day)) for day in (days.min(), days.max()))
    if (last - first).days < _SINGLES and first < last:
        marks = ("lower", "upper", *_marked(form))
        return Date(look.name, first, last, format=form, **look.common(*marks))
    edges = calendar_edges(first, last)
    return Date(look.name, edges=edges, format=form, **look.common("edges", *_marked(form)))


def _marked(form: str | None) -> tuple[str, ...]:
    return () if form is None else ("format",)


def _timed(look: _Look, seconds: NDArray[np.integer], form: str | None, resolution: str) -> Column:
    first, last = (
        datetime(1970, 1, 1) + timedelta(seconds=int(moment))
        for moment in (seconds.min(), seconds.max())
    )
    days = calendar_edges(first.date(), last.date())
    cuts = [datetime(day.year, day.month, day.day) for day in days]
    if resolution != "day":
        finest = timedelta(seconds=1) if resolution == "second" else timedelta(microseconds=1)
        cuts[-1] += timedelta(days=1) - finest
    more = {"format": form, "resolution": resolution}
    marks = ("resolution", *_marked(form))
    return _first(
        look,
        lambda: Datetime(look.name, edges=tuple(cuts), **more, **look.common("edges", *marks)),
        lambda: Datetime(
            look.name, first, last, _BINS, **more, **look.common("lower", "upper", *marks)
        ),
    )
