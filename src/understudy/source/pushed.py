"""Tables whose rows stay in an engine: it groups and counts, and counts come back.

An engine offers two things: to count (`Engine.count`: for one expression of packed cells, how many
rows have each), and before that to keep some rows of every unit. Everything else (how a table is
checked against a schema, which marginals are counted together, how tables are put together again,
what is said when the engine is lost) is here, for all engines.
"""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.columns.forms import Form, form
from understudy.errors import CountingError, SchemaError, SourceError, WorkloadError
from understudy.privacy.sensitive import Sensitive
from understudy.queries.evaluate import MAX_CELLS, Clique, cells
from understudy.quoting import named
from understudy.schema import Category, Modelled, Schema
from understudy.source.base import (
    Native,
    Sparse,
    Unreadable,
    batches,
    check_header,
    check_names,
    with_nulls,
)
from understudy.source.expressions import unions
from understudy.source.frames import to_frame
from understudy.units import Unit

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Counted",
    "Engine",
    "Held",
    "PushedCounts",
    "PushedSource",
    "columns_of",
    "held",
    "quietly",
]

Counted = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Packed cells that occur, in any order, and the number of rows in each."""


Held = Callable[[], tuple[list[str], NDArray[np.int64]]]
"""Asks an engine for the values of a column and their holders."""


class Engine(Protocol):
    """A table whose columns are encoded where they are."""

    def count(self, cliques: Sequence[Clique]) -> Iterator[Counted]:
        """The occupied cells of each clique, packed, in order; as few passes as pays.

        Raises:
            SourceError: It could not be done; the message says nothing about a row.
        """
        ...

    def keep(self, unit: Unit, null_values: Sequence[str]) -> None:
        """Count at most k rows of every unit from now on: those that `Unit` names."""
        ...


class PushedSource(ABC):
    """A table of an engine that counts where the rows are; they are never fetched for a release."""

    native: Native = "arrow"
    typed = True

    def __init__(self, columns: Sequence[str], nulls: Sequence[str], where: str) -> None:
        self.columns: tuple[str, ...] = tuple(columns)
        self.null_values = tuple(nulls)
        self._where = where
        check_names(self.columns, where)

    def describe(self) -> str:
        """Where the table is and its number of columns."""
        return f"{self._where} with {len(self.columns)} columns"

    def scans(self, names: Sequence[str]) -> Iterator[Iterator["pa.RecordBatch"]]:
        """The raw rows, for a custodian's own look; no release asks for them."""
        yield self._scan(names)

    def _scan(self, names: Sequence[str]) -> Iterator["pa.RecordBatch"]:
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

    def frame(self, table: "pa.Table") -> Any:
        """Rows as an Arrow table: synthetic ones are few, or `sample_to` writes them."""
        return to_frame(table, self.native)

    def _forms(self, schema: Schema) -> dict[str, Form]:
        """The encoding of every modelled column, for the type that it is stored in."""
        found: dict[str, Form] = {}
        for column in schema.modelled:
            name, type_ = column.name, self._type(column)
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
        if not self._names(name):
            raise SourceError(
                f"{self._where}: {what} {name!r} has type {named(self._stored(name))}; it must hold "
                f"texts or whole numbers: {self._remedy(name)}"
            )

    @abstractmethod
    def opened(self, column: str, schema: Schema) -> Held:
        """Who holds which value of a column, counted by the engine when it is asked.

        See `understudy.source.values`; types are checked now, before anything is charged.
        """

    @abstractmethod
    def _engine(self, schema: Schema) -> Engine:
        """What counts this table under a schema whose header it has."""

    @abstractmethod
    def _fetched(self, names: Sequence[str]) -> "pa.Table":
        """The raw rows; any error."""

    @abstractmethod
    def _type(self, column: Modelled) -> "pa.DataType | None":
        """The physical type of a column that a form speaks of; None where none does."""

    @abstractmethod
    def _stored(self, name: str) -> str:
        """The type of a column in the engine's own words."""

    @abstractmethod
    def _names(self, name: str) -> bool:
        """Whether a column holds texts or whole numbers, which can name somebody."""

    @abstractmethod
    def _remedy(self, name: str, wanted: str = "str") -> str:
        """How to have another type: that of a kind of columns, or of a category's values."""


class PushedCounts:
    """Exact counts by the engine's own GROUP BY."""

    def __init__(self, engine: Engine, schema: Schema) -> None:
        self.shape: tuple[int, ...] = tuple(schema.shape)
        self.unit = schema.unit
        self._engine = engine
        self._told: Callable[[int], object] | None = None

    def watch(self, told: Callable[[int], object]) -> None:
        """Have every question say how far it is, in percent of its marginals."""
        self._told = told

    def rows(self) -> Sensitive[int]:
        """The exact number of rows, sealed. One neighbour (add-remove) changes it by 1."""
        ((_, number),) = self._count([()])
        return Sensitive(int(number.sum()))

    def marginals(self, cliques: Sequence[Clique]) -> Sensitive[tuple[NDArray[np.int64], ...]]:
        """Exact marginal tables, sealed. One neighbour moves `Relation.multiplicity` of each."""
        wanted = [tuple(int(i) for i in clique) for clique in cliques]
        for clique in wanted:
            if (size := cells(self.shape, clique)) > MAX_CELLS:
                raise WorkloadError(
                    f"the marginal of columns {clique} has {size:,} cells, more than "
                    f"{MAX_CELLS:,}: take fewer columns or coarser bins"
                )
        groups = unions(self.shape, wanted)
        found: dict[Clique, NDArray[np.int64]] = {}
        for (union, members), (at, number) in zip(
            groups.items(), self._count(list(groups)), strict=True
        ):
            joint = np.zeros(cells(self.shape, union), np.int64)
            np.add.at(joint, at, number)
            joint = joint.reshape([self.shape[i] for i in union])
            for clique in members:
                dropped = tuple(axis for axis, i in enumerate(union) if i not in clique)
                found[clique] = joint.sum(axis=dropped)
        return Sensitive(tuple(found[clique] for clique in wanted))

    def sparse(self, cliques: Sequence[Clique]) -> Sensitive[tuple[Sparse, ...]]:
        """Occupied cells of marginals of any size, sealed."""
        for clique in cliques:
            if cells(self.shape, clique) >= 2**62:
                raise WorkloadError(f"the marginal of columns {clique} has 2^62 cells or more")
        tables: list[Sparse] = []
        for at, number in self._count([tuple(clique) for clique in cliques]):
            order = np.argsort(at)
            tables.append((at[order], number[order]))
        return Sensitive(tuple(tables))

    def _count(self, cliques: Sequence[Clique]) -> list[Counted]:
        found: list[Counted] = []
        try:
            for counted in self._engine.count(cliques):
                found.append(counted)
                if self._told is not None:
                    self._told(100 * len(found) // len(cliques))
            return found
        except SourceError as error:  # by now a charge may have been made
            raise CountingError(
                f"{error}; what was charged until now stays in the ledger"
            ) from None


def columns_of(table: Any) -> Counted:
    """Two whole-number columns of an Arrow table as arrays."""
    at, number = (column.to_numpy().astype(np.int64) for column in table.columns)
    return at, number


def held(table: Any) -> tuple[list[str], NDArray[np.int64]]:
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
