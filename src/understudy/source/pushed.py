"""Exact counts of rows that stay in an engine: it groups and counts, and counts come back.

An engine offers one thing, `Engine.count`: for one expression of packed cells, how many rows have
each. Everything else (which marginals are counted together, how tables are put together again, what
is said when the engine is lost) is here, for all engines.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import CountingError, SourceError, WorkloadError
from understudy.privacy.sensitive import Sensitive
from understudy.queries.evaluate import MAX_CELLS, Clique, cells
from understudy.schema import Schema
from understudy.source.base import Sparse
from understudy.source.expressions import unions

__all__ = ["Counted", "Engine", "Held", "PushedCounts", "columns_of", "held"]

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
        """Exact marginal tables, sealed. One neighbour moves `Relation.changed_cells` of each."""
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
