"""Ways in which a ledger could be spent twice, or lied about, that were tried and must stay closed."""

import random
import shutil
import sqlite3
from contextlib import closing, contextmanager

import pytest

from tests.privacy.ledger.test_books import GAUSS
from tests.privacy.ledger.test_ledger import (
    PART,
    PLAN,
    RELATION,
    TOTAL,
    kinds,
    pure_plan,
    reserve,
    spend,
)
from understudy.errors import BudgetExhausted, ChainBroken, InputError, LedgerError, UnderstudyError
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget
from understudy.privacy.chain import Entry
from understudy.privacy.cost import Charge, Gaussian, Laplace, Plan, Zcdp
from understudy.privacy.ledger import Books, Ledger
from understudy.privacy.stores import Lost

TWICE = Plan((Charge("a", Laplace(40.0)), Charge("b", Laplace(40.0), times=2)))
GOOD = Plan((Charge("g", Gaussian(40.0)),))


# --- damaged files ------------------------------------------------------------------------------


def used_ledger(path):
    """Two accounts, one for each rule of composition, with closed and open releases."""
    with Ledger(path) as ledger:
        for name, rule in (("people", "basic"), ("places", "zcdp")):
            ledger.open_dataset(name, TOTAL, RELATION, rule)
            for outcome in ("finished", "aborted"):
                made = reserve(ledger, Budget.of("0.4", "2e-10"), GAUSS, name)
                made.charge("a")
                made.charge("b")
                made.settle(outcome)
            reserve(ledger, Budget.of("0.1", "2e-10"), Plan((Charge("x", Gaussian(200.0)),)), name)
        return {name: _seen(ledger, name) for name in ledger.datasets()}


def _seen(ledger, name):
    return ledger.spent(name), ledger.books(name).more_like(Budget.of("0.05", "1e-10"), GOOD)


def never_more(file, before):
    """What a damaged ledger allows: no more than it did, and it says so in words of ours."""
    outcomes = set()
    try:
        with Ledger(file, timeout=1) as ledger:
            for name, (known, fit) in before.items():
                try:
                    now, more = _seen(ledger, name)
                    assert now.epsilon >= known.epsilon
                    assert now.remaining_epsilon <= known.remaining_epsilon
                    assert now.remaining_delta <= known.remaining_delta
                    assert more <= fit
                    small = Plan((Charge("x", Gaussian(1000.0)),))
                    reserve(ledger, Budget.of("0.01", "1e-11"), small, name).charge("x")
                    outcomes.add("whole")
                except UnderstudyError as error:
                    outcomes.add(type(error).__name__)
    except UnderstudyError as error:
        outcomes.add(type(error).__name__)
    return outcomes


def flips(path, number, seed, made=used_ledger):
    before = made(path)
    whole, rng = path.read_bytes(), random.Random(seed)
    damaged = path.with_name("damaged.ledger")
    seen = set()
    for _ in range(number):
        changed = bytearray(whole)
        at = rng.randrange(len(whole))
        changed[at] ^= rng.randrange(1, 256)
        damaged.write_bytes(changed)
        for ending in ("-journal", "-wal", "-shm"):
            damaged.with_name(damaged.name + ending).unlink(missing_ok=True)
        seen |= never_more(damaged, before)
    return seen


def test_no_flipped_byte_frees_budget(path):
    seen = flips(path, 200, seed=1)
    assert {"whole", "ChainBroken", "InputError"} <= seen


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_thousand_flipped_bytes(path, seed):
    flips(path, 10_000, seed + 100)


