"""Jobs in processes of their own: finish, cancel, die, go on, wait, and what each has cost."""

import fcntl
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import understudy as us
from tests.web.conftest import (
    FAST,
    SCHEMA,
    SLOW,
    Page,
    TestClient,
    app_here,
    put_table,
    small_table,
)
from understudy.errors import InputError
from understudy.privacy.ledger import Ledger, Reservation
from understudy.web import job as runner
from understudy.web import jobs
from understudy.web.jobs import launch


@pytest.fixture(autouse=True)
def nobody_is_left():
    """Processes that a test started have ended when it ends."""
    yield
    while jobs._CHILDREN:
        child = jobs._CHILDREN.pop()
        child.terminate()
        child.wait(60)


@pytest.fixture
def desk(tmp_path):
    """A page that starts real processes."""
    app = app_here(tmp_path / "desk", launch)
    with TestClient(app) as client:
        yield Page(client, tmp_path / "desk").enter()


def start(page, table, **wish):
    response = page.post(f"/tables/{table.id}/releases", **{**FAST, **wish})
    assert response.status_code == 200, page.told(response)
    return str(response.url).rpartition("/")[2]


def until(page, identity, *states, seconds=300):
    deadline = time.monotonic() + seconds
    while (state := page.site.jobs.look(identity).state) not in states:
        assert time.monotonic() < deadline, (state, states)
        time.sleep(0.05)
    return state


def left(page, table):
    with page.site.workspace.ledger() as ledger:
        return float(ledger.spent(table.id).remaining_epsilon)


@pytest.mark.slow
def test_a_release_is_made_published_and_charged(desk):
    table = put_table(desk)
    identity = start(desk, table, name="First one")
    assert identity == "first-one"
    until(desk, identity, "finished")
    assert us.verify(desk.folder / "releases" / identity).passed
    assert left(desk, table) == 2
    with desk.site.workspace.ledger() as ledger:
        assert ledger.entries(table.id)[-1].kind == "publish"
        ledger.verify(table.id)
    assert "The release is done" in desk.client.get(f"/jobs/{identity}").text
    assert not (desk.folder / "jobs" / identity / "journal" / "journal.jsonl").exists()


@pytest.fixture
def slow_desk(tmp_path, monkeypatch):
    """A page whose jobs rest for a while, before or after their first draw."""

    def made(**rests):
        mark = tmp_path / "drawn"
        code = SLOW.format(**{"before": 0, "after": 0, "mark": str(mark), **rests})
        monkeypatch.setattr(
            jobs, "command", lambda folder, lock: [sys.executable, "-c", code, folder, str(lock)]
        )
        client = TestClient(app_here(tmp_path / "desk", launch))
        return Page(client, tmp_path / "desk").enter(), mark

    return made


def reserved(page, identity):
    deadline = time.monotonic() + 300
    while page.site.jobs.spent(page.site.jobs.look(identity)).reservation is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_cancelling_before_a_draw_costs_nothing(slow_desk):
    page, _ = slow_desk(before=900)
    table = put_table(page)
    identity = start(page, table)
    reserved(page, identity)
    assert left(page, table) == 2  # set aside
    response = page.post(f"/jobs/{identity}/cancel")
    assert response.status_code == 200
    until(page, identity, "cancelled")
    assert left(page, table) == 3
    assert "Nothing was charged." in page.client.get(f"/jobs/{identity}").text
    assert not (page.folder / "releases" / identity).exists()


