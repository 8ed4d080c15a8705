"""Tables whose rows stay in an engine: it groups and counts, and counts come back.

An engine counts (`Engine.count`: for one expression of packed cells, how many rows have each), and
keeps some rows of every unit before. Everything else is here, for all engines. The encoding of a column
is compiled to an expression by one compiler, for every engine that has columns, comparisons and CASE
(`Operations`); what is compiled holds public values alone: bounds, categories, codes.
"""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from understudy._types import Clique, Whole
from understudy.columns.forms import BLANKS, Divided, Form, Pieces, Spelled, Words, form, unit_steps
from understudy.columns.reading import PLAIN_NUMBER
from understudy.columns.unmodelled import Level
from understudy.errors import SchemaError, SourceError, WorkloadError
from understudy.queries.evaluate import MAX_CELLS, cells
from understudy.quoting import named
from understudy.schema import Category, Column, Datetime, Schema
from understudy.source.base import (
    SealedCounts,
    Sparse,
    Table,
    Unreadable,
    batches,
    check_header,
    check_names,
    counting,
    with_nulls,
)
from understudy.units import Unit

Counted = tuple[Whole, Whole]
"""Packed cells that occur, in any order, and the number of rows in each."""


JOINT_CELLS = 1 << 16
"""Marginals are counted together where their columns have at most so many cells together."""

_RECENT = 8
_CELLS = 1 << 17
_MARGINALS = 16
_CELL_BYTES = 16  # a packed cell and its count
_MOST = 10_000

HeldCounts = tuple[list[str], Whole]
"""The values of a column and their holders."""


class Counting(Protocol):
    """What counts where the rows are."""

    def count(self, cliques: Sequence[Clique]) -> Iterator[Counted]:
        """The occupied cells of each clique, packed, in order; as few passes as pays.

        Raises:
            SourceError: It could not be done; the message says nothing about a row.
        """
        ...


@dataclass(frozen=True)
class Related:
    """One of two tables that belong together, in the words of its engine.

    `rows` has the family `u`, the codes `c0`, `c1`, ... and, where there is an order, what rows are
    ordered by, `o0`, `o1`, ...; `texts` says which of the latter are texts.
    """

    rows: Any
    texts: tuple[bool, ...]


class Engine(Counting, Protocol):
    """A table whose columns are encoded where they are."""

    dialect: str
    """Its name among those that count views (`source.views`)."""

    def keep(self, unit: Unit, null_values: Sequence[str]) -> None:
        """Count at most k rows of every unit from now on: those that `Unit` names."""
        ...

    def beside(self, other: "Engine") -> bool:
        """Whether one query can ask both."""
        ...

    def related(
        self, key: tuple[str, Sequence[str]], order: tuple[str, Sequence[str], pa.DataType] | None
    ) -> Related:
        """The rows whose key is there. Given are columns, what stands for null, the order's type."""
        ...

    def asking(
        self, parents: Related, children: Related
    ) -> tuple[str, str, Callable[[str], pa.Table]]:
        """How a query calls two tables of this place, and what answers it with `cell` and `number`."""
        ...


@dataclass(frozen=True)
class Asked:
    """The values of a column at a level; `nulls`, and for a unit `no_units`, are none."""

    column: str
    level: Level
    nulls: Sequence[str]
    unit: Unit | None
    no_units: Sequence[str]


