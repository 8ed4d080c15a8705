"""The page of a job: what is done, what is ahead, and how long it takes."""

import time
from pathlib import Path

import pytest

from understudy.web.jobs import STAGES, Job
from understudy.web.pages.jobs import _now, _stages


def job(state="running", kind="release", **progress):
    return Job("one", {"kind": kind, "name": "one"}, progress, state, Path("nowhere"))


@pytest.mark.parametrize(
    ("state", "stage", "done"),
    [("running", "checking", 0), ("running", "sampling", 4), ("finished", "saving", len(STAGES))],
)
def test_stages_are_done_now_or_ahead(state, stage, done):
    marks = [mark for _, _, mark in _stages(job(state, stage=stage))]
    now = ["now"] if done < len(STAGES) else []
    assert marks == ["done"] * done + now + ["ahead"] * (len(STAGES) - done - len(now))


def test_an_audit_has_no_stages():
    assert _stages(job(kind="audit", stage="shadow releases")) == []


def test_the_clock_is_held_against_what_was_expected():
    began = time.time() - 20
    early, late = (_now(job(stage="playing", began=began, about=about)) for about in (60, 5))
    assert early["clock"] == "20 s of about 60 s"
    assert late["clock"] == "20 s, more than expected"
    assert 0.3 < early["share"] < 0.4
    assert late["share"] == 0.98


def test_an_ended_job_has_taken_what_it_took():
    ended = _now(job("finished", stage="saving", began=100.0, at=130.0, about=5))
    assert (ended["clock"], ended["active"]) == ("30 s", False)
