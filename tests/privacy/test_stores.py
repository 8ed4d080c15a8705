"""The file of a ledger: what is no ledger is left alone, and what is wrong is said in words."""

import os
import sqlite3
from contextlib import closing

import pytest

from tests.privacy.ledger.test_ledger import PART, reserve, spend
from tests.privacy.ledger.test_ledger_breaks import TWICE, old_tables
from understudy.errors import BudgetExhausted, InputError, LedgerError
from understudy.privacy.budget import Budget
from understudy.privacy.ledger import Ledger


def test_an_older_ledger_is_opened_and_goes_on(path):
    old_tables(path)
    with Ledger(path) as ledger:
        assert ledger.spent("people").epsilon == Budget.of("0.9", 0).epsilon
        spend(ledger, "0.1")
        ledger.verify("people")
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        names = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        assert "by_reservation" not in names
    with Ledger(path) as again, pytest.raises(BudgetExhausted):
        spend(again, "0.1")


@pytest.mark.parametrize(
    "text", ["not a database " * 100, "SQLite format 3\0" + "x" * 200, "", "x"]
)
def test_a_file_that_is_no_ledger(tmp_path, text):
    file = tmp_path / "notes"
    file.write_text(text)
    try:
        Ledger(file).close()
    except InputError:
        assert file.read_text() == text
    else:
        assert text == ""  # an empty file becomes a ledger


def test_the_database_of_another_program_is_left_alone(tmp_path):
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE t (x)")
    before = file.read_bytes()
    with pytest.raises(InputError, match="format 0"):
        Ledger(file)
    assert file.read_bytes() == before


def test_a_hard_link_is_refused_in_words(tmp_path, path, ledger):
    ledger.close()
    os.link(path, tmp_path / "other-name")
    for name in (path, tmp_path / "other-name"):
        with pytest.raises(InputError, match="hard link"):
            Ledger(name)
    (tmp_path / "other-name").unlink()
    os.symlink(path, tmp_path / "symbolic")
    with Ledger(tmp_path / "symbolic") as opened:
        spend(opened, "0.1")


def test_a_folder_in_the_place_of_a_ledger(tmp_path):
    with pytest.raises(InputError, match="a folder"):
        Ledger(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        Ledger(tmp_path / "no" / "ledger")


def test_a_ledger_that_another_program_holds(path, ledger):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        made = reserve(ledger, plan=TWICE)
        made.charge("a")
        other.execute("BEGIN IMMEDIATE")
        with Ledger(path, timeout=0.2) as waiting:
            held = waiting.resume("people", made.id, PART, TWICE)
            with pytest.raises(LedgerError, match="holds it for too long") as caught:
                held.charge("b")
            assert "1 draw was made; this one was not made" in str(caught.value)
            with pytest.raises(LedgerError, match="holds it for too long") as caught:
                waiting.settle(made.id)
        other.execute("ROLLBACK")
    assert "nothing was drawn" not in str(caught.value).lower()
