"""Tables: from an upload to a confirmed schema and a budget, as somebody without scripts sees it."""

import dataclasses
import hashlib
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.web.conftest import FAST, SCHEMA, csv_bytes, put_table, small_table
from understudy import __version__
from understudy.constraints.rule import Rule
from understudy.draft import rows_per_unit
from understudy.draft.review import decisions, opened
from understudy.schema import Category, Identifier, Integer, Schema
from understudy.units import Unit
from understudy.web.pages.schemas import version_of


def test_from_an_upload_to_an_answer_without_a_script(custodian):
    page = custodian
    assert "No table yet" in page.client.get("/tables").text
    drafted = page.upload("people.csv", csv_bytes(small_table()), name="  Our   people ")
    assert drafted.status_code == 200
    at = "/tables/our-people"
    early = page.client.get(f"{at}/plan")
    assert early.status_code == 409  # not confirmed yet
    assert f'href="{at}/schema">Review the schema' in early.text
    assert "understudy schema" not in early.text
    confirmed = page.post(f"{at}/schema/confirm")
    assert "Every fact is confirmed" in confirmed.text
    assert page.post(f"{at}/releases", **FAST).status_code == 422  # no budget yet
    opened = page.post(f"{at}/budget", epsilon="3", delta="1e-8", sure="yes")
    assert "<b>100 %</b> left of ε = 3" in opened.text
    planned = page.client.get(f"{at}/plan", params={**FAST, "rows": "400"})
    assert "Budget afterwards" in planned.text
    assert "This release takes" in planned.text
    done = page.post(f"{at}/releases", **FAST, name="for all")
    assert "The release is done" in done.text
    shown = page.client.get("/releases/for-all", params={"q": "age >= 5 and city = 'Aa'"})
    assert "certified with 95 % confidence" in shown.text
    assert us.verify(page.folder / "releases" / "for-all").passed
    assert (page.folder / "releases" / "for-all" / "report.html").is_file()
    assert "for all" in page.client.get("/releases").text


def test_a_group_is_opened_and_answered_line_by_line(custodian):
    page = custodian
    page.upload("people.csv", csv_bytes(small_table()))
    at, file = "/tables/people/schema", page.site.workspace.table("people").schema
    columns = [
        Category("a", ("x", "y", "z"), read_from_rows=("values",)),
        Category("b", ("x", "y", "z"), read_from_rows=("values",)),
        Category("c", ("x", "y"), read_from_rows=("values",)),
        Integer("n", 0, 9, read_from_rows=("lower", "upper")),
    ]
    file.write_text(Schema(tuple(columns)).dumps())
    (lists, _), text = decisions(Schema.load(file)), page.client.get(at).text
    first, second = opened(Schema.load(file), lists)
    assert (first.columns, second.columns) == (("a", "b"), ("c",))
    assert first.question in text
    assert "Any of the 3 columns may hold x, y, z" in text  # an answer that needs no typing
    form = {"key": lists.key, "part": "1", "version": version_of(first)}
    shown = page.post(f"{at}/decisions", **form, choice="replace", text="x, y, z, w")
    assert str(shown.url).endswith("open=values%3Apairs#review")  # the rest of the group stays open
    kept = {c.name: c for c in Schema.load(file).columns}
    assert kept["a"].values == kept["b"].values == ("x", "y", "z", "w")
    assert (kept["a"].read_from_rows, kept["c"].read_from_rows) == ((), ("values",))

    stale = page.post(f"{at}/decisions", **form, choice="public")
    assert "has changed since it was shown" in page.told(stale)
    file.write_text(
        Schema((*columns[:2], replace(columns[2], values=("x", "q")), columns[3])).dumps()
    )
    stale = page.post(f"{at}/decisions", **{**form, "key": "values:pairs"}, choice="public")
    assert "has changed since it was shown" in page.told(stale)
    assert page.post(f"{at}/decisions", **{**form, "part": "9"}).status_code == 422
    page.post(f"{at}/decisions", key=lists.key, ready="x, y, z", version=version_of(lists))
    assert page.post(f"{at}/decisions", key=lists.key, choice="public").status_code == 200


