import pyarrow as pa
import pytest

from understudy.columns import Category, Integer
from understudy.errors import SchemaError, WorkloadError


def test_null_values_are_null_where_they_are_text():
    column = Category("x", ("a",), nullable=True, null_values=("?",))
    assert column.encode(pa.array(["a", "?", " ? ", "-"]), ["-"]).tolist() == [0, 1, 1, 1]
    number = Integer("x", 0, 9, nullable=True, null_values=("9",))
    assert number.encode(pa.array(["9", "8"])).tolist() == [10, 8]
    assert number.encode(pa.array([9, 8])).tolist() == [9, 8]


def test_texts_that_are_not_unicode():
    raw = pa.array([b"\xff", b"a", b"7"])
    array = raw.cast(pa.string(), safe=False)
    assert Category("x", ("a",), True).encode(array).tolist() == [1, 0, 1]
    assert Integer("x", 0, 9, nullable=True).encode(array).tolist() == [10, 10, 7]


def test_other_is_never_a_declared_value():
    column = Category("x", (1, 2, 3), -1)
    assert column.compare("=", 1)[1].tolist() == [True, False, False, False]
    assert column.compare("!=", 1)[0].tolist() == [False, True, True, True]
    inner, outer = column.compare("<", 3)
    assert inner.tolist() == [True, True, False, False]
    assert outer.tolist() == [True, True, False, True]
    assert column.compare("=", -1)[0].tolist() == [False, False, False, True]
    assert column.evaluate("<", 3, pa.array([1, 3, -1])).tolist() == [True, False, False]


def test_texts_follow_the_declared_order_if_it_means_something():
    sizes = Category("size", ("S", "M", "L"), ordinal=True)
    assert sizes.ordered
    assert sizes.compare(">=", "M")[0].tolist() == [False, True, True]


def test_a_usual_type_holds_every_value_and_another_is_tried():
    assert Category("x", (2**63 - 1, -(2**63))).dtype == "int64"
    with pytest.raises(SchemaError, match="cannot hold all its values"):
        Category("x", (2**63,))
    with pytest.raises(SchemaError, match="cannot hold all its values"):
        Category("x", (1, 300), dtype="dictionary<values=int8, indices=int8, ordered=0>")


def test_a_value_that_is_not_there_is_answered_with_the_one_to_use():
    codes = Category("diag", ("250.1", "250*", "4*"), other="OTHER", prefixes=(3, 1))
    for value, said in (
        ("250.83", r"too few rows hold it, .* all that begin so are diag in \(.250\*., .250.1.\)$"),
        ("401", r"use '4\*'"),
        ("V", r"such as 250.1, 250\*, 4\*; OTHER stands for all others"),
    ):
        with pytest.raises(WorkloadError, match=said):
            codes.compare("=", value)
    bands = Category("age", ("[0-10)", "[10-20)", "[20-30)"), ordinal=True)
    for number, band in ((5, "10-20"), (10, "10-20"), (65, "20-30")):
        with pytest.raises(WorkloadError, match=rf"such as age >= '\[{band}\)'$"):
            bands.compare(">=", number)
    with pytest.raises(WorkloadError, match=r"one of its 2 values \(did you mean 'Female'\?\)$"):
        Category("sex", ("Female", "Male")).compare("=", "F")