class PushedSource(Table):
    """A table of an engine that counts where the rows are; they are never fetched for a release."""

    def __init__(self, columns: Sequence[str], nulls: Sequence[str], where: str) -> None:
        super().__init__(columns, nulls, where)
        check_names(self.columns, where)

    def _scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """For a custodian's own look; no release asks for rows."""
        try:
            with quietly():
                table = self._fetched(names)
        except Exception:  # noqa: BLE001  (an engine's error may quote a value)
            raise Unreadable from None
        yield from batches(table)

    def bind(self, schema: Schema) -> "PushedCounts":
        """Check the header and the types; the rows stay where they are."""
        check_header(self.columns, schema, self.describe())
        told = with_nulls(schema, self.null_values)
        engine = self._engine(told)
        if schema.unit is not None:
            self._check_named("unit", schema.unit.column)
            engine.keep(schema.unit, told.null_values)
        return PushedCounts(engine, schema)

    def related(self, schema: Schema, key: str, order: str | None) -> tuple[Engine, Related]:
        """The rows that name a family, for views; headers and types are checked, nothing is read."""
        check_header(self.columns, schema, self.describe())
        told = with_nulls(schema, self.null_values)
        columns = {column.name: column for column in schema.columns}
        nulls = {name: (*told.null_values, *column.null_values) for name, column in columns.items()}
        self._check_named("key", key)
        by = None
        if order is not None:
            type_ = self._type(order, _zoned(columns[order]))
            if type_ is None or pa.types.is_boolean(type_):
                raise SourceError(
                    f"{self._where}: order {order!r} has type {named(self._stored(order))}; it must "
                    f"hold numbers, texts, dates or times: {self._remedy(order)}"
                )
            by = (order, nulls[order], type_)
        engine = self._engine(told)
        return engine, engine.related((key, nulls[key]), by)

    def _forms(self, schema: Schema) -> dict[str, Form]:
        """The encoding of every modelled column, for the type that it is stored in."""
        found: dict[str, Form] = {}
        for column in schema.modelled:
            name, type_ = column.name, self._type(column.name, _zoned(column))
            if type_ is None:
                raise SourceError(
                    f"{self._where}: column {name!r} has type {named(self._stored(name))}, which "
                    f"understudy does not count there: {self._remedy(name)}"
                )
            try:
                found[name] = form(column, type_, schema.null_values)
            except SchemaError as error:
                wanted = type(column.values[0]).__name__ if isinstance(column, Category) else None
                remedy = self._remedy(name, wanted or column.kind)
                raise SourceError(f"{self._where}: {error}: {remedy}") from None
        return found

    def _check_named(self, what: str, name: str) -> None:
        if self._type(name) not in (pa.string(), pa.int64()):
            raise SourceError(
                f"{self._where}: {what} {name!r} has type {named(self._stored(name))}; it must hold "
                f"texts or whole numbers: {self._remedy(name)}"
            )

    def opened(self, column: str, schema: Schema) -> Callable[[Level], HeldCounts]:
        """Who holds which value of a column, counted by the engine when it is asked.

        See `understudy.source.values`; types are checked now, before anything is charged.
        """
        self._check_named("column", column)
        if schema.unit is not None:
            self._check_named("unit", schema.unit.column)
        told = with_nulls(schema, self.null_values).null_values
        (own,) = (each.null_values for each in schema.columns if each.name == column)
        nulls, unit = (*told, *own), schema.unit
        return lambda level: held(self._holders(Asked(column, level, nulls, unit, told)))

    @abstractmethod
    def _holders(self, asked: Asked) -> pa.Table:
        """The values of a column, and how many hold each.

        Of a unit's values the first k in the order of md5("{salt}|{value}|{unit}") count.
        """

    @abstractmethod
    def _engine(self, schema: Schema) -> Engine:
        """What counts this table under a schema whose header it has."""

    @abstractmethod
    def _fetched(self, names: Sequence[str]) -> pa.Table:
        """The raw rows; any error."""

    @abstractmethod
    def _type(self, name: str, zoned: bool = False) -> pa.DataType | None:
        """The physical type of a column that a form speaks of; None where none does.

        `zoned`: whether the schema takes its moments for those of a time zone.
        """

    @abstractmethod
    def _stored(self, name: str) -> str:
        """The type of a column in the engine's own words."""

    @abstractmethod
    def _remedy(self, name: str, wanted: str = "str") -> str:
        """How to have another type: that of a kind of columns, or of a category's values."""


