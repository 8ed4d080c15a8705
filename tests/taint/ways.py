"""Ways to break a table: generated from seeds, each a file, a frame, a database or a list of edges."""

import csv
import gzip
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.taint import marks
from tests.taint.marks import COLUMNS, ROWS, SCHEMA


@dataclass(frozen=True)
class Given:
    """A broken table and the schema it is released by."""

    data: Any
    schema: str = SCHEMA
    table: str | None = None


@dataclass(frozen=True)
class Way:
    """One way to break a table; `make` writes into an empty folder."""

    kind: str
    name: str
    make: Callable[[Path, Random], Given]


# Text

Lines = list[list[str]]


def lines(rng: Random) -> Lines:
    return [list(COLUMNS), *(marks.row(rng) for _ in range(ROWS))]


def joined(rows: Lines, separator: str = ",", end: str = "\n") -> str:
    return "".join(separator.join(row) + end for row in rows)


def texts() -> Iterator[tuple[str, Callable[[Lines, Random], str | bytes]]]:
    """Names, and what makes the bytes of a text file from rows."""

    def cell(change: Callable[[str], str], *, header: bool = False) -> Callable[..., str]:
        def make(rows: Lines, rng: Random) -> str:
            at = 0 if header else rng.randrange(1, len(rows))
            column = rng.randrange(len(COLUMNS))
            rows[at][column] = change(rows[at][column])
            return joined(rows)

        return make

    def every(change: Callable[[str], str]) -> Callable[..., str]:
        def make(rows: Lines, rng: Random) -> str:
            column = rng.randrange(len(COLUMNS))
            for row in rows[1:]:
                row[column] = change(row[column])
            return joined(rows)

        return make

    def spanning(rows: Lines, rng: Random) -> str:
        """A quote opened in the header is closed in a row."""
        column, at = rng.randrange(len(COLUMNS)), rng.randrange(1, len(rows))
        rows[0][column] = '"' + rows[0][column]
        other = rng.randrange(len(COLUMNS))
        rows[at][other] += '"'
        return joined(rows)

    def ragged(more: int) -> Callable[..., str]:
        def make(rows: Lines, rng: Random) -> str:
            for at in sorted({1, rng.randrange(1, len(rows))})[-1:]:
                rows[at] = rows[at] + [marks.text(rng)] * more if more > 0 else rows[at][:more]
            return joined(rows)

        return make

    def all_ragged(rows: Lines, rng: Random) -> str:
        return joined([rows[0], *([*row, marks.text(rng)] for row in rows[1:])])

    def header(change: Callable[[list[str], Random], list[str]]) -> Callable[..., str]:
        def make(rows: Lines, rng: Random) -> str:
            rows[0] = change(rows[0], rng)
            return joined(rows)

        return make

    def dropped(names: list[str], rng: Random) -> list[str]:
        names.pop(rng.randrange(len(names)))
        return names

    def renamed(new: str) -> Callable[..., list[str]]:
        def change(names: list[str], rng: Random) -> list[str]:
            names[rng.randrange(len(names))] = new
            return names

        return change

    def lost_break(rows: Lines, rng: Random) -> str:
        return joined(rows).replace("\n", "", 1)

    def lost_break_later(rows: Lines, rng: Random) -> str:
        return joined(rows).replace("\n", ",", 1)

    def cut_header(rows: Lines, rng: Random) -> str:
        cut = rng.randrange(1, len(COLUMNS))
        return joined([rows[0][:cut] + rows[1][cut:], *rows[2:]])

    def title(rows: Lines, rng: Random) -> str:
        return f"report of {marks.text(rng)}\n" + joined(rows)

    def encoded(name: str) -> Callable[..., bytes]:
        return lambda rows, rng: joined(rows).encode(name)

    def bytes_in(extra: bytes, *, first: bool = False) -> Callable[..., bytes]:
        def make(rows: Lines, rng: Random) -> bytes:
            whole = joined(rows).encode()
            at = rng.randrange(0, 20) if first else rng.randrange(40, len(whole))
            return whole[:at] + extra + whole[at:]

        return make

    def flipped(rows: Lines, rng: Random) -> bytes:
        whole = bytearray(joined(rows).encode())
        for _ in range(20):
            whole[rng.randrange(len(whole))] = rng.randrange(256)
        return bytes(whole)

    def ends(end: str) -> Callable[..., str]:
        return lambda rows, rng: joined(rows, end=end)

    def mixed_separators(a: str, b: str) -> Callable[..., str]:
        return lambda rows, rng: joined(rows[:1], a) + joined(rows[1:], b)

    def quoted(rows: Lines, rng: Random) -> str:
        out = io.StringIO()
        csv.writer(out, quoting=csv.QUOTE_ALL).writerows(rows)
        return out.getvalue().replace('"', "", rng.randrange(1, 9))

    yield "a quote in the header that is never closed", cell('"{}'.format, header=True)
    yield "a quote in the header that a row closes", spanning
    yield "a quote at the end of a name", cell('{}"'.format, header=True)
    yield "a quote in a cell that is never closed", cell('"{}'.format)
    yield "text after a closing quote", cell('"{0}"{0}'.format)
    yield "quotes lost", quoted
    yield "a line break in a cell", cell('"{0}\n{0}"'.format)
    yield "a line break in a name", cell('"{0}\n{0}"'.format, header=True)
    yield "a row with a cell too many", ragged(1)
    yield "a row with many cells too many", ragged(30)
    yield "a row with a cell too few", ragged(-1)
    yield "a row with one cell", ragged(-5)
    yield "every row with a cell too many", all_ragged
    yield "a column without a name", header(lambda names, rng: [*names[:-1], ""])
    yield "a column missing", header(dropped)
    yield "a column missing in name and row", lambda rows, rng: joined([row[1:] for row in rows])
    yield (
        "a column too many",
        lambda rows, rng: joined(
            [[*row, f"x{i and marks.text(rng)}"] for i, row in enumerate(rows)]
        ),
    )
    yield "a column renamed", header(renamed("other"))
    yield "a column twice", header(renamed("city"))
    yield "a column in capitals", header(lambda names, rng: [name.upper() for name in names])
    yield "a name of 81 characters", header(renamed("n" * 81))
    yield "a name of 100,000 characters", header(renamed("n" * 100_000))
    yield "no header", lambda rows, rng: joined(rows[1:])
    yield "a title above the header", title
    yield "nothing but a header", lambda rows, rng: joined(rows[:1])
    yield "an empty line first", lambda rows, rng: "\n" + joined(rows)
    yield "the line break after the header lost", lost_break
    yield "the line break after the header a comma", lost_break_later
    yield "half a header", cut_header
    yield "a name that is a row", header(lambda names, rng: [*names[:-1], "|".join(marks.row(rng))])
    for name in ("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp500"):
        yield f"written in {name}", encoded(name)
    yield "bytes that are no UTF-8", bytes_in(b"\xff\xfe\x80")
    yield "bytes that are no UTF-8, in the header", bytes_in(b"\xff\xfe\x80", first=True)
    yield "a NUL", bytes_in(b"\0")
    yield "a NUL in the header", bytes_in(b"\0", first=True)
    yield "bytes changed", flipped
    for name, end in (
        ("CR", "\r"),
        ("CR CR LF", "\r\r\n"),
        ("VT", "\v"),
        ("NEL", "\x85"),
        ("LS", "\u2028"),
        ("FF", "\f"),
        ("RS", "\x1e"),
    ):
        yield f"lines that end in {name}", ends(end)
    yield "a header with commas, rows with semicolons", mixed_separators(",", ";")
    yield "a header with semicolons, rows with commas", mixed_separators(";", ",")
    yield "a header with tabs, rows with bars", mixed_separators("\t", "|")
    yield "a separator that is none", lambda rows, rng: joined(rows, "~")
    yield "a huge cell", cell(lambda text: text * 40_000)
    yield "a huge cell in quotes", cell(lambda text: f'"{text * 40_000}"')
    yield "numbers that overflow", every(lambda text: "7391730000" * 40)
    yield "exponents that overflow", every(lambda text: "7.39173e999")
    yield "days that do not exist", every(lambda text: "2391-99-99")
    yield "years beyond 9999", every(lambda text: "102391-01-01")
    yield "texts among numbers", every(lambda text: f"{text}zqxv00")
    yield "surrogates", cell(lambda text: text + "\\ud800")
    yield "formulas", every('=cmd|"{}"'.format)