def test_a_killed_job_is_shown_with_what_it_spent_and_goes_on_without_spending_again(
    slow_desk, monkeypatch
):
    page, mark = slow_desk(after=900)
    table = put_table(page)
    identity = start(page, table)
    deadline = time.monotonic() + 300
    journal = page.folder / "jobs" / identity / "journal" / "journal.jsonl"
    while not mark.exists() or not journal.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    pid = int((page.folder / "jobs" / identity / "pid.json").read_text())
    os.kill(pid, signal.SIGKILL)
    until(page, identity, "killed")
    text = page.client.get(f"/jobs/{identity}").text
    assert "killed from outside" in text
    assert "ε = 1 is charged: 1 of " in text or "ε = 1 is charged: 2 of " in text
    assert left(page, table) == 2
    # A new server sees the same, and the job goes on from its journal where nothing was lost.
    app = app_here(page.folder)
    with TestClient(app) as client:
        again = Page(client, page.folder).enter()
        assert again.site.jobs.look(identity).state == "killed"
        answers = len(journal.read_text().splitlines()) - 1
        spent = again.site.jobs.spent(again.site.jobs.look(identity))
        if answers == spent.drawn:
            assert "without spending again" in text
            again.post(f"/jobs/{identity}/resume")
            assert again.site.jobs.look(identity).state == "finished"
            assert us.verify(page.folder / "releases" / identity).passed
        else:  # it died between the charge and the note of its answer, so that draw is lost
            again.post(f"/jobs/{identity}/close")
            assert again.site.jobs.spent(again.site.jobs.look(identity)).state == "aborted"
        assert left(again, table) == 2


@pytest.mark.slow
def test_a_job_outlives_its_server(slow_desk):
    page, _ = slow_desk(before=900)
    table = put_table(page)
    identity = start(page, table)
    reserved(page, identity)
    app = app_here(page.folder)
    with TestClient(app) as client:
        again = Page(client, page.folder).enter()
        assert again.site.jobs.look(identity).active
        assert "is running" in again.client.get("/tables").text
        again.post(f"/jobs/{identity}/cancel")
        until(again, identity, "cancelled")
        assert left(again, table) == 3


def test_somebody_else_takes_the_last_of_a_budget_in_between(custodian, monkeypatch):
    """Every check has passed; then the other one reserves first."""
    page = custodian
    table = put_table(page, epsilon="1")
    reserve, seen = Ledger.reserve, []

    def late(self, name, *args, **kwargs) -> Reservation:
        if not seen:
            seen.append(name)
            us.release(
                small_table(), SCHEMA, epsilon=1, method="gaussian", ledger=self.path, dataset=name
            )
        return reserve(self, name, *args, **kwargs)

    monkeypatch.setattr(Ledger, "reserve", late)
    identity = start(page, table)
    assert page.site.jobs.look(identity).state == "failed"
    text = page.client.get(f"/jobs/{identity}").text
    assert "does not fit in what is left" in text
    assert "Nothing was charged." in text
    assert str(page.folder) not in text
    assert left(page, table) == 0
    again = page.post(f"/tables/{table.id}/releases", **FAST)
    assert again.status_code == 409
    assert "Nothing was started" in page.told(again)
    assert "and 0 % is left." in again.text


@pytest.mark.slow
def test_two_people_start_the_last_of_a_budget_at_once(tmp_path):
    """Two sessions, two forms in the same moment, two processes: one release, in the ledger too."""
    app = app_here(tmp_path / "desk", launch)
    people = [Page(TestClient(app), tmp_path / "desk").enter() for _ in range(2)]
    page, table = people[0], put_table(people[0], epsilon="1")
    ready = threading.Barrier(2)

    def begin(person, name):
        token = person.csrf("/releases")
        ready.wait(60)
        form = {"csrf": token, **FAST, "name": name}
        return person.client.post(f"/tables/{table.id}/releases", data=form)

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(begin, people, ("one", "two")))
    both = [str(answer.url).rpartition("/")[2] for answer in answers]
    assert {answer.status_code for answer in answers} == {200}
    ends = [until(page, identity, "finished", "failed") for identity in both]
    assert sorted(ends) == ["failed", "finished"]
    assert left(page, table) == 0
    lost, won = both[ends.index("failed")], both[ends.index("finished")]
    text = page.client.get(f"/jobs/{lost}").text
    assert "is left" in text
    assert "Nothing was charged." in text
    assert not (page.folder / "releases" / lost).exists()
    with page.site.workspace.ledger() as ledger:
        (made,) = ledger.books(table.id).releases.values()
        assert len(made.charges) == made.planned
        ledger.verify(table.id)
    assert us.verify(page.folder / "releases" / won).passed


