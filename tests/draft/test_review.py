"""Decisions about a draft: few, the riskiest first, each mark in exactly one of them."""

import dataclasses
from datetime import date

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schema_strategies import columns
from understudy.constraints import Rule
from understudy.draft import RowsPerUnit, confirm, draft
from understudy.draft.answers import Choice, Topic, answered
from understudy.draft.review import again, decision_named, decisions, opened
from understudy.errors import SchemaError
from understudy.schema import (
    Boolean,
    Category,
    Date,
    Identifier,
    Incomplete,
    Integer,
    Number,
    Schema,
    Text,
)
from understudy.schema.toml import column_facts

LIST = ("type", "nullable", "values")
RANGE = ("type", "nullable", "lower", "upper")


def listed(name, *values, **more):
    return Category(name, values, read_from_rows=LIST, **more)


def ranged(name, lower, upper, **more):
    return Integer(name, lower, upper, read_from_rows=RANGE, **more)


DRUGS = [listed(f"drug {letter}", "Down", "No", "Steady", "Up") for letter in "abcdefgh"]
DRUGS += [listed("drug i", "No", "Steady"), listed("drug j", "No")]
JOBS = listed("job", *(f"job {i}" for i in range(73)))
HOSPITAL = Schema(
    (
        Identifier("patient", read_from_rows=("type", "nullable")),
        JOBS,
        *DRUGS,
        ranged("bedrooms", 0, 13),
        ranged("visits_home", 0, 9),
        ranged("visits_clinic", 1, 80, bins=20),
        Date("admitted", date(2020, 1, 1), date(2020, 12, 31), read_from_rows=RANGE),
        Number("price", edges=(0.0, 10.0, 99.5), read_from_rows=("type", "edges")),
        listed("changed", "Ch", "No", nullable=True, null_values=("?",)),
        listed("treated", "No", "Yes"),
        Boolean("alive", read_from_rows=("type", "nullable")),
        Text("notes", read_from_rows=("type",)),
        Incomplete("blank", wanted="category", missing=("values",)),
    ),
    unit_word="?",
)


def topics(schema):
    return [decision.topic for decision in decisions(schema)]


def test_the_riskiest_first_and_alike_columns_together():
    found = {decision.key: decision for decision in decisions(HOSPITAL)}
    assert list(found) == [
        "unit", "identifiers", "values:job", "values:drug a", "bounds", "values:pairs",
        "missing:blank", "types",
    ]  # fmt: skip
    assert found["values:drug a"].columns == tuple(column.name for column in DRUGS)
    assert found["bounds"].columns == (
        "bedrooms", "visits_home", "visits_clinic", "admitted", "price"
    )  # fmt: skip
    assert found["identifiers"].columns == ("patient", "notes")
    assert found["values:pairs"].columns == ("changed", "treated")
    assert "alive" in found["types"].columns


def test_each_says_what_it_would_publish():
    found = {decision.key: decision for decision in decisions(HOSPITAL)}
    told = "that nearly all rows of bedrooms lie between about 0 and 13"
    assert told in found["bounds"].reveals
    assert "73 values seen in job" in found["values:job"].reveals
    assert "nobody has Down, Steady, Up in drug j" in found["values:drug a"].reveals
    *_, admitted, price = opened(HOSPITAL, found["bounds"])
    assert "2020-01-01 and 2020-12-31" in admitted.reveals
    assert "where the rows of price lie" in price.reveals
    assert any("written as ?" in line for line in found["types"].holds)
    # A long list is not offered as public knowledge first.
    assert found["values:job"].choices[0] is not Choice.PUBLIC
    assert "job 72" in found["values:job"].full[0]
    assert not found["values:drug a"].full


def test_codes_among_numbers_are_named():
    marked = ranged("income", 0, 90, special=("N", 999))
    marked = dataclasses.replace(marked, read_from_rows=("lower", "upper", "special"))
    schema = Schema((marked, dataclasses.replace(marked, name="pay", read_from_rows=("special",))))
    codes, bounds = decisions(schema)
    assert "about 0 and 90; that income has the codes N, 999" in bounds.reveals
    assert codes.question == "Are the codes of pay public knowledge?"
    assert Choice.REPLACE not in codes.choices
    after = answered(schema, bounds, Choice.REPLACE, "0 to 100")
    assert after.columns[0].special == ("N", 999)
    assert after.columns[0].read_from_rows == ("special",)


def marks(schema):
    return {(c.name, mark) for c in schema.columns for mark in c.read_from_rows}


