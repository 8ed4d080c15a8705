"""Releases: questions, checks, downloads, and bundles from elsewhere."""

import json
import re
import zipfile
from dataclasses import replace
from io import BytesIO

from pyarrow import csv

import understudy as us
from tests.web.conftest import Page, TestClient, put_bundle, without_tokens, zipped
from tests.web.live import routes
from understudy.releases.bundle import digest, manifest_bytes
from understudy.releases.signature import new_keys, private_key, sign
from understudy.web.pages.releases import _drawn

# --- releases ------------------------------------------------------------------------------------


def test_questions_and_what_is_wrong_with_them(custodian, bundle):
    put_bundle(custodian, bundle)
    ask = "/releases/small/answer"
    good = custodian.client.get(ask, params={"q": "smoker = 'yes'"})
    assert "The true share is" in good.text
    program = custodian.client.get(
        ask, params={"q": "smoker = 'yes'"}, headers={"accept": "application/json"}
    ).json()
    truth = us.Release.load(bundle).answer("smoker = 'yes'")
    assert (program["estimate"], program["low"], program["high"]) == (
        truth.estimate, truth.low, truth.high,
    )  # fmt: skip
    assert ("says nothing" in good.text) == ((truth.low, truth.high) == (0, 1))
    assert "That is narrower, but not certified" in good.text
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


def test_statistics_and_what_is_wrong_with_them(custodian, bundle):
    put_bundle(custodian, bundle)
    ask = "/releases/small/estimate"
    asked = "share(smoker = 'yes') by city"
    truth = us.Release.load(bundle).estimate(asked)
    good = custodian.client.get(ask, params={"q": asked})
    assert all(shown in good.text for each in truth for shown in each.shown)
    assert "Not a certified bound" in good.text
    program = custodian.client.get(
        ask, params={"q": asked}, headers={"accept": "application/json"}
    ).json()
    assert program == json.loads(json.dumps(truth.to_json()))
    test = custodian.client.get(ask, params={"q": "independence(smoker, city)"}).text
    assert "degrees of freedom" in test
    whole = custodian.client.get("/releases/small", params={"s": asked})
    assert truth[0].shown[1] in whole.text
    for q, said in (
        ("", "ask for something"),
        ("means(age)", "did you mean"),
        ("share(smokes = 'yes')", "did you mean"),
        ("share(" * 300 + "age = 1", ""),
        ("x" * 3000, "at most"),
        ("share(smoker = 'yes') <script>alert(1)</script>", ""),
    ):
        response = custodian.client.get(ask, params={"q": q})
        assert response.status_code == 422
        assert said in custodian.told(response).lower()
        assert "<script>alert" not in response.text


def test_downloads_are_what_was_released(custodian, bundle, tmp_path):
    put_bundle(custodian, bundle)
    packed = custodian.client.get("/releases/small/bundle.zip")
    assert 'filename="small.release.zip"' in packed.headers["content-disposition"]
    zipfile.ZipFile(BytesIO(packed.content)).extractall(tmp_path)
    assert us.verify(tmp_path / "small.release").passed
    rows = custodian.client.get("/releases/small/rows").text.splitlines()
    assert len(rows) == us.Release.load(bundle).rows.num_rows + 1
    sample = custodian.client.get("/releases/small/sample", params={"rows": 7, "key": "1"})
    assert len(sample.text.splitlines()) == 8
    again = custodian.client.get("/releases/small/sample", params={"rows": 7, "key": "1"})
    assert again.text == sample.text
    for wrong in ({"rows": "x"}, {"rows": "99999999999"}, {"key": "x"}):
        assert custodian.client.get("/releases/small/sample", params=wrong).status_code == 422
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
    assert 'href="/releases/small">← Back' in custodian.client.get("/releases/small/report").text
    assert "passed all checks" in custodian.client.get("/releases/small/verify").text


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
    assert "failed a check" in page.client.get("/releases/tampered/verify").text
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
        ("evil.zip", zipped(bundle, synthetic=rows[:-1] + b"x"), "failed a check"),
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


