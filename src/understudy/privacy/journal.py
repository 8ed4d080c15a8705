"""What a release has been told so far, on disk, so that a killed one can go on without spending again.

A folder with one file, `journal.jsonl`: a header (the release's place in the ledger and the public
facts it was planned from), then one line per answer of the curator, written and synced before it is
used. All of it is released already: every line was charged for, and a reader learns nothing that the
release would not tell. A resumed release is handed the recorded answers in order, without a charge, and
goes on with fresh ones where they end. Guarantee: charges and answers agree one to one, so the whole is
what one uninterrupted release would have been; where a charge has no answer, because the process died
between the two, the draw is lost and the journal refuses. Where it has none because the rows could not
be counted (`CountingError`: a database went away), no noise was drawn: the journal says so, and the
resumed release counts again and draws under the charge that is there already, once. A journal holds
its folder while it is there: two processes would both draw under that charge.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from understudy.errors import CountingError, InputError, LedgerError, PrivacyError
from understudy.privacy.cost import Event, event_from_json
from understudy.privacy.curator import Cell, Charges, Curator, Picked
from understudy.privacy.ledger import Reservation

__all__ = ["Journal"]

_FILE = "journal.jsonl"
_KINDS = {"cell": Cell, "picked": Picked}


class Journal:
    """The journal in `folder`, which is made if it is not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / _FILE
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"checkpoint = {folder}: {error.strerror}") from None
        self._held = _held(folder)
        self._lines = self._read()
        self._next = 1
        self._prepaid: _Prepaid | None = None

    @property
    def header(self) -> Mapping[str, Any] | None:
        """What the interrupted release wrote first; None where there was none."""
        return self._lines[0] if self._lines else None

    def begin(self, reservation: str, key: int, facts: Mapping[str, Any]) -> None:
        """A new release: nothing told yet."""
        self._path.write_bytes(b"")
        self._lines = []
        self._write({"reservation": reservation, "key": str(key), "facts": _plain(facts)})

    def require_same(self, facts: Mapping[str, Any]) -> None:
        """Refuse to go on with another release than the one that was interrupted."""
        assert self.header is not None
        known, now = self.header["facts"], _plain(facts)
        other = sorted(name for name in {*known, *now} if known.get(name) != now.get(name))
        if other:
            raise InputError(
                f"checkpoint = {self.folder} is of another release: {', '.join(other)} differ; "
                f"give what was given then, or another folder"
            )

    def around(self, curator: Curator, reservation: Reservation) -> Curator:
        """The curator, handing out what is recorded first and recording what comes after."""
        charged = _charges(reservation)
        answers = sum("answer" in line for line in self._lines)
        waits = bool(self._lines) and "uncounted" in self._lines[-1]
        if self._prepaid is not None:  # a second curator of one release
            waits = self._prepaid.waits
        if len(charged) != answers + waits:
            raise LedgerError(
                f"checkpoint = {self.folder}: {len(charged)} draws were charged and "
                f"{answers} answers kept; an answer was lost when the release was "
                f"killed, so it cannot go on. Close it with `understudy ledger settle` "
                f"({reservation.id}) and start anew with another folder"
            )
        self._lines = [self._lines[0], *(line for line in self._lines if "answer" in line)]
        self._prepaid = _Prepaid(reservation, charged[-1] if waits else None)
        curator.charge_to(cast(Charges, self._prepaid))
        return cast(Curator, _Recorded(self, curator))

    def close(self) -> None:
        """The release is whole: forget how it came about."""
        self._path.unlink(missing_ok=True)
        self._lines = []

    def let_go(self) -> None:
        """Others may go on from the folder."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    @property
    def ledger(self) -> Path:
        """Where a release that keeps its own account has it."""
        return self.folder / "ledger.db"

    def forget_ledger(self) -> None:
        """Remove that account unless a release may go on with it: no header, nothing drawn."""
        if self.header is None:
            for ending in ("", "-wal", "-shm"):
                Path(f"{self.ledger}{ending}").unlink(missing_ok=True)

    def ask(self, curator: Curator, name: str, args: Any, named: Any) -> Any:
        """The answer to a question: as recorded, or as the curator gives it now."""
        asked = _digest([name, args, named])
        if self._next < len(self._lines):
            line = self._lines[self._next]
            if line["asked"] != asked:
                raise LedgerError(
                    f"checkpoint = {self.folder}: question {self._next} ({name}) is not the one "
                    f"that was answered; it was written by another version of understudy"
                )
            answer = _decoded(line["answer"])
        else:
            answer = self._fresh(curator, name, args, named, asked)
        self._next += 1
        return answer

    def _fresh(self, curator: Curator, name: str, args: Any, named: Any, asked: str) -> Any:
        paid = self._prepaid
        assert paid is not None
        if paid.waits:
            self._note({"again": asked})  # whoever dies from here on may have drawn
        try:
            answer = getattr(curator, name)(*args, **named)
        except CountingError:
            if paid.unanswered():
                self._note({"uncounted": asked})
            raise
        paid.answered()
        self._write({"asked": asked, "answer": _encoded(answer)})
        return answer

    def _read(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        whole = self._path.read_bytes()
        kept, _, _ = whole.rpartition(b"\n")  # a torn last line was never acted upon
        lines = [json.loads(line) for line in kept.splitlines()]
        if lines and whole != kept + b"\n":
            self._path.write_bytes(kept + b"\n")
        return lines

    def _write(self, line: dict[str, Any]) -> None:
        self._note(line)
        self._lines.append(line)

    def _note(self, line: dict[str, Any]) -> None:
        with self._path.open("ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


class _Prepaid:
    """A reservation's charges; one that was made and never drawn under comes before a new one."""

    def __init__(self, reservation: Reservation, waiting: Mapping[str, Any] | None) -> None:
        self._reservation = reservation
        self._waiting = waiting
        self._charged = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reservation, name)

    @property
    def waits(self) -> bool:
        """Whether a charge is there that nothing was drawn under."""
        return self._waiting is not None

    def charge(self, purpose: str, event: Event | None = None) -> Event:
        """The charge that waits, or a new one."""
        self._charged += 1
        if self._waiting is None:
            return self._reservation.charge(purpose, event)
        paid = event_from_json(self._waiting["event"])
        if self._waiting["purpose"] != purpose or (event is not None and event != paid):
            raise LedgerError(
                f"charge {purpose!r}: {self._waiting['purpose']!r} was charged when the rows could not "
                f"be counted, and this is another draw"
            )
        self._waiting = None
        return paid

    def unanswered(self) -> bool:
        """Whether exactly one charge was made for the question that failed."""
        once, self._charged = self._charged == 1, 0
        return once

    def answered(self) -> None:
        """The question has its answer."""
        self._charged = 0


