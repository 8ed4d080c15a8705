"""Releases and audits as processes of their own: they outlive the server that started them.

A job is a folder. The server holds no state of it: whether it runs is whether its lock is held (the
lock is taken before the process starts and is handed to it, so it is free exactly when the process is
gone); how far it is, it writes itself; what it spent, the ledger says. A job that is gone without a
word was killed, and is shown so; where its journal allows, it goes on without spending again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from understudy.errors import InputError
from understudy.releases.outline import gone
from understudy.web.workspace import Workspace, now, read_json, unused, write_json
from understudy.wording import left, small

ACTIVE = ("starting", "waiting", "running", "cancelling")
"""States in which a process is at work."""

Launch = Callable[[Path, int], object]
"""`(job folder, descriptor of its lock)` to a process id."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a job has cost, from the ledger alone; nothing, where it has not got there."""

    reservation: str | None = None
    epsilon: str = "0"
    drawn: int = 0
    planned: int = 0
    state: str = "none"
    composition: str = ""
    left: str = ""
    """Of the table's budget, if the job ended now."""

    @property
    def charged(self) -> bool:
        """Whether the account still bears it."""
        return self.reservation is not None and (self.drawn > 0 or self.state == "open")

    @property
    def words(self) -> str:
        """For people."""
        if not self.charged:
            return "Nothing was charged."
        if not self.drawn:
            return f"ε = {self.epsilon} is reserved; nothing was drawn yet."
        were, stay = ("was", "stays") if self.drawn == 1 else ("were", "stay")
        made = f"{self.drawn} of {self.planned} planned draws {were} made"
        if self.state == "open":
            return f"ε = {self.epsilon} is charged: {made}. Once it is closed, {self.left}."
        if self.state == "aborted" and self.composition == "zcdp":
            return f"{made} and {stay} spent; {self.left}."
        return f"ε = {self.epsilon} is charged: {made}; {self.left}."

    @property
    def if_cancelled(self) -> str:
        """What it would cost to stop now."""
        if not self.drawn:
            return "If you cancel now, nothing is charged."
        what = "they stay" if self.composition == "zcdp" else f"the whole ε = {self.epsilon} stays"
        draws = f"{self.drawn} of {self.planned} planned draws so far"
        return f"{draws}. If you cancel now, {what} spent: {self.left}."


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it is now."""

    id: str
    facts: Mapping[str, Any]
    progress: Mapping[str, Any]
    state: str
    folder: Path

    @property
    def active(self) -> bool:
        """Whether a process is at work."""
        return self.state in ACTIVE

    @property
    def kind(self) -> str:
        """`release` or `audit`."""
        return self.facts["kind"]

    @property
    def name(self) -> str:
        """The name of what it makes."""
        return self.facts["name"]

    @property
    def step(self) -> str:
        """Which step of how many, and what is done within it; may be nothing."""
        return ", ".join(filter(None, (self.progress.get("step"), self.progress.get("part"))))

    @property
    def seconds(self) -> float:
        """How long it has worked."""
        began = self.progress.get("began")
        until = time.time() if self.active else self.progress.get("at", began)
        return 0.0 if began is None else max(0.0, until - began)

    @property
    def share(self) -> float | None:
        """About how much of the expected computing is done; None where nothing is expected."""
        about, computed = self.progress.get("about"), self.progress.get("computed", 0.0)
        return min(0.98, computed / about) if about else None


class Jobs:
    """The jobs of a workspace."""

    def __init__(self, workspace: Workspace, slots: int, starter: Launch | None = None) -> None:
        self._workspace = workspace
        self._slots = slots
        self._launch: Launch = starter or launch

    def start(
        self, kind: str, name: str, facts: Mapping[str, Any], files: Mapping[str, str]
    ) -> Job:
        """Begin a job; `facts` are public, `files` are copied into its folder."""
        root = self._workspace.folder / "jobs"
        while True:
            identity = self._workspace.new_identity(name, "jobs", "releases", "audits")
            folder = root / identity
            try:
                folder.mkdir(mode=0o700)
                break
            except FileExistsError:
                continue
        for file, text in files.items():
            (folder / file).write_text(text, encoding="utf-8")
        reservation = secrets.token_hex(8)  # what the ledger will call it, if it gets that far
        called = unused(name, [job.name for job in self.all() if job.id != identity])
        job = {"kind": kind, "name": called, "created": now(), "reservation": reservation}
        write_json(folder / "job.json", {**facts, **job, "slots": self._slots})
        self._run(folder)
        return self.look(identity)

    def _run(self, folder: Path) -> None:
        """Under the lock nobody else runs it, so a job that has ended is never begun again."""
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (folder / "pid.json").unlink(missing_ok=True)  # of a process that is gone
            before = read_json(folder / "state.json") or {}
            if before.get("state") in ("finished", "cancelled"):
                raise InputError("the job has ended meanwhile; load the page again")
            write_json(folder / "state.json", {"state": "starting", "at": time.time()})
            (folder / "cancel").unlink(missing_ok=True)
            self._launch(folder, lock)
        except BlockingIOError:
            raise InputError("the job runs already") from None
        finally:
            os.close(lock)

    def look(self, identity: str) -> Job:
        """A job as it is now."""
        folder = self._workspace.path("jobs", identity)
        facts = read_json(folder / "job.json")
        if not isinstance(facts, dict):
            facts = {"kind": "release", "name": identity, "created": now()}
        alive = _held(folder / "lock")
        progress = read_json(folder / "state.json") or {"state": "killed"}
        state = progress["state"]
        asked = (folder / "cancel").exists()
        if state in ACTIVE and alive and asked:
            state = "cancelling"
        elif state in ACTIVE and not alive:
            state = "cancelled" if asked else "killed"
        return Job(identity, facts, progress, state, folder)

    def all(self) -> list[Job]:
        """Every job, the newest first."""
        _CHILDREN[:] = [child for child in _CHILDREN if child.poll() is None]
        every = [self.look(identity) for identity in self._workspace.identities("jobs")]
        return sorted(every, key=lambda job: job.facts["created"], reverse=True)

    def active(self) -> list[Job]:
        """Those at work."""
        return [job for job in self.all() if job.active]

    def cancel(self, job: Job) -> None:
        """Ask a job to stop; it settles its account itself, or we do where it is gone.

        Its process writes its number and then looks for `cancel`; here it is the other way round. So
        either we find the number, or the process finds that it is to stop.
        """
        (job.folder / "cancel").touch()
        if not _held(job.folder / "lock"):
            return self.give_up(job)
        pid = read_json(job.folder / "pid.json")  # of who holds the lock: nobody else's outlasts it
        if isinstance(pid, int):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def give_up(self, job: Job) -> None:
        """Close the account of a job that is gone: what it did not draw is free again."""
        if _held(job.folder / "lock"):
            raise InputError("the job is still at work; cancel it first")
        (job.folder / "cancel").touch()
        self.settle(job)

    def settle(self, job: Job) -> None:
        """Close a job's account, if it has one."""
        reservation = self.spent(job).reservation
        if reservation is not None:
            with self._workspace.ledger() as ledger:
                ledger.settle(reservation)

    def resume(self, job: Job) -> None:
        """Let a killed release go on from its journal; nothing is charged again."""
        if not self.resumable(job):
            raise InputError("this job cannot go on; start another one")
        self._run(job.folder)

    def resumable(self, job: Job) -> bool:
        """Whether a job that is gone could go on."""
        if job.active or job.state in ("finished", "cancelled"):
            return False
        if job.kind == "audit":
            return job.state == "killed"
        spent = self.spent(job)
        nothing_yet = spent.reservation is None and job.state == "killed"
        begun = spent.state == "open" and (job.folder / "journal" / "journal.jsonl").is_file()
        return nothing_yet or begun

    # -- the account -----------------------------------------------------------------------------

    def spent(self, job: Job) -> Spent:
        """What a job has cost."""
        if job.kind != "release" or "reservation" not in job.facts:
            return Spent()
        with self._workspace.ledger() as ledger:
            books = ledger.books(job.facts["table"])
        release = books.releases.get(job.facts["reservation"])
        if release is None:
            return Spent()
        ended = replace(release, outcome=release.outcome or "aborted")
        after = replace(books, releases={**books.releases, release.id: ended}).spent()
        rest = left(max(0.0, 1 - gone(after, books.facts)))
        return Spent(
            release.id,
            release.budget.to_json()["epsilon"],
            len(release.charges),
            release.planned,
            release.outcome or "open",
            books.facts.composition,
            f"{rest} of this table's budget of ε = {small(books.facts.budget.epsilon)} is left",
        )

    def owners(self) -> dict[str, Job]:
        """The job behind each reservation."""
        return {job.facts["reservation"]: job for job in self.all() if "reservation" in job.facts}


def _held(lock: Path) -> bool:
    """Whether somebody holds a lock."""
    try:
        descriptor = os.open(lock, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)


_CHILDREN: list[subprocess.Popen[bytes]] = []


def launch(folder: Path, lock: int) -> None:
    """A process in a session of its own: Ctrl-C in the server's terminal does not reach it."""
    child = subprocess.Popen(
        command(folder, lock),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(lock,),
        start_new_session=True,
    )
    _CHILDREN.append(child)


def command(folder: Path, lock: int) -> Sequence[str]:
    """How a job is run."""
    return [sys.executable, "-m", "understudy.web.job", str(folder), str(lock)]
