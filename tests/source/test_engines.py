"""Databases and clusters: types, units, what comes back, and what may go wrong."""

import logging
import sys
import warnings
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import combinations

import ibis
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tools import servers

from understudy.errors import InputError, SourceError, WorkError
from understudy.privacy.sensitive import reveal
from understudy.queries.evaluate import counts
from understudy.schema import (
    Boolean,
    Category,
    Date,
    Datetime,
    Identifier,
    Integer,
    Number,
    Schema,
)
from understudy.source import expressions, read, shown
from understudy.source.costs import engine_costs
from understudy.source.expressions import unions
from understudy.source.values import Holders
from understudy.units import Unit

EVIL = "'); DROP TABLE x; --"
SCHEMA = Schema(
    (
        Integer("decimal", 0, 9, nullable=True),
        Number("price `paid`", 0, 10, bins=7, decimals=1, nullable=True),
        Integer("double", -3, 3, nullable=True),
        Datetime("moment", datetime(2024, 1, 1), datetime(2024, 1, 3), bins=9, nullable=True),
        Datetime(
            "instant",
            datetime(2024, 1, 1),
            datetime(2024, 1, 3),
            bins=9,
            dtype="timestamp[us, tz=UTC]",
        ),
        Date("day of it", date(2023, 12, 30), date(2024, 1, 9)),
        Category("whole", (3, 1, 2), other=9, nullable=True),
        Category(EVIL, (EVIL, 'a"b', "a\\b", "a`b", "%s", "{x}", "$1"), other=True),
        Category("number", ("1", "2.5", "0"), nullable=True),
        Boolean("truth", nullable=True),
    )
)
TYPES = [
    pa.decimal128(12, 2), pa.decimal128(12, 2), pa.float64(), pa.timestamp("us"),
    pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.int64(), pa.string(), pa.float64(),
    pa.string(),
]  # fmt: skip
CLIQUES = [(0,), (1, 2), (3, 4), (5, 6), (7, 8, 9), ()]
cents = st.integers(-300, 1300).map(lambda c: Decimal(c).scaleb(-2))
moments = st.datetimes(datetime(2023, 12, 29), datetime(2024, 1, 12))
quarters = st.integers(-20, 20).map(lambda q: q / 4) | st.sampled_from(
    [np.nan, np.inf, -np.inf, -0.0, 1e300]
)
ROW = st.tuples(
    st.none() | cents,
    st.none() | cents,
    st.none() | quarters,
    st.none() | moments,
    st.none() | moments.map(lambda m: m.replace(tzinfo=UTC)),
    st.none() | moments,
    st.none() | st.integers(0, 4),
    st.none() | st.sampled_from([*SCHEMA.columns[7].values, "a'b", "", " "]),
    st.none() | quarters,
    st.none() | st.sampled_from(["TRUE", " no ", "y", "1", "maybe", "", "\u3000f\n"]),
)
tables = st.lists(ROW, max_size=12).map(
    lambda rows: pa.table(
        [pa.array([row[i] for row in rows], TYPES[i]) for i in range(len(TYPES))],
        names=[column.name for column in SCHEMA.columns],
    )
)


def in_duckdb(table):
    connection = ibis.duckdb.connect()
    connection.con.register("arrived", table)
    connection.raw_sql("CREATE TABLE t AS SELECT * FROM arrived")
    return read(connection.table("t"))


def in_postgres(table):
    servers.create(table, "engines")
    return read(servers.postgres(), table="engines")


def in_spark(table):
    return read(servers.spark_frame(table))


ENGINES = [
    pytest.param(in_duckdb, id="duckdb"),
    pytest.param(in_postgres, id="postgres"),
    pytest.param(in_spark, id="spark", marks=pytest.mark.slow),
]


def same_counts(source, table, schema=SCHEMA, cliques=CLIQUES):
    found = reveal(source.bind(schema).marginals(cliques))
    expected = counts(schema.encode(table), schema.shape, cliques)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("engine", ENGINES)
@given(table=tables)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_type_is_counted_as_in_memory(engine, table):
    same_counts(engine(table), table)


