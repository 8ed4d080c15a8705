"""The ledger under pressure: many processes at once, killed writers, full and read-only disks."""

import os
import shutil
import subprocess
from collections import Counter

import pytest

from tests.privacy.ledger import test_ledger as file
from tests.privacy.ledger.test_ledger import FORK, RELATION, exit_codes, forked, reserve
from tests.thorough import slow
from tests.tools.servers import house
from understudy.errors import BudgetExhausted, InputError, LedgerError, WorkError
from understudy.privacy import accounting
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Charge, Gaussian, Laplace, Plan
from understudy.privacy.ledger import Ledger

# --- races for the last of a budget ---------------------------------------------------------------

DRAWS = 3
RACE = Plan((Charge("g", Gaussian(15.0), times=DRAWS),))
TOTAL = Budget.of("3", "1e-7")


@pytest.fixture(params=["file", "server"])
def path(request, tmp_path):
    if request.param == "file":
        yield tmp_path / "ledger"
    else:
        with house() as url:
            yield url


def asked():
    """The promise of one release of the race, with a little room."""
    cost = accounting.epsilon(RACE, 1e-9).epsilon
    return Budget.of(f"{cost * 1.001:.6f}", "1e-9")


def runner(path, barrier, results):
    """Reserve and draw until nothing is left; every draw is written down after its charge."""
    barrier.wait()
    drawn = os.open(results, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with Ledger(path) as ledger:
        while True:
            try:
                made = reserve(ledger, asked(), RACE)
            except BudgetExhausted:
                return 0
            for _ in range(DRAWS):
                made.charge("g")
                os.write(drawn, f"{made.id}\n".encode())
            made.settle("finished")


def race(path, tmp_path, rule, processes):
    with Ledger(path) as ledger:
        ledger.open_dataset("people", TOTAL, RELATION, rule)
        fit = ledger.books("people").more_like(asked(), RACE)
    assert fit > 3
    barrier, drawn = FORK.Barrier(processes), tmp_path / "drawn"
    codes = exit_codes([forked(runner, path, barrier, drawn) for _ in range(processes)])
    assert codes == [0] * processes
    with Ledger(path) as ledger:
        ledger.verify("people")
        assert len(ledger.releases("people")) == fit
        assert ledger.books("people").more_like(asked(), RACE) == 0
        assert ledger.spent("people").epsilon <= TOTAL.epsilon
        charged = {m.id: len(m.charges) for m in ledger.releases("people")}
    assert Counter(drawn.read_text().split()) == charged


@pytest.mark.forks
@pytest.mark.parametrize("rule", ["basic", slow("zcdp")])
def test_processes_race_for_the_last_of_a_budget(path, tmp_path, rule):
    race(path, tmp_path, rule, processes=8)


@pytest.mark.forks
@pytest.mark.slow
@pytest.mark.parametrize("rule", ["basic", "zcdp"])
def test_sixty_four_processes_race_for_the_last_of_a_budget(path, tmp_path, rule):
    race(path, tmp_path, rule, processes=64)


def again(path, barrier, made):
    barrier.wait()
    with Ledger(path) as ledger:
        copy = ledger.resume("people", made, file.PART, file.PLAN)
        try:
            copy.redraw(copy.charged()[-1].seq, "count")
        except LedgerError:
            return 7
    return 0


@pytest.mark.forks
def test_processes_race_to_draw_again_under_one_charge(path):
    with Ledger(path) as ledger:
        ledger.open_dataset("people", file.TOTAL, RELATION, "basic")
        made = reserve(ledger)
        made.charge("count")
    barrier = FORK.Barrier(8)
    codes = exit_codes([forked(again, path, barrier, made.id) for _ in range(8)])
    assert Counter(codes) == {0: 1, 7: 7}
    with Ledger(path) as ledger:
        assert file.kinds(ledger) == ["open", "reserve", "charge", "redraw"]


def mover(source, target, barrier):
    barrier.wait()
    with Ledger(source) as left, Ledger(target) as right:
        try:
            return 0 if left.move_to(right) else 5
        except LedgerError:
            return 7


@pytest.mark.forks
def test_processes_race_to_move_a_dataset_to_different_ledgers(tmp_path):
    source = tmp_path / "a"
    targets = [tmp_path / name for name in "bcdefg"]
    with Ledger(source) as ledger:
        ledger.open_dataset("people", file.TOTAL, RELATION, "basic")
    barrier = FORK.Barrier(len(targets))
    codes = exit_codes([forked(mover, source, target, barrier) for target in targets])
    assert sorted(codes) == [0, *[7] * (len(targets) - 1)]
    alive = 0
    for target in targets:
        with Ledger(target) as ledger:
            alive += ledger.datasets() == ["people"]
    assert alive == 1


# --- killed writers ---------------------------------------------------------------------------------


@pytest.mark.forks
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_thousand_kills(tmp_path, seed):
    file.survive(tmp_path / "ledger", tmp_path / "side.txt", kills=200, seed=seed + 10)


# --- disks ------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB of its own; `how(…)` mounts it anew with other options."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a file system")
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder]).returncode:
        pytest.skip("no file system can be mounted here")

    def how(options):
        subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)

    try:
        yield folder, how
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


