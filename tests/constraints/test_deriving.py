"""Columns that follow from others, and the rules that compute them, against a schema."""

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from tests.tools.residents import COLUMNS
from understudy.columns import Category, Date, Integer, Number, UndeclaredCategory
from understudy.columns.amounts import Linear
from understudy.constraints import Predicate
from understudy.constraints.deriving import Mapped, listed, total
from understudy.errors import SchemaError, WorkloadError
from understudy.queries import Workload
from understudy.schema import Schema

MORE = """
[[column]]
name = "a"
type = "integer"
lower = 0
upper = 99
bins = 10

[[column]]
name = "b"
type = "integer"
lower = -9
upper = 9
nullable = true

[[column]]
name = "total"
type = "integer"
lower = 0
upper = 1
nullable = true

[[column]]
name = "size"
type = "category"
values = ["small", "large"]
nullable = true

[[column]]
name = "band"
type = "category"
values = ["low", "high"]
"""
FIRST = """
[[rule]]
says = "total determines size"
cuts = [140]
values = ["small", "large"]
[[rule]]
says = "zip determines city"
derived = true
mapping = {"89073" = "Ulm", "53111" = "Bonn", 50667 = "Köln", 99999 = "Ulm"}
default = "Bonn"
[[rule]]
says = "total = a - b + 100"
[[rule]]
says = "a determines band"
cuts = [35]
values = ["low", "high"]
"""


def known(rules=FIRST, columns=COLUMNS + MORE):
    return Schema.loads(columns + rules)


def drawn(schema, rows=2000):
    rng = np.random.default_rng(3)
    codes = [rng.integers(0, size, rows).astype(np.uint8) for size in schema.shape]
    return codes, schema.decode(codes, rng)


def test_derived_columns_are_not_modelled():
    schema = known()
    names = [column.name for column in schema.modelled]
    assert names == ["age", "marital status", "zip", "retired", "a", "b"]
    assert schema.arrow_schema.names == [column.name for column in schema.columns]
    assert Schema.loads(schema.dumps()) == schema


def test_values_follow():
    schema = known()
    codes, rows = drawn(schema)
    assert schema.illegal(rows) == []
    assert all((x == y).all() for x, y in zip(schema.encode(rows), codes, strict=True))
    for row in rows.to_pylist():
        places = {"89073": "Ulm", "53111": "Bonn", "50667": "Köln", "x": "Bonn"}
        assert row["city"] == places[row["zip"]]
        assert row["total"] == (None if row["b"] is None else row["a"] - row["b"] + 100)
        assert row["band"] == ("low" if row["a"] < 35 else "high")
    wrong = rows.set_column(
        rows.column_names.index("band"), rows.schema.field("band"), [["low"] * 2000]
    )
    assert any("a determines band" in line for line in schema.illegal(wrong))


@pytest.mark.parametrize(
    ("text", "columns", "exact"),
    [
        ("city = 'Ulm'", ("zip",), True),
        ("city in ('Ulm', 'Bonn') and retired", ("zip", "retired"), True),
        ("band = 'high'", ("a",), False),
        ("total > 150", ("a", "b"), False),
        ("size = 'large'", ("a", "b"), False),
        ("size is null", ("a", "b"), True),
        ("size <> 'large' and city = 'Ulm'", ("a", "b", "zip"), False),
        ("total is null", ("a", "b"), True),
        ("total in (100, 120)", ("a", "b"), False),
        ("total <> 100", ("a", "b"), False),
        ("a <= b", ("a", "b"), False),
        ("not (b > a)", ("a", "b"), False),
        ("a = b", ("a", "b"), False),
        ("total between 90 and 120", ("a", "b"), False),
    ],
)
def test_predicates_are_about_what_is_modelled(text, columns, exact):
    """Every row of an inner cell satisfies it, and only rows of outer cells do."""
    schema = known()
    predicate = Predicate.parse(text, schema)
    assert predicate.clique == tuple(sorted(schema.position(name) for name in columns))
    codes, rows = drawn(schema)
    inner, outer = predicate.cells()
    holds, at = predicate.rows(rows), tuple(codes[i] for i in predicate.clique)
    assert (inner[at] <= holds).all()
    assert (holds <= outer[at]).all()
    assert 0 < holds.sum() < len(holds)
    assert np.array_equal(inner, outer) == exact


