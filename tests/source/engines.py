"""Tables of every type, and the engines that they are put into."""

from datetime import UTC, date, datetime
from decimal import Decimal

import ibis
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from tests.tools import servers
from understudy.privacy.sensitive import reveal
from understudy.queries.evaluate import counts
from understudy.schema import Boolean, Category, Date, Datetime, Integer, Number, Schema
from understudy.source import read

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


MONEY, MOMENT = pa.decimal128(12, 2), pa.timestamp("us")
TYPES = [MONEY, MONEY, pa.float64(), MOMENT, pa.timestamp("us", "UTC"), MOMENT]
TYPES += [pa.int64(), pa.string(), pa.float64(), pa.string()]


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
