"""Who holds which value of a column whose values nobody could list: sealed, for private discovery."""

from collections.abc import Sequence
from copy import copy

import numpy as np
import pyarrow as pa

from understudy._types import Whole
from understudy.columns.unmodelled import Level
from understudy.privacy.sensitive import Sensitive
from understudy.schema import Schema, UndeclaredCategory
from understudy.source.base import Source, counting, fold, with_nulls
from understudy.source.pushed import PushedSource
from understudy.units import Unit


class Holders:
    """The values of open columns and how many units hold each, from one scan of the source.

    Where there are units, each holds at most k = `max_rows` of its values: the first in the order of
    md5("{salt}|{value}|{unit}"), which depends on the unit's own rows alone. Rows without a unit, and
    nulls, hold nothing. Without units every row holds its value.
    """

    def __init__(self, source: Source, schema: Schema) -> None:
        self.unit: Unit | None = schema.unit
        self._level = Level()
        self._source = source
        self._schema = with_nulls(schema, source.null_values)
        # Engines that count where the rows are; what they cannot count is refused here.
        self._pushed = {
            column.name: source.opened(column.name, self._schema)
            for column in schema.undeclared
            if isinstance(source, PushedSource) and isinstance(column, UndeclaredCategory)
        }

    def at(self, level: Level) -> "Holders":
        """The same at a level: a value is the beginning of a text that no earlier level has taken."""
        other = copy(self)
        other._level = level
        return other

    def holders(self, column: str) -> Sensitive[tuple[Sequence[str], Whole]]:
        """Every value that occurs, and its holders. One unit adds 1 to at most k of them."""
        if column in self._pushed:
            with counting():
                return Sensitive(self._pushed[column](self._level))
        schema, unit = self._schema, self.unit
        names = [column] if unit is None else [unit.column, column]

        def add(done: list[pa.Table], batch: pa.RecordBatch) -> None:
            cells = {"v": schema.texts(batch, column)}
            if unit is None:  # equal pairs go at once, counted where there are no units
                made = pa.table(cells).drop_null().group_by(["v"]).aggregate([([], "count_all")])
            else:
                pairs = pa.table({"u": schema.units(batch), **cells}).drop_null()
                made = pairs.group_by(["u", "v"]).aggregate([])
            done.append(made)

        with counting():
            parts = fold(self._source, names, list[pa.Table], add)
        if not parts:
            return Sensitive(([], np.zeros(0, np.int64)))
        return Sensitive(_counted(pa.concat_tables(parts), unit, self._level))


def _counted(pairs: pa.Table, unit: Unit | None, level: Level) -> tuple[list[str], Whole]:
    import duckdb

    left = "left(v, $length)" if level.length else "v"
    values: dict[str, object] = {"length": level.length} if level.length else {}
    conditions = ["length(v) >= $length"] if level.length else []
    for at, (length, taken) in enumerate(level.taken):
        beginning = f"left(v, {length:d})" if length else "v"
        conditions.append(f"NOT list_contains($taken{at}, {beginning})")
        values[f"taken{at}"] = list(taken)
    remaining = f"FROM pairs WHERE {' AND '.join(['true', *conditions])}"
    if unit is None:
        asked = f"SELECT {left} AS w, sum(count_all)::BIGINT AS n {remaining} GROUP BY w"
    else:
        asked = f"""
            SELECT w, count(*) AS n FROM (
                SELECT u, w FROM (SELECT DISTINCT u, {left} AS w {remaining})
                QUALIFY row_number() OVER (
                    PARTITION BY u ORDER BY md5($salt || '|' || w || '|' || u), w
                ) <= $most
            ) GROUP BY w"""
        values |= {"salt": unit.salt, "most": unit.max_rows}
    with duckdb.connect(":memory:", config={"temp_directory": ""}) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.register("pairs", pairs)
        found = connection.execute(f"{asked} ORDER BY w", values or None).fetchall()
    return [text for text, _ in found], np.array([n for _, n in found], dtype=np.int64)