def test_an_answer_is_given_anew(custodian):
    page = custodian
    page.upload("visits.csv", csv_bytes(visits()))
    at, file = "/tables/visits/schema", page.site.workspace.table("visits").schema
    page.post(f"{at}/text", text=DRAFT)
    page.post(f"{at}/confirm")

    def column(name):
        return {c.name: c for c in Schema.load(file).columns}[name]

    assert 'name="again" value="age"' in page.client.get(at).text
    page.post(f"{at}/decisions", again="age", choice="replace", text="0 to 120")
    assert column("age").upper == 120
    page.post(f"{at}/decisions", again="ward", choice="private")
    assert column("ward").values == "discover"
    page.post(f"{at}/decisions", again="ward", choice="replace", text="A, B, C")
    assert (column("ward").values, column("ward").read_from_rows) == (("A", "B", "C"), ())
    page.post(f"{at}/decisions", again="ward", choice="drop")
    assert column("ward") == Identifier("ward")
    for name in ("ward", "nobody"):
        refused = page.post(f"{at}/decisions", again=name, choice="private")
        assert "is no column that a release models" in page.told(refused)


DRAFT = """
[understudy]
version = 1
unit = "?"

[[column]]
name = "patient_id"
type = "identifier"
read_from_rows = ["type"]

[[column]]
name = "ward"
type = "category"
values = ["A", "B", "C"]
read_from_rows = ["values", "nullable"]

[[column]]
name = "age"
type = "integer"
lower = 0
upper = 9
read_from_rows = ["lower", "upper"]
"""


def first_question(page, at):
    """The key of the decision that is open on the page, and its text."""
    text = page.client.get(at).text
    first = text.partition('<details class="column" open>')[2].partition("</details>")[0]
    return first.partition('name="key" value="')[2].partition('"')[0], text


def test_decisions_are_answered_one_by_one_the_riskiest_first(custodian):
    page = custodian
    page.upload("visits.csv", csv_bytes(visits()))
    at = "/tables/visits/schema"
    page.post(f"{at}/text", text=DRAFT)
    schema = page.site.workspace.table("visits").schema

    def answer(**form):
        return page.post(f"{at}/decisions", **form)

    _, text = first_question(page, at)
    assert "Does one person have several rows?" in text
    assert "5 decisions" in text
    assert "5 decisions open" in page.client.get("/tables").text
    lacking = page.post(f"{at}/decisions", key="unit", column="patient_id")
    assert "how many rows of one patient_id" in page.told(lacking)
    page.post(f"{at}/decisions", again="unit", column="patient_id", max_rows="3")
    assert Schema.load(schema).unit == Unit("patient_id", 3)

    assert first_question(page, at)[0] == "identifiers"
    answer(key="identifiers", choice="public")
    key, text = first_question(page, at)
    assert key == "values:short"
    assert "the 3 values seen in ward" in text
    done = answer(key=key, choice="private", text="typed beside the button")
    assert Schema.load(schema).columns[1].values == "discover"
    assert "Let releases find it privately." in done.text
    assert "typed beside" not in done.text

    key, text = first_question(page, at)
    assert (key, "nearly all rows of age lie between about" in text) == ("bounds", True)
    assert "nothing was given" in page.told(answer(key=key, choice="replace")).lower()
    wrong = answer(key=key, choice="replace", text="young to old")
    assert "must be a whole number" in page.told(wrong)
    answer(key=key, choice="replace", text="0 to 120")
    assert Schema.load(schema).columns[2].upper == 120

    assert first_question(page, at)[0] == "types"
    done = answer(key="types", choice="replace", text="all")
    assert "Every fact is confirmed" in done.text
    Schema.load(schema).require_confirmed()
    for form in ({"key": "types", "choice": "public"}, {"key": "x"}, {"choice": "all"}):
        assert answer(**form).status_code == 422


