"""Names of tables and columns that would be commands, on every engine: counted as tame ones are."""

from itertools import combinations

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import csv, parquet

from tests.thorough import examples
from tests.tools import servers
from understudy.errors import SourceError
from understudy.privacy.sensitive import reveal
from understudy.schema import Category, Integer, Schema
from understudy.source import read
from understudy.units import Unit

VICTIM = "victim"
SIGNS = r"""" ' ` "" `` ; -- /* */ \ % %s %(x)s $1 :x ? {x} [ ] ( ) , . # ${x}"""
WORDS = "c0 cell u n h place SELECT NULL current_user pg_sleep(9)"
ODD = ["\u2019", "\u02bc", "\uff07", "\u202e", "\u200b", "é", "e\u0301", "名", "\U0001f600", "\xa0"]
COMMANDS = [
    f"; DROP TABLE {VICTIM}; --",
    f'" FROM x; DROP TABLE {VICTIM}; --',
    f"`; DROP TABLE {VICTIM}; --",
    f"'); DELETE FROM {VICTIM}; --",
]
PIECES = [*SIGNS.split(), " ", *WORDS.split(), *ODD, *COMMANDS]
"""What ends a name, begins a comment or a parameter, or is a name of ours in a query."""


def fits(name):
    """What every engine takes as a name: PostgreSQL cuts at 63 bytes."""
    return 0 < len(name.encode()) <= 63 and name.strip() == name


names = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join).filter(fits)
FOUR = st.lists(names, min_size=4, max_size=4, unique_by=lambda name: name.casefold())
"""Three columns and a table; Spark does not tell A from a."""
SETTINGS = settings(
    max_examples=examples(8, 25),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def rows(a="a", b="b", who="who"):
    rng = np.random.default_rng(7)
    return pa.table(
        {
            a: pa.array(rng.integers(0, 5, 60)),
            b: pa.array(rng.choice(["x", "y", "'; --"], 60).tolist()),
            who: pa.array([f"p{i % 20}" for i in range(60)]),
        }
    )


def schema(a="a", b="b", who="who"):
    from understudy.schema import Identifier

    columns = (Integer(a, 0, 4), Category(b, ("x", "y"), other=True), Identifier(who))
    return Schema(columns, unit=Unit(who, 2, "salt"))


PAIRS = [*combinations(range(2), 2), (0,), (1,), ()]
TAME = reveal(read(rows()).bind(schema()).marginals(PAIRS))


def counted_alike(source, *columns):
    found = reveal(source.bind(schema(*columns)).marginals(PAIRS))
    for one, other in zip(found, TAME, strict=True):
        np.testing.assert_array_equal(one, other)


@given(FOUR)
@SETTINGS
def test_hostile_names_in_duckdb(four):
    *columns, table = four
    connection = ibis.duckdb.connect()
    connection.con.register("arrived", rows(*columns))
    quoted = servers.quoted(table)
    connection.raw_sql(f"CREATE TABLE {VICTIM} AS SELECT 1 AS a")
    connection.raw_sql(f"CREATE TABLE {quoted} AS SELECT * FROM arrived")
    counted_alike(read(connection.table(table)), *columns)
    assert connection.con.sql(f"SELECT count(*) FROM {VICTIM}").fetchall() == [(1,)]


@given(FOUR)
@SETTINGS
def test_hostile_names_in_a_duckdb_file_by_its_address(tmp_path_factory, four):
    *columns, table = four
    path = tmp_path_factory.mktemp("file") / "t.duckdb"
    arrived = rows(*columns)  # noqa: F841  (DuckDB finds it by its name)
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE {VICTIM} AS SELECT 1 AS a")
        connection.execute(f"CREATE TABLE {servers.quoted(table)} AS SELECT * FROM arrived")
    counted_alike(read(f"duckdb://{path}", table=["main", table]), *columns)
    with duckdb.connect(str(path)) as connection:
        assert connection.execute(f"SELECT count(*) FROM {VICTIM}").fetchall() == [(1,)]


@given(FOUR)
@SETTINGS
def test_hostile_names_in_files_that_duckdb_scans(tmp_path_factory, four):
    """Also the name of the file, as far as a file can have it."""
    *columns, name = four
    folder = tmp_path_factory.mktemp("files")
    safe = name.replace("/", "∕").replace("*", "∗").replace("?", "？").replace("[", "［")
    for suffix, write in ((".csv", csv.write_csv), (".parquet", parquet.write_table)):
        path = folder / (safe[:40] + suffix)
        write(rows(*columns), str(path))
        counted_alike(read(path, engine="duckdb"), *columns)


@given(FOUR)
@SETTINGS
def test_hostile_names_in_postgres(four):
    *columns, table = four
    servers.create(pa.table({"a": [1]}), VICTIM)
    servers.create(rows(*columns), table)
    try:
        counted_alike(read(servers.postgres(), table=["public", table]), *columns)
        with servers.executed("SELECT 1") as connection:
            assert connection.execute(f"SELECT count(*) FROM {VICTIM}").fetchone() == (1,)
    finally:
        with servers.executed(f"DROP TABLE {servers.quoted(table)}"):
            pass


@pytest.mark.slow
@given(FOUR)
@settings(SETTINGS, max_examples=8)
def test_hostile_names_in_spark(four):
    *columns, table = four
    session = servers.spark()
    session.sql("SELECT 1 AS a").createOrReplaceTempView(VICTIM)
    quoted = "`" + table.replace("`", "``") + "`"
    servers.spark_frame(rows(*columns)).createOrReplaceTempView(quoted)
    try:
        counted_alike(read("local-cluster[2,1,1024]", table=[table]), *columns)
        assert session.table(VICTIM).count() == 1
    finally:
        session.catalog.dropTempView(quoted)


BROKEN = ["a\x00b", "a\nb", "a\x1bb", "\ud800", "n" * 201]


@pytest.mark.parametrize("name", BROKEN, ids=ascii)
def test_what_cannot_be_a_name_is_refused_before_an_engine_sees_it(name):
    """NUL, line breaks, half characters, and what is too long."""
    connection = ibis.duckdb.connect()
    good = pa.table({"a": [1]})
    connection.con.register("good", good)
    table = connection.table("good")
    with pytest.raises(SourceError, match="is not a name"):
        read(table.rename({name: "a"}))


@pytest.mark.parametrize("name", ["x\x00; DROP", f"x; DROP TABLE {VICTIM}", 'x"; --', "\ud800"])
def test_a_table_that_is_not_there_is_told_and_nothing_is_run(tmp_path, name):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE {VICTIM} AS SELECT 1 AS a")
    servers.create(pa.table({"a": [1]}), VICTIM)
    for url in (f"duckdb://{path}", servers.postgres()):
        with pytest.raises(SourceError):
            read(url, table=[name])
    with duckdb.connect(str(path)) as connection:
        assert connection.execute(f"SELECT count(*) FROM {VICTIM}").fetchall() == [(1,)]
    with servers.executed("SELECT 1") as connection:
        assert connection.execute(f"SELECT count(*) FROM {VICTIM}").fetchone() == (1,)
