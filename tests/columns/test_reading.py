from datetime import datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.columns.reading import (
    DAY,
    booleans,
    distinct_texts,
    flat,
    floats,
    integers,
    present,
    round_to_integers,
    tick_of,
    ticks,
)

SECOND = 10**9


def read(reader, cells, type_=None, **options):
    """What a reader makes of cells; None where it is not valid."""
    values, valid = reader(pa.array(cells, type_), **options)
    return [value if good else None for value, good in zip(values.tolist(), valid, strict=True)]


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)))
def test_integers_are_exact(cells):
    assert read(integers, cells, pa.int64()) == cells
    texts = [None if cell is None else str(cell) for cell in cells]
    assert read(integers, texts, pa.string()) == cells


@given(st.lists(st.none() | st.floats(allow_nan=False)))
def test_floats_are_exact_as_text_too(cells):
    assert read(floats, cells, pa.float64()) == cells
    texts = [None if cell is None else repr(cell) for cell in cells]
    assert read(floats, texts, pa.string()) == cells


def test_numbers_in_every_dress():
    assert read(integers, ["+7", " 8 ", "9.5", "1e2", "x", "", "0x10", "1_0"]) == [
        7,
        8,
        10,
        100,
        None,
        None,
        None,
        None,
    ]
    assert read(floats, [Decimal("0.1"), None], pa.decimal128(30, 20)) == [0.1, None]
    assert read(integers, [Decimal(10) ** 17 + 1], pa.decimal128(38, 0)) == [10**17 + 1]
    assert read(floats, ["Infinity", "+inf", "-INF", "NaN"]) == [np.inf, np.inf, -np.inf, None]
    assert read(integers, [True, None]) == [1, None]
    assert read(integers, ["9999999999999999999", "-1e30"]) == [2**63 - 1, -(2**63)]
    assert read(floats, [b"1.5", b"\xff"]) == [1.5, None]


def test_rounding_clamps():
    values = np.array([0.5, 1.5, 1e300, -1e300, np.inf, np.nan, 2.0**63])
    assert round_to_integers(values).tolist() == [
        0,
        2,
        2**63 - 1,
        -(2**63),
        2**63 - 1,
        0,
        2**63 - 1,
    ]


def test_booleans():
    assert read(booleans, ["T", "no", "1", "0.0", "2", None]) == [
        True,
        False,
        True,
        False,
        None,
        None,
    ]


@given(st.lists(st.datetimes(), max_size=5))
def test_iso_times_are_exact(moments):
    expected = [tick_of(moment, 1000) for moment in moments]
    for texts in (
        [moment.isoformat() for moment in moments],
        [moment.isoformat(sep=" ") for moment in moments],
    ):
        assert read(ticks, texts, pa.string(), tick=1000) == expected
    assert read(ticks, moments, pa.timestamp("us"), tick=1000) == expected


@given(st.dates())
def test_iso_dates_are_exact(day):
    texts = [day.isoformat(), f"{day:%Y%m%d}".zfill(8), f"{day.isoformat()}T23:59:59"]
    expected = [(day - datetime(1970, 1, 1).date()).days] * 3
    assert read(ticks, texts, tick=DAY) == expected


@pytest.mark.parametrize(
    "text",
    ["2014-02-30", "2015-02-29", "2014-13-01", "0000-01-01", "2014-01-01T24:00", "14-1-1", "2014"],
)
def test_what_is_no_date_is_null(text):
    assert read(ticks, [text], tick=DAY) == [None]


def test_offsets_count_only_where_instants_are_meant():
    texts = ["2014-01-01T00:00:00Z", "2014-01-01T02:00:00+02:00", "2013-12-31T19:00:00-0500"]
    instant = tick_of(datetime(2014, 1, 1), SECOND)
    assert read(ticks, texts, tick=SECOND, zoned=True) == [instant] * 3
    wall = [tick_of(datetime.fromisoformat(t[:19]), SECOND) for t in texts]
    assert read(ticks, texts, tick=SECOND) == wall
    aware = datetime(2014, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    assert tick_of(aware, SECOND) == instant


def test_forms():
    assert read(ticks, ["31/12/1969", "x"], tick=DAY, form="%d/%m/%Y") == [-1, None]
    assert read(ticks, ["01 01 1970 11 PM", ""], tick=DAY // 24, form="%d %m %Y %I %p") == [
        23,
        None,
    ]


def test_tokens_stand_for_null():
    assert read(integers, ["7", "-9", " -9 "], tokens=["-9"]) == [7, None, None]
    array = pa.array(["a", "?", " ", None])
    assert present(array, ["?"]).tolist() == [True, False, False, False]
    assert present(pa.array([1.0, float("nan"), None])).tolist() == [True, False, False]


def test_distinct_texts_of_dictionaries_with_nulls_inside():
    array = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, None], pa.int8()), pa.array(["a", None, "a"])
    )
    texts, index = distinct_texts(array)
    assert [texts[i].as_py() if i < len(texts) else None for i in index.tolist()] == [
        "a",
        None,
        "a",
        None,
    ]


def test_chunks_with_different_dictionaries_join():
    chunks = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "c"]).dictionary_encode()]
    (joined,) = flat(pa.chunked_array(chunks))
    assert joined.to_pylist() == ["a", "b", "b", "c"]