def test_confirming_everything_says_what_it_states_and_not_who_is_protected(custodian):
    page = custodian
    page.upload("visits.csv", csv_bytes(visits()))
    at = "/tables/visits/schema"
    page.post(f"{at}/text", text=DRAFT)
    text = page.client.get(at).text
    stated = text.partition("State everything at once")[2]
    assert "nearly all rows of age lie between about" in stated
    assert "the 3 values seen in ward" in stated
    left = page.post(f"{at}/confirm")
    assert "1 decision to you" in left.text
    assert page.client.get("/tables/visits/plan").status_code == 409
    page.post(f"{at}/decisions", again="unit", ready="row")
    assert page.client.get("/tables/visits/plan").status_code == 200


def test_no_budget_is_declared_before_the_schema_says_who_is_protected(custodian):
    page = custodian
    page.upload("visits.csv", csv_bytes(visits()))
    at = "/tables/visits"
    assert "Total ε" not in page.client.get(at).text
    refused = page.post(f"{at}/budget", epsilon="3", sure="yes")
    assert (refused.status_code, "decisions are open" in page.told(refused)) == (409, True)
    with page.site.workspace.ledger() as ledger:
        assert ledger.datasets() == []
    page.post(f"{at}/schema/decisions", again="unit", column="patient_id", max_rows="3")
    page.post(f"{at}/schema/confirm")
    assert "reveal about one patient_id" in page.client.get(at).text
    page.post(f"{at}/budget", epsilon="3", sure="yes")
    with page.site.workspace.ledger() as ledger:
        assert ledger.dataset("visits").unit == "patient_id"


def test_answers_are_shown_and_taken_back_one_after_another(custodian):
    page = custodian
    page.upload("visits.csv", csv_bytes(visits()))
    at = "/tables/visits/schema"
    page.post(f"{at}/text", text=DRAFT)
    table = page.site.workspace.table("visits")
    shown = page.post(f"{at}/decisions", again="unit", column="patient_id", max_rows="3")
    assert "One patient_id (at most 3 of its rows count) is protected." in shown.text
    shown = page.post(f"{at}/decisions", key="identifiers", choice="public")
    assert "leave out patient_id? Yes: leave it out" in shown.text
    shown = page.post(f"{at}/undo")
    assert "One patient_id (at most 3" in shown.text
    assert "patient_id? Yes" not in shown.text
    page.post(f"{at}/undo")
    assert table.schema.read_text() == DRAFT
    page.post(f"{at}/undo")
    assert page.post(f"{at}/undo").status_code == 422
    page.post(f"{at}/text", text=DRAFT)
    page.post("/tables/visits/remove", sure="yes")
    assert not table.changes.exists()


def test_buttons_are_in_the_order_of_the_command_line_and_its_default_is_marked(custodian):
    page = custodian
    page.upload("people.csv", csv_bytes(small_table()))
    codes = [f"c{n}" for n in range(90)]
    column = Category("city", tuple(codes), read_from_rows=("values",))
    other = Category("smoker", ("no", "yes", "?"), read_from_rows=("values",))
    schema = Schema((column, Integer("age", 0, 9), other))
    edited = "/tables/people/schema/text"
    text = page.post(edited, text=schema.dumps()).text
    assert f"understudy {__version__}. " in page.client.get(edited).text
    for decision in decisions(schema):
        form = text.partition(f'value="{decision.key}"')[2].partition("</form>")[0]
        shown = re.findall(r'name="choice" value="([a-z]+)"( class="primary")?', form)
        rest = [choice for choice in decision.choices if choice != "replace"]
        assert [choice for choice, _ in shown] == [*rest, "replace"]
        assert [choice for choice, marked in shown if marked] == [
            choice for choice in rest if choice == decision.default
        ]
    assert [decision.default for decision in decisions(schema)] == ["private", None]


