"""The ledger: exact budgets, charges durable before any draw, a chain that shows every edit."""

import hashlib
import json
import multiprocessing
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from fractions import Fraction
from itertools import pairwise

import pytest

from understudy.errors import (
    BudgetExhausted,
    ChainBroken,
    InputError,
    LedgerError,
    PrivacyError,
    RelationError,
    UnderstudyError,
)
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Charge, Discovery, Gaussian, Laplace, Plan, Selection, Zcdp
from understudy.privacy.ledger import Ledger
from understudy.privacy.relation import Relation

TOTAL = Budget.of("1", "1e-9")
PART = Budget.of("0.1", "1e-10")
PLAN = Plan((Charge("count", Laplace(11.0)),))
RELATION = Relation.ADD_REMOVE


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path):
    with Ledger(path) as opened:
        opened.open_dataset("people", TOTAL, RELATION, "basic")
        yield opened


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


def test_ten_tenths_fit_exactly_and_nothing_more(ledger):
    for _ in range(10):
        spend(ledger, "0.1", "1e-10")
    spent = ledger.spent("people")
    assert spent.epsilon == 1
    assert spent.delta == Fraction(1, 10**9)
    assert spent.remaining_epsilon == 0
    assert isinstance(spent.epsilon, Fraction)
    before = kinds(ledger)
    with pytest.raises(BudgetExhausted):
        spend(ledger, "1e-9")
    assert kinds(ledger) == before


def test_delta_is_a_budget_too(ledger):
    spend(ledger, "0.01", "6e-10")
    with pytest.raises(BudgetExhausted):
        spend(ledger, "0.01", "6e-10")
    spend(ledger, "0.01", "4e-10")


def test_an_open_reservation_counts_in_full(ledger):
    first = reserve(ledger, Budget.of("0.6", "1e-10"), pure_plan("0.6"))
    assert ledger.spent("people").epsilon == Fraction(3, 5)
    with pytest.raises(BudgetExhausted):
        reserve(ledger, Budget.of("0.5", "1e-10"), pure_plan("0.5"))
    first.settle("aborted")
    assert ledger.spent("people").epsilon == 0
    assert ledger.spent("people").remaining_epsilon == 1
    reserve(ledger, Budget.of("0.5", "1e-10"), pure_plan("0.5"))


def test_one_charge_makes_the_whole_reservation_count(ledger):
    plan = Plan((Charge("a", Laplace(40.0)), Charge("b", Laplace(40.0))))
    reservation = reserve(ledger, plan=plan)
    reservation.charge("a")
    reservation.settle("aborted")
    assert ledger.spent("people").epsilon == PART.epsilon
    assert ledger.spent("people").delta == PART.delta


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


@pytest.mark.parametrize("seed", range(3))
def test_any_history_agrees_with_exact_addition(ledger, seed):
    """Random reservations, some charged, some not, some left open: the filter is one exact sum."""
    rng = random.Random(seed)
    counted = Fraction(0)
    for _ in range(25):
        epsilon = Fraction(rng.randint(1, 170), 1000)
        budget = Budget.of(epsilon, 0)
        if counted + epsilon > 1:
            with pytest.raises(BudgetExhausted):
                reserve(ledger, budget, pure_plan(epsilon))
            continue
        reservation = reserve(ledger, budget, pure_plan(epsilon))
        charged, settled = rng.random() < 0.6, rng.random() < 0.7
        if charged:
            reservation.charge("count")
        if settled:
            reservation.settle(rng.choice(["finished", "aborted"]))
        if charged or not settled:
            counted += epsilon
        assert ledger.spent("people").epsilon == counted
        assert ledger.spent("people").remaining_epsilon == 1 - counted
    ledger.verify("people")


def test_datasets_do_not_share_budgets(ledger):
    ledger.open_dataset("places", TOTAL, Relation.REPLACE, "basic", 90)
    spend(ledger, "1")
    assert ledger.spent("places").epsilon == 0
    reserve(ledger, name="places", relation=Relation.REPLACE)
    with pytest.raises(BudgetExhausted):
        spend(ledger, "0.1")


def test_relations_do_not_mix(ledger):
    with pytest.raises(RelationError):
        reserve(ledger, relation=Relation.REPLACE)
    assert kinds(ledger) == ["open"]


# --- zCDP composition ---------------------------------------------------------------------------