@pytest.mark.parametrize("engine", ENGINES)
def test_names_and_values_that_are_commands_are_not_obeyed(engine):
    """A column, its categories, a unit and its salt, each of which would drop the table x."""
    drops = [EVIL, '"; DROP TABLE x; --', "`; DROP TABLE x; --", "x'; DROP TABLE x; --\\"]
    columns = tuple(Category(name, tuple(drops[1:]), other=True) for name in drops)
    schema = Schema((Identifier("who; DROP TABLE x"), *columns), null_values=tuple(drops[:1]))
    schema = replace(schema, unit=Unit("who; DROP TABLE x", 2, "'); DROP TABLE x; --"))
    table = pa.table({column.name: drops for column in schema.columns})
    servers.create(pa.table({"a": [1]}), "x")
    source = engine(table)
    if engine is in_duckdb:
        source._backend.raw_sql("CREATE TABLE x AS SELECT 1 AS a")
    pairs = list(combinations(range(4), 2))
    bound, expected = source.bind(schema), read(table).bind(schema)
    for one, other in zip(
        reveal(bound.marginals(pairs)), reveal(expected.marginals(pairs)), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert reveal(bound.rows()) == 3  # the first stands for null, and is nobody
    with servers.executed("SELECT 1") as connection:
        assert connection.execute("SELECT count(*) FROM x").fetchone() == (1,)
    if engine is in_duckdb:
        assert source._backend.con.sql("SELECT count(*) FROM x").fetchall() == [(1,)]


@pytest.mark.parametrize("engine", ENGINES)
def test_cells_of_any_size(engine):
    rng = np.random.default_rng(1)
    table = pa.table({f"c{i}": rng.integers(0, 1000, 50) for i in range(6)})
    schema = Schema(tuple(Integer(name, 0, 999) for name in table.column_names))
    bound = engine(table).bind(schema)
    ((at, number),) = reveal(bound.sparse([(0, 1, 2, 3, 4, 5)]))
    packed = np.zeros(50, np.int64)
    for column in table.columns:
        packed = packed * 1000 + column.to_numpy()
    expected, times = np.unique(packed, return_counts=True)
    assert at.tolist() == expected.tolist()
    assert number.tolist() == times.tolist()


UNITS = Schema(
    (
        Identifier("who"),
        Integer("a", 0, 4),
        Category("b", ("x", "y"), nullable=True),
    ),
    null_values=("?",),
    unit=Unit("who", 3, "salt"),
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["text", "whole"])
def test_at_most_k_rows_of_a_unit_the_same_ones_everywhere(engine, kind):
    rng = np.random.default_rng(2)
    who = rng.choice([1, 1, 1, 1, 2, 2, 3, 4, 5], 120)
    if kind == "text":
        names = [None, " ann ", "bo", "?", "", "ann"]
        ids = pa.array([names[i] for i in who], pa.string())
    else:
        ids = pa.array([None if i == 5 else int(i) for i in who], pa.int64())
    table = pa.table(
        {
            "who": ids,
            "a": pa.array(rng.integers(0, 5, 120)),
            "b": pa.array(rng.choice(["x", "y", "z"], 120).tolist(), pa.string()),
        }
    )
    cliques = [(0, 1), ()]
    bound, expected = engine(table).bind(UNITS), read(table).bind(UNITS)
    for one, other in zip(
        reveal(bound.marginals(cliques)), reveal(expected.marginals(cliques)), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert bound.unit == UNITS.unit
    assert reveal(bound.rows()) == (9 if kind == "text" else 12) - (kind == "text") * 3


@pytest.mark.parametrize("engine", ENGINES)
def test_somebody_with_a_hundred_thousand_rows_moves_nothing_by_more_than_k(engine):
    rng = np.random.default_rng(6)

    def rows(people):
        some = len(people)
        return pa.table(
            {"who": people, "a": rng.integers(0, 5, some), "b": rng.choice(["x", "y"], some)}
        )

    others = rows([f"u{i % 40}" for i in range(90)])
    cliques = [(), (0,), (1,), (0, 1)]
    before, after = (
        reveal(engine(table).bind(UNITS).marginals(cliques))
        for table in (others, pa.concat_tables([rows(["busy"] * 10**5), others]))
    )
    for one, other in zip(before, after, strict=True):
        assert (other >= one).all()
        assert (other - one).sum() == UNITS.unit.max_rows


OPEN = """
[understudy]
version = 1
null_values = ["?"]
UNIT
[[column]]
name = "who"
type = "identifier"
[[column]]
name = "town"
type = "category"
values = "discover"
null_values = ["-"]
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("unit", ["", 'unit = "who"\nmax_rows = 2'])
def test_values_and_their_holders_are_counted_where_the_rows_are(engine, unit):
    rng = np.random.default_rng(5)
    towns = [None, "", " ", "?", " - ", "Bern", "bern", " Bern", "Z\u00fcrich", "'; --"]
    people = [None, "", "ann", " ann", "bo", "?", "cy"]
    table = pa.table(
        {
            "who": pa.array([people[i] for i in rng.integers(0, 7, 150)], pa.string()),
            "town": pa.array([towns[i] for i in rng.integers(0, 10, 150)], pa.string()),
        }
    )
    schema = Schema.loads(OPEN.replace("UNIT", unit))
    found, expected = (
        reveal(Holders(source, schema).holders("town")) for source in (engine(table), read(table))
    )
    assert list(found[0]) == list(expected[0])
    assert found[1].tolist() == expected[1].tolist()
    assert len(found[0]) == (4 if unit else 5)
    odd = pa.table({"who": [1.5], "town": [date(2024, 1, 1)]})
    with pytest.raises(SourceError, match=r"'town' has type .* whole numbers"):
        Holders(engine(odd), schema)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_unit_of_a_type_that_is_no_name(engine):
    table = pa.table({"who": [1.5], "a": [1], "b": ["x"]})
    with pytest.raises(SourceError, match=r"unit 'who' has type .* whole numbers"):
        engine(table).bind(UNITS)


def test_whole_numbers_beyond_64_bits():
    large = pa.table({"u": pa.array([0, 3, 2**64 - 1, None], pa.uint64())})
    for column in (Integer("u", -2, 5, nullable=True), Integer("u", 1, 10**6, bins=4)):
        same_counts(in_duckdb(large), large, Schema((column,)), [(0,)])


# --- how marginals are put together ---------------------------------------------------------------


@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    data=st.data(),
)
def test_unions_cover_every_clique_and_stay_small(shape, data):
    subset = st.sets(st.integers(0, len(shape) - 1), max_size=3).map(lambda s: tuple(sorted(s)))
    cliques = data.draw(st.lists(subset, max_size=8))
    groups = unions(shape, cliques)
    members = [clique for group in groups.values() for clique in group]
    assert sorted(members) == sorted(set(cliques))
    for union, group in groups.items():
        assert all(set(clique) <= set(union) for clique in group)
        size = int(np.prod([shape[i] for i in union]))
        assert size <= expressions.JOINT_CELLS or union in cliques


def test_small_tables_are_counted_in_one_query(monkeypatch):
    asked = []
    source = in_duckdb(pa.table({name: [1, 0, 1] for name in "abcde"}))
    bound = source.bind(Schema(tuple(Integer(name, 0, 1) for name in "abcde")))
    backend = source._backend
    fetch = backend.to_pyarrow
    monkeypatch.setattr(backend, "to_pyarrow", lambda e, **k: asked.append(e) or fetch(e, **k))
    pairs = [(i, j) for i in range(5) for j in range(i + 1, 5)]
    reveal(bound.marginals(pairs))
    assert len(asked) == 1


def test_the_costs_are_what_engines_do(monkeypatch):
    rng = np.random.default_rng(3)
    table = pa.table({f"c{i}": rng.integers(0, 30, 200) for i in range(6)})
    schema = Schema(tuple(Integer(name, 0, 29) for name in table.column_names))
    cliques = [*combinations(range(6), 3), (0,), (1, 2)]
    sql, spark = engine_costs(schema.shape, cliques, 200)[2:]
    source = in_duckdb(table)
    bound = source.bind(schema)
    answers = []
    fetch = source._backend.to_pyarrow
    monkeypatch.setattr(
        source._backend, "to_pyarrow", lambda e, **k: answers.append(fetch(e, **k)) or answers[-1]
    )
    expected = counts(schema.encode(table), schema.shape, cliques)
    for one, other in zip(reveal(bound.marginals(cliques)), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(answers) == sql.passes > spark.passes >= 1
    assert sum(16 * answer.num_rows for answer in answers) <= sql.bytes_back
    assert sql.rows == 200 * sql.passes


# --- only counts come back ------------------------------------------------------------------------


def test_a_database_is_asked_for_counts_alone(monkeypatch):
    table = pa.table({"secret": ["SECRET"] * 9, "a": [1] * 9})
    source = in_postgres(table)
    schema = Schema((Category("secret", ("x",), other=True), Integer("a", 0, 3)))
    answers = []
    backend = source._backend
    fetch = backend.to_pyarrow

    def watched(asked, **options):
        answers.append((ibis.to_sql(asked, dialect="postgres"), fetch(asked, **options)))
        return answers[-1][1]

    monkeypatch.setattr(backend, "to_pyarrow", watched)
    bound = source.bind(schema)
    reveal(bound.rows())
    reveal(bound.marginals([(0, 1), (0,)]))
    reveal(bound.sparse([(0, 1)]))
    assert len(answers) == 4
    for sql, answer in answers:
        assert answer.num_rows == 0 or ("GROUP BY" in sql and answer.num_rows == 1)
        assert "SECRET" not in str(answer.to_pydict())


@pytest.fixture
def plans(monkeypatch):
    """The plans of all that the driver of Spark fetches, and no other way to fetch anything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql.classic.dataframe import DataFrame
    seen = []
    fetch = DataFrame.toArrow

    def watched(frame):
        seen.append(frame._jdf.queryExecution().optimizedPlan().toString())
        return fetch(frame)

    monkeypatch.setattr(DataFrame, "toArrow", watched)
    for action in ("collect", "toPandas", "toLocalIterator", "take", "head", "first", "show"):
        monkeypatch.setattr(DataFrame, action, None)
    return seen


def only_counts(plans):
    for plan in plans:
        assert plan.startswith("Aggregate ["), plan
        assert "count(1)" in plan.splitlines()[0]


@pytest.mark.slow
def test_no_row_reaches_the_driver_of_spark(plans):
    table = pa.table({"a": np.arange(5000) % 7, "b": (np.arange(5000) % 3).astype(float)})
    source = read(servers.spark_frame(table))
    schema = Schema((Integer("a", 0, 6), Number("b", 0, 2, bins=3)))
    bound = source.bind(schema)
    assert not plans
    assert reveal(bound.rows()) == 5000
    same_counts(source, table, schema, [(0,), (1,), (0, 1)])
    reveal(bound.sparse([(0, 1)]))
    assert len(plans) == 3
    only_counts(plans)


@pytest.mark.slow
def test_no_row_reaches_the_driver_in_a_whole_release(plans):
    """With people of several rows, a column whose values are found, and the certificate."""
    import understudy as us
    from understudy.privacy.noise import SeededNoise

    rng = np.random.default_rng(8)
    table = pa.table(
        {
            "who": [f"u{i}" for i in rng.integers(0, 2500, 5000)],
            "town": [f"secret {i}" if i < 20 else f"town {i % 3}" for i in range(5000)],
            "a": rng.integers(0, 5, 5000),
        }
    )
    text = OPEN.replace("UNIT", 'unit = "who"\nmax_rows = 2')
    schema = Schema.loads(text + '[[column]]\nname = "a"\ntype = "integer"\nlower = 0\nupper = 4\n')
    made = us.release(
        read(servers.spark_frame(table)), schema, epsilon=6, delta="1e-6", key=1,
        noise=SeededNoise(1),
    )  # fmt: skip
    assert set(made.schema.columns[1].values) <= {"town 0", "town 1", "town 2", "OTHER"}
    assert len(made.schema.columns[1].values) > 1
    assert len(plans) > 3
    only_counts(plans)


# --- names of tables ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("plain", "plain"),
        ("plain", "public.plain"),
        ("plain", ["public", "plain"]),
        ("with.dots", 'public."with.dots"'),
        ('with "quotes"', '"with ""quotes"""'),
        (EVIL, ["public", EVIL]),
        ("Größe Ω", "Größe Ω"),
    ],
)
def test_names_that_need_quoting(name, table):
    servers.create(pa.table({"a": [1, 2]}), name)
    bound = read(servers.postgres(), table=table).bind(Schema((Integer("a", 0, 3),)))
    assert reveal(bound.rows()) == 2


