"""Facts of a column as people type them, in a form or at a prompt, and back.

What is typed goes on to `schema.toml.build_column`, as the facts of a schema file do: here it only gets
the type that its column needs.
"""

from __future__ import annotations

import json
import re
from datetime import date, datetime
from typing import Any

from understudy.columns.unmodelled import DISCOVER, SHAPE
from understudy.errors import SchemaError
from understudy.schema import Category, Column

_ROW_OF = re.compile(r"([+-]?\d+)\s*(?:to|\.\.|-|–)\s*([+-]?\d+)")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
_MOST = 10_000
"""Values of a list that is typed by its ends."""


def shown(value: Any, *, lines: bool = False) -> str:
    """A fact as somebody would type it: items between commas, or one a line."""
    if value is None or value == ():
        return ""
    if isinstance(value, tuple):
        between = "\n" if lines else ", "
        return between.join(_item(item, commas=not lines) for item in value)
    return _item(value)


def listed(column: Column) -> tuple[str, ...]:
    """The values of a category, each as somebody would type it in a list; () for other columns."""
    found = column.listed if isinstance(column, Category) else ()
    return tuple(_item(value, commas=True) for value in found)


def _item(value: Any, *, commas: bool = False) -> str:
    if isinstance(value, str):
        plain = value == value.strip() and value.isprintable() and value and value[0] != '"'
        plain = plain and not (commas and "," in value)
        return value if plain else json.dumps(value, ensure_ascii=False)
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return value.isoformat() if isinstance(value, date) else str(value)


def parsed(column: Column, key: str, kind: str, text: str, *, commas: bool = False) -> Any:
    """The fact `key` of a column that is to be of a kind; None where nothing was typed.

    Values stand one a line, or between commas where `commas` says so.

    Raises:
        SchemaError: A value that cannot be one; the message names column, fact and value.
    """
    text = text.replace("\r\n", "\n")
    if key == "values":
        if text.strip() == DISCOVER:
            return DISCOVER
        lines = split(text) if commas else [line for line in text.split("\n") if line.strip()]
        values = [value for line in lines for value in _several(column, key, line)]
        return values or None
    text = text.strip()
    if not text:
        return None
    if key == "null_values":
        return [_quoted(item) for item in split(text)]
    if key in ("format", "resolution", "dtype", "action"):
        return _quoted(text)
    if key == "bins" and text == SHAPE:
        return SHAPE
    if key in ("bins", "decimals"):
        return _number(column, key, text, int)
    if key == "other":
        return _value(column, key, text)
    if key == "prefixes":
        return [_number(column, key, item, int) for item in split(text)]
    items = split(text) if key == "edges" else [text]
    parse = {"integer": int, "number": float, "date": date, "datetime": datetime}[kind]
    if key == "special":
        return [_code(item, parse) for item in split(text)]
    values = [_number(column, key, item, parse) for item in items]
    return values if key == "edges" else values[0]


def _code(text: str, kind: Any) -> Any:
    """A value of the kind, or a text where it is none."""
    try:
        return kind.fromisoformat(text) if kind in (date, datetime) else kind(text)
    except ValueError:
        return _quoted(text)


def split(text: str) -> list[str]:
    """Items between commas; one in double quotes may hold a comma."""
    items, at = [], 0
    decoder = json.JSONDecoder()
    while at < len(text):
        if text[at] in ", \n":
            at += 1
        elif text[at] == '"':
            try:
                _, end = decoder.raw_decode(text, at)
            except ValueError:
                end = len(text)
            items.append(text[at:end])
            at = end
        else:
            end = text.find(",", at)
            end = len(text) if end < 0 else end
            items.append(text[at:end].strip())
            at = end
    return items


def _quoted(text: str) -> str:
    """A text as it stands, or what its quotes hold."""
    if text.startswith('"'):
        try:
            value = json.loads(text)
        except ValueError:
            return text
        return value if isinstance(value, str) else text
    return text


def _several(column: Column, key: str, text: str) -> list[Any]:
    """One value of a category, or whole numbers in a row: 1 to 29."""
    ends = _ROW_OF.fullmatch(text.strip())
    if ends is None:
        return [_value(column, key, text)]
    first, last = (_value(column, key, end) for end in ends.groups())
    if not (type(first) is type(last) is int):
        return [_value(column, key, text)]
    if not first <= last < first + _MOST:
        raise SchemaError(
            f"column {column.name!r}: {key} = {text.strip()!r} must go up, over at most {_MOST:,} "
            f"values"
        )
    return list(range(first, last + 1))


def _value(column: Column, key: str, text: str) -> Any:
    """One value of a category, of the kind that its column has."""
    listed = column.values if isinstance(column, Category) else ()
    kind = type(listed[0]) if listed else _kind_of(column.dtype)
    text = text.strip()
    if kind is str:
        return _quoted(text)
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise SchemaError(
                f"column {column.name!r}: {key} holds {text!r}, which must be true or false"
            )
        return text.lower() == "true"
    return _number(column, key, text, kind)


def _kind_of(dtype: str) -> Any:
    if dtype.startswith(("int", "uint")):
        return int
    if dtype.startswith(("float", "double", "half")):
        return float
    return date if dtype.startswith("date") else str


_NAMES = {int: "a whole number", float: "a number", date: "a day such as 2024-01-31"}


def _number(column: Column, key: str, text: str, kind: Any) -> Any:
    if kind in (int, float) and _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    try:
        return kind.fromisoformat(text) if kind in (date, datetime) else kind(text)
    except ValueError:
        wanted = _NAMES.get(kind, "a moment such as 2024-01-31 12:00:00")
        raise SchemaError(f"column {column.name!r}: {key} = {text!r} must be {wanted}") from None
