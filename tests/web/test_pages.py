"""The pages, one by one, as somebody without scripts sees them."""

import json
import zipfile
from io import BytesIO

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.web.conftest import (
    SCHEMA,
    csv_bytes,
    put_bundle,
    put_table,
    small_table,
    zipped,
)
from understudy.releases.bundle import digest, manifest_bytes
from understudy.releases.signature import new_keys, private_key, sign
from understudy.schema import Category, Identifier, Integer, Schema
from understudy.units import Unit
from understudy.web.pages.releases import _drawn

FAST = {"method": "gaussian", "epsilon": "1", "variations": ""}


def test_from_an_upload_to_an_answer_without_a_script(custodian):
    page = custodian
    assert "No table yet" in page.client.get("/tables").text
    drafted = page.upload("people.csv", csv_bytes(small_table()), name="  Our   people ")
    assert drafted.status_code == 200
    at = "/tables/our-people"
    assert page.client.get(f"{at}/plan").status_code == 409  # not confirmed yet
    confirmed = page.post(f"{at}/schema/confirm")
    assert "Every fact is confirmed" in confirmed.text
    assert page.post(f"{at}/releases", **FAST).status_code == 422  # no budget yet
    opened = page.post(f"{at}/budget", epsilon="3", delta="1e-8")
    assert "is left of 3" in opened.text
    planned = page.client.get(f"{at}/plan", params={**FAST, "rows": "400"})
    assert "Budget afterwards" in planned.text
    assert "ε = 2" in planned.text
    done = page.post(f"{at}/releases", **FAST, name="for all")
    assert "The release is done" in done.text
    shown = page.client.get("/releases/for-all", params={"q": "age >= 5 and city = 'Aa'"})
    assert "certified at 95 %" in shown.text
    assert us.verify(page.folder / "releases" / "for-all").passed
    assert (page.folder / "releases" / "for-all" / "report.html").is_file()
    assert "for all" in page.client.get("/releases").text


def test_single_facts_are_confirmed_one_by_one(custodian):
    page = custodian
    page.upload("people.csv", csv_bytes(small_table()))
    schema = custodian.site.workspace.table("people").schema
    first = Schema.load(schema).columns[0]
    assert first.read_from_rows == ("type", "nullable", "values")
    form = {"name": "city", "type": "category", "fact-values": "Aa\nBb\nCc\nDd", "do": "save"}
    page.post("/tables/people/schema/columns/0", **form, **{"public-values": "on"})
    changed = Schema.load(schema).columns[0]
    assert changed.values == ("Aa", "Bb", "Cc", "Dd")
    assert changed.read_from_rows == ("type", "nullable")
    page.post("/tables/people/schema/columns/0", **{**form, "do": "all"})
    assert Schema.load(schema).columns[0].read_from_rows == ()
    assert Schema.load(schema).columns[1].read_from_rows != ()
    wrong = page.post("/tables/people/schema/columns/1", type="integer", **{"fact-lower": "x"})
    assert wrong.status_code == 422
    assert "must be a whole number" in page.told(wrong)
    gone = page.post("/tables/people/schema/columns/9", type="integer")
    assert gone.status_code == 404
    stale = page.post("/tables/people/schema/columns/1", name="city", type="category")
    assert "somebody else" in page.told(stale)


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
        ("not = toml [", "not TOML"),
        (text.replace('name = "age"', 'name = "ages"'), "ages"),
    ):
        response = page.post(f"{at}/text", text=bad)
        assert response.status_code == 422
        assert said in page.told(response)
    assert page.site.workspace.table("people").schema.read_text() == text
    unit = page.post(f"{at}/unit", column="city", max_rows="3")
    assert "identifier" in page.told(unit)
    page.post(f"{at}/columns/0", type="identifier", do="all")
    lacking = page.post(f"{at}/unit", column="city")
    assert "how many rows" in page.told(lacking)
    page.post(f"{at}/unit", column="city", max_rows="3")
    assert Schema.load(page.site.workspace.table("people").schema).unit.max_rows == 3
    page.post("/tables/people/budget", epsilon="2")
    with page.site.workspace.ledger() as ledger:
        assert ledger.dataset("people").unit == "city"
    page.post(f"{at}/unit", column="")
    refused = page.post("/tables/people/releases", **FAST)
    assert "unit = row" in refused.text


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
    page.post(f"{at}/schema/columns/0", type="identifier", do="all")
    page.post(f"{at}/schema/unit", column="patient_id", max_rows="3")
    page.post(f"{at}/schema/confirm")
    shown = page.client.get(f"{at}/schema").text
    assert "one patient_id, with at most 3 rows" in shown
    assert "tells people apart" in shown
    asked = page.client.get(at).text
    assert "reveal about one patient_id" in asked
    assert "all rows of one patient_id added or removed" in asked
    refused = page.post(f"{at}/schema/columns/0", type="category", **{"fact-values": "P1\nP2"})
    assert refused.status_code == 422  # people could not be told apart any more
    assert "patient_id" in page.told(refused)
    page.post(f"{at}/budget", epsilon="3")
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