@pytest.mark.parametrize("table", ["", ".", "a.", ".a", 'a"b', "a.b.c.d", [], ["a", ""]])
def test_names_that_are_none(table):
    with pytest.raises(InputError, match=r"write 'table' or 'schema.table'"):
        read(servers.postgres(), table=table)


def test_views_and_queries_are_tables_too():
    servers.create(pa.table({"a": pa.array(["1", "2", "x"])}), "texts")
    connection = ibis.connect(servers.postgres())
    try:
        table = connection.table("texts")
        query = table.filter(table.a != "x").mutate(a=table.a.cast("int64"))
        bound = read(query).bind(Schema((Integer("a", 0, 3),)))
        assert reveal(bound.marginals([(0,)]))[0].tolist() == [0, 1, 1, 0]
    finally:
        connection.disconnect()


def test_types_of_postgres_that_look_like_others():
    with servers.executed(
        "DROP TABLE IF EXISTS odd; DROP TYPE IF EXISTS mood; "
        "CREATE TYPE mood AS ENUM ('sad', 'ok'); "
        "CREATE TABLE odd (mood mood, code char(3), id uuid, n numeric, f real); "
        "INSERT INTO odd VALUES ('ok', 'F', '00000000-0000-0000-0000-000000000001', 'NaN', 0.1),"
        "(NULL, 'MM', NULL, 1e300, 'NaN'), ('sad', NULL, NULL, 2.5, 'Infinity'),"
        "('sad', 'G', NULL, 1e-400, '-Infinity')"
    ):
        source = read(servers.postgres(), table="odd")
        schema = Schema(
            (
                Category("mood", ("ok", "happy"), other=True, nullable=True),
                Category("code", ("F", "MM"), other=True, nullable=True),
                Category("id", ("00000000-0000-0000-0000-000000000001",), nullable=True),
                Number("n", 0, 10, bins=2, nullable=True),
                Number("f", 0, 1, bins=10, nullable=True),
            )
        )
        found = [
            t.tolist() for t in reveal(source.bind(schema).marginals([(i,) for i in range(5)]))
        ]
    assert found[0] == [1, 0, 2, 1]
    assert found[1] == [1, 1, 1, 1]
    assert found[2] == [1, 3]
    assert found[3] == [2, 1, 1]
    assert found[4] == [1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1]  # 0.1 as a real is above 0.1


