"""Columns whose cells are single values: categories and booleans."""

import re
from collections import Counter
from collections.abc import Sequence, Sized
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property, partial
from math import isfinite
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Bools
from understudy.columns.base import MOST_CELLS, Column, Masks, Modelled, is_whole, near
from understudy.columns.brackets import at_edge
from understudy.columns.reading import (
    DAY,
    Read,
    array_of,
    booleans,
    converted,
    distinct_texts,
    floats,
    integers,
    is_text,
    null_texts,
    numpy_of,
    pc,
    present,
    texts_of,
    ticks,
    valid_of,
    value_type,
    writes_text,
)

Value = str | int | float | bool | date
"""What a category can list."""

_EXAMPLES = {str: '"OTHER"', int: "-1", float: "-1.0", date: "1900-01-01"}
_DTYPES = {str: "string", bool: "bool", int: "int64", float: "float64", date: "date32[day]"}


@dataclass(frozen=True)
class Category(Modelled):
    """One of a declared list of values: texts, integers, numbers, booleans or dates.

    Codes follow the declared order, then OTHER, then null. A value that is not declared becomes
    OTHER where `other` names the value that stands for it on output (`other = true` is short for
    "OTHER" among texts), otherwise the first declared value. A null in a column without nulls
    becomes OTHER, or else the first declared value.

    `prefixes` says that values are codes of a hierarchy by their first characters: with (3, 1) a value
    that is not declared falls to its parent "250*" where that is declared, otherwise to "2*", and only
    then to OTHER. Parents stand among the values and are written as they are.

    `ordinal` says that the declared order means something, so that texts may be compared by it;
    numbers and dates are always compared by value. OTHER is in no declared value and on no known
    side of one: it satisfies `!=`, never `=`, and an inequality only in `outer`.
    """

    kind: ClassVar[str] = "category"

    values: tuple[Value, ...]
    other: Value | None = None
    ordinal: bool = False
    prefixes: tuple[int, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        self._check_values()
        self._check_other()
        if self.prefixes != ():
            self._check_prefixes()
        if not isinstance(self.ordinal, bool):
            self._refuse(f"ordinal = {self.ordinal!r} must be true or false")
        super().__post_init__()
        for token in self.null_values:
            if token in self.listed:
                self._refuse(
                    f"{token!r} is both one of its values and one of its null_values; "
                    "take it out of one of the two"
                )
        self._check_storable()

    def _check_values(self) -> None:
        if isinstance(self.values, (str, bytes)) or not isinstance(self.values, Sized):
            self._refuse(f'values = {self.values!r} must be a list, such as values = ["a", "b"]')
        if len(self.values) > MOST_CELLS:
            self._refuse(
                f"values lists {len(self.values)} entries, more than {MOST_CELLS}; keep the "
                'frequent ones and merge the rest with other = true, or set type = "identifier"'
            )
        if len(self.values) == 0:
            self._refuse(
                'values is empty; list the values the column can take, or set type = "identifier"'
            )
        self._set("values", self._uniform((*self.values,)))
        for value, count in Counter(self.values).items():
            if count > 1:
                self._refuse(f"values lists {value!r} more than once; keep one of them")

    def _uniform(self, values: tuple[Any, ...]) -> tuple[Value, ...]:
        types = {type(value) for value in values}
        if types == {int, float}:
            values, types = tuple(float(value) for value in values), {float}
        if len(types) > 1 or not types <= set(_DTYPES):
            odd = next(
                v for v in values if type(v) is not type(values[0]) or type(v) not in _DTYPES
            )
            self._refuse(
                f"values holds {odd!r} of another kind than the rest; list only texts, "
                "only integers, only numbers, only booleans or only dates"
            )
        if types == {float} and not all(isfinite(value) for value in values):
            self._refuse(
                "values holds a number that is not finite; a missing value is nullable = true"
            )
        return values

    def _check_other(self) -> None:
        if self.other is None or self.other is False:
            self._set("other", None)
            return
        kind = type(self.values[0])
        if kind is bool:
            self._refuse("other cannot be used with booleans; list texts instead, or drop other")
        if self.other is True and kind is str:
            self._set("other", "OTHER")
        if kind is float and type(self.other) is int:
            self._set("other", float(self.other))
        if type(self.other) is not kind:
            self._refuse(
                f"other = {self.other!r} must be the value that stands for the rest on output, "
                f"of the same kind as the values; for instance other = {_EXAMPLES[kind]}"
            )
        if self.other in self.values:
            self._refuse(f"other = {self.other!r} is one of the values; name another value")

    def _check_prefixes(self) -> None:
        self._set("prefixes", checked_prefixes(self, self.prefixes))
        if not isinstance(self.values[0], str):
            self._refuse("prefixes is for texts; write the values in quotes")
        if not any(is_parent(str(value), self.prefixes) for value in self.values):
            self._refuse(
                f"prefixes = {[*self.prefixes]!r} and no value is a parent, {self.prefixes[0]} "
                f'characters and a star such as "{"2509"[: self.prefixes[0]]}*"; add parents to the '
                'values, or have them found: values = "discover"'
            )

    def _check_storable(self) -> None:
        try:
            stored = self._stored
            usual = self.dtype == self._usual_dtype()
            kept = usual or np.array_equal(self._look_up(stored, ()), np.arange(self.cells))
        except (pa.ArrowException, OverflowError):
            kept = False
        if not kept:
            self._refuse(
                f"dtype = {self.dtype!r} cannot hold all its values; "
                f'write dtype = "{self._usual_dtype()}", or change the values'
            )

    @cached_property
    def _stored(self) -> pa.Array:
        """Every value of the output in its declared type, in the order of the codes."""
        type_ = value_type(self.arrow_type)
        if pa.types.is_decimal(type_):
            return pa.array([Decimal(repr(value)) for value in self.listed], type_)
        if isinstance(self.values[0], str):
            return converted(self._words, type_)
        if isinstance(self.values[0], date):
            return converted(array_of(self.points.astype(np.int32)).cast(pa.date32()), type_)
        return converted(array_of(self.points), type_)

    @cached_property
    def points(self) -> NDArray[Any]:
        """The values as NumPy's, in the order of the codes; dates as days since 1970."""
        epoch = date(1970, 1, 1).toordinal()
        return np.array([v.toordinal() - epoch if isinstance(v, date) else v for v in self.listed])

    def _usual_dtype(self) -> str:
        return _DTYPES[type(self.values[0])]

    def _accepts(self, type_: pa.DataType) -> bool:
        type_ = value_type(type_)
        kind = type(self.values[0])
        decimal, floating = pa.types.is_decimal128(type_), pa.types.is_floating(type_)
        fits = {
            str: False,
            bool: pa.types.is_boolean(type_),
            int: pa.types.is_integer(type_) or floating or decimal,
            float: floating or decimal,
            date: pa.types.is_date(type_),
        }[kind]
        return fits or writes_text(type_)

    @cached_property
    def listed(self) -> list[Value]:
        """Every value of the output, in the order of the codes."""
        return [*self.values] if self.other is None else [*self.values, self.other]

    @property
    def cells(self) -> int:
        """Values and OTHER."""
        return len(self.listed)

    @property
    def ordered(self) -> bool:
        """Whether the declared order was said to mean something."""
        return self.ordinal

    def _cell_labels(self) -> list[str]:
        return [_text(value) for value in self.listed]

    def _stand_in(self) -> int:
        return 0 if self.other is None else len(self.values)

    def _read(self, array: pa.Array, tokens: Sequence[str]) -> Read:
        cells = self._look_up(array, tokens)
        return cells, (cells >= 0) | present(array, tokens)

    def _nearest(self, points: NDArray) -> NDArray:
        return np.where(points < 0, self._stand_in(), points)

    def _look_up(self, array: pa.Array, tokens: Sequence[str]) -> NDArray[np.intp]:
        """The cell of each entry, -1 where it is not listed."""
        kind = type(self.values[0])
        if kind is str:
            return self._look_up_texts(array, tokens)
        points, readable = _READERS[kind](array, tokens)
        if kind is int and _fractional(array.type):
            readable &= floats(array, tokens)[0] == points
        known = self.points
        order = np.argsort(known)
        at = np.minimum(np.searchsorted(known[order], points), len(known) - 1)
        return np.where(readable & (known[order][at] == points), order[at], -1)

    def _look_up_texts(self, array: pa.Array, tokens: Sequence[str]) -> NDArray[np.intp]:
        if pa.types.is_boolean(array.type):
            texts, (flags, there) = self._truth, booleans(array)
            index = np.where(there, flags.astype(np.intp), len(texts))
        else:
            texts, index = distinct_texts(array)
        found = pc.index_in(texts, self._words)
        cells = np.where(valid_of(found), numpy_of(found), -1)
        if self.prefixes:
            open_ = (cells < 0) & ~null_texts(texts, tokens)
            cells = np.where(open_, self._parent_cells(texts), cells)
        return np.append(cells, -1)[index]

    def _parent_cells(self, texts: pa.Array) -> NDArray[np.intp]:
        """The cell of the nearest declared parent of each text, −1 where there is none."""
        cells = np.full(len(texts), -1, np.intp)
        for length, codes in reversed(self.parents):
            known, places = texts_of([*codes]), np.array([*codes.values(), 0])
            found = pc.index_in(pc.utf8_slice_codeunits(texts, 0, length), known)
            cells = np.where(valid_of(found), places[numpy_of(found)], cells)
        return cells

    @cached_property
    def parents(self) -> tuple[tuple[int, dict[str, int]], ...]:
        """For every length of prefixes, the longest first: the beginnings of parents, their codes."""
        places = {str(value): at for at, value in enumerate(self.values)}
        return tuple(
            (n, {text[:n]: at for text, at in places.items() if is_parent(text, (n,))})
            for n in self.prefixes
        )

    @cached_property
    def _words(self) -> pa.Array:
        return texts_of([str(value) for value in self.listed])

    @cached_property
    def _truth(self) -> pa.Array:
        """How this column writes false and true, for when it arrives as booleans."""
        words = {word.lower(): word for word in reversed([str(v) for v in self.values])}
        return texts_of([words.get("false", "false"), words.get("true", "true")])

    def _emit(self, points: NDArray, null: Bools) -> pa.Array:
        type_ = self.arrow_type
        if pa.types.is_dictionary(type_):
            indices = array_of(points, null).cast(type_.index_type)
            return pa.DictionaryArray.from_arrays(indices, self._stored, ordered=type_.ordered)
        values = self._stored
        if pa.types.is_string_view(type_):  # Arrow cannot take from a view
            values = values.cast(pa.string())
        return values.take(array_of(points, null)).cast(type_)

    def _literal(self, literal: Any) -> int:
        """The cell of a declared value."""
        kind = type(self.values[0])
        for candidate in _readings(literal, kind):
            if candidate in self.listed:
                return self.listed.index(candidate)
        text, known = _text(literal), [_text(value) for value in self.listed]
        for length, codes in self.parents:
            if text[:length] in codes:
                parent = f"{text[:length]}*"
                beside = self.beside(parent)
                whole = f"{_named(self.name)} in ({_quoted([parent, *beside])})"
                self._misuse(
                    f"{literal!r} is not one of its {len(self.values)} values: too few rows hold it, "
                    f"and they count under its first characters, in '{parent}'; "
                    + (f"all that begin so are {whole}" if beside else f"use '{parent}'")
                )
        begun = [value for value in known if value.lower().startswith(text.lower())] if text else []
        hint = f" (did you mean {begun[0]!r}?)" if len(begun) == 1 else near(text, known)
        others = "" if self.other is None else f"; {_text(self.other)} stands for all others"
        values = ", ".join(map(_text, self.values[:10]))
        if self.ordinal and kind is str and isinstance(literal, int | float):
            others += (
                "; its values are in an order, and are compared with one of them, such as "
                f"{_named(self.name)} >= {_quoted([self._next(literal)])}"
            )
        self._misuse(
            f"{literal!r} is not one of its {len(self.values)} values"
            f"{hint or ', such as ' + values}{others}"
        )

    def at_edge(self, op: str, literal: Any) -> tuple[str, Any]:
        """A comparison with a number as one with a value, where the values are brackets in an order."""
        number = isinstance(literal, int | float) and not isinstance(literal, bool)
        if not (
            number and op in _INEQUALITIES and self.ordinal and isinstance(self.values[0], str)
        ):
            return op, literal
        try:
            return at_edge([str(value) for value in self.values], op, literal) or (op, literal)
        except ValueError as error:
            self._misuse(str(error))

    def beside(self, parent: str) -> list[str]:
        """The values of their own that begin as a parent does, which it does not hold."""
        found = (_text(value) for value in self.values)
        return [text for text in found if text.startswith(parent[:-1]) and text != parent]

    def _next(self, number: float) -> Value:
        """The first value that begins at a number or beyond it, such as [70-80) of 65."""
        for value in self.values:
            begins = re.search(r"-?\d+(\.\d+)?", _text(value))
            if begins is not None and float(begins.group()) >= number:
                return value
        return self.values[-1]

    def _compare(self, op: str, literals: Sequence[Any]) -> Masks:
        if op == "in":
            chosen = np.zeros(self.cells, np.bool_)
            chosen[list(literals)] = True
            return chosen, chosen.copy()
        kind = type(self.values[0])
        if kind in (str, bool) and not self.ordinal:
            self._misuse(
                f"{op!r} needs an order and its values have none; use = or in, "
                "or declare ordinal = true in the schema"
            )
        if literals[0] >= len(self.values):
            self._misuse(f"{op!r} cannot be used with OTHER, which has no place in the order")
        places = self.points[: len(self.values)]
        if kind in (str, bool):
            places = np.arange(len(self.values))
        holds = _INEQUALITIES[op](places, places[literals[0]])
        rest = self.cells - len(self.values)
        inner, outer = np.zeros(rest, np.bool_), np.ones(rest, np.bool_)
        return np.concatenate([holds, inner]), np.concatenate([holds, outer])


@dataclass(frozen=True)
class Boolean(Modelled):
    """False or true, in this order; a null in a column without nulls becomes false.

    Texts are read as true/t/yes/y/1 and their opposites in any case, numbers as true from one
    half upwards; anything else is null.
    """

    kind: ClassVar[str] = "boolean"
    usual: ClassVar[str] = "bool"
    held_by = (pa.types.is_boolean, pa.types.is_integer, writes_text)

    @property
    def cells(self) -> int:
        """Always two."""
        return 2

    def _cell_labels(self) -> list[str]:
        return ["false", "true"]

    def _read(self, array: pa.Array, tokens: Sequence[str]) -> Read:
        values, valid = booleans(array, tokens)
        return values.astype(np.intp), valid

    def _nearest(self, points: NDArray) -> NDArray:
        return points

    def _emit(self, points: NDArray, null: Bools) -> pa.Array:
        return converted(array_of(points.astype(np.bool_), null), self.arrow_type)

    def _literal(self, literal: Any) -> int:
        values, valid = booleans(texts_of([str(literal)]))
        if not valid[0]:
            self._misuse(f"{literal!r} is neither true nor false")
        return int(values[0])

    def _compare(self, op: str, literals: Sequence[Any]) -> Masks:
        places = np.arange(2)
        among = op == "in"
        holds = np.isin(places, literals) if among else _INEQUALITIES[op](places, literals[0])
        return holds, holds.copy()


def _named(name: str) -> str:
    """A column in a condition."""
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def _quoted(values: Sequence[Value]) -> str:
    """Values in a condition."""
    return ", ".join("'" + _text(value).replace("'", "''") + "'" for value in values)


def is_parent(text: str, prefixes: Sequence[int]) -> bool:
    """Whether a value stands for all that begin alike: so many characters and a star."""
    return text.endswith("*") and len(text) - 1 in prefixes


def checked_prefixes(column: Column, prefixes: Any) -> tuple[int, ...]:
    """Lengths of prefixes, the longest first; SchemaError where they are none."""
    listed = isinstance(prefixes, (list, tuple)) and all(is_whole(n, 1, 100) for n in prefixes)
    if not listed or list(prefixes) != sorted(set(prefixes), reverse=True) or len(prefixes) > 8:
        column._refuse(
            f"prefixes = {prefixes!r} must list at most 8 numbers of characters, the longest first, "
            "such as prefixes = [3, 1]"
        )
    return tuple(prefixes)


_READERS = {bool: booleans, int: integers, float: floats, date: partial(ticks, tick=DAY)}
_INEQUALITIES = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


def _fractional(type_: pa.DataType) -> bool:
    """Whether cells of this type may hold a fraction."""
    type_ = value_type(type_)
    return pa.types.is_floating(type_) or pa.types.is_decimal(type_) or is_text(type_)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date) else str(value)


def _readings(literal: Any, kind: type) -> list[Any]:
    """What a literal may mean among values of a kind."""
    if kind is str:
        return [_text(literal)]
    if isinstance(literal, datetime):
        literal = literal.date()
    if kind is bool:
        truth = {"true": True, "false": False}.get(_text(literal).lower(), literal)
        return [truth] if isinstance(truth, bool) else []
    try:
        if kind is date:
            return [literal if isinstance(literal, date) else date.fromisoformat(str(literal))]
        if isinstance(literal, (bool, date)):
            return []
        number = float(literal)
        return [int(literal)] if kind is int and number == int(number) else [number]
    except (ValueError, TypeError, OverflowError):
        return []
