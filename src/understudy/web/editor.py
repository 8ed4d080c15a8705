"""A column of a schema as a form, and back.

Every fact that a draft took from private rows has a box beside it, "this is public": ticking it is what
confirms the fact, and nothing else does. What a form says goes through the same door as a schema file
(`schema.toml.build_column`), so a mistake gets the same words.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from understudy.columns.unmodelled import (
    DISCOVER,
    SHAPE,
    Undeclared,
    UndeclaredBins,
    UndeclaredShape,
)
from understudy.draft import typed
from understudy.errors import SchemaError
from understudy.schema import Column, Identifier, Incomplete, Modelled, Schema, Text
from understudy.schema.family import FamilySchema
from understudy.schema.toml import build_column
from understudy.wording import domain

KINDS = {
    "category": "one of a list",
    "boolean": "yes or no",
    "integer": "whole number",
    "number": "number",
    "date": "date",
    "datetime": "date and time",
    "identifier": "left out, or fresh ids",
    "text": "free text",
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
    settled: str
    """What is to become of it, once nothing waits."""
    table: str = ""
    """Which of two tables it is of."""

    @property
    def left_out(self) -> bool:
        """Whether no release has it."""
        return self.settled == _LEFT_OUT


_LEFT_OUT = "left out"


_FIELDS: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    "category": (
        (
            "values",
            "Values, one a line",
            "lines",
            "Every value that the column may hold; or the word discover, and a release finds those "
            "that many hold privately.",
        ),
        (
            "other",
            "Name for all others",
            "line",
            "What stands for values that are not listed. Empty: they count as the first that is.",
        ),
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
        (
            "bins",
            "Bins",
            "line",
            "How many cells of equal width. Empty: one for each of few values, or else, as with the "
            "word shape, a release finds privately where the values lie.",
        ),
        ("edges", "or edges of cells", "line", "Increasing, with commas between them."),
        (
            "special",
            "Codes beside the order",
            "line",
            "With commas between them, such as N, 999; each is a cell of its own.",
        ),
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
    (
        "format",
        "How it is written",
        "line",
        "As %d.%m.%Y, or #.##0,00 €; empty for 2024-01-31, 1234.5.",
    ),
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


def columns(schema: Schema) -> list[tuple[str, Column]]:
    """Every column, and of two tables which it is of, those of the parents first."""
    if not isinstance(schema, FamilySchema):
        return [("", column) for column in schema.columns]
    parents, children, family = schema.tables
    pairs = ((family.parent, parents), (family.child, children))
    return [(name, column) for name, table in pairs for column in table.columns]


def cards(schema: Schema) -> list[Card]:
    """Every column."""
    every = enumerate(columns(schema))
    return [dataclasses.replace(card(column, at), table=table) for at, (table, column) in every]


def card(column: Column, at: int) -> Card:
    """One column, with the facts that its type has."""
    wanted = isinstance(column, Incomplete | UndeclaredBins | UndeclaredShape)
    kind = (column.wanted if wanted else "") or column.kind
    known = _known(column)
    missing = column.missing if isinstance(column, Incomplete) else ()
    marks = set(column.read_from_rows)
    fields = () if _formless(column) else (*_FIELDS[kind], *_COMMON)
    facts = tuple(
        Fact(key, label, _text(known.get(key), widget), widget, key in marks, key in missing, hint)
        for key, label, widget, hint in fields
    )
    problem = f"fill in: {', '.join(missing)}" if missing else ""
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
        _settled(column),
    )


def _settled(column: Column) -> str:
    if isinstance(column, Undeclared):
        return "found privately"
    if isinstance(column, Identifier):
        return _LEFT_OUT if column.dropped else "written anew"
    return _LEFT_OUT if isinstance(column, Text) else "confirmed"


def _formless(column: Column) -> bool:
    """Whether nothing of it is for a form: what a release will find."""
    return isinstance(column, Undeclared) and not isinstance(column, UndeclaredShape)


def _known(column: Column) -> dict[str, Any]:
    known = {field.name: getattr(column, field.name) for field in dataclasses.fields(column)}
    if isinstance(column, UndeclaredShape):
        known |= {**column.facts, "bins": SHAPE}
    if isinstance(column, Incomplete):
        known |= column.facts
        if column.dtype == "string" and column.wanted != "category":
            known["dtype"] = None  # what it has while nobody knows better
    if known.get("edges") is not None:  # the outermost edges are the bounds
        known["lower"] = known["upper"] = None
    return known


def _text(value: Any, widget: str) -> str:
    if widget == "box":
        return "on" if value else ""
    return typed.shown(value, lines=widget == "lines")


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
    if _formless(old) and same:
        marks = () if confirm_all else old.read_from_rows
        return dataclasses.replace(old, read_from_rows=marks)
    facts: dict[str, Any] = {"name": old.name, "type": kind}
    fields = (*(_FIELDS[kind] if same else ()), *_COMMON)
    for key, _, widget, _ in fields:
        if key == "dtype" and not same:
            continue  # the usual one of the new type
        text = form.get(f"fact-{key}", "")
        value = bool(text) if widget == "box" else typed.parsed(old, key, kind, text)
        if value is not None:
            facts[key] = value
    if not same:
        facts["missing"] = ["values"] if kind == "category" else []
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


def replaced(schema: Schema, at: int, column: Column) -> Schema:
    """The schema with another column in one place."""
    made = [each for _, each in columns(schema)]
    made[at] = column
    if not isinstance(schema, FamilySchema):
        return dataclasses.replace(schema, columns=tuple(made))
    parents, children, _ = schema.tables
    cut = len(parents.columns)
    halves = zip((parents, children), (made[:cut], made[cut:]), strict=True)
    first, second = (dataclasses.replace(t, rules=(), columns=tuple(own)) for t, own in halves)
    return schema.changed((first, second))
