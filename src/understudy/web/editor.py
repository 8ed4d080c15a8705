"""A column of a schema as a form, and back.

Every fact that a draft took from private rows has a box beside it, "this is public": ticking it is what
confirms the fact, and nothing else does. What a form says goes through the same door as a schema file
(`schema.toml.build_column`), so a mistake gets the same words.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from understudy.columns.unmodelled import DISCOVER, Undeclared, UndeclaredBins
from understudy.errors import SchemaError
from understudy.schema import Category, Column, Incomplete, Modelled, Schema
from understudy.schema.toml import build_column
from understudy.wording import domain

__all__ = ["KINDS", "Card", "Fact", "card", "cards", "column_from", "replaced"]

KINDS = {
    "category": "one of a list",
    "boolean": "yes or no",
    "integer": "whole number",
    "number": "number",
    "date": "date",
    "datetime": "date and time",
    "identifier": "identifier: leave it out",
    "text": "free text: cannot be released",
}
"""The types a person may choose, in words."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One field of a column's form."""

    key: str
    label: str
    value: str
    widget: str
    """`line`, `lines` or `box`."""
    marked: bool
    """Read from private rows, and nobody has confirmed it."""
    missing: bool
    help: str

    @property
    def shown(self) -> bool:
        """Whether it says something, or somebody has to; the rest is folded away."""
        return self.marked or self.missing or (bool(self.value) and self.key != "dtype")


@dataclass(frozen=True, slots=True)
class Card:
    """A column as the page shows it."""

    at: int
    name: str
    kind: str
    kind_marked: bool
    holds: str
    codes: int | None
    facts: tuple[Fact, ...]
    waiting: int
    """How many facts wait for somebody."""
    problem: str
    """Why no release could take the column as it is; may be nothing."""


_FIELDS: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    "category": (
        (
            "values",
            "Values, one a line",
            "lines",
            "Every value that the column may hold; or the word discover, and a release finds those "
            "that many hold privately.",
        ),
        ("other", "Name for all others", "line", "What stands for values that are not listed."),
        ("ordinal", "The order of the values means something", "box", ""),
        (
            "prefixes",
            "Codes with parents",
            "line",
            "Numbers of first characters, as 3, 1: rare codes fall to 250*, then to 2*.",
        ),
    ),
    "boolean": (),
    "integer": (
        ("lower", "Smallest", "line", "What lies below counts as this."),
        ("upper", "Largest", "line", "What lies above counts as this."),
        ("bins", "Bins", "line", "How many cells of equal width; empty for one each."),
        ("edges", "or edges of cells", "line", "Increasing, with commas between them."),
        ("special", "Special values", "line", "Beside the order, as N, 999; each is its own cell."),
    ),
    "identifier": (
        ("action", "What to write", "line", 'drop leaves it out; "P-{:06d}" writes fresh ones.'),
    ),
    "text": (),
}
_FIELDS["number"] = (
    *_FIELDS["integer"],
    ("decimals", "Decimals", "line", "How many digits after the point; empty for any."),
)
_FIELDS["date"] = (
    ("lower", "First day", "line", "As 2024-01-31."),
    ("upper", "Last day", "line", "As 2024-12-31."),
    *_FIELDS["integer"][2:],
    ("format", "How it is written", "line", "As %d.%m.%Y; empty for 2024-01-31."),
)
_FIELDS["datetime"] = (
    ("lower", "First moment", "line", "As 2024-01-31 00:00:00."),
    ("upper", "Last moment", "line", "As 2024-12-31 23:59:59."),
    *_FIELDS["date"][2:],
    ("resolution", "Resolution", "line", "microsecond, second, minute, hour or day."),
)
_COMMON = (
    ("nullable", "Cells may be empty", "box", ""),
    ("null_values", "Texts that mean empty", "line", "With commas between them, such as ?, NA."),
    ("dtype", "Type on output", "line", "An Arrow type, such as int64 or string."),
)


def cards(schema: Schema) -> list[Card]:
    """Every column."""
    return [card(column, at) for at, column in enumerate(schema.columns)]


def card(column: Column, at: int) -> Card:
    """One column, with the facts that its type has."""
    kind = (column.wanted if isinstance(column, Incomplete | UndeclaredBins) else "") or column.kind
    known = _known(column)
    missing = column.missing if isinstance(column, Incomplete) else ()
    marks = set(column.read_from_rows)
    fields = () if isinstance(column, Undeclared) else (*_FIELDS[kind], *_COMMON)
    facts = tuple(
        Fact(key, label, _text(known.get(key), widget), widget, key in marks, key in missing, hint)
        for key, label, widget, hint in fields
    )
    problem = ""
    if missing:
        problem = f"fill in: {', '.join(missing)}"
    elif kind == "text":
        problem = "free text cannot be released: leave it out, or list its values"
    return Card(
        at,
        column.name,
        kind,
        "type" in marks,
        domain(column),
        column.size if isinstance(column, Modelled) else None,
        facts,
        len(column.read_from_rows),
        problem,
    )


def _known(column: Column) -> dict[str, Any]:
    known = {field.name: getattr(column, field.name) for field in dataclasses.fields(column)}
    if isinstance(column, Incomplete):
        known |= column.facts
        if column.dtype == "string" and column.wanted != "category":
            known["dtype"] = None  # what it has while nobody knows better
    if known.get("edges") is not None:  # the outermost edges are the bounds
        known["lower"] = known["upper"] = None
    return known


