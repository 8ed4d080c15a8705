"""Two tables, parents and their children, as one source: exact counts of the views of families.

Rows that cannot belong to a family are dropped, each in a way that depends on its own family alone:
parents without a key, children whose key no parent has, and of parents with the same key all but one,
the first in the order of its codes. Of more than `max_children` children the first ones in their order
count, or, without an order, a random choice (`understudy.units`); ties are in the order of codes. So
when a family enters or leaves, with all rows of its key, the counts of no other family move.

One flat table of children that repeat what is known of their parent is split: the parent is what the
first of the family's own rows says. Tables of one database or Spark session are counted there
(`source.views`), all others here, as many families at a time as fit the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Clique, Codes, Whole
from understudy.columns.reading import floats, is_number, is_text, numpy_of, pc
from understudy.errors import SourceError
from understudy.privacy.exact import ExactCounts
from understudy.queries.families import EncodedFamilies, ViewCounts
from understudy.quoting import unquoted
from understudy.schema import Identifier, Schema
from understudy.schema.family import FamilySchema
from understudy.source.base import (
    Native,
    SealedCounts,
    Source,
    Sparse,
    check_header,
    counting,
    fold,
    with_nulls,
)
from understudy.source.duckdb import DuckDBSource
from understudy.source.pushed import PushedCounts, PushedSource
from understudy.source.units import chosen, turn
from understudy.source.views import DIALECTS, ViewEngine
from understudy.units import Unit


class FamilyCounts(SealedCounts):
    """Exact counts of views; rows are not handed over one by one."""

    def __init__(self, parts: Callable[[], Iterable[ViewCounts]], schema: Schema) -> None:
        """`parts` gives all families, some at a time, for each question anew."""
        super().__init__(schema)
        self._parts = parts

    def _dense(self, cliques: Sequence[Clique]) -> tuple[Whole, ...]:
        found: tuple[Whole, ...] = ()
        for views in self._parts():
            tables = views.tables(cliques)
            pairs = zip(found or tables, tables, strict=True)
            found = tuple(one + other for one, other in pairs) if found else tables
        return found

    def _sparse(self, cliques: Sequence[Clique]) -> tuple[Sparse, ...]:
        found = [views.sparse(cliques) for views in self._parts()]
        return tuple(_joined(tables) for tables in zip(*found, strict=True))


def _joined(tables: Sequence[Sparse]) -> Sparse:
    """One table of occupied cells from several."""
    if len(tables) == 1:
        return tables[0]
    cells, at = np.unique(np.concatenate([cells for cells, _ in tables]), return_inverse=True)
    number = np.zeros(cells.size, np.int64)
    np.add.at(number, at, np.concatenate([number for _, number in tables]))
    return cells, number


def _fits(source: Source, table: Schema) -> int:
    """How many columns of a table a source has, beside those that name rows."""
    own = {column.name for column in table.columns if not isinstance(column, Identifier)}
    return len(own.intersection(source.columns))


class FamilySource:
    """A table of parents and one of children. Nothing but their headers has been read.

    Without `children` the table is flat: its rows are children, with the columns of their parents.
    """

    native: Native = "arrow"

    def __init__(self, parents: Source, children: Source | None = None) -> None:
        self._parents, self._children = parents, parents if children is None else children
        self._flat = children is None
        self.columns = (
            parents.columns if children is None else (*parents.columns, *children.columns)
        )
        self.typed = parents.typed and self._children.typed

    def describe(self) -> str:
        """Both tables in one line."""
        if self._flat:
            return self._parents.describe()
        return f"{self._parents.describe()} and {self._children.describe()}"

    def bind(self, schema: Schema) -> ExactCounts:
        """Check both headers; what this process counts and can hold as codes is read once."""
        if not isinstance(schema, FamilySchema):
            raise SourceError(
                f"{self.describe()}: the schema is of one table; a schema of two has version = 2 and "
                f"[[table]] entries"
            )
        parents, children = self._parents, self._children
        if isinstance(parents, PushedSource) or isinstance(children, PushedSource):
            return PushedCounts(self._engine(schema), schema)
        self.check_headers(schema)
        turns = max(
            (each.turns for each in (parents, children) if isinstance(each, DuckDBSource)),
            default=0,
        )

        def views(at: int = 0, of: int = 1) -> ViewCounts:
            with unquoted(self.describe()):
                families = families_of(parents, None if self._flat else children, schema, (at, of))
            return ViewCounts(families, schema.layout, schema.weight, schema.shape)

        if not turns:
            kept = views()
            return FamilyCounts(lambda: [kept], schema)

        def parts() -> Iterator[ViewCounts]:
            for at in range(turns):
                with counting():
                    found = views(at, turns)
                yield found

        return FamilyCounts(parts, schema)

    def check_headers(self, schema: FamilySchema) -> None:
        """Refuse tables that have not the columns of the schema."""
        parent, child, family = schema.tables
        others = schema.drop_other_columns
        if not self._flat:
            if _fits(self._parents, child) > _fits(self._parents, parent) and (
                _fits(self._children, parent) > _fits(self._children, child)
            ):
                raise SourceError(
                    f"{self.describe()}: the first is the table of {family.child}, the second that of "
                    f"{family.parent}: exchange them (--children names that of {family.child})"
                )
            for source, table in ((self._parents, parent), (self._children, child)):
                own = replace(table, drop_other_columns=others)
                check_header(source.columns, own, source.describe())
            return
        names = [column.name for column in parent.columns if column.name != family.key]
        both = sorted({column.name for column in child.columns}.intersection(names))
        if both or family.key != family.foreign_key:
            why = f"column {both[0]!r} is in both" if both else "their keys have two names"
            raise SourceError(
                f"{self.describe()}: it is one table and the schema has two, {family.parent} and "
                f"{family.child}, in which {why}; give both tables (--children), or draft a schema of "
                f"this one with `understudy schema draft --split`"
            )
        union = tuple(column for column in parent.columns if column.name in names)
        rules = (*parent.rules, *child.rules)
        flat = Schema((*child.columns, *union), rules=rules, drop_other_columns=others)
        for table, name in ((parent, family.parent), (child, family.child)):
            if not _fits(self._parents, table):
                raise SourceError(
                    f"{self.describe()}: it has no column of {name}; give both tables, that of "
                    f"{family.child} by --children DATA, or as a pair"
                )
        check_header(self.columns, flat, self.describe())

    def _engine(self, schema: FamilySchema) -> ViewEngine:
        """What counts both tables where they are; tried on no rows, before anything is charged."""
        parents, children = self._parents, self._children
        parent, child, family = schema.tables
        if self._flat:
            raise SourceError(
                f"{self.describe()}: one flat table is split here for files and frames; in a database "
                f"make a view of {family.parent} and one of {family.child} and name both, or export it "
                f"to Parquet"
            )
        if not isinstance(parents, PushedSource) or not isinstance(children, PushedSource):
            raise self._apart()
        parent, child = (
            replace(table, drop_other_columns=schema.drop_other_columns)
            for table in (parent, child)
        )
        one, first = parents.related(parent, family.key, None)
        other, second = children.related(child, family.foreign_key, family.order)
        if not one.beside(other):
            raise self._apart()
        if one.dialect not in DIALECTS:
            raise SourceError(
                f"{self.describe()}: families are counted by DuckDB, PostgreSQL and Spark, and not by "
                f"{one.dialect}; export both tables to Parquet"
            )
        calls_parents, calls_children, ask = one.asking(first, second)
        engine = ViewEngine(
            schema, DIALECTS[one.dialect], calls_parents, calls_children, second.texts, ask
        )
        engine.check()
        return engine

    def _apart(self) -> SourceError:
        return SourceError(
            f"{self.describe()}: both tables must be in one database (one connection, or one "
            f"address), in one Spark session, or both in files or frames"
        )

    def frame(self, table: pa.Table) -> Any:
        """Arrow, as it is."""
        return table


def families_of(
    parents: Source, children: Source | None, schema: FamilySchema, part: tuple[int, int] = (0, 1)
) -> EncodedFamilies:
    """The families of two tables, or of one flat table, as codes: **private, and not sealed**.

    Of `part` (i, t) those that have turn i of t, by their key.
    """
    parent, child, family = schema.tables
    by = (family.foreign_key, family.order)
    if children is None:
        found, codes, order = _read(parents, (parent, child), by, part)
        cut = len(parent.modelled)
        keys, parent_codes, child_codes = found, codes[:cut], codes[cut:]
        kept = _one_each(keys, parent_codes, order)
    else:
        keys, parent_codes, _ = _read(parents, (parent,), (family.key, None), part)
        found, child_codes, order = _read(children, (child,), by, part)
        kept = _one_each(keys, parent_codes)
    keys, parent_codes = keys.take(pa.array(kept)), [column[kept] for column in parent_codes]
    home = pc.index_in(found, keys).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    rows = np.flatnonzero(home >= 0)
    if family.order is None:
        unit = Unit(family.foreign_key, family.max_children)
        codes = [column[rows] for column in child_codes]
        rows = rows[chosen(codes, found.take(pa.array(rows)), unit)]
    sorting = [column[rows] for column in (*reversed(child_codes), *order)]
    rows = rows[np.lexsort([*sorting, home[rows]])]
    own = home[rows]
    starts = np.searchsorted(own, own)  # where the family of each child begins
    rows = rows[np.arange(rows.size) - starts < family.max_children]
    sizes = np.bincount(home[rows], minlength=len(keys)).astype(np.int64)
    if family.min_children:
        some = sizes > 0
        parent_codes, sizes = [column[some] for column in parent_codes], sizes[some]
    return EncodedFamilies(tuple(parent_codes), sizes, tuple(c[rows] for c in child_codes))


def _read(
    source: Source, schemas: Sequence[Schema], by: tuple[str, str | None], part: tuple[int, int]
) -> tuple[pa.Array, list[Codes], list[NDArray[Any]]]:
    """(the key of every row, codes, what it is ordered by, which counts most last) in one scan.

    The last of the schemas has key and order.
    """
    schemas = [with_nulls(schema, source.null_values) for schema in schemas]
    names, (key, order) = [c.name for schema in schemas for c in schema.modelled], by
    schema = schemas[-1]
    more = [key] if order is None else [key, order]
    wanted = [*names, *(name for name in more if name not in names)]

    def add(done: list[tuple[pa.Array, list[Codes], pa.Array]], batch: pa.RecordBatch) -> None:
        # Names of all families together may be longer than 2^31 letters.
        keys = pc.utf8_trim_whitespace(schema.texts(batch, key)).cast(pa.large_string())
        codes = [column for each in schemas for column in each.encode(batch)]
        at = keys[:0] if order is None else _place(batch.column(order), schema, order)
        if part[1] > 1:
            mine = turn(keys, *part)
            keys, codes = keys.filter(mine), [column[mine] for column in codes]
            at = at if order is None else at.filter(mine)
        done.append((keys, codes, at))

    parts = fold(source, wanted, list, add)
    if not parts:
        return pa.nulls(0, pa.large_string()), [np.zeros(0, np.uint8) for _ in names], []
    keys = pa.concat_arrays([part[0] for part in parts])
    codes = [np.concatenate([part[1][i] for part in parts]) for i in range(len(names))]
    return keys, codes, [] if order is None else _places([part[2] for part in parts])


def _place(array: pa.Array, schema: Schema, name: str) -> pa.Array:
    """What orders a row: trimmed text of texts, the value of other types; null where there is none."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):
        array = array.cast(pa.float64())  # of halves Arrow knows no order
        return pc.if_else(pc.is_nan(array), None, array)
    if is_number(array.type) or pa.types.is_temporal(array.type):
        return array
    texts = schema.texts(pa.record_batch([array], [name]), name)
    return pc.utf8_trim_whitespace(texts).cast(pa.large_string())


