"""`python -m understudy.web.job FOLDER LOCK`: what the process of a job runs.

It answers to its folder alone, says there how far it is, and ends for one of three reasons that it
writes down: finished, failed, cancelled. A signal that leaves it no time to write is the fourth; the
server sees that by the lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

from understudy.errors import UnderstudyError
from understudy.progress import Progress, heed, stop
from understudy.source.addresses import VARIABLE as DATABASES
from understudy.web.jobs import Jobs
from understudy.web.workspace import Workspace, read_json, without_paths, write_json

_EVERY = 0.2
_KINDER = 5


class _Cancelled(KeyboardInterrupt):
    """SIGTERM."""


class _Teller:
    """Writes how far the job is; understudy's progress callback."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "state.json"
        self._facts: dict[str, Any] = {"state": "running", "began": time.time()}
        self._last = 0.0

    def __call__(self, progress: Progress) -> None:
        """Keep how far it is; a cancelled job ends here at the latest."""
        heed()
        new = not progress.part and progress.stage != self._facts.get("stage")
        if progress.seconds:
            self._facts["about"] = progress.seconds
        if progress.part:
            self._facts["part"] = progress.part
        else:
            words = {"doing": progress.words, "step": progress.step, "part": ""}
            self._facts.update(stage=progress.stage, **words)
        if new or time.monotonic() - self._last > _EVERY:
            self.write()

    def expect(self, seconds: float) -> None:
        """About how long all of it takes."""
        self._facts["about"] = seconds
        self.write()

    def waiting(self, waits: bool) -> None:
        """Whether other jobs are before this one."""
        self._facts["state"] = "waiting" if waits else "running"
        if not waits:
            self._facts["began"] = time.time()
        self.write()

    def end(self, state: str, message: str = "") -> None:
        """The last word."""
        self._facts.update(state=state, message=message)
        self.write()

    def write(self) -> None:
        """Put it on disk."""
        self._last = time.monotonic()
        now = {"at": time.time(), "computed": time.process_time()}
        write_json(self._file, {**self._facts, **now})


def main(arguments: list[str]) -> int:
    """Run the job of a folder to its end; the exit code."""
    folder, lock = Path(arguments[0]), int(arguments[1])
    os.set_inheritable(lock, False)
    os.umask(0o077)
    os.environ[DATABASES] = ""  # a job reads files of its workspace alone
    _step_back()
    warnings.simplefilter("ignore")  # what libraries warn of may depend on private rows

    def cancelled(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        stop(_Cancelled)

    signal.signal(signal.SIGTERM, cancelled)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return run(folder)


def _step_back() -> None:
    """Let pages go first.

    Linux may share its cores among sessions before it looks at processes, and a job has a session of
    its own; there, the session has to be kinder as well.
    """
    os.nice(_KINDER)
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(_KINDER), encoding="ascii")


def run(folder: Path) -> int:
    """The job of a folder, in this process."""
    teller = _Teller(folder)
    root = folder.parent.parent
    facts = read_json(folder / "job.json")
    try:
        write_json(folder / "pid.json", os.getpid())  # from here on it can be told to stop
        if (folder / "cancel").exists():
            raise _Cancelled
        with _Slot(root, facts["slots"], teller):
            _work(root, folder, facts, teller)
        teller.end("finished")
        return 0
    except KeyboardInterrupt:
        jobs = Jobs(Workspace(root), 1)
        jobs.settle(jobs.look(folder.name))
        teller.end("cancelled")
        return 1
    except Exception as error:  # noqa: BLE001 - its message may hold private values
        teller.end("failed", without_paths(_reason(error), root))
        return 1


def _work(root: Path, folder: Path, facts: dict[str, Any], teller: _Teller) -> None:
    try:
        (_audit if facts["kind"] == "audit" else _release)(root, folder, facts, teller)
    except Exception:
        heed()  # libraries in C may answer the signal with an error of their own
        raise


def _reason(error: Exception) -> str:
    """What may be said of a failure."""
    kind = type(error).__name__
    match error:
        case UnderstudyError():
            return str(error)
        case MemoryError():
            return "The memory of this machine is full; the plan says what is needed."
        case OSError():
            return f"The machine refuses: {error.strerror or kind}."
        case _:
            return f"Something went wrong that understudy did not foresee ({kind})."


class _Slot:
    """One of the places for jobs that run at once; free again when the process ends, however."""

    def __init__(self, root: Path, places: int, teller: _Teller) -> None:
        self._root, self._places, self._teller = root, places, teller
        self._held: int | None = None

    def __enter__(self) -> None:
        waited = False
        while not self._take():
            if not waited:
                self._teller.waiting(True)
            waited = True
            time.sleep(_EVERY)
        if waited:
            self._teller.waiting(False)

    def _take(self) -> bool:
        for place in range(self._places):
            name = self._root / "jobs" / f".slot-{place}"
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._held = descriptor
                return True
            except BlockingIOError:
                os.close(descriptor)
        return False

    def __exit__(self, *exc: object) -> None:
        if self._held is not None:
            os.close(self._held)


def _release(root: Path, folder: Path, facts: dict[str, Any], teller: _Teller) -> None:
    from understudy.releases import Options, prepare, reserve
    from understudy.report import About, save
    from understudy.schema import Schema
    from understudy.schema.family import FamilySchema
    from understudy.source import read
    from understudy.source.families import FamilySource

    teller(Progress("checking", 0, 1))
    table = Workspace(root).table(facts["table"])
    out = root / "releases" / folder.name

    wanted = Options.of(
        {
            **facts["choices"],
            "ledger": root / "ledger.db",
            "dataset": table.id,
            "checkpoint": folder / "journal",
            "reservation": facts["reservation"],
        }
    )
    schema = Schema.load(folder / "schema.toml")
    teller.expect(facts.get("seconds") or 0.0)
    prepared = prepare(schema, wanted.resolved())
    tables = [read(file) for file in table.files]
    source = FamilySource(*tables) if isinstance(schema, FamilySchema) else tables[0]
    with reserve(prepared, source, progress=teller) as reserved:
        release = reserved.run(teller)
    about, named = About(facts["name"], facts.get("owner") or None), f"{folder.name}.release"
    save(release, out, about=about, name=named, progress=teller)  # the name that it downloads under


def _audit(root: Path, folder: Path, facts: dict[str, Any], teller: _Teller) -> None:
    from understudy.audit.judge import Claim, audit
    from understudy.audit.releases import plant_like
    from understudy.releases import Release

    release = Release.load(root / "releases" / facts["release"])
    design = plant_like(release, release.rows.slice(0, facts["background"]), facts["canaries"])
    used = (
        f"{len(design.canaries)} planted records, hidden in {len(design.background):,} rows: "
        "the synthetic rows of the release"
    )
    found = audit(
        design,
        Claim(release.epsilon, release.delta, 0.05),
        runs=facts["runs"],
        folder=folder / "runs",
        workers=1,
        progress=lambda done, total: teller(Progress("shadow releases", done, total)),
        rows_used=used,
    )
    out = root / "audits" / folder.name
    out.mkdir(exist_ok=True)
    write_json(out / "of.json", {"release": facts["release"], "name": facts["name"]})
    found.save(out / "audit.json")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