def test_an_answer_may_be_about_some_of_the_columns(custodian):
    page = custodian
    table = visits()
    page.upload("visits.csv", csv_bytes(table.append_column("room", table["ward"])))
    at = "/tables/visits/schema"
    room = DRAFT.partition('[[column]]\nname = "ward"')[2].partition("[[column]]")[0]
    page.post(f"{at}/text", text=f'{DRAFT}\n[[column]]\nname = "room"{room}')
    only = {"key": "values:ward", "choice": "private", "only-2": "on"}
    assert "room: Let releases find it privately" in page.post(f"{at}/decisions", **only).text
    columns = {c.name: c for c in Schema.load(page.site.workspace.table("visits").schema).columns}
    assert columns["room"].values == "discover"
    assert columns["ward"].values == ("A", "B", "C")
    assert "values" in columns["ward"].read_from_rows


def test_columns_say_what_becomes_of_them(custodian):
    page = custodian
    page.upload("visits.csv", csv_bytes(visits()))
    at = "/tables/visits/schema"
    page.post(f"{at}/text", text=DRAFT)
    page.post(f"{at}/decisions", again="unit", column="patient_id", max_rows="3")
    page.post(f"{at}/decisions", key="values:short", choice="private")
    waiting = page.client.get(at).text
    assert "Are types, empty cells and their spelling right?" in waiting
    chips = re.findall(r'class="chip[^>]*>([^<]*)', waiting.partition('id="columns"')[2])
    assert chips == ["to decide", "found privately", "to decide"]
    text = page.post(f"{at}/confirm").text
    chips = re.findall(r'class="chip[^>]*>([^<]*)', text.partition('id="columns"')[2])
    assert chips == ["left out", "found privately", "confirmed"]
    assert "tells people apart" in text
    assert "identifier · " not in text


def test_the_same_rows_are_not_added_twice_and_names_differ(custodian):
    page = custodian
    first = csv_bytes(small_table())
    assert page.upload("people.csv", first).status_code == 200
    again = page.upload("others.csv", first)
    assert again.status_code == 422
    assert "here already, as &#39;people&#39;" in page.told(again)
    page.upload("people.csv", csv_bytes(small_table(key=1)))
    assert [table.name for table in page.site.workspace.tables()] == ["people", "people (2)"]
    page.post("/tables/people/remove", sure="yes")
    assert page.upload("others.csv", first).status_code == 200


def test_the_number_of_rows_is_for_forecasts_alone(custodian):
    page = custodian
    page.upload("visits.csv", csv_bytes(visits(1234, 3)))
    at = "/tables/visits"
    page.post(f"{at}/schema/decisions", again="unit", column="patient_id", max_rows="1")
    page.post(f"{at}/schema/confirm")
    page.post(f"{at}/budget", epsilon="3", sure="yes")
    planned = page.client.get(f"{at}/plan", params=FAST).text
    assert "<b>1,200 rows</b> (counted in the file, in two digits" in planned
    assert "Were rows of a certain patient_id in the table?" in planned
    assert "All figures are of at most 1 row of each patient_id" in planned
    said = page.client.get(f"{at}/plan", params={**FAST, "rows": "500"}).text
    assert "<b>500 rows</b> (assumed)" in said
    wished = page.client.get(f"{at}/plan", params={**FAST, "target": "5"})  # its ε is published
    assert "for a number of rows that you state" in page.told(wished)
    page.post(f"{at}/releases", **FAST, name="visits")
    facts = page.site.jobs.look("visits").facts
    assert facts["choices"]["rows"] is facts["choices"]["rows_public"] is None
    assert facts["seconds"] > 0
    page.post(f"{at}/schema/decisions", again="unit", column="patient_id", max_rows="3")
    assert "about 3,700 of its rows count" in page.client.get(f"{at}/plan").text