@pytest.fixture
def zledger(path):
    with Ledger(path) as opened:
        opened.open_dataset("people", TOTAL, RELATION, composition="zcdp")
        yield opened


GAUSS = Plan((Charge("a", Gaussian(100.0)), Charge("b", Gaussian(50.0), times=2)))
RHO_A, RHO_B = accounting.rho(Gaussian(100.0)), accounting.rho(Gaussian(50.0))


def assert_spent_rho(ledger, rho):
    spent = ledger.spent("people")
    expected = accounting.epsilon_from_rho(rho, TOTAL.delta) if rho else 0
    assert float(spent.epsilon) == pytest.approx(expected, rel=1e-9)
    assert spent.epsilon >= Fraction(expected) * (1 - Fraction(1, 10**12))


def test_zcdp_counts_whole_plans_while_open_and_charges_once_settled(zledger):
    reservation = reserve(zledger, Budget.of("0.5", "1e-9"), GAUSS)
    assert_spent_rho(zledger, RHO_A + 2 * RHO_B)
    reservation.charge("b")
    assert_spent_rho(zledger, RHO_A + 2 * RHO_B)
    reservation.settle("aborted")
    assert_spent_rho(zledger, RHO_B)
    reserve(zledger, Budget.of("0.5", "1e-9"), GAUSS).settle("aborted")
    assert_spent_rho(zledger, RHO_B)


def test_zcdp_composition_fits_more_than_basic_but_never_too_much(zledger):
    total = planning.rho_for(TOTAL)
    plan = Plan((Charge("g", Gaussian(40.0)),))
    own = accounting.epsilon(plan, TOTAL.delta).epsilon
    budget = Budget.of(own * 1.0001, TOTAL.delta)
    made = 0
    while made < 10_000:
        try:
            reservation = reserve(zledger, budget, plan)
        except BudgetExhausted:
            break
        reservation.charge("g")
        reservation.settle("finished")
        made += 1
    assert made == int(total / accounting.rho(Gaussian(40.0)))
    assert made > 1 / own
    assert zledger.spent("people").epsilon <= TOTAL.epsilon


# --- slots --------------------------------------------------------------------------------------


def test_a_charge_returns_the_event_of_the_plan(ledger):
    plan = Plan((Charge("a", Selection(90.0, k=2)), Charge("b", Laplace(40.0), times=2)))
    reservation = reserve(ledger, plan=plan)
    assert reservation.charge("a") == Selection(90.0, k=2)
    assert reservation.charge("b") == Laplace(40.0)
    assert reservation.charge("b") == Laplace(40.0)
    for purpose in ("a", "b"):
        with pytest.raises((LedgerError, BudgetExhausted), match=purpose):
            reservation.charge(purpose)
    assert kinds(ledger).count("charge") == 3


def test_an_unknown_purpose_is_refused(ledger):
    reservation = reserve(ledger)
    with pytest.raises(LedgerError, match="measure"):
        reservation.charge("measure")
    assert "charge" not in kinds(ledger)


@pytest.mark.parametrize("outcome", ["finished", "aborted"])
def test_a_settled_reservation_is_closed(ledger, outcome):
    reservation = reserve(ledger)
    reservation.settle(outcome)
    with pytest.raises(LedgerError):
        reservation.charge("count")
    assert kinds(ledger) == ["open", "reserve", "settle"]
    assert ledger.entries("people")[-1].body["outcome"] == outcome


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


def test_the_context_aborts_on_an_exception(ledger):
    with pytest.raises(ZeroDivisionError), reserve(ledger) as reservation:
        1 / 0  # noqa: B018
    assert ledger.entries("people")[-1].body["outcome"] == "aborted"
    with pytest.raises(LedgerError):
        reservation.charge("count")


def test_the_context_aborts_without_settle_and_keeps_a_settle(ledger):
    with reserve(ledger):
        pass
    assert ledger.entries("people")[-1].body["outcome"] == "aborted"
    with reserve(ledger) as reservation:
        reservation.settle("finished")
    assert ledger.entries("people")[-1].body["outcome"] == "finished"


