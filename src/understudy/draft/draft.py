"""Draft a schema from a table, for a custodian to review.

A draft looks at private rows, so it is itself private: every fact it took from them is listed in
the column's `read_from_rows`, and no release accepts the schema before someone has confirmed
them. Column names and Arrow types are public; everything a draft guesses from them alone is not
marked, and neither are lists and bounds that everybody knows.

What names people or things is not modelled. A value that few rows hold is never written down: numbers
have no bounds, and categories with many or rare values no list; a release finds both privately.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from understudy._types import Bools, Floats, Whole
from understudy.columns import Boolean, Category, Column, Identifier, Text
from understudy.columns.base import near
from understudy.columns.notation import Notation, notation_of
from understudy.columns.reading import (
    DAY,
    NULL_AMONG_NUMBERS,
    NULL_TEXTS,
    arrow_type,
    distinct_texts,
    flat,
    floats,
    is_number,
    is_text,
    nulled,
    numpy_of,
    pc,
    texts_of,
    ticks,
    type_name,
    value_type,
    writes_text,
)
from understudy.columns.unmodelled import DISCOVER
from understudy.draft import numbers, words
from understudy.draft.known import beside_order, in_order, whole_list
from understudy.draft.lists import items
from understudy.draft.names import Name
from understudy.draft.people import counted
from understudy.draft.rules import confirm_rules, proposed
from understudy.errors import SchemaError
from understudy.quoting import unquoted
from understudy.schema.family import FamilySchema
from understudy.schema.schema import Schema, nulls_by_column
from understudy.schema.toml import build_column
from understudy.source import Source, read, read_table
from understudy.source.pushed import PushedSource
from understudy.units import OPEN, ROW, Unit

_INTEGER = r"^[+-]?(0|[1-9][0-9]{0,17})$"
_FLOAT = r"^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
_DAY_FORMATS = items(
    """
    %Y/%m/%d; %Y.%m.%d; %Y年%m月%d日; %Y %b %d; %d/%m/%Y; %m/%d/%Y; %d.%m.%Y; %d-%m-%Y; %m-%d-%Y;
    %d/%m/%y; %m/%d/%y; %d.%m.%y; %d-%m-%y; %d %b %Y; %d-%b-%Y; %d-%b-%y; %d/%b/%Y; %d%b%Y;
    %d %B %Y; %b %d, %Y; %B %d, %Y; %a, %d %b %Y; %A, %d %B %Y
    """,
    between=";",
)
_CLOCKS = ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p")
_FORMATS = (
    "%Y%m%d",
    "%Y%m%dT%H%M%S",
    *_DAY_FORMATS,
    *(f"{day} {clock}" for clock in _CLOCKS for day in _DAY_FORMATS),
    *(f"%a, %d %b %Y %H:%M:%S {zone}" for zone in ("+0000", "GMT")),
    "%d/%b/%Y:%H:%M:%S +0000",
    *_CLOCKS,
)
_LATEST = date(2040, 1, 1)
"""A year of two digits beyond it may be of either century."""

_Kind = str | Notation | None

_ISO = ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S")

_MORE_NULLS = items(
    r"""
    NONE, Missing, Unknown, UNKNOWN, NaT, NAN, -NaN, n.a., N.A., n/d, nd, ND, (null), <null>, [null],
    \N, (blank), blank, nil, ---, .., ..., –, —, #N/A N/A, #NA, #DIV/0!, #VALUE!, #REF!, #NUM!,
    #NAME?, #NULL!, 0000-00-00, 0000-00-00 00:00:00, 00/00/0000, 00.00.0000, __/__/____
