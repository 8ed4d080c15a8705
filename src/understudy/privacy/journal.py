"""What a release has been told so far, on disk, so that a killed one can go on without spending again.

A folder with one file, `journal.jsonl`: a header (the release's place in the ledger and the public
facts it was planned from), then one line per draw, written and synced before it is used. All of it is
released already: every line was charged for, and a reader learns nothing that the release would not
tell. A resumed release is handed the recorded draws in order, without a charge, and goes on with fresh
ones where they end.

Guarantee: charges and draws agree one to one, so the whole is what one uninterrupted release would have
been. Where a charge has no draw, because the process died between the two, the draw is lost and the
journal refuses. Where it has none because the rows were not counted (`CountingError`: a database went
away; or the work was interrupted), the journal says so, and the resumed release draws under the charge
that is there already: the *ledger* notes, under its lock and once for every charge, that it is being
drawn, so any number of copies of the folder draw once together. A journal holds its folder while it is
there, and a folder that keeps its release's own account is refused once it was copied: the copy's
account would know nothing of what the other spends.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from understudy import files
from understudy.errors import InputError, LedgerError, PrivacyError, WorkError
from understudy.privacy.cost import Event
from understudy.privacy.ledger import Reservation

_FILE = "journal.jsonl"
_MARK = "account"


class Journal:
    """The journal in `folder`, which is made if it is not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path, self._mark = folder / _FILE, folder / _MARK
        self._ledger = folder / "ledger.db"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"checkpoint = {folder}: {error.strerror}") from None
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            raise InputError(f"checkpoint = {folder} may not be read and written to")
        self._held = _held(folder)
        try:
            self._lines = self._read()
        except BaseException:
            self.let_go()
            raise
        self._next = 1
        self._waiting: int | None = None

    @property
    def header(self) -> Mapping[str, Any] | None:
        """What the interrupted release wrote first; None where there was none."""
        return self._lines[0] if self._lines else None

    def begin(self, reservation: str, key: int, facts: Mapping[str, Any]) -> None:
        """A new release: nothing told yet."""
        self._path.unlink(missing_ok=True)
        self._lines = []
        header = {"reservation": reservation, "key": str(key), "facts": _plain(facts)}
        self._write({**header, "account": self._account()})

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

    def resume(self, reservation: Reservation) -> None:
        """Check that charges and draws agree; at most one charge waits for its draw."""
        charged = reservation.charged()
        drawn = sum("drawn" in line for line in self._lines)
        waits = bool(self._lines) and "uncounted" in self._lines[-1]
        if len(charged) != drawn + waits:
            raise LedgerError(
                f"checkpoint = {self.folder}: {len(charged)} draws were charged and {drawn} kept; one "
                f"was lost when the release was killed, or made by a copy of the folder, so it cannot "
                f"go on. Close it with `understudy ledger settle LEDGER {reservation.id}` and start "
                f"anew with another folder"
            )
        self._waiting = charged[-1].seq if waits else None
        self._lines = [self._lines[0], *(line for line in self._lines if "drawn" in line)]

    def close(self) -> None:
        """The release is whole: forget how it came about."""
        self._path.unlink(missing_ok=True)
        self._lines = []

    def let_go(self) -> None:
        """Others may go on from the folder."""
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def own_ledger(self) -> Path:
        """Where a release that keeps its own account has it, marked as its own before it is made."""
        self.forget_ledger()
        if self.header is None:
            if self._ledger.exists():
                raise InputError(
                    f"checkpoint = {self.folder} holds a ledger that is not this release's own; give "
                    f"another folder, or name the ledger ({self._ledger})"
                )
            self._mark.touch()
        return self._ledger

    def forget_ledger(self) -> None:
        """Remove that account unless a release may go on with it: no header, nothing drawn.

        Only what is marked as a release's own: a ledger that somebody keeps there is not touched.
        """
        if self.header is None and self._mark.exists():
            for ending in ("", "-journal", "-wal", "-shm"):
                Path(f"{self._ledger}{ending}").unlink(missing_ok=True)
            self._mark.unlink()

    def _account(self) -> list[int] | None:
        """What tells the release's own account from every copy: a mark beside it, written once.

        Its number may be given again once it is free, the time of its last change cannot be copied.
        """
        if not self._mark.exists():
            return None
        found = self._mark.stat()
        return [found.st_ino, found.st_ctime_ns]

    # -- what the gate asks ----------------------------------------------------------------------

    def kept(self, purpose: str, question: object) -> Any | None:
        """What was drawn for this question before the interruption, if it was."""
        if self._next >= len(self._lines):
            return None
        line = self._lines[self._next]
        if line["asked"] != _digest(purpose, question):
            raise LedgerError(
                f"checkpoint = {self.folder}: question {self._next} ({purpose}) is not the one that "
                f"was answered; it was written by another version of understudy"
            )
        self._next += 1
        return _decoded(line["drawn"])

    @property
    def waits(self) -> bool:
        """Whether the next charge was made before the interruption and never drawn under."""
        return self._waiting is not None

    def redraw(self, charges: Any, purpose: str, event: Event | None) -> Event:
        """The charge that waits, which the ledger now notes to be drawn."""
        noted = charges.redraw(self._waiting, purpose, event)
        self._waiting = None
        return noted

    def keep(self, purpose: str, question: object, drawn: Any) -> None:
        """Durable when this returns."""
        self._write({"asked": _digest(purpose, question), "drawn": _encoded(drawn)})
        self._next += 1

    def uncounted(self, purpose: str, question: object) -> None:
        """Nothing was drawn under the last charge."""
        self._note({"uncounted": _digest(purpose, question)})

    # -- the file --------------------------------------------------------------------------------

    def _read(self) -> list[dict[str, Any]]:
        try:
            whole = self._path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(f"checkpoint = {self.folder}: {error.strerror}") from None
        kept, newline, _ = whole.rpartition(b"\n")  # a torn last line was never acted upon
        texts = kept.split(b"\n") if newline else []
        lines = [self._line(number, text) for number, text in enumerate(texts, 1)]
        if lines and whole != kept + b"\n":
            files.write(self._path, kept + b"\n")
        if lines and "account" not in lines[0]:
            raise InputError(
                f"checkpoint = {self.folder} was written by an older understudy; finish the release "
                f"with that one, or start anew with another folder"
            )
        if lines and lines[0]["account"] not in (None, self._account()):
            raise InputError(
                f"checkpoint = {self.folder} was copied together with the account of its release; go "
                f"on from the folder where it began, or start anew with another folder"
            )
        return lines

    def _line(self, number: int, text: bytes) -> dict[str, Any]:
        """One line, of which everything that is used later is there and can be read."""
        try:
            line = json.loads(text)
            if number == 1:
                right = isinstance(line["facts"], dict) and isinstance(line["reservation"], str)
                int(line["key"])
            elif "drawn" in line:
                right = isinstance(line["asked"], str)
                _decoded(line["drawn"])
            else:
                right = isinstance(line["uncounted"], str)
        except (ValueError, TypeError, LookupError, RecursionError):
            right, line = False, {}
        if not right:
            raise InputError(
                f"checkpoint = {self.folder}: line {number} of {_FILE} is damaged, so the release "
                f"cannot go on. Close it with `understudy ledger settle` and start anew with another "
                f"folder"
            )
        return line

    def _write(self, line: dict[str, Any]) -> None:
        self._note(line)
        self._lines.append(line)

    def _note(self, line: dict[str, Any]) -> None:
        try:
            with self._path.open("ab") as file:
                file.write(json.dumps(line).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise WorkError(
                f"checkpoint = {self.folder} could not be written: {error.strerror}; what was charged "
                f"until now stays in the ledger"
            ) from None


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


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(facts, sort_keys=True, default=str))


