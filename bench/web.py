"""The page under load: fifty people read while a release is being made.

A server of its own, a workspace with the demo survey and five releases, and a release that runs in its
own process. Each reader asks for one page after the other.
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
from understudy.releases import release
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
    """Seconds by page, what went wrong, how long it took, and CPU seconds of the server alone."""

    took: dict[str, list[float]]
    wrong: list[str]
    seconds: float
    cpu: float


def cpu_of(process: int) -> float:
    """CPU seconds of a process so far: a figure that other work on the machine does not change."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def read(url: str, base: str, pause: float, server: int) -> Seen:
    """Start a release and read until it is done."""
    took: dict[str, list[float]] = defaultdict(list)
    wrong: list[str] = []
    limits = httpx.Limits(max_connections=READERS + 2)
    async with httpx.AsyncClient(limits=limits, timeout=60, follow_redirects=True) as client:
        await client.get(url)
        page = await client.get(f"{base}/tables/survey/plan", params={"epsilon": "1"})
        token = re.search(r'name="csrf" value="([^"]+)"', page.text)
        assert token is not None
        form = {"csrf": token[1], "epsilon": "1", "name": "under load", "variations": "yes"}
        started = await client.post(f"{base}/tables/survey/releases", data=form)
        job = str(started.url)
        pages = [
            "/tables", "/tables/survey", "/tables/survey/schema", "/releases", "/releases/survey-1",
            "/jobs", job.removeprefix(base), "/ledger", "/audits",
        ]  # fmt: skip
        done = asyncio.Event()

        async def reader(number: int) -> None:
            at = number
            while not done.is_set():
                path = pages[at % len(pages)]
                at += 1
                begun = time.perf_counter()
                try:
                    answer = await client.get(base + path)
                    if answer.status_code != 200:
                        wrong.append(f"{path}: {answer.status_code}")
                except httpx.HTTPError as error:
                    wrong.append(f"{path}: {type(error).__name__}")
                took[path].append(time.perf_counter() - begun)
                await asyncio.sleep(pause)

        begun, before = time.perf_counter(), cpu_of(server)
        readers = [asyncio.create_task(reader(number)) for number in range(READERS)]
        while True:
            await asyncio.sleep(0.5)
            state = (await client.get(f"{job}/state")).json()["state"]
            if state not in ("starting", "waiting", "running"):
                break
        done.set()
        await asyncio.gather(*readers)
        if state != "finished":
            wrong.append(f"the release: {state}")
        return Seen(took, wrong, time.perf_counter() - begun, cpu_of(server) - before)


def served(pause: float) -> Seen:
    """A server of its own for one run."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "desk"
        prepared(folder)
        command = [sys.executable, "-m", "understudy", "serve", str(folder), "--port", "0"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            found = re.search(r"(http://[^/]+)\S+", server.stdout.readline())
            assert found is not None
            return asyncio.run(read(found[0], found[1], pause, server.pid))
        finally:
            server.terminate()
            server.wait()


def main() -> None:
    """Print the tables."""
    for pause in PAUSES:
        seen = served(pause)
        took, wrong, seconds = seen.took, seen.wrong, seen.seconds
        every = sorted(second for page in took.values() for second in page)
        each_page = 1000 * seen.cpu / len(every)
        print(
            f"{READERS} readers who pause {pause:g} s, for {seconds:.0f} s, while a release of "
            f"{ROWS:,} rows runs: {len(every):,} pages, {len(every) / seconds:.0f} a second, "
            f"{len(wrong)} errors; {each_page:.1f} ms of the server's CPU a page; load "
            f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n"
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
