"""One suite for all adapters: the same table gives the same counts, wherever its rows live."""

import csv
import gzip
import io
from dataclasses import replace
from datetime import date, timedelta

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.source.test_units import naive
from tests.thorough import examples
from tests.tools import servers
from understudy.constraints.rule import Rule
from understudy.errors import SourceError
from understudy.privacy import ExactCounts
from understudy.privacy.sensitive import Sensitive, reveal
from understudy.queries.evaluate import counts
from understudy.schema import Boolean, Category, Date, Identifier, Integer, Number, Schema
from understudy.source import read, read_table
from understudy.units import Unit

SCHEMA = Schema(
    (
        Identifier("id"),
        Category("sex", ("F", "M"), other="X", nullable=True),
        Integer("age", 0, 9, nullable=True),
        Number('marital-status, "income"', 0, 10, bins=4),
        Boolean("smoker", nullable=True),
        Date("seen", date(2024, 1, 1), date(2024, 12, 31), bins=6, nullable=True),
        Category("kind", ("a,b", 'q"x', "two\nlines", "é"), nullable=True),
    )
)
NAMES = [column.name for column in SCHEMA.columns]
CLIQUES = [(), (0,), (1, 2), (0, 3, 4), (5,), (2, 4, 5), (1, 2)]


def table_from(rows, people=None):
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    sex, age, income, smoker, seen, kind = columns
    return pa.table(
        {
            "id": pa.array(people or [f"p{i}" for i in range(len(rows))], pa.string()),
            "sex": pa.array(sex, pa.string()),
            "age": pa.array(age, pa.int64()),
            NAMES[3]: pa.array(income, pa.float64()),
            "smoker": pa.array(smoker, pa.bool_()),
            "seen": pa.array(seen, pa.date32()),
            "kind": pa.array(kind, pa.string()),
        }
    )


rows = st.tuples(
    st.sampled_from([None, "F", "M", "X", "?", "unknown", " F", ""]),
    st.none() | st.integers(-3, 13),
    st.none() | st.floats(-5, 15) | st.sampled_from([np.inf, -np.inf, np.nan, 2.5, 1e300]),
    st.sampled_from([None, True, False]),
    st.none() | st.integers(-60, 500).map(lambda d: date(2024, 1, 1) + timedelta(days=d)),
    st.sampled_from([None, "a,b", 'q"x', "two\nlines", "two\r\nlines", "é", ";", "?"]),
)
tables = st.lists(rows, max_size=25).map(table_from)


def as_text(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    return repr(value) if isinstance(value, float) else str(value)


def csv_bytes(table, separator=",", newline="\n", bom=b""):
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=separator, lineterminator=newline)
    writer.writerow(table.column_names)
    for row in table.to_pylist():
        writer.writerow([as_text(value) for value in row.values()])
    return bom + out.getvalue().encode()


def write(path, content):
    path.write_bytes(content)
    return path


def parts(table):
    half = table.num_rows // 2
    return table.slice(0, half), table.slice(half)


def csv_file(table, folder, **options):
    return read(write(folder / "t.csv", csv_bytes(table)), **options)


def semicolons(table, folder, **options):
    content = csv_bytes(table, ";", "\r\n", b"\xef\xbb\xbf")
    return read(write(folder / "semicolons.csv", content), **options)


def tabs(table, folder, **options):
    return read(write(folder / "t.tsv", csv_bytes(table, "\t")), **options)


def bars_gz(table, folder, **options):
    return read(write(folder / "t.csv.gz", gzip.compress(csv_bytes(table, "|"))), **options)


def parquet(table, folder, **options):
    pq.write_table(table, folder / "t.parquet", row_group_size=7)
    return read(folder / "t.parquet", **options)


def parquet_folder(table, folder, **options):
    for name, part in zip(("one", "two"), parts(table), strict=True):
        (folder / "parts" / name).mkdir(parents=True, exist_ok=True)
        pq.write_table(part, folder / "parts" / name / "rows.parquet")
    return read(folder / "parts", **options)


def csv_glob(table, folder, **options):
    for name, part in zip(("x-1.csv", "x-2.csv"), parts(table), strict=True):
        write(folder / name, csv_bytes(part))
    return read(str(folder / "x-*.csv"), **options)


def text_frame(table, folder, **options):
    """What pandas reads when it is told to read everything as text."""
    cells = {
        name: pd.array(
            [None if v is None else as_text(v) for v in table.column(name).to_pylist()], "str"
        )
        for name in NAMES
    }
    return read(pd.DataFrame(cells), **options)


def nullable_pandas(table, folder, **options):
    frame = table.to_pandas().convert_dtypes()
    frame["sex"] = frame["sex"].astype("category")
    return read(frame, **options)