def test_rules_are_ticked_or_dropped(custodian):
    page = custodian
    page.upload("visits.csv", csv_bytes(visits()))
    at = "/tables/visits/schema"
    rules = ("age < 3 implies ward = 'A'", "age >= 8 implies ward = 'B'", "age >= 0")
    text = "".join(f'\n[[rule]]\nsays = "{rule}"\nread_from_rows = true\n' for rule in rules)
    page.post(f"{at}/text", text=DRAFT + text)
    assert "Which of these 3 rules" in page.client.get(at).text
    shown = page.post(f"{at}/decisions", key="rules", **{"only-2": "on"})
    assert "Which of these 3 rules are public knowledge? 1 of 3." in shown.text
    (kept,) = Schema.load(page.site.workspace.table("visits").schema).rules
    assert (kept.says, kept.read_from_rows) == (rules[1], False)
    page.post(f"{at}/text", text=DRAFT + text)
    shown = page.post(f"{at}/decisions", key="rules", choice="public")
    assert "Yes: public knowledge." in shown.text
    schema = Schema.load(page.site.workspace.table("visits").schema)
    assert [(rule.says, rule.read_from_rows) for rule in schema.rules] == [
        (r, False) for r in rules
    ]
    page.post(f"{at}/text", text=DRAFT + text.partition('\n[[rule]]\nsays = "age >= 8')[0])
    assert ">Drop it<" in page.client.get(at).text


def test_rows_of_people_are_shown_and_removed_with_the_rows(custodian):
    site = custodian.site
    with site.workspace.incoming() as folder:
        file = folder / "rows.csv"
        file.write_bytes(csv_bytes(visits()))
        seen = rows_per_unit(Schema.loads(DRAFT), file)
        units = {"rows": 360, "units": [dataclasses.asdict(found) for found in seen]}
        table = site.workspace.add_table("visits", file, DRAFT, 3, units)
    assert "the noise of 1 row" in custodian.client.get("/tables/visits/schema").text
    custodian.post("/tables/visits/remove", sure="yes")
    assert not table.units.exists()


def test_a_kept_page_belongs_to_one_login(custodian):
    put_table(custodian)
    at = "/tables/people/schema"
    mine = custodian.csrf(at)
    assert custodian.csrf(at) == mine
    custodian.client.cookies.clear()
    assert custodian.client.get(at, follow_redirects=False).status_code == 303
    assert custodian.enter().csrf(at) != mine


def test_a_schema_as_text_and_whose_privacy(custodian):
    page = custodian
    put_table(page, epsilon=None)
    at = "/tables/people/schema"
    assert "[[column]]" in page.client.get(f"{at}/text").text
    text = "# ours\n" + SCHEMA.dumps(comments=False)
    page.post(f"{at}/text", text=text)
    assert page.site.workspace.table("people").schema.read_text() == text
    for bad, said in (
        ("not = toml [", "not a schema file (TOML)"),
        (text.replace('name = "age"', 'name = "ages"'), "ages"),
    ):
        response = page.post(f"{at}/text", text=bad)
        assert response.status_code == 422
        assert said in page.told(response)
    assert page.site.workspace.table("people").schema.read_text() == text
    late = page.post(f"{at}/text", text=text + "# more", version="of another tab")
    assert "has changed since it was shown" in page.told(late)
    assert "# more</textarea>" in late.text
    unit = page.post(f"{at}/decisions", again="unit", column="town", max_rows="3")
    assert "There is no column &#39;town&#39;" in page.told(unit)
    lacking = page.post(f"{at}/decisions", again="unit", column="city")
    assert "how many rows" in page.told(lacking)
    page.post(f"{at}/decisions", again="unit", column="city", max_rows="3")
    assert Schema.load(page.site.workspace.table("people").schema).unit.max_rows == 3
    page.post("/tables/people/budget", epsilon="2", sure="yes")
    with page.site.workspace.ledger() as ledger:
        assert ledger.dataset("people").unit == "city"
    page.post(f"{at}/decisions", again="unit", ready="row")
    for refused in (page.client.get("/tables/people/plan"),
                    page.post("/tables/people/releases", **FAST)):  # fmt: skip
        assert refused.status_code == 409
        assert "declared for one city, but the schema now protects one row" in refused.text
    page.post(f"{at}/undo")
    assert page.client.get("/tables/people/plan").status_code == 200


