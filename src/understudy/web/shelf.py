"""Releases that are read again and again, kept in memory until their files change.

Everything here was released: reading it, asking it and checking it costs no budget. A release from
elsewhere was checked in a confined process when it came; what was found then is kept, so that the
server itself never has to.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from understudy.errors import BundleError
from understudy.releases import Release
from understudy.releases.bundle import FILES, MANIFEST, SIGNATURE, read_manifest
from understudy.releases.verify import Check, Verification, verify
from understudy.report import NAME as REPORT
from understudy.web.workspace import Workspace, read_json, write_json

__all__ = ["Shelf", "Spine"]

T = TypeVar("T")
_LOADED = 6
_SMALL = 256
_EVERY = (MANIFEST, SIGNATURE, REPORT, *FILES)


@dataclass(frozen=True, slots=True)
class Spine:
    """What a list shows of a release; `problem` where it cannot be read."""

    id: str
    created: str
    epsilon: str
    delta: str
    rows: int
    columns: int
    method: str
    certificate: str
    bound: float
    digest: str
    private: bool
    reservation: str
    problem: str = ""


class _Kept:
    """The last few results of slow readings; one thread reads, others wait for it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: OrderedDict[Any, Any] = OrderedDict()
        self._lock = threading.Lock()
        self._making: dict[Any, threading.Lock] = {}

    def get(self, key: Any, make: Callable[[], T]) -> T:
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return self._items[key]
            turn = self._making.setdefault(key, threading.Lock())
        with turn:
            with self._lock:
                if key in self._items:
                    return self._items[key]
            try:
                made = make()
            finally:
                with self._lock:
                    self._making.pop(key, None)
            with self._lock:
                self._items[key] = made
                while len(self._items) > self._most:
                    self._items.popitem(last=False)
            return made


class Shelf:
    """The releases of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._spines = _Kept(_SMALL)
        self._loaded = _Kept(_LOADED)
        self._checked = _Kept(_SMALL)
        self._reports = _Kept(_LOADED)

    def spines(self) -> list[Spine]:
        """Every release, the newest first; damaged ones too, with what is wrong."""
        found = [self.spine(identity) for identity in self._workspace.identities("releases")]
        return sorted(found, key=lambda spine: spine.created, reverse=True)

    def spine(self, identity: str) -> Spine:
        """One line about a release."""
        folder = self._workspace.path("releases", identity)
        return self._spines.get(_state(folder, (MANIFEST,)), lambda: _spine(identity, folder))

    def release(self, identity: str) -> Release:
        """The release; BundleError where it is damaged or of another version."""
        folder = self._workspace.path("releases", identity)
        return self._loaded.get(_state(folder), lambda: Release.load(folder))

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

    def report(self, identity: str, name: str, audit: Mapping[str, Any] | None) -> str:
        """The report, as `understudy report` writes it."""
        from understudy.report import render

        folder = self._workspace.path("releases", identity)
        digest = self.spine(identity).digest
        return self._reports.get(
            (*_state(folder), name, audit is None),
            lambda: render(self.release(identity), name=name, digest=digest, audit=audit),
        )


def _state(folder: Path, names: tuple[str, ...] = _EVERY) -> tuple[str, ...]:
    """Where a release is, and then a text for every file that changes when the file does."""
    found = [str(folder)]
    for name in names:
        try:
            stat = (folder / name).stat()
            found.append(f"{stat.st_mtime_ns}:{stat.st_size}")
        except OSError:
            found.append("")
    return tuple(found)


def _spine(identity: str, folder: Path) -> Spine:
    try:
        facts = read_manifest(folder)
        return Spine(
            identity,
            str(facts["created"]),
            str(facts["promise"]["epsilon"]),
            str(facts["promise"]["delta"]),
            int(facts["rows"]),
            0,
            str(facts["method"]["name"]),
            str(facts["certificate"]["words"]),
            float(facts["certificate"]["bound"]),
            str(facts["digest"]),
            facts["private"] is True,
            str(facts["ledger"]["reservation"]),
        )
    except BundleError as error:
        problem = str(error)
    except (KeyError, TypeError, ValueError):
        problem = f"{folder} is damaged: its {MANIFEST} lacks what a release states"
    return Spine(identity, "", "", "", 0, 0, "", "", 0.0, "", False, "", problem)
