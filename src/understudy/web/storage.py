"""Releases that are read again and again, kept in memory until their files change.

Everything here was released: reading it, asking it and checking it costs no budget. A release from
elsewhere was checked in a confined process when it came; what was found then is kept, so that the
server itself never has to.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from understudy.errors import BundleError
from understudy.releases import Release
from understudy.releases.bundle import MANIFEST, read_manifest
from understudy.releases.example import example
from understudy.releases.verdict import Verdict, verdict
from understudy.releases.verify import Check, Verification, verify
from understudy.report.page import About
from understudy.web.imports import EVERY
from understudy.web.workspace import Workspace, read_json, write_json

T = TypeVar("T")
_LOADED = 6
_SMALL = 256


@dataclass(frozen=True, slots=True)
class Summary:
    """What a list shows of a release; `problem` where it cannot be read."""

    id: str
    title: str = ""
    created: str = ""
    epsilon: str = ""
    size: str = ""
    method: str = ""
    bound: float = 0.0
    digest: str = ""
    private: bool = False
    reservation: str = ""
    problem: str = ""


class _Kept:
    """The last few results of slow readings; one thread reads, others wait for it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._results: OrderedDict[Any, Future[Any]] = OrderedDict()

    def get(self, key: Any, read: Callable[[], T]) -> T:
        with self._lock:
            result = self._results.pop(key, None)
            first = result is None
            result = self._results[key] = result or Future()
            if len(self._results) > self._most:
                self._results.popitem(last=False)
        if first:
            try:
                result.set_result(read())
            except BaseException as error:  # noqa: BLE001 - for all who wait
                with self._lock:
                    self._results.pop(key, None)
                result.set_exception(error)
        return result.result()


class Storage:
    """The releases of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._summaries, self._checked = _Kept(_SMALL), _Kept(_SMALL)
        self._loaded, self._reports = _Kept(_LOADED), _Kept(_LOADED)
        self._guides = _Kept(_SMALL)

    def summaries(self) -> list[Summary]:
        """Every release, the newest first; damaged ones too, with what is wrong."""
        every = [self.summary(identity) for identity in self._workspace.identities("releases")]
        return sorted(every, key=lambda summary: summary.created, reverse=True)

    def summary(self, identity: str) -> Summary:
        """One line about a release."""
        folder = self._workspace.path("releases", identity)
        return self._summaries.get(
            _state(folder, (MANIFEST,)), lambda: _summary(identity, folder, self._title(identity))
        )

    def _title(self, identity: str) -> str:
        return self.about(identity).title or identity

    def about(self, identity: str) -> About:
        """The title and the owner that a release was given; its name in addresses if it has none."""
        facts = read_json(self._workspace.folder / "jobs" / identity / "job.json") or {}
        return About(facts.get("name", identity), facts.get("owner") or None)

    def release(self, identity: str) -> Release:
        """The release; BundleError where it is damaged or of another version."""
        folder = self._workspace.path("releases", identity)
        return self._loaded.get(_state(folder), lambda: Release.load(folder))

    def guide(self, identity: str) -> tuple[Verdict, str]:
        """What a release is good for, and a question to begin with; that may be nothing."""
        release = self.release(identity)
        state = _state(self._workspace.path("releases", identity))
        return self._guides.get(state, lambda: (verdict(release), example(release) or ""))

    def verification(self, identity: str) -> Verification:
        """Every check of `understudy verify`: as its import found it, until a file changes."""
        folder = self._workspace.path("releases", identity)
        return self._checked.get(
            _state(folder), lambda: self._remembered(identity, folder) or verify(folder)
        )

    def put(self, folder: Path, identity: str, found: Verification) -> None:
        """Move a release here that was checked elsewhere, and keep what was found until a file changes.

        It is kept beside the release and not in it: nobody who packs a release can write it.
        """
        kept = {"state": _state(folder)[1:], **asdict(found)}
        write_json(self._verdict(identity), kept)  # first: times and sizes stay when it moves
        folder.rename(self._workspace.folder / "releases" / identity)

    def _verdict(self, identity: str) -> Path:
        return self._workspace.folder / "checked" / f"{identity}.json"

    def _remembered(self, identity: str, folder: Path) -> Verification | None:
        kept = read_json(self._verdict(identity))
        if kept is None or kept["state"] != list(_state(folder)[1:]):
            return None
        return Verification(tuple(Check(**each) for each in kept["checks"]), kept["digest"])

    def report(self, identity: str, audit: Mapping[str, Any] | None) -> str:
        """The report, as `understudy report` writes it of the folder that is downloaded."""
        from understudy.report import render

        folder = self._workspace.path("releases", identity)
        digest, about = self.summary(identity).digest, self.about(identity)
        return self._reports.get(
            (*_state(folder), about, audit is None),
            lambda: render(
                self.release(identity),
                name=f"{identity}.release",
                digest=digest,
                about=about,
                audit=audit,
                back=f"/releases/{identity}",
            ),
        )


def _state(folder: Path, names: tuple[str, ...] = EVERY) -> tuple[str, ...]:
    """Where a release is, and then a text for every file that changes when the file does."""
    return (str(folder), *(_changes(folder / name) for name in names))


def _changes(file: Path) -> str:
    try:
        known = file.stat()
    except OSError:
        return ""
    return f"{known.st_mtime_ns}:{known.st_size}"


def _size(facts: Mapping[str, Any]) -> str:
    """How many rows, or families with how many children: the rows of a family are weights."""
    if families := facts.get("families"):
        children = f"{int(families['children']):,} {facts['promise']['unit']['family']}"
        return f"{int(families['parents']):,} families with {children}"
    return f"{int(facts['rows']):,} rows"


def _summary(identity: str, folder: Path, title: str) -> Summary:
    try:
        facts = read_manifest(folder)
        return Summary(
            identity,
            title,
            created=str(facts["created"]),
            epsilon=str(facts["promise"]["epsilon"]),
            size=_size(facts),
            method=str(facts["method"]["name"]),
            bound=float(facts["certificate"]["bound"]),
            digest=str(facts["digest"]),
            private=facts["private"] is True,
            reservation=str(facts["ledger"]["reservation"]),
        )
    except BundleError as error:
        problem = str(error)
    except (KeyError, TypeError, ValueError):
        problem = f"{folder} is damaged: its {MANIFEST} lacks what a release states"
    return Summary(identity, title, problem=problem)