def _digest(purpose: str, question: object) -> str:
    """Of everything but real numbers, which may differ in the last digits from machine to machine."""
    digest = hashlib.sha256()

    def add(part: Any) -> None:
        if isinstance(part, np.ndarray):
            real = part.dtype.kind == "f"
            digest.update(
                b","
                + repr((part.shape, "real" if real else part.astype(np.int64).tobytes())).encode()
            )
        elif isinstance(part, (list, tuple)):
            digest.update(f"[{len(part)}:".encode())
            for each in part:
                add(each)
        elif dataclasses.is_dataclass(part):
            digest.update(type(part).__name__.encode())
            for each in dataclasses.fields(part):
                add(getattr(part, each.name))
        elif isinstance(part, float):
            digest.update(b",real")
        elif part is None or isinstance(part, (str, int, np.integer)):
            plain = int(part) if isinstance(part, np.integer) else part
            digest.update(f",{plain!r}".encode())
        else:
            digest.update(f",{type(part).__name__}".encode())

    add((purpose, question))
    return digest.hexdigest()


def _encoded(drawn: Any) -> Any:
    """Arrays of numbers, or pairs of a value and its noisy count."""
    if isinstance(drawn, np.ndarray):
        data = base64.b64encode(np.ascontiguousarray(drawn).tobytes()).decode()
        return {"array": data, "dtype": drawn.dtype.str, "shape": list(drawn.shape)}
    if isinstance(drawn, list):
        return drawn
    raise PrivacyError(f"a draw of kind {type(drawn).__name__} cannot be kept in a journal")


def _decoded(kept: Any) -> Any:
    if isinstance(kept, list):
        return [(text, count) for text, count in kept]
    flat = np.frombuffer(base64.b64decode(kept["array"]), np.dtype(kept["dtype"]))
    return flat.reshape(kept["shape"]).copy()
