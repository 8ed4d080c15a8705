"""The report: made of the release alone, whole, escaped, readable by everyone."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import replace

import pyarrow as pa
import pytest
from pyarrow import csv

import understudy as us
from understudy import report
from understudy.errors import BundleError, InputError
from understudy.releases.outline import shown
from understudy.report import facts, words
from understudy.schema import Category, Integer, Schema

from .conftest import TOML, Page, people, seeded


def test_the_private_table_is_not_needed(tmp_path, schema):
    data = tmp_path / "private.csv"
    csv.write_csv(people(500), data)
    made = us.release(data, schema, epsilon=1, method="independent")
    made.save(tmp_path / "r.release")
    data.unlink()
    path = report.write(tmp_path / "r.release")
    assert path == tmp_path / "r.release.html"
    page = Page(path.read_text())
    assert "r.release" in page.text
    assert us.verify(tmp_path / "r.release").passed


def test_the_three_things_to_know_come_first(made):
    page = Page(report.render(made)).text
    top = page[: page.rindex("Parameters, unit, algorithm")]
    for said in ("What is promised", "How wrong a number can be", "What not to use it for"):
        assert said in top
    assert "73.2 %" in top  # what ε = 1 leaves to any attack
    assert "ε = 1" in top


def test_everything_that_a_reader_needs_is_there(made):
    page = Page(report.render(made, name="people.release", digest="ab" * 32,
                              created="2024-02-29T10:00:00+00:00"))  # fmt: skip
    headings = [
        "How wrong can a number be?", "The columns", "Pairs of columns",
        "What was measured, and what is inferred", "What not to use it for",
        "Expected relative error by the size of a group", "The ledger", "The promise in full",
        "Method and parameters", "Verify and cite",
    ]  # fmt: skip
    places = [page.text.rindex(heading) for heading in headings]
    assert places == sorted(places)
    order = ["Privacy parameters", "Unit of privacy", "Algorithm", "Utility and bias",
             "Trust and security", "Data collection"]  # fmt: skip
    places = [page.text.index(term) for term in order]
    assert places == sorted(places)
    assert str(made.certificate) in page.text
    for charge in made.plan:
        assert shown(charge.purpose) in page.text
    assert "understudy verify people.release --digest " + "ab" * 32 in page.text
    assert "2024-02-29. sha256:abab" in page.text


def test_no_network_no_script_and_small(made):
    text = report.render(made)
    page = Page(text)
    assert len(text.encode()) < 2_000_000
    assert not page.all("script")
    assert not page.all("link")
    assert not re.search(r"(?:src|href)=\"(?!#)", text)
    assert "url(" not in text
    assert "@import" not in text
    (policy,) = [m["content"] for m in page.all("meta") if m.get("http-equiv")]
    assert policy.startswith("default-src 'none'")


def test_names_and_values_are_escaped():
    evil = '<script>alert("x")</script>&"\''
    schema = Schema((Category(evil, (evil, "b<i>")), Integer("n", 0, 3)))
    table = pa.table({evil: [evil, "b<i>"] * 50, "n": [0, 1, 2, 3] * 25})
    made = us.release(table, schema, epsilon=1, method="independent")
    text = report.render(made, name=f"{evil}.release", digest="0" * 64)
    page = Page(text)
    assert not page.all("script")
    assert not page.all("i")
    assert evil in page.text


@pytest.mark.parametrize(
    ("method", "workload", "choices"),
    [
        ("independent", "marginals:1", {}),
        ("mwem", "marginals:2", {"neighbours": "replace", "rows_public": 3000}),
        ("fem", "marginals:2+prefixes:1", {}),
        ("gaussian", "marginals:3", {"variations": True}),
    ],
)
def test_every_kind_of_release_has_a_page(table, schema, method, workload, choices):
    made = seeded(table, schema, method=method, workload=workload, **choices)
    page = Page(report.render(made))
    assert "NOT PRIVATE" in page.text  # seeded noise is said loudly
    assert words.tables(made) in page.text


def test_one_column_one_row_and_no_pair():
    schema = Schema((Category("only", ("a",)),))
    made = us.release(pa.table({"only": ["a"]}), schema, epsilon=1, rows=1)
    assert "only" in Page(report.render(made)).text


def test_a_budget_that_tells_nothing_says_so(table, schema):
    made = seeded(table, schema, epsilon=0.001, method="independent")
    assert made.certificate.bound > 0.3
    page = Page(report.render(made)).text
    assert "over 100 %" in page


def test_an_older_release_without_measurements_has_a_page(made):
    old = replace(made, measurements=())
    assert all(column.measured is None for column in facts.columns(old, 60))
    assert "measured no column by itself" in Page(report.render(old)).text


def test_facts_that_were_found_privately_are_in_the_ledger(table):
    found = TOML.replace("bins = 10", "bins = {quantiles = 4}")
    made = seeded(table, Schema.loads(found), method="independent", workload="marginals:1")
    page = Page(report.render(made)).text
    assert "where to cut columns" in page
    assert "within the budget set aside for it" in page
    assert "recomputed by zCDP" in page  # a plan that follows from answers has no other account


def test_a_long_ledger_is_shown_by_purpose(made):
    from understudy.privacy.chain import Entry
    from understudy.report.page import _alike

    event = next(e for e in made.entries if e.kind == "charge").body["event"]
    turns = [
        Entry.make(
            seq, "charge", {"purpose": "ab"[seq % 2], "event": event, "reservation": "r"}, ""
        )
        for seq in range(400)
    ]
    entries = [made.entries[0], *turns, made.entries[-1]]
    assert [len(group) for group in _alike(entries)] == [1, 200, 200, 1]
    page = Page(report.render(replace(made, entries=tuple(entries)))).text
    assert "200 draws" in page
    assert [len(group) for group in _alike(made.entries)] == [1] * len(made.entries)


AUDIT = {
    "what": "understudy audit release",
    "words": "no attack refuted ε = 1",
    "limits": "An audit can refute a claimed ε; it can never prove one.",
    "refuted": False,
    "claim": {"epsilon": 1.0, "delta": 1e-9, "beta": 0.05},
    "lower_bound": {"epsilon": 0.1234},
    "ceiling": {"accuracy": 0.73, "advantage": 0.462},
    "rows_used": "20 planted records",
    "runs": 48,
    "canaries": 20,
    "attacks": [
        {"name": "likelihood", "auc": 0.51, "advantage": 0.02, "tpr_at_fpr": {"0.01": 0.0125}}
    ],
}


def test_an_audit_is_shown(made):
    page = Page(report.render(made, audit=AUDIT)).text
    assert "The audit" in page
    assert "0.123" in page
    assert "1.25 %" in page
    assert "No attack refuted ε = 1." in page
    assert "The audit" not in Page(report.render(made)).text
    refuted = {**AUDIT, "refuted": True, "words": "ε = 1 is refuted"}
    assert 'class="alarm">Ε = 1 is refuted' in report.render(made, audit=refuted)


def test_writing_leaves_nothing_else_and_replaces_an_older_one(made, tmp_path):
    folder = made.save(tmp_path / "r.release")
    first = report.write(folder).read_text()
    (tmp_path / "r.release.html").write_text("old")
    assert report.write(folder).read_text() == first
    assert sorted(item.name for item in tmp_path.iterdir()) == ["r.release", "r.release.html"]
    assert us.verify(folder).passed
    elsewhere = report.write(folder, out=tmp_path / "page.html")
    assert elsewhere.read_text() == first


def test_a_damaged_or_newer_release_is_told_as_such(made, tmp_path):
    folder = made.save(tmp_path / "r.release")
    newer = shutil.copytree(folder, tmp_path / "newer.release")
    manifest = newer / "release.json"
    manifest.write_text(manifest.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(BundleError, match="version 2"):
        report.write(newer)
    (folder / "model.npz").unlink()
    with pytest.raises(BundleError, match=r"model\.npz"):
        report.write(folder)
    assert not list(tmp_path.glob("*.html"))


def test_a_release_is_saved_with_its_report_and_stays_valid_where_it_is_made_again(made, tmp_path):
    folder = report.save(made, tmp_path / "r.release")
    inside = (folder / "report.html").read_bytes()
    assert "r.release" in Page(inside.decode()).text
    assert us.verify(folder).passed
    digest = us.verify(folder).digest
    assert digest in report.write(folder).read_text()
    with pytest.raises(InputError, match="lies in a release"):
        report.write(folder, out=folder / "report.html")
    assert (folder / "report.html").read_bytes() == inside
    assert us.verify(folder).digest == digest


@pytest.mark.parametrize("page", [None, "<script>1</script>"])
def test_a_page_that_cannot_be_made_loses_no_rows(made, tmp_path, monkeypatch, page):
    def fails(*_, **__):
        if page is None:
            raise ZeroDivisionError
        return page  # which no release may hold

    monkeypatch.setattr(sys.modules["understudy.report.page"], "render", fails)
    folder = report.save(made, tmp_path / "r.release")
    assert us.verify(folder).passed
    assert not (folder / "report.html").exists()


def test_a_page_with_a_script_is_not_saved(made, tmp_path):
    page = report.render(made).replace("<main>", "<main><script>alert(1)</script>")
    with pytest.raises(BundleError, match="script"):
        made.save(tmp_path / "r.release", report=page)
    assert not list(tmp_path.iterdir())


def test_an_audit_that_is_none_is_refused(tmp_path):
    from understudy.report.page import read_audit

    with pytest.raises(InputError, match=r"has no audit\.json"):
        read_audit(tmp_path)
    (tmp_path / "audit.json").write_text('{"what": "something else"}')
    with pytest.raises(InputError, match="was not written by"):
        read_audit(tmp_path)


def test_a_bound_that_says_nothing_is_said_to(table, schema):
    made = seeded(table, schema, epsilon=0.0001, method="dualquery", workload="marginals:1")
    assert made.certificate.bound == made.theorem.bound == 1
    page = " ".join(Page(report.render(made)).text.split())
    assert "95 % confidence, which says nothing here." in page
    assert "may be all noise, which says nothing here." in page
    assert "≤ 100.00 percentage points, which says nothing here" in page
    assert f"by theorem{made.theorem}" in page.replace("by theorem ", "by theorem")


def test_a_saved_release_states_its_title_and_owner(made, tmp_path):
    about = report.About("Patients, 2024", "City of Exampleton")
    folder = report.save(made, tmp_path / "r.release", about=about)
    text = (folder / report.NAME).read_text()
    assert "<h1>Patients, 2024</h1>" in text
    assert "City of Exampleton · " in text