# --- what may go wrong ----------------------------------------------------------------------------

PASSWORD = "hunter2%2Fsecret"  # what stands for "hunter2/secret" in a URL


def quiet_about_the_password(error):
    told = [str(error), repr(error), repr(error.__cause__), repr(error.__context__)]
    assert not any("hunter2" in text for text in told)
    assert error.__cause__ is None
    assert error.__suppress_context__


def test_a_server_that_is_not_there(caplog):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(
        SourceError, match="'localhost:1/db': the server cannot be reached"
    ) as caught:
        read(f"postgresql://ann:{PASSWORD}@localhost:1/db", table="t")
    quiet_about_the_password(caught.value)
    assert "hunter2" not in caplog.text


def test_credentials_that_are_wrong(caplog):
    caplog.set_level(logging.DEBUG)
    url = servers.postgres()
    hba = servers.postgres.server.pgdata / "pg_hba.conf"
    before = hba.read_text()
    with servers.executed("DROP ROLE IF EXISTS ann; CREATE ROLE ann LOGIN PASSWORD 'right'") as c:
        hba.write_text("local all ann scram-sha-256\n" + before)
        c.execute("SELECT pg_reload_conf()")
        try:
            with_user = url.replace("postgres:@", f"ann:{PASSWORD}@")
            with pytest.raises(SourceError, match=r"does not let 'ann' in.*PGPASSWORD") as caught:
                read(with_user, table="t")
            quiet_about_the_password(caught.value)
            right = read(url.replace("postgres:@", "ann:right@"), table="pg_catalog.pg_class")
            assert "right" not in right.describe() + repr(right) + repr(vars(right))
            assert "hunter2" not in caplog.text
            assert "ann:right" not in caplog.text
        finally:
            hba.write_text(before)
            c.execute("SELECT pg_reload_conf()")