MANY = Plan((Charge("a", Laplace(1e7), times=5000),))


def fill(made, drawn):
    for _ in range(5000):
        drawn.append(made.charge("a"))


def test_a_full_disk_loses_no_charge_and_says_what_was_drawn(small_disk):
    folder, how = small_disk
    path = folder / "ledger"
    with Ledger(path) as ledger:
        ledger.open_dataset("people", file.TOTAL, RELATION, "basic")
        made = reserve(ledger, plan=MANY)
        drawn = []
        with pytest.raises(WorkError, match="the disk is full") as caught:
            fill(made, drawn)
        drawn = len(drawn)
        assert drawn > 3
        assert f"{drawn} draws were made; this one was not made" in str(caught.value)
        assert "nothing was drawn" not in str(caught.value).lower()
    how("size=2m")
    with Ledger(path) as ledger:
        ledger.verify("people")
        resumed = ledger.resume("people", made.id, file.PART, MANY)
        assert len(resumed.charged()) == drawn
        resumed.charge("a")
        resumed.settle("finished")


def test_a_release_on_a_full_disk_keeps_its_first_error(small_disk):
    folder, _ = small_disk
    with Ledger(folder / "ledger") as ledger:
        ledger.open_dataset("people", file.TOTAL, RELATION, "basic")
        made = reserve(ledger, plan=MANY)
        with pytest.raises(WorkError, match="draws were made") as caught, made:
            fill(made, [])
        notes = " ".join(getattr(caught.value, "__notes__", []))
        assert "stays open" in notes or file.kinds(ledger)[-1] == "settle"


def test_a_disk_that_is_full_from_the_start(small_disk):
    folder, _ = small_disk
    (folder / "filler").write_bytes(b"x" * 250_000)
    with pytest.raises((WorkError, InputError), match="disk"):
        Ledger(folder / "ledger").open_dataset("people", file.TOTAL)


def test_a_read_only_disk_can_be_read_and_not_spent(small_disk):
    folder, how = small_disk
    path = folder / "ledger"
    with Ledger(path) as ledger:
        ledger.open_dataset("people", file.TOTAL, RELATION, "basic")
        file.spend(ledger, "0.1")
    how("ro")
    with Ledger(path) as ledger:
        assert ledger.spent("people").epsilon == Budget.of("0.1", 0).epsilon
        with pytest.raises((LedgerError, InputError), match=r"read-only|cannot be opened"):
            reserve(ledger)
    with pytest.raises(InputError, match=r"read-only|cannot be opened"):
        Ledger(folder / "another")