def old_tables(path):
    """A ledger as format 1 had it: spending was read through an index by release."""
    before = used_ledger(path)
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT dataset, seq, kind, body, digest, prev, hash FROM entries")
        rows = rows.fetchall()
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(
            """
            CREATE TABLE entries (dataset TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL,
                body TEXT NOT NULL, digest TEXT NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL,
                reservation TEXT GENERATED ALWAYS AS (json_extract(body, '$.reservation')) VIRTUAL,
                PRIMARY KEY (dataset, seq));
            CREATE INDEX by_reservation ON entries (dataset, reservation, kind);
            CREATE TRIGGER no_update BEFORE UPDATE ON entries
                BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
            CREATE TRIGGER no_delete BEFORE DELETE ON entries
                BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
            PRAGMA user_version = 1;
            """
        )
        with db:
            insert = "INSERT INTO entries (dataset, seq, kind, body, digest, prev, hash)"
            db.executemany(f"{insert} VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    return before


@pytest.mark.slow
def test_no_flipped_byte_of_an_older_ledger_frees_budget(path):
    """Of an index through which spending was read, one flipped byte in 150 did."""
    assert {"whole", "InputError"} <= flips(path, 200, 2, old_tables)


def test_an_index_that_lies_frees_nothing(path):
    """Rows of the index by release are taken away; the table keeps every charge."""
    old_tables(path)
    with closing(sqlite3.connect(path)) as db:
        (root,) = db.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'by_reservation'"
        ).fetchone()
        size = db.execute("PRAGMA page_size").fetchone()[0]
        db.execute("PRAGMA journal_mode = DELETE")
    data = bytearray(path.read_bytes())
    start = (root - 1) * size
    assert data[start] == 10  # a leaf of an index
    data[start + 3 : start + 5] = (0).to_bytes(2, "big")  # no cell at all
    path.write_bytes(data)
    with pytest.raises(InputError, match="damaged"):
        Ledger(path)


def test_entries_that_no_ledger_writes_are_refused(path, ledger):
    """A chain that holds, whose bodies make no sense, is an error of ours and not of Python."""
    books = ledger.books("people")
    for kind, body in [
        ("charge", {"reservation": "nobody", "purpose": "x", "event": {}}),
        ("reserve", {"reservation": "r"}),
        ("reserve", {"reservation": "r", "budget": {"epsilon": "1/0", "delta": "0"}, "plan": []}),
        ("open", {"dataset": "people"}),
        ("nonsense", {}),
        ("redraw", {"reservation": "nobody", "charge": 3}),
    ]:
        again = Books("people")
        again.add(ledger.entries("people"))
        with pytest.raises(ChainBroken):
            again.add([books.next(kind, body)])


# --- one draw under one charge --------------------------------------------------------------------


def test_a_charge_is_drawn_again_once(ledger):
    made = reserve(ledger, plan=TWICE)
    made.charge("a")
    assert made.redraw(2, "a") == Laplace(40.0)
    body = ledger.entries("people")[-1].body
    assert (body["reservation"], body["charge"]) == (made.id, 2)
    with pytest.raises(LedgerError, match="drawn again already"):
        made.redraw(2, "a")
    made.charge("b")
    assert made.redraw(4, "b", Laplace(40.0)) == Laplace(40.0)
    assert [(c.purpose, c.redrawn) for c in made.charged()] == [("a", True), ("b", True)]
    assert kinds(ledger)[2:] == ["charge", "redraw", "charge", "redraw"]
    ledger.verify("people")


def test_only_the_last_charge_is_drawn_again(ledger):
    made = reserve(ledger, plan=TWICE)
    with pytest.raises(LedgerError, match="for nothing"):
        made.redraw(2, "a")
    made.charge("a")
    for wrong in ((2, "b"), (2, "a", Laplace(41.0)), (1, "a"), (3, "a")):
        with pytest.raises(LedgerError, match="cannot be drawn again"):
            made.redraw(*wrong)
    made.charge("b")
    with pytest.raises(LedgerError, match="a copy of it has gone on"):
        made.redraw(2, "a")
    made.settle("aborted")
    with pytest.raises(LedgerError, match="settled"):
        made.redraw(3, "b")
    assert "redraw" not in kinds(ledger)


def test_a_copy_that_counts_for_long_does_not_draw_under_what_another_has_charged_since(
    path, ledger
):
    """Both are alike: the purpose and the event of the charge that waited, and of the next."""
    made = reserve(ledger, plan=TWICE)
    made.charge("b")  # and its rows could not be counted
    with Ledger(path) as first, Ledger(path) as second:
        quick, slow = (each.resume("people", made.id, PART, TWICE) for each in (first, second))
        (waiting,) = (c.seq for c in slow.charged())
        quick.redraw(waiting, "b")
        quick.charge("b")
        with pytest.raises(LedgerError, match="a copy of it has gone on"):
            slow.redraw(waiting, "b")
    assert kinds(ledger)[2:] == ["charge", "redraw", "charge"]


