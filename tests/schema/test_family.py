"""Schemas of two tables: their views, their file, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import understudy as us
from understudy.constraints.rule import Rule
from understudy.errors import SchemaError, UnconfirmedError
from understudy.schema import Category, Identifier, Integer, Number, Schema, UndeclaredShape
from understudy.schema.family import Family, FamilySchema, weight_of

HOUSEHOLDS = Schema((Identifier("hid"), Category("region", ("N", "S"))))
PERSONS = Schema(
    (
        Identifier("hid"),
        Integer("age", lower=0, upper=99, bins=10),
        Category("sex", ("F", "M"), nullable=True),
    )
)
FAMILY = Family("households", "hid", "persons", "hid", 4)


def of(parents=HOUSEHOLDS, children=PERSONS, **changes):
    return FamilySchema.of(parents, children, replace(FAMILY, **changes))


@pytest.mark.parametrize(
    ("most", "ordered", "weight"),
    [
        (1, True, 1),
        (1, False, 1),
        (6, True, 60),
        (6, False, 60),
        (10, False, 2520),
        (50, True, 27_720),
    ],
)
def test_the_weight_divides_evenly_where_it_can(most, ordered, weight):
    assert weight_of(most, ordered=ordered) == weight
    if weight < 27_720:
        assert all(
            weight % (s if ordered or s == 1 else s * (s - 1)) == 0 for s in range(1, most + 1)
        )


def test_views_hold_parent_size_child_and_sibling():
    names = [column.name for column in of().modelled]
    assert names == [
        "households.region", "persons.count", "persons.age", "persons.sex", "sibling.age", "sibling.sex"
    ]  # fmt: skip
    assert of().shape == (2, 5, 11, 3, 11, 3)  # without a child, or a sibling, its columns are null
    assert of(min_children=1).shape == (2, 4, 10, 3, 11, 3)
    ordered = of(order="age", siblings="none")
    assert [c.name for c in ordered.modelled][-1] == "persons.position"
    assert ordered.layout.pos == 4
    assert ordered.layout.sibling == (None, None)


def test_the_unit_is_the_family():
    schema = of()
    assert schema.unit is not None
    assert str(schema.unit) == "households.hid with all its persons"
    assert schema.weight == schema.unit.max_rows == 12
    assert FamilySchema.of(HOUSEHOLDS, PERSONS, FAMILY, 100).rows_public == 1200


@pytest.mark.parametrize(
    ("siblings", "order", "sibling"),
    [("same", None, 2), ("all", None, 3), ("all", "age", 4), ("none", None, 0)],
)
def test_the_workload_is_pairs_without_siblings_and_those_declared(siblings, order, sibling):
    schema = of(siblings=siblings, order=order)
    word = "sibling." if order is None else "previous."
    weights = {tuple(each["columns"]): each["weight"] for each in schema.usual_workload()}
    pairs = list(weights)
    free = 4 + (order is not None)
    assert len(pairs) == free * (free - 1) // 2 + sibling
    assert sum(any(name.startswith(word) for name in pair) for pair in pairs) == sibling
    assert {w for pair, w in weights.items() if not pair[1].startswith(word)} == {1.0}
    assert all(w > 1 for pair, w in weights.items() if pair[1].startswith(word))
    us.prepare(schema, epsilon=1)  # it is one


def test_declared_pairs():
    schema = of(siblings="pairs", pairs=(("age", "sex"),))
    assert ["persons.age", "sibling.sex"] in [each["columns"] for each in schema.usual_workload()]
    with pytest.raises(SchemaError, match="agee"):
        of(siblings="pairs", pairs=(("agee", "sex"),))


def test_a_file_keeps_all_of_it():
    for schema in (
        of(),
        of(order="age", siblings="all"),
        of(siblings="pairs", pairs=(("age", "age"),)),
    ):
        again = Schema.loads(schema.dumps())
        assert again == schema
        assert again.digest() == schema.digest()
    stated = FamilySchema.of(HOUSEHOLDS, PERSONS, FAMILY, 77)
    assert Schema.loads(stated.dumps()) == stated


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"key": "id"}, "key = 'id'"),
        ({"key": "region"}, "type 'category'"),
        ({"foreign_key": "sex"}, "type 'category'"),
        ({"order": "when"}, "order = 'when'"),
        ({"max_children": 0}, "max_children = 0"),
        ({"min_children": 2}, "min_children = 2"),
        ({"siblings": "some"}, "siblings = 'some'"),
        ({"siblings": "pairs"}, "pairs"),
        ({"child": "households"}, "households"),
    ],
)
def test_what_does_not_fit_is_refused(change, said):
    with pytest.raises(SchemaError, match=said):
        of(**change)


def test_what_families_do_not_keep_is_refused():
    found = of(children=Schema((*PERSONS.columns, UndeclaredShape("income", wanted="number"))))
    with pytest.raises(SchemaError, match="income"):
        found.require_confirmed()
    with pytest.raises(SchemaError, match="count"):
        of(children=Schema((*PERSONS.columns, Number("count", lower=0, upper=1, bins=2))))
    drafted = Schema(
        (Identifier("hid"), Category("region", ("N", "S"), read_from_rows=("values",)))
    )
    with pytest.raises(UnconfirmedError, match="households"):
        of(drafted).require_confirmed()


def test_the_unit_and_texts_for_null_are_not_chosen_from_outside():
    with pytest.raises(SchemaError, match="protects a family"):
        of().protecting(None)
    with pytest.raises(SchemaError, match="by table"):
        of().with_nulls(["NA"])
    assert of().with_nulls([]) == of()


def test_a_third_table_says_what_to_do():
    text = of().dumps() + '\n[[table]]\nname = "pets"\nparent = "households"\nforeign_key = "hid"\n'
    with pytest.raises(SchemaError, match="second table of children by itself"):
        Schema.loads(text)
    with pytest.raises(SchemaError, match="version"):
        Schema.loads(of().dumps().replace("version = 2", "version = 1"))


def ruled(*says, **changes):
    return FamilySchema.of(
        HOUSEHOLDS, PERSONS, replace(FAMILY, **changes), None, [Rule(each) for each in says]
    )


def test_rules_of_one_table_are_that_tables_and_all_are_of_the_views():
    schema = ruled("sex = 'F' implies persons.age < 50", "region = 'N' implies age >= 10")
    assert [rule.says for rule in schema.tables[1].rules] == ["sex = 'F' implies age < 50"]
    assert not schema.tables[0].rules
    assert set(schema.between.forbidden()) == {(2, 3), (0, 2)}
    assert Schema.loads(schema.dumps()) == schema
    assert ruled("age <= 89").digest() != ruled("age <= 79").digest()


def test_a_rule_says_nothing_of_who_is_not_there():
    schema = ruled("previous.age <= age", order="age")
    age, before = schema.layout.child[0], schema.layout.sibling[0]
    table = schema.between.forbidden()[age, before]
    falls = np.tri(10, k=-1, dtype=np.bool_).T  # rows are of the child, columns of the one before
    assert (table[:10, :10] == falls).all()
    assert not table[10].any()
    assert not table[:, 10].any()


def test_what_rules_name_of_siblings_is_modelled():
    schema = ruled("previous.age <= age", order="age", siblings="none")
    pairs = [each["columns"] for each in schema.usual_workload()]
    assert ["persons.age", "previous.age"] in pairs
    assert schema.layout.sibling[1] is None


def test_views_move_to_those_that_keep_the_rules():
    schema = ruled("sex = 'F' implies age < 50", "region = 'N' implies age >= 10")
    rng = np.random.default_rng(1)
    views = [rng.integers(0, size, 2_000) for size in schema.shape]
    moved = schema.project(views)
    assert schema.between.broken(views).any()
    assert not schema.between.broken(moved).any()
    there = (moved[2] < 10) & (moved[3] < 3)
    own = [moved[i][there] for i in schema.layout.child]
    assert all((a == b).all() for a, b in zip(own, schema.tables[1].project(own), strict=True))


@pytest.mark.parametrize(
    ("says", "changes", "said"),
    [
        ("age < sibling.age", {}, "contradict"),
        ("age <= previous.age", {}, "have no order, so write sibling.age"),
        ("sibling.age <= age", {"order": "age"}, "have an order, so write previous.age"),
        ("hid = 3", {}, "both tables; write households.hid or persons.hid"),
        ("agee < 3", {}, "unknown column 'agee'"),
        ("sibling.sex is not null", {}, "forbids nothing"),
        ("previous.age <= age", {"order": "age", "max_children": 1}, "max_children = 1"),
        ("region determines persons.sex", {}, "needs a public mapping"),
        ("previous.age + 100 <= age", {"order": "age"}, "no row at all"),
        ("age < 45 implies sibling.sex = 'F'", {}, "edge"),
    ],
)
def test_rules_that_families_cannot_keep_are_refused(says, changes, said):
    with pytest.raises(SchemaError, match=said):
        ruled(says, **changes)


def test_members_are_compared_with_one_number_of_decimals():
    exact = Number("dose", lower=0, upper=9, bins=3, decimals=1)
    parents = Schema((*HOUSEHOLDS.columns, exact))
    with pytest.raises(SchemaError, match="decimals differ"):
        FamilySchema.of(parents, PERSONS, FAMILY, None, [Rule("dose <= age")])


def test_rules_that_were_read_from_rows_are_to_be_confirmed():
    rule = Rule("previous.age <= age", read_from_rows=True)
    drafted = FamilySchema.of(HOUSEHOLDS, PERSONS, replace(FAMILY, order="age"), None, [rule])
    with pytest.raises(UnconfirmedError, match=r"previous\.age"):
        drafted.require_confirmed()


@pytest.mark.parametrize(
    ("most", "changes", "said"),
    [
        (1_000, {"order": "age"}, "from 1 to 999"),
        (1_001, {"order": "age", "min_children": 1}, "from 1 to 1,000"),
        (167, {}, "from 1 to 166.*an order allows more"),
    ],
)
def test_the_largest_family_is_one_whose_views_can_be_counted(most, changes, said):
    with pytest.raises(SchemaError, match=said):
        of(max_children=most, **changes)
    largest = of(max_children=most - 1, **changes)
    pairs = most - 1 if changes else (most - 1) * (most - 2)
    assert largest.weight // pairs >= 1
