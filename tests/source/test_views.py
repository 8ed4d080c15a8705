"""Views counted by engines: the integers of memory, whatever is in the two tables."""

from __future__ import annotations

import itertools
from datetime import date, datetime, timedelta
from decimal import Decimal

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from tests.source.test_families import FAMILIES, counted, schema_of, tables
from tests.thorough import examples, slow
from tests.tools import servers
from understudy.errors import SourceError
from understudy.privacy.sensitive import reveal
from understudy.schema import Category, Identifier, Integer, Schema
from understudy.schema.family import Family, FamilySchema
from understudy.source import read
from understudy.source.duckdb import DuckDBSource
from understudy.source.families import FamilySource


def in_duckdb(parents, children):
    connection = ibis.duckdb.connect()
    for name, table in (("p", parents), ("c", children)):
        connection.con.register(f"{name}_", table)
        connection.raw_sql(f"CREATE TABLE {name} AS SELECT * FROM {name}_")
    return FamilySource(read(connection.table("p")), read(connection.table("c")))


def in_postgres(parents, children):
    for name, table in (("family_p", parents), ("family_c", children)):
        servers.create(table, name)
    return FamilySource(
        *(read(servers.postgres(), table=name) for name in ("family_p", "family_c"))
    )


def in_spark(parents, children):
    return FamilySource(*(read(servers.spark_frame(table)) for table in (parents, children)))


ENGINES = [
    pytest.param(in_duckdb, id="duckdb"),
    pytest.param(in_postgres, id="postgres"),
    pytest.param(in_spark, id="spark", marks=pytest.mark.slow),
]
PLACES = {
    "text": ["10", "9", " 9.0", "1e1", "B", "a", "é", "", "?", None, "nan", "-0", "0", "1e400"],
    "whole": [2**62, 2**62 + 1, -5, -(2**60) - 1, -(2**60), 3, 0, None],
    "float": [1.5, float("nan"), None, -0.0, 0.0, 1e300, -2.25],
    "money": [*map(Decimal, ("0.01", "1234567890123456.78", "1234567890123456.77")), None],
    "day": [date(2024, 1, 9), date(1969, 12, 31), date(9999, 1, 1), None],
    "moment": [datetime(2024, 1, 1) + timedelta(microseconds=i) for i in range(3)] + [None],
}
TYPES = {
    "text": pa.string(),
    "whole": pa.int64(),
    "float": pa.float64(),
    "money": pa.decimal128(20, 2),
    "day": pa.date32(),
    "moment": pa.timestamp("us"),
}


def two_tables(rng, place="text", families=25):
    """Families of up to seven children, some without parents, keys with blanks and without."""
    keys = [f"k{i}" for i in range(families)]
    named = [*keys[: families - 5], *keys[:4], None, "?", " k7 "]
    parents = {"k": named, "p": rng.choice(["a", "b", "?"], len(named))}
    owners = [str(rng.choice(keys)) for _ in range(4 * families)] + [None, "", " k3", "k3\t"] * 2
    listed = [PLACES[place][i] for i in rng.integers(0, len(PLACES[place]), len(owners))]
    children = {
        "k": owners,
        "when": pa.array(listed, TYPES[place]),
        "c": rng.integers(-1, 4, len(owners)),
        "d": rng.choice(["x", "y", "z"], len(owners)),
    }
    return pa.table(parents), pa.table(children)


def two_levels(order="when", least=0, most=4, siblings="all"):
    null = ("?",)
    parents = Schema((Identifier("k"), Category("p", ("a", "b"), nullable=True)), null_values=null)
    children = (Identifier("k"), Identifier("when"), Integer("c", 0, 3), Category("d", ("x", "y")))
    return FamilySchema.of(
        parents,
        Schema(children, null_values=null),
        Family("P", "k", "C", "k", most, least, order, siblings),
    )


def answers(source, schema, *, whole=False):
    """All pairs of columns and the total; `whole`: and all that can be asked otherwise."""
    bound = source.bind(schema)
    columns = range(len(schema.shape))
    pairs = reveal(bound.marginals([(), (0,), *itertools.combinations(columns, 2)]))
    found = [table.tolist() for table in pairs]
    if whole:
        sparse = reveal(bound.sparse([(), (0, 2), tuple(columns)]))
        found += [part.tolist() for table in sparse for part in table]
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("place", "order", "least"),
    [("text", None, 0), ("text", None, 1), ("text", "when", 1), *((p, "when", 0) for p in PLACES)],
)
def test_engines_give_the_integers_of_memory(engine, place, order, least):
    given = two_tables(np.random.default_rng(len(place) + least), place)
    schema = two_levels(order, least)
    wanted = answers(FamilySource(*map(read, given)), schema, whole=place == "text")
    assert wanted[0] > 0
    assert answers(engine(*given), schema, whole=place == "text") == wanted


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("most", "siblings"), [(1, "same"), slow((2, "none")), (13, "same")])
def test_few_and_many_children(engine, most, siblings):
    """One child has no sibling; with thirteen, weights are rounded down."""
    given = two_tables(np.random.default_rng(most), families=9)
    for order in (None, "when"):
        schema = two_levels(order, 0, most, siblings)
        wanted = answers(FamilySource(*map(read, given)), schema)
        assert answers(engine(*given), schema) == wanted


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("order", [None, "when"])
def test_a_family_moves_its_own_counts_alone(engine, order):
    """All families, and all but one: the sum of what each counts alone, which is at most M."""
    schema = schema_of(order)
    alone = [counted(*family, schema) for family in FAMILIES]
    cliques = list(itertools.combinations(range(len(schema.shape)), 2))
    for left in (0, 2, 4, len(FAMILIES))[:: examples(2, 1)]:
        there = [i for i in range(len(FAMILIES)) if i != left]
        rows = [[row for i in there for row in FAMILIES[i][side]] for side in (0, 1)]
        bound = engine(*tables(*rows)).bind(schema)
        found = [*reveal(bound.marginals([(), *cliques]))]
        for at, table in enumerate(found):
            np.testing.assert_array_equal(table, sum(alone[i][at] for i in there))