def test_a_schema_with_a_unit_comes_as_text(custodian):
    page = custodian
    page.upload("visits.csv", csv_bytes(visits()))
    schema = Schema(
        (Identifier("patient_id"), Category("ward", ("A", "B")), Integer("age", 0, 9)),
        unit=Unit("patient_id", 2, salt="2026"),
    )
    page.post("/tables/visits/schema/text", text=schema.dumps())
    shown = page.client.get("/tables/visits/schema").text
    assert "one patient_id, with at most 2 rows" in shown
    page.post("/tables/visits/schema/unit", column="patient_id", max_rows="5")
    kept = Schema.load(page.site.workspace.table("visits").schema).unit
    assert kept == Unit("patient_id", 5, salt="2026")


BUDGETS = [
    ({"epsilon": ""}, "not a number"),
    ({"epsilon": "-1"}, "not a number"),
    ({"epsilon": "0"}, "epsilon"),
    ({"epsilon": "1e99999999"}, "not a number"),
    ({"epsilon": "nan"}, "not a number"),
    ({"epsilon": "1", "delta": "2"}, "delta"),
    ({"epsilon": "1", "neighbours": "friends"}, "add-remove or replace"),
    ({"epsilon": "1", "neighbours": "replace"}, "number of rows public"),
    ({"epsilon": "1", "rows_public": "-5"}, "whole number"),
    ({"epsilon": "1", "delta": "0.01", "rows_public": "400"}, "below 1/n"),
    ({"epsilon": "1", "composition": "magic"}, "basic or zcdp"),
]


@pytest.mark.parametrize(("form", "said"), BUDGETS)
def test_a_budget_that_cannot_be(custodian, form, said):
    put_table(custodian, epsilon=None)
    response = custodian.post("/tables/people/budget", **form)
    assert response.status_code == 422
    assert said in custodian.told(response).lower()
    with custodian.site.workspace.ledger() as ledger:
        assert ledger.datasets() == []


def test_a_budget_is_declared_once(custodian):
    put_table(custodian, epsilon=None)
    custodian.post("/tables/people/budget", epsilon="2")
    response = custodian.post("/tables/people/budget", epsilon="20")
    assert "a budget is never changed" in custodian.told(response)
    assert str(custodian.folder) not in response.text


PLANS = [
    ({"epsilon": "x"}, "not a number"),
    ({"epsilon": ""}, "not a number"),
    ({"epsilon": "0"}, "epsilon"),
    ({"method": "magic"}, "not known"),
    ({"workload": "/etc/passwd"}, "not understood"),
    ({"workload": "../../x.json"}, "not understood"),
    ({"workload": "marginals:9"}, "marginals:9"),
    ({"rows": "many"}, "whole number"),
    ({"target": "1", "method": "gaussian"}, "does not forecast"),
    ({"delta": "1"}, "delta"),
]


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


def test_the_ledger_shows_every_release_and_whether_the_chain_holds(custodian):
    import sqlite3

    put_table(custodian)
    custodian.post("/tables/people/releases", **FAST)
    text = custodian.client.get("/ledger").text
    assert "entries hold together" in text
    assert "people ε 1" in text
    db = sqlite3.connect(custodian.folder / "ledger.db")
    db.execute("DROP TRIGGER no_update")
    db.execute('UPDATE entries SET body = replace(body, \'"epsilon":"3"\', \'"epsilon":"30"\')')
    db.commit()
    db.close()
    assert "The chain is broken" in custodian.client.get("/ledger").text