def _places(parts: Sequence[pa.Array]) -> list[NDArray[Any]]:
    """Keys to sort by, the one that counts most last; as `source.pushed.places` has them.

    Texts: plain numbers by size, then other texts by their letters, then null. Other types by value,
    null last. Dates and times that are written year first are in order by their letters.
    """
    if len({part.type for part in parts}) > 1:  # files that do not agree
        parts = [pc.cast(part, pa.large_string()) for part in parts]
    array = pa.concat_arrays(parts)
    rank = numpy_of(pc.rank(array, "ascending", tiebreaker="dense"))
    if not is_text(array.type):
        return [rank]
    number, is_number = floats(array, plain=True)
    kind = np.where(is_number, 0, 1 + pc.is_null(array).to_numpy(zero_copy_only=False))
    return [rank, np.where(is_number, number, 0.0), kind]


def _one_each(keys: pa.Array, codes: Sequence[Codes], order: Sequence[NDArray[Any]] = ()) -> Whole:
    """One row for every key, the first in their order, then of its codes; without a key none."""
    encoded = keys.dictionary_encode()
    index = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    rows = np.lexsort([*reversed(list(codes)), *order, index])
    first = np.append(True, np.diff(index[rows]) > 0)[: rows.size]
    return np.sort(rows[first & (index[rows] >= 0)])
