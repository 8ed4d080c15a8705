"""A server of its own under a flood of hostile imports: its readers do not notice."""

import asyncio
import os
import re
import shutil
import signal
import statistics
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.web.conftest import Server, zipped
from understudy.web.workspace import Workspace

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="counts in /proc")

PAGES = ("/releases", "/releases/small", "/releases/small/answer?q=age+%3C+5", "/healthz")
READERS = 4
SECOND = 1.0
PATIENCE = 600

BURNING = """
import sys
from tests.web import hostile
from understudy.web import workers
from understudy.cli.app import main

workers.check_file = hostile.burns
workers.RELEASE = workers.Limits(2 * 10**9, {seconds})
workers.Workers.__init__.__defaults__ = (2, workers.RELEASE)
sys.exit(main(sys.argv[1:]))
"""
"""A page whose every import holds the lock of its process until its time is over."""


def served(tmp_path, bundle, code=None):
    folder = tmp_path / "desk"
    Workspace(folder)
    shutil.copytree(bundle, folder / "releases" / "small")
    return Server(folder, "--max-upload", "50MB", code=code)


@dataclass
class Seen:
    """What the readers and the senders of a flood saw, and the most processes of files at once."""

    calm: list[float] = field(default_factory=list)
    flooded: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    answers: list[httpx.Response] = field(default_factory=list)
    processes: int = 0

    @property
    def words(self):
        calm, flooded = self.within(self.calm), self.within(self.flooded)
        return (
            f"{len(self.answers)} imports; 95 % of {len(self.flooded)} pages within {flooded:.3f} s, "
            f"median {statistics.median(self.flooded):.3f}, worst {max(self.flooded):.3f}; without "
            f"imports {calm:.3f} s; {self.processes} processes; load {os.getloadavg()[0]:.1f}"
        )

    @staticmethod
    def within(seconds):
        """What 95 % of the pages were read within."""
        return sorted(seconds)[int(0.95 * len(seconds))]


def children(process):
    """The processes that another has started."""
    with suppress(OSError):
        tasks = Path(f"/proc/{process}/task").iterdir()
        return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    return []


def files_read(server):
    """Processes that read a file: children of the one that the server forks them from."""
    return [pid for child in children(server.process.pid) for pid in children(child)]


@asynccontextmanager
async def custodian(server):
    limits = httpx.Limits(max_connections=200)
    async with httpx.AsyncClient(
        base_url=server.base, timeout=PATIENCE, limits=limits, follow_redirects=True
    ) as client:
        await client.get(server.url)
        page = (await client.get("/import")).text
        yield client, re.search(r'name="csrf" value="([^"]+)"', page)[1]


async def send(client, token, data):
    files = {"file": ("x.zip", data, "application/zip")}
    return await client.post("/import", data={"csrf": token}, files=files)


async def read(client, seen, times, done):
    at = 0
    while not done.is_set():
        path = PAGES[at % len(PAGES)]
        at += 1
        begun = time.perf_counter()
        status = (await client.get(path)).status_code
        times.append(time.perf_counter() - begun)
        if status != 200:
            seen.wrong.append(f"{path}: {status}")
        await asyncio.sleep(0.1)


@asynccontextmanager
async def reading(client, seen, times):
    done = asyncio.Event()
    people = [asyncio.create_task(read(client, seen, times, done)) for _ in range(READERS)]
    try:
        yield
    finally:
        done.set()
        await asyncio.gather(*people)


async def flood(server, imports, calm=1.0):
    """Read for a while, and then while all of the imports are sent at once."""
    seen = Seen()
    async with custodian(server) as (client, token), custodian(server) as (reader, _):
        for path in PAGES:
            await reader.get(path)
        async with reading(reader, seen, seen.calm):
            await asyncio.sleep(calm)
        async with reading(reader, seen, seen.flooded):
            sent = [asyncio.create_task(send(client, token, data)) for data in imports]
            while not all(task.done() for task in sent):
                seen.processes = max(seen.processes, len(files_read(server)))
                await asyncio.sleep(0.1)
            seen.answers = [task.result() for task in sent]
    print(seen.words)
    return seen