@pytest.mark.parametrize(
    "url",
    ["postgresql://ann:12/hunter2@host/db", "postgresql://ann:hunter2@host:port/db"],
)
def test_addresses_that_cannot_be_read(url):
    with pytest.raises(InputError, match="cannot be read; write postgresql") as caught:
        read(url, table="t")
    quiet_about_the_password(caught.value)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ("rows.csv", "rows.csv"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://ann@host:1/db", "postgresql://ann@host:1/db"),
        ("postgresql://ann:hunter2@host/db?password=hunter2", "postgresql://ann@host/db"),
        ("postgresql://ann:hun@ter2/x@host/db", "postgresql://ann@host/db"),
        ("postgresql:///db?host=/run", "postgresql:///db"),
    ],
)
def test_what_is_shown_of_an_address(data, told):
    assert shown(data) == told


def test_a_database_or_a_user_that_is_not_there():
    url = servers.postgres()
    with pytest.raises(SourceError, match="no such database"):
        read(url.replace("/postgres?", "/nowhere?"), table="t")
    with pytest.raises(SourceError, match="knows no user 'nobody'"):
        read(url.replace("postgres:@", "nobody:@"), table="t")


def test_a_table_that_is_not_there():
    servers.create(pa.table({"a": [1]}), "patients")
    with pytest.raises(SourceError, match=r"no table 'patient'; is it 'patients'\?"):
        read(servers.postgres(), table="patient")
    with pytest.raises(SourceError, match=r"no table 'nowhere.patients'"):
        read(servers.postgres(), table="nowhere.patients")
    with pytest.raises(InputError, match="which table"):
        read(servers.postgres())


