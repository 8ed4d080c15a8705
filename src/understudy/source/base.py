"""What a source is, and the exact counts that a bound source hands to the gate, sealed.

A source knows a table's header, which is public, and how to scan its rows, which are private. What
leaves it is either `Sensitive` or depends on the header alone: no message, no warning and no exit
code tells anything about a row.
"""

import difflib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard, TypeVar, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Clique, Whole
from understudy.errors import CountingError, SourceError, UnderstudyError
from understudy.privacy.exact import ExactCounts
from understudy.privacy.sensitive import Sensitive
from understudy.queries.evaluate import Counter, SparseCounter, counts, occupied
from understudy.quoting import named, require_names, unquoted
from understudy.schema import Schema
from understudy.source.units import chosen, shares, turn

Native: TypeAlias = Literal["arrow", "pandas", "polars"]
"""The kinds of table that rows are handed back in."""

BATCH_ROWS = 1 << 16
"""Rows that are read and encoded at once."""

Accumulator = TypeVar("Accumulator")
Codes: TypeAlias = list[NDArray[np.unsignedinteger]]
Counting = TypeVar("Counting", Counter, SparseCounter)
Weights: TypeAlias = Whole | None
"""What rows weigh; None where each weighs one."""
Sparse: TypeAlias = tuple[Whole, Whole]
"""Packed cells that occur, sorted, and their counts."""


@runtime_checkable
class Bindable(Protocol):
    """A table that answers with exact counts alone: what a release needs of a source."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The header, in the table's order; public."""
        ...

    @property
    def native(self) -> Native:
        """The kind of table that was given, in which rows are handed back; "arrow" for files."""
        ...

    @property
    def typed(self) -> bool:
        """Whether cells have types of their own; those of a text file are all texts."""
        ...

    def describe(self) -> str:
        """One line for people, without a fact about the rows."""
        ...

    def bind(self, schema: Schema) -> ExactCounts:
        """Check the header against the schema; what comes back answers with exact counts, sealed.

        Raises:
            SourceError: Columns are missing or not in the schema, or the file is damaged.
        """
        ...

    def frame(self, table: pa.Table) -> Any:
        """Hand (synthetic) rows back in the kind, and with the dtypes, that the source came in."""
        ...


def is_bindable(table: object) -> TypeGuard[Bindable]:
    """Whether a table counts for itself. Types are asked first: a frame's properties may be queries."""
    bind = inspect.getattr_static(type(table), "bind", None)
    return bind is not None and isinstance(table, Bindable)


@runtime_checkable
class Source(Bindable, Protocol):
    """A table that has been pointed at; nothing but its header has been read."""

    @property
    def null_values(self) -> tuple[str, ...]:
        """Texts that stand for null, beside those of the schema."""
        ...

    def scans(self, names: Sequence[str]) -> Iterator[Iterator[pa.RecordBatch]]:
        """Ways to read these columns once, best first; the next is tried if one is `Unreadable`.

        The rows are raw and private; files of text give texts.
        """
        ...


@runtime_checkable
class Watchable(Protocol):
    """Counts of rows that stay where they are: a question takes long and says how far it is."""

    def watch(self, told: Callable[[int], object]) -> None:
        """Have every question say how far it is: 1, 2, ..., 100 percent of the rows."""
        ...


class Unreadable(UnderstudyError):
    """One way of reading failed; says nothing about why, because why may be private."""