def visits(patients=120, each=3):
    """Several rows of everybody."""
    rng = np.random.default_rng(1)
    rows = patients * each
    return pa.table(
        {
            "patient_id": [f"P{row // each:04d}" for row in range(rows)],
            "ward": np.array(["A", "B"])[rng.integers(0, 2, rows)],
            "age": rng.integers(0, 10, rows),
        }
    )


def test_a_table_in_which_people_have_several_rows(custodian):
    page = custodian
    page.upload("visits.csv", csv_bytes(visits()))
    at = "/tables/visits"
    page.post(f"{at}/schema/decisions", again="unit", column="patient_id", max_rows="3")
    page.post(f"{at}/schema/confirm")
    shown = page.client.get(f"{at}/schema").text
    assert "Who is protected: one patient_id (at most 3 of its rows count)" in shown
    assert "tells people apart" in shown
    asked = page.client.get(at).text
    assert "reveal about one patient_id" in asked
    assert "In neighbouring tables, all rows of one patient_id are" in asked
    page.post(f"{at}/budget", epsilon="3", sure="yes")
    assert "all rows of one patient_id" in page.client.get(at).text
    planned = page.client.get(f"{at}/plan", params={**FAST, "rows": "360"})
    assert (planned.status_code, "Budget afterwards" in planned.text) == (200, True)
    done = page.post(f"{at}/releases", **FAST, name="visits")
    assert "The release is done" in done.text, done.text
    folder = page.folder / "releases" / "visits"
    assert us.verify(folder).passed
    made = us.Release.load(folder)
    assert (made.schema.unit.column, made.schema.unit.max_rows) == ("patient_id", 3)
    assert "patient_id" in page.client.get("/releases/visits").text
    assert "P0001" not in page.client.get("/releases/visits/report").text


@pytest.mark.parametrize("make", [Unit, Unit.sharing])
def test_a_schema_with_a_unit_comes_as_text(custodian, make):
    page = custodian
    page.upload("visits.csv", csv_bytes(visits()))
    schema = Schema(
        (Identifier("patient_id"), Category("ward", ("A", "B")), Integer("age", 0, 9)),
        unit=make("patient_id", 2, salt="2026"),
    )
    page.post("/tables/visits/schema/text", text=schema.dumps())
    shown = page.client.get("/tables/visits/schema").text
    assert "Who is protected: one patient_id (at most 2 of its rows count" in shown
    assert (
        'name="equal" value="yes" checked' in page.client.get("/tables/visits/schema").text
    ) == (make is not Unit)
    equal = "" if make is Unit else "yes"
    page.post(
        "/tables/visits/schema/decisions",
        again="unit",
        column="patient_id",
        max_rows="5",
        equal=equal,
    )
    kept = Schema.load(page.site.workspace.table("visits").schema).unit
    assert kept == make("patient_id", 5, salt="2026")


BUDGETS = [
    ({"epsilon": ""}, "not understood"),
    ({"epsilon": "-1"}, "not understood"),
    ({"epsilon": "0"}, "epsilon"),
    ({"epsilon": "1e99999999"}, "not understood"),
    ({"epsilon": "nan"}, "not understood"),
    ({"epsilon": "1", "delta": "2"}, "delta"),
    ({"epsilon": "1", "neighbours": "friends"}, "check: neighbours"),
    ({"epsilon": "1", "neighbours": "replace"}, "number of rows public"),
    ({"epsilon": "1", "rows_public": "-5"}, "whole number"),
    ({"epsilon": "1", "delta": "0.01", "rows_public": "400"}, "below 1/n"),
    ({"epsilon": "1", "composition": "magic"}, "check: composition"),
]


@pytest.mark.parametrize(("form", "said"), BUDGETS)
def test_a_budget_that_cannot_be(custodian, form, said):
    put_table(custodian, epsilon=None)
    response = custodian.post("/tables/people/budget", **{"sure": "yes", **form})
    assert response.status_code == 422
    assert said in custodian.told(response).lower()
    assert "check" in said or f'value="{form.get("delta", "1e-8")}"' in response.text  # stays
    with custodian.site.workspace.ledger() as ledger:
        assert ledger.datasets() == []


