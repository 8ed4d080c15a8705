"""A decision about a draft, and the schema after an answer to it: pure, and never a row is seen."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from understudy.columns.base import near
from understudy.columns.unmodelled import DISCOVER
from understudy.constraints.rule import Rule
from understudy.draft.alike import kind_of, values_of
from understudy.draft.names import Name
from understudy.draft.typed import parsed, split
from understudy.errors import SchemaError
from understudy.schema import Category, Column, Identifier, Schema
from understudy.schema.family import Family, FamilySchema
from understudy.schema.toml import build_column, column_facts
from understudy.units import EQUAL, ROW, Unit

_TYPED = {"type", "dtype", "nullable", "null_values", "decimals", "format", "resolution", "ordinal"}
FORM = _TYPED | {"other", "max_values", "action"}
"""Facts that hardly depend on single rows; all others have a question of their own."""
_BOUNDS = ("lower", "upper", "edges", "bins")
_BINS = 32
_MORE = "..."
"""Ends a list of values that others may be missing from; a list without it is whole."""
_ALIKE = 0.75
"""difflib's ratio from which one text may be a slip of the pen for another."""


class Topic(StrEnum):
    """What a decision is about, the riskiest first."""

    UNIT = "unit"
    FAMILY = "family"
    IDENTIFIERS = "identifiers"
    VALUES = "values"
    BOUNDS = "bounds"
    MISSING = "missing"
    RULES = "rules"
    TYPES = "types"


class Choice(StrEnum):
    """What can be answered."""

    PUBLIC = "public"
    """It is public knowledge as it stands."""
    REPLACE = "replace"
    """Other facts, typed by a person, are."""
    PRIVATE = "private"
    """A release finds it privately, inside its ε."""
    DROP = "drop"
    """The columns are left out."""


@dataclass(frozen=True)
class Option:
    """A ready answer of `Choice.REPLACE`: its `text`, and what it means, in `words`."""

    text: str
    words: str