def _held(folder: Path) -> int | None:
    """The folder, locked until the number that is returned is closed or the process ends."""
    try:
        import fcntl
    except ModuleNotFoundError:  # a system without such locks
        return None
    number = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        raise InputError(
            f"checkpoint = {folder} is in use by another release; wait until it has ended, or give "
            f"another folder"
        ) from None
    except OSError:  # a file system without them
        os.close(number)
        return None
    return number


def _charges(reservation: Reservation) -> list[Mapping[str, Any]]:
    """What was charged for a release, in order."""
    return [
        entry.body
        for entry in reservation.entries()
        if entry.kind == "charge"
        and entry.body is not None
        and entry.body.get("reservation") == reservation.id
    ]


class _Recorded:
    """Looks like the curator; every question passes the journal."""

    def __init__(self, journal: Journal, curator: Curator) -> None:
        self._journal = journal
        self._curator = curator

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._curator, name)
        if not callable(found):
            return found

        def ask(*args: Any, **named: Any) -> Any:
            return self._journal.ask(self._curator, name, args, named)

        return ask


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(facts, sort_keys=True, default=str))


def _digest(question: Any) -> str:
    """Of everything but real numbers, which may differ in the last digits from machine to machine."""
    digest = hashlib.sha256()

    def add(part: Any) -> None:
        if isinstance(part, np.ndarray):
            real = part.dtype.kind == "f"
            digest.update(
                repr((part.shape, "real" if real else part.astype(np.int64).tobytes())).encode()
            )
        elif isinstance(part, (list, tuple)):
            digest.update(f"[{len(part)}".encode())
            for each in part:
                add(each)
        elif isinstance(part, dict):
            for each in sorted(part):
                add(each)
                add(part[each])
        elif dataclasses.is_dataclass(part):
            digest.update(type(part).__name__.encode())
            for each in dataclasses.fields(part):
                add(getattr(part, each.name))
        elif isinstance(part, float):
            digest.update(b"real")
        elif part is None or isinstance(part, (str, int, np.integer)):
            digest.update(repr(part if not isinstance(part, np.integer) else int(part)).encode())
        else:
            digest.update(type(part).__name__.encode())

    add(question)
    return digest.hexdigest()


def _encoded(answer: Any) -> Any:
    if isinstance(answer, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(answer).tobytes()).decode()
        return {"array": data, "dtype": answer.dtype.str, "shape": list(answer.shape)}
    if isinstance(answer, (tuple, list)):
        return {"tuple": [_encoded(each) for each in answer]}
    for kind, made in _KINDS.items():
        if isinstance(answer, made):
            first = answer.marginal if isinstance(answer, Cell) else answer.products
            return {kind: [first, list(answer.index), answer.sign]}
    if isinstance(answer, (bool, int, float, str)) or answer is None:
        return answer
    if isinstance(answer, np.generic):
        return answer.item()
    raise PrivacyError(f"an answer of kind {type(answer).__name__} cannot be kept in a journal")


def _decoded(kept: Any) -> Any:
    if not isinstance(kept, dict):
        return kept
    if "array" in kept:
        flat = np.frombuffer(base64.b64decode(kept["array"]), np.dtype(kept["dtype"]))
        return flat.reshape(kept["shape"]).copy()
    if "tuple" in kept:
        return tuple(_decoded(each) for each in kept["tuple"])
    ((kind, (first, index, sign)),) = kept.items()
    return _KINDS[kind](first, tuple(index), sign)