class Table(ABC):
    """What every source of ours shares: its public header, and how rows are handed back."""

    native: Native = "arrow"
    typed = True

    def __init__(self, columns: Sequence[str], nulls: Sequence[str], where: str) -> None:
        self.columns: tuple[str, ...] = tuple(columns)
        self.null_values = tuple(nulls)
        self._where = where
        self._dtypes: Mapping[str, Any] = {}

    def describe(self) -> str:
        """Where the table is and its number of columns."""
        return f"{self._where} with {len(self.columns)} columns"

    def bind(self, schema: Schema) -> ExactCounts:
        """Check the header; by default the rows are encoded once, and held."""
        check_header(self.columns, schema, self.describe())
        return EncodedCounts(self, schema)

    def scans(self, names: Sequence[str]) -> Iterator[Iterator[pa.RecordBatch]]:
        """By default one way."""
        yield self._scan(names)

    @abstractmethod
    def _scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The raw rows of these columns; `Unreadable` if that fails."""

    def frame(self, table: pa.Table) -> Any:
        """Rows in the kind of table, and with the dtypes, that were given."""
        from understudy.source.frames import to_frame

        return to_frame(table, self.native, self._dtypes)


class SealedCounts(ABC):
    """Exact counts of a table, wherever they are made: here, and only here, they are sealed."""

    def __init__(self, schema: Schema) -> None:
        self.shape: tuple[int, ...] = tuple(schema.shape)
        self.unit = schema.unit

    def marginals(self, cliques: Sequence[Clique]) -> Sensitive[tuple[Whole, ...]]:
        """Exact marginal tables, sealed; of (), the number of rows, or the weight of views.

        One row moves `Relation.multiplicity` cells of each by one, a unit as many as its rows do.
        """
        return Sensitive(self._dense(cliques))

    def sparse(self, cliques: Sequence[Clique]) -> Sensitive[tuple[Sparse, ...]]:
        """Occupied cells of marginals of any size, sealed."""
        return Sensitive(self._sparse(cliques))

    @abstractmethod
    def _dense(self, cliques: Sequence[Clique]) -> tuple[Whole, ...]:
        """The tables of all rows that count."""

    @abstractmethod
    def _sparse(self, cliques: Sequence[Clique]) -> tuple[Sparse, ...]:
        """Their occupied cells."""


class EncodedCounts(SealedCounts):
    """Of rows that are held in memory as codes, a byte or two a cell."""

    def __init__(self, source: "Source", schema: Schema) -> None:
        """Read the source once; raw rows are dropped as soon as they are encoded."""
        super().__init__(schema)
        schema = with_nulls(schema, source.null_values)
        self._codes, self._weights = _bounded(*_encoded(source, schema), schema)

    def records(self) -> Sensitive[Codes]:
        """Every row as codes, one array per column, sealed: for gradients."""
        return Sensitive(self._codes)

    def _dense(self, cliques: Sequence[Clique]) -> tuple[Whole, ...]:
        return counts(self._codes, self.shape, cliques, self._weights)

    def _sparse(self, cliques: Sequence[Clique]) -> tuple[Sparse, ...]:
        return occupied(self._codes, self.shape, cliques, self._weights)


class StreamedCounts(SealedCounts):
    """Of rows that stay where they are: one scan for each call."""

    def __init__(
        self,
        source: Source,
        schema: Schema,
        turns: int = 1,
        length: Callable[[], int] | None = None,
    ) -> None:
        """`turns`: scans to a question where privacy units are bounded, each for some of them.

        `length` knows about how many rows there are.
        """
        super().__init__(schema)
        self._source = source
        self._schema = with_nulls(schema, source.null_values)
        self._turns = 1 if schema.unit is None else turns
        self._length = length
        self._told: Callable[[int], object] | None = None

    def watch(self, told: Callable[[int], object]) -> None:
        """Have every question say how far it is: 1, 2, ..., 100 percent of the rows."""
        self._told = told

    def records(self) -> Sensitive[Codes]:
        """Every row as codes, sealed; a byte or two a cell are held for them."""
        parts: list[Codes] = []
        self._each_turn(lambda codes, _: parts.append(codes))
        return Sensitive([np.concatenate(column) for column in zip(*parts, strict=True)])

    def _dense(self, cliques: Sequence[Clique]) -> tuple[Whole, ...]:
        return self._count(Counter, cliques).tables()

    def _sparse(self, cliques: Sequence[Clique]) -> tuple[Sparse, ...]:
        return self._count(SparseCounter, cliques).tables()

    def _count(self, kind: type[Counting], cliques: Sequence[Clique]) -> Counting:
        """All rows that count, added up."""
        if self.unit is not None:
            counter = kind(self.shape, cliques)
            self._each_turn(counter.add)
            return counter
        every = range(len(self.shape))
        used = sorted({i for clique in cliques for i in clique}) or [0]
        used = used if set(used) <= set(every) else every  # a clique that is none is told of
        place = {column: at for at, column in enumerate(used)}
        within = [tuple(place.get(i, i) for i in clique) for clique in cliques]
        read = Schema(
            tuple(self._schema.modelled[i] for i in used), null_values=self._schema.null_values
        )
        with counting():
            return fold(
                self._source,
                _modelled(read),
                lambda: kind(read.shape, within),
                lambda counter, batch: counter.add(read.encode(batch)),
                self._teller(),
            )

    def _each_turn(self, add: Callable[[Codes, Weights], object]) -> None:
        """Hand over the rows that count with their weights, a part of the units at a time."""
        for at in range(self._turns):
            with counting():
                codes, units = _encoded(
                    self._source, self._schema, at, self._turns, self._teller(at)
                )
            add(*_bounded(codes, units, self._schema))

    def _teller(self, at: int = 0) -> Callable[[int | None], object] | None:
        """Turns rows seen in scan `at` of a question, None at its end, into percents of the whole.

        Every percent is told, in order and once, whatever the rows are: only when is theirs.
        """
        told = self._told
        if told is None or self._length is None:
            return None
        scans, total = self._turns, max(1, self._length())
        before = 100 * at // scans

        def tell(seen: int | None) -> None:
            nonlocal before
            share = 100 if seen is None else min(99, 100 * seen // total)
            now = (100 * at + share) // scans
            for percent in range(before + 1, now + 1):
                told(percent)
            before = max(before, now)

        return tell


@contextmanager
def counting() -> Iterator[None]:
    """Around what is counted for a question: by now a charge may have been made."""
    try:
        yield
    except SourceError as error:
        raise CountingError(f"{error}; what was charged until now stays in the ledger") from None


def rows_that_count(source: Source, schema: Schema) -> Codes:
    """Every row as codes, at most so many of a unit as count; private, and for no other eyes."""
    codes, units = _encoded(source, schema)
    return _bounded(codes, units, schema)[0]


def fold(
    source: Source,
    names: Sequence[str],
    start: Callable[[], Accumulator],
    add: Callable[[Accumulator, pa.RecordBatch], object],
    tell: Callable[[int | None], object] | None = None,
) -> Accumulator:
    """Add up the batches of one scan, from the start again if a way of reading fails half-way.

    `tell` hears how many rows it has seen, and None when there are no more.
    """
    for scan in source.scans(names):
        accumulator, seen = start(), 0
        try:
            with unquoted(source.describe()):
                for batch in scan:
                    add(accumulator, batch)
                    seen += batch.num_rows
                    if tell is not None:
                        tell(seen)
        except Unreadable:
            continue
        if tell is not None:
            tell(None)
        return accumulator
    raise SourceError(
        f"{source.describe()}: the rows cannot be read; a file may be damaged, or too large for "
        "memory_limit; a lazy frame may fail when it is collected"
    )


def _encoded(
    source: Source,
    schema: Schema,
    at: int = 0,
    turns: int = 1,
    tell: Callable[[int | None], object] | None = None,
) -> tuple[Codes, list[pa.Array]]:
    """The codes of one scan and, where there are privacy units, the unit of every row.

    Of several turns, only the rows of the units that have theirs.
    """
    names, unit = _modelled(schema), schema.unit
    wanted = names if unit is None else [*names, unit.column]

    def add(done: list[tuple[Codes, list[pa.Array]]], batch: pa.RecordBatch) -> None:
        codes, units = schema.encode(batch), [] if unit is None else [schema.units(batch)]
        if turns > 1 and units:
            mine = turn(units[0], at, turns)
            codes, units = [array[mine] for array in codes], [units[0].filter(mine)]
        done.append((codes, units))

    parts = fold(source, wanted, list, add, tell) or [(schema.encode(_no_rows(names)), [])]
    codes: Codes = []
    for position in range(len(names)):
        codes.append(np.concatenate([part[position] for part, _ in parts]))
        for part, _ in parts:  # a column's parts go as soon as they are joined
            part[position] = codes[-1][:0]
    return codes, [found for _, units in parts for found in units]


def _bounded(codes: Codes, units: list[pa.Array], schema: Schema) -> tuple[Codes, Weights]:
    """The rows that count, all of them or at most k of every privacy unit, and their weights."""
    if schema.unit is None:
        return codes, None
    who = pa.chunked_array(units, pa.string())
    kept = chosen(codes, who, schema.unit)
    weights = shares(who.take(pa.array(kept)), schema.unit) if schema.unit.equal else None
    return [array[kept] for array in codes], weights


def read_table(source: Source) -> pa.Table:
    """Every raw row, in any order, **private and not sealed**: for a custodian's own look.

    Only `schema draft` and `schema check`, which say that their output is not private, need this.
    """
    batches = fold(source, source.columns, list[pa.RecordBatch], list.append)
    if not batches:
        return _no_rows(source.columns)
    with unquoted(source.describe()):
        return pa.concat_tables(
            (pa.Table.from_batches([batch]) for batch in batches), promote_options="permissive"
        )


def batches(table: pa.Table) -> list[pa.RecordBatch]:
    """A table a batch at a time; a table without rows as one batch, which has its types."""
    return table.to_batches(max_chunksize=BATCH_ROWS) or [empty_batch(table.schema)]


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """No row of columns of these types, whatever they are."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def check_header(columns: Sequence[str], schema: Schema, where: str) -> None:
    """Compare a table's header with the schema. Columns that rules compute are not read, and may lack.

    A header that lacks a column, or is twice as long as it should be, may be a row or have run into
    one: its cells are told by their places, except where there are no more of them than columns
    missing, and one is nearly such a column.

    Raises:
        SourceError: Names the columns on either side, near misses and the remedy.
    """
    declared = [column.name for column in schema.columns]
    missing = [name for name in declared if name not in {*columns, *schema.computed}]
    extra = [name for name in columns if name not in declared and not schema.drop_other_columns]
    if not missing and not extra:
        return
    if missing and not set(declared) & set(columns):
        raise SourceError(
            f"{where}: none of the schema's columns ({', '.join(map(named, declared))}) is in the "
            "header. If the first line is a row, add a line with the column names above it; "
            "otherwise take the schema of this table"
        )
    near = {name: _near(name, extra) for name in missing if len(extra) <= len(missing)}
    sure = not missing and len(extra) < len(declared)
    shown = [
        named(name) if sure or name in near.values() else f"column {at}"
        for at, name in enumerate(columns, 1)
        if name in extra
    ]
    problems = []
    if missing:
        hints = (f" (is it {near[name]!r}?)" if near.get(name) else "" for name in missing)
        lacking = (named(name) + hint for name, hint in zip(missing, hints, strict=True))
        problems.append(f"the table lacks {', '.join(lacking)}")
    if extra:
        problems.append(
            f"the table has {', '.join(shown)}, not in the schema: add each to the schema, as an "
            "identifier if it should be dropped, or leave all of them out with drop_other_columns "
            "(--drop-other-columns)"
        )
        if any(each.startswith("column ") for each in shown):
            problems[-1] += ". `understudy schema check` with --data names them"
    raise SourceError(f"{where}: {'; '.join(problems)}")


def check_names(columns: Sequence[str], where: str) -> None:
    """Raise if a frame or a Parquet file has no columns, one that has no name, or two of one name."""
    require_names(columns, where)
    twice = sorted({name for name in columns if list(columns).count(name) > 1})
    if twice:
        raise SourceError(
            f"{where}: more than one column is called {', '.join(map(repr, twice))}: rename them"
        )
    if not columns:
        raise SourceError(f"{where}: the table has no columns")


def with_nulls(schema: Schema, null_values: Sequence[str]) -> Schema:
    """The schema with more texts that stand for null."""
    extra = tuple(text for text in null_values if text not in schema.null_values)
    return replace(schema, null_values=(*schema.null_values, *extra)) if extra else schema


def _modelled(schema: Schema) -> list[str]:
    return [column.name for column in schema.modelled]


def _no_rows(names: Sequence[str]) -> pa.Table:
    return pa.table({name: pa.nulls(0, pa.string()) for name in names})  # `array` imports pandas


def _near(name: str, others: Sequence[str]) -> str | None:
    """Which of the others is nearly this name."""
    lowered = {other.strip().lower(): other for other in others}
    close = difflib.get_close_matches(name.strip().lower(), list(lowered), n=1)
    return lowered[close[0]] if close else None
