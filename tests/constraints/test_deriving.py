"""Rules that compute columns, against a schema."""

import numpy as np
import pytest

from tests.tools.residents import COLUMNS
from understudy.constraints import Predicate
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
