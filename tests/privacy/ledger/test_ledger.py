"""The ledger: exact budgets, charges durable before any draw, a chain that shows every edit."""

import multiprocessing
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from fractions import Fraction

import pytest

from tests.thorough import examples
from understudy.errors import (
    BudgetExhausted,
    InputError,
    LedgerError,
    PrivacyError,
    RelationError,
    UnderstudyError,
)
from understudy.privacy import accounting
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Charge, Gaussian, Laplace, Plan
from understudy.privacy.ledger import Ledger
from understudy.privacy.relation import Relation

TOTAL = Budget.of("1", "1e-9")
PART = Budget.of("0.1", "1e-10")
PLAN = Plan((Charge("count", Laplace(11.0)),))
RELATION = Relation.ADD_REMOVE


def reserve(ledger, budget=PART, plan=PLAN, name="people", relation=RELATION, **more):
    return ledger.reserve(name, budget, plan, relation=relation, **more)


def pure_plan(epsilon, purpose="count"):
    """One Laplace draw that costs a little less than this ε."""
    return Plan((Charge(purpose, Laplace(float(1.1 / float(epsilon)))),))


def spend(ledger, epsilon, delta=0, name="people"):
    reservation = reserve(ledger, Budget.of(epsilon, delta), pure_plan(Fraction(epsilon)), name)
    reservation.charge("count")
    reservation.settle("finished")


def kinds(ledger, name="people"):
    return [entry.kind for entry in ledger.entries(name)]


# --- datasets -----------------------------------------------------------------------------------


def test_a_dataset_keeps_its_facts(path):
    with Ledger(path) as ledger:
        ledger.open_dataset("people", TOTAL, Relation.REPLACE, composition="zcdp", rows_public=500)
    with Ledger(path) as again:
        dataset = again.dataset("people")
    assert dataset.name == "people"
    assert dataset.budget == TOTAL
    assert dataset.relation is Relation.REPLACE
    assert dataset.composition == "zcdp"
    assert dataset.rows_public == 500


def test_opening_twice_is_fine_only_with_the_same_facts(ledger):
    ledger.open_dataset("people", TOTAL, RELATION, "basic")
    assert kinds(ledger) == ["open"]
    for other in (
        {"budget": Budget.of(2, "1e-9")},
        {"budget": Budget.of(1, "1e-8")},
        {"relation": Relation.REPLACE, "rows_public": 7},
        {"composition": "zcdp"},
        {"rows_public": 7},
    ):
        facts = {"budget": TOTAL, "relation": RELATION, **other}
        with pytest.raises(InputError, match="people"):
            ledger.open_dataset("people", **facts)
    assert ledger.dataset("people").budget == TOTAL
    assert kinds(ledger) == ["open"]


def test_an_unknown_dataset_is_named_with_those_that_exist(ledger):
    for ask in (
        lambda: ledger.dataset("peeple"),
        lambda: ledger.spent("peeple"),
        lambda: reserve(ledger, name="peeple"),
    ):
        with pytest.raises(InputError) as caught:
            ask()
        assert "peeple" in str(caught.value)
        assert "people" in str(caught.value)


def test_replace_needs_a_public_number_of_rows(ledger):
    with pytest.raises(InputError, match="rows"):
        ledger.open_dataset("places", TOTAL, Relation.REPLACE)


def test_an_unknown_composition_is_refused(ledger):
    with pytest.raises(UnderstudyError):
        ledger.open_dataset("other", TOTAL, RELATION, composition="none")


def test_a_file_that_is_no_ledger_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database " * 100)
    with pytest.raises(UnderstudyError):
        Ledger(path).dataset("people")
    assert path.read_text() == "not a database " * 100


# --- the budget filter --------------------------------------------------------------------------


def test_a_plan_must_fit_its_reservation(ledger):
    plan = Plan((Charge("count", Laplace(9.0)),))
    with pytest.raises(PrivacyError):
        reserve(ledger, Budget.of("0.1", 0), plan)
    with pytest.raises(PrivacyError):
        reserve(ledger, Budget.of("0.1", "1e-10"), Plan((Charge("g", Gaussian(5.0)),)))
    twice = Plan((Charge("count", Laplace(11.0), times=2),))
    with pytest.raises(PrivacyError):
        reserve(ledger, Budget.of("0.1", 0), twice)
    assert kinds(ledger) == ["open"]


def test_relations_do_not_mix(ledger):
    with pytest.raises(RelationError):
        reserve(ledger, relation=Relation.REPLACE)
    assert kinds(ledger) == ["open"]


# --- slots --------------------------------------------------------------------------------------


def test_an_unknown_outcome_is_refused(ledger):
    with pytest.raises(UnderstudyError):
        reserve(ledger).settle("perhaps")