@pytest.mark.parametrize(
    ("form", "order"),
    [("parquet", "when"), ("csv", None), slow(("parquet", None)), slow(("csv", "when"))],
)
def test_files_are_counted_some_families_at_a_time(tmp_path, monkeypatch, form, order):
    parents, children = two_tables(np.random.default_rng(3))
    write = {"parquet": pq.write_table, "csv": pcsv.write_csv}[form]
    for name, table in (("p", parents), ("c", children)):
        write(table, tmp_path / f"{name}.{form}")
    schema = two_levels(order)
    given = [tmp_path / f"p.{form}", tmp_path / f"c.{form}"]
    wanted = answers(FamilySource(*map(read, given)), schema, whole=True)
    for turns in (1, 3):
        monkeypatch.setattr(DuckDBSource, "turns", turns)
        source = FamilySource(*(read(path, engine="duckdb") for path in given))
        assert answers(source, schema, whole=True) == wanted


def test_keys_that_a_collation_takes_for_one_are_two():
    parents = pa.table({"k": ["a", "A", "b"], "p": ["a", "b", "b"]})
    children = pa.table(
        {"k": ["a", "A", "B"], "when": ["x", "X", "y"], "c": [1, 2, 3], "d": ["x"] * 3}
    )
    source = in_duckdb(parents, children)
    connection = source._parents._backend
    for name, column in (("p", "k"), ("c", "k"), ("c", '"when"')):
        connection.raw_sql(f"ALTER TABLE {name} ALTER {column} TYPE VARCHAR COLLATE NOCASE")
    source = FamilySource(*(read(connection.table(name)) for name in ("p", "c")))
    for order in (None, "when"):
        wanted = answers(FamilySource(read(parents), read(children)), two_levels(order))
        assert answers(source, two_levels(order)) == wanted


def test_two_places_are_refused_and_types_that_have_no_order():
    parents, children = two_tables(np.random.default_rng(1))
    with pytest.raises(SourceError, match="in one database"):
        FamilySource(read(parents), in_duckdb(parents, children)._children).bind(two_levels())
    apart = [in_duckdb(parents, children) for _ in range(2)]
    with pytest.raises(SourceError, match="in one database"):
        FamilySource(apart[0]._parents, apart[1]._children).bind(two_levels())
    flags = children.set_column(1, "when", pa.array([True] * children.num_rows))
    with pytest.raises(SourceError, match="order 'when' has type 'boolean'"):
        in_duckdb(parents, flags).bind(two_levels())
    keyed = parents.set_column(0, "k", pa.array([1.5] * parents.num_rows))
    with pytest.raises(SourceError, match="key 'k' has type 'float64'"):
        in_duckdb(keyed, children).bind(two_levels())
    with pytest.raises(SourceError, match="lacks 'd'"):
        in_duckdb(parents, children.drop_columns(["d"])).bind(two_levels())


def test_a_database_is_asked_for_counts_alone(monkeypatch):
    source = in_postgres(*two_tables(np.random.default_rng(2)))
    backend = source._parents._backend
    seen, fetch = [], backend.to_pyarrow

    def watched(asked, **options):
        seen.append((str(ibis.to_sql(asked, dialect="postgres")), fetch(asked, **options)))
        return seen[-1][1]

    monkeypatch.setattr(type(backend), "to_pyarrow", lambda _, asked, **o: watched(asked, **o))
    bound = source.bind(two_levels())
    assert all(answer.num_rows == 0 for _, answer in seen)
    before = len(seen)
    reveal(bound.marginals([(0, 2), (2, 3), (3, 5)]))
    assert len(seen) > before
    for text, answer in seen[before:]:
        assert "GROUP BY" in text
        assert answer.column_names == ["cell", "number"]
        assert answer.num_rows <= 3 * 5 * 4 * 4


def test_two_connections_to_one_duckdb_file_are_one_place(tmp_path):
    parents, children = two_tables(np.random.default_rng(4))
    url = f"duckdb://{tmp_path}/families.db"
    with ibis.duckdb.connect(tmp_path / "families.db").con as connection:
        for name, table in (("p", parents), ("c", children)):
            connection.register(f"{name}_", table)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_")
    source = FamilySource(read(url, table="p"), read(url, table="c"))
    wanted = answers(FamilySource(read(parents), read(children)), two_levels())
    assert answers(source, two_levels()) == wanted
