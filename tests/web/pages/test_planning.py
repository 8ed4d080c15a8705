"""Plans, and the start of a release."""

import os
import re

import pytest

from tests.web.conftest import FAST, SCHEMA, put_table
from understudy.releases import prepare
from understudy.web.pages.planning import PlanForm

PLANS = [
    ({"epsilon": "x"}, "not understood"),
    ({"epsilon": ""}, "not understood"),
    ({"epsilon": "0"}, "epsilon"),
    ({"method": "magic"}, "not known"),
    ({"workload": "/etc/passwd"}, "not understood"),
    ({"workload": "../../x.json"}, "not understood"),
    ({"workload": "marginals:9"}, "marginals:9"),
    ({"purpose": "model:nothing"}, "unknown column"),
    ({"purpose": "regression:age"}, "write the formula as"),
    ({"purpose": "subgroups"}, "name the column"),
    ({"purpose": "subgroups", "columns": "nothing"}, "unknown column"),
    ({"rows": "many"}, "whole number"),
    ({"target": "1"}, "fill in about how many"),
    ({"target": "1", "rows": "400", "method": "gaussian"}, "does not forecast"),
    ({"delta": "1"}, "delta"),
]


def test_defaults_are_those_of_the_command_line():
    """As public facts and the charge for each: the plan is the same to the last bit."""
    page = prepare(SCHEMA, **PlanForm().choices(None))
    line = prepare(SCHEMA, epsilon=1)
    assert page.facts == line.facts
    assert [*page.plan] == [*line.plan]


@pytest.mark.parametrize(("wish", "said"), PLANS)
def test_a_plan_that_cannot_be(custodian, wish, said):
    put_table(custodian)
    response = custodian.client.get("/tables/people/plan", params={**FAST, **wish})
    assert response.status_code == 422
    assert said in custodian.told(response).lower()
    piece = custodian.client.get("/tables/people/plan/forecast", params={**FAST, **wish})
    assert said in custodian.told(piece).lower()
    if "target" not in wish:
        assert custodian.post("/tables/people/releases", **{**FAST, **wish}).status_code == 422
    with custodian.site.workspace.ledger() as ledger:
        assert len(ledger.entries("people")) == 1
    assert custodian.site.jobs.all() == []


def test_a_wished_error_gives_an_epsilon(custodian):
    put_table(custodian, epsilon="10")
    wish = {"target": "5", "rows": "5000", "variations": "", "workload": "marginals:1"}
    response = custodian.client.get("/tables/people/plan/forecast", params=wish)
    program = custodian.client.get(
        "/tables/people/plan/forecast", params=wish, headers={"accept": "application/json"}
    ).json()
    assert program["forecast"]["errors"]["worst"] <= 0.05
    assert f'data-epsilon="{program["epsilon"]}"' in response.text
    page = custodian.client.get("/tables/people/plan", params=wish).text
    assert f'value="{program["epsilon"]}"' in page


def test_a_release_by_a_wished_error_spends_the_epsilon_of_its_plan(custodian):
    put_table(custodian)
    refused = custodian.post("/tables/people/releases", **{**FAST, "epsilon": "", "target": "5"})
    assert refused.status_code == 422
    done = custodian.post("/tables/people/releases", **FAST, target="5", name="wished")
    assert str(done.url).endswith("/jobs/wished")
    assert custodian.site.jobs.all()[0].facts["choices"]["epsilon"] == FAST["epsilon"]


def test_a_purpose_is_planned_for_and_kept(custodian):
    put_table(custodian)
    wish = {"epsilon": "1", "variations": "", "purpose": " model:age "}
    shown = custodian.client.get("/tables/people/plan/forecast", params=wish).text
    assert "For model:age: tables with age: " in shown
    custodian.post("/tables/people/releases", **FAST, purpose="model:age")
    assert custodian.site.jobs.all()[0].facts["choices"]["purpose"] == ["model:age"]


def test_a_purpose_may_name_several_columns(custodian):
    assert PlanForm(purpose="subgroups", columns="a, b").purposes(()) == [
        "subgroups:a",
        "subgroups:b",
    ]
    assert PlanForm(purpose="model", columns="a, b").purposes(("a, b",)) == ["model:a, b"]
    assert PlanForm(purpose="regression", columns="a ~ b").purposes(()) == ["regression:a ~ b"]
    put_table(custodian)
    wish = {"epsilon": "1", "purpose": "subgroups", "columns": "city, smoker"}
    shown = custodian.client.get("/tables/people/plan/forecast", params=wish)
    assert "tables with city and tables with smoker" in shown.text
    wish["columns"] = "city, smokes"
    shown = custodian.client.get("/tables/people/plan/forecast", params=wish)
    assert custodian.told(shown).startswith("Unknown column &#39;smokes&#39;")


