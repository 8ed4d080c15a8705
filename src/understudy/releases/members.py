"""Rules between the members of made families: values that keep them, and who breaks one.

A generator keeps rules in codes. Inside a cell values are drawn one by one, so two that are compared
may still be in the wrong order; such values are drawn again, each from its own cell. All comparisons of
a family together are bounds on differences, x − y <= k; from those and the ends of the cells follow the
least and the largest value that each can have, and any value between the two leaves values for all
others (the solutions of such bounds are a lattice). A family that has none becomes a copy of another.

A rule says nothing where a member that it names is not there, or is null in a column that it names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from understudy._types import Bools, Codes, Rng, Whole
from understudy.columns.base import Modelled
from understudy.constraints.order import Order
from understudy.queries.families import At, EncodedFamilies, ViewCounts, views_of
from understudy.schema import Schema
from understudy.schema.family import FamilySchema
from understudy.schema.views import POSITIONS, positions


@dataclass(frozen=True, eq=False)
class _Tables:
    """The values of families under the names of views."""

    schema: FamilySchema
    sizes: Whole
    parents: pa.Table
    children: pa.Table

    def place(self, name: str, at: At) -> Whole:
        """Where a column of views has its values: in the table of parents or of children."""
        _, _, family = self.schema.tables
        table = name.partition(".")[0]
        return at[0] if table == family.parent else at[1 if table == family.child else 2]

    def stored(self, name: str) -> pa.ChunkedArray:
        """The column of parents or children that a column of views is of."""
        _, _, family = self.schema.tables
        table, _, own = name.partition(".")
        return (self.parents if table == family.parent else self.children).column(own)

    def column(self, name: str, at: At) -> pa.Array | pa.ChunkedArray:
        """A column of views."""
        _, _, family = self.schema.tables
        sizes = self.sizes[at[0]]
        if name == f"{family.child}.count":
            return pa.array(sizes)
        if name == f"{family.child}.position":
            starts = np.cumsum(self.sizes) - self.sizes
            index = at[1] - starts[at[0]]
            return pa.array(np.array(POSITIONS)[positions(index, sizes)], mask=at[1] < 0)
        place = self.place(name, at)
        return self.stored(name).take(pa.array(place, mask=place < 0))

    def views(self, names: Sequence[str], at: At) -> pa.Table:
        """Some columns of views."""
        return pa.table({name: self.column(name, at) for name in names})


def breaking(
    schema: FamilySchema, sizes: Whole, parents: pa.Table, children: pa.Table
) -> dict[str, Bools]:
    """Which families break each rule between members, by their values."""
    if not schema.rules:
        return {}
    rules, tables = schema.between, _Tables(schema, sizes, parents, children)
    names = sorted(rules.columns)
    found: dict[str, Bools] = {}
    for at in views_of(sizes, np.arange(sizes.size), ordered=schema.layout.ordered):
        for says, broken in rules.breaking(tables.views(names, at)).items():
            own = found.setdefault(says, np.zeros(sizes.size, np.bool_))
            own[at[0][broken]] = True
    return found


def in_order(
    schema: FamilySchema, codes: EncodedFamilies, tables: tuple[pa.Table, pa.Table], rng: Rng
) -> tuple[tuple[pa.Table, pa.Table], Bools]:
    """(parents, children) with values that keep all comparisons, and the families that have none.

    Codes stay as they are. Of families without such values the tables are left as they were.
    """
    none = np.zeros(codes.sizes.size, np.bool_)
    if not schema.compared:
        return tables, none
    system = _System(schema, codes, _Tables(schema, codes.sizes, *tables))
    wrong = np.flatnonzero(system.wrong())
    if not wrong.size:
        return tables, none
    none[wrong] = system.solve(wrong, rng)
    solved = np.zeros_like(none)
    solved[wrong] = ~none[wrong]
    return system.written(solved), none


class _System:
    """The values of all columns that are compared between members, as whole numbers in one line."""

    def __init__(self, schema: FamilySchema, codes: EncodedFamilies, tables: _Tables) -> None:
        self.schema, self.codes, self.tables = schema, codes, tables
        self.owner = np.repeat(np.arange(codes.sizes.size), codes.sizes)
        self.columns: dict[str, tuple[Order, Modelled]] = {}
        self.starts: dict[str, int] = {}
        now: list[Whole] = []
        there: list[Bools] = []
        lows: list[Whole] = []
        highs: list[Whole] = []
        for order, _ in schema.compared:
            read = order.read({name: tables.stored(name) for name in order.names})
            for column, known, valued in zip(order.columns, *read, strict=True):
                name = schema.stored(column.name)
                if name in self.columns:
                    continue
                self.columns[name] = order, column
                self.starts[name] = sum(map(len, now))
                now.append(known.astype(np.int64))
                there.append(valued)
                cells = order.cells(column, self._codes(name), valued)
                lows.append(cells[0])
                highs.append(cells[1])
        self.before, self.there = np.concatenate(now), np.concatenate(there)
        self.now = self.before.copy()
        self.low, self.high = np.concatenate(lows), np.concatenate(highs)

    def _codes(self, name: str) -> Codes:
        parents, children, family = self.schema.tables
        table, _, own = name.partition(".")
        if table == family.parent:
            return self.codes.parents[parents.position(own)]
        return self.codes.children[children.position(own)]

    def _edges(self, some: Whole) -> Iterator[tuple[Whole, Whole, int, Whole]]:
        """(x, y, k, families): value x less value y is at most k."""
        schema, tables = self.schema, self.tables
        views = ViewCounts(self.codes, schema.layout, schema.weight, schema.shape)
        for at in views_of(self.codes.sizes, some, ordered=schema.layout.ordered):
            for order, when in schema.compared:
                asked = np.ones(at[0].size, np.bool_)
                if when is not None:
                    clique, condition = when
                    codes = views.codes(*at)
                    asked = condition[tuple(codes[i] for i in clique)]
                for each in order.edges:
                    x, y = (tables.place(name, at) for name in (each.x, each.y))
                    held = asked & (x >= 0) & (y >= 0)
                    one = self.starts[schema.stored(each.x)] + x[held]
                    other = self.starts[schema.stored(each.y)] + y[held]
                    both = self.there[one] & self.there[other]
                    yield one[both], other[both], each.most, at[0][held][both]

    def wrong(self) -> Bools:
        """The families in which a comparison does not hold."""
        found = np.zeros(self.codes.sizes.size, np.bool_)
        for one, other, most, families in self._edges(np.arange(found.size)):
            found[families[self.now[one] > self.now[other] + most]] = True
        return found

    def solve(self, some: Whole, rng: Rng) -> Bools:
        """Find values for these families; which of them have none."""
        self._sort(some)
        edges = [
            (np.stack([one, other, np.full(one.size, most)]), families)
            for one, other, most, families in self._edges(some)
        ]
        lines = np.concatenate([each for each, _ in edges], axis=1)
        whose = np.concatenate([families for _, families in edges])
        number = np.full(self.codes.sizes.size, -1)
        number[some] = np.arange(some.size)
        values, turn, most = self._turns(number)
        failed = self._narrow(lines, number[whose], np.zeros(some.size, np.bool_), most)
        for t in range(int(turn.max(initial=-1)) + 1):
            lines, whose = lines[:, ~failed[number[whose]]], whose[~failed[number[whose]]]
            here = values[turn == t]
            self._choose(here, rng)
            self.low[here] = self.high[here] = self.now[here]
            failed = self._narrow(lines, number[whose], failed, most)
        return failed

    def _turns(self, number: Whole) -> tuple[Whole, Whole, int]:
        """(values of these families, whose turn it is in its family, how many a family has at most)."""
        parts = []
        for name, start in self.starts.items():
            _, _, family = self.schema.tables
            inside = name.partition(".")[0] == family.parent
            whose = np.arange(self.codes.sizes.size) if inside else self.owner
            at = np.flatnonzero(number[whose] >= 0)
            at = at[self.there[start + at]]
            parts.append(np.stack([start + at, whose[at]]))
        values, whose = np.concatenate(parts, axis=1)
        order = np.lexsort([values, whose])
        values, whose = values[order], whose[order]
        turn = np.arange(values.size) - np.searchsorted(whose, whose)
        return values, turn, int(turn.max(initial=-1)) + 1

    def _narrow(self, lines: Whole, whose: Whole, failed: Bools, most: int) -> Bools:
        """Tighten the ends of all values by the comparisons; families in which nothing is left."""
        failed, moved = failed.copy(), np.zeros(whose.size, np.bool_)
        one, other, limit = lines
        for _ in range(most + 1):
            high, low = self.high[other] + limit, self.low[one] - limit
            moved = (high < self.high[one]) | (low > self.low[other])
            if not moved.any():
                break
            np.minimum.at(self.high, one, high)
            np.maximum.at(self.low, other, low)
        else:  # ends that still move go round in a circle
            failed[whose[moved]] = True
        for ends in (one, other):
            failed[whose[self.low[ends] > self.high[ends]]] = True
        return failed

    def _choose(self, values: Whole, rng: Rng) -> None:
        """Draw values that are outside their ends."""
        off = (self.now[values] < self.low[values]) | (self.now[values] > self.high[values])
        off &= self.low[values] <= self.high[values]
        for name, start in self.starts.items():
            order, column = self.columns[name]
            end = start + len(self._codes(name))
            own = values[off & (values >= start) & (values < end)]
            if own.size:
                self.now[own] = order.between(column, self.low[own], self.high[own], rng)

    def _sort(self, some: Whole) -> None:
        """Children of one cell, in the order in which a rule wants them: what chance would give."""
        for order, when in self.schema.compared:
            for each in order.edges if when is None else ():
                x, y = self.schema.stored(each.x), self.schema.stored(each.y)
                if x != y or each.x == each.y:
                    continue
                start, ascending = self.starts[x], each.y == x
                codes = self._codes(x)
                chosen = np.isin(self.owner, some) & self.there[start : start + codes.size]
                at = np.flatnonzero(chosen)
                values = self.now[start + at]
                by = np.lexsort([values if ascending else -values, codes[at], self.owner[at]])
                slots = np.lexsort([at, codes[at], self.owner[at]])
                self.now[start + at[slots]] = values[by]

    def written(self, solved: Bools) -> tuple[pa.Table, pa.Table]:
        """The tables with the values that were found for these families, and what follows from them."""
        parents, children, family = self.schema.tables
        tables = {family.parent: self.tables.parents, family.child: self.tables.children}
        for name, start in self.starts.items():
            order, column = self.columns[name]
            table, _, own = name.partition(".")
            array = tables[table].column(own).combine_chunks()
            whose = np.arange(solved.size) if table == family.parent else self.owner
            mine = slice(start, start + whose.size)
            rows = np.flatnonzero(solved[whose] & (self.now[mine] != self.before[mine]))
            at = tables[table].schema.get_field_index(own)
            field = tables[table].schema.field(at)
            patched = order.patched(column, array, rows, self.now[mine][rows])
            tables[table] = tables[table].set_column(at, field, patched)
        return (
            _recomputed(parents, tables[family.parent]),
            _recomputed(children, tables[family.child]),
        )


def _recomputed(schema: Schema, table: pa.Table) -> pa.Table:
    """The table with the columns that follow from others as they follow from those it has."""
    for name, derived in schema.derived.items():
        arrays = {
            n: c.combine_chunks() for n, c in zip(table.column_names, table.columns, strict=True)
        }
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), derived.computed(arrays))
    return table