"""
)
"""Texts that programs write in place of a number or a day."""
_STRICTLY = 200
_FEW = 12
_SINGLES = 128
_REPEATED = 5
_DAYS = (date(1900, 1, 1), date(2099, 12, 31))
"""Bounds of dates that anybody would choose; where one lies beyond them, a draft gives none."""
_SHORT_DAYS = (date(1969, 1, 1), date(2068, 12, 31))
"""The same of years of two digits, as all programs read them."""
_NO_DAY = (date(1900, 1, 1), date(1900, 1, 1))
"""What a time of day is read as."""
_ENDLESS = tuple(date(year, 12, 31) for year in (2099, 2199, 2999, 9999))
"""Dates that stand for "never" or "not yet"."""


def draft(data: Any, *, null_values: Sequence[str] = ()) -> Schema:
    """A schema to review, from a table: whatever `read` takes, read as a release reads it.

    `null_values` are texts that stand for null beside the usual ones: "TOKEN" in every column,
    "COLUMN=TOKEN" in one.

    NOT PRIVATE: it looks at the rows. Whatever it took from them is marked in `read_from_rows`;
    the number of rows is not kept. Where a value of an identifier has several rows, who is protected
    is left open, and no release accepts the schema before `confirm` has answered it.
    """
    source = read(data)
    table = read_table(source)
    columns = columns_of(source, table, null_values)
    schema = Schema(tuple(columns), unit_word=ROW, read_from_rows=("unit",))
    schema = replace(schema, rules=proposed(table, schema))
    if any(found.repeats for found in counted(schema, table)):
        return replace(schema, unit_word=OPEN, read_from_rows=())
    return schema


def columns_of(source: Source, table: pa.Table, null_values: Sequence[str]) -> list[Column]:
    """What a draft says of every column of a table. NOT PRIVATE."""
    tokens = nulls_by_column(null_values, table.schema.names)
    columns: list[Column] = []
    for field in table.schema:
        with unquoted(f"column {field.name!r}"):
            array, told = _nulled(table.column(field.name), tokens[field.name])
            column = _column(field, array, source.typed, isinstance(source, PushedSource))
            if told:
                told = tuple(dict.fromkeys((*column.null_values, *told)))
                marks = tuple(dict.fromkeys((*column.read_from_rows, "null_values")))
                column = replace(column, nullable=True, null_values=told, read_from_rows=marks)
            columns.append(column)
    return columns


def _nulled(
    chunks: pa.ChunkedArray, tokens: Sequence[str]
) -> tuple[pa.ChunkedArray, tuple[str, ...]]:
    """The column with null for these texts, and those of them that it has."""
    if not tokens or not is_text(chunks.type):
        return chunks, ()
    parts, found = [], set[str]()
    for array in flat(chunks):
        parts.append(nulled(array, tokens))
        gone = nulled(array, ()).filter(parts[-1].is_null())
        found.update(pc.utf8_trim_whitespace(gone).unique().to_pylist())
    return pa.chunked_array(parts), tuple(token for token in tokens if token.strip() in found)


def confirm(
    schema: Schema,
    columns: Iterable[str] | None = None,
    *,
    unit: str | None = None,
    max_rows: int | None = None,
    equal: bool = False,
) -> Schema:
    """The schema with the marks of these columns cleared, or of all.

    Whoever calls it states that the marked facts are public, or were replaced by public ones. `unit`
    says who is protected: the column that tells people apart, of whose rows `max_rows` count, with
    `equal` together as one, or "row". A question that a draft left open (`unit = "?"`) is answered by
    that alone.
    """
    said = unit is not None or max_rows is not None or equal
    if isinstance(schema, FamilySchema) and not said:
        return _confirmed(schema, columns)
    if said:
        schema = schema.protecting(_chosen_unit(schema, unit, max_rows, equal))
    elif columns is None:
        schema = replace(schema, read_from_rows=())
    if columns is None:
        schema = confirm_rules(schema)
    chosen = None if columns is None else set(columns)
    if unknown := (chosen or set()) - {column.name for column in schema.columns}:
        raise SchemaError(f"column {min(unknown)!r} is not in the schema; nothing was confirmed")
    marked = (c for c in schema.columns if chosen is None or c.name in chosen)
    return schema.resolved({c.name: replace(c, read_from_rows=()) for c in marked})


def _confirmed(schema: FamilySchema, columns: Iterable[str] | None) -> FamilySchema:
    """The same of two tables: columns as "table.column", how they belong together as "table"."""
    _, _, family = schema.tables
    named = schema.named
    chosen = {family.child, *schema.marked} if columns is None else set(columns)
    known = {family.child, *(f"{name}.{c.name}" for name, t in named.items() for c in t.columns)}
    if unknown := chosen - known:
        raise SchemaError(
            f"column {min(unknown)!r} is not in the schema{near(min(unknown), sorted(known))}; write "
            "TABLE.COLUMN; nothing was confirmed"
        )
    tables = [
        confirm(
            replace(table, rules=()),
            [c.name for c in table.columns if f"{name}.{c.name}" in chosen],
        )
        for name, table in named.items()
    ]
    if family.child in chosen:
        family = replace(family, read_from_rows=())
    rules = schema.rules if columns is not None else confirm_rules(schema).rules
    return schema.changed((tables[0], tables[1]), family, rules)


def _chosen_unit(
    schema: Schema, unit: str | None, max_rows: int | None, equal: bool
) -> Unit | None:
    if unit is None:
        stated = "equal" if max_rows is None else f"max_rows = {max_rows!r}"
        raise SchemaError(f"{stated} says nothing without unit; name the column, too")
    by_row = unit == ROW and max_rows is None and not equal
    if not by_row and max_rows is None:
        raise SchemaError(
            f"unit = {unit!r} needs max_rows: how many rows of one {unit} may count, such as 5"
        )
    salt = "" if schema.unit is None else schema.unit.salt
    return None if by_row else (Unit.sharing if equal else Unit)(unit, max_rows or 0, salt)


@dataclass(frozen=True)
class _Look:
    """What a draft saw of one column, apart from its values."""

    name: str
    dtype: str
    nullable: bool
    marks: tuple[str, ...]
    tokens: tuple[str, ...] = ()
    special: tuple[Any, ...] = ()
    notation: Notation | None = None

    @property
    def named(self) -> Name:
        """What its name says."""
        return Name(self.name)

    def common(self, *marks: str) -> dict[str, Any]:
        """The facts every column has; `marks` are further facts read from the rows."""
        read = (*self.marks, *marks)
        return {
            "dtype": self.dtype,
            "nullable": self.nullable,
            "null_values": self.tokens,
            "read_from_rows": tuple(dict.fromkeys(read)),
        }

    def made(self, kind: str, *marks: str, **facts: Any) -> Column:
        """The column that these facts declare, as a file would; None is no fact, and not marked."""
        marks = tuple(mark for mark in marks if facts.get(mark, mark) is not None)
        if self.special and kind != "category":
            facts, marks = {**facts, "special": self.special}, (*marks, "special")
        if self.notation is not None and kind in ("integer", "number"):
            facts, marks = {**facts, "format": self.notation.pattern}, (*marks, "format")
        given = {key: value for key, value in facts.items() if value is not None}
        stated = {k: list(v) if isinstance(v, tuple) else v for k, v in self.common(*marks).items()}
        return build_column({"name": self.name, "type": kind, **stated, **given})

    def retyped(self, dtype: str) -> _Look:
        """The same, with another type on output."""
        return replace(self, dtype=dtype)

    def guessed(self) -> _Look:
        """The same, with the type itself guessed from rows."""
        return replace(self, marks=("type", *self.marks))

    def beside(self, special: Sequence[Any]) -> _Look:
        """The same, with further special values."""
        return replace(self, special=(*self.special, *special))


def _column(field: pa.Field, chunks: pa.ChunkedArray, typed: bool, stored: bool) -> Column:
    """`stored`: in an engine, which counts values by the type they have there."""
    arrays = flat(chunks)
    array = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
    type_ = value_type(array.type)
    marks = ("nullable",) if field.nullable else ()
    dtype = _kept(field.type)
    look = _Look(field.name, dtype, array.null_count > 0, marks)
    if array.null_count == len(array):
        return _absent(look) if len(array) else _unseen(look, array.type)
    if is_text(array.type):
        return _from_text(look, array, typed, stored)
    if pa.types.is_time(type_) and not stored:
        return _from_text(look.retyped("string"), array, typed, stored)
    if pa.types.is_dictionary(array.type):
        return _from_dictionary(look.guessed(), array.dictionary_decode())
    if pa.types.is_boolean(type_):
        return Boolean(look.name, **look.common())
    if is_number(type_):
        days = None if stored else _days_among_numbers(look, array)
        return days or _from_numbers(look, array)
    if pa.types.is_date(type_):
        days, valid = ticks(array, tick=DAY)
        return _dated(look, *np.unique(days[valid], return_counts=True), None)
    if pa.types.is_timestamp(type_):
        return _from_times(look, array)
    return Text(look.name, dtype="string", nullable=look.nullable, read_from_rows=())


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


def _absent(look: _Look) -> Column:
    """A column of empty cells, which is left out and tells nobody apart."""
    return Text(look.name, **look.guessed().retyped("string").common())


def _unseen(look: _Look, type_: pa.DataType) -> Column:
    """A column of a table without rows: its type is all that is known."""
    kinds = {
        "boolean": pa.types.is_boolean,
        "number": pa.types.is_floating,
        "integer": pa.types.is_integer,
        "date": pa.types.is_date,
        "datetime": pa.types.is_timestamp,
    }
    kind = next((kind for kind, holds in kinds.items() if holds(type_)), None)
    return _discovered(look) if kind is None else _first(look, lambda: look.made(kind))


def _first(look: _Look, *makers: Callable[[], Column | None]) -> Column:
    """The first column that can be made; where none can, it is left out.

    A narrow type may not hold what is declared of others.
    """
    for make in makers:
        try:
            if (column := make()) is not None:
                return column
        except (ValueError, OverflowError):  # SchemaError and Arrow's refusals are ValueErrors
            continue
    return _absent(look)


# Texts


def _from_text(look: _Look, array: pa.Array, typed: bool, stored: bool) -> Column:
    texts, index = distinct_texts(array)
    counts = np.bincount(index, minlength=len(texts) + 1)[: len(texts)]
    texts, counts = texts.filter(pa.array(counts > 0)), counts[counts > 0]
    plain = pc.utf8_trim_whitespace(texts)
    amounts = not (stored or look.named.coded or look.named.prefixes or look.named.reaches)
    null, kind = _nulls_and_kind(plain, amounts)
    tokens = sorted({text for text in plain.filter(pa.array(null)).to_pylist() if text})
    marks = (*look.marks, "nullable", *(["null_values"] if tokens else []))
    nullable = look.nullable or bool(null.any())
    look = _Look(look.name, look.dtype, nullable, ("type", *marks), tuple(tokens))
    kept = pa.array(~null)
    texts, plain, counts = texts.filter(kept), plain.filter(kept), counts[~null]
    if not len(texts):
        return _absent(look)
    if pa.types.is_dictionary(array.type):
        return _from_words(look, texts.to_pylist(), counts)
    read, held = plain, counts
    if kind is None:
        codes = words.among_numbers(look.named, plain.to_pylist(), counts)
        kind = None if codes is None else _kind(plain.filter(pa.array(~codes)), amounts)
        if codes is not None and kind is not None:
            look = _beside_texts(look, plain.to_pylist(), counts, codes)
            read, held = plain.filter(pa.array(~codes)), counts[~codes]
            typed = typed or bool(look.special)
    if kind == "boolean":
        return Boolean(look.name, **(look if typed else look.retyped("bool")).common())
    if isinstance(kind, Notation):
        look, kind = replace(look, notation=kind), "number"
    coded = look.named.of_codes
    plainly = kind == "number" and look.notation is None
    if plainly and (_are_versions(read) or (coded and _are_codes(read, held))):
        return _from_words(look, texts.to_pylist(), counts)
    if kind == "number" and (look.special or not stored):
        return _from_digits(look, read, held, typed or look.notation is not None)
    if kind is not None and not stored:
        return _from_date_texts(look, read, held, kind, typed)
    return _from_words(look, texts.to_pylist(), counts)


def _nulls_and_kind(texts: pa.Array, amounts: bool) -> tuple[Bools, _Kind]:
    """Which texts stand for null, and what all the others are.

    The kind is "boolean", "number", a notation of numbers (of `amounts`), "iso", a strptime pattern, or
    None for words.
    """
    usual, among_numbers = (
        numpy_of(pc.is_in(texts, texts_of(["", *tokens])))
        for tokens in (NULL_TEXTS, (*NULL_AMONG_NUMBERS, *_MORE_NULLS))
    )
    for null in (usual, among_numbers):
        rest = texts.filter(pa.array(~null))
        if len(rest) and (kind := _kind(rest, amounts)):
            return null, kind
    dashes = numpy_of(pc.is_in(texts, texts_of(["-", "--", "."])))
    signs = numpy_of(pc.is_in(texts, texts_of(["+"]))).any()  # of which "-" is the opposite
    return usual if signs else usual | dashes, None


def _kind(texts: pa.Array, amounts: bool) -> _Kind:
    words = set(pc.utf8_lower(texts.slice(0, 10)).to_pylist())
    if len(texts) <= 4 and words <= {"true", "false"}:
        return "boolean"
    dated = _date_kind(texts)
    if dated is None and _all(texts, _FLOAT):
        return "number"
    if dated is not None or not amounts or len(texts) <= _FEW:
        return dated
    if notation_of(texts[:_STRICTLY].to_pylist()) is None:
        return None
    return notation_of(texts.to_pylist())


def _date_kind(texts: pa.Array) -> str | None:
    """ "iso" or the pattern that all texts are written in; None of others.

    Where day and month could be either, the day is what changes least: a table of months has its first.
    """
    if _all(texts, r"^\d{4}-\d{2}-\d{2}") and ticks(texts, tick=DAY)[1].all():
        return "iso"
    fitting: dict[str, int] = {}
    for form in _FORMATS:
        if not all(_strict(text, form) for text in texts[:_STRICTLY].to_pylist()):
            continue
        days, valid = ticks(texts, tick=DAY, form=form)
        if not valid.all() or (form == "%Y%m%d" and not (_usual(days) and len(texts) > _FEW)):
            continue
        if "%y" in form and int(days.max()) >= _number(_LATEST):
            continue
        fitting[form] = len({(date(1970, 1, 1) + timedelta(days=int(day))).day for day in days})
    return min(fitting, key=fitting.__getitem__, default=None)


def _all(texts: pa.Array, regex: str) -> bool:
    return pc.all(pc.match_substring_regex(texts, regex)).as_py()


def _strict(text: str, form: str) -> bool:
    """Whether a text is written so, with or without zeros in front and in any case."""
    try:
        written = datetime.strptime(text, form).strftime(form)
    except ValueError:
        return False
    return _bare(written) == _bare(text)


def _bare(text: str) -> str:
    return re.sub(r"(?<!\d)0(?=\d)", "", text).lower()


def _are_codes(texts: pa.Array, counts: Whole) -> bool:
    """Whether numbers with a fraction are so few that they may be codes: 250.43, 401.9."""
    values, _ = floats(texts)
    return bool(np.any(np.rint(values) != values)) and len(texts) <= counts.sum() / _REPEATED


def _are_versions(texts: pa.Array) -> bool:
    """Whether a few numbers are no numbers, as of 3.9 and 3.10 one ends with a zero of its own."""
    parts = [text.partition(".")[2] for text in texts.to_pylist()] if len(texts) <= _FEW else []
    return len(set(map(len, parts))) > 1 and any(
        len(part) > 1 and part[-1] == "0" for part in parts
    )


def _beside_texts(look: _Look, texts: list[str], counts: Whole, codes: Bools) -> _Look:
    """With the codes among numbers that many rows hold; the others become null."""
    often = codes & numbers.common(counts)
    special = sorted({text for text, held in zip(texts, often, strict=True) if held})
    look = look.beside(special)
    rare = bool((codes & ~often).any())
    return replace(look, dtype="string" if special else look.dtype, nullable=look.nullable or rare)


def _from_words(look: _Look, texts: list[str], counts: Whole) -> Column:
    sort = words.sort_of(look.named, texts, counts)
    if sort is words.Sort.IDENTIFIER:
        return Identifier(look.name, **look.common())
    if sort is words.Sort.PROSE:
        return Text(look.name, **look.common())
    public = whole_list(texts)
    if sort is words.Sort.DISCOVER and public is None:
        return _discovered(look, words.prefixes(look.named, texts))
    often = [text for text, held in zip(texts, numbers.common(counts), strict=True) if held]
    public = public or whole_list(often)
    values = public or tuple(sorted(set(often)))
    order = in_order(values, graded=look.named.graded)
    rest = set(texts) - set(values)
    other = None if not rest else "OTHER" if "OTHER" not in texts else "(other)"
    if order is None and not rest and (refused := beside_order(values)):
        order = in_order([v for v in values if v != refused], graded=look.named.graded)
        other = refused if order else None  # as OTHER, it is on no side of a bracket
    marks = [*(() if public and not rest else ("values",)), *(("ordinal",) if order else ())]
    return Category(look.name, order or values, other, order is not None, **look.common(*marks))


def _discovered(look: _Look, prefixes: tuple[int, ...] = ()) -> Column:
    """Values that a release finds, and the beginnings of rare codes; they are texts on output."""
    facts = {"values": DISCOVER, "prefixes": list(prefixes) or None}
    return _first(
        look,
        lambda: look.made("category", **facts),
        lambda: look.retyped("string").made("category", **facts),
    )


def _from_dictionary(look: _Look, array: pa.Array) -> Column:
    """A column of few values by its type, which are no texts."""
    found = array.drop_null().value_counts()
    values, counts = found.field(0).to_pylist(), np.array(found.field(1), np.int64)
    return _first(look, lambda: _of_values(look, values, counts), lambda: _discovered(look))


def _of_values(look: _Look, values: Sequence[Any], counts: Whole) -> Column | None:
    """A category of the values that many hold; None where too many rows hold others."""
    often = numbers.common(counts)
    if not 0 < often.sum() <= words.LONGEST_LIST or counts[often].sum() < 0.95 * counts.sum():
        return None
    listed = sorted(value for value, held in zip(values, often, strict=True) if held)
    other = None
    if not often.all():
        other = type(listed[0])(min(-1, listed[0] - 1))
    return Category(look.name, tuple(listed), other, False, **look.common("values"))


def _from_digits(look: _Look, texts: pa.Array, counts: Whole, typed: bool) -> Column:
    if look.notation is not None:
        texts = look.notation.plain(texts)
    whole = _all(texts, _INTEGER)
    if not typed:
        look = look.retyped("int64" if whole else "float64")
    values, _ = floats(texts)
    return _numeric(look, values, counts)


def _from_date_texts(look: _Look, texts: pa.Array, counts: Whole, kind: str, typed: bool) -> Column:
    form = None if kind == "iso" else kind
    seconds, _ = ticks(texts, tick=10**9, form=form)
    dated = form not in _CLOCKS and bool(np.all(seconds % 86_400 == 0))
    if form is None and not typed:
        look = look.retyped("date32[day]" if dated else "timestamp[s]")
    elif form is None:  # written as it was read
        first = texts[:_STRICTLY].to_pylist()
        form = next((f for f in _ISO if all(_strict(text, f) for text in first)), None)
    if dated:
        return _dated(look, seconds // 86_400, counts, form)
    return _timed(look, seconds, form, "second" if form is None or "%S" in form else "minute")


# Numbers


def _days_among_numbers(look: _Look, array: pa.Array) -> Column | None:
    """Days that are stored as the whole numbers 20240131; None where there are others."""
    if not pa.types.is_integer(array.type):
        return None
    found = pc.value_counts(array.drop_null())
    texts, counts = found.field(0).cast(pa.string()), numpy_of(found.field(1))
    values = np.sort(numpy_of(found.field(0)).astype(np.float64))
    if not numbers.are_days(values) or _date_kind(texts) != "%Y%m%d":
        return None
    # As text it becomes the number again in whatever frame it came from.
    return _from_date_texts(look.guessed().retyped("string"), texts, counts, "%Y%m%d", True)


def _from_numbers(look: _Look, array: pa.Array) -> Column:
    values, valid = floats(array)
    look = replace(look, nullable=look.nullable or not bool(valid.all()))
    if not valid.any():
        return _absent(look)
    values, counts = np.unique(values[valid], return_counts=True)
    inside = np.isfinite(values)
    return _numeric(look, values[inside], counts[inside]) if inside.any() else _absent(look)


def _numeric(look: _Look, values: Floats, counts: Whole) -> Column:
    values, where = np.unique(values, return_inverse=True)
    counts = np.bincount(where, counts).astype(np.int64)
    integral = bool(np.all(np.rint(values) == values))
    whole = integral and float(np.abs(values).max()) < 2**53
    look = look.guessed()
    measured = look.notation is not None and look.notation.before + look.notation.after
    measured = measured or bool(_natural(look, values))
    if integral and not measured and numbers.names_things(look.named, values, counts):
        return Identifier(look.name, **look.common())
    named = whole and look.named.coded and not _natural(look, values)
    codes = np.zeros(len(values), np.bool_) if named else numbers.apart(values, counts)
    look = look.beside([int(v) if whole else float(v) for v in values[codes]])
    values, counts = values[~codes], counts[~codes]
    return _whole(look, values, counts) if whole else _measured(look, values, counts)


def _measured(look: _Look, values: Floats, counts: Whole) -> Column:
    """Numbers with a fraction: few that many hold, or a shape that a release finds."""
    notation = look.notation
    decimals = numbers.fewest_decimals(values) if notation is None else notation.places
    bounds, marks = _natural(look, values), ()
    near = numbers.around(values, counts) if not bounds else None
    if bounds and look.named.degrees:  # where a table is from is seldom a secret; it is asked
        near = numbers.region(values, counts)
    if near is not None:
        bounds, marks = {"lower": near[0], "upper": near[1]}, ("lower", "upper")

    return _first(
        look,
        lambda: _few(look, values.tolist(), counts),
        lambda: look.made("number", "decimals", *marks, decimals=decimals, **bounds),
        lambda: look.made("number", *marks, **bounds),
        lambda: look.retyped("float64").made("number", *marks, **bounds),
    )


def _few(look: _Look, values: list[Any], counts: Whole) -> Column | None:
    """A category of few values that many rows hold, in their order."""
    alone = not look.special and look.notation is None
    if len(values) > _FEW or not numbers.common(counts).all() or not alone:
        return None
    return Category(look.name, tuple(values), None, True, **look.common("values"))


def _natural(look: _Look, values: Floats) -> dict[str, int]:
    ends = float(values[0]), float(values[-1])
    percent = look.notation is not None and look.notation.after.strip() == "%"
    found = Name("percent").natural(*ends) if percent else look.named.natural(*ends)
    return {} if found is None else {"lower": found.lower, "upper": found.upper}


def _whole(look: _Look, values: Floats, counts: Whole) -> Column:
    """Whole numbers: one value, codes, what has public bounds, a few counts, or a shape."""
    listed = [int(value) for value in values]
    bounds = _natural(look, values)
    cells = bounds["upper"] - bounds["lower"] + 1 if bounds else 0
    often = numbers.common(counts)
    pair = len(values) <= 2 and bool(often.all())

    def codes() -> Column | None:
        coded, months = look.named.coded and not bounds, numbers.are_months(values)
        if look.special or look.notation or not (pair or coded or months):
            return None
        found = _of_values(look, listed, counts)
        if months and isinstance(found, Category):
            found = replace(found, ordinal=True, read_from_rows=(*found.read_from_rows, "ordinal"))
        prefixes = (4,) if months else look.named.prefixes
        return found or (_discovered(look, prefixes) if coded or months else None)

    def small() -> Column | None:
        low, high = numbers.small_range(values, counts) or (None, None)
        return (
            None if low is None else look.made("integer", "lower", "upper", lower=low, upper=high)
        )

    def two_codes() -> Column | None:
        """1 and 2, beside a few 7 and 9."""
        digits = values[0] >= 1 and values[-1] <= 9 and often.sum() == 2 and not look.special
        return _of_values(look, listed, counts) if digits else None

    return _first(
        look,
        codes,
        lambda: look.made("integer", **bounds) if 0 < cells <= _SINGLES else None,
        small,
        lambda: _few(look, listed, counts),
        two_codes,
        *(
            lambda wide=wide, ends=ends: wide.made("integer", *ends[0], **ends[1])
            for wide in (look, look.retyped("float64"), look.retyped("int64"))
            for ends in _ends(values, counts, bounds)
        ),
    )


def _ends(
    values: Floats, counts: Whole, bounds: dict[str, int]
) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """What to declare of the bounds of integers whose shape is found, and what of it was read."""
    near = numbers.around(values, counts)
    if bounds:
        return [((), {**bounds, "bins": "shape"})]
    if near is None:
        return [((), {})]
    found = {"lower": int(near[0]), "upper": int(near[1])}
    cells = {} if found["upper"] - found["lower"] < _SINGLES else {"bins": "shape"}
    return [(("lower", "upper"), {**found, **cells}), ((), {})]


# Dates


def _from_times(look: _Look, array: pa.Array) -> Column:
    micros, valid = ticks(array, tick=10**3, zoned=array.type.tz is not None)
    micros = micros[valid]
    finest = (("day", DAY // 10**3), ("second", 10**6), ("microsecond", 1))
    resolution = next(name for name, size in finest if np.all(micros % size == 0))
    return _timed(look, micros // 10**6, None, resolution)


def _number(day: date) -> int:
    return (day - date(1970, 1, 1)).days


def _usual(days: Whole) -> bool:
    """Whether all days lie in bounds that anybody would choose."""
    return _number(_DAYS[0]) <= int(days.min()) and int(days.max()) <= _number(_DAYS[1])


def _dated(look: _Look, days: Whole, counts: Whole, form: str | None) -> Column:
    order = np.argsort(days)
    days, counts = days[order], counts[order]
    never = {_number(day): day for day in _ENDLESS}.get(int(days[-1]))
    if never is not None and len(days) > 1 and numbers.common(counts)[-1]:
        look, days = look.beside([never]), days[:-1]
    first, last = _SHORT_DAYS if form is not None and "%y" in form else _DAYS
    bounds, marks = {"lower": first, "upper": last} if _usual(days) else {}, ()
    if bounds and counts.sum() < numbers.FEW_HOLDERS:  # too few to be found in two centuries
        ends = numbers.middle(days, counts[: len(days)])
        first, last = (date(1970, 1, 1) + timedelta(days=int(day)) for day in ends)
        years = {"lower": date(first.year, 1, 1), "upper": date(last.year, 12, 31)}
        bounds = {**years, "bins": "shape"}
        marks = ("lower", "upper")
    return _first(
        look,
        lambda: look.made("date", "format", *marks, format=form, **bounds),
        lambda: look.made("date", "format", format=form),
    )


def _timed(look: _Look, seconds: Whole, form: str | None, resolution: str) -> Column:
    bounds = {}
    if _usual(seconds // 86_400):
        days = _SHORT_DAYS if form is not None and "%y" in form else _DAYS
        days = _NO_DAY if form in _CLOCKS else days
        low, high = (datetime(day.year, day.month, day.day) for day in days)
        high += timedelta(days=1) - timedelta(**{f"{resolution}s": 1})
        bounds = {"lower": low, "upper": high}
    marks, more = ("resolution", "format"), {"format": form, "resolution": resolution}
    return _first(
        look,
        lambda: look.made("datetime", *marks, **more, **bounds),
        lambda: look.made("datetime", *marks, **more),
    )