def _text(value: Any, widget: str) -> str:
    if value is None or value == ():
        return ""
    if widget == "box":
        return "on" if value else ""
    if isinstance(value, tuple):
        if widget == "lines":
            return "\n".join(_item(item) for item in value)
        return ", ".join(_item(item, commas=True) for item in value)
    return _item(value)


def _item(value: Any, *, commas: bool = False) -> str:
    if isinstance(value, str):
        plain = value == value.strip() and value.isprintable() and value and value[0] != '"'
        plain = plain and not (commas and "," in value)
        return value if plain else json.dumps(value, ensure_ascii=False)
    if isinstance(value, datetime):
        return value.isoformat(" ")
    return value.isoformat() if isinstance(value, date) else str(value)


# And back


def column_from(form: Mapping[str, str], old: Column, *, confirm_all: bool = False) -> Column:
    """The column that a form describes.

    A fact keeps its mark until its box is ticked (`public-KEY`) or everything is confirmed.

    Raises:
        SchemaError: A value that cannot be one; the message names column, value and remedy.
    """
    before = card(old, 0)
    kind = form.get("type", before.kind)
    if kind not in _FIELDS:
        raise SchemaError(
            f"column {old.name!r}: type = {kind!r} is not known; choose one of the list"
        )
    same = kind == before.kind
    if isinstance(old, Undeclared) and same:  # what a release will find has no form
        marks = () if confirm_all else old.read_from_rows
        return dataclasses.replace(old, read_from_rows=marks)
    facts: dict[str, Any] = {"name": old.name, "type": kind}
    fields = (*(_FIELDS[kind] if same else ()), *_COMMON)
    for key, _, widget, _ in fields:
        if key == "dtype" and not same:
            continue  # the usual one of the new type
        value = _parsed(old, key, kind, widget, form.get(f"fact-{key}", ""))
        if value is not None:
            facts[key] = value
    if not same:
        needs = {"category": ["values"], "boolean": [], "identifier": [], "text": []}
        facts["missing"] = needs.get(kind, ["lower", "upper"])
        if kind in ("number", "datetime"):
            facts["bins"] = 32
    elif isinstance(old, Incomplete):
        facts["missing"] = [key for key in old.missing if key not in facts]
    marked = {key for key, *_ in fields} | ({"type"} if same else set())
    if facts.get("values") == DISCOVER:
        facts.pop("ordinal", None)
        marked -= {"values", "type"}
    facts["read_from_rows"] = [
        mark
        for mark in old.read_from_rows
        if mark in marked and f"public-{mark}" not in form and not confirm_all
    ]
    return build_column(facts)


def _parsed(old: Column, key: str, kind: str, widget: str, text: str) -> Any:
    if widget == "box":
        return bool(text)
    text = text.replace("\r\n", "\n")
    if key == "values":
        if text.strip() == DISCOVER:
            return DISCOVER
        lines = [line for line in text.split("\n") if line.strip()]
        return [_value(old, key, line) for line in lines] if lines else None
    text = text.strip()
    if not text:
        return None
    if key == "null_values":
        return [_quoted(item) for item in _split(text)]
    if key in ("format", "resolution", "dtype", "action"):
        return _quoted(text)
    if key in ("bins", "decimals"):
        return _number(old, key, text, int)
    if key == "other":
        return _value(old, key, text)
    if key == "prefixes":
        return [_number(old, key, item, int) for item in _split(text)]
    items = _split(text) if key == "edges" else [text]
    parse = {"integer": int, "number": float, "date": date, "datetime": datetime}[kind]
    if key == "special":
        return [_special(item, parse) for item in _split(text)]
    values = [_number(old, key, item, parse) for item in items]
    return values if key == "edges" else values[0]


def _special(text: str, parse: Any) -> Any:
    """A value of the column's kind, or a text."""
    if not text.startswith('"'):
        with suppress(ValueError):
            return parse(text) if parse in (int, float) else parse.fromisoformat(text)
    return _quoted(text)


def _split(text: str) -> list[str]:
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


def _value(old: Column, key: str, text: str) -> Any:
    """One value of a category, of the kind that its column has."""
    listed = old.values if isinstance(old, Category) else ()
    kind = type(listed[0]) if listed else _kind_of(old.dtype)
    text = text.strip()
    if kind is str:
        return _quoted(text)
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise SchemaError(
                f"column {old.name!r}: {key} holds {text!r}, which must be true or false"
            )
        return text.lower() == "true"
    return _number(old, key, text, kind)


def _kind_of(dtype: str) -> Any:
    if dtype.startswith(("int", "uint")):
        return int
    if dtype.startswith(("float", "double", "half")):
        return float
    return date if dtype.startswith("date") else str


_NAMES = {int: "a whole number", float: "a number", date: "a day such as 2024-01-31"}


def _number(old: Column, key: str, text: str, kind: Any) -> Any:
    try:
        return kind.fromisoformat(text) if kind in (date, datetime) else kind(text)
    except ValueError:
        wanted = _NAMES.get(kind, "a moment such as 2024-01-31 12:00:00")
        raise SchemaError(f"column {old.name!r}: {key} = {text!r} must be {wanted}") from None


def replaced(schema: Schema, at: int, column: Column) -> Schema:
    """The schema with another column in one place."""
    columns = [*schema.columns]
    columns[at] = column
    return dataclasses.replace(schema, columns=tuple(columns))
