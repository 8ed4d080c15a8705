"""The sheet: what the release proves, what an audit found, what a person fills in."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from understudy.report.sheet import FILL_IN, Item, Section, Sheet, sheet

AUDIT = {
    "claim": {"epsilon": 1.0},
    "lower_bound": {"epsilon": 0.25},
    "refuted": False,
    "runs": 100,
    "canaries": 20,
    "rows_used": "the synthetic rows",
    "limits": "It can never prove a claim.",
}


def answers(made: Sheet) -> dict[str, str]:
    return {item.about: item.answer for section in made.sections for item in section.items}


def test_the_release_fills_in_what_it_proves(made):
    about = sheet(made, "T", [("digest", "sha256:0")])
    said = answers(about)
    assert said["privacy parameters"].startswith(f"ε = {made.epsilon:g}")
    assert said["unit of privacy"] == made.promise
    assert said["certified error"] == str(made.certificate)
    assert FILL_IN in said["adversarial testing"]
    assert said["responsible"] == FILL_IN
    assert "Governance: responsible" in about.left
    assert "Governance: responsible" not in sheet(made, "T", [], curator="City").left


def test_seeded_noise_is_said_loudly(made):
    assert answers(sheet(replace(made, private=True), "T", []))["noise"] == "not seeded"
    assert "NOT PRIVATE" in answers(sheet(replace(made, private=False), "T", []))["noise"]


@pytest.mark.parametrize(("refuted", "word"), [(False, "not refuted"), (True, "REFUTED")])
def test_an_audit_says_what_it_found_and_no_more(made, refuted, word):
    said = answers(sheet(made, "T", [], AUDIT | {"refuted": refuted}))
    assert f"the claim of ε = 1 is {word}" in said["adversarial testing"]
    assert "0.25" in said["adversarial testing"]
    assert said["what an audit cannot show"] == AUDIT["limits"]


def test_three_forms_say_the_same(made):
    about = sheet(made, "T", [("digest", "sha256:0")], AUDIT)
    body = json.loads(about.to_json())
    assert body["to_fill_in"] == list(about.left)
    assert "no statement of conformity" in body["notice"]
    assert body["digest"] == "sha256:0"
    told = {i["about"]: i["answer"] for s in body["sections"] for i in s["items"]}
    assert told == answers(about)
    people = [i for s in body["sections"] for i in s["items"] if i["source"] == "person"]
    assert len(people) == len(about.left)
    text, page = about.to_markdown(), about.to_html()
    assert text.count("- [ ] ") == page.count("<li>") == len(about.left)
    assert "no statement of conformity" in text
    assert "no statement of conformity" in page


def test_names_stay_text_in_every_form():
    evil = "<script>|`x` [a](b)"
    made = Sheet(evil, (("f", evil),), (Section("S", (Item(evil, evil),)),))
    assert "<script>" not in made.to_html()
    text = made.to_markdown()
    assert "<script>" not in text.replace("\\<script\\>", "")
    assert "\\|" in text
    assert json.loads(made.to_json())["sections"][0]["items"][0]["answer"] == evil