def test_values_that_a_release_finds_itself(custodian):
    page = custodian
    page.upload("people.csv", csv_bytes(small_table()))
    form = {"name": "city", "type": "category", "fact-values": "discover", "do": "save"}
    page.post("/tables/people/schema/columns/0", **form, **{"public-nullable": "on"})
    column = Schema.load(page.site.workspace.table("people").schema).columns[0]
    assert (column.values, column.read_from_rows) == ("discover", ())
    assert "city" in page.client.get("/tables/people/schema").text
    page.post("/tables/people/schema/columns/0", name="city", type="category", do="save")
    page.post("/tables/people/schema/confirm")
    page.post("/tables/people/budget", epsilon="3")
    planned = page.client.get("/tables/people/plan", params=FAST)
    assert planned.status_code == 200, page.told(planned)
    done = page.post("/tables/people/releases", **FAST, name="found")
    assert "The release is done" in done.text
    assert us.verify(page.folder / "releases" / "found").passed


def test_a_form_that_is_sent_twice_starts_one_release(custodian):
    put_table(custodian)
    for _ in range(2):
        done = custodian.post("/tables/people/releases", **FAST, once="a1b2", name="twice")
        assert str(done.url).endswith("/jobs/twice")
    other = custodian.post("/tables/people/releases", **FAST, once="c3d4", name="twice")
    assert str(other.url).endswith("/jobs/twice-2")
    with custodian.site.workspace.ledger() as ledger:
        assert float(ledger.spent("people").epsilon) == 2


def test_an_open_release_without_a_job_can_be_closed(custodian):
    from understudy.releases import prepare

    put_table(custodian)
    planned = prepare(SCHEMA, epsilon=1, method="gaussian")
    with custodian.site.workspace.ledger() as ledger:
        held = ledger.reserve(
            "people", planned.budget, planned.plan, relation=planned.design.relation
        )
        assert float(ledger.spent("people").epsilon) == 1
    assert "close it" in custodian.client.get("/ledger").text
    custodian.post(f"/ledger/{held.id}/settle")
    with custodian.site.workspace.ledger() as ledger:
        assert float(ledger.spent("people").epsilon) == 0
    assert custodian.post("/ledger/nothing/settle").status_code == 404


# --- releases ------------------------------------------------------------------------------------


def test_questions_and_what_is_wrong_with_them(custodian, bundle):
    put_bundle(custodian, bundle)
    ask = "/releases/small/answer"
    good = custodian.client.get(ask, params={"q": "smoker = 'yes'"})
    assert "The truth lies between" in good.text
    program = custodian.client.get(
        ask, params={"q": "smoker = 'yes'"}, headers={"accept": "application/json"}
    ).json()
    truth = us.Release.load(bundle).answer("smoker = 'yes'")
    assert (program["estimate"], program["low"], program["high"]) == (
        truth.estimate, truth.low, truth.high,
    )  # fmt: skip
    assert ("says nothing" in good.text) == ((truth.low, truth.high) == (0, 1))
    vague = us.releases.Answer("age >= 5", 0.5, 0.0, 1.0, 0.95, ("city", "age"))
    page = custodian.site.render("_answer.html", {"answer": _drawn(us.Release.load(bundle), vague)})
    assert "says nothing" in page
    for q, said in (
        ("", "ask something"),
        ("smokes = 'yes'", "did you mean"),
        ("smoker = ", ""),
        ("(" * 3000, "at most"),
        ("not " * 490 + "smoker = 'yes'", ""),
        ("smoker = 'yes' <script>alert(1)</script>", ""),
    ):
        response = custodian.client.get(ask, params={"q": q})
        assert response.status_code in (200, 422)
        assert said in custodian.told(response).lower()
        assert "<script>alert" not in response.text


def test_downloads_are_what_was_released(custodian, bundle, tmp_path):
    put_bundle(custodian, bundle)
    packed = custodian.client.get("/releases/small/bundle.zip")
    assert 'filename="small.release.zip"' in packed.headers["content-disposition"]
    zipfile.ZipFile(BytesIO(packed.content)).extractall(tmp_path)
    assert us.verify(tmp_path / "small.release").passed
    rows = custodian.client.get("/releases/small/rows.csv").text.splitlines()
    assert len(rows) == us.Release.load(bundle).rows.num_rows + 1
    sample = custodian.client.get("/releases/small/sample.csv", params={"rows": 7, "key": "1"})
    assert len(sample.text.splitlines()) == 8
    again = custodian.client.get("/releases/small/sample.csv", params={"rows": 7, "key": "1"})
    assert again.text == sample.text
    for wrong in ({"rows": "x"}, {"rows": "99999999999"}, {"key": "x"}):
        assert custodian.client.get("/releases/small/sample.csv", params=wrong).status_code == 422
    file = custodian.client.get("/releases/small/files/schema.toml")
    assert file.content == (bundle / "schema.toml").read_bytes()


