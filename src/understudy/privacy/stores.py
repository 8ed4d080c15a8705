"""Where the entries of a ledger are kept: append-only rows, and one writer at a time.

A store knows nothing of budgets. It promises (1) that what is written inside `writing` is durable when
the block ends, all of it or nothing, (2) that blocks of any number of processes and machines follow one
another, each seeing all that went before, and (3) that rows are never changed or removed through it.
SQLite is here; a server is in `understudy.privacy.postgres`.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from understudy.errors import InputError, LedgerError, WorkError
from understudy.privacy.chain import Entry, canonical

__all__ = ["FORMAT", "Lost", "Place", "Server", "SqliteStore", "Store", "open_store", "place"]

FORMAT = 1
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

    `place` names the store in messages.
    """

    place: Place
    # What differs between the engines.
    _table = "entries"
    _mark = "?"
    _purpose = "json_extract(body, '$.purpose')"

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
        raise WorkError(f"ledger {self.place} was lost; nothing was drawn")  # files are not lost

    def _ask(self, sql: str, *arguments: Any) -> list[Any]:
        return self._rows(sql.replace("entries", self._table).replace("?", self._mark), arguments)

    def append(self, dataset: str, entry: Entry) -> None:
        """Add an entry; inside `writing`."""
        assert entry.kind is not None
        assert entry.body is not None
        self._ask(
            "INSERT INTO entries (dataset, seq, kind, body, digest, prev, hash) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            dataset,
            entry.seq,
            entry.kind,
            canonical(entry.body).decode(),
            entry.digest,
            entry.prev,
            entry.hash,
        )

    def last(self, dataset: str) -> tuple[int, str, str] | None:
        """(seq, kind, hash) of the newest entry."""
        sql = "SELECT seq, kind, hash FROM entries WHERE dataset = ? ORDER BY seq DESC LIMIT 1"
        found = self._ask(sql, dataset)
        return tuple(found[0]) if found else None

    def holds(self, dataset: str, entry: Entry) -> bool:
        """Whether just this entry is there."""
        sql = "SELECT hash FROM entries WHERE dataset = ? AND seq = ?"
        return [tuple(row) for row in self._ask(sql, dataset, entry.seq)] == [(entry.hash,)]

    def entries(self, dataset: str, since: int) -> list[Row]:
        """(seq, kind, body, digest, prev, hash) from `since` on, in order."""
        sql = "SELECT seq, kind, body, digest, prev, hash FROM entries "
        return self._ask(sql + "WHERE dataset = ? AND seq >= ? ORDER BY seq", dataset, since)

    def bodies(self, dataset: str, kind: str, reservation: str | None = None) -> list[str]:
        """The bodies of a kind, of one release if it is named."""
        sql = "SELECT body FROM entries WHERE dataset = ? AND kind = ?"
        more = () if reservation is None else (reservation,)
        sql += " AND reservation = ?" * len(more) + " ORDER BY seq"
        return [body for (body,) in self._ask(sql, dataset, kind, *more)]

    def drawn(self, dataset: str, reservation: str, purpose: str) -> int:
        """How many charges a release made for a purpose."""
        sql = "SELECT COUNT(*) FROM entries WHERE dataset = ? AND reservation = ? "
        sql += f"AND kind = 'charge' AND {self._purpose} = ?"
        return int(self._ask(sql, dataset, reservation, purpose)[0][0])

    def charged(self, dataset: str) -> set[str]:
        """The releases that made a charge."""
        sql = "SELECT DISTINCT reservation FROM entries WHERE dataset = ? AND kind = 'charge'"
        return {reservation for (reservation,) in self._ask(sql, dataset)}

    def datasets(self) -> list[str]:
        """The names of all datasets, sorted."""
        return sorted(n for (n,) in self._ask("SELECT dataset FROM entries WHERE seq = 0"))

    def first(self, dataset: str) -> str | None:
        """The body of the entry that opened a dataset."""
        found = self._ask("SELECT body FROM entries WHERE dataset = ? AND seq = 0", dataset)
        return found[0][0] if found else None

    def dataset_of(self, reservation: str) -> str | None:
        """The dataset that a release belongs to."""
        sql = "SELECT dataset FROM entries WHERE kind = 'reserve' AND reservation = ?"
        found = self._ask(sql, reservation)
        return found[0][0] if found else None


def open_store(where: Place, timeout: float) -> Store:
    """Open or make a store."""
    if isinstance(where, Server):
        from understudy.privacy.postgres import PostgresStore

        return PostgresStore(where, timeout)
    return SqliteStore(where, timeout)


_TABLES = """
CREATE TABLE IF NOT EXISTS entries (
    dataset TEXT NOT NULL,
    seq     INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    body    TEXT NOT NULL,
    digest  TEXT NOT NULL,
    prev    TEXT NOT NULL,
    hash    TEXT NOT NULL,
    reservation TEXT GENERATED ALWAYS AS (json_extract(body, '$.reservation')) VIRTUAL,
    PRIMARY KEY (dataset, seq)
);
CREATE INDEX IF NOT EXISTS by_reservation ON entries (dataset, reservation, kind);
CREATE TRIGGER IF NOT EXISTS no_update BEFORE UPDATE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER IF NOT EXISTS no_delete BEFORE DELETE ON entries
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""


class SqliteStore(Store):
    """One file: write-ahead log, `synchronous = FULL`, immediate transactions."""

    def __init__(self, path: Path, timeout: float) -> None:
        self.place = path
        if not path.parent.is_dir():
            raise InputError(f"ledger {path}: the folder {path.parent} does not exist")
        try:
            self._db = sqlite3.connect(path, isolation_level=None, timeout=timeout)
            self._write_ahead(timeout)
            self._db.execute("PRAGMA synchronous = FULL")
            self._prepare()
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"ledger {path} is not a ledger that can be opened ({error}); "
                f"give another file or restore it from a backup"
            ) from None

    def _write_ahead(self, timeout: float) -> None:
        """Switch to WAL. SQLite does not wait for other processes here, so several that create one
        ledger at once must take turns by themselves."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01 + 0.04 * secrets.randbelow(100) / 100)

    def _prepare(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            with self.writing():
                if self._db.execute("PRAGMA user_version").fetchone()[0] == 0:
                    for statement in _statements(_TABLES):
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA user_version = {FORMAT}")
        elif version != FORMAT:
            self._db.close()
            raise InputError(
                f"ledger {self.place} has format {version}, this understudy reads {FORMAT}; "
                f"use the understudy that wrote it"
            )

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One immediate transaction."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise LedgerError(
                f"ledger {self.place} cannot be written ({error}); is it on a read-only or full "
                f"disk, or held by another program? Nothing was drawn"
            ) from None
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError):
                raise WorkError(
                    f"ledger {self.place} could not be written ({error}); nothing was drawn. "
                    f"Free some space and try again"
                ) from None
            raise

    def _rows(self, sql: str, arguments: Sequence[Any] = ()) -> list[Any]:
        return self._db.execute(sql, arguments).fetchall()


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if statement.strip() and sqlite3.complete_statement(statement):
            yield statement
            statement = ""
