"""A column as a form, and back."""

import dataclasses
from datetime import date, datetime

import pytest

from understudy import demo
from understudy.errors import SchemaError
from understudy.schema import (
    Boolean,
    Category,
    Date,
    Datetime,
    Identifier,
    Incomplete,
    Integer,
    Number,
    Schema,
    Text,
    UndeclaredShape,
)
from understudy.web.editor import card, cards, column_from, replaced

COLUMNS = [
    Category("c", ("a", " b ", 'say "x"', "comma, too", "")[:4], "OTHER", ordinal=True),
    Category("i", (1, 2, 30), 99, dtype="int32"),
    Category("f", (0.5, 1.25)),
    Category("b", (True, False)),
    Category("d", (date(2020, 1, 31), date(2021, 1, 1))),
    Category("multi", ("two\nlines", "tab\there")),
    Boolean("yes", nullable=True, null_values=("?", "a, b", " ")),
    Integer("n", -5, 120, bins=25, nullable=True),
    Integer("e", edges=(0, 10, 100)),
    Integer("coded", 0, 9, special=("N", "1, 2", 999)),
    Number("x", -1.5, 1e6, bins=7, decimals=2),
    Number("y", edges=(0.0, 0.1, 12.75)),
    Date("day", date(2020, 1, 1), date(2020, 12, 31), bins=12, format="%d.%m.%Y"),
    Date("cut", edges=(date(2020, 1, 1), date(2020, 6, 1), date(2021, 1, 1))),
    Datetime("t", datetime(2020, 1, 1), datetime(2021, 1, 1, 12, 30), bins=4, resolution="minute"),
    Identifier("id"),
    Identifier("new", "P-{:06d}"),
    *demo.schema().columns,
]


def form_of(column, **changed):
    """What a browser would send for a card that nobody touched."""
    shown = card(column, 0)
    form = {"type": shown.kind}
    for fact in shown.facts:
        if fact.widget != "box" or fact.value:
            form[f"fact-{fact.key}"] = fact.value.replace("\n", "\r\n")
    return form | changed


@pytest.mark.parametrize("column", COLUMNS, ids=lambda c: c.name)
def test_an_untouched_form_changes_nothing(column):
    assert column_from(form_of(column), column) == column


def test_facts_stay_marked_until_they_are_ticked():
    column = Integer("age", 17, 93, nullable=True, read_from_rows=("type", "lower", "upper"))
    assert card(column, 0).waiting == 3
    assert [fact.key for fact in card(column, 0).facts if fact.marked] == ["lower", "upper"]
    kept = column_from(form_of(column, **{"fact-lower": "0"}), column)
    assert kept.lower == 0
    assert kept.read_from_rows == column.read_from_rows
    ticked = column_from(form_of(column, **{"public-lower": "on", "fact-upper": "120"}), column)
    assert (ticked.upper, ticked.read_from_rows) == (120, ("type", "upper"))
    assert column_from(form_of(column), column, confirm_all=True).read_from_rows == ()


def test_another_type_asks_for_what_it_needs():
    column = Integer("zip", 1000, 9999, bins=4, read_from_rows=("type", "lower", "upper"))
    listed = column_from({"type": "category", "fact-nullable": "on"}, column)
    assert isinstance(listed, Incomplete)
    assert (listed.missing, listed.nullable, listed.read_from_rows) == (("values",), True, ())
    assert card(listed, 0).problem == "fill in: values"
    done = column_from(form_of(listed, **{"fact-values": "a\r\n\r\nb\r\n"}), listed)
    assert done == Category("zip", ("a", "b"), nullable=True)
    assert column_from({"type": "identifier"}, column) == Identifier("zip")
    number = column_from({"type": "number"}, column)
    assert number == UndeclaredShape("zip", "number")
    half = column_from(form_of(number, **{"fact-lower": "0"}), number)
    assert half == UndeclaredShape("zip", "number", {"lower": 0.0})
    cut = column_from(form_of(half, **{"fact-upper": "1.5", "fact-bins": "4"}), half)
    assert cut == Number("zip", 0.0, 1.5, bins=4)
    few = form_of(Integer("zip", 0, 9), **{"fact-bins": "shape"})
    found = column_from(few, Integer("zip", 0, 9))
    assert found == UndeclaredShape("zip", "integer", {"lower": 0, "upper": 9})
    assert column_from(form_of(found), found) == found


BAD = [
    (Integer("age", 0, 9), {"fact-lower": "ten"}, "'ten' must be a whole number"),
    (Integer("age", 0, 9), {"fact-lower": "20"}, "lies above"),
    (Integer("age", 0, 9), {"fact-bins": "2.5"}, "bins = '2.5' must be a whole number"),
    (Number("x", 0.0, 1.0, 4), {"fact-upper": "1,5"}, "'1,5' must be a number"),
    (Number("x", 0.0, 1.0, 4), {"fact-edges": "0, 1"}, "bins and edges are both given"),
    (Date("d", date(2020, 1, 1), date(2021, 1, 1)), {"fact-lower": "1.1.2020"}, "2024-01-31"),
    (Category("c", (1, 2)), {"fact-values": "1\ntwo"}, "'two' must be a whole number"),
    (Category("c", ("a", "b")), {"fact-values": "a\na"}, "more than once"),
    (Category("b", (True, False)), {"fact-values": "true\nmaybe"}, "must be true or false"),
    (Integer("age", 0, 9), {"type": "sausage"}, "not known"),
    (Integer("age", 0, 9), {"fact-dtype": "sausage"}, "not the name of an Arrow type"),
    (Identifier("id"), {"fact-action": "{} {}"}, "one number in braces"),
]


@pytest.mark.parametrize(("column", "changed", "said"), BAD)
def test_mistakes_get_the_words_of_a_schema_file(column, changed, said):
    with pytest.raises(SchemaError, match=column.name) as raised:
        column_from(form_of(column, **changed), column)
    assert said in str(raised.value)


def test_what_a_release_finds_itself_stays_as_it_was_declared():
    schema = Schema.loads(
        '[understudy]\nversion = 1\n[[column]]\nname = "town"\ntype = "category"\n'
        'values = "discover"\n[[column]]\nname = "income"\ntype = "number"\nlower = 0\n'
        "upper = 9000\nbins = {quantiles = 16}\n"
    )
    assert [shown.kind for shown in cards(schema)] == ["category", "number"]
    for column in schema.columns:
        assert column_from(form_of(column), column) == column
    closed = column_from({"type": "number"}, schema.columns[1])
    assert closed == schema.columns[1]
    listed = column_from({"type": "category", "fact-values": "discover"}, Category("c", ("a", "b")))
    assert listed.values == "discover"


def test_free_text_is_left_out_and_a_schema_keeps_its_other_columns():
    schema = Schema((Text("note"), Boolean("b")), rows_public=7)
    assert "left out" in cards(schema)[0].holds
    dropped = replaced(schema, 0, column_from({"type": "identifier"}, schema.columns[0]))
    assert dropped == dataclasses.replace(schema, columns=(Identifier("note"), Boolean("b")))
