"""Two tables, parents and their children, as one source: exact counts of the views of families.

Rows that cannot belong to a family are dropped, each in a way that depends on its own family alone:
parents without a key, children whose key no parent has, and of parents with the same key all but one,
the first in the order of its codes. Of more than `max_children` children the first ones in their order
count, or, without an order, a random choice (`understudy.units`); children that the order does not tell
apart follow each other by their codes. So when a family enters or leaves, with all rows of its key in
both tables, the counts of no other family move.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Clique, Codes
from understudy.columns.arrow import pc
from understudy.errors import SourceError
from understudy.privacy.sensitive import Sensitive
from understudy.queries.families import EncodedFamilies, ViewCounts
from understudy.schema import Schema
from understudy.schema.family import FamilySchema
from understudy.source.base import Native, Source, check_header, fold, with_nulls
from understudy.source.units import chosen
from understudy.units import Unit

__all__ = ["FamilySource", "families_of"]


class FamilyCounts:
    """Exact counts of views, sealed; rows are not handed over one by one."""

    def __init__(self, views: ViewCounts, schema: Schema) -> None:
        self.shape: tuple[int, ...] = tuple(schema.shape)
        self.unit = schema.unit
        self._views = views

    def rows(self) -> Sensitive[int]:
        """The weight of all views. One family moves it by at most `unit.max_rows`."""
        return Sensitive(self._views.total)

    def marginals(self, cliques: Sequence[Clique]) -> Sensitive[tuple[NDArray[np.int64], ...]]:
        """Exact tables of the views' weights."""
        return Sensitive(self._views.tables(cliques))

    def sparse(
        self, cliques: Sequence[Clique]
    ) -> Sensitive[tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]]:
        """Occupied cells of tables of any size."""
        return Sensitive(self._views.sparse(cliques))


class FamilySource:
    """A table of parents and one of children. Nothing but their headers has been read."""

    native: Native = "arrow"

    def __init__(self, parents: Source, children: Source) -> None:
        self._parents, self._children = parents, children
        self.columns = (*parents.columns, *children.columns)
        self.typed = parents.typed and children.typed

    def describe(self) -> str:
        """Both tables in one line."""
        return f"{self._parents.describe()} and {self._children.describe()}"

    def bind(self, schema: Schema) -> FamilyCounts:
        """Check both headers, read both tables once; what is kept are codes."""
        if not isinstance(schema, FamilySchema):
            raise SourceError(
                f"{self.describe()}: the schema is of one table; a schema of two has version = 2 and "
                f"[[table]] entries"
            )
        families = families_of(self._parents, self._children, schema)
        return FamilyCounts(
            ViewCounts(families, schema.layout, schema.weight, schema.shape), schema
        )

    def frame(self, table: pa.Table) -> Any:
        """Arrow, as it is."""
        return table


def families_of(parents: Source, children: Source, schema: FamilySchema) -> EncodedFamilies:
    """The families of two tables as codes: **private, and not sealed**."""
    parent, child, family = schema.tables
    check_header(parents.columns, parent, parents.describe())
    check_header(children.columns, child, children.describe())
    keys, parent_codes, _ = _read(parents, parent, family.key)
    found, child_codes, order = _read(children, child, family.foreign_key, family.order)
    kept = _one_each(keys, parent_codes)
    keys, parent_codes = keys.take(pa.array(kept)), [column[kept] for column in parent_codes]
    home = pc.index_in(found, keys).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    rows = np.flatnonzero(home >= 0)
    if order is None:
        unit = Unit(family.foreign_key, family.max_children)
        codes = [column[rows] for column in child_codes]
        rows = rows[chosen(codes, found.take(pa.array(rows)), unit)]
        by = [column[rows] for column in reversed(child_codes)]
    else:
        by = [*(column[rows] for column in reversed(child_codes)), order[rows]]
    rows = rows[np.lexsort([*by, home[rows]])]
    own = home[rows]
    starts = np.searchsorted(own, own)  # where the family of each child begins
    rows = rows[np.arange(rows.size) - starts < family.max_children]
    sizes = np.bincount(home[rows], minlength=len(keys)).astype(np.int64)
    if family.min_children:
        some = sizes > 0
        parent_codes, sizes = [column[some] for column in parent_codes], sizes[some]
    return EncodedFamilies(tuple(parent_codes), sizes, tuple(c[rows] for c in child_codes))


def _read(
    source: Source, schema: Schema, key: str, order: str | None = None
) -> tuple[pa.Array, list[Codes], NDArray[Any] | None]:
    """(the key of every row, codes, where it stands in the order) in one scan."""
    schema = with_nulls(schema, source.null_values)
    names = [column.name for column in schema.modelled]
    more = [key] if order is None else [key, order]
    wanted = [*names, *(name for name in more if name not in names)]

    def add(done: list[tuple[pa.Array, list[Codes], pa.Array]], batch: pa.RecordBatch) -> None:
        keys = pc.utf8_trim_whitespace(schema.texts(batch, key))
        places = keys[:0] if order is None else schema.texts(batch, order)
        done.append((keys, list(schema.encode(batch)), places))

    parts = fold(source, wanted, list, add)
    if not parts:
        empty = pa.nulls(0, pa.string())
        return empty, [np.zeros(0, np.uint8) for _ in names], None if order is None else np.zeros(0)
    keys = pa.concat_arrays([part[0] for part in parts])
    codes = [np.concatenate([part[1][i] for part in parts]) for i in range(len(names))]
    if order is None:
        return keys, codes, None
    return keys, codes, _places(pa.concat_arrays([part[2] for part in parts]))


def _places(texts: pa.Array) -> NDArray[np.int64]:
    """Ranks of texts: numbers by their size, then everything else by its letters, then null.

    Dates and times that are written year first are in order by their letters.
    """
    encoded = texts.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    order = sorted(range(len(values)), key=lambda i: _sorting(values[i]))
    ranks = np.empty(len(values) + 1, np.int64)
    ranks[order] = np.arange(len(values))
    ranks[-1] = len(values)
    return ranks[encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)]


def _sorting(text: str) -> tuple[int, float, str]:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    # NaN is no number here: it has no place among others, and would move those of every family.
    return (1, 0.0, text) if math.isnan(number) else (0, number, text)


def _one_each(keys: pa.Array, codes: Sequence[Codes]) -> NDArray[np.int64]:
    """One row for every key, the first in the order of its codes; rows without a key are none."""
    encoded = keys.dictionary_encode()
    index = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    order = np.lexsort([*reversed(list(codes)), index])
    first = np.append(True, np.diff(index[order]) > 0)[: order.size]
    return np.sort(order[first & (index[order] >= 0)])
