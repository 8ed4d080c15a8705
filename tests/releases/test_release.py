from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from understudy.schema import Schema

from .conftest import people


def test_rows_have_the_declared_types_nulls_and_order(made, table, schema):
    assert made.rows.column_names == table.column_names
    assert schema.illegal(made.rows) == []
    assert made.rows["age"].type == pa.int64()
    assert made.rows["smoker"].null_count > 0
    assert made.rows["sex"].null_count == 0


def test_sampling_again_is_free_and_needs_nothing_private(tmp_path, made):
    made.save(tmp_path / "r")
    again = us.Release.load(tmp_path / "r")
    before = (tmp_path / "r" / "release.json").read_bytes()
    first, second = again.sample(500, key=1), again.sample(500, key=1)
    assert first.equals(second)
    assert not first.equals(again.sample(500, key=2))
    assert again.sample(0).num_rows == 0
    assert made.schema.illegal(again.sample(777)) == []
    assert (tmp_path / "r" / "release.json").read_bytes() == before


def test_samples_come_back_in_the_kind_given(schema):
    pandas = pytest.importorskip("pandas")
    frame = people(200).to_pandas()
    made = us.release(frame, schema, epsilon=1, method="independent")
    sample = made.sample(10)
    assert isinstance(sample, pandas.DataFrame)
    assert sample["age"].dtype == frame["age"].dtype
    polars = pytest.importorskip("polars")
    assert isinstance(made.sample(10, like="polars"), polars.DataFrame)
    assert isinstance(made.sample(10, like="arrow"), pa.Table)


def test_private_rows_never_reach_the_bundle(tmp_path):
    """A unique marker value in the private rows is nowhere in the bundle's files."""
    marker = "ZEBRA-7351"
    schema = Schema.loads(
        '[understudy]\nversion = 1\n[[column]]\nname = "name"\ntype = "identifier"\n'
        '[[column]]\nname = "x"\ntype = "category"\nvalues = ["a", "b"]\nother = true\n'
    )
    rows = pa.table({"name": [marker] * 100, "x": [marker, "a"] * 50})
    us.release(rows, schema, epsilon=1, method="independent").save(tmp_path / "r")
    for file in (tmp_path / "r").iterdir():
        assert marker.encode() not in file.read_bytes()
    assert marker not in str(pq.read_table(tmp_path / "r" / "synthetic.parquet").to_pydict())


def test_rows_can_be_asked_for(table, schema):
    made = us.release(table, schema, epsilon=1, method="independent", rows=17)
    assert made.rows.num_rows == 17
    assert made.certificate.rows == 17