@dataclass(frozen=True)
class Decision:
    """One question about a draft: about `columns`, or about rules, by what they say.

    `holds` are lines that say what the draft holds, one or more columns each, and `full` all of it
    where they do not; `reveals` is what answering "public" would publish, `yes` that answer in words,
    `advice` what to think of. NOT PRIVATE, as the draft itself.
    """

    topic: Topic
    columns: tuple[str, ...]
    question: str
    holds: tuple[str, ...]
    reveals: str
    advice: str
    choices: tuple[Choice, ...]
    full: tuple[str, ...] = ()
    yes: str = "Yes: public knowledge"
    shared: bool = True
    """Whether the same facts would do for all of its columns."""
    group: str = ""
    """The name of a question about columns that have little in common; part of its key."""
    table: str = ""
    """Of a schema of two tables: which of them it is about."""
    parts: tuple[tuple[str, ...], ...] = ()
    """Of a question that can be opened: the columns, or the rule, of each line of `holds`."""
    options: tuple[Option, ...] = ()
    """Answers that need no typing."""
    default: Choice | None = None
    """The answer to take where somebody does not say: only one that publishes no value of the rows."""

    @property
    def key(self) -> str:
        """Its name in a command; the same until it is answered."""
        first = self.columns[0] if self.topic in (Topic.VALUES, Topic.MISSING) else ""
        name = ".".join(part for part in (self.table, self.group or first) if part)
        return f"{self.topic}:{name}" if name else str(self.topic)

    @property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The columns or rules that can be answered for by themselves: those of a line, or each."""
        return self.parts if len(self.parts) > 1 else tuple((each,) for each in self.columns)

    def of(self, *columns: str) -> Decision:
        """The same about some of its columns alone."""
        return replace(self, columns=columns)


def answered(schema: Schema, decision: Decision, choice: Choice, text: str = "") -> Schema:
    """The schema after an answer, with the marks that it settles cleared.

    `text` goes with `Choice.REPLACE`: all values, between commas, with "..." at the end where there may
    be others; bounds as "0 to 120"; a column and the number of its rows that count as "patient_id 5",
    with "equal" behind where they count together as one; of types, the columns whose cells may be
    empty, or "all". It holds for every column of the decision; `Decision.of` makes one of a
    single column.

    Raises:
        InputError: The choice is not one of the decision's, or the text cannot be one.
    """
    if choice not in decision.choices:
        known = ", ".join(decision.choices)
        raise SchemaError(f"{decision.key} cannot be answered by {choice}; choose one of: {known}")
    if choice is Choice.REPLACE and not decision.shared and len(decision.columns) > 1:
        raise SchemaError(
            f"{decision.key} is about {len(decision.columns)} columns that differ; give new facts for "
            f"one at a time, by its name: {', '.join(decision.columns)}"
        )
    if decision.topic is Topic.UNIT:
        return _protected(schema, choice, text)
    if decision.topic is Topic.RULES:
        return _about_rules(schema, decision.columns, choice)
    if isinstance(schema, FamilySchema):
        return _of_family(schema, decision, choice, text)
    changed: dict[str, Column] = {}
    for column in schema.columns:
        if column.name in decision.columns:
            if decision.topic is not Topic.TYPES and choice is Choice.REPLACE:
                _require_values(schema, column, text)
            changed[column.name] = _answer(column, decision.topic, choice, text)
    if decision.topic is Topic.TYPES and choice is Choice.REPLACE:
        changed = _empty(changed, text)
    try:
        return schema.resolved(changed)
    except SchemaError:  # what a draft read from rows about these columns does not hold any more
        proposed = [r.says for r in schema.rules if r.read_from_rows and r.words & set(changed)]
        if not proposed:
            raise
        return _about_rules(schema, proposed, Choice.DROP).resolved(changed)


def _require_values(schema: Schema, column: Column, text: str) -> None:
    """Refuse the name of a column among values: somebody thought of another question."""
    if kind_of(column) != "category":
        return
    names = {each.name for each in schema.columns} - {column.name}
    if wrong := [item for item in split(text) if item in names]:
        raise SchemaError(
            f"column {column.name!r}: {wrong[0]!r} is the name of a column, not a value; write the "
            f'values of {column.name}, and one that is called so in quotes: "{wrong[0]}"'
        )


def _about_rules(schema: Schema, says: Sequence[str], choice: Choice) -> Schema:
    """The schema with rules of a draft confirmed, or without them."""
    rules: list[Rule] = []
    for rule in schema.rules:
        if rule.says not in says or not rule.read_from_rows:
            rules.append(rule)
        elif choice is Choice.PUBLIC:
            rules.append(replace(rule, read_from_rows=False))
    return schema.with_rules(rules)


def _of_family(schema: FamilySchema, decision: Decision, choice: Choice, text: str) -> FamilySchema:
    """The schema of two tables after an answer about how they belong together, or about one of them."""
    parents, children, family = schema.tables
    if decision.topic is Topic.FAMILY:
        stated = _belonging(family, text) if choice is Choice.REPLACE else family
        return schema.changed(family=replace(stated, read_from_rows=()))
    alone, about = [replace(t, rules=()) for t in (parents, children)], replace(decision, table="")
    at = int(decision.table == family.child)
    alone[at] = answered(alone[at], about, choice, text)
    tables = (alone[0], alone[1])
    try:
        return schema.changed(tables)
    except SchemaError:  # what a draft read from rows about these columns does not hold any more
        names = {*decision.columns, *(f"{decision.table}.{name}" for name in decision.columns)}
        rules = [
            r for r in schema.rules if not (r.read_from_rows and names.intersection(r.columns))
        ]
        if len(rules) == len(schema.rules):
            raise
        return schema.changed(tables, rules=rules)


def _belonging(family: Family, text: str) -> Family:
    """The family with what somebody typed, such as "max_children = 5, order = day"."""
    found: dict[str, Any] = {}
    for part in text.split(","):
        key, _, value = (each.strip() for each in part.partition("="))
        if key in ("max_children", "min_children") and value.isdigit():
            found[key] = int(value)
        elif key in ("order", "siblings") and value:
            found[key] = None if (key, value) == ("order", "none") else value
        else:
            raise SchemaError(
                f"{part.strip()!r} is not one of max_children = 5, min_children = 0, order = COLUMN, "
                "order = none, siblings = all; which table is the parent, and the keys, are changed in "
                "the schema file"
            )
    if found.get("siblings", family.siblings) != family.siblings:
        found["pairs"] = ()
    return replace(family, **found)


def _answer(column: Column, topic: Topic, choice: Choice, text: str) -> Column:
    if choice is Choice.DROP:
        return Identifier(column.name)
    if topic is Topic.TYPES:
        return _unmarked(column, FORM)
    if choice is Choice.PUBLIC:
        every = topic is Topic.IDENTIFIERS
        settled = set(column.read_from_rows) - (set() if every else FORM)
        return _unmarked(column, settled)
    if choice is Choice.REPLACE:
        return _replaced(column, text)
    try:
        return _openly(column)
    except SchemaError:
        raise SchemaError(
            f"column {column.name!r}: a release finds texts and numbers in an order, not codes like "
            f"these; list them, or leave the column out"
        ) from None


def _unmarked(column: Column, settled: Iterable[str]) -> Column:
    left = tuple(mark for mark in column.read_from_rows if mark not in set(settled))
    return replace(column, read_from_rows=left)


def _protected(schema: Schema, choice: Choice, text: str) -> Schema:
    """The schema with an answer to who is protected; what tells people apart is never modelled."""
    if choice is Choice.PUBLIC or text.strip() == ROW:
        return schema.protecting(None)
    stated = text.strip().removesuffix(EQUAL).strip()
    name, _, most = stated.rpartition(" ")
    name = name.strip().removesuffix(",")
    columns = {column.name: column for column in schema.columns}
    told = [column.name for column in schema.columns if isinstance(column, Identifier)]
    told.sort(key=lambda each: not Name(each).of_a_person)
    if not name or not (most.isascii() and most.isdigit()):
        such = f", such as {(told or list(columns))[0]} 5"
        raise SchemaError(
            f"{text.strip()!r} does not say who is protected; write {ROW}, or the column that tells "
            f"people apart and how many rows of one of them count{such}"
        )
    if name not in columns:
        hint = near(name, list(columns)) or f"; the schema leaves out {', '.join(told) or 'none'}"
        raise SchemaError(f"there is no column {name!r}{hint}; nothing was changed")
    if not isinstance(columns[name], Identifier):
        schema = schema.resolved({name: Identifier(name)})
    equal = text.strip().endswith(f" {EQUAL}")
    salt = "" if schema.unit is None else schema.unit.salt
    return schema.protecting((Unit.sharing if equal else Unit)(name, int(most), salt))


def _empty(columns: Mapping[str, Column], text: str) -> dict[str, Column]:
    names = list(columns) if text.strip() == "all" else [n.strip() for n in text.split(",")]
    for name in names:
        if name and name not in columns:
            raise SchemaError(f"{name!r} is none of the columns in question; write names, or all")
    return {name: replace(c, nullable=name in names) for name, c in columns.items()}


def rebuilt(column: Column, without: Iterable[str], **facts: Any) -> Column:
    """The column with other facts in place of some; what waited because of those is settled."""
    gone = {*without, *facts}
    kept = {key: value for key, value in column_facts(column).items() if key not in gone}
    marks = [mark for mark in column.read_from_rows if mark not in gone]
    kept["missing"] = [key for key in kept.get("missing", ()) if key not in gone]
    return build_column({**kept, **facts, "read_from_rows": marks})


def _openly(column: Column) -> Column:
    """The column without a domain: a release finds it."""
    if kind_of(column) == "category":
        other = column_facts(column).get("other", "OTHER")
        return rebuilt(column, ("ordinal",), values=DISCOVER, other=other)
    return rebuilt(column, _BOUNDS)


def _replaced(column: Column, text: str) -> Column:
    """The column with the facts that somebody typed."""
    kind = kind_of(column)
    if not text.strip():
        raise SchemaError(f"column {column.name!r}: nothing was given in place of its facts")
    if kind == "category":
        text, more = _ended(text)
        values = parsed(column, "values", kind, text, commas=True)
        other = column_facts(column).get("other")
        if not more:
            listed = rebuilt(column, ("other",), values=values)
            require_spelling(column, listed)
            return listed
        if other is None and not all(isinstance(value, str) for value in values):
            raise SchemaError(
                f"column {column.name!r}: {_MORE} says that there may be others, and the draft has no "
                "code for them; state other = CODE in the schema file"
            )
        return rebuilt(column, (), values=values, other="OTHER" if other is None else other)
    hyphened = re.fullmatch(r"([\d.,]+)\s*[-–]\s*([\d.,]+)", text.strip())
    limits = hyphened.groups() if hyphened else re.split(r"\s+to\s+|\.\.", text.strip())
    if len(limits) != 2:
        raise SchemaError(
            f"column {column.name!r}: {text.strip()!r} must be two bounds, such as 0 to 120"
        )
    lower, upper = (
        parsed(column, key, kind, limit)
        for key, limit in zip(("lower", "upper"), limits, strict=True)
    )
    cuts = {key: v for key, v in column_facts(column).items() if key == "bins"}
    for bins in (cuts, {}):
        try:
            return rebuilt(column, _BOUNDS, lower=lower, upper=upper, **bins)
        except SchemaError:
            continue
    return rebuilt(column, _BOUNDS, lower=lower, upper=upper, bins=_BINS)


def unlisted(before: Column, after: Column) -> tuple[str, ...]:
    """Values that a draft read from the rows, and that a list in their place leaves out."""
    if "values" not in before.read_from_rows or not isinstance(after, Category):
        return ()
    return tuple(repr(value) for value in values_of(before) if value not in after.values)


def counts_as(column: Category) -> str:
    """What a row counts as whose value is not listed."""
    last = repr(column.values[0]) if column.other is None else "OTHER"
    return f"a listed parent, or else {last}" if column.prefixes else last


def require_spelling(before: Column, after: Column) -> None:
    """Refuse a whole list with a slip of the pen for a value that the rows hold.

    Raises:
        SchemaError: One of its new values is spelt like one that it leaves out.
    """
    missing = unlisted(before, after)
    if not missing or not isinstance(after, Category) or after.other is not None:
        return
    new = [repr(value) for value in after.values if value not in values_of(before)]
    for value in missing:
        if typed := next((each for each in new if _slip(value, each)), None):
            raise SchemaError(
                f"column {before.name!r}: the table holds {value}, which is not in your list; did you "
                f"mean it by {typed}? Rows with it would count as {counts_as(after)}. List {value}, or "
                f"end the list with {_MORE} so that what it lacks counts as OTHER"
            )


def _slip(one: str, other: str) -> bool:
    """Whether two texts are spelt alike; codes that differ in their digits are not."""
    one, other = one.casefold(), other.casefold()
    digits = [re.sub(r"\D", "", text) for text in (one, other)]
    alike = difflib.SequenceMatcher(None, one[1:-1].strip(), other[1:-1].strip()).ratio()
    return digits[0] == digits[1] and alike >= _ALIKE


def _ended(text: str) -> tuple[str, bool]:
    """A list without the dots at its end, and whether they were there: there may be other values."""
    bare = text.strip().replace("…", _MORE)
    return bare.removesuffix(_MORE).rstrip(" ,"), bare.endswith(_MORE)


def possible(columns: Sequence[Column], *choices: Choice) -> tuple[Choice, ...]:
    """Those of the choices that the columns can be answered by."""
    try:
        for column in columns:
            _openly(column)
    except SchemaError:  # only texts can be discovered
        return tuple(choice for choice in choices if choice is not Choice.PRIVATE)
    return choices
