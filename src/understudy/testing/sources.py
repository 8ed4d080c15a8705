"""The conformance kit for sources: any way from an Arrow table to a `Source`.

    check_source(lambda table: read(write_csv(table, folder)))

Tables are drawn at random from a fixed key, with what goes wrong in real ones: no rows, nulls,
values outside the schema, text with separators, quotes and line ends. A source that reads text need
not tell an empty text from a null, so none is drawn.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from functools import partial

import numpy as np
import pyarrow as pa

from understudy._types import Rng
from understudy.errors import InputError
from understudy.privacy.cost import Charge, Gaussian, Plan
from understudy.privacy.exact import ExactCounts
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Marginals, RowCount
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import Sensitive
from understudy.queries import counts
from understudy.schema import Boolean, Category, Date, Identifier, Integer, Number, Schema
from understudy.source import Source
from understudy.testing.checks import Check, all_of, require
from understudy.testing.stand_ins import StillNoise, StrictCharges

_SECRET = "SECRET7431"
_KINDS = ("a,b", 'q"x', "two\nlines", "é", "1e3", "2024-01-01")

SOURCE_SCHEMA = Schema(
    (
        Identifier("id"),
        Category("sex", ("F", "M"), other="X", nullable=True),
        Integer("age", 0, 9, nullable=True),
        Number('income, "net"', 0, 10, bins=4),
        Boolean("smoker", nullable=True),
        Date("seen", date(2024, 1, 1), date(2024, 12, 31), bins=6, nullable=True),
        Category("kind", _KINDS, nullable=True),
    )
)
"""The schema of the tables that the kit draws."""

_CLIQUES = ((0,), (1,), (2,), (3,), (4,), (5,), (0, 3), (1, 2), (0, 3, 4), (2, 4, 5), (0, 1, 2, 3))


def random_table(rng: Rng, rows: int) -> pa.Table:
    """A table for `SOURCE_SCHEMA`, with nulls, and values that the schema does not know."""

    def pick(values: Sequence[object]) -> list[object]:
        return [values[int(i)] for i in rng.integers(len(values), size=rows)]

    days = [None, *(date(2024, 1, 1) + timedelta(days=d) for d in (-60, 0, 31, 100, 365, 500))]
    numbers = [-1e300, -5.0, 0.0, 2.5, 3.75, 9.999, 10.0, 15.25]
    return pa.table(
        {
            "id": pa.array([f"{_SECRET}-{i}" for i in range(rows)], pa.string()),
            "sex": pa.array(pick([None, "F", "M", "X", "?", _SECRET]), pa.string()),
            "age": pa.array(pick([None, *range(-3, 14)]), pa.int64()),
            'income, "net"': pa.array(pick(numbers), pa.float64()),
            "smoker": pa.array(pick([None, True, False]), pa.bool_()),
            "seen": pa.array(pick(days), pa.date32()),
            "kind": pa.array(pick([None, *_KINDS, ";", _SECRET]), pa.string()),
        }
    )


def source_checks(make: Callable[[pa.Table], Source], *, examples: int = 12) -> Iterator[Check]:
    """Everything a source owes; `make(table)` points at a table that holds these rows.

    * `columns` is the header; `bind` gives counts of the schema's shape, sealed in `Sensitive`
    * the counts are those of the encoded rows, exactly, for every marginal, asked in any order and
      again, whatever order the columns come in
    * rows never speak: no error, warning or output because of a value, and no value in a message
    * a header that does not fit the schema is an `InputError` that names the column
    """
    sizes = [0, 1, 2, *(5 * i for i in range(1, max(1, examples - 2)))][:examples]

    def table(rows: int) -> pa.Table:
        return random_table(np.random.default_rng(rows), rows)

    def header() -> None:
        given = table(3)
        source = make(given)
        require(
            source.columns == tuple(given.column_names),
            f"columns is {source.columns}; expected the header {tuple(given.column_names)}",
        )
        require(source.native in ("arrow", "pandas", "polars"), f"native is {source.native!r}")
        require(isinstance(source.typed, bool), f"typed is {source.typed!r}; expected a bool")
        text = source.describe()
        require(
            "\n" not in text and _SECRET not in text, "describe() is no line without a fact of rows"
        )

    def sealed() -> None:
        with _silence():
            bound = make(table(5)).bind(SOURCE_SCHEMA)
        require(
            tuple(bound.shape) == SOURCE_SCHEMA.shape,
            f"bound shape is {tuple(bound.shape)}; expected {SOURCE_SCHEMA.shape}",
        )
        value = bound.marginals([(0,)])
        require(
            type(value) is Sensitive,
            f"marginals() is a {type(value).__name__}; exact counts leave a source sealed",
        )
        require(_SECRET not in repr(bound), "repr of the bound source shows a value")

    def exact(rows: int) -> None:
        given = table(rows)
        with _silence():
            bound = make(given).bind(SOURCE_SCHEMA)
            _require_counts(bound, given, _CLIQUES)
            _require_counts(bound, given, _CLIQUES[::-1] + _CLIQUES[:2])

    def by_name() -> None:
        given = table(20)
        shuffled = given.select(given.column_names[::-1])
        _require_counts(make(shuffled).bind(SOURCE_SCHEMA), given, _CLIQUES)

    def header_misfits(change: str) -> None:
        given = table(4)
        if change == "lacks a column":
            name, given = "age", given.drop_columns(["age"])
        else:
            name, given = "surplus", given.append_column("surplus", given.column("age"))
        try:
            make(given).bind(SOURCE_SCHEMA)
        except InputError as error:
            require(name in str(error), f"the error does not name column {name!r}: {error}")
            require(_SECRET not in str(error), "the error shows a value of a row")
        else:
            require(False, f"a table that {change} ({name!r}) was accepted")

    yield Check("source: the header is public, the rows are not", header)
    yield Check("source: exact counts are sealed", sealed)
    for rows in sizes:
        yield Check(f"source: counts are exact and silent: {rows} rows", partial(exact, rows))
    yield Check("source: columns are found by name", by_name)
    for change in ("lacks a column", "has one more column"):
        yield Check(f"source: a table that {change} is refused", partial(header_misfits, change))


check_source = all_of(source_checks)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Nothing may be printed or warned of inside."""
    out, err = io.StringIO(), io.StringIO()
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        warnings.simplefilter("always")
        yield
    spoken = out.getvalue() + err.getvalue() + "".join(str(w.message) for w in caught)
    require(
        not spoken, "rows made the source speak (a warning or output); what they hold is private"
    )


def _require_counts(
    bound: ExactCounts, table: pa.Table, cliques: Sequence[tuple[int, ...]]
) -> None:
    """Compare with the encoded rows; opened by a gate without noise."""
    moved = Relation.ADD_REMOVE.marginal_l2_squared(len(cliques))
    plan = Plan((Charge("tables", Gaussian(1.0, changes=moved)), Charge("rows", Gaussian(1.0))))
    gate = Gate(bound, StrictCharges(plan), Relation.ADD_REMOVE, StillNoise())
    require(
        gate.ask("rows", RowCount()) == table.num_rows,
        f"the marginal of () is not the {table.num_rows} rows that the table has",
    )
    expected = counts(SOURCE_SCHEMA.encode(table), SOURCE_SCHEMA.shape, cliques)
    for clique, found, wanted in zip(
        cliques, gate.ask("tables", Marginals(cliques)), expected, strict=True
    ):
        require(
            np.array_equal(found, wanted),
            f"marginal {clique} of {table.num_rows} rows is {found.tolist()}; expected "
            f"{wanted.tolist()}",
        )
