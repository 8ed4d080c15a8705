"""The report: made of the release alone, whole, escaped, readable by everyone."""

from __future__ import annotations

import colorsys
import re
import shutil
import sys
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest
from pyarrow import csv

import understudy as us
from understudy import report
from understudy.errors import BundleError, InputError
from understudy.report import facts, words
from understudy.report.style import DARK, LIGHT, TEXT_ON
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
    top = page[: page.index("In the order in which NIST")]
    for said in ("What is promised", "How wrong a number can be", "What not to use it for"):
        assert said in top
    assert "73 %" in top  # what ε = 1 leaves to any attack
    assert "ε = 1" in top


def test_everything_that_a_reader_needs_is_there(made):
    page = Page(report.render(made, name="people.release", digest="ab" * 32,
                              created="2024-02-29T10:00:00+00:00"))  # fmt: skip
    headings = [
        "The promise in full", "How wrong can a number be?", "The columns", "Pairs of columns",
        "What was measured, and what is model", "What not to use it for",
        "Expected relative error by the size of a group", "The ledger", "Method and parameters",
        "Verify and cite",
    ]  # fmt: skip
    places = [page.text.rindex(heading) for heading in headings]
    assert places == sorted(places)
    order = ["Privacy parameters", "Unit of privacy", "Algorithm", "Utility and bias",
             "Trust and security", "Data collection"]  # fmt: skip
    places = [page.text.index(term) for term in order]
    assert places == sorted(places)
    assert str(made.certificate) in page.text
    for charge in made.plan:
        assert charge.purpose in page.text
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


def test_every_figure_has_a_text_alternative(made):
    page = Page(report.render(made))
    pictures = page.all("svg")
    assert len(pictures) > 6
    for picture in pictures:
        if picture.get("aria-hidden") != "true":
            assert picture["role"] == "img"
            assert len(picture["aria-label"]) > 30
    assert page.text.count("in numbers") >= len(made.schema.modelled)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast_is_aa(palette):
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for ground, inks in TEXT_ON.items():
        for ink in inks:
            assert contrast(palette[ground], palette[ink]) >= 4.5, (ground, ink)
    # What is no text, but means something: WCAG 1.4.11 asks for 3.
    for mark in ("bar", "noise"):
        assert contrast(palette["paper"], palette[mark]) >= 3, mark
    assert contrast(palette["bar"], palette["noise"]) >= 2
    greys = [colorsys.rgb_to_hls(*(int(palette[f"heat{i}"][k : k + 2], 16) / 255 for k in (1, 3, 5)))
             for i in range(6)]  # fmt: skip
    steps = [lightness for _, lightness, _ in greys]
    assert steps in (sorted(steps), sorted(steps, reverse=True))  # read without colour, too


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


def test_what_was_measured_is_shown_with_its_band(made):
    shown = facts.columns(made, 60)
    assert [column.name for column in shown] == ["age", "sex", "smoker", "visits"]
    for column in shown:
        assert sum(column.shares) == pytest.approx(1)
        assert column.measured is not None
        assert min(column.band) > 0


def test_a_unit_of_several_rows_is_who_is_promised(schema):
    text = TOML.replace("version = 1", 'version = 1\nunit = "person"\nmax_rows = 2')
    whole = Schema.loads(text + '\n[[column]]\nname = "person"\ntype = "identifier"\n')
    table = people(300).append_column("person", pa.array([f"p{i // 3}" for i in range(300)]))
    made = seeded(table, whole, method="independent", workload="marginals:1")
    page = Page(report.render(made)).text
    assert "whether one particular person was in" in page
    assert "of those who have more than 2" in page
    assert "1 was promised" in page


def test_an_older_release_without_measurements_has_a_page(made):
    old = replace(made, measurements=())
    assert all(column.measured is None for column in facts.columns(old, 60))
    assert "measured no column by itself" in Page(report.render(old)).text


def test_values_are_taken_together_where_they_are_many():
    labels = tuple(f"v{i}" for i in range(300))
    schema = Schema((Category("wide", labels), Integer("long", 0, 999, nullable=True)))
    table = pa.table({"wide": [f"v{i % 7}" for i in range(500)], "long": list(range(500))})
    made = seeded(table, schema, method="independent", workload="marginals:1")
    wide, long = facts.columns(made, 20)
    assert len(wide.labels) == 20
    assert wide.labels[-1] == "281 other values"
    assert len(long.labels) <= 20
    assert long.labels[-1] == "NULL"
    assert sum(wide.shares) == pytest.approx(1)
    assert sum(long.shares) == pytest.approx(1)


def test_the_error_of_a_pair_is_at_most_that_of_a_table_that_holds_it(table, schema):
    made = seeded(table, schema, method="gaussian", workload="marginals:3", variations=True)
    found = {pair.clique: pair for pair in facts.pairs(made)}
    stated = dict(zip(made.workload.cliques, made.certificate.variations, strict=True))
    assert found[(0, 1)].error == min(stated[(0, 1, 2)], stated[(0, 1, 3)])
    assert found[(0, 1)].certified
    assert found[(0, 1)].measured == "table"


def test_relative_errors_fall_with_the_size_of_a_group(made):
    sizes = facts.cell_sizes(made)
    assert len(sizes) > 2
    for one, next in pairwise(sizes):
        assert next.rows > one.rows
        assert next.certified < one.certified
        assert next.pair < one.pair


def test_facts_that_were_found_privately_are_in_the_ledger(table):
    found = TOML.replace("bins = 10", "bins = {quantiles = 4}")
    made = seeded(table, Schema.loads(found), method="independent", workload="marginals:1")
    page = Page(report.render(made)).text
    assert "where to cut columns" in page
    assert "within its allowance" in page
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

    monkeypatch.setattr(sys.modules["understudy.report.write"], "render", fails)
    folder = report.save(made, tmp_path / "r.release")
    assert us.verify(folder).passed
    assert not (folder / "report.html").exists()


def test_a_page_with_a_script_is_not_saved(made, tmp_path):
    page = report.render(made).replace("<main>", "<main><script>alert(1)</script>")
    with pytest.raises(BundleError, match="script"):
        made.save(tmp_path / "r.release", report=page)
    assert not list(tmp_path.iterdir())


def test_an_audit_that_is_none_is_refused(tmp_path):
    from understudy.report.write import read_audit

    with pytest.raises(InputError, match=r"has no audit\.json"):
        read_audit(tmp_path)
    (tmp_path / "audit.json").write_text('{"what": "something else"}')
    with pytest.raises(InputError, match="was not written by"):
        read_audit(tmp_path)
