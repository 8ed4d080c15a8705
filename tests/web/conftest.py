"""A page over a small table, in this process and as a server of its own."""

from __future__ import annotations

import asyncio
import functools
import re
import signal
import subprocess
import sys
import warnings
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from argon2 import PasswordHasher
from pyarrow import csv

import understudy as us
from tests.thorough import examples
from tests.web.hostile import kinds
from understudy.schema import Category, Integer, Schema
from understudy.web import job, people
from understudy.web.app import create_app
from understudy.web.confined import heard, tell
from understudy.web.guard import Settings
from understudy.web.people import Role
from understudy.web.workers import Workers
from understudy.web.workspace import Workspace

with warnings.catch_warnings():  # it would rather have a client that is not packaged everywhere
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

COSTLY = people._HASHER
"""That of servers in processes of their own; here hashes are made by the hundred."""
people._HASHER = PasswordHasher(time_cost=1, memory_cost=64)

ROOT = Path(__file__).parents[2]
FAST = {"method": "gaussian", "epsilon": "1", "variations": "", "sure": "yes"}
"""Fields of a plan that is made at once, and of a release by it."""
TOKEN = "the-token-of-this-test"
SCHEMA = Schema(
    (Category("city", ("Aa", "Bb", "Cc")), Integer("age", 0, 9), Category("smoker", ("no", "yes")))
)


def without_tokens(text: str) -> str:
    """A page without what was drawn at random, which may hold any two letters."""
    return re.sub(r"[\w-]{20,}", "", text)


def small_table(rows=400, key=0):
    rng = np.random.default_rng(key)
    return pa.table(
        {
            "city": pa.array(np.array(["Aa", "Bb", "Cc"])[rng.integers(0, 3, rows)]),
            "age": pa.array(rng.integers(0, 10, rows)),
            "smoker": pa.array(np.array(["no", "yes"])[rng.integers(0, 2, rows)]),
        }
    )


def csv_bytes(table):
    out = BytesIO()
    csv.write_csv(table, out)
    return out.getvalue()


def settings(folder, **more):
    hosts = ("127.0.0.1", "localhost", "::1", "testserver")
    return Settings(folder, **{"token": TOKEN, "hosts": hosts, "jobs": 2, **more})


class Here(Workers):
    """Files and plans in this process: no other has to start."""

    async def _run(self, work, *arguments):
        return await asyncio.to_thread(work, *arguments)

    async def _alone(self, limits, work, *arguments):
        return heard(await self._run(tell, work, *arguments))


def app_here(folder, starter=None, **more):
    return create_app(settings(folder, **more), starter or run_here, Here())


def run_here(folder: Path, lock: int) -> None:
    """A job in this process, to its end: no process has to start."""
    job.run(folder)


@dataclass
class Page:
    """Somebody with a browser, more or less."""

    client: TestClient
    folder: Path

    @property
    def site(self):
        return self.client.app.state.site

    def csrf(self, path="/login"):
        text = self.client.get(path).text
        return re.search(r'name="csrf" value="([^"]+)"', text)[1]

    def enter(self):
        assert self.client.get("/enter", params={"token": TOKEN}).status_code == 200
        return self

    def log_in(self, name, password):
        form = {"name": name, "password": password, "csrf": self.csrf()}
        return self.client.post("/login", data=form)

    def post(self, path, *, at="/releases", **form):
        return self.client.post(path, data={"csrf": self.csrf(at), **form})

    def upload(self, filename, data, *, to="/tables", **fields):
        token = self.csrf("/releases")
        return self.client.post(
            to, data={"csrf": token, **fields}, files={"file": (filename, data, "text/csv")}
        )

    def told(self, response):
        found = re.search(r"data-error>(.*?)</p>", response.text, re.DOTALL)
        return re.sub(r"</?code>", "", found[1]) if found else response.text


@pytest.fixture
def page(tmp_path):
    app = app_here(tmp_path / "desk")
    with TestClient(app) as client:
        yield Page(client, tmp_path / "desk")


@pytest.fixture
def custodian(page):
    return page.enter()


@pytest.fixture
def analyst(tmp_path):
    app = app_here(tmp_path / "desk")
    app.state.site.people.add("ben", "a long enough word", Role.ANALYST)
    with TestClient(app) as client:
        page = Page(client, tmp_path / "desk")
        assert page.log_in("ben", "a long enough word").status_code == 200
        yield page


@pytest.fixture(scope="session")
def bundle(tmp_path_factory):
    """A release of the small table, made once."""
    out = tmp_path_factory.mktemp("bundle") / "small.release"
    made = us.release(small_table(), SCHEMA, epsilon=1, method="gaussian", workload="marginals:2")
    made.save(out)
    return out


@pytest.fixture(scope="session")
def hostile(bundle):
    """Imports that once froze a page or filled its memory, each made when somebody asks for it."""
    every = kinds(bundle, examples(280, 400)).items()
    return {name: (functools.cache(make), said) for name, (make, said) in every}


def put_bundle(page, bundle, name="small", published=True):
    target = page.folder / "releases" / name
    target.mkdir(exist_ok=True)
    for part in bundle.iterdir():
        (target / part.name).write_bytes(part.read_bytes())
    if published:
        Workspace(page.folder).publish(name, "ana")
    return target


def put_table(page, *, epsilon="3", rows=400, name="people", composition="basic"):
    """A table whose schema is confirmed and whose budget is open."""
    from understudy.privacy import Budget

    site = page.site
    with site.workspace.incoming() as folder:
        file = folder / "rows.csv"
        file.write_bytes(csv_bytes(small_table(rows)))
        table = site.workspace.add_table(name, file, SCHEMA.dumps(), 3)
    if epsilon is not None:
        with site.workspace.ledger() as ledger:
            ledger.open_dataset(table.id, Budget.of(epsilon, "1e-8"), composition=composition)
    return table


def zipped(folder, **changed):
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for part in sorted(p.name for p in folder.iterdir()):
            data = changed.get(part.partition(".")[0], (folder / part).read_bytes())
            if data is not None:
                archive.writestr(f"x.release/{part}", data)
    return out.getvalue()


SLOW = """
import sys, time
from understudy.privacy.questions import Marginals
from understudy.releases import Reserved
from understudy.web import job

def slowly(kept, before, after):
    def call(*args, **kwargs):
        time.sleep(before)
        found = kept(*args, **kwargs)
        if after:
            open({mark!r}, "w").close()
            time.sleep(after)
        return found
    return call

Reserved.run = slowly(Reserved.run, {before}, 0)
Marginals.decode = slowly(Marginals.decode, 0, {after})  # the last step of a measurement
sys.exit(job.main(sys.argv[1:]))
"""
"""A job that rests before its first draw, or after every measurement, and says when it does."""


class Server:
    """`understudy serve` as people start it."""

    def __init__(self, folder, *options, code=None):
        self.folder = folder
        self.options = options
        self.python = ["-m", "understudy"] if code is None else ["-c", code]

    def start(self, port=0):
        command = [sys.executable, *self.python, "serve", str(self.folder), "--port", str(port)]
        self.process = subprocess.Popen(
            [*command, *self.options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        line = self.process.stdout.readline()
        found = re.search(r"(https?://\S+?:(\d+))(\S*)", line)
        assert found, line + self.process.stderr.read()
        self.base, self.port, self.url = found[1], int(found[2]), found[1] + found[3]
        return self

    def stop(self, number=signal.SIGINT):
        """The exit code, and everything that was printed."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=120)
        return self.process.returncode, out + err

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path / "desk")
    made.start()
    yield made
    made.close()