def test_options_that_do_not_go_together():
    with pytest.raises(InputError, match="table='t' goes with a database"):
        read(pa.table({"a": [1]}), table="t")
    with pytest.raises(InputError, match="engine='memory' is for files"):
        read(servers.postgres(), table="t", engine="memory")
    with pytest.raises(InputError, match="path='x' goes with Spark"):
        read("y.csv", path="x")
    with pytest.raises(InputError, match="which table"):
        read("local[1]")


@pytest.mark.parametrize(
    ("data", "module", "extra"),
    [
        ("postgresql://host/db", "ibis", r"understudy\[sql\]"),
        ("local[1]", "pyspark.sql", r"understudy\[spark\]"),
    ],
)
def test_an_extra_that_is_not_installed_is_named(monkeypatch, data, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=f"pip install '{extra}'"):
        read(data, table="t")


@pytest.mark.parametrize("url", ["s3://bucket/rows.parquet", "nosuch://host/db"])
def test_an_address_of_no_engine_that_is_known(url):
    with pytest.raises(SourceError, match="no engine of this name is known"):
        read(url, table="t")


def test_a_folder_that_is_called_as_a_cluster_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "yarn").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "yarn" / "x.parquet")
    assert read("yarn").columns == ("a",)


def test_columns_and_types_that_do_not_fit():
    servers.create(pa.table({"a": pa.array(["SECRET"]), "b": [1]}), "fits")
    source = read(servers.postgres(), table="fits")
    with pytest.raises(SourceError, match=r"lacks 'c'"):
        source.bind(Schema((Category("a", ("x",)), Integer("b", 0, 1), Boolean("c"))))
    with pytest.raises(
        SourceError, match="'a' is of type 'integer' in the schema and text"
    ) as said:
        source.bind(Schema((Integer("a", 0, 1), Integer("b", 0, 1))))
    assert "cast" in str(said.value)
    assert "SECRET" not in str(said.value)
    with servers.executed(
        "DROP TABLE IF EXISTS rare; CREATE TABLE rare (j json, m money, p point)"
    ):
        rare = read(servers.postgres(), table="rare")
        other = (Identifier("m"), Identifier("p"))
        with pytest.raises(SourceError, match="column 'j' has type 'json', which"):
            rare.bind(Schema((Category("j", ("x",)), *other)))
        with pytest.raises(SourceError, match="does not compare column 'm'"):
            rare.bind(Schema((Identifier("j"), Integer("m", 0, 9), Identifier("p"))))


