"""The page under load: fifty people read while a release is being made.

A server of its own, a workspace with the demo survey and five releases, and a release that runs in its
own process. Each reader asks for one page after the other, over a connection that stays open, and does
nothing with it: readers, server and release share the machine, so what the readers need is taken from
the page, and is told.
"""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import httpx
from pyarrow import csv

from understudy import demo
from understudy.privacy import Budget
from understudy.releases.run import release
from understudy.web.workspace import Workspace

READERS = 50
PAUSES = (0.0, 1.0)
"""Seconds between two pages of a reader: none, as no person reads, and one."""
ROWS = 50_000
RELEASES = 5


def prepared(folder: Path) -> None:
    """A workspace that has been in use."""
    workspace = Workspace(folder)
    table = demo.city_health_survey(2_000)
    made = release(table, demo.schema(), epsilon=1, method="independent")
    for number in range(RELEASES):
        made.save(folder / "releases" / f"survey-{number}")
    with workspace.incoming() as incoming:
        csv.write_csv(demo.city_health_survey(ROWS), incoming / "rows.csv")
        workspace.add_table("survey", incoming / "rows.csv", demo.schema().dumps(), 15)
    with workspace.ledger() as ledger:
        ledger.open_dataset("survey", Budget.of(10, "1e-8"))


@dataclass(frozen=True)
class Seen:
    """Seconds by page, what went wrong, how long it took, and CPU seconds of either side."""

    took: dict[str, list[float]]
    wrong: list[str]
    seconds: float
    server: float
    readers: float


class Reader:
    """One person's connection: just enough of HTTP to read pages of known length."""

    def __init__(self, base: str, cookies: str) -> None:
        host, _, port = base.removeprefix("http://").partition(":")
        self._place = host, int(port)
        self._asks = f" HTTP/1.1\r\nhost: {host}\r\naccept: text/html\r\ncookie: {cookies}\r\n\r\n"

    async def __aenter__(self) -> Reader:
        self._in, self._out = await asyncio.open_connection(*self._place)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._out.close()
        await self._out.wait_closed()

    async def get(self, path: str) -> int:
        """Read a page to its end; the status."""
        self._out.write(f"GET {path}{self._asks}".encode("ascii"))
        head = await self._in.readuntil(b"\r\n\r\n")
        await self._in.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
        return int(head[9:12])


def cpu_of(process: int) -> float:
    """CPU seconds of a process so far: a figure that other work on the machine does not change."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def read(url: str, base: str, pause: float, server: int) -> Seen:
    """Start a release and read until it is done."""
    took: dict[str, list[float]] = defaultdict(list)
    wrong: list[str] = []
    async with httpx.AsyncClient(timeout=60, follow_redirects=True) as client:
        await client.get(url)
        page = await client.get(f"{base}/tables/survey/plan", params={"epsilon": "1"})
        token = re.search(r'name="csrf" value="([^"]+)"', page.text)
        assert token is not None
        form = {"csrf": token[1], "epsilon": "1", "name": "under load", "variations": "yes"}
        form["sure"] = "yes"
        started = await client.post(f"{base}/tables/survey/releases", data=form)
        job = str(started.url)
        cookies = "; ".join(f"{each.name}={each.value}" for each in client.cookies.jar)
        pages = [
            "/tables", "/tables/survey", "/tables/survey/schema", "/releases", "/releases/survey-1",
            "/jobs", job.removeprefix(base), "/ledger", "/audits",
        ]  # fmt: skip
        done = asyncio.Event()

        async def person(number: int) -> None:
            at = number
            async with Reader(base, cookies) as reader:
                await asyncio.sleep(pause * number / READERS)
                while not done.is_set():
                    path = pages[at % len(pages)]
                    at += 1
                    begun = time.perf_counter()
                    status = await reader.get(path)
                    took[path].append(time.perf_counter() - begun)
                    if status != 200:
                        wrong.append(f"{path}: {status}")
                    await asyncio.sleep(pause)

        begun, before, own = time.perf_counter(), cpu_of(server), time.process_time()
        people = [asyncio.create_task(person(number)) for number in range(READERS)]
        while True:
            await asyncio.sleep(0.5)
            state = (await client.get(f"{job}/state")).json()["state"]
            if state not in ("starting", "waiting", "running"):
                break
        done.set()
        for each in await asyncio.gather(*people, return_exceptions=True):
            if each is not None:
                wrong.append(type(each).__name__)
        if state != "finished":
            wrong.append(f"the release: {state}")
        seconds = time.perf_counter() - begun
        return Seen(took, wrong, seconds, cpu_of(server) - before, time.process_time() - own)


def served(pause: float) -> Seen:
    """A server of its own for one run."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "desk"
        prepared(folder)
        command = [sys.executable, "-m", "understudy", "serve", str(folder), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                found = re.search(r"(http://[^/]+)\S+", server.stdout.readline())
                assert found is not None
                return asyncio.run(read(found[0], found[1], pause, server.pid))
            finally:
                server.terminate()


def main() -> None:
    """Print the tables."""
    for pause in PAUSES:
        seen = served(pause)
        took, wrong, seconds = seen.took, seen.wrong, seen.seconds
        every = sorted(second for page in took.values() for second in page)
        server, readers = (1000 * cpu / len(every) for cpu in (seen.server, seen.readers))
        print(
            f"{READERS} readers who pause {pause:g} s, for {seconds:.0f} s, while a release of "
            f"{ROWS:,} rows runs: {len(every):,} pages, {len(every) / seconds:.0f} a second, "
            f"{len(wrong)} errors; {server:.1f} ms of the server's CPU a page and {readers:.1f} of "
            f"the readers'; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n"
        )
        for each in sorted(set(wrong)):
            print(f"- {each}")
        print("| page | median ms | 95 % within, ms |\n|---|---|---|")
        for path, each in {**took, "all": every}.items():
            tail = sorted(each)[int(0.95 * len(each))]
            print(f"| {path} | {1000 * statistics.median(each):.0f} | {1000 * tail:.0f} |")
        print(flush=True)


if __name__ == "__main__":
    main()