def dictionaries(table, folder, **options):
    at = table.column_names.index("kind")
    chunks = [part.column("kind").dictionary_encode() for part in parts(table)]
    column = pa.chunked_array([chunk for part in chunks for chunk in part.chunks], chunks[0].type)
    return read(table.set_column(at, "kind", column), **options)


def duckdb_table(table, folder, **options):
    """A table of a database, through Ibis: DuckDB groups and counts."""
    connection = ibis.duckdb.connect()
    connection.con.register("arrived", table)
    connection.raw_sql('CREATE TABLE "rows; --" AS SELECT * FROM arrived')
    return read(connection.table("rows; --"), **options)


def postgres_table(table, folder, **options):
    name = f'rows "of" {folder.name}; DROP TABLE x'
    servers.create(table, name)
    return read(servers.postgres(), table=["public", name], **options)


def spark_table(table, folder, **options):
    return read(servers.spark_frame(table), **options)


ADAPTERS = {
    "arrow": lambda table, folder, **o: read(table, **o),
    "arrow-batch": lambda table, folder, **o: read(
        pa.RecordBatch.from_arrays([c.combine_chunks() for c in table.columns], names=NAMES), **o
    ),
    "arrow-dictionaries": dictionaries,
    "pandas": lambda table, folder, **o: read(table.to_pandas(), **o),
    "pandas-nullable": nullable_pandas,
    "pandas-text": text_frame,
    "polars": lambda table, folder, **o: read(pl.DataFrame(pl.from_arrow(table)), **o),
    "polars-lazy": lambda table, folder, **o: read(pl.DataFrame(pl.from_arrow(table)).lazy(), **o),
    "csv": csv_file,
    "csv-semicolons-crlf-bom": semicolons,
    "csv-tabs": tabs,
    "csv-bars-gz": bars_gz,
    "csv-glob": csv_glob,
    "parquet": parquet,
    "parquet-folder": parquet_folder,
    "ibis-duckdb": duckdb_table,
    "postgres": postgres_table,
    "spark": spark_table,
}
ON_DISK = ("csv", "parquet")
FILES = [name for name in ADAPTERS if name.startswith(ON_DISK)]
SLOW = ("spark",)
ALL = [(name, None) for name in ADAPTERS if name not in SLOW]
ALL += [(name, "duckdb") for name in FILES]
ALL += [pytest.param((name, None), marks=pytest.mark.slow) for name in SLOW]


@pytest.fixture(scope="module", params=ALL, ids=lambda p: "-".join(filter(None, p)))
def adapter(request):
    name, engine = request.param
    return lambda table, folder, **options: ADAPTERS[name](
        table, folder, **options, **({"engine": engine} if engine else {})
    )


def check(bound, table, schema=SCHEMA):
    expected = counts(schema.encode(table), schema.shape, CLIQUES)
    sealed = bound.marginals(CLIQUES)
    assert isinstance(sealed, Sensitive)
    found = reveal(sealed)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == np.int64
        np.testing.assert_array_equal(one, other)
    assert reveal(bound.marginals([()]))[0] == table.num_rows