@pytest.mark.parametrize("kind", ["charge", "redraw"])
def test_a_copy_does_not_take_the_entry_of_another_for_its_own(path, ledger, monkeypatch, kind):
    """Its connection broke before the commit, and another copy has written just the same since."""
    made = reserve(ledger, plan=TWICE)
    if kind == "redraw":
        made.charge("a")
    with Ledger(path) as first, Ledger(path) as second:
        lost, other = (each.resume("people", made.id, PART, TWICE) for each in (first, second))
        ask = {"charge": lambda copy: copy.charge("a"), "redraw": lambda copy: copy.redraw(2, "a")}[
            kind
        ]
        whole = first._store.writing

        @contextmanager
        def breaks():
            monkeypatch.setattr(first._store, "writing", whole)
            try:
                with whole():
                    yield
                    raise Lost
            finally:
                ask(other)

        monkeypatch.setattr(first._store, "writing", breaks)
        monkeypatch.setattr(first._store, "recover", lambda: None)
        with pytest.raises(LedgerError):
            ask(lost)
    assert kinds(ledger).count(kind) == 1


def test_a_plan_that_names_a_slot_twice_fills_no_filter(tmp_path):
    with Ledger(tmp_path / "z") as ledger:
        ledger.open_dataset("people", TOTAL, RELATION, "zcdp")
        plan = Plan((Charge("x", Zcdp(0.001)), Charge("a", Gaussian(50.0))))
        made = reserve(ledger, Budget.of("0.9", "1e-9"), plan)
        with pytest.raises(UnderstudyError, match="named again: a"):
            made.refine("x", Plan((Charge("a", Gaussian(100.0)),)), {})
        assert "refine" not in kinds(ledger)


def test_eight_copies_of_a_release_draw_once(path, ledger):
    made = reserve(ledger, plan=TWICE)
    made.charge("a")
    with Ledger(path) as first:
        assert first.resume("people", made.id, PART, TWICE).redraw(2, "a") == Laplace(40.0)
    for _ in range(7):
        with Ledger(path) as other:
            copy = other.resume("people", made.id, PART, TWICE)
            with pytest.raises(LedgerError, match="elsewhere"):
                copy.redraw(2, "a")
    assert kinds(ledger).count("redraw") == 1


def test_a_second_redraw_in_the_chain_breaks_it(ledger):
    made = reserve(ledger, plan=TWICE)
    made.charge("a")
    made.redraw(2, "a")
    books = ledger.books("people")
    with pytest.raises(ChainBroken, match="once more"):
        books.add([books.next("redraw", {"reservation": made.id, "charge": 2})])


def test_a_redraw_of_a_filter_costs_nothing_more(tmp_path):
    with Ledger(tmp_path / "z") as ledger:
        ledger.open_dataset("people", TOTAL, RELATION, "zcdp")
        made = reserve(ledger, Budget.of("0.9", "1e-9"), Plan((Charge("x", Zcdp(0.01)),)))
        made.charge("x", Gaussian(10.0))
        assert made.redraw(2, "x", Gaussian(10.0)) == Gaussian(10.0)
        made.settle("finished")
        rho = accounting.rho(Gaussian(10.0))
        expected = accounting.epsilon_from_rho(rho, TOTAL.delta)
        assert float(ledger.spent("people").epsilon) == pytest.approx(expected)


# --- moving house -------------------------------------------------------------------------------


def test_a_dataset_is_not_moved_twice(tmp_path, path, ledger):
    b, c = tmp_path / "b.ledger", tmp_path / "c.ledger"
    with Ledger(b) as second, Ledger(c) as third:
        assert ledger.move_to(second) == ["people"]
        with pytest.raises(LedgerError, match=r"b\.ledger"):
            ledger.move_to(third)
        assert third.datasets() == []
        spend(second, "1")
        with pytest.raises(LedgerError, match="was moved"):
            spend(ledger, "0.1")


