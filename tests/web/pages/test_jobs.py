"""The page of a job: what is done, what is ahead, and how long it takes."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from understudy.progress import FITTING, STAGES, Progress
from understudy.web.job import _Teller
from understudy.web.jobs import Job, Spent
from understudy.web.pages.jobs import _now, _stages
from understudy.web.workspace import read_json


def job(state="running", kind="release", **progress):
    return Job("one", {"kind": kind, "name": "one"}, progress, state, Path("nowhere"))


@pytest.mark.parametrize(
    ("state", "stage", "done"),
    [
        ("running", "checking", 0),
        ("running", "sampling", 4),
        ("running", "training", 3),
        ("finished", "saving", len(STAGES)),
    ],
)
def test_stages_are_done_now_or_ahead(state, stage, done):
    marks = [mark for _, _, mark in _stages(job(state, stage=stage))]
    now = ["now"] if done < len(STAGES) else []
    assert marks == ["done"] * done + now + ["ahead"] * (len(STAGES) - done - len(now))


def test_an_audit_has_no_stages():
    assert _stages(job(kind="audit", stage="shadow releases")) == []


def test_the_clock_is_held_against_what_was_expected():
    known = {"stage": "playing", "began": time.time() - 80, "computed": 30.0}
    early, late = (_now(job(**known, about=about), Spent()) for about in (90, 5))
    slow = _now(job(**{**known, "computed": 3.0}, about=90), Spent())["clock"]
    assert early["clock"] == "1 min 20 s so far: 30 s of computing, of the expected 90 s"
    assert late["clock"] == "1 min 20 s so far: 30 s of computing, more than the expected 5 s"
    assert slow.endswith("of the expected 90 s; other work on this machine slows it down")
    assert 0.3 < early["share"] < 0.4
    assert late["share"] == 0.98


def test_what_is_done_within_a_stage_is_said(tmp_path):
    tell = _Teller(tmp_path)
    for progress, told in (
        (Progress("playing", 2, 5), "round 3 of 5"),
        (Progress(FITTING, 7, 0), "round 3 of 5, pass 7 of the fit"),
        (Progress("playing", 5, 5), "all 5 rounds done"),
        (Progress("sampling", 0, 1), ""),
    ):
        tell(progress)
        tell.write()
        now = read_json(tmp_path / "state.json")
        assert job(**now).step == told
        assert now["stage"] in STAGES


def test_cancelling_says_what_it_costs_now():
    none = Spent("a", "1", 0, 29, "open", "zcdp", "100 % of this table's budget of ε = 2 is left")
    some = replace(none, drawn=8, left="80 % of this table's budget of ε = 2 is left")
    assert none.if_cancelled == "If you cancel now, nothing is charged."
    said = "8 of 29 planned draws so far. If you cancel now,"
    assert (
        some.if_cancelled
        == f"{said} they stay spent: 80 % of this table's budget of ε = 2 is left."
    )
    assert replace(some, composition="basic").if_cancelled.startswith(
        f"{said} the whole ε = 1 stays"
    )
    ended = replace(some, state="aborted")
    assert ended.words == (
        "8 of 29 planned draws were made and stay spent; 80 % of this table's budget of ε = 2 is left."
    )


def test_what_a_failed_job_holds_is_free_once_it_is_closed():
    left = "80 % of this table's budget of ε = 2 is left"
    words = Spent("a", "1", 8, 29, "open", "zcdp", left).words
    assert words == f"ε = 1 is charged: 8 of 29 planned draws were made. Once it is closed, {left}."


def test_an_ended_job_has_taken_what_it_took():
    ended = _now(job("finished", stage="saving", began=100.0, at=130.0, about=5), Spent())
    assert (ended["clock"], ended["active"]) == ("30 s", False)
