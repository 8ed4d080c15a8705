"""Drafts of two tables: keys, parents, domains; the questions they leave, and the answers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from bench.households import households

import understudy as us
from understudy.columns.unmodelled import UndeclaredShape
from understudy.draft import (
    children_per_parent,
    confirm,
    draft_families,
    draft_split,
    rows_left_out,
)
from understudy.draft.answers import Choice, answered
from understudy.draft.families import _bounded
from understudy.draft.review import decision_named, decisions
from understudy.errors import InputError, SchemaError, UnconfirmedError
from understudy.schema import Category, Identifier, Integer, Schema
from understudy.schema.family import Family, FamilySchema

NUMBER = 1_500


@pytest.fixture(scope="module")
def homes():
    made = households(NUMBER, 1, empty=0.05)
    return made.households, made.persons


@pytest.fixture(scope="module")
def visits():
    """A flat table: patients with up to nine visits, in order; sex and birth are the patient's."""
    rng = np.random.default_rng(2)
    sizes = np.minimum(rng.geometric(0.5, 600), 9)
    who = np.repeat(np.arange(600), sizes)
    index = np.arange(who.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    born = 1930 + who % 60
    return pa.table(
        {
            "patient_id": [f"P{i:05d}" for i in who],
            "sex": np.where(who % 2 == 0, "female", "male"),
            "birth_year": born,
            "day": pa.array(18_000 + 30 * index + who % 30, pa.int32()).cast(pa.date32()),
            "ward": rng.choice(["A", "B", "C"], who.size),
            "cost": np.round(rng.gamma(2, 500, who.size), 2),
            "note": [f"note {i} of somebody" for i in range(who.size)],
        }
    )


def test_the_parents_are_found_in_either_order(homes):
    parents, children = homes
    for pair, names in (((parents, children), ("homes", "people")),
                        ((children, parents), ("people", "homes"))):  # fmt: skip
        schema = draft_families(*pair, names=names)
        family = schema.tables[2]
        assert (family.parent, family.key) == ("homes", "household_id")
        assert (family.child, family.foreign_key) == ("people", "household_id")
        assert family.max_children == 6
        assert family.min_children == 0
        assert family.order is None
        assert {"key", "parent", "foreign_key", "max_children"} <= set(family.read_from_rows)
        assert Schema.loads(schema.dumps()) == schema
        assert "THIS IS A DRAFT" in schema.dumps()


def test_nothing_is_left_to_be_found_privately(homes):
    schema = Schema.draft(homes)
    assert isinstance(schema, FamilySchema)
    parents, children, _ = schema.tables
    assert not parents.undeclared
    assert not children.undeclared
    income = next(c for c in parents.columns if c.name == "income")
    assert isinstance(income, Integer)
    assert {"lower", "upper"} <= set(income.read_from_rows)


def test_no_release_accepts_it_before_all_is_confirmed(homes):
    schema = draft_families(*homes)
    with pytest.raises(UnconfirmedError, match="belong together"):
        schema.require_confirmed()
    with pytest.raises(UnconfirmedError, match="table 'parents'"):
        confirm(schema, ["children"]).require_confirmed()
    confirmed = schema.confirm()
    confirmed.require_confirmed()
    assert not confirmed.marked
    with pytest.raises(SchemaError, match=r"TABLE\.COLUMN"):
        confirm(schema, ["age"])
    with pytest.raises(SchemaError, match="protects a family"):
        schema.confirm(unit="row")
    us.prepare(confirmed, epsilon=1)


def test_every_mark_has_a_question_and_answers_settle_all(homes):
    schema = draft_families(*homes)
    asked = decisions(schema)
    assert asked[0].key == "family"
    assert len({decision.key for decision in asked}) == len(asked)
    assert all(Choice.PRIVATE not in decision.choices for decision in asked)
    for decision in asked:
        schema = answered(schema, decision, Choice.PUBLIC)
    assert decisions(schema) == ()
    schema.require_confirmed()


def test_answers_change_the_table_that_they_are_about(homes):
    schema = draft_families(*homes)
    family = decision_named(schema, "family")
    changed = answered(schema, family, Choice.REPLACE, "max_children = 4, siblings = all")
    assert isinstance(changed, FamilySchema)
    assert changed.tables[2].max_children == 4
    assert changed.tables[2].siblings == "all"
    assert not changed.tables[2].read_from_rows
    with pytest.raises(SchemaError, match="max_children = 5"):
        answered(schema, family, Choice.REPLACE, "key = x")
    income = decision_named(schema, "parents.income")
    changed = answered(schema, income, Choice.REPLACE, "0 to 99999")
    (column,) = (c for c in changed.tables[0].columns if c.name == "income")
    assert (column.lower, column.upper) == (0, 99_999)
    dropped = answered(schema, decision_named(schema, "children.work"), Choice.DROP)
    assert isinstance(next(c for c in dropped.tables[1].columns if c.name == "work"), Identifier)
    assert not [rule for rule in dropped.rules if "work" in rule.columns]


def test_rules_of_a_draft_are_of_its_tables_and_marked(homes):
    schema = draft_families(*homes)
    assert schema.rules
    assert all(rule.read_from_rows for rule in schema.rules)
    gone = answered(schema, next(d for d in decisions(schema) if d.topic == "rules"), Choice.DROP)
    assert not gone.rules


def test_tables_without_a_key_are_refused():
    one = pa.table({"a": ["x", "x", "y"], "b": [1, 2, 2]})
    other = pa.table({"c": ["p", "q", "q"], "d": ["u", "v", "v"]})
    with pytest.raises(SchemaError, match="key"):
        draft_families(one, other)


@pytest.mark.parametrize(
    ("parents", "children", "said"),
    [
        (range(300), [], "visits has no rows"),
        ([*range(300), *range(60)], range(300), "300 values in 360 rows of patients"),
        (range(300), range(300, 600), "and 0 values are in both"),
    ],
    ids=["no children", "parents repeat", "no child has a parent"],
)
def test_why_no_key_was_found_is_said(parents, children, said):
    one = pa.table({"who": [f"p{i}" for i in parents], "sex": ["F", "M"] * (len(parents) // 2)})
    other = pa.table({"who": pa.array([f"p{i}" for i in children for _ in "ab"], pa.string())})
    other = other.append_column("ward", pa.array(["a", "b"] * (len(other) // 2), pa.string()))
    with pytest.raises(SchemaError, match=said):
        draft_families(one, other, names=("patients", "visits"))


def test_rows_of_the_other_table_are_not_taken_for_children(homes):
    parents, children = homes
    schema = draft_families(parents, children)
    assert children_per_parent(schema, children).rows == len(children)
    with pytest.raises(InputError, match="not that of parents"):
        children_per_parent(schema, parents)


def test_rows_that_a_release_leaves_out_are_counted():
    parents = pa.table({"who": ["a", "b", "b", "c", None], "sex": ["F", "M", "M", "F", "M"]})
    children = pa.table({"who": ["a", "a", "a", "b", "x", None], "ward": [*"uvuvuv"]})
    own = Schema((Identifier("who"), Category("sex", ("F", "M"))))
    other = Schema((Identifier("who"), Category("ward", ("u", "v"))))
    family = Family("patients", "who", "visits", "who", max_children=2, min_children=1)
    schema = FamilySchema.of(own, other, family)
    assert [
        (f.column, f.problem.partition(",")[0], f.count)
        for f in rows_left_out(schema, parents, children)
    ] == [
        ("patients.who", "has no value", 1),
        ("patients.who", "repeats another row's", 1),
        ("visits.who", "names no row of patients", 2),
        ("visits.who", "comes after max_children = 2 others", 1),
        ("patients.who", "has no visits", 1),
    ]
    whole = pa.table({"who": ["a", "b"]}), pa.table({"who": [*"aab"]})
    assert rows_left_out(schema, *whole) == []


def test_a_draft_keeps_children_in_their_order(visits):
    schema = draft_split(visits, "patient_id")
    assert "previous.day <= day" in [rule.says for rule in schema.rules]


@pytest.mark.parametrize("start", [0, 1])
def test_an_order_that_only_counts_is_not_modelled(visits, start):
    who = visits["patient_id"].to_pylist()
    place = [i - who.index(name) + start for i, name in enumerate(who)]
    shuffled = np.random.default_rng(1).permutation(len(who))
    counted = visits.drop_columns(["day"]).append_column("visit", pa.array(place)).take(shuffled)
    schema = draft_split(counted, "patient_id")
    _, children, family = schema.tables
    assert family.order == "visit"
    assert isinstance(next(c for c in children.columns if c.name == "visit"), Identifier)
    gaps = counted.set_column(
        counted.column_names.index("visit"), "visit", pc.multiply(counted["visit"], 2)
    )
    _, children, _ = draft_split(gaps, "patient_id").tables
    assert isinstance(next(c for c in children.columns if c.name == "visit"), Integer)


def test_bins_are_where_the_rows_are(visits):
    parents, _, _ = draft_split(visits, "patient_id").tables
    born = next(c for c in parents.columns if c.name == "birth_year")
    assert isinstance(born, Integer)
    assert (born.lower, born.upper) == (1930, 1990)
    assert {"lower", "upper"} <= set(born.read_from_rows)


def test_a_flat_table_is_split_where_rows_of_a_parent_agree(visits):
    schema = draft_split(visits, "patient_id")
    parents, children, family = schema.tables
    assert family.parent == "patients"
    assert family.order == "day"
    assert family.min_children == 1
    assert [c.name for c in parents.columns] == ["patient_id", "sex", "birth_year"]
    assert [c.name for c in children.columns] == ["patient_id", "day", "ward", "cost", "note"]
    assert 4 <= family.max_children <= 9
    assert isinstance(parents.columns[1], Category)
    assert Schema.draft(visits, split="patient_id") == schema
    said = str(children_per_parent(schema, visits))
    assert "max_children = 1 drops" in said
    assert "600 values" in said


@pytest.mark.parametrize(
    ("key", "said"),
    [("patient", "is it 'patient_id'|did you mean|patient_id"), ("note", "more than one row")],
)
def test_what_cannot_be_split_is_refused(visits, key, said):
    with pytest.raises(InputError, match=said):
        draft_split(visits, key)


def test_a_level_without_columns_is_refused(visits):
    with pytest.raises(InputError, match="is the same in all rows"):
        draft_split(visits.select(["patient_id", "ward", "cost"]), "patient_id")
    with pytest.raises(InputError, match="differs between rows"):
        draft_split(visits.select(["patient_id", "sex", "birth_year"]), "patient_id")


def test_the_question_names_the_columns_that_were_found_to_be_the_parents(visits):
    (decision, *_) = decisions(draft_split(visits, "patient_id"))
    assert any("sex" in line and "birth" in line for line in decision.holds)


def test_a_column_without_a_domain_is_marked_as_what_rows_said():
    column = UndeclaredShape("dose", wanted="number")
    made = _bounded(column, pa.chunked_array([pa.nulls(3, pa.float64())]))
    assert isinstance(made, Identifier)
    assert made.read_from_rows == ("type",)