def test_an_allowance_is_drawn_down_and_no_further(zledger):
    plan = Plan((Charge("adaptive", Zcdp(0.01)), Charge("fixed", Gaussian(100.0))))
    reservation = reserve(zledger, Budget.of("0.9", "1e-9"), plan)
    draw = Gaussian(10.0)  # rho 0.005
    assert reservation.charge("adaptive", draw) == draw
    assert reservation.charge("adaptive", draw) == draw
    with pytest.raises(LedgerError):
        reservation.charge("adaptive", Gaussian(1e6))
    with pytest.raises(PrivacyError):
        reservation.charge("fixed", Gaussian(1e6))  # another event than the one reserved
    reservation.settle("finished")
    assert_spent_rho(zledger, 2 * accounting.rho(draw))


def test_an_allowance_refuses_one_draw_that_is_too_large(ledger):
    plan = Plan((Charge("adaptive", Zcdp(0.00001)),))
    reservation = reserve(ledger, plan=plan)
    with pytest.raises(LedgerError):
        reservation.charge("adaptive", Gaussian(200.0))
    assert "charge" not in kinds(ledger)


def test_an_allowance_of_rho_pays_for_no_delta(ledger):
    """A discovery costs δ by itself, which an allowance does not hold, however small its ρ is."""
    shown = Discovery(1000.0, 3000)
    assert accounting.rho(shown) < 0.00001 < shown.delta
    reservation = reserve(ledger, plan=Plan((Charge("adaptive", Zcdp(0.00001)),)))
    with pytest.raises(LedgerError):
        reservation.charge("adaptive", shown)
    with pytest.raises(PrivacyError, match="costs more than the allowance"):
        reservation.refine("adaptive", Plan((Charge("values", shown),)), {})
    assert set(kinds(ledger)) == {"open", "reserve"}


def test_noise_that_is_not_private_is_on_record(ledger):
    reserve(ledger, private_noise=True, facts={"method": "x"})
    reserve(ledger, private_noise=False, facts={"method": "x"})
    bodies = [dict(entry.body) for entry in ledger.entries("people") if entry.kind == "reserve"]
    for body in bodies:
        assert body["facts"] == {"method": "x"}
        for own in ("time", "reservation"):
            body.pop(own, None)
    assert bodies[0] != bodies[1]


def test_reservations_have_names_of_their_own(ledger):
    assert (
        len({reserve(ledger, Budget.of("0.01", 0), pure_plan("0.01")).id for _ in range(20)}) == 20
    )


# --- durability ---------------------------------------------------------------------------------


def charges_seen(path, name="people"):
    with Ledger(path) as other:
        return [entry.body for entry in other.entries(name) if entry.kind == "charge"]


def test_a_charge_is_seen_by_others_before_it_returns(ledger, path):
    reservation = reserve(ledger, plan=Plan((Charge("a", Laplace(40.0), times=3),)))
    for made in range(1, 4):
        reservation.charge("a")
        assert len(charges_seen(path)) == made


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
    prepare(path, datasets=kills)
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
    survive(path, tmp_path / "side.txt", kills=60, seed=1)


@pytest.mark.forks
def test_drawing_before_charging_is_caught_by_the_same_check(path, tmp_path):
    side = tmp_path / "side.txt"
    prepare(path, datasets=1)
    assert exit_codes([forked(worker, path, side, False)]) == [-signal.SIGKILL]
    assert sum(draws_without_charge(path, side).values()) == 1


# --- the chain ----------------------------------------------------------------------------------


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def history(ledger):
    for _ in range(3):
        spend(ledger, "0.1", "1e-10")
    ledger.open_dataset("places", TOTAL, RELATION, "basic")
    spend(ledger, "0.2", name="places")


def test_entries_form_a_chain_that_anyone_can_recompute(ledger):
    history(ledger)
    entries = ledger.entries("people")
    assert [entry.seq for entry in entries] == list(range(entries[0].seq, entries[0].seq + 10))
    for before, after in pairwise(entries):
        assert after.prev == before.hash
    for entry in entries:
        link = {"seq": entry.seq, "prev": entry.prev, "digest": entry.digest}
        assert hashlib.sha256(canonical(link)).hexdigest() == entry.hash
    assert len({entry.hash for entry in entries}) == len(entries)
    ledger.verify("people")
    ledger.verify("places")


def test_two_datasets_do_not_share_a_first_link(ledger):
    history(ledger)
    assert ledger.entries("people")[0].hash != ledger.entries("places")[0].hash


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


def tampered(path, *statements):
    with closing(sqlite3.connect(path)) as raw:
        triggers = raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            raw.execute(f'DROP TRIGGER "{name}"')
        for statement in statements:
            raw.execute(statement)
        raw.commit()