@given(table=tables)
@settings(
    max_examples=examples(2, 12),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_every_adapter_counts_alike(adapter, table, tmp_path_factory):
    bound = adapter(table, tmp_path_factory.mktemp("rows")).bind(SCHEMA)
    assert bound.shape == SCHEMA.shape
    check(bound, table)


people = st.sampled_from([None, "", "?", "7", " 7 ", "é|", "o'", "b"])


@given(
    table=st.lists(st.tuples(people, rows), max_size=30).map(
        lambda found: table_from([row for _, row in found], [who for who, _ in found])
    ),
    most=st.integers(1, 3),
)
@settings(
    max_examples=examples(2, 6),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_every_adapter_counts_the_same_rows_of_a_unit(adapter, table, most, tmp_path_factory):
    """At most k rows of everybody, those that the definition names, wherever they live."""
    schema = replace(SCHEMA, unit=Unit("id", most, "salt"), null_values=("?",))
    named = [None if who in (None, "", "?") else who.strip() for who in table["id"].to_pylist()]
    kept = [row for own in naive(schema.encode(table), named, schema.unit).values() for row in own]
    codes = [np.array([row[i] for row in kept], np.uint8) for i in range(len(schema.shape))]
    expected = counts(codes, schema.shape, CLIQUES)
    bound = adapter(table, tmp_path_factory.mktemp("rows")).bind(schema)
    assert bound.unit == schema.unit
    assert reveal(bound.marginals([()]))[0] == len(kept)
    for one, other in zip(reveal(bound.marginals(CLIQUES)), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_zero_rows(adapter, tmp_path):
    table = table_from([])
    source = adapter(table, tmp_path)
    check(source.bind(SCHEMA), table)
    assert read_table(source).num_rows == 0


def test_columns_description_and_protocol(adapter, tmp_path):
    table = table_from([("SECRET", 3, 2.0, True, date(2024, 2, 2), "é")] * 3)
    source = adapter(table, tmp_path)
    assert source.columns == tuple(NAMES)
    assert "7 columns" in source.describe()
    assert "SECRET" not in source.describe()
    assert read(source) is source
    bound: ExactCounts = source.bind(SCHEMA)
    assert "SECRET" not in repr(bound)


def test_null_values(adapter, tmp_path):
    table = table_from([("?", 1, 2.0, True, None, "?"), ("F", 1, 2.0, None, None, "é")])
    plain = reveal(adapter(table, tmp_path).bind(SCHEMA).marginals([(0,), (5,)]))
    assert plain[0].tolist() == [1, 0, 1, 0]  # F, M, X for others, null
    assert plain[1].tolist() == [1, 0, 0, 1, 0]  # an undeclared kind is the first one
    told = adapter(table, tmp_path, null_values=["?"]).bind(SCHEMA)
    assert reveal(told.marginals([(0,)]))[0].tolist() == [1, 0, 0, 1]
    assert reveal(told.marginals([(5,)]))[0].tolist() == [0, 0, 0, 1, 1]


def test_the_order_of_columns_does_not_matter(adapter, tmp_path):
    table = table_from(
        [("F", 3, 2.0, True, date(2024, 2, 2), "é"), ("M", 4, 9.0, None, None, None)]
    )
    turned = Schema(tuple(reversed(SCHEMA.columns)))
    bound = adapter(table, tmp_path).bind(turned)
    assert bound.shape == turned.shape
    check(bound, table, turned)


def test_headers_that_do_not_fit(adapter, tmp_path):
    source = adapter(table_from([("SECRET", 3, 2.0, True, None, "é")]), tmp_path)
    lacking = Schema(tuple(c for c in SCHEMA.columns if c.name not in ("age", "id")))
    with pytest.raises(SourceError, match=r"the table has 'id', 'age', not in.*as an identifier"):
        source.bind(lacking)
    wider = Schema((*SCHEMA.columns, Boolean("Smoker?"), Boolean("zzz")))
    with pytest.raises(SourceError, match=r"the table lacks 'Smoker\?', 'zzz'"):
        source.bind(wider)
    renamed = Schema((*(c for c in SCHEMA.columns if c.name != "smoker"), Boolean("smokes")))
    with pytest.raises(SourceError, match=r"lacks 'smokes' \(is it 'smoker'\?\)") as caught:
        source.bind(renamed)
    assert "SECRET" not in str(caught.value)


def test_columns_that_rules_compute_may_lack(adapter, tmp_path):
    """They are never read: the same counts come of a table without them."""
    rows = [("F", 3, 2.0, True, None, "é"), ("M", 4, 9.0, None, None, None)]
    later = Schema(
        (*SCHEMA.columns, Integer("later", 0, 99, nullable=True)), rules=(Rule("later = age + 1"),)
    )
    bound = adapter(table_from(rows), tmp_path).bind(later)
    assert bound.shape == SCHEMA.shape
    check(bound, table_from(rows))


def test_a_table_that_shares_no_name_with_the_schema_is_not_quoted(adapter, tmp_path):
    source = adapter(table_from([]), tmp_path)
    with pytest.raises(SourceError, match=r"none of the schema's columns \('other'\)") as caught:
        source.bind(Schema((Boolean("other"),)))
    assert "smoker" not in str(caught.value)


def test_many_batches(monkeypatch, adapter, tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        ("FMX?"[rng.integers(4)], int(rng.integers(12)), float(rng.random() * 12), None, None, "é")
        for _ in range(500)
    ]
    for module in ("files", "duckdb", "base"):
        monkeypatch.setattr(f"understudy.source.{module}.BATCH_ROWS", 64)
    check(adapter(table_from(rows), tmp_path).bind(SCHEMA), table_from(rows))


def test_raw_rows_are_there_for_a_custodians_look(adapter, tmp_path):
    table = table_from(
        [("F", 3, 2.0, True, date(2024, 2, 2), "é"), (None, 4, 9.0, None, None, "é")]
    )
    raw = read_table(adapter(table, tmp_path))
    assert raw.column_names == NAMES
    assert raw.num_rows == 2
    found, expected = (np.stack(SCHEMA.encode(t), axis=1) for t in (raw, table))
    assert sorted(found.tolist()) == sorted(expected.tolist())  # in any order