def _zoned(column: Column) -> bool:
    return isinstance(column, Datetime) and "tz=" in column.dtype


class PushedCounts(SealedCounts):
    """Exact counts by the engine's own GROUP BY."""

    def __init__(self, engine: Counting, schema: Schema) -> None:
        super().__init__(schema)
        self._engine = engine
        self._told: Callable[[int], object] | None = None

    def watch(self, told: Callable[[int], object]) -> None:
        """Have every question say how far it is, in percent of its marginals."""
        self._told = told

    def _dense(self, cliques: Sequence[Clique]) -> tuple[Whole, ...]:
        wanted = [tuple(int(i) for i in clique) for clique in cliques]
        for clique in wanted:
            if (size := cells(self.shape, clique)) > MAX_CELLS:
                raise WorkloadError(
                    f"the marginal of columns {clique} has {size:,} cells, more than "
                    f"{MAX_CELLS:,}: take fewer columns or coarser bins"
                )
        groups = unions(self.shape, wanted)
        found: dict[Clique, Whole] = {}
        for (union, members), (at, number) in zip(
            groups.items(), self._count(list(groups)), strict=True
        ):
            joint = np.zeros(cells(self.shape, union), np.int64)
            np.add.at(joint, at, number)
            joint = joint.reshape([self.shape[i] for i in union])
            for clique in members:
                dropped = tuple(axis for axis, i in enumerate(union) if i not in clique)
                found[clique] = joint.sum(axis=dropped)
        return tuple(found[clique] for clique in wanted)

    def _sparse(self, cliques: Sequence[Clique]) -> tuple[Sparse, ...]:
        for clique in cliques:
            if cells(self.shape, clique) >= 2**62:
                raise WorkloadError(f"the marginal of columns {clique} has 2^62 cells or more")
        tables: list[Sparse] = []
        for at, number in self._count([tuple(clique) for clique in cliques]):
            order = np.argsort(at)
            tables.append((at[order], number[order]))
        return tuple(tables)

    def _count(self, cliques: Sequence[Clique]) -> list[Counted]:
        found: list[Counted] = []
        with counting():
            for counted in self._engine.count(cliques):
                found.append(counted)
                if self._told is not None:
                    self._told(100 * len(found) // len(cliques))
        return found


class Operations(Protocol):
    """What an engine can do with a column; `x` is one of its own expressions."""

    def missing(self, x: Any, form: Form) -> Any:
        """Whether it is null, or NaN."""
        ...

    def at_least(self, x: Any, start: Any, form: Pieces) -> Any:
        """x ≥ start, in the physical type of the form."""
        ...

    def among(self, x: Any, texts: Sequence[str]) -> Any:
        """Whether it is one of these texts, letter by letter."""
        ...

    def trimmed(self, x: Any, blanks: str) -> Any:
        """Without these characters at either end."""
        ...

    def text(self, x: Any) -> Any:
        """The text that a value is written as."""
        ...

    def first(self, x: Any, length: int) -> Any:
        """The first characters of a text."""
        ...

    def number(self, x: Any, pattern: str) -> tuple[Any, Any]:
        """Whether a text matches the pattern, and the double that it is where it does."""
        ...

    def clamped(self, x: Any, low: int, high: int) -> Any:
        """A whole number, moved into low..high."""
        ...

    def cases(self, branches: Sequence[tuple[Any, Any]], otherwise: Any) -> Any:
        """CASE WHEN condition THEN code ... ELSE otherwise END."""
        ...

    def whole(self, code: int) -> Any:
        """A code as a 64-bit integer."""
        ...

    def double(self, x: Any, low: float, high: float) -> Any:
        """A number as a double, moved into low..high."""
        ...

    def floor(self, x: Any) -> Any:
        """The largest whole number up to a double, as a 64-bit integer."""
        ...

    def quotient(self, x: Any, divisor: int) -> Any:
        """A whole multiple of the divisor, divided by it."""
        ...

    def microseconds(self, x: Any, low: datetime, high: datetime, form: Pieces) -> Any:
        """A day or moment, moved into low..high, in microseconds since 1970."""
        ...


def encoded(x: Any, form: Form, ops: Operations) -> Any:
    """The code of the value x, as an expression."""
    if isinstance(form, Divided):
        return _divided(x, form, ops)
    compiled = {Words: _words, Spelled: _spelled, Pieces: _pieces}
    code = compiled[type(form)](x, form, ops)
    return ops.cases([(ops.missing(x, form), ops.whole(form.missing))], code)


def _pieces(x: Any, form: Pieces, ops: Operations) -> Any:
    if (steps := unit_steps(form)) is not None:
        low, high = steps
        return ops.clamped(x, low, high) - ops.whole(low)

    def between(first: int, last: int) -> Any:
        """The code among pieces first..last, by halving."""
        if first == last:
            return ops.whole(form.codes[first])
        middle = (first + last + 1) // 2
        reached = ops.at_least(x, form.starts[middle - 1], form)
        return ops.cases([(reached, between(middle, last))], between(first, middle - 1))

    return between(0, len(form.starts))


_FAR = 2.0**62


def _divided(x: Any, form: Divided, ops: Operations) -> Any:
    """Its cell, and the kind of the point of x."""
    if isinstance(form.over, Spelled):
        return _divided_text(x, form, form.over, ops)
    cell, point, last = encoded(x, form.over, ops), _point(x, form, ops), len(form.kinds)
    fits = [_leaves(point, *kind, ops) for kind in form.kinds]
    first = ops.cases([(holds, ops.whole(at)) for at, holds in enumerate(fits)], ops.whole(last))
    branches = [
        (ops.missing(x, form.over), ops.whole(form.missing)),
        (cell < ops.whole(form.cells), cell * ops.whole(last + 1) + first),
    ]
    return ops.cases(branches, cell + ops.whole(form.cells * last))


def _leaves(point: Any, step: int, rest: int, ops: Operations) -> Any:
    """Whether a step leaves a rest of the absolute value of a point."""
    past = point % ops.whole(step)  # of a negative point it is negative, in all engines
    found = past == ops.whole(rest)
    return found | (past == ops.whole(-rest)) if rest else found


def _divided_text(x: Any, form: Divided, over: Spelled, ops: Operations) -> Any:
    """The same of a text: only one that is a plain number is ever read as one."""
    after = form.cells * len(form.kinds)
    words = {text: code + after for text, code in over.words.items()}
    return _told_apart(
        x,
        replace(over, words=words, missing=form.missing),
        lambda number: _divided(number, replace(form, over=over.pieces), ops),
        ops,
    )


def _point(x: Any, form: Divided, ops: Operations) -> Any:
    """The point that a column reads x as."""
    low, high = form.ends
    if form.tick is not None:
        assert isinstance(form.over, Pieces)
        micros, tick = ops.microseconds(x, low, high, form.over), ops.whole(form.tick)
        past = micros % tick
        before = micros - ops.cases([(past < ops.whole(0), past + tick)], past)  # rounded down
        return ops.quotient(before, form.tick)
    if pa.types.is_integer(form.type) and form.scale == 1:
        return ops.clamped(x, low, high)
    far = _FAR / form.scale
    times = ops.double(x, -far, far) * float(form.scale)
    below = ops.floor(times)
    half = times - below  # a tie goes to the even one
    up = (half > 0.5) | ((half == 0.5) & (below % ops.whole(2) != ops.whole(0)))
    return ops.clamped(ops.cases([(up, below + ops.whole(1))], below), low, high)


def _words(x: Any, form: Words, ops: Operations) -> Any:
    x = x if pa.types.is_string(form.type) else ops.text(x)
    bare = ops.trimmed(x, BLANKS)
    branches = _listed(x, form.exact, ops)
    if form.missing != form.otherwise or form.trimmed or form.parents:
        blank = ops.among(x, form.blanks) | ops.among(bare, form.blanks)
        branches.append((blank, ops.whole(form.missing)))
    branches += _listed(bare, form.trimmed, ops)
    for length, codes in form.parents:
        branches += _listed(ops.first(x, length), codes, ops)
    return ops.cases(branches, ops.whole(form.otherwise))


def _spelled(x: Any, form: Spelled, ops: Operations) -> Any:
    return _told_apart(x, form, lambda number: _pieces(number, form.pieces, ops), ops)


def _told_apart(x: Any, form: Spelled, code: Callable[[Any], Any], ops: Operations) -> Any:
    """Blanks, words, and the code of plain numbers; nothing else is read as a number."""
    bare = ops.trimmed(x, BLANKS)
    is_number, number = ops.number(bare, PLAIN_NUMBER)
    blank = ops.among(x, form.blanks) | ops.among(bare, form.blanks)
    branches = [(blank, ops.whole(form.missing)), *_listed(bare, form.words, ops)]
    branches.append((is_number, code(number)))
    return ops.cases(branches, ops.whole(form.missing))


def _listed(x: Any, codes: Mapping[str, int], ops: Operations) -> list[tuple[Any, Any]]:
    by_code: dict[int, list[str]] = {}
    for text, code in codes.items():
        by_code.setdefault(code, []).append(text)
    return [(ops.among(x, texts), ops.whole(code)) for code, texts in by_code.items()]


def told(x: Any, nulls: Sequence[str], ops: Operations) -> Any:
    """Whether a text, or what can be written as one, is there and none that stands for null."""
    blanks = ["", *nulls]
    blank = ops.among(x, blanks) | ops.among(ops.trimmed(x, BLANKS), blanks)
    return ~(ops.missing(x, Pieces(pa.string(), (), (0,), 0)) | blank)


def places(x: Any, type_: pa.DataType, nulls: Sequence[str], ops: Operations) -> list[Any]:
    """What orders children by a column: expressions, the first of which counts most.

    Texts: plain numbers by size, then other texts by their letters, then null. Other types by value,
    null last.
    """
    if not pa.types.is_string(type_):
        absent = ops.missing(x, Pieces(type_, (), (0,), 0))
        kind = ops.cases([(absent, ops.whole(1))], ops.whole(0))
        return [kind, ops.cases([(~absent, x)], None)]
    there, bare = told(x, nulls, ops), ops.trimmed(x, BLANKS)
    is_number, number = ops.number(bare, PLAIN_NUMBER)
    kind = ops.cases([(~there, ops.whole(2)), (is_number, ops.whole(0))], ops.whole(1))
    size = ops.cases([(there & is_number, number)], None)
    return [kind, size, ops.cases([(there, bare)], None)]


def packed(codes: Sequence[Any], shape: Sequence[int], clique: Clique, ops: Operations) -> Any:
    """The cell of the marginal of `clique` as one integer, as `queries.evaluate` packs it."""
    cell = ops.whole(0)
    for depth, column in enumerate(clique):
        cell = codes[column] if depth == 0 else cell * ops.whole(shape[column]) + codes[column]
    return cell


def unions(shape: Sequence[int], cliques: Sequence[Clique]) -> dict[Clique, list[Clique]]:
    """Cliques that are counted together: the union of each group, and its members.

    A union has at most `JOINT_CELLS` cells, or is itself one of the cliques: so no more comes back
    than a marginal, and nothing as fine as rows. Every clique joins the group that grows least by
    it, of the last few: cliques that begin alike follow each other.
    """
    groups: dict[Clique, list[Clique]] = {}
    recent: list[Clique] = []
    for clique in sorted(set(cliques)):
        best: tuple[int, Clique, Clique] | None = None
        for union in recent:
            joined = tuple(sorted({*union, *clique}))
            size = cells(shape, joined)
            if joined in (union, clique) or size <= JOINT_CELLS:
                grown = size - cells(shape, union)
                if best is None or grown < best[0]:
                    best = (grown, union, joined)
        if best is None:
            joined, members = clique, [clique]
        else:
            joined, members = best[2], [*groups.pop(best[1]), clique]
            recent.remove(best[1])
        if joined in groups:  # two groups have grown into one
            members = [*groups.pop(joined), *members]
            recent = [union for union in recent if union != joined]
        groups[joined] = members
        recent = [*recent[1 - _RECENT :], joined]
    return groups


def cells_per_pass(shape: Sequence[int], cliques: Sequence[Clique]) -> list[list[Clique]]:
    """Which marginals share a pass: few enough that the executors count them in small tables."""
    batches: list[list[Clique]] = []
    held = 0
    for clique in cliques:
        size = cells(shape, clique)
        if not batches or held + size > _CELLS or len(batches[-1]) == _MARGINALS:
            batches.append([])
            held = 0
        batches[-1].append(clique)
        held += size
    return batches


@dataclass(frozen=True)
class EngineCost:
    """One engine: how often it goes over the rows, and what it hands back at most."""

    engine: str
    passes: int
    rows: int
    """Rows gone over, all passes together."""
    bytes_back: int
    """What leaves the engine's process or server: occupied cells. Rows never do."""
    held: int
    """Bytes of encoded rows that this process keeps."""

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        return asdict(self)


def engine_costs(
    shape: Sequence[int], cliques: Sequence[Clique], rows: int
) -> tuple[EngineCost, ...]:
    """What counting a workload once costs where the rows are.

    For the table in memory, streamed from files by DuckDB, in a database, and on Spark. Follows from
    schema, workload and `rows`, an assumption; nothing is connected to or read. A method that looks at
    marginals beyond the workload counts more.
    """
    width = sum(np.min_scalar_type(max(size - 1, 0)).itemsize for size in shape)
    wanted = list(dict.fromkeys(tuple(clique) for clique in cliques))
    # Where there are very many, they are taken as they come: that groups would save a few.
    groups = list(unions(shape, wanted)) if len(wanted) <= _MOST else wanted
    back = sum(_CELL_BYTES * min(rows, cells(shape, union)) for union in groups)
    shared = len(cells_per_pass(shape, groups))
    return (
        EngineCost("memory", 1, rows, 0, rows * width),
        EngineCost("duckdb", 1, rows, 0, 0),
        EngineCost("sql", len(groups), len(groups) * rows, back, 0),
        EngineCost("spark", shared, shared * rows, back, 0),
    )


def columns_of(table: Any) -> Counted:
    """Two whole-number columns of an Arrow table as arrays."""
    at, number = (column.to_numpy().astype(np.int64) for column in table.columns)
    return at, number


def in_one_pass(
    shape: Sequence[int],
    cliques: Sequence[Clique],
    ask: Callable[[Sequence[tuple[Clique, int]]], Any],
) -> Iterator[Counted]:
    """The cells of some marginals, which `ask` counts together, each from its own start on."""
    for batch in cells_per_pass(shape, cliques):
        ends = np.cumsum([cells(shape, clique) for clique in batch])
        starts = [0, *(int(end) for end in ends[:-1])]
        at, number = columns_of(ask(list(zip(batch, starts, strict=True))))
        which = np.searchsorted(ends, at, side="right")
        for i, start in enumerate(starts):
            yield at[which == i] - start, number[which == i]


def held(table: Any) -> tuple[list[str], Whole]:
    """Values and their holders from an Arrow table of the two, in the order of the values."""
    texts, number = (column.to_pylist() for column in table.columns)
    pairs = sorted(zip(texts, number, strict=True), key=lambda pair: pair[0].encode())
    return [text for text, _ in pairs], np.array([n for _, n in pairs], dtype=np.int64)


@contextmanager
def quietly() -> Iterator[None]:
    """Drivers warn of things that are none of the user's doing, and a warning may quote a value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