@st.composite
def drafts(draw):
    found = draw(st.lists(columns(), min_size=1, max_size=6, unique_by=lambda c: c.name))
    marked = []
    for column in found:
        known = ["type", *(k for k in column_facts(column) if k not in ("name", "type"))]
        chosen = draw(st.lists(st.sampled_from(known), unique=True))
        marked.append(dataclasses.replace(column, read_from_rows=tuple(chosen)))
    return Schema(tuple(marked))


@settings(max_examples=20)
@given(drafts())
def test_answering_all_of_them_confirms_everything(schema):
    found = decisions(schema)
    assert len({decision.key for decision in found}) == len(found)
    open_ = marks(schema)
    for decision in found:
        assert decision_named(schema, decision.key) == decision
        after = answered(schema, decision, Choice.PUBLIC)
        assert marks(after) < marks(schema)
        assert {name for name, _ in marks(schema) - marks(after)} <= set(decision.columns)
        open_ -= marks(schema) - marks(after)
        schema = after
    assert not open_
    assert schema == confirm(schema)
    assert decisions(schema) == ()


RULED = Schema(
    (
        Category("zip", ("1", "2")),
        Category("city", ("Ulm", "Bern")),
        Integer("age", 0, 9),
        Integer("years", 0, 9),
    ),
    rules=(
        Rule("zip determines city", (("1", "Ulm"), ("2", "Bern")), read_from_rows=True),
        Rule("years <= age", read_from_rows=True),
        Rule("age < 3 implies city = 'Ulm'", read_from_rows=True),
        Rule("age < 2 implies years = 0", read_from_rows=True),
        Rule("age >= 0"),
    ),
)


def test_rules_are_one_decision_and_answered_one_by_one():
    (rules,) = decisions(RULED)
    assert rules.key == "rules"
    assert rules.holds[0] == "zip determines city: 1 → Ulm, 2 → Bern"
    assert "2 values of one column" in rules.reveals
    assert len(rules.columns) == 4
    kept = answered(RULED, rules.of("age < 2 implies years = 0"), Choice.PUBLIC)
    assert [rule.read_from_rows for rule in kept.rules] == [True, True, True, False, False]
    left = answered(kept, decision_named(kept, "age < 3 implies city = 'Ulm'"), Choice.DROP)
    assert "age < 3 implies city = 'Ulm'" not in [rule.says for rule in left.rules]
    done = answered(left, decision_named(left, "rules"), Choice.PUBLIC)
    assert (decisions(done), len(done.rules)) == ((), 4)
    assert decision_named(RULED, "years <= age").columns == ("years <= age",)


def test_a_shared_question_opens_into_one_for_each_line():
    for decision in decisions(HOSPITAL):
        parts = opened(HOSPITAL, decision)
        if decision.topic not in ("values", "bounds") or len(decision.columns) == 1:
            assert parts == ()
            continue
        assert [part.columns for part in parts] == [*decision.parts]
        assert [part.holds for part in parts] == [(line,) for line in decision.holds]
        schema = HOSPITAL
        for part in parts:
            schema = answered(schema, part, Choice.PUBLIC)
        assert decision.key not in [each.key for each in decisions(schema)]
    (rules,) = decisions(RULED)
    assert [part.columns for part in opened(RULED, rules)] == [*rules.parts]


def test_columns_with_the_same_facts_share_a_line_and_an_answer():
    same = Schema(tuple(ranged(f"q{at}", 0, 1 + at % 2) for at in range(6)), unit_word="row")
    bounds, _ = decisions(same)
    assert bounds.parts == (("q0", "q2", "q4"), ("q1", "q3", "q5"))
    changed = answered(same, opened(same, bounds)[1], Choice.REPLACE, "0 to 9")
    assert [column.upper for column in changed.columns] == [1, 9, 1, 9, 1, 9]


def test_only_answers_that_publish_no_value_are_taken_where_nobody_says():
    found = {decision.key: decision.default for decision in decisions(HOSPITAL)}
    assert {key for key, default in found.items() if default} == {"identifiers", "values:job"}
    assert found["values:job"] is Choice.PRIVATE
    equal = answered(HOSPITAL, decision_named(HOSPITAL, "unit"), Choice.REPLACE, "patient 5 equal")
    job = decision_named(equal, "job")
    assert (job.default, Choice.PRIVATE in job.choices) == (None, False)


def test_one_list_for_all_does_not_say_which_column_has_fewer_values():
    drugs = decision_named(HOSPITAL, "values:drug a")
    (option,) = drugs.options
    after = answered(HOSPITAL, drugs, Choice.REPLACE, option.text)
    lists = [column.values for column in after.columns if column.name in drugs.columns]
    assert lists == [("Down", "No", "Steady", "Up")] * len(DRUGS)
    assert decision_named(HOSPITAL, "values:job").options == ()


