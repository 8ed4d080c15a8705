"""Views of families (`understudy.schema.family`) counted by the engine that holds both tables.

One query text serves DuckDB, PostgreSQL and Spark (docs/sources.md). It starts from two relations of
the engine's own, parents (u, c0, c1, …) and children (u, c0, c1, …, and o0, o1, … where they have an
order): the family's key, codes, and what a child is ordered by. Which rows count is what
`source.families` says, word for word, so all engines and memory give the same integers. A view weighs
⌊M / d⌋, and weights are added up in 64 bits. The text holds public numbers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from understudy._types import Clique
from understudy.queries.families import level_of
from understudy.schema.family import POSITIONS, FamilySchema
from understudy.source.pushed import Counted, in_one_pass

_ONLY, _FIRST, _MIDDLE, _LAST = range(len(POSITIONS))


@dataclass(frozen=True)
class Dialect:
    """The words in which engines differ."""

    divided: str
    """Between two whole numbers: their quotient, rounded down."""
    spread: str
    """One row for every entry of a list."""
    letters: str
    """A text, compared letter by letter."""
    text: str
    """The type of texts."""


DIALECTS = {
    "duckdb": Dialect("//", "unnest([{}])", '{} COLLATE "C"', "text"),
    "postgres": Dialect("/", "unnest(ARRAY[{}])", '{} COLLATE "C"', "text"),
    "spark": Dialect("div", "explode(array({}))", "{}", "string"),  # texts of others are refused
}
"""The engines that count views."""


@dataclass(frozen=True)
class ViewEngine:
    """Counts views; an `Engine` of `source.pushed`.

    `ask` has the engine answer a query, in which `parents` and `children` are the texts of what it
    calls the two relations; `orders` are the names of a child's columns that order it, True where it
    is a text.
    """

    schema: FamilySchema
    dialect: Dialect
    parents: str
    children: str
    orders: tuple[bool, ...]
    ask: Callable[[str], pa.Table]

    def count(self, cliques: Sequence[Clique]) -> Iterator[Counted]:
        """The weights of the occupied cells of each clique, in order; many share a query."""
        return in_one_pass(self.schema.shape, cliques, lambda tables: self.ask(self.query(tables)))

    def check(self) -> None:
        """Have the engine understand the query, on no rows."""
        widest = self.query([((i,), 0) for i in range(len(self.schema.shape))])
        self.ask(f"SELECT * FROM ({widest}) AS tried LIMIT 0")

    def query(self, tables: Sequence[tuple[Clique, int]]) -> str:
        """What gives the weights of all occupied cells of these tables, each from its start on."""
        level = max(level_of(clique, self.schema.layout) for clique, _ in tables)
        within = [self._cell(clique, start) for clique, start in tables]
        listed = self.dialect.spread.format(", ".join(within)) if len(within) > 1 else within[0]
        parents, children = len(self.schema.layout.parent), len(self.schema.layout.child)
        places = [f"o{i}" for i in range(len(self.orders))]
        steps = {
            "p": self._told_apart(self.parents, _codes(parents)),
            "c": self._told_apart(self.children, [*_codes(children), *places]),
            "one": self._one(),
            **self._kept(level),
        }
        steps["views"] = self._views(level, sorted({i for clique, _ in tables for i in clique}))
        steps["spread"] = f"SELECT w, {listed} AS cell FROM views"
        named = ",\n".join(f"{name} AS ({text})" for name, text in steps.items())
        added = "CAST(SUM(w) AS bigint) AS number"
        return f"WITH {named}\nSELECT cell, {added} FROM spread GROUP BY cell"

    def _cell(self, clique: Clique, start: int) -> str:
        cell = "0"
        for depth, i in enumerate(clique):
            cell = f"v{i}" if depth == 0 else f"({cell}) * {self.schema.shape[i]} + v{i}"
        return f"CAST({cell} AS bigint) + {start}"

    def _told_apart(self, rows: str, columns: Sequence[str]) -> str:
        """Rows with keys that are one only if all their letters are, whatever their collation says."""
        key = self.dialect.letters.format("u")
        return f"SELECT {key} AS u, {', '.join(columns)} FROM ({rows}) AS given"

    def _one(self) -> str:
        """One parent for every key."""
        own = ", ".join(_codes(len(self.schema.layout.parent)))
        numbered = f"SELECT p.*, ROW_NUMBER() OVER (PARTITION BY u ORDER BY {own}) AS n FROM p"
        return f"SELECT * FROM ({numbered}) AS numbered WHERE n = 1"

    def _kept(self, level: int) -> dict[str, str]:
        """The children that count, with their place from 1 on and s, how many they are."""
        _, _, family = self.schema.tables
        most, codes = family.max_children, _codes(len(self.schema.layout.child))
        own = ", ".join(codes)
        if level == 0:
            return {"kept": f"SELECT u, LEAST(COUNT(*), {most}) AS s FROM c GROUP BY u"}
        counted = "COUNT(*) OVER (PARTITION BY u) AS many"
        text, letters = self.dialect.text, self.dialect.letters
        if family.order is None:
            alike = f"ROW_NUMBER() OVER (PARTITION BY u, {own} ORDER BY c0) AS n"
            listed = " || ',' || ".join(f"CAST({code} AS {text})" for code in codes)
            hashed = f"md5('|' || {listed} || '|' || CAST(n AS {text}) || '|' || u)"
            # Where all count, their order moves nothing.
            chosen = f"CASE WHEN many > {most} THEN {hashed} ELSE '' END AS h"
            steps = {
                "numbered": f"SELECT c.*, {alike}, {counted} FROM c",
                "hashed": f"SELECT numbered.*, {chosen} FROM numbered",
            }
            by, source = f"{letters.format('h')}, {own}, n", "hashed"
        else:
            steps = {"numbered": f"SELECT c.*, {counted} FROM c"}
            first = (letters.format(f"o{i}") if t else f"o{i}" for i, t in enumerate(self.orders))
            by, source = ", ".join([*first, own]), "numbered"
        place = f"ROW_NUMBER() OVER (PARTITION BY u ORDER BY {by}) AS place"
        steps["placed"] = f"SELECT {source}.*, {place} FROM {source}"
        s = f"LEAST(many, {most}) AS s"
        before = ""
        if family.order is not None:
            over = "OVER (PARTITION BY u ORDER BY place)"
            before = "".join(f", LAG({code}) {over} AS b{code}" for code in codes)
        steps["kept"] = f"SELECT u, {own}, place, {s}{before} FROM placed WHERE place <= {most}"
        return steps

    def _views(self, level: int, wanted: Sequence[int]) -> str:
        """Views with the columns asked for and their weight w; coarser where no column is finer."""
        layout, shape = self.schema.layout, self.schema.shape
        least = int(not layout.childless)
        s = "COALESCE(kept.s, 0)"
        made = {i: f"one.c{k}" for k, i in enumerate(layout.parent)}
        made[layout.size] = f"{s} - {least}"
        for k, i in enumerate(layout.child):
            made[i] = f"COALESCE(kept.c{k}, {shape[i] - 1})"
        other = "kept.bc" if layout.ordered else "other.c"
        for k, i in enumerate(layout.sibling):
            if i is not None:
                made[i] = f"COALESCE({other}{k}, {shape[i] - 1})"
        if layout.pos is not None:
            made[layout.pos] = (
                f"CASE WHEN {s} = 0 THEN {len(POSITIONS)} WHEN {s} = 1 THEN {_ONLY} "
                f"WHEN kept.place = 1 THEN {_FIRST} WHEN kept.place = {s} THEN {_LAST} "
                f"ELSE {_MIDDLE} END"
            )
        divisor = f"GREATEST({s}, 1)" if layout.ordered else f"GREATEST({s} * ({s} - 1), 1)"
        each = f"(CAST({self.schema.weight} AS bigint) {self.dialect.divided} {divisor})"
        times = {0: divisor, 1: "1" if layout.ordered else f"GREATEST({s} - 1, 1)"}.get(level, "1")
        columns = ", ".join([*(f"{made[i]} AS v{i}" for i in wanted), f"{each} * {times} AS w"])
        joined = f"one {'INNER' if least else 'LEFT'} JOIN kept ON kept.u = one.u"
        if level == 2 and not layout.ordered:
            joined += " LEFT JOIN kept AS other ON other.u = kept.u AND other.place <> kept.place"
        return f"SELECT {columns} FROM {joined}"


def _codes(number: int) -> list[str]:
    return [f"c{i}" for i in range(number)]
