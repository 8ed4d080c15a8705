"""The server is killed in the middle of a job, and started again: nothing is drawn twice."""

import os
import signal
import socket
import time

import pytest

import understudy as us
from tests.web.conftest import FAST, SLOW, Page, Server, TestClient, app_here, put_table
from tests.web.live import answer, asks, fields
from tests.web.test_patience import UPLOAD, begun, enter, half_kept

RESTING = """
import runpy, sys
from understudy.web import jobs
code = {code!r}
jobs.command = lambda folder, lock: [sys.executable, "-c", code, str(folder), str(lock)]
sys.argv[0] = "understudy"
runpy.run_module("understudy", run_name="__main__")
"""
"""A server whose jobs rest after every measurement."""


class Client:
    """Somebody who is logged in to a server, whichever runs just now."""

    def __init__(self, server):
        self.address = ("127.0.0.1", server.port)
        self.cookie, self.token = enter(self.address, server.url.partition("token=")[2])

    def get(self, path):
        return answer(self.address, asks(path, headers=[self.cookie]))[2]

    def post(self, path, **form):
        headers, body = fields(csrf=self.token, **form)
        return answer(self.address, asks(path, "POST", [self.cookie, *headers], body))[0]


def eventually(true, seconds=300):
    deadline = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


@pytest.fixture
def desk(tmp_path):
    """A folder with a table, and how to look into it without a server."""
    with TestClient(app_here(tmp_path / "desk")) as client:
        page = Page(client, tmp_path / "desk")
        put_table(page)
        yield page


def made(page):
    """The only release in the ledger."""
    with page.site.workspace.ledger() as ledger:
        ledger.verify("people")
        (found,) = ledger.books("people").releases.values()
        return found, float(ledger.spent("people").remaining_epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("whole_machine", [False, True], ids=["the server", "the machine"])
def test_a_server_killed_in_the_middle_of_a_job(desk, tmp_path, whole_machine):
    """Alone, or together with the job, as by a power cut; in both cases with half an upload."""
    mark = tmp_path / "drawn"
    code = SLOW.format(before=0, after=900, mark=str(mark))
    server = Server(desk.folder, code=RESTING.format(code=code)).start()
    half = None
    try:
        client = Client(server)
        form = {**FAST, "name": "one"}
        assert client.post("/tables/people/releases", **form) == 303
        half = socket.create_connection(client.address)
        headers = [client.cookie, UPLOAD, "content-length: 4000000"]
        half.sendall(asks("/tables", "POST", headers, begun(client.token) + b"a,b\n"))
        journal = desk.folder / "jobs" / "one" / "journal" / "journal.jsonl"
        eventually(lambda: mark.exists() and journal.exists() and half_kept(desk.folder))
    finally:
        server.process.kill()
        server.process.wait()
        server.close()
        if half is not None:
            half.close()
    pid = int((desk.folder / "jobs" / "one" / "pid.json").read_text())
    before, left = made(desk)
    assert (len(before.charges) >= 1, before.outcome, left) == (True, None, 2)
    if whole_machine:
        os.kill(pid, signal.SIGKILL)
    again = Server(desk.folder).start()
    try:
        client = Client(again)
        assert not half_kept(desk.folder)  # swept
        job = desk.site.jobs.look("one")
        if not whole_machine:
            assert job.active  # it goes on without a server, and answers to the new one
            assert client.post("/jobs/one/cancel") == 303
            eventually(lambda: desk.site.jobs.look("one").state == "cancelled")
        else:
            eventually(lambda: not desk.site.jobs.look("one").active)
            text = client.get("/jobs/one")
            assert "killed from outside" in text
            assert "is charged" in text
            lines = journal.read_text().splitlines()
            if len(lines) - 1 == len(before.charges):
                assert client.post("/jobs/one/resume") == 303
                eventually(lambda: desk.site.jobs.look("one").state == "finished")
                assert us.verify(desk.folder / "releases" / "one").passed
            else:  # between a charge and the note of its answer: that draw is lost, and told so
                assert client.post("/jobs/one/close") == 303
    finally:
        again.stop()
        again.close()
    after, left = made(desk)
    assert left == 2  # once, however it ended
    assert after.outcome is not None
    assert list(after.charges)[: len(before.charges)] == list(before.charges)
    assert len(after.charges) <= after.planned