def test_a_cancelled_job_stays_cancelled(custodian, monkeypatch):
    """Whoever presses Go on too late spends nothing, and neither does a second cancel."""
    from understudy.privacy.gate import Gate

    def stopped(self, *args, **kwargs):
        raise KeyboardInterrupt

    table = put_table(custodian)
    with monkeypatch.context() as patch:
        patch.setattr(Gate, "ask", stopped)
        identity = start(custodian, table)
    assert custodian.site.jobs.look(identity).state == "cancelled"
    assert custodian.post(f"/jobs/{identity}/resume").status_code == 422
    assert custodian.post(f"/jobs/{identity}/cancel").status_code == 200
    assert custodian.site.jobs.look(identity).state == "cancelled"
    assert left(custodian, table) == 3


def test_going_on_twice_at_once_runs_one_process(custodian, monkeypatch):
    """Two servers look at a killed job in the same moment, and both see that it could go on."""
    table = put_table(custodian)
    identity = start(custodian, table)
    site = custodian.site.jobs
    job, before = site.look(identity), left(custodian, table)
    monkeypatch.setattr(jobs.Jobs, "resumable", lambda *_: True)
    with pytest.raises(InputError, match="has ended meanwhile"):  # the other's ran to its end
        site.resume(job)
    lock = os.open(job.folder / "lock", os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (job.folder / "state.json").write_text('{"state": "running"}')
        with pytest.raises(InputError, match="runs already"):  # the other's is at work
            site.resume(job)
    finally:
        os.close(lock)
    assert (job.folder / "state.json").read_text() == '{"state": "running"}'
    assert left(custodian, table) == before == 2


def test_cancelling_while_a_job_begins_again_signals_no_other_process(custodian, monkeypatch):
    """The process that it had is gone, and its number may be another's by now."""
    site, signalled = custodian.site.jobs, []
    monkeypatch.setattr(jobs.os, "kill", lambda *sent: signalled.append(sent))
    site._launch = lambda folder, lock: None  # killed before it said a word
    table = put_table(custodian)
    identity = start(custodian, table)
    job = site.look(identity)
    assert job.state == "killed"
    (job.folder / "pid.json").write_text("4194303")

    def begins(folder, lock):
        site.cancel(site.look(identity))
        assert site.look(identity).state == "cancelling"
        runner.run(folder)

    site._launch = begins
    site.resume(job)
    assert not signalled
    assert site.look(identity).state == "cancelled"
    assert left(custodian, table) == 3


@pytest.mark.slow
def test_a_job_whose_server_died_while_starting_it_can_be_cancelled(slow_desk):
    page, _ = slow_desk(before=900)
    table = put_table(page)

    class Died(BaseException):
        pass

    def dies(folder, lock):
        launch(folder, lock)
        raise Died

    site = page.site.jobs
    kept, site._launch = site._launch, dies
    choices = {"epsilon": "1", "delta": "1e-9", "workload": "marginals:2", "method": "gaussian"}
    facts = {"table": table.id, "table_name": table.name, "choices": choices}
    with pytest.raises(Died):
        site.start("release", "one", facts, {"schema.toml": SCHEMA.dumps()})
    site._launch = kept
    (identity,) = page.site.workspace.identities("jobs")
    reserved(page, identity)
    page.post(f"/jobs/{identity}/cancel")
    until(page, identity, "cancelled")
    assert left(page, table) == 3


def test_a_reservation_is_found_though_the_job_died_as_it_was_made(custodian, monkeypatch):
    kept = Ledger.reserve

    def dies(self, *args, **kwargs):
        kept(self, *args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "reserve", dies)
    table = put_table(custodian)
    identity = start(custodian, table)
    job = custodian.site.jobs.look(identity)
    assert job.state == "cancelled"
    assert custodian.site.jobs.spent(job).reservation == job.facts["reservation"]
    assert left(custodian, table) == 3  # found by its name, and settled