def test_a_purpose_is_chosen_and_its_column_named(custodian):
    put_table(custodian)
    wish = {"epsilon": "1", "variations": "", "purpose": "subgroups", "columns": " age "}
    page = custodian.client.get("/tables/people/plan", params=wish).text
    assert "For subgroups:age: tables with age: " in page
    assert '<option value="subgroups" selected>' in page
    assert 'name="columns" value="age"' in page
    without = PlanForm(columns="age").choices(None)
    assert without["purpose"] is None


def test_a_page_from_before_another_release_starts_none(custodian):
    """A second tab, or the page that Back leads to: what it shows of the budget is old."""
    put_table(custodian)
    pages = [custodian.client.get("/tables/people/plan").text for _ in range(2)]
    forms = [dict(re.findall(r'name="(once|begun)" value="(\w+)"', page)) for page in pages]
    assert custodian.post("/tables/people/releases", **FAST, **forms[0], name="first").is_success
    late = custodian.post("/tables/people/releases", **FAST, **forms[1], name="second")
    assert late.status_code == 409
    assert "the release first was started" in custodian.told(late)
    assert "Budget afterwards" in late.text  # as it is now
    assert [job.name for job in custodian.site.jobs.all()] == ["first"]
    again = dict(re.findall(r'name="(once|begun)" value="(\w+)"', late.text))
    done = custodian.post("/tables/people/releases", **FAST, **again, name="second")
    assert str(done.url).endswith("/jobs/second")


def test_what_does_not_fit_is_told_with_what_would(custodian):
    put_table(custodian, epsilon="1")
    custodian.post("/tables/people/releases", **{**FAST, "epsilon": "0.8"})
    shown = custodian.post("/tables/people/releases", **FAST)
    assert shown.status_code == 409
    assert "Nothing was started" in custodian.told(shown)
    (fits,) = re.findall(r"About ε = ([0-9.]+) would fit", shown.text)
    for epsilon, fit in ((fits, True), ("0.8", False)):
        asked = {**FAST, "epsilon": epsilon}
        forecast = custodian.client.get("/tables/people/plan/forecast", params=asked).text
        assert ("It does not fit" not in forecast) is fit


def test_a_release_that_has_not_reserved_its_budget_is_named(custodian, monkeypatch):
    put_table(custodian)
    held = []
    waits = lambda _folder, lock: held.append(os.dup(lock))  # noqa: E731
    monkeypatch.setattr(custodian.site.jobs, "_launch", waits)
    custodian.post("/tables/people/releases", **FAST, name="first")
    forecast = custodian.client.get("/tables/people/plan/forecast", params=FAST).text
    assert "first is being made and will take ε of the same budget" in forecast
    os.close(*held)
    forecast = custodian.client.get("/tables/people/plan/forecast", params=FAST).text
    assert "being made" not in forecast


def test_a_form_that_is_sent_twice_starts_one_release(custodian):
    put_table(custodian)
    for _ in range(2):
        done = custodian.post("/tables/people/releases", **FAST, once="a1b2", name="twice")
        assert str(done.url).endswith("/jobs/twice")
    other = custodian.post("/tables/people/releases", **FAST, once="c3d4", name="twice")
    assert str(other.url).endswith("/jobs/twice-2")
    with custodian.site.workspace.ledger() as ledger:
        assert float(ledger.spent("people").epsilon) == 2


def test_what_says_nothing_is_said_to(custodian):
    put_table(custodian)
    wish = {"method": "dualquery", "epsilon": "0.001", "rows": "100", "workload": "marginals:1"}
    response = custodian.client.get("/tables/people/plan/forecast", params=wish)
    assert response.status_code == 200
    assert "% confidence, which says nothing here" in response.text
    assert (
        "Proved beforehand: worst error ≤ 100.00 percentage points, which says nothing here"
        in response.text
    )


def test_a_release_is_started_by_who_says_so_and_has_a_name_of_its_own(custodian):
    put_table(custodian, epsilon="5")
    at = "/tables/people/releases"
    refused = custodian.post(at, **{**FAST, "sure": ""})
    assert "tick the box" in custodian.told(refused).lower()
    assert custodian.site.jobs.all() == []
    for _ in range(2):
        custodian.post(at, **FAST, name="twice", owner="City of Exampleton")
    assert {job.name for job in custodian.site.jobs.all()} == {"twice", "twice (2)"}
    assert "City of Exampleton" in custodian.client.get("/releases/twice/report").text
    written = (custodian.folder / "releases" / "twice" / "report.html").read_text()
    assert "City of Exampleton" in written
    assert "understudy verify twice.release" in written