def assert_broken(path, name="people"):
    with pytest.raises(ChainBroken), Ledger(path) as ledger:
        ledger.verify(name)


def columns(path):
    with closing(sqlite3.connect(path)) as raw:
        return [row[1] for row in raw.execute("PRAGMA table_info(entries)")]


@pytest.mark.parametrize("seq", [0, 1, 2, 3, 8, 9])
@pytest.mark.parametrize("column", ["kind", "body", "digest", "prev", "hash"])
def test_any_edited_field_breaks_the_chain(ledger, path, column, seq):
    history(ledger)
    ledger.close()
    assert column in columns(path)
    new = f"substr({column}, 2) || '0'"
    if column == "kind":
        new = "CASE kind WHEN 'charge' THEN 'settle' ELSE 'charge' END"
    if column == "body":  # a change of meaning, not of spacing
        with closing(sqlite3.connect(path)) as raw:
            query = "SELECT body FROM entries WHERE dataset = 'people' AND seq = ?"
            body = json.loads(raw.execute(query, (seq,)).fetchone()[0])
        body["note"] = "changed"
        new = "'" + canonical(body).decode().replace("'", "''") + "'"
    tampered(path, f"UPDATE entries SET {column} = {new} WHERE dataset = 'people' AND seq = {seq}")
    assert_broken(path)


def test_a_smaller_charge_breaks_the_chain(ledger, path):
    """The edit that pays: a restated budget, with everything else left as it was."""
    history(ledger)
    ledger.close()
    tampered(path, "UPDATE entries SET body = replace(body, '\"0.1\"', '\"0.01\"')")
    assert_broken(path)


@pytest.mark.parametrize("seq", [0, 1, 4, 8])
def test_a_deleted_entry_breaks_the_chain(ledger, path, seq):
    history(ledger)
    ledger.close()
    tampered(path, f"DELETE FROM entries WHERE dataset = 'people' AND seq = {seq}")
    assert_broken(path)


@pytest.mark.parametrize("seq", [1, 4, 8])
def test_a_deleted_entry_with_the_rest_renumbered_breaks_the_chain(ledger, path, seq):
    history(ledger)
    ledger.close()
    later = [
        f"UPDATE entries SET seq = {s - 1} WHERE dataset = 'people' AND seq = {s}"
        for s in range(seq + 1, 10)
    ]
    tampered(path, f"DELETE FROM entries WHERE dataset = 'people' AND seq = {seq}", *later)
    assert_broken(path)


@pytest.mark.parametrize(("a", "b"), [(1, 2), (2, 5), (3, 6)])
def test_swapped_entries_break_the_chain(ledger, path, a, b):
    history(ledger)
    ledger.close()
    move = "UPDATE entries SET seq = {} WHERE dataset = 'people' AND seq = {}"
    tampered(path, move.format(1000, a), move.format(a, b), move.format(b, 1000))
    assert_broken(path)


@pytest.mark.parametrize(("a", "b"), [(1, 4), (2, 5)])
def test_swapped_bodies_break_the_chain(ledger, path, a, b):
    history(ledger)
    ledger.close()
    with closing(sqlite3.connect(path)) as raw:
        query = "SELECT body FROM entries WHERE dataset = 'people' AND seq = ?"
        bodies = [raw.execute(query, (seq,)).fetchone()[0].replace("'", "''") for seq in (a, b)]
    put = "UPDATE entries SET body = '{}' WHERE dataset = 'people' AND seq = {}"
    tampered(path, put.format(bodies[1], a), put.format(bodies[0], b))
    assert_broken(path)


def test_an_entry_moved_to_another_dataset_breaks_a_chain(ledger, path):
    history(ledger)
    ledger.close()
    tampered(path, "UPDATE entries SET dataset = 'ghost' WHERE dataset = 'people' AND seq = 2")
    assert_broken(path)


def test_a_renamed_dataset_breaks_its_chain(ledger, path):
    """The whole chain under another name: a spent budget cannot be passed on."""
    history(ledger)
    ledger.close()
    tampered(path, "UPDATE entries SET dataset = 'ghost' WHERE dataset = 'people'")
    with pytest.raises((ChainBroken, InputError)), Ledger(path) as ledger:
        ledger.verify("ghost")
