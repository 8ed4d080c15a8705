"""The review of a schema: what a button says, and what is refused because it has changed since."""

from dataclasses import replace

import pytest

from tests.web.conftest import csv_bytes, small_table
from understudy.draft.answers import Choice, Topic
from understudy.draft.review import decisions
from understudy.schema import Category, Integer, Schema
from understudy.web.pages.schemas import Row, _words, version_of

DRAFT = Schema(
    (
        Category("a", ("x", "y"), read_from_rows=("values",)),
        Category("b", ("p", "q"), read_from_rows=("values",)),
        Integer("n", 0, 9, read_from_rows=("lower", "upper")),
    )
)


def test_another_question_is_another_version():
    found = decisions(DRAFT)
    assert len({version_of(each) for each in found}) == len(found)
    assert [version_of(each) for each in decisions(Schema.loads(DRAFT.dumps()))] == [
        version_of(each) for each in found
    ]
    changed = replace(DRAFT, columns=(*DRAFT.columns[:2], replace(DRAFT.columns[2], upper=10)))
    (before,) = (d for d in found if d.columns == ("n",))
    (after,) = (d for d in decisions(changed) if d.columns == ("n",))
    assert version_of(before) != version_of(after)


def test_a_button_speaks_of_one_or_of_several_columns():
    (one,) = (d for d in decisions(DRAFT) if d.columns == ("n",))
    several = replace(one, columns=("n", "m"))
    assert _words(one, Choice.PRIVATE) == "Let releases find it privately"
    assert _words(several, Choice.PRIVATE) == "Let releases find them privately"
    assert (_words(one, Choice.DROP), _words(several, Choice.DROP)) == (
        "Leave it out",
        "Leave them out",
    )
    assert _words(replace(one, topic=Topic.RULES), Choice.DROP) == "Drop it"
    assert _words(one, Choice.PUBLIC) == one.yes


def test_a_column_of_two_tables_is_named_with_its_own():
    assert Row("age", "", "0 to 9", "", None).of == "age"
    assert Row("age", "children", "0 to 9", "", None).of == "children.age"


@pytest.mark.parametrize("form", [{}, {"key": "no such question"}, {"again": "age", "part": "7"}])
def test_an_answer_to_nothing_that_is_asked_changes_nothing(custodian, form):
    custodian.upload("people.csv", csv_bytes(small_table()))
    file = custodian.site.workspace.table("people").schema
    before = file.read_text()
    answer = custodian.post("/tables/people/schema/decisions", **form, choice="public")
    assert answer.status_code == 422
    assert "has changed since it was shown" in custodian.told(answer)
    assert file.read_text() == before


def test_a_button_that_is_not_there_is_no_answer(custodian):
    custodian.upload("people.csv", csv_bytes(small_table()))
    file = custodian.site.workspace.table("people").schema
    before, first = file.read_text(), decisions(Schema.load(file))[0]
    sent = {"key": first.key, "version": version_of(first), "choice": "perhaps"}
    answer = custodian.post("/tables/people/schema/decisions", **sent)
    assert answer.status_code == 422
    assert file.read_text() == before


def test_without_a_change_there_is_nothing_to_take_back(custodian):
    custodian.upload("people.csv", csv_bytes(small_table()))
    at, file = "/tables/people/schema", custodian.site.workspace.table("people").schema
    before = file.read_text()
    nothing = custodian.post(f"{at}/undo")
    assert nothing.status_code == 422
    assert "There is no change to take back" in custodian.told(nothing)
    custodian.post(f"{at}/confirm")
    assert file.read_text() != before
    custodian.post(f"{at}/undo")
    assert file.read_text() == before
