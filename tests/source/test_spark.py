"""Tables on Spark: no row reaches the driver."""

import warnings
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.source.engines import OPEN, same_counts
from tests.tools import servers
from understudy.privacy.sensitive import reveal
from understudy.schema import Category, Integer, Number, Schema, UndeclaredShape
from understudy.source import read


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
    assert reveal(bound.marginals([()]))[0] == 5000
    same_counts(source, table, schema, [(0,), (1,), (0, 1)])
    reveal(bound.sparse([(0, 1)]))
    assert len(plans) == 3
    only_counts(plans)


@pytest.mark.slow
def test_no_row_reaches_the_driver_in_a_whole_release(plans):
    """With people of several rows, a column whose values are found, and the certificate."""
    import understudy as us
    from understudy.testing import SeededNoise

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
    budget = {"epsilon": 6, "delta": "1e-6"}
    source = read(servers.spark_frame(table))
    made = us.release(source, schema, **budget, key=1, noise=SeededNoise(1))
    assert set(made.schema.columns[1].values) <= {"town 0", "town 1", "town 2", "OTHER"}
    assert len(made.schema.columns[1].values) > 1
    assert len(plans) > 3
    only_counts(plans)


def test_a_folder_that_is_called_as_a_cluster_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "yarn").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "yarn" / "x.parquet")
    assert read("yarn").columns == ("a",)


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


@pytest.mark.slow
def test_days_that_are_no_moments():
    """A day of the year 550000 is beyond all of Spark's timestamps, and does not make a count fail."""
    far = "date_add(date '9999-12-31', 200000000)"
    frame = servers.spark().sql(f"SELECT {far} AS d UNION ALL SELECT date '2020-01-01'")
    facts = {"resolution": "hour", "upper": "2020-06-01T07:00:00"}
    column = UndeclaredShape("d", wanted="datetime", facts=facts).rounds
    (counted,) = reveal(read(frame).bind(Schema((column,))).marginals([(0,)]))
    days = pa.array([datetime(2300, 1, 1), datetime(2020, 1, 1)])
    assert counted.tolist() == np.bincount(column.encode(days), minlength=column.size).tolist()
