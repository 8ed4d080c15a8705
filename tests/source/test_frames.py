"""Rows that are handed back: in the kind given, with the dtypes given."""

from datetime import date
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from tests.source.test_files import SCHEMA
from understudy.columns.reading import distinct_texts
from understudy.errors import InputError, SourceError
from understudy.privacy.sensitive import reveal
from understudy.source import read, to_frame
from understudy.source.frames import _from_pandas

SYNTHETIC = pa.table(
    {
        "count": pa.array([1, None, 3], pa.int64()),
        "small": pa.array([1, 2, 3], pa.int64()),
        "size": pa.array([1.5, None, 2.5], pa.float64()),
        "flag": pa.array([True, None, False], pa.bool_()),
        "sure": pa.array([True, True, False], pa.bool_()),
        "word": pa.array(["a", None, "b"], pa.string()),
        "level": pa.array(["high", "low", None], pa.string()),
        "day": pa.array([date(2024, 1, 1), None, date(2024, 2, 29)], pa.date32()),
    }
)


def values(frame, name):
    return [None if pd.isna(value) else value for value in frame[name]]


def test_arrow_comes_back_as_it_is():
    assert to_frame(SYNTHETIC) is SYNTHETIC
    assert to_frame(SYNTHETIC, "arrow") is SYNTHETIC


def test_arrow_types_are_kept_where_possible():
    given = pa.table(
        {
            "small": pa.array([1], pa.int16()),
            "word": pa.array(["x"], pa.large_string()),
            "flag": pa.array([b"x"], pa.binary()),
        }
    )
    back = read(given).frame(SYNTHETIC.select(["small", "word", "flag"]))
    assert back.schema.types == [pa.int16(), pa.large_string(), pa.bool_()]
    assert back.to_pylist() == SYNTHETIC.select(["small", "word", "flag"]).to_pylist()


def test_pandas_by_default_keeps_integers_and_booleans_with_nulls():
    frame = to_frame(SYNTHETIC, "pandas")
    assert list(frame.columns) == SYNTHETIC.column_names
    assert frame["count"].dtype == pd.Int64Dtype()
    assert frame["small"].dtype == "int64"
    assert frame["size"].dtype == "float64"
    assert frame["flag"].dtype == pd.BooleanDtype()
    assert frame["sure"].dtype == "bool"
    assert frame["day"].dtype.kind == "M"
    for name in ("count", "size", "flag", "word", "level"):
        assert values(frame, name) == SYNTHETIC.column(name).to_pylist()
    assert isinstance(frame.index, pd.RangeIndex)


def test_pandas_dtypes_come_back():
    order = pd.CategoricalDtype(["low", "SECRET", "high"], ordered=True)
    given = pd.DataFrame(
        {
            "count": pd.array([1, None], "Int32"),
            "small": pd.array([1, 2], "int8"),
            "size": pd.array([1.0, None], "Float64"),
            "flag": pd.array([True, None], "boolean"),
            "sure": [True, False],
            "word": pd.array(["a", None], "string"),
            "level": pd.Series(["low", "SECRET"], dtype=order),
            "day": pd.to_datetime(["2024-01-01", None]),
        }
    )
    source = read(given)
    assert source.native == "pandas"
    frame = source.frame(SYNTHETIC)
    for name in given.columns:
        if name != "level":
            assert frame[name].dtype == given[name].dtype, name
        got = values(frame, name)
        wanted = SYNTHETIC.column(name).to_pylist()
        assert got == [v if name != "day" or v is None else pd.Timestamp(v) for v in wanted], name
    assert frame["level"].dtype == pd.CategoricalDtype(["low", "high"], ordered=True)


def test_a_dtype_that_cannot_hold_the_rows_gives_way():
    given = pd.DataFrame({"count": [1, 2], "flag": [True, False]})  # int64 and bool hold no null
    frame = read(given).frame(SYNTHETIC.select(["count", "flag"]))
    assert frame["count"].dtype == pd.Int64Dtype()
    assert frame["flag"].dtype == pd.BooleanDtype()


