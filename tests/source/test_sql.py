"""Databases: names, addresses, types, and connections that are refused or lost."""

import logging
import sys
from datetime import date

import ibis
import numpy as np
import psycopg
import pyarrow as pa
import pytest

from tests.source.engines import EVIL, in_duckdb, in_postgres, same_counts
from tests.tools import servers
from understudy.columns.ladder import first
from understudy.errors import InputError, SourceError, WorkError
from understudy.privacy.sensitive import reveal
from understudy.schema import (
    Category,
    Identifier,
    Integer,
    Number,
    Schema,
    UndeclaredCategory,
    UndeclaredShape,
)
from understudy.source import read, shown
from understudy.source.values import Holders
from understudy.units import Unit


def test_whole_numbers_beyond_64_bits():
    large = pa.table({"u": pa.array([0, 3, 2**64 - 1, None], pa.uint64())})
    for column in (Integer("u", -2, 5, nullable=True), Integer("u", 1, 10**6, bins=4)):
        same_counts(in_duckdb(large), large, Schema((column,)), [(0,)])


def test_units_and_values_that_a_collation_takes_for_one_are_two():
    """'a' and 'A' as one unit would have rows of the one displace those of the other."""
    table = pa.table({"who": ["a", "A", "a", "A"], "town": ["x", "X", "x", "x"]})
    connection = in_duckdb(table)._backend
    for column in ("who", "town"):
        connection.raw_sql(f"ALTER TABLE t ALTER {column} TYPE VARCHAR COLLATE NOCASE")
    collated = read(connection.table("t"))
    schema = Schema((Identifier("who"), Integer("n", 0, 1)), unit=Unit("who", 1))
    counted = read(connection.table("t").mutate(n=1).drop("town"))
    assert reveal(counted.bind(schema).marginals([()]))[0] == 2
    for unit in (None, Unit("who", 2)):
        opened = Schema(
            (Identifier("who"), UndeclaredCategory("town", values="discover")), unit=unit
        )
        held, wanted = (Holders(s, opened) for s in (collated, read(table)))
        one, other = (reveal(h.holders("town")) for h in (held, wanted))
        assert dict(zip(*one, strict=True)) == dict(zip(*other, strict=True))


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
    reveal(bound.marginals([()]))[0]
    reveal(bound.marginals([(0, 1), (0,)]))
    reveal(bound.sparse([(0, 1)]))
    assert len(answers) == 4
    for sql, answer in answers:
        assert answer.num_rows == 0 or ("GROUP BY" in sql and answer.num_rows == 1)
        assert "SECRET" not in str(answer.to_pydict())


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
    assert reveal(bound.marginals([()]))[0] == 2


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
    "url", ["postgresql://ann:12/hunter2@host/db", "postgresql://ann:hunter2@host:port/db"]
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
        ("postgresql://host/db", "ibis", r"\.\[sql\]"),
        ("local[1]", "pyspark.sql", r"\.\[spark\]"),
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
    assert reveal(bound.marginals([()]))[0] == 3
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
        bound.marginals([()])


@pytest.mark.parametrize("round_", [False, True])
def test_levels_of_whole_numbers_without_a_sign_and_of_days(round_):
    """Edges below zero, and days beyond an upper bound that is no midnight."""
    days = [date(2020, 1, 1), date(2300, 1, 1), date(1000, 1, 1), None]
    made = pa.table({"u": pa.array([0, 15, 2**64 - 1, None], pa.uint64()), "d": days})
    whole = UndeclaredShape("u", wanted="integer", nullable=True)
    hours = UndeclaredShape("d", wanted="datetime", facts={"resolution": "hour"}, nullable=True)
    levels = [c.rounds if round_ else c.level(first(c.scale)) for c in (whole, hours)]
    schema = Schema(tuple(levels))
    counted = in_duckdb(made).bind(schema).marginals([(0,), (1,)])
    wanted = read(made).bind(schema).marginals([(0,), (1,)])
    for one, two in zip(reveal(counted), reveal(wanted), strict=True):
        assert one.tolist() == two.tolist()


def test_numerics_that_no_double_holds():
    """How round they are is counted all the same: a value must not make the count fail."""
    column = UndeclaredShape("n", wanted="number", facts={"decimals": 1, "lower": -9, "upper": 9})
    with servers.executed(
        "DROP TABLE IF EXISTS huge; CREATE TABLE huge (n numeric); "
        "INSERT INTO huge VALUES (1e400), (-1e400), (1e-400), (5), ('Infinity'), (0.07)"
    ):
        bound = read(servers.postgres(), table="huge").bind(Schema((column.rounds,)))
        (counted,) = reveal(bound.marginals([(0,)]))
    texts = ["1e9", "-1e9", "0", "5", "1e9", "0.07"]
    codes = column.rounds.encode(pa.array(texts))
    assert counted.tolist() == np.bincount(codes, minlength=len(counted)).tolist()
