"""Answers to the decisions about a draft: what each leaves of it."""

import dataclasses

import pytest
from hypothesis import given, settings

from tests.draft.test_review import DRUGS, HOSPITAL, RANGE, RULED, drafts, marks, topics
from understudy.constraints.rule import Rule
from understudy.draft import confirm
from understudy.draft.answers import Choice, Topic, answered, possible
from understudy.draft.review import consequences, decision_named, decisions
from understudy.errors import InputError, SchemaError
from understudy.schema import Category, Identifier, Integer, Schema
from understudy.schema.toml import column_facts


def test_only_texts_can_be_found_privately():
    texts, numbers = Category("c", ("a", "b")), Category("n", (1, 2))
    assert possible([texts], *Choice) == tuple(Choice)
    assert Choice.PRIVATE not in possible([texts, numbers], *Choice)


@settings(max_examples=20)
@given(drafts())
def test_other_answers_leave_nothing_of_the_draft(schema):
    for decision in decisions(schema):
        if Choice.PRIVATE in decision.choices:
            named = [column for column in schema.columns if column.name in decision.columns]
            found = [c.name for c in named if Choice.PRIVATE in possible([c], *Choice)]
            after = answered(schema, decision.of(*found), Choice.PRIVATE)
            assert set(found) <= {column.name for column in after.undeclared}
            if len(found) < len(named):  # a shared question offers what any of its lines can take
                with pytest.raises(SchemaError, match="not codes like these"):
                    answered(schema, decision, Choice.PRIVATE)
        if Choice.DROP in decision.choices:
            after = answered(schema, decision, Choice.DROP)
            left = {c.name for c in after.columns if isinstance(c, Identifier)}
            assert set(decision.columns) <= left
            assert not {name for name, _ in marks(after)} & left


def test_own_facts_replace_those_of_the_rows():
    key = "values:drug a"
    one_list = answered(HOSPITAL, decision_named(HOSPITAL, key), Choice.REPLACE, 'No, "Yes, a bit"')
    for name in (column.name for column in DRUGS):
        column = one_list.columns[[c.name for c in HOSPITAL.columns].index(name)]
        assert (column.values, column.read_from_rows) == (
            ("No", "Yes, a bit"),
            ("type", "nullable"),
        )

    schema = answered(HOSPITAL, decision_named(HOSPITAL, "bedrooms"), Choice.REPLACE, "0 to 50")
    schema = answered(schema, decision_named(schema, "visits_clinic"), Choice.REPLACE, "0 .. 200")
    schema = answered(
        schema, decision_named(schema, "admitted"), Choice.REPLACE, "2000-01-01 to 2030-01-01"
    )
    schema = answered(schema, decision_named(schema, "price"), Choice.REPLACE, "0 to 1000")
    by_name = {column.name: column for column in schema.columns}
    assert (by_name["bedrooms"].upper, by_name["bedrooms"].read_from_rows) == (50, RANGE[:2])
    assert (by_name["visits_clinic"].upper, by_name["visits_clinic"].bins) == (200, 20)
    assert decision_named(schema, "bounds").columns == ("visits_home",)
    price = column_facts(by_name["price"])
    assert (price["lower"], price["upper"], price["read_from_rows"]) == (0.0, 1000.0, ("type",))
    assert decision_named(schema, "bounds:visits_home").columns == ("visits_home",)

    types = decision_named(schema, "types")
    some = answered(schema, types, Choice.REPLACE, "job, alive")
    assert {c.name for c in some.columns if c.nullable} == {"job", "alive"}
    everywhere = answered(schema, types, Choice.REPLACE, "all")
    assert all(c.nullable for c in everywhere.columns if c.name in types.columns)


def test_rules_of_a_draft_go_with_the_columns_they_speak_of():
    drafted = dataclasses.replace(RULED.columns[0], read_from_rows=("values",))
    schema = RULED.resolved({"zip": drafted})
    dropped = answered(schema, decision_named(schema, "zip"), Choice.DROP)
    assert "zip determines city" not in [rule.says for rule in dropped.rules]
    assert len(dropped.rules) == 4
    stated = dataclasses.replace(RULED.rules[0], read_from_rows=False)
    schema = dataclasses.replace(schema, rules=(stated,))
    with pytest.raises(InputError, match="zip determines city"):
        answered(schema, decision_named(schema, "zip"), Choice.DROP)


def test_blanks_have_to_be_filled_in():
    decision = decision_named(HOSPITAL, "blank")
    assert Choice.PUBLIC not in decision.choices
    assert answered(HOSPITAL, decision, Choice.REPLACE, "a, b").columns[-1].values == ("a", "b")
    assert answered(HOSPITAL, decision, Choice.PRIVATE).undeclared[-1].name == "blank"
    assert answered(HOSPITAL, decision, Choice.DROP).columns[-1] == Identifier("blank")


@pytest.mark.parametrize(
    ("key", "choice", "text", "said"),
    [
        ("unit", Choice.PUBLIC, "", "cannot be answered by public; choose one of: replace"),
        ("unit", Choice.REPLACE, "nobody 5", "there is no column 'nobody'; the schema leaves out"),
        ("unit", Choice.REPLACE, "patients 5", r"no column 'patients' \(did you mean 'patient'"),
        ("job", Choice.REPLACE, "baker, alive", "'alive' is the name of a column, not a value"),
        ("unit", Choice.REPLACE, "patient 0", "max_rows = 0"),
        ("unit", Choice.REPLACE, "patient", "does not say who is protected"),
        ("bounds", Choice.REPLACE, "0 to 9", "one at a time"),
        ("bedrooms", Choice.REPLACE, "12", "must be two bounds"),
        ("bedrooms", Choice.REPLACE, "0 to many", "upper = 'many' must be a whole number"),
        ("bedrooms", Choice.REPLACE, "9 to 2", "bedrooms"),
        ("job", Choice.REPLACE, " ", "nothing was given"),
        ("types", Choice.REPLACE, "jobs", "'jobs' is none of the columns in question"),
        ("identifiers", Choice.DROP, "", "cannot be answered by drop"),
        ("values:sex", Choice.PUBLIC, "", "Open decisions: unit, identifiers"),
    ],
)
def test_an_answer_that_cannot_be_says_why(key, choice, text, said):
    with pytest.raises(InputError, match=said):
        answered(HOSPITAL, decision_named(HOSPITAL, key), choice, text)