def test_a_total_that_promises_hardly_anything_is_asked_about_once_more(custodian):
    put_table(custodian, epsilon=None)
    asked = custodian.post("/tables/people/budget", epsilon="1000", sure="yes")
    assert asked.status_code == 422
    assert "promises hardly anything" in custodian.told(asked)
    assert "With its releases together" in custodian.told(asked)
    assert "at most 100 % of the time" in custodian.told(asked)
    assert 'name="large" value="1000"' in asked.text
    other = custodian.post("/tables/people/budget", epsilon="2000", large="1000", sure="yes")
    assert other.status_code == 422
    custodian.post("/tables/people/budget", epsilon="1000", large="1000", sure="yes")
    assert "<b>100 %</b> left of ε = 1000" in custodian.client.get("/tables/people").text
    custodian.post("/tables/people/releases", **FAST)
    for page in ("/tables/people", "/jobs/people-1"):
        assert "more than 99 %" in custodian.client.get(page).text


def test_a_budget_is_declared_once(custodian):
    put_table(custodian, epsilon=None)
    custodian.post("/tables/people/budget", epsilon="2", sure="yes")
    response = custodian.post("/tables/people/budget", epsilon="5", sure="yes")
    assert "a budget is never changed" in custodian.told(response)
    assert str(custodian.folder) not in response.text


def test_values_that_a_release_finds_itself(custodian):
    page = custodian
    page.upload("people.csv", csv_bytes(small_table()))
    page.post("/tables/people/schema/decisions", again="city", choice="private")
    page.post("/tables/people/schema/confirm")
    column = Schema.load(page.site.workspace.table("people").schema).columns[0]
    assert (column.values, column.read_from_rows) == ("discover", ())
    assert "city" in page.client.get("/tables/people/schema").text
    page.post("/tables/people/budget", epsilon="3", sure="yes")
    planned = page.client.get("/tables/people/plan", params=FAST)
    assert planned.status_code == 200, page.told(planned)
    done = page.post("/tables/people/releases", **FAST, name="found")
    assert "The release is done" in done.text
    assert us.verify(page.folder / "releases" / "found").passed


def test_rows_can_be_removed_and_the_account_stays(custodian):
    table = put_table(custodian)
    custodian.post("/tables/people/releases", **FAST)
    assert custodian.post("/tables/people/remove").status_code == 422
    gone = custodian.post("/tables/people/remove", sure="yes")
    assert "The rows were removed" in gone.text
    assert not table.rows.exists()
    for path in ("/tables/people/plan", "/tables/people/schema"):
        assert custodian.client.get(path).status_code == 404
    assert custodian.client.get("/tables").status_code == 200
    with custodian.site.workspace.ledger() as ledger:
        assert float(ledger.spent("people").epsilon) == 1


def test_rows_that_come_again_go_on_with_what_their_budget_has_left(custodian):
    put_table(custodian)
    custodian.post("/tables/people/releases", **FAST)
    custodian.post("/tables/people/remove", sure="yes")
    again = custodian.upload("elsewhere.csv", csv_bytes(small_table()), name="others")
    assert again.url.path == "/tables/people/schema"
    assert [table.name for table in custodian.site.workspace.tables()] == ["people"]
    custodian.post("/tables/people/schema/confirm")
    shown = custodian.client.get("/tables/people").text
    assert "<b>67 %</b> left of ε = 3" in shown
    custodian.post("/tables/people/remove", sure="yes")
    other = custodian.upload("elsewhere.csv", csv_bytes(small_table(key=1)), name="others")
    assert other.url.path == "/tables/others/schema"