def test_a_dead_reservation_is_closed_from_outside(ledger, path):
    zombie = reserve(ledger)
    with Ledger(path) as other:
        other.settle(zombie.id)
        assert other.spent("people").epsilon == 0
    with pytest.raises(LedgerError):
        zombie.charge("count")
    assert "charge" not in kinds(ledger)


def test_settling_from_outside_keeps_what_was_charged(ledger, path):
    zombie = reserve(ledger)
    zombie.charge("count")
    with Ledger(path) as other:
        other.settle(zombie.id)
        assert other.spent("people").epsilon == PART.epsilon


def test_settling_an_unknown_reservation_is_refused(ledger):
    with pytest.raises(UnderstudyError):
        ledger.settle("no-such-reservation")


# --- durability ---------------------------------------------------------------------------------


def test_commits_are_flushed_to_the_disk(path, monkeypatch):
    """A charge must survive a power cut: synchronous EXTRA (3), in every connection."""
    opened = []
    connect = sqlite3.connect

    def record(*args, **kwargs):
        opened.append(connect(*args, **kwargs))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", record)
    with Ledger(path) as ledger:
        ledger.open_dataset("people", TOTAL, RELATION, "basic")
        reserve(ledger).charge("count")
        assert opened
        for connection in opened:
            assert connection.execute("PRAGMA synchronous").fetchone()[0] == 3
            assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete"


FORK = multiprocessing.get_context("fork")


def forked(task, *args):
    """Run task in a forked child; its exit code is what task returns, 99 if it raised."""
    pid = os.fork()
    if pid:
        return pid
    code = 99
    try:
        code = task(*args) or 0
    finally:
        os._exit(code)


def race(path, barrier):
    barrier.wait()
    with Ledger(path) as ledger:
        try:
            reservation = reserve(ledger, Budget.of("0.3", 0), pure_plan("0.3"))
        except BudgetExhausted:
            return 7
        reservation.charge("count")
        reservation.settle("finished")
    return 0


def exit_codes(pids):
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


@pytest.mark.forks
def test_eight_processes_race_for_a_budget_that_fits_three(path):
    with Ledger(path) as ledger:
        ledger.open_dataset("people", TOTAL, RELATION, "basic")
    accounting.epsilon(pure_plan("0.3"), 0)  # imports happen before the fork
    barrier = FORK.Barrier(8)
    codes = exit_codes([forked(race, path, barrier) for _ in range(8)])
    assert Counter(codes) == {0: 3, 7: 5}
    with Ledger(path) as ledger:
        assert ledger.spent("people").epsilon == Fraction(9, 10)
        assert Counter(kinds(ledger)) == {"open": 1, "reserve": 3, "charge": 3, "settle": 3}
        ledger.verify("people")


def create(path, barrier):
    barrier.wait()
    with Ledger(path) as ledger:
        ledger.open_dataset("people", TOTAL, RELATION, "basic")
    return 0


@pytest.mark.forks
def test_eight_processes_create_one_ledger(path):
    barrier = FORK.Barrier(8)
    assert exit_codes([forked(create, path, barrier) for _ in range(8)]) == [0] * 8
    with Ledger(path) as ledger:
        assert kinds(ledger) == ["open"]
        ledger.verify("people")


def spend_little(path, barrier):
    barrier.wait()
    with Ledger(path) as ledger:
        spend(ledger, "0.01")
    return 0


@pytest.mark.forks
def test_writers_at_the_same_time_leave_one_chain(path):
    with Ledger(path) as ledger:
        ledger.open_dataset("people", TOTAL, RELATION, "basic")
    barrier = FORK.Barrier(6)
    assert exit_codes([forked(spend_little, path, barrier) for _ in range(6)]) == [0] * 6
    with Ledger(path) as ledger:
        entries = ledger.entries("people")
        ledger.verify("people")
        assert len(entries) == 1 + 3 * 6
        assert ledger.spent("people").epsilon == Fraction(6, 100)


# --- SIGKILL ------------------------------------------------------------------------------------

CROWD, STEP = 25, Fraction(1, 1000)
KILL_PLAN = Plan((Charge("a", Laplace(2500.0)), Charge("b", Laplace(5000.0), times=2)))


def datasets_of(ledger):
    names = []
    for i in range(200):
        try:
            names.append(ledger.dataset(f"d{i}").name)
        except InputError:
            break
    return names