@pytest.mark.parametrize(
    ("column", "ibis_type", "spark_type"),
    [
        (Integer("a", 0, 1), "int64", "bigint"),
        (Number("a", 0, 1, bins=2), "float64", "double"),
        (Date("a", date(2024, 1, 1), date(2024, 1, 3)), "date", "date"),
        (
            Datetime("a", datetime(2024, 1, 1), datetime(2024, 1, 3), bins=2),
            "timestamp",
            "timestamp_ntz",
        ),
        (Category("a", (1, 2)), "int64", "bigint"),
        (Category("a", (date(2024, 1, 1),)), "date", "date"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_remedy_for_texts_is_the_cast_that_is_needed(engine, column, ibis_type, spark_type):
    """And it works: what is cast as it says is bound."""
    table = pa.table({"a": pa.array(["1", "2"])})
    source = engine(table)
    wanted = spark_type if engine is in_spark else ibis_type
    with pytest.raises(SourceError, match=rf"text in the table: .*cast\('{wanted}'\)") as said:
        source.bind(Schema((column,)))
    on_spark = engine is in_spark
    given = source._frame if on_spark else source._expression
    remedy = str(said.value).partition("frame.with" if on_spark else "table.mut")
    cast = eval(remedy[1] + remedy[2], {"frame": given, "table": given})  # noqa: S307
    read(cast).bind(Schema((column,)))


def test_a_database_that_does_not_tell_texts_apart(monkeypatch):
    source = in_duckdb(pa.table({"a": ["x"]}))
    monkeypatch.setattr(source._backend, "execute", lambda asked: True)
    with pytest.raises(SourceError, match="takes 'a', 'A' and 'a ' for one text"):
        source.bind(Schema((Category("a", ("x",)),)))


def test_an_error_inside_the_database_says_nothing_about_a_row():
    servers.create(pa.table({"a": pa.array(["1", "SECRET"])}), "broken")
    connection = ibis.connect(servers.postgres())
    try:
        table = connection.table("broken")
        bound = read(table.mutate(a=table.a.cast("int64"))).bind(Schema((Integer("a", 0, 3),)))
        with pytest.raises(WorkError, match="could not count; what was charged") as caught:
            bound.marginals([(0,)])
        assert "SECRET" not in str(caught.value)
        assert caught.value.__cause__ is None
    finally:
        connection.disconnect()


def terminate():
    """Cut every other connection to the server."""
    with psycopg.connect(servers.postgres(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


def test_a_connection_that_is_lost_is_made_again(monkeypatch):
    monkeypatch.setattr("understudy.source.sql._PATIENCE", 0.01)
    servers.create(pa.table({"a": [1, 2, 2]}), "lost")
    bound = read(servers.postgres(), table="lost").bind(Schema((Integer("a", 0, 3),)))
    terminate()
    assert reveal(bound.rows()) == 3
    terminate()
    assert reveal(bound.marginals([(0,)]))[0].tolist() == [0, 1, 2, 0]


def test_a_server_that_stays_away(monkeypatch):
    monkeypatch.setattr("understudy.source.sql._PATIENCE", 0.01)
    servers.create(pa.table({"a": [1, 2, 2]}), "away")
    source = read(servers.postgres(), table="away")
    bound = source.bind(Schema((Integer("a", 0, 3),)))
    monkeypatch.setattr(source._backend, "reconnect", terminate)
    terminate()
    with pytest.raises(WorkError, match=r"connection was lost.*what was charged until now stays"):
        bound.rows()


def test_moments_before_and_after_all_bounds():
    far = [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None]
    edge = [datetime(2024, 1, 1) + timedelta(microseconds=i) for i in (-1, 0, 1)]
    table = pa.table({"m": pa.array([*far, *edge], pa.timestamp("us"))})
    column = Datetime("m", datetime(2024, 1, 1), datetime(2024, 1, 2), bins=3, nullable=True)
    for engine in (in_duckdb, in_postgres):
        same_counts(engine(table), table, Schema((column,)), [(0,)])
    with servers.executed(
        "DROP TABLE IF EXISTS ever; CREATE TABLE ever (m timestamp); "
        "INSERT INTO ever VALUES ('infinity'), ('-infinity')"
    ):
        bound = read(servers.postgres(), table="ever").bind(Schema((column,)))
        assert reveal(bound.marginals([(0,)]))[0].tolist() == [1, 0, 1, 0]


@pytest.mark.slow
def test_a_release_from_spark_is_the_one_from_files(tmp_path):
    import understudy as us
    from understudy.testing.stand_ins import StillNoise

    rng = np.random.default_rng(4)
    table = pa.table(
        {"a": rng.integers(0, 9, 4000), "b": rng.choice(["x", "y"], 4000), "c": rng.random(4000)}
    )
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=1000)
    schema = Schema(
        (Integer("a", 0, 7), Category("b", ("x",), other=True), Number("c", 0, 1, bins=5))
    )
    servers.spark()
    sources = [
        read(tmp_path / "rows.parquet", engine="duckdb"),
        read("local-cluster[2,1,1024]", path=tmp_path / "rows.parquet"),
    ]
    one, other = (
        us.release(source, schema, epsilon=1, key=5, noise=StillNoise(), method="independent")
        for source in sources
    )
    assert one.rows.equals(other.rows)
    assert one.certificate.to_json() == other.certificate.to_json()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_release_is_the_same_wherever_the_rows_are(engine):
    """People of several rows, values and quantiles that are found, rules, and the certificate."""
    import understudy as us
    from understudy.testing.stand_ins import StillNoise

    rng = np.random.default_rng(9)
    ill = rng.random(3000) < 0.4
    table = pa.table(
        {
            "who": [f"u{i}" for i in rng.integers(0, 900, 3000)],
            "town": rng.choice(["Ulm", "Bonn", "-", "?"], 3000),
            "age": np.where(ill, rng.integers(16, 90, 3000), rng.integers(0, 90, 3000)),
            "paid": np.round(rng.exponential(20, 3000), 2),
            "ill": ill,
        }
    )
    schema = Schema.loads(
        OPEN.replace("UNIT", 'unit = "who"\nmax_rows = 2')
        + """
[[column]]
name = "age"
type = "integer"
lower = 0
upper = 89
edges = [0, 16, 40, 89]
[[column]]
name = "paid"
type = "number"
lower = 0
upper = 100
bins = {quantiles = 4}
[[column]]
name = "ill"
type = "boolean"
[[rule]]
says = "ill implies age >= 16"
"""
    )
    one, other = (
        us.release(source, schema, epsilon=4, delta="1e-6", key=5, noise=StillNoise())
        for source in (engine(table), read(table))
    )
    assert one.schema == other.schema
    assert set(one.schema.columns[1].values) >= {"Ulm", "Bonn"}
    assert one.rows.equals(other.rows)
    assert one.certificate.to_json() == other.certificate.to_json()
    assert one.schema.illegal(one.rows) == []