def test_a_move_is_not_finished_in_a_copy_of_the_target_from_before(tmp_path, path, ledger):
    b, copy = tmp_path / "b.ledger", tmp_path / "copy.ledger"
    with Ledger(b) as second:
        second.open_dataset("another", TOTAL, RELATION, "basic")
    shutil.copy(b, copy)
    with Ledger(b) as second:
        ledger.move_to(second)
    with Ledger(copy) as third, pytest.raises(LedgerError, match="can go nowhere else"):
        ledger.move_to(third)


def test_a_move_is_finished_where_it_was_begun_however_the_path_is_spelled(
    tmp_path, path, ledger, monkeypatch
):
    b = tmp_path / "b.ledger"
    with Ledger(b) as second:
        monkeypatch.setattr(second, "_take", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ledger.move_to(second)
    with Ledger(tmp_path / "c.ledger") as third, pytest.raises(LedgerError, match="nowhere else"):
        ledger.move_to(third)
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    with Ledger("./b.ledger") as second:
        assert ledger.move_to(second) == ["people"]
        assert ledger.move_to(second) == []
        spend(second, "1")
        assert second.move_to(ledger) == ["people"]  # and back
    with pytest.raises(BudgetExhausted):
        spend(ledger, "0.1")


def test_what_was_moved_away_does_not_hold_up_the_others(tmp_path, path, ledger):
    with Ledger(tmp_path / "b.ledger") as second, Ledger(tmp_path / "c.ledger") as third:
        ledger.move_to(second)
        ledger.open_dataset("new", TOTAL, RELATION, "basic")
        assert ledger.move_to(third) == ["new"]
        assert third.datasets() == ["new"]


# --- heads and backups ----------------------------------------------------------------------------


def test_a_head_shows_that_entries_were_cut_off(tmp_path, path, ledger):
    spend(ledger, "0.1")
    ledger.close()
    shutil.copy(path, tmp_path / "older")
    with Ledger(path) as newer:
        first = newer.head("people")
        spend(newer, "0.2")
        head = newer.head("people")
        newer.require_head("people", first)
        newer.require_head("people", head)
        assert head == f"6:{newer.entries('people')[-1].hash}"
    with Ledger(tmp_path / "older") as older:
        older.verify("people")  # nothing in it is wrong
        older.require_head("people", first)
        with pytest.raises(LedgerError, match="does not contain the head 6:"):
            older.require_head("people", head)
        for text in ("", "6", "6:abc", "x:" + 64 * "0", "-1:" + 64 * "0"):
            with pytest.raises(InputError, match="SEQ:HASH"):
                older.require_head("people", text)


def test_a_backup_has_everything_and_cannot_be_spent(tmp_path, path, ledger):
    spend(ledger, "0.1")
    held = reserve(ledger)
    file = tmp_path / "backup"
    assert ledger.backup(file) == ["people"]
    with pytest.raises(InputError, match="exists already"):
        ledger.backup(file)
    with Ledger(file) as backup:
        assert backup.entries("people") == ledger.entries("people")
        assert backup.spent("people") == ledger.spent("people")
        for refused in (
            lambda: spend(backup, "0.1"),
            lambda: backup.settle(held.id),
            lambda: backup.resume("people", held.id, PART, PLAN).charge("count"),
            lambda: backup.open_dataset("more", TOTAL),
        ):
            with pytest.raises(LedgerError, match="is a backup"):
                refused()
        with pytest.raises(InputError, match="is a backup"):
            ledger.move_to(backup)
    ledger.close()
    path.unlink()  # lost
    with Ledger(file) as backup, Ledger(tmp_path / "new") as new:
        assert backup.move_to(new) == ["people"]
        assert new.spent("people").epsilon == Budget.of("0.2", 0).epsilon
        spend(new, "0.8")
    nowhere = pytest.raises(LedgerError, match="nowhere else")
    with Ledger(file) as backup, Ledger(tmp_path / "second") as second, nowhere:
        backup.move_to(second)


def test_a_broken_ledger_leaves_no_backup(tmp_path, path, ledger):
    spend(ledger, "0.1")
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TRIGGER no_update")
        db.execute("UPDATE entries SET hash = prev WHERE seq = 2")
        db.commit()
    with pytest.raises(ChainBroken):
        ledger.backup(tmp_path / "backup")
    assert not (tmp_path / "backup").exists()


def test_entries_that_vanish_under_an_open_ledger_are_missed(path, ledger):
    spend(ledger, "0.1")
    assert len(ledger.books("people").hashes) == 4
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TRIGGER no_delete")
        db.execute("DELETE FROM entries WHERE seq > 1")
        db.commit()
    with pytest.raises(ChainBroken, match="changed or dropped"):
        ledger.spent("people")


# --- accounts that last -----------------------------------------------------------------------------


def gaussian_release(epsilon="1", delta="1e-9"):
    """A plan of Gaussian draws that uses (ε, δ) up by the tight conversion."""
    low, high = 1.0, 1e6
    for _ in range(80):
        middle = (low + high) / 2
        cost = accounting.epsilon(Plan((Charge("g", Gaussian(middle), times=9),)), float(delta))
        low, high = (middle, high) if cost.epsilon > float(epsilon) else (low, middle)
    return Plan((Charge("g", Gaussian(high), times=9),))


def test_a_budget_of_three_lasts_for_seven_or_eight_releases_of_one(path):
    one, plan = Budget.of(1, "1e-9"), gaussian_release()
    with Ledger(path) as ledger:
        opened = ledger.open_dataset("people", Budget.of(3, "1e-9"))
        assert opened.composition == "zcdp"
        forecast = ledger.books("people").more_like(one, plan)
        made = 0
        while True:
            assert ledger.books("people").more_like(one, plan) == forecast - made
            try:
                held = reserve(ledger, one, plan)
            except BudgetExhausted:
                break
            for _ in range(9):
                held.charge("g")
            held.settle("finished")
            made += 1
        assert made == forecast
        assert made in (7, 8)
        basic = ledger.open_dataset("basic", Budget.of(3, "3e-9"), composition="basic")
        assert ledger.books(basic.name).more_like(one, plan) == 3


def test_a_cancelled_release_costs_what_it_drew(path):
    one, plan = Budget.of(1, "1e-9"), gaussian_release()
    with Ledger(path) as ledger:
        for name, rule in (("z", "zcdp"), ("b", "basic")):
            ledger.open_dataset(name, Budget.of(3, "1e-8"), composition=rule)
            held = reserve(ledger, one, plan, name)
            held.charge("g")
            held.settle("aborted")
        rho = accounting.rho(plan["g"].event)
        drawn = accounting.epsilon_from_rho(rho, Budget.of(3, "1e-8").delta)
        assert float(ledger.spent("z").epsilon) == pytest.approx(drawn)
        assert drawn < 0.4
        assert ledger.spent("b").epsilon == 1


def test_without_a_delta_releases_add_up_by_epsilon(ledger):
    assert ledger.open_dataset("pure", Budget.of(1, 0)).composition == "basic"
    with pytest.raises(InputError, match="delta above 0"):
        ledger.open_dataset("other", Budget.of(1, 0), composition="zcdp")
    again = ledger.open_dataset("people", TOTAL, RELATION)  # without a word: as it is
    assert again.composition == "basic"


# --- times --------------------------------------------------------------------------------------


def test_only_what_begins_has_a_time(tmp_path, ledger):
    plan = Plan((Charge("x", Zcdp(0.00001)), Charge("a", Laplace(40.0))))
    made = reserve(ledger, Budget.of("0.5", "1e-10"), plan)
    made.charge("a")
    made.redraw(2, "a")
    made.refine("x", Plan((Charge("g", Gaussian(400.0)),)), {})
    made.settle("finished")
    made.publish("0" * 64)
    with Ledger(tmp_path / "b") as other:
        ledger.move_to(other)
        timed = {e.kind: "time" in e.body for e in other.entries("people")}
    assert timed == {
        **dict.fromkeys(["open", "reserve", "move", "arrive"], True),
        **dict.fromkeys(["charge", "redraw", "refine", "settle", "publish"], False),
    }


def test_a_clock_that_is_moved_back_is_harmless(ledger, monkeypatch):
    from datetime import UTC, datetime

    from understudy.privacy.ledger import ledger as module

    class Back:
        @staticmethod
        def now(_):
            return datetime(1999, 1, 1, tzinfo=UTC)

    spend(ledger, "0.1")
    monkeypatch.setattr(module, "datetime", Back)
    spend(ledger, "0.1")
    ledger.verify("people")
    assert ledger.spent("people").epsilon == Budget.of("0.2", 0).epsilon


# --- files that cannot be written -----------------------------------------------------------------


def test_an_error_is_not_hidden_by_an_account_that_cannot_be_closed(path, ledger, monkeypatch):
    made = reserve(ledger)

    def fail(*_, **__):
        raise LedgerError("ledger cannot be written")

    monkeypatch.setattr(ledger, "write", fail)
    with pytest.raises(ZeroDivisionError) as caught, made:
        1 / 0  # noqa: B018
    assert "stays open and holds its budget" in caught.value.__notes__[0]


def test_pure_plans_and_entries_are_unchanged(ledger):
    """The chain of a release that is shown: bodies of others are withheld, links are kept."""
    first = reserve(ledger, Budget.of("0.1", 0), pure_plan("0.1"))
    second = reserve(ledger, Budget.of("0.1", 0), pure_plan("0.1"))
    second.charge("count")
    first.charge("count")
    first.settle("finished")
    shown = first.entries()
    assert [entry.kind for entry in shown] == ["reserve", None, None, "charge", "settle"]
    assert all(isinstance(entry, Entry) for entry in shown)


# --- one release that takes a whole account ---------------------------------------------------------


def whole(total):
    """A plan that costs just the total, by a tighter rule than adding ρ."""
    return planning.calibrate(
        lambda rho: Plan((Charge("a", planning.gaussian(rho), 1), Charge("b", Laplace(4.0)))), total
    )


def test_the_first_release_may_take_the_whole_account_and_then_nothing_else_fits(tmp_path):
    total = Budget.of(1, "1e-9")
    plan, small = whole(total), Plan((Charge("a", Gaussian(1e6)),))
    with Ledger(tmp_path / "l") as ledger:
        ledger.open_dataset("t", total)
        assert ledger.books("t").more_like(total, plan) == 1
        made = ledger.reserve("t", total, plan, relation=RELATION)
        assert ledger.spent("t").remaining_epsilon == 0
        assert ledger.books("t").more_like(total, small) == 0
        with pytest.raises(BudgetExhausted):
            ledger.reserve("t", total, small, relation=RELATION)
        made.charge("b")
        made.settle("aborted")
        # It drew little, and the account is its own all the same.
        with pytest.raises(BudgetExhausted):
            ledger.reserve("t", total, small, relation=RELATION)
    with Ledger(tmp_path / "l") as again:
        assert again.spent("t").remaining_epsilon == 0


def test_settled_without_a_draw_it_gives_the_account_back(tmp_path):
    total = Budget.of(1, "1e-9")
    with Ledger(tmp_path / "l") as ledger:
        ledger.open_dataset("t", total)
        ledger.reserve("t", total, whole(total), relation=RELATION).settle("aborted")
        assert ledger.spent("t").epsilon == 0
        assert ledger.books("t").more_like(total, whole(total)) == 1


def test_after_another_release_it_does_not_fit(tmp_path):
    total, small = Budget.of(1, "1e-9"), Plan((Charge("a", Gaussian(1e6)),))
    with Ledger(tmp_path / "l") as ledger:
        ledger.open_dataset("t", total)
        ledger.reserve("t", total, small, relation=RELATION).charge("a")
        with pytest.raises(BudgetExhausted, match="Ask for at most about ε = 0"):
            ledger.reserve("t", total, whole(total), relation=RELATION)