def worker(path, side, charge_first=True, ready=None):
    """Reserve, charge, and write down each draw after its charge, until the budgets are gone."""
    out = os.open(side, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with Ledger(path) as ledger:
        if ready is not None:
            ready.wait()
        names = datasets_of(ledger)
        random.Random(os.getpid()).shuffle(names)
        for name in names:
            while True:
                try:
                    reservation = reserve(ledger, Budget.of(STEP, 0), KILL_PLAN, name)
                except BudgetExhausted:
                    break
                for purpose in ("a", "b", "b"):
                    line = f"{name} {reservation.id} {purpose}\n".encode()
                    if not charge_first:
                        os.write(out, line)
                        os.kill(os.getpid(), signal.SIGKILL)
                    reservation.charge(purpose)
                    os.write(out, line)
                reservation.settle("finished")
    return 0


def draws_without_charge(path, side):
    """Every draw written to the side file that has no durable charge of its own."""
    charged = Counter()
    with Ledger(path) as ledger:
        for name in datasets_of(ledger):
            for entry in ledger.entries(name):
                if entry.kind == "charge":
                    charged[name, entry.body["reservation"], entry.body["purpose"]] += 1
    drawn = Counter(tuple(line.split()) for line in side.read_text().splitlines())
    return drawn - charged


def prepare(path, datasets):
    with Ledger(path) as ledger:
        for i in range(datasets):
            ledger.open_dataset(f"d{i}", Budget.of(CROWD * STEP, 0), RELATION)
    accounting.epsilon(KILL_PLAN, 0)


def grows(side, size):
    """Wait until the children have written down more than this; False once they are all done."""
    for _ in range(15_000):
        if side.exists() and side.stat().st_size > size:
            return True
        time.sleep(0.002)
    return False


def survive(path, side, kills, seed):
    rng = random.Random(seed)
    prepare(path, datasets=4 * kills)  # more than the children spend meanwhile, on a fast disk too
    living = [forked(worker, path, side) for _ in range(2)]
    written = 0
    for _ in range(kills):
        assert grows(side, written), "the children stood still; nothing was tested"
        time.sleep(rng.uniform(0.0, 0.012))
        written = side.stat().st_size
        victim = living.pop(rng.randrange(len(living)))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        living.append(forked(worker, path, side))
    for pid in living:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    assert not draws_without_charge(path, side)
    unsettled = 0
    with Ledger(path) as ledger:
        for name in datasets_of(ledger):
            ledger.verify(name)
            assert ledger.spent(name).epsilon <= CROWD * STEP
            entries = ledger.entries(name)
            opened = {e.body["reservation"] for e in entries if e.kind == "reserve"}
            closed = {e.body["reservation"] for e in entries if e.kind == "settle"}
            charged = {e.body["reservation"] for e in entries if e.kind == "charge"}
            assert charged <= opened
            assert len(opened) <= CROWD
            unsettled += len(opened - closed)
            for dead in opened - closed:
                ledger.settle(dead)
            assert ledger.spent(name).epsilon == len(charged) * STEP
            ledger.verify(name)
    assert unsettled > 0, "no child was caught in the middle of its work"


@pytest.mark.forks
def test_killed_processes_never_leave_a_draw_without_its_charge(path, tmp_path):
    survive(path, tmp_path / "side.txt", kills=examples(20, 60), seed=1)


@pytest.mark.forks
def test_drawing_before_charging_is_caught_by_the_same_check(path, tmp_path):
    side = tmp_path / "side.txt"
    prepare(path, datasets=1)
    assert exit_codes([forked(worker, path, side, False)]) == [-signal.SIGKILL]
    assert sum(draws_without_charge(path, side).values()) == 1


# --- the chain ----------------------------------------------------------------------------------


def history(ledger):
    for _ in range(3):
        spend(ledger, "0.1", "1e-10")
    ledger.open_dataset("places", TOTAL, RELATION, "basic")
    spend(ledger, "0.2", name="places")


def test_no_private_value_and_no_seed_is_in_the_entries(ledger):
    history(ledger)
    for entry in ledger.entries("people"):
        assert set(entry.body) <= {
            *("budget", "composition", "dataset", "relation", "rows_public", "time"),
            *("facts", "noise", "plan", "reservation", "event", "purpose", "outcome", "writer"),
        }


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = '{}'",
        "UPDATE entries SET hash = 'x' WHERE rowid = (SELECT max(rowid) FROM entries)",
        "DELETE FROM entries",
        "DELETE FROM entries WHERE rowid = (SELECT max(rowid) FROM entries)",
        "INSERT OR REPLACE INTO entries SELECT * FROM entries",
        "REPLACE INTO entries SELECT * FROM entries",
        "UPDATE OR REPLACE entries SET seq = seq + 1",
    ],
)
def test_sql_cannot_change_what_is_written(ledger, path, statement):
    history(ledger)
    before = ledger.entries("people")
    with closing(sqlite3.connect(path)) as raw, pytest.raises(sqlite3.Error):
        raw.executescript(f"BEGIN; {statement}; COMMIT;")
    assert ledger.entries("people") == before
