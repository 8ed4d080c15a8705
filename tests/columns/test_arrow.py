import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from understudy.columns.reading import (
    array_of,
    arrow_type,
    numpy_of,
    same_stored,
    texts_of,
    type_name,
    valid_of,
)

TYPES = [
    pa.int8(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.date32(),
    pa.date64(),
    pa.timestamp("s"),
    pa.timestamp("ns", "Europe/Berlin"),
    pa.decimal128(10, 2),
    pa.decimal256(50, 3),
    pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.int8(), pa.float64(), ordered=True),
    pa.dictionary(pa.int8(), pa.timestamp("us", "UTC")),
]


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_names_go_there_and_back(type_):
    assert arrow_type(type_name(type_)) == type_
    assert arrow_type(str(type_)) == type_


def test_floats_are_spelt_with_their_width():
    assert type_name(pa.float64()) == "float64"
    assert type_name(pa.dictionary(pa.int8(), pa.float32())) == (
        "dictionary<values=float32, indices=int8, ordered=0>"
    )


@pytest.mark.parametrize("name", ["", "int65", "timestamp", "decimal128(99, 2)", "list<int64>"])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match="is not the name of an Arrow type"):
        arrow_type(name)


def test_what_parquet_gives_back_counts_as_the_same():
    assert same_stored(pa.timestamp("s"), pa.timestamp("ms"))
    assert same_stored(pa.date64(), pa.date32())
    assert same_stored(pa.dictionary(pa.int8(), pa.large_string()), pa.string())
    assert not same_stored(pa.int64(), pa.int32())
    assert not same_stored(pa.string(), pa.large_string())
    assert not same_stored(pa.timestamp("us"), pa.timestamp("us", "UTC"))


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float64", "float16", "bool"])
@pytest.mark.parametrize("rows", [0, 1, 9])
def test_arrays_are_what_arrow_makes_of_them(dtype, rows):
    values = np.arange(rows).astype(dtype)[::-1]
    null = np.arange(rows) % 3 == 1
    assert array_of(values).equals(pa.array(values.copy()))
    assert array_of(values, null).equals(pa.array(values.copy(), mask=null))
    np.testing.assert_array_equal(numpy_of(array_of(values)[2:]), values[2:])
    np.testing.assert_array_equal(numpy_of(array_of(values, null)), np.where(null, 0, values))
    np.testing.assert_array_equal(valid_of(array_of(values, null)[1:]), ~null[1:])


def test_a_schema_is_loaded_and_rows_are_written_read_and_checked_without_pandas(tmp_path):
    code = """
import sys
import numpy as np
from pyarrow import csv
from understudy.columns.reading import texts_of
from understudy.demo import schema
from understudy.source import read
made = schema()
rows = [np.arange(9) % size for size in made.shape]
decoded = made.decode(rows, np.random.default_rng(0))
assert made.illegal(decoded) == []
csv.write_csv(decoded.append_column("person_id", texts_of(["x"] * 9)), sys.argv[1])
counts = read(sys.argv[1]).bind(made)
assert "pandas" not in sys.modules
"""
    given = [sys.executable, "-c", code, str(tmp_path / "rows.csv")]
    subprocess.run(given, check=True, timeout=60)


@pytest.mark.parametrize("texts", [[], ["a"], ["", "ü", "ab\0c", "日本"]])
def test_texts_are_what_arrow_makes_of_them(texts):
    assert texts_of(texts).equals(pa.array(texts, pa.string()))
