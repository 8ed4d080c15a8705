"""How many rows belong to one person or thing: what a custodian needs to know to choose the unit.

NOT PRIVATE. It is shown to whoever may see the rows, and never written into a schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.columns import Identifier
from understudy.draft.names import Name
from understudy.schema.schema import Schema
from understudy.source import read, read_table
from understudy.units import Unit
from understudy.wording import percent

_CHOICES = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
_HARDLY = 0.005
_USUAL = 1000
"""Rows of a value, on average, beyond which a column that was left out tells nobody apart."""


@dataclass(frozen=True)
class RowsPerUnit:
    """How often the values of one identifier occur: NOT PRIVATE, exact counts of rows.

    `choices` are pairs of a `max_rows` and the rows that it would leave out, up to the first that
    leaves out none, and `whole` how many units have no more rows than that. Rows without a value are
    always left out (`nameless`).
    """

    column: str
    units: int
    rows: int
    nameless: int
    most: int
    choices: tuple[tuple[int, int], ...]
    limit: str = "max_rows"
    whole: tuple[int, ...] = ()

    @property
    def repeats(self) -> bool:
        """Whether it tells people apart, and somebody has more than one row."""
        return self.most > 1 < self.units

    @property
    def several(self) -> str:
        """How many values, and rows of one, in words."""
        each = "1 row" if self.most == 1 else f"{self.most:,} rows"
        many = f"{self.units:,} values in {self.rows:,} rows, at most {each} each"
        nameless = f"; {self.nameless:,} rows without a value are left out" if self.nameless else ""
        return f"{self.column}: {many}{nameless}"

    def sensible(self) -> Iterator[tuple[int, str]]:
        """Those of `choices` up to the first that leaves out hardly any row, with what each means."""
        enough = next((k for k, n in self.choices if n <= _HARDLY * self.rows), self.most)
        for (most, dropped), whole in zip_longest(self.choices, self.whole):
            if most > enough:
                return
            told = (
                [f"all rows of {100 * whole // self.units} % of them"] if whole is not None else []
            )
            told.append(
                f"{percent(dropped / self.rows) if dropped else 'none'} of the rows left out"
            )
            told.append("the noise of 1 row" if most == 1 else f"{most} times the noise of 1")
            rows = "1 row" if most == 1 else f"{most} rows"
            yield most, f"at most {rows} of each {self.column}: {'; '.join(told)}"

    def __str__(self) -> str:
        shares = [(k, n, f" ({percent(n / self.rows)})" if n else "") for k, n in self.choices]
        dropped = ", ".join(f"{k} drops {n:,}{share}" for k, n, share in shares) + " rows"
        return f"{self.several}; {self.limit} = {dropped}"


def about_rows(schema: Schema, rows: int | None, seen: Sequence[RowsPerUnit]) -> int | None:
    """About how many rows or units count, in two digits, to assume in a plan: NOT PRIVATE.

    `rows` are those of the table; None where it is not known.
    """
    unit = schema.unit
    found = next((f for f in seen if unit and (unit.family or f.column == unit.column)), None)
    if unit is not None and found is not None:
        left_out = [many for most, many in found.choices if most <= unit.kept][-1]
        rows = found.units if unit.family or unit.equal else found.rows - left_out
    return None if rows is None else int(float(f"{rows:.1e}"))


def rows_per_unit(schema: Schema, data: Any) -> tuple[RowsPerUnit, ...]:
    """What each `max_rows` would leave out, for every identifier with several rows: NOT PRIVATE.

    Those named like persons first, then those with most rows each: a number that two rows share by
    chance tells nobody apart.
    `data` is what `draft` takes. Units are told apart as a release does it.
    """
    found = counted(schema, read_table(read(data)))
    some = [each for each in found if each.repeats and each.rows <= _USUAL * each.units]
    some.sort(key=lambda each: (not Name(each.column).of_a_person, each.units / each.rows))
    return tuple(some)


def counted(schema: Schema, table: pa.Table) -> Iterator[RowsPerUnit]:
    """The same of every identifier of the schema that the table has: NOT PRIVATE."""
    for column in schema.columns:
        if isinstance(column, Identifier) and column.name in table.schema.names:
            yield per_unit(schema, table, column.name)


def per_unit(schema: Schema, table: pa.Table, name: str, limit: str = "max_rows") -> RowsPerUnit:
    """The same of one identifier; `limit` is what a number of rows is called."""
    units = schema.protecting(Unit(name, 1)).units(table)
    counts = np.array(units.drop_null().value_counts().field(1), np.int64)
    most, nameless = int(counts.max(initial=0)), units.null_count
    offered = [k for k in _CHOICES if k < most]
    offered.append(next((k for k in _CHOICES if k >= most), most))
    dropped = tuple((k, int(np.maximum(counts - k, 0).sum())) for k in offered)
    whole = tuple(int((counts <= k).sum()) for k in offered)
    return RowsPerUnit(name, len(counts), int(counts.sum()), nameless, most, dropped, limit, whole)
