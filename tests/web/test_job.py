"""The process of a job: its places, its manners and its last words."""

import os
import subprocess
import sys

import pytest

from tests.web.conftest import put_table
from tests.web.test_jobs import start
from understudy.progress import Progress, forget, stop
from understudy.web import job as runner


def test_pages_go_before_a_job():
    """The process is kinder, and so is its session, which some kernels share the cores by."""
    code = (
        "import os; from pathlib import Path; from understudy.web import job; job._step_back();"
        "shared = Path('/proc/self/autogroup');"
        "print(os.nice(0), shared.read_text() if shared.exists() else 'nice 5')"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], start_new_session=True, capture_output=True, text=True
    )
    own, *_, session = told.stdout.split()
    assert int(own) >= os.nice(0) + 5 or int(own) == 19
    assert int(session) == 5


def test_a_cancelled_job_ends_at_its_next_step(tmp_path):
    """Where Python ignored what the signal's handler raised."""
    teller = runner._Teller(tmp_path)
    teller(Progress("playing", 0, 3))
    with pytest.raises(runner._Cancelled):
        stop(runner._Cancelled)
    with pytest.raises(runner._Cancelled):
        teller(Progress("playing", 1, 3))
    forget()


def test_a_job_is_cancelled_though_a_library_calls_the_signal_an_error(custodian, monkeypatch):
    """As DuckDB does: RuntimeError, query interrupted."""
    from understudy.privacy.gate import Gate

    def interrupted(self, *args, **kwargs):
        with pytest.raises(runner._Cancelled):
            stop(runner._Cancelled)
        raise RuntimeError("query interrupted")

    monkeypatch.setattr(Gate, "ask", interrupted)
    identity = start(custodian, put_table(custodian))
    forget()
    job = custodian.site.jobs.look(identity)
    assert job.state == "cancelled"
    assert custodian.site.jobs.spent(job).state == "aborted"


def test_jobs_beyond_the_places_wait(tmp_path):
    (tmp_path / "jobs").mkdir()
    told = []

    class Teller(runner._Teller):
        def waiting(self, waits: bool) -> None:
            told.append(waits)
            if waits:
                first.__exit__()

    first, second = (runner._Slot(tmp_path, 1, Teller(tmp_path)) for _ in range(2))
    first.__enter__()
    assert told == []
    second.__enter__()
    assert told == [True, False]
    second.__exit__()


def test_a_failure_that_nobody_foresaw_keeps_its_message(custodian, monkeypatch):
    from understudy.privacy.gate import Gate

    def broken(self, *args, **kwargs):
        raise ValueError("Ms Smith earns 41,250")

    monkeypatch.setattr(Gate, "ask", broken)
    table = put_table(custodian)
    identity = start(custodian, table)
    job = custodian.site.jobs.look(identity)
    assert job.state == "failed"
    assert "ValueError" in job.progress["message"]
    for file in job.folder.rglob("*"):
        if file.is_file():
            assert b"Smith" not in file.read_bytes()
    monkeypatch.undo()
    text = custodian.client.get(f"/jobs/{identity}").text
    assert "Close it" in text
    custodian.post(f"/jobs/{identity}/close")
    assert custodian.site.jobs.spent(job).state == "aborted"
