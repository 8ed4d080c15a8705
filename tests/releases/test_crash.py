"""Releases killed at random moments, and processes racing for one budget.

Children are forked after everything is imported, so that a kill can fall on any step of a release and
not on the interpreter's start.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from fractions import Fraction

import pytest

import understudy as us
from tests.thorough import examples
from tests.tools import servers
from understudy.errors import BudgetExhausted
from understudy.privacy.budget import Budget
from understudy.privacy.ledger import Ledger

from .conftest import people

pytestmark = pytest.mark.forks
FORK = multiprocessing.get_context("fork")
EACH = "0.25"


@pytest.fixture(params=["file", "server"])
def path(request, tmp_path):
    """Where the ledger is."""
    if request.param == "file":
        yield tmp_path / "l.db"
    else:
        with servers.house() as address:
            yield address


def make(path, out, schema, table):
    made = us.release(
        table, schema, epsilon=EACH, method="independent", workload="marginals:1",
        ledger=path, dataset="t",
    )  # fmt: skip
    made.save(out)


def child(path, out, schema, table, started):
    # Exit without the parent's clean-up: this process stands for a whole program.
    try:
        started.set()
        make(path, out, schema, table)
        os._exit(0)
    except BudgetExhausted:
        os._exit(3)
    except BaseException:  # noqa: BLE001 - whatever it is, the parent must see it
        os._exit(1)


def check(path, folder):
    """What must hold after any crash."""
    with Ledger(path) as ledger:
        ledger.verify("t")
        spent, total = ledger.spent("t"), ledger.dataset("t").budget
        assert spent.epsilon <= total.epsilon
        assert spent.delta <= total.delta
        entries = ledger.entries("t")
    reserved = [e for e in entries if e.kind == "reserve"]
    assert sum((Fraction(e.body["budget"]["epsilon"]) for e in reserved), Fraction(0)) == Fraction(
        EACH
    ) * len(reserved)
    for out in folder.iterdir():
        if out.name.startswith("."):
            continue  # a staging folder that a killed process could not remove is no release
        assert us.verify(out, ledger=path, dataset="t").passed, out


def kills(path, tmp_path, schema, times, composition="basic", epsilon=6):
    table = people(400)
    folder = tmp_path / "out"
    folder.mkdir()
    with Ledger(path) as ledger:
        ledger.open_dataset("t", Budget.of(epsilon, "1e-5"), composition=composition)
    make(path, folder / "warm", schema, table)  # also warms the accountant's cache for the children
    make(path, folder / "timed", schema, table)
    begun = time.perf_counter()
    make(path, folder / "timed-again", schema, table)
    usual = time.perf_counter() - begun
    rng = random.Random(0)
    ends: dict[int | None, int] = {}
    for number in range(5 * times):
        if number >= times and ends.get(-signal.SIGKILL, 0) > times // 5:
            break
        started = FORK.Event()
        process = FORK.Process(
            target=child, args=(path, folder / f"r{number}", schema, table, started)
        )
        process.start()
        started.wait()
        time.sleep(rng.uniform(0, 1.3 * usual))
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        ends[process.exitcode] = ends.get(process.exitcode, 0) + 1
        # On a busy machine one timing says little: stay where releases end and die by turns.
        usual *= 1.05 if process.exitcode == -signal.SIGKILL else 0.9
        with Ledger(path) as ledger:
            # Free what died without a draw, so that there is budget to crash with again.
            for left in ledger.releases("t"):
                if left.outcome is None:
                    ledger.settle(left.id)
    check(path, folder)
    return ends


def test_releases_killed_at_random_moments(path, tmp_path, schema):
    times = examples(5, 25)
    ends = kills(path, tmp_path, schema, times)
    assert ends.get(-signal.SIGKILL, 0) > times // 5, ends
    assert 1 not in ends, ends


@pytest.mark.slow
@pytest.mark.parametrize("composition", ["basic", "zcdp"])
def test_a_thousand_releases_killed_at_random_moments(path, tmp_path, schema, composition):
    """250 for each kind of ledger and rule, with budget enough that they die of the kill."""
    ends = kills(path, tmp_path, schema, 250, composition, epsilon=80)
    assert ends.get(-signal.SIGKILL, 0) > 60, ends
    assert ends.get(3, 0) < 50, ends
    assert 1 not in ends, ends


def racer(path, out, schema, table, gate, total):
    try:
        gate.wait()
        us.release(
            table, schema, epsilon=total, method="independent", workload="marginals:1",
            ledger=path, dataset="t",
        ).save(out)  # fmt: skip
        os._exit(0)
    except BudgetExhausted:
        os._exit(3)
    except BaseException:  # noqa: BLE001 - whatever it is, the parent must see it
        os._exit(1)


def test_eight_processes_race_for_one_budget(path, tmp_path, schema):
    """Room for three of eight: three releases, five refusals, never more."""
    table = people(400)
    folder = tmp_path / "out"
    folder.mkdir()
    with Ledger(path) as ledger:
        ledger.open_dataset("t", Budget.of("0.9", "1e-7"), composition="basic")
    us.prepare(schema, epsilon="0.3", method="independent", workload="marginals:1")
    gate = FORK.Event()
    processes = [
        FORK.Process(target=racer, args=(path, folder / str(i), schema, table, gate, "0.3"))
        for i in range(8)
    ]
    for process in processes:
        process.start()
    gate.set()
    for process in processes:
        process.join()
    codes = sorted(process.exitcode for process in processes)
    assert codes == [0, 0, 0, 3, 3, 3, 3, 3]
    with Ledger(path) as ledger:
        ledger.verify("t")
        assert ledger.spent("t").remaining_epsilon == 0
    assert len(list(folder.iterdir())) == 3
    for out in folder.iterdir():
        assert us.verify(out, ledger=path, dataset="t").passed