def test_workloads_name_derived_columns():
    schema = known()
    asked = Workload.from_json([["city", "age"], ["total"]], schema)
    names = [column.name for column in schema.modelled]
    assert [tuple(names[i] for i in c) for c in asked.cliques] == [("age", "zip"), ("a", "b")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("city < zip", "no number"),
        ("a <= city", "no number"),
        ("a <= retired", "no number"),
        ("city = 'Rom'", "Rom"),
        ("total = 'x'", "not a finite number"),
        ("a < a", "same column"),
    ],
)
def test_predicates_that_cannot_be(text, said):
    with pytest.raises(WorkloadError, match=said):
        Predicate.parse(text, known())


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ('[[rule]]\nsays = "total = a + c"', "'c'"),
        ('[[rule]]\nsays = "total = a + zip"', "no number"),
        ('[[rule]]\nsays = "a = b"', "nullable"),
        (FIRST + '[[rule]]\nsays = "total = a"', "already"),
        ('[[rule]]\nsays = "a = total + 1"\n[[rule]]\nsays = "total = a"', "itself"),
        (FIRST.replace('default = "Bonn"', ""), "nothing for x of zip"),
        (FIRST.replace('default = "Bonn"', 'default = "Rom"'), "Rom"),
        (FIRST.replace("[35]", "['x']").replace("'x'", '"x"'), "x"),
        (FIRST.replace("a determines band", "zip determines band"), "cuts are for"),
        (
            '[[rule]]\nsays = "zip determines city"\nderived = true\nmapping = {"1" = "Ulm"}',
            "89073",
        ),
        (FIRST + '[[rule]]\nsays = "total <= a"', "computed"),
    ],
)
def test_rules_that_cannot_be(rules, said):
    with pytest.raises(SchemaError, match=said):
        known(rules)


def test_a_rule_may_speak_of_what_is_mapped():
    schema = known(FIRST + """[[rule]]\nsays = "city = 'Ulm' implies retired"\n""")
    _, rows = drawn(schema)
    assert schema.illegal(rows) == []
    assert {r["retired"] for r in rows.to_pylist() if r["city"] == "Ulm"} == {True}


def test_chains():
    """What follows from what follows, and sums of sums."""
    rules = (
        FIRST
        + """
[[rule]]
says = "age = total + a"
"""
    )
    schema = known(
        rules, COLUMNS.replace('type = "integer"', 'type = "integer"\nnullable = true', 1) + MORE
    )
    assert "age" in schema.derived
    _, rows = drawn(schema)
    assert schema.illegal(rows) == []
    total, a, age = (rows[n].to_pylist() for n in ("total", "a", "age"))
    assert age == [None if t is None else t + x for t, x in zip(total, a, strict=True)]


def test_a_mapping_of_a_column_that_is_found():
    """Values that are not found are OTHER, whatever the mapping lists; B is not looked for at all."""
    text = COLUMNS.replace(
        'values = ["89073", "53111", "50667"]\nother = "x"', 'values = "discover"'
    )
    text = text.replace('values = ["Ulm", "Bonn", "Köln"]', 'values = "discover"')
    rule = FIRST.split("[[rule]]")[2]
    schema = known("[[rule]]" + rule, text)
    assert [column.name for column in schema.undeclared] == ["zip"]
    found = schema.undeclared[0].found(["89073", "12345"])
    closed = schema.resolved({"zip": found})
    _, rows = drawn(closed)
    places = {"89073": "Ulm", "12345": "Bonn", "OTHER": "Bonn"}
    assert all(places[r["zip"]] == r["city"] for r in rows.to_pylist())
    assert closed.illegal(rows) == []


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
