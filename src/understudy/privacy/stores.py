"""Where the entries of a ledger are kept: append-only rows, and one writer at a time.

A store knows nothing of budgets. It promises (1) that what is written inside `writing` is durable when
the block ends, all of it or nothing, (2) that blocks of any number of processes and machines follow one
another, each seeing all that went before, and (3) that rows are never changed or removed through it.
SQLite is here; a server is in `understudy.privacy.postgres`.
"""

from __future__ import annotations

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from understudy.errors import InputError, LedgerError, WorkError
from understudy.privacy.chain import Entry, canonical

FORMAT = 2
"""Format 1 had an index by release, through which spending was read; it is brought to 2 when opened."""
_SCHEMES = ("postgresql://", "postgres://")

Row = tuple[int, str, str, str, str, str]


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a PostgreSQL server; its text has no password."""

    address: str = field(repr=False)

    def __str__(self) -> str:
        from understudy.privacy.postgres import shown

        return shown(self.address)

    __repr__ = __str__


Place = Path | Server
"""A file, or a server."""


def place(where: str | os.PathLike[str] | Server) -> Place:
    """A path, or `postgresql://user@host/database`."""
    if isinstance(where, Server):
        return where
    if isinstance(where, str) and where.startswith(_SCHEMES):
        return Server(where)
    return Path(where)


class Lost(Exception):
    """The connection broke inside a block; whether it was committed is not known."""


class Store(ABC):
    """The entries of every dataset, in SQL that both engines understand.

    `place` names the store in messages. `backup`: nothing may be spent from it.
    """

    place: Place
    backup = False
    # What differs between the engines.
    _prefix = ""
    _mark = "?"

    @abstractmethod
    def writing(self) -> AbstractContextManager[None]:
        """One block of writing; raises `Lost` if the connection breaks in it."""

    @abstractmethod
    def _rows(self, sql: str, arguments: Sequence[Any] = ()) -> list[Any]:
        """Run a statement; what it gives back."""

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""

    def recover(self) -> None:
        """Connect again after `Lost`, or raise `WorkError`."""
        raise WorkError(f"ledger {self.place} was lost")  # files are not lost

    def _ask(self, sql: str, *arguments: Any) -> list[Any]:
        return self._rows(sql.format(self._prefix).replace("?", self._mark), arguments)

    def append(self, dataset: str, entry: Entry) -> None:
        """Add an entry; inside `writing`."""
        assert entry.kind is not None
        assert entry.body is not None
        self._ask(
            "INSERT INTO {}entries (dataset, seq, kind, body, digest, prev, hash) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            dataset,
            entry.seq,
            entry.kind,
            canonical(entry.body).decode(),
            entry.digest,
            entry.prev,
            entry.hash,
        )

    def entries(self, dataset: str, since: int) -> list[Row]:
        """(seq, kind, body, digest, prev, hash) from `since` on, in order."""
        sql = "SELECT seq, kind, body, digest, prev, hash FROM {}entries "
        return self._ask(sql + "WHERE dataset = ? AND seq >= ? ORDER BY seq", dataset, since)

    def datasets(self) -> list[str]:
        """The names of all datasets, sorted."""
        return sorted(str(n) for (n,) in self._ask("SELECT DISTINCT dataset FROM {}entries"))

    def invite(self, token: str) -> None:
        """Note that chains which are closed with this token may be continued here."""
        self._ask("INSERT INTO {}invitations VALUES (?)", token)

    def invited(self, token: str) -> bool:
        """Whether this token was noted here."""
        return bool(self._ask("SELECT token FROM {}invitations WHERE token = ?", token))


def open_store(where: Place, timeout: float) -> Store:
    """Open or make a store."""
    if isinstance(where, Server):
        from understudy.privacy.postgres import PostgresStore

        return PostgresStore(where, timeout)
    return SqliteStore(where, timeout)


_ENTRIES = """
CREATE TABLE entries (
    dataset TEXT NOT NULL,
    seq     INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    body    TEXT NOT NULL,
    digest  TEXT NOT NULL,
    prev    TEXT NOT NULL,
    hash    TEXT NOT NULL,
    PRIMARY KEY (dataset, seq)
)"""
_REFUSE = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
_NEW_IN_2 = (
    "CREATE TABLE invitations (token TEXT PRIMARY KEY)",
    "CREATE TRIGGER no_replace BEFORE INSERT ON entries WHEN EXISTS "
    f"(SELECT 1 FROM entries WHERE dataset = new.dataset AND seq = new.seq) {_REFUSE}",
)
_TABLES = (
    _ENTRIES,
    f"CREATE TRIGGER no_update BEFORE UPDATE ON entries {_REFUSE}",
    f"CREATE TRIGGER no_delete BEFORE DELETE ON entries {_REFUSE}",
    *_NEW_IN_2,
)

# PRAGMA application_id, far apart: no flipped byte makes a backup a ledger.
_LEDGER, _BACKUP = 0x756E4C65, 0x756E4261  # "unLe", "unBa"

# What SQLite's names of errors mean to somebody who wants to release; the first that fits.
_REASONS = (
    ("SQLITE_FULL", "the disk is full: free some space and try again"),
    ("SQLITE_READONLY_DBMOVED", "the file was moved or deleted meanwhile"),
    ("SQLITE_READONLY", "the file or its folder is read-only"),
    ("SQLITE_CANTOPEN", "the file or its folder cannot be opened or written to"),
    ("SQLITE_PERM", "the file may not be opened"),
    ("SQLITE_BUSY", "another program holds it for too long"),
    ("SQLITE_LOCKED", "another program holds it for too long"),
    ("SQLITE_IOERR", "the disk fails, or is full"),
    ("SQLITE_NOTADB", "it is no ledger: give another file, or restore it from a backup"),
    ("", "it is damaged: restore it from a backup"),
)


# Python's module fails on messages of SQLite that quote damaged text.
_FAULTS = (sqlite3.Error, UnicodeDecodeError)


class SqliteStore(Store):
    """One file: a rollback journal, `synchronous = EXTRA`, immediate transactions.

    What is committed is in the file itself, and a charge survives a power cut. Every page and the
    agreement of the table with its primary key are checked when the file is opened.
    """

    def __init__(self, path: Path, timeout: float, *, backup: bool = False) -> None:
        self.place = path
        _require_a_ledgers_place(path)
        try:
            with ExitStack() as failed:
                self._db = sqlite3.connect(path, isolation_level=None, timeout=timeout)
                failed.callback(self._db.close)
                self._db.execute("PRAGMA synchronous = EXTRA")
                self._prepare(_BACKUP if backup else _LEDGER)
                failed.pop_all()
        except _FAULTS as error:
            raise InputError(f"ledger {path} cannot be opened: {_reason(error)}") from None

    @classmethod
    @contextmanager
    def new_backup(cls, path: Path) -> Iterator[SqliteStore]:
        """A new file that is marked as a backup; it is removed again where the block fails."""
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise InputError(f"{path} exists already; a backup is never overwritten") from None
        except OSError as error:
            raise InputError(f"{path} cannot be made: {error.strerror}") from None
        try:
            with closing(cls(path, 60.0, backup=True)) as made:
                yield made
        except BaseException:
            path.unlink()  # ours alone: it was not there before
            raise

    def _mark_of(self) -> tuple[int, int]:
        version, kind = (
            int(self._db.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("user_version", "application_id")
        )
        return version, kind

    def _prepare(self, kind: int) -> None:
        if self._mark_of() == (0, 0) and self._empty():
            with self.writing():
                if self._empty():  # several may make it at once
                    self._make(_TABLES, kind)
        # A ledger of an older version keeps a write-ahead log, until nobody else has it open.
        with suppress(sqlite3.OperationalError):
            self._db.execute("PRAGMA journal_mode = DELETE").fetchall()
        found = self._db.execute("PRAGMA integrity_check").fetchall()
        if found != [("ok",)]:
            raise InputError(
                f"ledger {self.place} is damaged: SQLite finds that its pages do not agree; restore "
                f"it from a backup"
            )
        if self._mark_of() == (1, 0):
            with self.writing():
                if self._mark_of() == (1, 0):
                    self._make(("DROP INDEX by_reservation", *_NEW_IN_2), kind)
        version, kind = self._mark_of()
        if version != FORMAT or kind not in (_LEDGER, _BACKUP):
            raise InputError(
                f"ledger {self.place} has format {version}, this understudy reads {FORMAT}; "
                f"use the understudy that wrote it, or another file"
            )
        self.backup = kind == _BACKUP

    def _empty(self) -> bool:
        return self._db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)

    def _make(self, statements: Sequence[str], kind: int) -> None:
        for statement in statements:
            self._db.execute(statement)
        self._db.execute(f"PRAGMA application_id = {kind}")
        self._db.execute(f"PRAGMA user_version = {FORMAT}")

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One immediate transaction."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except _FAULTS as error:
            self._roll_back()
            raise self._refusal("written", error) from None
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        with suppress(*_FAULTS):  # what is not committed is rolled back by whoever comes next
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _rows(self, sql: str, arguments: Sequence[Any] = ()) -> list[Any]:
        if self._db.in_transaction:
            return self._db.execute(sql, arguments).fetchall()
        try:
            return self._db.execute(sql, arguments).fetchall()
        except _FAULTS as error:
            raise self._refusal("read", error) from None

    def _refusal(self, what: str, error: Exception) -> Exception:
        text = f"ledger {self.place} could not be {what}: {_reason(error)}"
        work = ("SQLITE_FULL", "SQLITE_IOERR")
        return WorkError(text) if _code(error).startswith(work) else LedgerError(text)


def _require_a_ledgers_place(path: Path) -> None:
    """Refuse what SQLite would not: two names for one file, and files that it would write over."""
    try:
        if not path.parent.is_dir():
            raise InputError(f"ledger {path}: the folder {path.parent} does not exist")
        if not path.exists():
            return
        if not path.is_file():
            raise InputError(f"ledger {path} is a folder or a device; give a file")
        if path.stat().st_nlink > 1:
            raise InputError(
                f"ledger {path} has another name (a hard link), and what is written by one name may "
                f"be lost by the other; remove one of them, or use a symbolic link"
            )
        with path.open("rb") as file:
            # SQLite takes a file of less than one page for an empty one.
            if file.read(16) not in (b"", b"SQLite format 3\0"):
                raise InputError(f"{path} is no ledger; give another file, or restore a backup")
    except OSError as error:
        raise InputError(f"ledger {path} cannot be opened: {error.strerror}") from None


def _code(error: Exception) -> str:
    # Python's own complaints, such as text that is not UTF-8, carry no name.
    return str(getattr(error, "sqlite_errorname", ""))


def _reason(error: Exception) -> str:
    return next(reason for start, reason in _REASONS if _code(error).startswith(start))
