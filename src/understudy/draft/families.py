"""Draft a schema of two tables: which is the parent, by which key, and what each column holds.

NOT PRIVATE: rows of both tables are looked at. What was found about how the tables belong together is
marked in `Family.read_from_rows`, what was read of a column in that column's, and no release accepts
the schema before somebody has confirmed both.

What orders the children stays in order: a number that only counts them says no more than their places
and is left out, to be given anew; of any other column a rule says that it never falls.

A release of families finds no domains privately. Where a draft of one table leaves bounds or values to
a release, here it proposes some that hold all rows but the few at either end, or the values that many
rows have, and marks them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from understudy._types import Whole
from understudy.columns import Column, Identifier, Integer
from understudy.columns.base import near
from understudy.columns.reading import flat, nulled, numpy_of, pc
from understudy.columns.unmodelled import UndeclaredCategory, UndeclaredShape
from understudy.constraints.rule import Rule
from understudy.draft import numbers, words
from understudy.draft.answers import rebuilt
from understudy.draft.draft import columns_of
from understudy.draft.people import RowsPerUnit, per_unit
from understudy.draft.rules import proposed
from understudy.errors import InputError, SchemaError
from understudy.schema.family import Family, FamilySchema, most_children
from understudy.schema.schema import Schema
from understudy.source import read, read_table
from understudy.source.files import stem

_BINS = 16
_SINGLE = 32
_NEARLY = 0.99  # Share of families, or rows, of which a fact must hold to be proposed
_LESS = 0.1  # How often rows of a parent may differ, as a share of how often any two rows do
_FOUND = 0.9  # Share of children whose parent must be there
_LARGEST = (*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500)
_ORDERS = re.compile(
    r"visit|encounter|admission|episode|stay|order|seq|line|wave|round|number|index|nbr|(^|_)n[or](_|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False)
class _Table:
    """A private table, and what a draft says of its columns."""

    name: str
    rows: pa.Table
    schema: Schema

    @classmethod
    def of(cls, name: str, data: Any, null_values: Sequence[str]) -> _Table:
        source = read(data)
        rows = read_table(source)
        columns = columns_of(source, rows, null_values)
        return cls(name, rows, Schema(tuple(columns)))

    def texts(self, name: str) -> pa.Array:
        """A column as texts, as keys are read."""
        return pc.utf8_trim_whitespace(self.schema.texts(self.rows, name))

    def identifies(self, name: str) -> bool:
        """Whether the draft says that a column names people or things."""
        return any(isinstance(c, Identifier) for c in self.schema.columns if c.name == name)

    def some(self, names: Sequence[str]) -> _Table:
        """With some of its columns."""
        kept = tuple(c for c in self.schema.columns if c.name in names)
        return replace(
            self, rows=self.rows.select(names), schema=replace(self.schema, columns=kept)
        )


def draft_families(
    one: Any, other: Any, *, names: Sequence[str] = (), null_values: Sequence[str] = ()
) -> FamilySchema:
    """A schema of two tables to review; either may be the parents. NOT PRIVATE.

    Raises:
        SchemaError: No column of one table names rows of the other.
    """
    called = names or tuple(map(table_name, (one, other), ("parents", "children")))
    if called[0] == called[1]:
        called = (called[0], f"{called[1]}_2")
    tables = [_Table.of(n, data, null_values) for n, data in zip(called, (one, other), strict=True)]
    at, key, foreign = _link(tables)
    parents, children = tables[at], tables[1 - at]
    keys, found = parents.texts(key), children.texts(foreign)
    home = pc.index_in(found, keys.unique()).to_numpy(zero_copy_only=False)
    home = home[~np.isnan(home)].astype(np.int64)
    sizes = np.bincount(home, minlength=len(keys.unique().drop_null()))
    return _drafted(parents, key, children, foreign, sizes)


def draft_split(
    data: Any, key: str, *, name: str = "", null_values: Sequence[str] = ()
) -> FamilySchema:
    """A schema of two levels for one flat table in which `key` repeats, to review. NOT PRIVATE.

    Columns in which rows of a family hardly ever differ are those of the parents. The children are
    called `name`, or as the table's file.
    """
    name = name or table_name(data)
    flat_table = _Table.of(name, data, null_values)
    columns = flat_table.rows.column_names
    if key not in columns:
        raise InputError(f"split = {key!r} is not a column of the table{near(key, columns)}")
    encoded = flat_table.texts(key).dictionary_encode()
    home = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    sizes = np.bincount(home[home >= 0], minlength=len(encoded.dictionary))
    if not (sizes > 1).any():
        raise InputError(f"split = {key!r}: no value of it has more than one row")
    shared = [c for c in columns if c != key and _constant(flat_table.texts(c), home)]
    own = [c for c in columns if c != key and c not in shared]
    modelled = {c.name for c in flat_table.schema.columns if not isinstance(c, Identifier)}
    for which, said in ((shared, "is the same in all rows of"), (own, "differs between rows of")):
        if not modelled.intersection(which):
            raise InputError(f"split = {key!r}: no column that can be modelled {said} one {key}")
    parent = re.sub(r"_?(id|nbr|no|nr|number|key|code)$", "", key, flags=re.IGNORECASE) or key
    parents = replace(
        flat_table.some([key, *shared]),
        name=f"{parent}s" if f"{parent}s" != name else f"{parent}_parents",
    )
    children = flat_table.some([key, *own])
    return _drafted(parents, key, children, key, sizes[sizes > 0])


def children_per_parent(schema: FamilySchema, children: Any) -> RowsPerUnit:
    """How many children a parent has, and what each `max_children` would leave out: NOT PRIVATE."""
    _, table, family = schema.tables
    own, rows = replace(table, rules=()), read_table(read(children))
    if family.foreign_key not in rows.column_names or not {
        column.name for column in table.modelled
    }.intersection(rows.column_names):
        raise InputError(
            f"the table does not have the columns of {family.child}: give that of {family.child}, not "
            f"that of {family.parent}"
        )
    return per_unit(own, rows, family.foreign_key, "max_children")


def table_name(data: Any, otherwise: str = "rows") -> str:
    """The name of a table: that of its file."""
    if not isinstance(data, str | Path):
        return otherwise
    return re.sub(r"[^\w]+", "_", stem(Path(data))).strip("_") or otherwise


def _link(tables: Sequence[_Table]) -> tuple[int, str, str]:
    """(which table is the parents, its key, the foreign key of the other)."""
    found: list[tuple[Any, int, str, str]] = []
    for at, (parents, children) in enumerate((tables, tables[::-1])):
        texts = {name: children.texts(name) for name in children.rows.column_names}
        for key in parents.rows.column_names:
            keys = parents.texts(key)
            values = keys.unique().drop_null()
            if len(values) < _NEARLY * max(len(keys), 1):
                continue
            for foreign, names in texts.items():
                share = (pc.sum(pc.is_in(names, values)).as_py() or 0) / max(len(names), 1)
                several = len(names.unique()) < len(names)
                named = parents.identifies(key) + children.identifies(foreign)
                if share >= _FOUND and (several or key == foreign):
                    found.append(((key == foreign, several, named, share, -at), at, key, foreign))
    if not found:
        raise SchemaError(
            f"{_why_apart(*tables)}; a schema of two tables needs a key, a column that has a value of "
            "its own in nearly every row of one and that rows of the other name"
        )
    _, at, key, foreign = max(found, key=lambda each: each[0])
    return at, key, foreign


def _why_apart(one: _Table, other: _Table) -> str:
    """Why no key was found: of a column of both tables, what speaks against it."""
    for table in (one, other):
        if not table.rows.num_rows:
            return f"{table.name} has no rows, so nothing tells how it belongs to the other table"
    for name in one.rows.column_names:
        if name in other.rows.column_names:
            values = [table.texts(name).unique().drop_null() for table in (one, other)]
            both = pc.sum(pc.is_in(*values)).as_py() or 0
            told = [
                f"{len(own):,} values in {table.rows.num_rows:,} rows of {table.name}"
                for own, table in zip(values, (one, other), strict=True)
            ]
            return f"{name!r} has {told[0]} and {told[1]}, and {both:,} values are in both"
    return f"no column of {one.name} belongs to one of {other.name}"


def _constant(texts: pa.Array, home: Whole) -> bool:
    """Whether rows of a family hardly ever differ, and far less often than any two rows.

    So a column in which nearly all rows have one value is not the parent's for that. Nulls say nothing.
    """
    codes = texts.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero((home >= 0) & (codes >= 0))
    rows = rows[np.argsort(home[rows], kind="stable")]
    same = home[rows][1:] == home[rows][:-1]
    shares = np.bincount(codes[rows]) / max(rows.size, 1)
    by_chance = 1 - float(np.square(shares).sum())
    if by_chance * same.sum() < numbers.LEAST_HOLDERS:  # too few to tell
        return False
    changes = float(np.mean(codes[rows][1:][same] != codes[rows][:-1][same]))
    return changes <= min(1 - _NEARLY, _LESS * by_chance)


def _drafted(
    parents: _Table, key: str, children: _Table, foreign: str, sizes: Whole
) -> FamilySchema:
    """The schema of two tables that belong together in this way."""
    order, least = _order(children, foreign), int((sizes > 0).all())
    counted = [order] if order is not None and _counts(children, foreign, order) else []
    limit = most_children(least, ordered=order is not None)
    several = least + 1 if (sizes > 1).any() else 1
    most = next((k for k in _LARGEST if k >= several and np.mean(sizes <= k) >= _NEARLY), limit)
    marks = ("key", "parent", "foreign_key", "max_children", "min_children")
    family = Family(
        parents.name,
        key,
        children.name,
        foreign,
        min(most, limit),
        least,
        order,
        read_from_rows=(*marks, *(["order"] if order else [])),
    )
    made = [_table(parents, [key]), _table(children, [foreign, *counted])]
    schema = FamilySchema.of(made[0], made[1], family)
    rules: list[Rule] = []
    if order in {column.name for column in made[1].modelled}:
        rule = Rule("a <= b").renamed({"a": f"previous.{order}", "b": str(order)}.__getitem__)
        rules.append(schema.qualified(rule, children.name))
    for table, own in ((parents, made[0]), (children, made[1])):
        rules += [schema.qualified(rule, table.name) for rule in proposed(table.rows, own)]
    for rule in rules:
        try:
            schema = schema.changed(rules=(*schema.rules, rule))
        except SchemaError:  # views cannot keep it
            continue
    return schema


def _counts(children: _Table, foreign: str, order: str) -> bool:
    """Whether the order numbers the children of nearly every family, one by one from one start."""
    number = children.texts(order)
    if not pc.all(pc.match_substring_regex(number, r"^\d{1,9}$")).as_py():
        return False
    home = numpy_of(children.texts(foreign).dictionary_encode().indices.fill_null(-1))
    values = numpy_of(number.cast(pa.int64()))
    rows = np.lexsort([values, home])
    home, values = home[rows], values[rows]
    beyond = values - (np.arange(rows.size) - np.searchsorted(home, home))
    return bool(np.mean(beyond == np.median(beyond)) >= _NEARLY)


def _table(table: _Table, keys: Sequence[str]) -> Schema:
    columns: list[Column] = []
    for column in table.schema.columns:
        if column.name in keys:
            whole = column.arrow_type.id in (pa.int32().id, pa.int64().id)
            columns.append(Identifier(column.name, dtype=column.dtype if whole else "string"))
        else:
            columns.append(_declared(column, table.rows.column(column.name)))
    return Schema(tuple(columns))


def _order(children: _Table, foreign: str) -> str | None:
    """A column that orders the children of a family: a day or a time, or a number of that name."""
    home = children.texts(foreign)
    found: list[tuple[tuple[int, int], str]] = []
    for at, column in enumerate(children.schema.columns):
        wanted = column.wanted if isinstance(column, UndeclaredShape) else column.kind
        timed = wanted in ("date", "datetime")
        if column.name == foreign or not (timed or _ORDERS.search(column.name)):
            continue
        texts = children.texts(column.name)
        pairs = pa.table({"home": home, "at": texts}).group_by(["home", "at"]).aggregate([])
        distinct = pairs.num_rows >= 0.95 * len(texts)
        numbered = pc.match_substring_regex(texts, r"^\d+$")
        if distinct and texts.null_count == 0 and (timed or pc.all(numbered).as_py()):
            found.append(((-timed, at), column.name))
    return min(found)[1] if found else None


# Domains that a release of one table would find


def _declared(column: Column, array: pa.ChunkedArray) -> Column:
    """The column with a domain; one in which no value is common is left out."""
    if isinstance(column, UndeclaredShape):
        return _bounded(column, array)
    if isinstance(column, Integer) and column.cells > _SINGLE:
        return rebuilt(column, (), bins=_BINS)  # single values of siblings are too rare to measure
    return _listed(column, array) if isinstance(column, UndeclaredCategory) else column


def _bounded(column: UndeclaredShape, array: pa.ChunkedArray) -> Column:
    """Ordered values between the bounds that are declared, or that hold nearly all rows.

    Bins are of one width, so of declared bounds the rows must fill half.
    """
    lower, upper, marks = column.facts.get("lower"), column.facts.get("upper"), ()
    made = column.largest()
    parts = [made._read(chunk, column.null_values) for chunk in flat(array)]
    points = np.concatenate([read_[valid] for read_, valid in parts])
    known = lower is not None and upper is not None
    if points.size:
        low, high = numbers.middle(*np.unique(points, return_counts=True))
        if not known or 2 * (high - low) < column.scale.high - column.scale.low:
            lower, upper = _round(column.scale.own(low), column.scale.own(high))
            marks = ("lower", "upper")
    elif not known:
        return Identifier(column.name, read_from_rows=("type",))
    for cut in ({"bins": _BINS}, {}):
        try:
            made = rebuilt(column, ("lower", "upper", "bins"), lower=lower, upper=upper, **cut)
        except SchemaError:
            continue
        if not isinstance(made, UndeclaredShape):
            return replace(made, read_from_rows=(*column.read_from_rows, *marks))
    return Identifier(column.name, read_from_rows=("type",))


def _round(low: Any, high: Any) -> tuple[Any, Any]:
    """Round bounds outside of two values."""
    if isinstance(low, datetime):
        return datetime(low.year, 1, 1), datetime(high.year + 1, 1, 1)
    if isinstance(low, date):
        return date(low.year, 1, 1), date(high.year, 12, 31)
    width = float(high) - float(low) or abs(float(high)) or 1.0
    step = 10.0 ** math.floor(math.log10(width / 5))
    first, last = math.floor(low / step) * step, math.ceil(high / step) * step
    last = last if last > first else first + step
    if isinstance(low, int):
        return math.floor(first), math.ceil(last)
    places = max(0, -math.floor(math.log10(step)))
    return round(first, places), round(last, places)


def _listed(column: UndeclaredCategory, array: pa.ChunkedArray) -> Column:
    """The values that many rows have, at most as many as a list of one table has."""
    texts = nulled(array, column.null_values)
    found = pc.utf8_trim_whitespace(texts).drop_null().value_counts()
    counts = np.array(found.field(1), np.int64)
    often = np.flatnonzero(numbers.common(counts)) if counts.size else np.zeros(0, np.int64)
    often = often[np.argsort(-counts[often], kind="stable")][: words.LONGEST_LIST]
    if not often.size:
        return Identifier(column.name, read_from_rows=("type",))
    values = sorted(found.field(0)[int(i)].as_py() for i in often)
    other = column.other if column.other not in values else "(other)"
    made = rebuilt(column, ("dtype", "prefixes"), values=values, other=other)
    return replace(made, read_from_rows=(*column.read_from_rows, "values"))
