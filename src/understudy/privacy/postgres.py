"""The team's ledger: entries in PostgreSQL, for any number of machines.

Writers take one advisory lock inside their transaction and read committed rows after it, so that blocks
follow one another and each sees what went before, whatever isolation the server has by default; the
primary key (dataset, seq) would refuse a fork of the chain even without it. A
commit is flushed before it returns: `synchronous_commit` is raised where it is off, and a server with
`fsync` off is refused. Triggers refuse changes; a role needs SELECT and INSERT alone.

A connection that breaks inside a block leaves open whether it was committed. The ledger then connects
again and looks for the very entry it wrote, so a restart of the server costs time, never a charge, and
never hides one.

No message holds the password, or any text of the driver that might.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from understudy.errors import InputError, LedgerError, WorkError
from understudy.privacy.stores import FORMAT, Lost, Server, Store

if TYPE_CHECKING:
    import psycopg

_LOCK = 0x756E6465727374  # "underst": one lock for all ledgers of a database
_CONNECT_SECONDS = 10
_PAUSE = 0.2

_INVITATIONS = "CREATE TABLE understudy_invitations (token text PRIMARY KEY);"
_TABLES = (
    """
CREATE TABLE understudy_ledger (format integer NOT NULL);
CREATE TABLE understudy_entries (
    dataset text NOT NULL,
    seq     bigint NOT NULL,
    kind    text NOT NULL,
    body    text NOT NULL,
    digest  text NOT NULL,
    prev    text NOT NULL,
    hash    text NOT NULL,
    PRIMARY KEY (dataset, seq)
);
CREATE FUNCTION understudy_append_only() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$;
CREATE TRIGGER understudy_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON understudy_entries
    FOR EACH STATEMENT EXECUTE FUNCTION understudy_append_only();