def test_values_that_are_not_listed_may_still_be_there():
    rare = [
        listed("drug a", "Down", "No", "Steady", other="OTHER"),
        listed("drug b", "No", other="OTHER"),
    ]
    (decision, _) = decisions(Schema(tuple(rare)))
    assert "hardly anybody has Down, Steady in drug b" in decision.reveals
    assert "others count as OTHER" in decision.holds[0]


def test_a_unit_that_a_draft_chose_waits_for_somebody():
    drafted = Schema((ranged("age", 0, 99),), unit_word="row", read_from_rows=("unit",))
    unit = decision_named(drafted, "unit")
    assert unit.choices[0] is Choice.PUBLIC
    assert answered(drafted, unit, Choice.PUBLIC).read_from_rows == ()
    by_age = answered(drafted, unit, Choice.REPLACE, "age 3")
    assert (by_age.unit.column, by_age.read_from_rows) == ("age", ())


def test_a_custodian_sees_how_many_rows_people_have():
    seen = RowsPerUnit("patient", 70, 100, 0, 3, ((1, 30), (2, 4), (3, 0)), whole=(44, 66, 70))
    (unit, *_) = decisions(HOSPITAL, [seen])
    assert "at most 3 rows each" in unit.holds[1]
    assert [option.text for option in unit.options] == [
        "patient 1",
        "patient 2",
        "patient 3",
        "row",
    ]
    assert unit.options[1].words == (
        "at most 2 rows of each patient: all rows of 94 % of them; 4 % of the rows left out; "
        "2 times the noise of 1"
    )
    for option in unit.options:
        assert "unit" not in topics(answered(HOSPITAL, unit, Choice.REPLACE, option.text))


def test_short_lists_are_one_question_and_each_can_be_answered_alone():
    columns = (
        Category("race", ("a", "b", "c"), read_from_rows=("values",)),
        Category("ward", (1, 2, 3, 4), other=-1, read_from_rows=("values",)),
        Category("long", tuple(map(str, range(40))), read_from_rows=("values",)),
    )
    schema = Schema(columns, unit_word="row")
    found = {decision.key: decision for decision in decisions(schema)}
    assert set(found) == {"values:long", "values:short"}
    short = found["values:short"]
    assert short.columns == ("ward", "race")
    assert any("1, 2, 3, 4" in line for line in short.holds)
    private = answered(schema, short.of("race"), Choice.PRIVATE)
    assert [d.columns for d in decisions(private) if d.topic == "values"] == [("long",), ("ward",)]
    with pytest.raises(SchemaError, match="not codes like these"):
        answered(schema, short.of("ward"), Choice.PRIVATE)
    assert [d.key for d in decisions(answered(schema, short, Choice.PUBLIC))] == ["values:long"]


def test_what_was_answered_can_be_asked_again():
    who = Identifier("who", read_from_rows=("type",))
    schema = confirm(Schema((who, listed("job", "a", "b"), ranged("age", 0, 9)), unit_word="row"))
    assert decisions(schema) == ()
    changed = answered(schema, again(schema, "age"), Choice.REPLACE, "0 to 120")
    assert changed.columns[2].upper == 120
    assert changed.columns[2].read_from_rows == ()
    found = answered(schema, again(schema, "job"), Choice.PRIVATE)
    assert again(found, "job").choices == (Choice.REPLACE, Choice.PRIVATE, Choice.DROP)
    salted = answered(schema, again(schema, "unit"), Choice.REPLACE, "who 2")
    salted = salted.protecting(dataclasses.replace(salted.unit, salt="2026"))
    kept = answered(salted, again(salted, "unit"), Choice.REPLACE, "who 3")
    assert (kept.unit.max_rows, kept.unit.salt) == (3, "2026")
    for name in ("who", "nobody"):
        with pytest.raises(SchemaError, match="no column that a release models"):
            again(schema, name)


def test_how_numbers_and_dates_are_written_is_told():
    fees = [f"{i * 1234:,}.50 €".translate(str.maketrans(",.", ".,")) for i in range(900)]
    schema = draft(
        pa.table({"fee": fees, "on": [f"{1 + i % 28}.{1 + i % 12}.2020" for i in range(900)]})
    )
    types = next(each for each in decisions(schema) if each.topic is Topic.TYPES)
    assert types.holds[:2] == ("number: fee", "date: on")
    assert types.holds[-1] == "formats: fee #.##0,00 €, on %d.%m.%Y"