def test_the_fingerprint_of_removed_rows_is_slow_salted_and_only_kept_where_budget_is_spent(
    custodian,
):
    put_table(custodian)
    table = custodian.site.workspace.table("people")
    custodian.post("/tables/people/remove", sure="yes")
    assert not table.removed.exists()
    kept = []
    for key in (1, 2):
        custodian.upload("people.csv", csv_bytes(small_table()), name=f"again {key}")
        table = next(t for t in custodian.site.workspace.tables() if t.name == f"again {key}")
        custodian.post(f"/tables/{table.id}/schema/confirm")
        custodian.post(f"/tables/{table.id}/budget", epsilon="3", delta="1e-8", sure="yes")
        custodian.post(f"/tables/{table.id}/releases", **FAST)
        custodian.post(f"/tables/{table.id}/remove", sure="yes")
        kept.append(table.removed.read_text())
        table.removed.rename(table.folder / "aside")
    plain = hashlib.sha256(csv_bytes(small_table())).hexdigest()
    assert kept[0] != kept[1]
    assert plain not in "".join(kept)
    assert "salt" in kept[0]


def test_a_budget_needs_a_tick_and_a_comma_is_not_guessed(custodian):
    put_table(custodian, epsilon=None)
    post = partial(custodian.post, "/tables/people/budget")
    assert "Tick the box" in custodian.told(post(epsilon="3"))
    for typed in ("1,000", "2,5"):
        said = custodian.told(post(epsilon=typed, sure="yes"))
        assert "a comma may mean thousands or decimals" in said
    assert "whole number" in custodian.told(post(epsilon="1", rows_public="4,00", sure="yes"))
    with custodian.site.workspace.ledger() as ledger:
        assert ledger.datasets() == []
    post(epsilon="1", rows_public="4,000", sure="yes")
    with custodian.site.workspace.ledger() as ledger:
        assert ledger.dataset("people").rows_public == 4000


def test_a_slip_of_the_pen_is_refused_and_what_was_typed_stays(custodian):
    page = custodian
    page.upload("visits.csv", csv_bytes(visits()))
    at = "/tables/visits/schema"
    drug = Category("drug", ("No", "Steady", "Up"), read_from_rows=("values",))
    rule = Rule("drug = 'Steady' implies age >= 3", read_from_rows=True)
    schema = Schema((drug, Integer("age", 0, 9)), rules=(rule,))
    page.site.workspace.table("visits").schema.write_text(schema.dumps())
    typed = {"key": "values:short", "choice": "replace", "text": "No, Stedy, Up"}
    refused = page.post(f"{at}/decisions", **typed)
    assert refused.status_code == 422
    assert "did you mean it by &#39;Stedy&#39;" in refused.text
    assert ">No, Stedy, Up</textarea>" in refused.text
    opened = refused.text.partition("<textarea")[0].rpartition("<details")[2]
    assert opened.startswith(' class="more" open')
    assert "Kept." not in refused.text
    kept = page.post(f"{at}/decisions", **{**typed, "text": "No, Up"}).text
    assert "The table holds &#39;Steady&#39;, not in the list of drug" in kept
    assert "a question has nothing left to ask: Is the rule drug" in kept
    page.post(f"{at}/undo")
    assert Schema.load(page.site.workspace.table("visits").schema) == schema


def test_rows_do_not_count_together_while_a_release_finds_values(custodian):
    page = custodian
    page.upload("visits.csv", csv_bytes(visits()))
    at, file = "/tables/visits/schema", page.site.workspace.table("visits").schema
    who, age = Identifier("who"), Integer("age", 0, 9)
    found = Schema((who, age, Category("job", ("a", "b"), read_from_rows=("values",))))
    file.write_text(found.dumps())
    private = {"key": "values:pairs", "choice": "private"}
    shown = page.post(f"{at}/decisions", **private).text
    assert "Releases find the values or bounds of job privately" in shown
    plan = page.client.get("/tables/visits/plan").text
    assert "It cannot plan while releases find job privately" in plan
    unit = {"again": "unit", "column": "who", "max_rows": "3", "equal": "yes"}
    refused = page.post(f"{at}/decisions", **unit)
    assert "the domain of column &#39;job&#39; is to be found privately" in page.told(refused)
    assert 'name="equal" value="yes" checked' in refused.text  # what was typed stays
    assert Schema.load(file).unit is None
    lacking = page.post(f"{at}/decisions", **{**unit, "max_rows": "-7"})
    assert lacking.status_code == 422