def require_readers_undisturbed(seen):
    """Within a second; where others keep the machine busy, within four times as long as without."""
    assert seen.wrong == []
    assert len(seen.flooded) >= 20
    assert seen.within(seen.flooded) < max(SECOND, 4 * seen.within(seen.calm)), seen.words


def require_nothing_left(server, releases):
    assert list((server.folder / "incoming").iterdir()) == []
    assert sorted(path.name for path in (server.folder / "releases").iterdir()) == releases
    until = time.monotonic() + 60
    while files_read(server) and time.monotonic() < until:
        time.sleep(0.1)
    assert files_read(server) == []


def flooded(server, imports, releases=("small",)):
    """Only what becomes a release is taken."""
    server.start()
    try:
        seen = asyncio.run(flood(server, imports))
        require_readers_undisturbed(seen)
        taken = len(releases) - 1
        refused = seen.answers[: len(seen.answers) - taken]
        assert {answer.status_code for answer in refused} <= {413, 422}
        assert all(len(answer.text) < 20_000 for answer in refused)
        assert [answer.status_code for answer in seen.answers[len(refused) :]] == [200] * taken
        assert 1 <= seen.processes <= 2
        require_nothing_left(server, list(releases))
        assert "Traceback" not in server.stop(signal.SIGTERM)[1]
        return seen
    finally:
        server.close()


def mixed(hostile, count):
    kinds = [make() for make, _ in hostile.values()]
    return [kinds[n % len(kinds)] for n in range(count)]


def test_readers_do_not_notice_hostile_imports(tmp_path, bundle, hostile):
    """And a whole release among them is taken."""
    imports = [*mixed(hostile, len(hostile)), zipped(bundle)]
    seen = flooded(served(tmp_path, bundle), imports, ["small", "x"])
    assert str(seen.answers[-1].url).endswith("/releases/x")


@pytest.mark.slow
def test_fifty_hostile_imports_at_once(tmp_path, bundle, hostile):
    flooded(served(tmp_path, bundle), mixed(hostile, 50))


@pytest.mark.slow
def test_fifty_imports_that_hold_the_lock_of_their_process(tmp_path, bundle):
    seen = flooded(served(tmp_path, bundle, BURNING.format(seconds=2)), [b"PK"] * 50)
    assert all("2 seconds" in answer.text for answer in seen.answers)


async def stopped(server, imports, number):
    """Whether the page answers under the flood, and how it ends."""
    async with custodian(server) as (client, token):
        sent = [asyncio.create_task(send(client, token, b"PK")) for _ in range(imports)]
        until = time.monotonic() + PATIENCE
        while len(files_read(server)) < 2 and time.monotonic() < until:
            await asyncio.sleep(0.1)
        running = files_read(server)
        healthy = (await client.get("/healthz")).json()
        ended = await asyncio.to_thread(server.stop, number)
        answers = await asyncio.gather(*sent)
        return running, healthy, [answer.status_code for answer in answers], ended


@pytest.mark.slow
def test_a_flooded_page_is_healthy_and_stops_when_told(tmp_path, bundle):
    """Each import would hold its process for minutes; the server ends them and goes."""
    server = served(tmp_path, bundle, BURNING.format(seconds=300)).start()
    try:
        running, healthy, answers, (code, text) = asyncio.run(stopped(server, 12, signal.SIGTERM))
    finally:
        server.close()
    assert len(running) == 2
    assert healthy == {"ok": True}
    assert answers == [503] * 12
    assert "Traceback" not in text
    assert "everything is kept" in text
    assert code in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
    assert list((server.folder / "incoming").iterdir()) == []
    until = time.monotonic() + 60
    while any(map(alive, running)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(alive, running))


def alive(process):
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
