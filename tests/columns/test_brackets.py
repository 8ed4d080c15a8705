"""Numbers compared with texts that are brackets in an order."""

import numpy as np
import pyarrow as pa
import pytest

from understudy.columns.brackets import Bracket, at_edge, bracket
from understudy.constraints import Predicate
from understudy.errors import SchemaError, WorkloadError
from understudy.schema import Category, Schema

TENS = [f"[{low}-{low + 10})" for low in range(0, 100, 10)]
GROUPS = ["<18", "18-24", "25-34", "35-64", "65+"]


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("[60-70)", (60, 69.9), (59, 70)),
        ("(60, 70]", (61, 70), (60, 71)),
        ("18-24", (18, 24), (17, 25)),
        ("-5 to 5", (-5, 5), (6,)),
        ("<25", (24, -3), (25,)),
        ("under 25", (24,), (25,)),
        ("<= 25", (25,), (26,)),
        ("85+", (85, 200), (84,)),
        ("85 and over", (85,), (84,)),
        (">100", (101,), (100,)),
    ],
)
def test_which_numbers_a_bracket_holds(text, inside, outside):
    found = bracket(text)
    assert found is not None
    for number in inside:
        assert found.within(">", number) is not True
        assert found.within("<", number) is not True
    for number in outside:
        low, high = found.within(">", number), found.within("<", number)
        assert (low, high) in ((True, False), (False, True)), number


@pytest.mark.parametrize("text", ["old", "", "7-3", "1-2-3", "2020-01-05", "a-b"])
def test_other_texts_are_none(text):
    assert bracket(text) is None


@pytest.mark.parametrize(
    ("values", "op", "number", "found"),
    [
        (TENS, ">=", 60, (">=", "[60-70)")),
        (TENS, "<", 60, ("<=", "[50-60)")),
        (TENS, "<", 1000, ("<=", "[90-100)")),
        (GROUPS, ">=", 65, (">=", "65+")),
        (GROUPS, ">", 64, (">=", "65+")),
        (GROUPS, "<=", 24, ("<=", "18-24")),
        (GROUPS, "<", 18, ("<=", "<18")),
        (["low", "high"], ">=", 3, None),
        (["[5-9)", "[0-5)"], ">=", 5, None),  # in no order of numbers
    ],
)
def test_a_number_at_an_edge_is_a_bracket(values, op, number, found):
    assert at_edge(values, op, number) == found


def test_a_number_inside_a_bracket_names_edges_that_do():
    with pytest.raises(ValueError, match=r"65 lies inside '\[60-70\)'.*: >= 60 or >= 70"):
        at_edge(TENS, ">=", 65)
    with pytest.raises(ValueError, match=r"ask at an edge: < 60 or < 70"):
        at_edge(TENS, "<=", 69)
    with pytest.raises(ValueError, match=r"ask at an edge: >= 60 or >= 70"):
        at_edge(TENS, ">", 60)
    with pytest.raises(ValueError, match=r"no value is >= 200"):
        at_edge(TENS, ">=", 200)


def test_a_predicate_with_a_number_is_that_of_the_listed_brackets():
    age = Category("age", tuple(GROUPS), ordinal=True, nullable=True, other="OTHER")
    schema = Schema((age,))
    rows = pa.table({"age": [*GROUPS, "OTHER", None]})
    for asked, listed in (("age >= 25", GROUPS[2:]), ("not age < 25", GROUPS[2:]),
                          ("25 > age", GROUPS[:2])):  # fmt: skip
        text = ", ".join(f"'{value}'" for value in listed)
        found, same = Predicate.parse(asked, schema), Predicate.parse(f"age in ({text})", schema)
        assert np.array_equal(found.rows(rows), same.rows(rows))
        inner, outer = found.cells()
        assert np.array_equal(inner, same.cells()[0])
        assert outer[len(GROUPS)]  # others may lie anywhere
    with pytest.raises(WorkloadError, match="30 lies inside '25-34'"):
        Predicate.parse("age >= 30", schema)
    plain = Schema((Category("age", tuple(GROUPS)),))
    with pytest.raises(WorkloadError, match="is not one of its 5 values"):
        Predicate.parse("age >= 25", plain)


def test_rules_name_a_bracket():
    columns = (Category("age", tuple(TENS), ordinal=True), Category("job", ("none", "some")))
    with pytest.raises(SchemaError, match="compared with one of them"):
        Schema.loads(
            Schema(columns).dumps() + "\n[[rule]]\nsays = \"age < 10 implies job = 'none'\"\n"
        )
    assert Bracket(0, 10, high_open=True) == bracket("[0-10)")