def test_a_signature_travels_with_its_release(custodian, bundle, tmp_path):
    _, public = new_keys(str(tmp_path / "k"))
    signed = put_bundle(custodian, bundle)
    assert custodian.client.get("/releases/small/verify").status_code == 200
    sign(signed, private_key(tmp_path / "k.pem", lambda: None))
    assert "signed; not checked" in custodian.client.get("/releases/small/verify").text
    packed = custodian.client.get("/releases/small/bundle.zip").content
    assert custodian.upload("theirs.zip", packed, to="/import").status_code == 200
    assert us.verify(custodian.folder / "releases" / "theirs", signed_by=public).passed


def test_a_report_and_a_check(custodian, bundle):
    put_bundle(custodian, bundle)
    assert "<html" in custodian.client.get("/releases/small/report").text
    assert "passes every check" in custodian.client.get("/releases/small/verify").text


def newer(folder):
    manifest = json.loads((folder / "release.json").read_bytes())
    manifest["version"] = 99
    manifest["understudy"] = "9.0"
    manifest["digest"] = digest(manifest)
    return manifest_bytes(manifest)


def test_bundles_that_cannot_be_opened_say_why(custodian, bundle):
    page = custodian
    damaged = put_bundle(page, bundle, "damaged")
    (damaged / "model.npz").write_bytes(b"nothing")
    (put_bundle(page, bundle, "newer") / "release.json").write_bytes(newer(bundle))
    (put_bundle(page, bundle, "torn") / "release.json").write_bytes(b"{")
    (put_bundle(page, bundle, "lacking") / "synthetic.parquet").unlink()
    tampered = put_bundle(page, bundle, "tampered")
    rows = bytearray((tampered / "synthetic.parquet").read_bytes())
    (tampered / "synthetic.parquet").write_bytes(rows + b"x")
    for name, said in (
        ("damaged", "is damaged"),
        ("newer", "written by understudy 9.0"),
        ("torn", "not JSON"),
        ("lacking", "lacks synthetic.parquet"),
    ):
        response = page.client.get(f"/releases/{name}")
        assert response.status_code == 422, name
        assert "cannot be opened" in response.text
        assert said in page.told(response)
        assert str(page.folder) not in response.text
    assert "is refused" in page.client.get("/releases/tampered/verify").text
    listed = page.client.get("/releases")
    assert listed.status_code == 200
    assert listed.text.count("damaged or of another version") == 2


def test_bundles_from_elsewhere(custodian, bundle):
    page = custodian
    added = page.upload("theirs.release.zip", zipped(bundle), to="/import")
    assert added.status_code == 200
    assert us.verify(page.folder / "releases" / "theirs").passed
    rows = (bundle / "synthetic.parquet").read_bytes()
    for name, data, said in (
        ("table.csv", b"a,b\n", "not a bundle"),
        ("broken.zip", b"PK\x03\x04 no", "not a whole zip"),
        ("newer.zip", zipped(bundle, release=newer(bundle)), "written by understudy 9.0"),
        ("lacking.zip", zipped(bundle, release=None), "no release.json"),
        ("evil.zip", zipped(bundle, synthetic=rows[:-1] + b"x"), "is refused"),
    ):
        response = page.upload(name, data, to="/import")
        assert response.status_code == 422, name
        assert said in response.text.replace("&#39;", "'"), name
        assert str(page.folder) not in response.text
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("../../evil.txt", "x")
    outside = page.upload("slip.zip", out.getvalue(), to="/import")
    assert "no part of a release" in page.told(outside)
    assert page.site.workspace.identities("releases") == ["theirs"]


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


def test_an_audit_of_a_release(custodian, bundle):
    put_bundle(custodian, bundle)
    for form, said in (
        ({"release": "none"}, "no such release"),
        ({"release": "small", "runs": "99999999"}, "at most"),
        ({"release": "small", "runs": "x"}, "whole number"),
    ):
        response = custodian.post("/audits", **form)
        assert response.status_code in (404, 422)
        assert said in custodian.told(response)
    done = custodian.post("/audits", release="small", runs="6", canaries="4")
    assert done.status_code == 200
    job = custodian.site.jobs.all()[0]
    assert job.state in ("finished", "failed"), job.progress
    if job.state == "finished":
        assert "can never prove one" in custodian.client.get(f"/audits/{job.id}").text
    else:
        assert "runs" in job.progress["message"]