def test_who_is_protected():
    unit = decision_named(HOSPITAL, "unit")
    assert decisions(confirm(HOSPITAL, ()))[0] == unit
    chosen = answered(HOSPITAL, unit, Choice.REPLACE, "patient 5")
    assert (chosen.unit.column, chosen.unit.max_rows) == ("patient", 5)
    assert Topic.UNIT not in topics(chosen)
    by_job = answered(HOSPITAL, unit, Choice.REPLACE, "job 2")
    assert by_job.columns[1] == Identifier("job")  # what tells people apart is not modelled
    rows = answered(HOSPITAL, unit, Choice.REPLACE, "row")
    assert (rows.unit, rows.unit_word) == (None, "row")
    assert Topic.UNIT not in topics(rows)


def test_a_list_is_whole_unless_it_ends_with_dots():
    job = next(c for c in HOSPITAL.columns if c.name == "job")
    assert job.kind == "category"
    open_ = HOSPITAL.resolved({"job": dataclasses.replace(job, other="OTHER")})
    for text, other in (("a, b", None), ("a, b, ...", "OTHER"), ("a, b…", "OTHER")):
        chosen = answered(open_, decision_named(open_, "job"), Choice.REPLACE, text)
        found = next(c for c in chosen.columns if c.name == "job")
        assert (found.values, found.other) == (("a", "b"), other)


def test_whole_numbers_in_a_row_are_typed_by_their_ends():
    codes = Category("code", (1, 2, 5), other=-1, read_from_rows=("values",))
    schema = dataclasses.replace(HOSPITAL, columns=(*HOSPITAL.columns, codes))
    decision = decision_named(schema, "code")
    assert "not codes that are numbers" in decision_named(schema, "values:code").advice
    chosen = answered(schema, decision, Choice.REPLACE, "1 to 4, 9").columns[-1]
    assert (chosen.values, chosen.other) == ((1, 2, 3, 4, 9), None)
    assert answered(schema, decision, Choice.REPLACE, "1..4, ...").columns[-1].other == -1
    with pytest.raises(InputError, match="must go up"):
        answered(schema, decision, Choice.REPLACE, "9 to 1")


def test_rows_of_a_person_may_count_equally():
    declared = Schema((Identifier("who"), Category("sex", ("F", "M"))), unit_word="?")
    chosen = answered(declared, decision_named(declared, "unit"), Choice.REPLACE, "who 5 equal")
    assert chosen.unit.equal == 5


def insulin(*, other=None):
    """A draft of one list, with a rule about it."""
    column = Category(
        "insulin",
        ("Down", "No", "Steady", "Up"),
        other=other,
        nullable=False,
        read_from_rows=("values",),
    )
    rule = Rule("insulin = 'Steady' implies age >= 3", read_from_rows=True)
    return Schema((column, Integer("age", 0, 9)), rules=(rule,))


def test_a_slip_of_the_pen_for_a_value_of_the_table_is_refused():
    schema = insulin()
    decision = decision_named(schema, "insulin")
    said = "holds 'Steady', which is not in your list; did you mean it by 'Stedy'?.* count as 'No'"
    with pytest.raises(InputError, match=said):
        answered(schema, decision, Choice.REPLACE, "No, Stedy, Up, Down")
    with pytest.raises(InputError, match="holds 'Up'"):
        answered(schema, decision, Choice.REPLACE, "No, Steady, UP, Down")
    answered(schema, decision, Choice.REPLACE, "No, Steady, Stedy, Up, Down")
    answered(schema, decision, Choice.REPLACE, "No, Stedy, Up, Down, ...")
    codes = dataclasses.replace(schema.columns[0], values=("250.1", "250.2"))
    schema = Schema((codes,))
    answered(schema, decision_named(schema, "insulin"), Choice.REPLACE, "250.1, 250.3")


def test_what_an_answer_does_beside_it_is_told():
    schema = insulin()
    decision = decision_named(schema, "insulin")
    fewer = answered(schema, decision, Choice.REPLACE, "No, Up")
    told = consequences(schema, fewer, decision.key)
    assert told == (
        "The table holds 'Down', 'Steady', not in the list of insulin: rows with it count as 'No'.",
        "A rule was dropped with it, as it needs what was declared: "
        "insulin = 'Steady' implies age >= 3.",
        "With it, a question has nothing left to ask: "
        "Is the rule insulin = 'Steady' implies age >= 3 public knowledge?",
    )
    whole = answered(schema, decision, Choice.REPLACE, "Down, No, Steady, Up, Often")
    assert consequences(schema, whole, decision.key) == ()
    opened = answered(schema, decision, Choice.REPLACE, "No, Up, Steady, ...")
    assert consequences(schema, opened, decision.key) == (
        "The table holds 'Down', not in the list of insulin: rows with it count as OTHER.",
    )
    rare = insulin(other="OTHER")
    closed = answered(rare, decision, Choice.REPLACE, "No, Down, Steady, Up")
    assert consequences(rare, closed, decision.key) == (
        "A value of insulin that is not listed would count as 'No'.",
    )
