"""`understudy ledger`: accounts in files."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

import understudy as us
from tests.cli.cli_cases import Case, run
from understudy.privacy import Ledger
from understudy.wording import ADDS_UP

# ledger


def test_ledger_open_again_and_with_other_facts(case: Case):
    assert "was open already" in run(
        "ledger", "open", case.ledger, "--dataset", "t", "--epsilon", "3.0"
    ).out  # fmt: skip
    other = run("ledger", "open", case.ledger, "--dataset", "t", "--epsilon", 4)
    assert (other.code, "never changed" in other.err) == (2, True)


def test_a_crashed_release_is_shown_and_settled(case: Case):
    with us.Ledger(case.ledger) as ledger:
        plan = us.prepare(us.Schema.load(case.schema), epsilon=1, method="independent")
        crashed = ledger.reserve("t", plan.budget, plan.plan, relation=us.Relation.ADD_REMOVE)
    shown = run("ledger", "show", case.ledger, "--dataset", "t")
    assert f"understudy ledger settle {case.ledger} {crashed.id}" in shown.out
    settled = run("ledger", "settle", case.ledger, crashed.id)
    assert settled.code == 0
    assert "33 % of the budget" in settled.out
    assert "100 %: ε = 3" in settled.out
    assert "already" in run("ledger", "settle", case.ledger, crashed.id).out
    assert run("ledger", "settle", case.ledger, "0123").code == 2


def test_ledger_show_tells_a_broken_chain(case: Case):
    import sqlite3

    with sqlite3.connect(case.ledger) as db:
        db.execute("DROP TRIGGER no_update")
        db.execute("UPDATE entries SET body = replace(body, '\"3\"', '\"9\"')")
    db.close()
    shown = run("ledger", "show", case.ledger)
    assert shown.code == 1
    assert "✗" in shown.out


def test_a_missing_ledger_is_not_made(tmp_path: Path):
    ledger = tmp_path / "no.ledger"
    assert run("ledger", "show", ledger).code == 2
    assert run("ledger", "settle", ledger, "0123").code == 2
    assert run("ledger", "open", ledger, "--dataset", "t", "--epsilon", -1).code == 2
    assert run("ledger", "open", ledger, "--dataset", "", "--epsilon", 1).code == 2
    late = run("ledger", "open", ledger, "--dataset", "t", "--epsilon", 1, "--delta", "0.1",
               "--rows-public", 1000)  # fmt: skip
    assert (late.code, "delta = 0.1" in late.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


def opened(path, epsilon, barrier):
    """In a child: the exit code of `ledger open`."""
    barrier.wait()
    return run("ledger", "open", path, "--dataset", "t", "--epsilon", epsilon).code


@pytest.mark.forks
def test_a_failing_open_never_deletes_what_another_has_made(tmp_path):
    from multiprocessing import get_context

    assert run("ledger", "open", tmp_path / "w", "--dataset", "t", "--epsilon", 1).code == 0
    for turn in range(8):
        path, barrier = tmp_path / f"{turn}.ledger", get_context("fork").Barrier(4)
        children = []
        for epsilon in (1, 2, 3, 4):  # one of them wins; the others must fail, and leave it alone
            pid = os.fork()
            if not pid:
                code = 99
                try:
                    code = opened(path, epsilon, barrier)
                finally:
                    os._exit(code)
            children.append(pid)
        codes = sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children)
        assert codes == [0, 2, 2, 2]
        with Ledger(path) as ledger:
            assert ledger.datasets() == ["t"]


def test_a_head_is_printed_and_expected(case: Case, tmp_path):
    shutil.copy(case.ledger, tmp_path / "older.ledger")
    made = case.release()
    assert made.code == 0, made.err
    head = run("ledger", "head", case.ledger, "--dataset", "t").out.strip()
    with Ledger(case.ledger) as ledger:
        assert ledger.head("t") == head
    (printed,) = re.findall(r"[0-9]+:[0-9a-f]{64}", made.out)
    assert run("ledger", "show", case.ledger, "--expect-head", printed).code == 0
    assert run("ledger", "show", case.ledger, "--expect-head", head).code == 0
    assert head in run("ledger", "show", case.ledger).out
    assert run("verify", case.out, "--ledger", case.ledger, "--expect-head", head).code == 0
    # A copy from before shows that nothing is spent, and a head shows that it is a copy.
    older = tmp_path / "older.ledger"
    refused = run("ledger", "show", older, "--expect-head", head)
    assert refused.code != 0
    assert "does not contain the head" in refused.err
    out = ("--out", tmp_path / "more", "--schema", case.schema, "--epsilon", 1, "--dataset", "t")
    spent = run("release", case.data, *out, "--ledger", older, "--expect-head", head)
    assert spent.code != 0
    assert "does not contain the head" in spent.err
    assert not (tmp_path / "more").exists()
    assert run("release", case.data, *out[:-2], "--expect-head", head).code == 2
    assert run("verify", case.out, "--expect-head", head).code == 2
    forged = run("verify", case.out, "--ledger", case.ledger, "--expect-head", "9:" + 64 * "0")
    assert forged.code == 1


def test_a_backup_is_made_shown_and_restored(case: Case, tmp_path):
    assert case.release().code == 0
    backup, new = tmp_path / "b.backup", tmp_path / "new.ledger"
    made = run("ledger", "backup", case.ledger, backup)
    assert made.code == 0, made.err
    assert run("ledger", "head", case.ledger, "--dataset", "t").out.strip() in made.out
    assert run("ledger", "backup", case.ledger, backup).code == 2
    assert run("verify", case.out, "--ledger", backup).code == 0
    refused = run(
        "release", case.data, "--schema", case.schema, "--epsilon", 1, "--method", "independent",
        "--out", tmp_path / "more", "--ledger", backup, "--dataset", "t",
    )  # fmt: skip
    assert refused.code != 0
    assert "is a backup" in refused.err
    assert run("ledger", "migrate", backup, new).code == 0
    [view] = json.loads(run("ledger", "show", new, "--json").out)
    assert view["spent"]["epsilon"] == 1


def test_a_ledger_is_not_migrated_twice(case: Case, tmp_path):
    assert run("ledger", "migrate", case.ledger, tmp_path / "b").code == 0
    twice = run("ledger", "migrate", case.ledger, tmp_path / "c")
    assert twice.code != 0
    assert "can go nowhere else" in twice.err


def test_accounts_add_up_rho_and_say_how_many_more_fit(tmp_path, case: Case):
    path = tmp_path / "z.ledger"
    told = run("ledger", "open", path, "--dataset", "t", "--epsilon", 3, "--delta", "1e-9")
    assert told.code == 0, told.err
    assert "zcdp" in told.out
    again = run("ledger", "open", path, "--dataset", "t", "--epsilon", 3, "--delta", "1e-9",
                "--composition", "basic")  # fmt: skip
    assert again.code == 2
    made = run(
        "release", case.data, "--schema", case.schema, "--epsilon", 1, "--out", case.out,
        "--ledger", path, "--dataset", "t",
    )  # fmt: skip
    assert made.code == 0, made.err
    [view] = json.loads(run("ledger", "show", path, "--json").out)
    assert view["more_like_last"] in (6, 7)
    shown = run("ledger", "show", path)
    assert f"{view['more_like_last']} more like the last release" in shown.out
    assert ADDS_UP["zcdp"] in shown.out
    assert re.search(r"left .*\d+ %, counted in ρ, which grows about as ε²\n", shown.out)
    assert f"{view['more_like_last']} more like this" in made.out
    planned = ("plan", "--schema", case.schema, "--epsilon", 1, "--ledger", path, "--dataset", "t")
    fitting = f"{view['more_like_last']} such releases fit in what is left now ({ADDS_UP['zcdp']})"
    assert fitting in run(*planned).out
    fit = json.loads(run(*planned, "--json").out)["releases_that_fit"]
    assert fit == view["more_like_last"]
    assert run(*planned[:-2]).code == 2
    large = run(
        "release", case.data, "--schema", case.schema, "--epsilon", 2.5, "--out", tmp_path / "large",
        "--ledger", path, "--dataset", "t",
    )  # fmt: skip
    most = re.search(r"room for none like this, one of up to about ε = ([\d.]+)", large.out)
    assert most, large.out
    assert most[0].replace("this", "the last release (ε = 2.5, δ = 1e-9)").partition("for ")[2] in (
        run("ledger", "show", path).out
    )
    assert "1 such release fits" in run(*planned[:4], most[1], *planned[5:]).out