"""
    + _INVITATIONS
    + f"INSERT INTO understudy_ledger VALUES ({FORMAT})"
)
_FROM_1 = f"""
DROP INDEX understudy_by_reservation;
{_INVITATIONS}
UPDATE understudy_ledger SET format = {FORMAT}
"""

# What the server's codes mean to somebody who wants to release; the first two characters will do.
_REASONS = {
    "28": "user name or password are refused",
    "3D": "there is no such database",
    "42501": "the role may not read and add entries: GRANT SELECT, INSERT ON understudy_entries",
    "25": "it is read-only, perhaps a standby",
    "53": "it is out of disk, memory or connections",
    "55P03": "another release holds it for too long",
}


def _driver() -> Any:
    try:
        import psycopg
    except ModuleNotFoundError:
        raise InputError("a ledger in PostgreSQL needs psycopg: pip install '.[sql]'") from None
    return psycopg


def _parts(address: str) -> dict[str, Any]:
    psycopg = _driver()
    try:
        return psycopg.conninfo.conninfo_to_dict(address)
    except psycopg.Error:
        raise InputError(
            "the ledger's address cannot be read; write postgresql://USER@HOST:PORT/DATABASE, and "
            "give the password in PGPASSWORD or ~/.pgpass"
        ) from None


def shown(address: str) -> str:
    """The address without password or options; never fails."""
    try:
        parts = _parts(address)
    except InputError:
        return "postgresql://…"
    user, host, port = (parts.get(key) for key in ("user", "host", "port"))
    text = f"{user}@" if user else ""
    text += str(host or "localhost") + (f":{port}" if port else "")
    return f"postgresql://{text}/{parts.get('dbname', '')}"


class PostgresStore(Store):
    """The tables `understudy_…` of a database, made where missing."""

    _prefix = "understudy_"
    _mark = "%s"

    def __init__(self, server: Server, timeout: float) -> None:
        self.place = server
        self._timeout = timeout
        self._psycopg = _driver()
        _parts(server.address)
        self._db = self._connect()
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise

    # -- the connection --------------------------------------------------------------------------

    def _connect(self) -> psycopg.Connection[Any]:
        psycopg = self._psycopg
        try:
            # Nothing is prepared, so that a pool of connections may stand between.
            made = psycopg.connect(
                self.place_address,
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=_CONNECT_SECONDS,
                application_name="understudy ledger",
            )
        except psycopg.Error as error:
            raise InputError(
                f"ledger {self.place} cannot be opened: {self._reason(error)}"
            ) from None
        # A snapshot from before the wait for the lock would miss what others wrote meanwhile.
        made.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return made

    @property
    def place_address(self) -> str:
        """With the password; for the driver alone."""
        assert isinstance(self.place, Server)
        return self.place.address

    def close(self) -> None:
        """Close the connection."""
        with suppress(self._psycopg.Error):
            self._db.close()

    def recover(self) -> None:
        """Connect again, for as long as `timeout` says: servers restart."""
        deadline = time.monotonic() + self._timeout
        self.close()
        while True:
            try:
                self._db = self._connect()
                return
            except InputError as error:
                if time.monotonic() > deadline:
                    raise WorkError(
                        f"{error}; what was charged until now stays in the ledger"
                    ) from None
            time.sleep(_PAUSE)

    def _state(self, error: Exception) -> str:
        """The server's code for what is wrong; nothing where the server did not say it."""
        driver: Any = self._psycopg
        match error:
            case driver.Error(sqlstate=str(state)):
                return state
            case _:
                return ""

    def _reason(self, error: Exception) -> str:
        """Why, without a word of the driver's own, which may quote the address."""
        state = self._state(error)
        for code, reason in _REASONS.items():
            if state.startswith(code):
                return reason
        if state:
            return f"the server says {state}"
        if "authentication" in str(error) or "password" in str(error):
            return _REASONS["28"]
        if "role" in str(error) and "does not exist" in str(error):
            return _REASONS["28"]
        if "database" in str(error) and "does not exist" in str(error):
            return _REASONS["3D"]
        return "no server answers there"

    # -- what a store does -----------------------------------------------------------------------

    def _prepare(self) -> None:
        if not self._made():
            with self.writing():
                if not self._made():
                    self._db.execute(_TABLES.encode())
        if self._format() == 1:
            try:
                with self.writing():
                    if self._format() == 1:
                        self._db.execute(_FROM_1.encode())
            except LedgerError:
                raise InputError(
                    f"ledger {self.place} has format 1; open it once as the role that made its "
                    f"tables, which brings it to format {FORMAT}"
                ) from None
        if self._format() != FORMAT:
            raise InputError(
                f"ledger {self.place} has format {self._format() or 'unknown'}, this understudy "
                f"reads {FORMAT}; use the understudy that wrote it"
            )
        if self._rows("SHOW fsync")[0][0] != "on":
            raise InputError(
                f"ledger {self.place}: the server runs with fsync = off, so a charge could be "
                f"forgotten in a crash; switch it on"
            )

    def _format(self) -> int | None:
        found = self._rows("SELECT format FROM understudy_ledger")
        return int(found[0][0]) if len(found) == 1 else None

    def _made(self) -> bool:
        # A look at the catalogue, not by name: names are remembered over the wait for the lock.
        return bool(
            self._rows(
                "SELECT 1 FROM pg_catalog.pg_tables WHERE tablename = 'understudy_entries'"
                " AND schemaname = ANY (current_schemas(false))"
            )
        )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction under the lock; a machine that hangs in it is thrown out."""
        psycopg, wait = self._psycopg, int(1000 * self._timeout)
        try:
            with self._db.transaction():
                self._fetched(
                    f"SELECT set_config('lock_timeout', '{wait}', true),"
                    f" set_config('idle_in_transaction_session_timeout', '{wait}', true),"
                    " set_config('synchronous_commit', CASE current_setting('synchronous_commit')"
                    " WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)"
                )
                self._fetched("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                yield
        except psycopg.Error as error:
            if self._db.broken or self._db.closed:
                raise Lost from None
            raise self._refusal(error) from None

    def _refusal(self, error: Exception) -> Exception:
        text = f"ledger {self.place} cannot be written: {self._reason(error)}"
        full = self._state(error).startswith("53")
        return WorkError(text) if full else LedgerError(text)

    def _rows(self, sql: str, arguments: Sequence[Any] = ()) -> list[Any]:
        """Inside a block an error ends the block; outside, a lost connection is made again."""
        psycopg = self._psycopg
        if self._db.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS:
            return self._fetched(sql, arguments)
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return self._fetched(sql, arguments)
            except psycopg.Error as error:
                if not (self._db.broken or self._db.closed) or time.monotonic() > deadline:
                    raise self._refusal(error) from None
            self.recover()

    def _fetched(self, sql: str, arguments: Sequence[Any] = ()) -> list[Any]:
        # Without arguments a per cent sign is itself.
        cursor = self._db.execute(sql.encode(), tuple(arguments) or None)
        return cursor.fetchall() if cursor.description is not None else []