def test_a_release_is_for_custodians_until_one_publishes_it(analyst, bundle):
    put_bundle(analyst, bundle, published=False)
    paths = [path for method, path in routes(analyst.client.app)
             if method == "GET" and path.startswith("/releases/")]  # fmt: skip
    assert len(paths) >= 8
    for path in paths:
        for name in ("small", "none-such"):
            asked = path.replace("{identity}", name).replace("{name}", "release.json")
            response = analyst.client.get(asked, headers={"accept": "application/json"})
            assert response.status_code == 404, asked
            assert response.json()["detail"].startswith("There is no such release here"), asked
    assert "small" not in without_tokens(analyst.client.get("/releases").text)
    assert analyst.post("/releases/small/publish").status_code == 403

    app = analyst.client.app
    with TestClient(app) as client:
        custodian = Page(client, analyst.folder).enter()
        assert "not published" in client.get("/releases").text
        assert "Custodians alone see this release" in client.get("/releases/small").text
        assert custodian.post("/releases/none-such/publish", sure="yes").status_code == 404
        assert "tick the box" in custodian.told(custodian.post("/releases/small/publish")).lower()
        assert "Custodians alone" in client.get("/releases/small").text
        assert custodian.post("/releases/small/publish", sure="yes").status_code == 200
        told = client.get("/releases/small").text
        assert "Custodians alone" not in told
        assert '<span class="chip good">published</span>' in told
    assert "/releases/small" in analyst.client.get("/releases").text
    assert analyst.client.get("/releases/small").status_code == 200


def test_what_would_make_a_release_better_is_for_who_makes_them(analyst, bundle, monkeypatch):
    put_bundle(analyst, bundle)
    site = analyst.client.app.state.site
    judged, question = site.storage.guide("small")
    judged, shown_as = replace(judged, advice="Try ε = 4."), "Try ε\xa0=\xa04."
    monkeypatch.setattr(site.storage, "guide", lambda _: (judged, question))
    shown = analyst.client.get("/releases/small").text
    with TestClient(analyst.client.app) as client:
        Page(client, analyst.folder).enter()
        assert shown_as in client.get("/releases/small").text
    assert judged.good_for in shown
    assert shown_as not in shown


def test_fresh_rows_of_one_kind(custodian, bundle):
    put_bundle(custodian, bundle)
    at = "/releases/small/sample"
    drawn = custodian.client.get(at, params={"rows": "50", "where": "age >= 5 and city = 'Bb'"})
    rows = csv.read_csv(BytesIO(drawn.content)).to_pylist()
    assert len(rows) == 50
    assert {row["city"] for row in rows} == {"Bb"}
    assert min(row["age"] for row in rows) >= 5
    for wrong, said in (("agee > 1", "did you mean"), ("age > 99", ""), ("x" * 3000, "2,000"),
                        ("(" * 1500, "")):  # fmt: skip
        response = custodian.client.get(at, params={"rows": "5", "where": wrong})
        assert response.status_code == 422, wrong[:20]
        assert said in custodian.told(response)
    typed = {"rows": "5", "where": "agee > 1"}
    shown = custodian.client.get(at, params=typed, headers={"accept": "text/html"})
    assert shown.status_code == 422
    assert "did you mean" in custodian.told(shown)
    form = shown.text.partition('id="more"')[2]
    assert 'name="rows" value="5"' in form
    assert 'name="where" value="agee &gt; 1"' in form


def test_commands_in_a_report_name_the_folder_that_is_downloaded(custodian, bundle):
    put_bundle(custodian, bundle, "a-1")
    text = custodian.client.get("/releases/a-1/report").text
    commands = re.findall(r"understudy (?:verify|estimate|report) (\S+)", text)
    assert len(commands) == 3
    assert all(name.startswith("a-1.release") for name in commands)
    archive = zipfile.ZipFile(BytesIO(custodian.client.get("/releases/a-1/bundle.zip").content))
    assert {name.partition("/")[0] for name in archive.namelist()} == {"a-1.release"}