def text_ways(seeds: int) -> Iterator[Way]:
    for seed in range(seeds):
        suffixes = (".csv", ".csv.gz", ".tsv", ".txt")
        for name, change in texts():
            suffix = suffixes[0 if seed % 2 == 0 else seed // 2 % 3 + 1]

            def make(
                folder: Path, rng: Random, change: Any = change, suffix: str = suffix
            ) -> Given:
                made = change(lines(rng), rng)
                data = made if isinstance(made, bytes) else made.encode("utf-8", "surrogatepass")
                path = folder / f"rows{suffix}"
                path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
                return Given(path)

            yield Way("text", f"{name} ({suffix}, {seed})", make)


# Parquet


def table(rng: Random) -> pa.Table:
    rows = [marks.row(rng) for _ in range(ROWS)]
    columns = [pa.array(column) for column in zip(*rows, strict=True)]
    return pa.table(columns, names=list(COLUMNS))


def typed(rng: Random) -> pa.Table:
    made = table(rng)
    for at, type_ in ((1, pa.int64()), (2, pa.float64()), (3, pa.date32())):
        made = made.set_column(at, COLUMNS[at], made.column(at).cast(type_))
    return made


def parquet_ways(seeds: int) -> Iterator[Way]:
    def changed(name: str, change: Callable[[pa.Table, Random], pa.Table], **options: Any) -> Way:
        def make(folder: Path, rng: Random) -> Given:
            pq.write_table(change(typed(rng), rng), folder / "rows.parquet", **options)
            return Given(folder / "rows.parquet")

        return Way("parquet", name, make)

    def damaged(name: str, damage: Callable[[bytes, Random], bytes], **options: Any) -> Way:
        def make(folder: Path, rng: Random) -> Given:
            path = folder / "rows.parquet"
            pq.write_table(typed(rng), path, **options)
            path.write_bytes(damage(path.read_bytes(), rng))
            return Given(path)

        return Way("parquet", name, make)

    def flips(times: int, tail: int | None) -> Callable[[bytes, Random], bytes]:
        def damage(data: bytes, rng: Random) -> bytes:
            out = bytearray(data)
            low, high = (4, len(out) * 2 // 3) if tail is None else (len(out) - tail, len(out) - 8)
            for _ in range(times):
                out[rng.randrange(max(4, low), high)] = rng.randrange(256)
            return bytes(out)

        return damage

    plain = {"compression": "none", "use_dictionary": False}
    for seed in range(seeds):
        yield damaged(f"cut short ({seed})", lambda d, rng: d[: rng.randrange(len(d))])
        yield damaged(f"cut out ({seed})", lambda d, rng: d[:100] + d[rng.randrange(101, len(d)) :])
        yield damaged(f"pages damaged ({seed})", flips(8, None))
        yield damaged(f"plain pages damaged ({seed})", flips(8, None), **plain)
        yield damaged(f"footer damaged ({seed})", flips(3, 600))
        yield damaged(f"plain footer damaged ({seed})", flips(6, 900), **plain)
    yield damaged("nothing in it", lambda d, rng: b"")
    yield damaged("text in it", lambda d, rng: joined(lines(rng)).encode())
    yield damaged("only a magic number", lambda d, rng: b"PAR1")

    def cast(column: str, type_: pa.DataType) -> Callable[[pa.Table, Random], pa.Table]:
        def change(made: pa.Table, rng: Random) -> pa.Table:
            at = COLUMNS.index(column)
            return made.set_column(at, column, made.column(at).cast(pa.string()).cast(type_))

        return change

    def put(
        column: str, cell: Callable[[Random], Any], type_: Any = None
    ) -> Callable[..., pa.Table]:
        def change(made: pa.Table, rng: Random) -> pa.Table:
            cells = pa.array([cell(rng) for _ in range(made.num_rows)], type_)
            return made.set_column(COLUMNS.index(column), column, cells)

        return change

    def names(*new: str) -> Callable[[pa.Table, Random], pa.Table]:
        return lambda made, rng: made.rename_columns([*COLUMNS[: -len(new)], *new])

    yield changed("as it should be", lambda made, rng: made)
    yield changed("no rows", lambda made, rng: made.slice(0, 0))
    for column in ("age", "income", "day", "city"):
        yield changed(f"{column} as text", cast(column, pa.string()))
        yield changed(f"{column} as bytes", cast(column, pa.binary()))
        yield changed(f"{column} as large text", cast(column, pa.large_string()))
        yield changed(
            f"{column} as dictionary",
            lambda made, rng, column=column: made.set_column(
                COLUMNS.index(column),
                column,
                made.column(column).cast(pa.string()).dictionary_encode(),
            ),
        )
        yield changed(f"{column} as lists", put(column, lambda rng: [marks.text(rng)]))
        yield changed(f"{column} as structs", put(column, lambda rng: {"a": marks.text(rng)}))
        yield changed(
            f"{column} as maps",
            put(column, lambda rng: [(marks.text(rng), 1)], pa.map_(pa.string(), pa.int64())),
        )
        yield changed(f"{column} as numbers", put(column, marks.number))
        yield changed(f"{column} as true and false", put(column, lambda rng: rng.random() < 0.5))
        yield changed(f"{column} as NaN", put(column, lambda rng: float("nan")))
        yield changed(f"{column} as infinity", put(column, lambda rng: float("inf")))
        yield changed(f"{column} as null", put(column, lambda rng: None))
        yield changed(
            f"{column} as decimals",
            put(column, lambda rng: marks.number(rng), pa.decimal256(60, 3)),
        )
        yield changed(
            f"{column} as times",
            put(column, lambda rng: 2**61 + marks.number(rng), pa.timestamp("us")),
        )
        yield changed(
            f"{column} as far times", put(column, lambda rng: 2**40 * 7, pa.timestamp("s", "UTC"))
        )
        yield changed(
            f"{column} as durations", put(column, lambda rng: marks.number(rng), pa.duration("us"))
        )
        yield changed(
            f"{column} as no UTF-8",
            put(column, lambda rng: b"\xff" + marks.text(rng).encode(), pa.binary()),
        )
        yield changed(f"{column} as huge numbers", put(column, lambda rng: 2**63 - 1))
    yield changed(
        "a name of many lines", lambda made, rng: names("\n".join(marks.row(rng)))(made, rng)
    )
    yield changed("a long name", lambda made, rng: names("/".join(marks.row(rng) * 2))(made, rng))
    yield changed(
        "two long names that are the same",
        lambda made, rng: names(*["/".join(marks.row(rng) * 2)] * 2)(made, rng),
    )
    yield changed("a name twice", names("note", "note"))
    yield changed("another name", names("others"))
    yield changed("a column too many", lambda made, rng: made.append_column("x", made.column(0)))
    yield changed("a column missing", lambda made, rng: made.drop_columns(["city"]))
    yield changed(
        "marked metadata", lambda made, rng: made.replace_schema_metadata({"a": marks.text(rng)})
    )

    def folder_of(name: str, second: Callable[[Path, Random], None]) -> Way:
        def make(folder: Path, rng: Random) -> Given:
            where = folder / "parts"
            where.mkdir()
            pq.write_table(typed(rng), where / "0.parquet")
            second(where / "1.parquet", rng)
            return Given(where)

        return Way("parquet", name, make)

    yield folder_of(
        "a folder with a damaged part",
        lambda p, rng: p.write_bytes(b"PAR1" + marks.text(rng).encode()) and None,
    )
    yield folder_of(
        "a folder with another header",
        lambda p, rng: pq.write_table(typed(rng).drop_columns(["age"]), p),
    )
    yield folder_of("a folder with other types", lambda p, rng: pq.write_table(table(rng), p))
    yield folder_of("a folder in a folder", lambda p, rng: p.mkdir())


# Frames


def frame_ways() -> Iterator[Way]:
    import pandas as pd
    import polars as pl

    class Loud:
        """An object that shouts a cell when somebody looks at it."""

        def __init__(self, text: str) -> None:
            self._text = text

        def __str__(self) -> str:
            raise ValueError(self._text)

        __repr__ = __str__

    def pandas(name: str, change: Callable[[Any, Random], Any]) -> Way:
        return Way(
            "frame",
            f"pandas: {name}",
            lambda folder, rng: Given(change(typed(rng).to_pandas(), rng)),
        )

    def polars(name: str, change: Callable[[Any, Random], Any]) -> Way:
        return Way(
            "frame",
            f"Polars: {name}",
            lambda folder, rng: Given(change(pl.from_arrow(table(rng)), rng)),
        )

    def cells(column: str, cell: Callable[[int, Random], Any]) -> Callable[[Any, Random], Any]:
        def change(frame: Any, rng: Random) -> Any:
            frame[column] = pd.Series([cell(i, rng) for i in range(len(frame))], dtype=object)
            return frame

        return change

    for column in ("age", "city", "income", "day"):
        yield pandas(
            f"{column} of texts and numbers",
            cells(column, lambda i, rng: marks.text(rng) if i % 2 else marks.number(rng)),
        )
        yield pandas(
            f"{column} of bytes and texts",
            cells(column, lambda i, rng: marks.text(rng).encode() if i % 2 else marks.text(rng)),
        )
        yield pandas(
            f"{column} of lists and texts",
            cells(column, lambda i, rng: [marks.text(rng)] if i % 2 else marks.text(rng)),
        )
        yield pandas(
            f"{column} of dicts", cells(column, lambda i, rng: {marks.text(rng): marks.number(rng)})
        )
        yield pandas(
            f"{column} of huge numbers", cells(column, lambda i, rng: marks.number(rng) ** 9)
        )
        yield pandas(
            f"{column} of loud objects", cells(column, lambda i, rng: Loud(marks.text(rng)))
        )
        yield pandas(f"{column} of sets", cells(column, lambda i, rng: {marks.text(rng)}))
        yield pandas(
            f"{column} of surrogates", cells(column, lambda i, rng: marks.text(rng) + "\ud800")
        )
        yield pandas(
            f"{column} of days and texts",
            cells(column, lambda i, rng: pd.Timestamp("2020-01-01") if i % 2 else marks.text(rng)),
        )
        yield polars(
            f"{column} cast when it is collected",
            lambda frame, rng, column=column: frame.lazy().with_columns(
                pl.col(column).str.slice(1).cast(pl.Int8)
            ),
        )
        yield polars(
            f"{column} mapped by a function that fails",
            lambda frame, rng, column=column: frame.lazy().with_columns(
                pl.col(column).map_elements(lambda x: 1 / 0 if x else int(x), pl.Int64)
            ),
        )
    yield pandas(
        "names of rows",
        lambda frame, rng: frame.set_axis([tuple(marks.row(rng)) for _ in COLUMNS], axis=1),
    )
    yield pandas(
        "a long name",
        lambda frame, rng: frame.rename(columns={"who": " ".join(marks.row(rng) * 2)}),
    )
    yield pandas(
        "a name of many lines",
        lambda frame, rng: frame.rename(columns={"who": "\n".join(marks.row(rng))}),
    )
    yield pandas("a name twice", lambda frame, rng: frame.rename(columns={"who": "city"}))
    yield pandas("a marked index", lambda frame, rng: frame.set_index("note"))
    yield pandas("a column alone", lambda frame, rng: frame["city"])
    yield pandas("as an array", lambda frame, rng: frame.to_numpy())
    yield pandas("as rows", lambda frame, rng: frame.to_dict("records"))
    yield pandas(
        "as a dict of lists of two lengths",
        lambda frame, rng: {"city": [marks.text(rng)], "age": [marks.text(rng)] * 2},
    )
    yield polars("a struct", lambda frame, rng: frame.with_columns(city=pl.struct("city", "note")))
    yield polars(
        "an enumeration", lambda frame, rng: frame.with_columns(pl.col("city").cast(pl.Categorical))
    )
    yield polars(
        "objects",
        lambda frame, rng: frame.with_columns(city=pl.Series([object()] * ROWS, dtype=pl.Object)),
    )
    yield polars(
        "no such column",
        lambda frame, rng: frame.lazy().select(
            pl.all().exclude("day"), pl.col("who").alias(" ".join(marks.row(rng) * 2))
        ),
    )


# Databases


def database_ways(connect: Callable[[Path], tuple[str, Any, str]], kind: str) -> Iterator[Way]:
    """`connect` makes an empty database: address, what runs statements in it, and its schema."""

    def way(name: str, *statements: str, table: str = "t", after: Any = None) -> Way:
        def make(folder: Path, rng: Random) -> Given:
            url, run, schema = connect(folder)
            columns = ", ".join(f'"{name}" text' for name in COLUMNS)
            run(f"CREATE TABLE rows ({columns})")
            for row in (marks.row(rng) for _ in range(ROWS)):
                run("INSERT INTO rows VALUES (" + ", ".join(f"'{cell}'" for cell in row) + ")")
            for statement in statements:
                run(
                    statement.replace("ROW", "; ".join(marks.row(rng) * 2)).replace(
                        "LINES", "\n".join(marks.row(rng))
                    )
                )
            run(None)
            if after is not None:
                after(folder, rng)
            return Given(url, table=schema + table)

        return Way(kind, f"{kind}: {name}", make)

    good = "CREATE VIEW t AS SELECT city, note, who, {} FROM rows"
    age, income, day = "1 AS age", "2.5 AS income", "DATE '2020-02-02' AS day"
    yield way("texts for numbers", "CREATE VIEW t AS SELECT * FROM rows")
    yield way("as it should be", good.format(f"{age}, {income}, {day}"))
    for column, type_ in (
        ("city", "int"),
        ("note", "bigint"),
        ("day", "timestamp"),
        ("age", "smallint"),
        ("income", "date"),
        ("who", "boolean"),
    ):
        yield way(
            f"{column} cast to {type_} in age",
            good.format(f"CAST({column} AS {type_}) AS age, {income}, {day}"),
        )
        yield way(
            f"{column} cast to {type_} in income",
            good.format(f"{age}, CAST({column} AS {type_}) AS income, {day}"),
        )
        yield way(
            f"{column} cast to {type_} in day",
            good.format(f"{age}, {income}, CAST({column} AS {type_}) AS day"),
        )
    yield way(
        "a unit that is cast",
        f"CREATE VIEW t AS SELECT city, note, CAST(who AS int) who, {age}, {income}, {day} FROM rows",
    )
    yield way("a long name", good.format(f'{age}, {income}, {day}, 1 AS "ROW"'))
    yield way("a name of many lines", good.format(f'{age}, {income}, {day}, 1 AS "LINES"'))
    yield way("a column missing", good.format(f"{age}, {income}"))
    yield way("a column too many", good.format(f"{age}, {income}, {day}, 1 AS x"))
    yield way("lists", good.format(f"ARRAY[city] AS age, {income}, {day}"))
    yield way("no such table", table="nothing")
    yield way("no such schema", table="nowhere.t")
    yield way(
        "a view of nothing",
        "CREATE TABLE r2 AS SELECT * FROM rows",
        "CREATE VIEW t AS SELECT * FROM r2",
        "DROP TABLE r2" if kind == "DuckDB" else "DROP TABLE r2 CASCADE",
    )


def duckdb_file(folder: Path) -> tuple[str, Any, str]:
    import duckdb

    path = folder / "rows.duckdb"
    connection = duckdb.connect(str(path))

    def run(sql: str | None) -> None:
        connection.close() if sql is None else connection.execute(sql)

    return f"duckdb://{path}", run, ""


def postgres_schema(folder: Path) -> tuple[str, Any, str]:
    import psycopg

    from tests.tools import servers

    url, name = servers.postgres(), f"taint{abs(hash(folder))}"
    connection: Any = psycopg.connect(url, autocommit=True)
    connection.execute(f"CREATE SCHEMA {name}")
    connection.execute(f"SET search_path TO {name}")

    def run(sql: str | None) -> None:
        connection.close() if sql is None else connection.execute(sql)

    return url, run, f"{name}."


def postgres_ways() -> list[Way]:
    """A few on a real server, which cuts long names off at 63 characters by itself."""
    return [way for way in database_ways(postgres_schema, "PostgreSQL") if "long" not in way.name]


def duckdb_ways() -> Iterator[Way]:
    yield from database_ways(duckdb_file, "DuckDB")

    def damaged(name: str, damage: Callable[[Path, Random], None]) -> Way:
        def make(folder: Path, rng: Random) -> Given:
            url, run, _ = duckdb_file(folder)
            run(f"CREATE TABLE t ({', '.join(f'{name} text' for name in COLUMNS)})")
            for row in (marks.row(rng) for _ in range(ROWS)):
                run("INSERT INTO t VALUES (" + ", ".join(f"'{cell}'" for cell in row) + ")")
            run(None)
            damage(folder / "rows.duckdb", rng)
            return Given(url, table="t")

        return Way("DuckDB", f"DuckDB: {name}", make)

    def flip(path: Path, rng: Random) -> None:
        data = bytearray(path.read_bytes())
        for _ in range(40):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)

    for seed in range(6):
        yield damaged(f"bytes changed ({seed})", flip)
        yield damaged(
            f"cut short ({seed})",
            lambda path, rng: path.write_bytes(path.read_bytes()[: rng.randrange(20_000)]) and None,
        )
    yield damaged("text", lambda path, rng: path.write_bytes(joined(lines(rng)).encode()) and None)
    yield damaged("gone", lambda path, rng: path.unlink())


# Schemas, places of files


def place_ways() -> Iterator[Way]:
    def csv_file(folder: Path, rng: Random) -> Path:
        (folder / "rows.csv").write_text(joined(lines(rng)))
        return folder / "rows.csv"

    def schema(name: str, change: Callable[[str], str]) -> Way:
        return Way(
            "schema",
            f"schema: {name}",
            lambda folder, rng: Given(csv_file(folder, rng), change(SCHEMA)),
        )

    head = "version = 1"
    yield schema("as it should be", lambda text: text)
    yield schema("a unit", lambda text: text.replace(head, f'{head}\nunit = "who"\nmax_rows = 2'))
    yield schema(
        "no such unit", lambda text: text.replace(head, f'{head}\nunit = "whom"\nmax_rows = 2')
    )
    yield schema("a unit without a limit", lambda text: text.replace(head, f'{head}\nunit = "who"'))
    yield schema(
        "rows declared wrongly", lambda text: text.replace(head, f"{head}\nrows_public = 3")
    )
    yield schema(
        "a rule that every row breaks",
        lambda text: text + "\n[[rule]]\nsays = \"age > 50 implies city = 'Aa'\"\n",
    )
    yield schema("a rule about nothing", lambda text: text + '\n[[rule]]\nsays = "ages > 50"\n')
    yield schema(
        "places that are none",
        lambda text: (
            text
            + '\n[[geography]]\nlatitude = "age"\nlongitude = "income"\ncentroids = [[1.0, 2.0]]\n'
        ),
    )
    yield schema(
        "no such places",
        lambda text: (
            text
            + '\n[[geography]]\nlatitude = "lat"\nlongitude = "long"\ncentroids = [[1.0, 2.0]]\n'
        ),
    )
    yield schema(
        "values to be found", lambda text: text.replace('["Aa", "Bb", "Cc"]', '"discover"')
    )
    yield schema(
        "not confirmed",
        lambda text: text.replace("bins = 10", 'bins = 10\nread_from_rows = ["lower"]'),
    )
    for kind in ("boolean", "text", "identifier", "integer", "number", "date", "datetime", "none"):
        for column in ("category", "integer", "number", "date"):
            yield schema(
                f"{column} as {kind}",
                lambda text, kind=kind, column=column: text.replace(
                    f'type = "{column}"', f'type = "{kind}"'
                ),
            )
    for column in COLUMNS:
        yield schema(
            f"without {column}",
            lambda text, column=column: "[[column]]".join(
                part for part in text.split("[[column]]") if f'name = "{column}"' not in part
            ),
        )
        yield schema(
            f"{column} renamed",
            lambda text, column=column: text.replace(f'"{column}"', f'"{column}s"'),
        )

    def place(name: str, make: Callable[[Path, Random], Any]) -> Way:
        return Way("place", f"place: {name}", lambda folder, rng: Given(make(folder, rng)))

    def directory(folder: Path, rng: Random) -> Path:
        (folder / "rows.csv").mkdir()
        (folder / "rows.csv" / "part.txt").write_text(joined(lines(rng)))
        return folder / "rows.csv"

    def renamed(suffix: str) -> Callable[[Path, Random], Path]:
        return lambda folder, rng: csv_file(folder, rng).rename(folder / f"rows{suffix}")

    def loop(folder: Path, rng: Random) -> Path:
        (folder / "a.csv").symlink_to(folder / "b.csv")
        (folder / "b.csv").symlink_to(folder / "a.csv")
        return folder / "a.csv"

    def gone(folder: Path, rng: Random) -> Path:
        csv_file(folder, rng).unlink()
        return folder / "rows.csv"

    def glob(second: str) -> Callable[[Path, Random], str]:
        def make(folder: Path, rng: Random) -> str:
            csv_file(folder, rng)
            (folder / f"more{second}").write_text(joined([row[1:] for row in lines(rng)]))
            return str(folder / "*")

        return make

    def half(folder: Path, rng: Random) -> Path:
        packed = gzip.compress(joined(lines(rng)).encode())
        (folder / "rows.csv.gz").write_bytes(packed[: len(packed) // 2])
        return folder / "rows.csv.gz"

    def spoiled(folder: Path, rng: Random) -> Path:
        packed = bytearray(gzip.compress(joined(lines(rng) * 40).encode()))
        packed[len(packed) // 2] ^= 0xFF
        (folder / "rows.csv.gz").write_bytes(packed)
        return folder / "rows.csv.gz"

    yield place("a directory", directory)
    for suffix in (".parquet", ".pq", ".csv.gz", ".xlsx", ".json", "", ".parquet.gz"):
        yield place(f"text named {suffix or 'without an ending'}", renamed(suffix))
    yield place("a loop of links", loop)
    yield place("gone", gone)
    yield place("files of two headers", glob(".csv"))
    yield place("files of two formats", glob(".parquet"))
    yield place("half a gzip", half)
    yield place("a spoiled gzip", spoiled)
    yield place("no file matches", lambda folder, rng: str(folder / "*.csv"))


# Rows for estimators; edges


def learner_ways() -> Iterator[Way]:
    def rows(name: str, make: Callable[[Random], tuple[Any, Any]]) -> Way:
        return Way("learner", f"learner: {name}", lambda folder, rng: Given(make(rng)))

    def numbers(rng: Random, width: int = 2) -> list[list[Any]]:
        return [[marks.number(rng) for _ in range(width)] for _ in range(ROWS)]

    labels = [i % 2 for i in range(ROWS)]
    yield rows("as it should be", lambda rng: (np.array(numbers(rng), float), labels))
    yield rows("texts", lambda rng: ([[marks.text(rng)] * 2 for _ in range(ROWS)], labels))
    yield rows(
        "texts among numbers", lambda rng: ([*numbers(rng)[1:], [marks.text(rng), 1]], labels)
    )
    yield rows(
        "texts as labels", lambda rng: (numbers(rng), [marks.text(rng) for _ in range(ROWS)])
    )
    yield rows(
        "numbers as labels", lambda rng: (numbers(rng), [marks.number(rng) + 0.5 for _ in labels])
    )
    yield rows("ragged", lambda rng: ([*numbers(rng)[1:], [marks.number(rng)]], labels))
    yield rows(
        "objects", lambda rng: (np.array([[{marks.text(rng): 1}] * 2] * ROWS, object), labels)
    )
    yield rows("infinite", lambda rng: ([[float("inf"), marks.number(rng)]] * ROWS, labels))
    yield rows("two lengths", lambda rng: (numbers(rng), labels[1:]))
    yield rows("three dimensions", lambda rng: ([numbers(rng)], labels))
    yield rows("a frame", lambda rng: (typed(rng).to_pandas(), labels))
    yield rows("a frame of texts", lambda rng: (table(rng).to_pandas()[["city", "who"]], labels))
    yield rows("a text", lambda rng: (marks.text(rng), labels))
    yield rows(
        "labels of two kinds",
        lambda rng: (numbers(rng), [marks.text(rng) if i else 0 for i in labels]),
    )
    yield rows("labels of two columns", lambda rng: (numbers(rng), numbers(rng)))


def edge_ways() -> Iterator[Way]:
    for number, (name, change) in enumerate(texts()):
        if number % 4 == 0:

            def make(folder: Path, rng: Random, change: Any = change) -> Given:
                made = change(lines(rng), rng)
                data = made if isinstance(made, bytes) else made.encode("utf-8", "surrogatepass")
                path = folder / ("edges.txt" if rng.random() < 0.5 else "edges.csv")
                path.write_bytes(data)
                return Given(path)

            yield Way("edges", f"edges: {name}", make)


def all_ways() -> list[Way]:
    """Every way, in an order in which neighbours are unlike."""
    found = [
        *text_ways(4),
        *parquet_ways(8),
        *frame_ways(),
        *duckdb_ways(),
        *place_ways(),
        *learner_ways(),
        *edge_ways(),
    ]
    names = [way.name for way in found]
    assert len(set(names)) == len(names)
    return found