def test_an_integer_dtype_never_cuts_fractions_off():
    table = pa.table({"half": [0.5, 1.0], "whole": [2.0, 3.0]})
    frame = read(pd.DataFrame({"half": [1, 2], "whole": [1, 2]})).frame(table)
    assert frame["half"].tolist() == [0.5, 1.0]
    assert frame["whole"].dtype == "int64"
    frame = read(pl.DataFrame({"half": [1, 2], "whole": [1, 2]})).frame(table)
    assert frame["half"].to_list() == [0.5, 1.0]
    assert frame.schema["whole"] == pl.Int64


def test_categories_come_from_the_schema_not_from_the_rows_given():
    words = pa.array(["b", "a", "b"]).dictionary_encode()
    legal = pa.DictionaryArray.from_arrays(words.indices, pa.array(["b", "a", "c"])[:2])
    table = pa.table({"word": legal})
    given = pd.DataFrame({"word": pd.Categorical(["SECRET", "a", "b"])})
    frame = read(given).frame(table)
    assert list(frame["word"].cat.categories) == ["b", "a"]
    assert frame["word"].tolist() == ["b", "a", "b"]


def test_polars_dtypes_come_back():
    given = pl.DataFrame(
        {
            "count": pl.Series([1], dtype=pl.Int16),
            "size": pl.Series([1.0], dtype=pl.Float32),
            "word": pl.Series(["x"], dtype=pl.Categorical),
            "level": pl.Series(["low"], dtype=pl.Enum(["low", "SECRET", "high"])),
            "day": pl.Series([date(2024, 1, 1)]),
        }
    )
    for source in (read(given), read(given.lazy())):
        assert source.native == "polars"
        frame = source.frame(SYNTHETIC.select(given.columns))
        assert isinstance(frame, pl.DataFrame)
        assert frame.schema["count"] == pl.Int16
        assert frame.schema["size"] == pl.Float32
        assert frame.schema["word"] == pl.Categorical
        assert frame.schema["level"] == pl.Enum(["low", "high"])
        assert frame.to_dicts() == SYNTHETIC.select(given.columns).to_pylist()


@pytest.mark.parametrize("like", ["arrow", "pandas", "polars"])
def test_zero_rows(like):
    frame = to_frame(SYNTHETIC.slice(0, 0), like)
    assert frame.shape == (0, 8)


def test_other_kinds_are_refused():
    with pytest.raises(InputError, match="like='excel'"):
        to_frame(SYNTHETIC, "excel")


def test_mixed_objects_in_pandas_raise_nothing():
    mixed = pd.Series([3, "SECRET", None, 4.0, b"\xff", "\ud800", [1]], dtype=object)
    frame = pd.DataFrame({"age": mixed, "sex": ["F"] * 7})
    bound = read(frame).bind(SCHEMA)
    (table,) = reveal(bound.marginals([(0,)]))
    assert table[[3, 4, 10]].tolist() == [1, 1, 5]


def test_a_lazy_query_that_fails_tells_no_value():
    lazy = pl.LazyFrame({"age": ["3", "SECRET"], "sex": ["F", "F"]})
    with pytest.raises(SourceError, match=r"LazyFrame.*cannot be read") as caught:
        read(lazy.with_columns(pl.col("age").cast(pl.Int64))).bind(SCHEMA)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_frames_are_left_as_they_are():
    frame = pd.DataFrame({"age": [3, 99], "sex": ["F", None]})
    before = frame.copy(deep=True)
    read(frame, null_values=["?"]).bind(SCHEMA)
    pd.testing.assert_frame_equal(frame, before)


def test_what_becomes_of_an_object_depends_on_it_alone():
    """One odd cell more must not change the text, and so the count, of any other."""
    cells = [1.0, 2.5, True, Decimal("1.00"), "x", 3, b"y", date(2024, 2, 29), 12345678901.0]
    texts = []
    for cell in cells:
        alone = _from_pandas(pd.Series([cell, cell], dtype=object)).cast(pa.string()).to_pylist()
        beside = _from_pandas(pd.Series([cell, "z", 7], dtype=object)).cast(pa.string()).to_pylist()
        assert alone == [beside[0]] * 2
        texts.append(alone[0])
    assert texts == ["1", "2.5", "true", "1", "x", "3", "y", "2024-02-29", "12345678901"]


def test_whole_floats_are_written_as_integers_whatever_their_size():
    texts, index = distinct_texts(pa.array([12345678901.0, 3.0, 2.5, None]))
    assert [texts[int(i)].as_py() for i in index[:3]] == ["12345678901", "3", "2.5"]
