"""Columns that follow from others: their values, and what is known of them from cells."""

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from understudy.columns import Category, Date, Integer, Number, UndeclaredCategory
from understudy.columns.amounts import Linear
from understudy.columns.derived import Mapped, listed, total
from understudy.errors import SchemaError


def test_a_mapped_column():
    source = Category("zip", ("1", "2", "3"), nullable=True)
    city = Category("city", ("Ulm", "Bonn"), nullable=True)
    each = np.arange(4)
    mapped = Mapped(city, source, np.array([1, 0, 1, 2]), each, each)
    found = mapped.computed({"zip": pa.array(["1", "2", None, "3"])})
    assert found.to_pylist() == ["Bonn", "Ulm", None, "Bonn"]
    inner, outer = mapped.lifted(city.compare("=", "Bonn"))
    assert inner.tolist() == outer.tolist() == [True, False, True, False]


def test_thresholds_inside_a_cell():
    """A cell that a threshold cuts may have either value; values themselves are told apart."""
    source = Integer("age", 0, 29, 3)
    band = Category("band", ("child", "grown"), ordinal=True)
    cuts = np.array([15])
    mapped = Mapped(band, source, np.array([0, 1]), np.array([0, 0, 1]), np.array([0, 1, 1]), cuts)
    assert mapped.computed({"age": pa.array([3, 14, 15, 25])}).to_pylist() == [
        "child", "child", "grown", "grown",
    ]  # fmt: skip
    inner, outer = mapped.lifted(band.compare(">=", "grown"))
    assert inner.tolist() == [False, False, True]
    assert outer.tolist() == [False, True, True]


def test_a_list_of_values_for_any_column():
    own = Category("x", ("a", "b"))
    assert listed(own, ["a"]) is own
    found = listed(Integer("x", 0, 100, 2, dtype="int32"), ["7", "3", "7"])
    assert isinstance(found, Category)
    assert (found.values, found.dtype) == ((3, 7), "int32")
    undeclared = UndeclaredCategory("x", values="discover")
    assert listed(undeclared, ["b", "a", "b"]).values == ("b", "a")
    with pytest.raises(SchemaError, match="'x'"):
        listed(Integer("x", 0, 1), ["much"])


@pytest.mark.parametrize(
    ("parts", "dtype", "rows", "wanted"),
    [
        ([Integer("a", 0, 9), Integer("b", 0, 9)], "int16", [[3, 9], [4, 9]], [7, 18]),
        ([Integer("a", 0, 9), Integer("b", 0, 9)], "float64", [[3], [4]], [7.0]),
        (
            [Number("a", 0, 1, 2, decimals=1), Number("b", 0, 1, 2, decimals=1)],
            "float64", [[0.1], [0.2]], [0.3],
        ),
        ([Number("a", 0, 1, 2), Integer("b", 0, 9)], "float64", [[0.5], [4]], [4.5]),
        (
            [Date("a", date(2020, 1, 1), date(2020, 2, 1)), Integer("b", 0, 9)],
            "date32[day]", [[date(2020, 1, 30)], [3]], [date(2020, 2, 2)],
        ),
    ],
)  # fmt: skip
def test_totals_in_their_type(parts, dtype, rows, wanted):
    column = Category("t", ("x",)) if dtype == "string" else Integer("t", 0, 1)
    column = Date("t", date(2020, 1, 1), date(2020, 1, 2)) if "date" in dtype else column
    column = Number("t", 0, 1, 1, dtype=dtype) if dtype == "float64" else column
    column = Integer("t", 0, 1, dtype=dtype) if dtype == "int16" else column
    made = total(column, Linear((("a", 1), ("b", 1))), tuple(parts))
    found = made.computed({"a": pa.array(rows[0]), "b": pa.array(rows[1])})
    assert found.to_pylist() == wanted
    assert str(made.column.dtype) == dtype


def test_null_adds_up_to_null():
    parts = (Integer("a", 0, 9, nullable=True), Integer("b", 0, 9))
    linear = Linear((("a", 1), ("b", -1)))
    made = total(Integer("t", 0, 1, nullable=True), linear, parts)
    found = made.computed({"a": pa.array([None, 3]), "b": pa.array([1, 9])})
    assert found.to_pylist() == [None, -6]
    with pytest.raises(SchemaError, match="nullable"):
        total(Integer("t", 0, 1), linear, parts)


def test_a_type_too_narrow():
    parts = (Integer("a", 0, 100, 2), Integer("b", 0, 100, 2))
    with pytest.raises(SchemaError, match="int8"):
        total(Integer("t", 0, 1, dtype="int8"), Linear((("a", 1), ("b", 1))), parts)


def test_dates_are_not_added_up():
    days = tuple(Date(name, date(2020, 1, 1), date(2020, 2, 1)) for name in "ab")
    with pytest.raises(SchemaError, match="dates"):
        total(Integer("t", 0, 1), Linear((("a", 1), ("b", 1))), days)
    stay = total(Integer("t", 0, 1), Linear((("a", 1), ("b", -1))), days)
    assert (stay.column.lower, stay.column.upper) == (-31, 31)
    with pytest.raises(SchemaError, match="no number"):
        total(Integer("t", 0, 1), Linear((("x", 1),)), (Category("x", ("a",)),))


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((Date("d", date(2000, 1, 1), date(2001, 1, 1)), Integer("n", 0, 10**9, 2)), "calendar"),
        ((Integer("d", 0, 2**63 - 1, 2), Integer("n", 0, 9)), "beyond 64 bits"),
    ],
)
def test_sums_that_no_type_holds(parts, said):
    with pytest.raises(SchemaError, match=said):
        total(parts[0], Linear((("d", 1), ("n", 1))), parts)
