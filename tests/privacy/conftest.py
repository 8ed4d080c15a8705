"""Ledgers for the tests of this room; files with a place of their own declare it again."""

import pytest

from understudy.privacy.budget import Budget
from understudy.privacy.ledger import Ledger
from understudy.privacy.relation import Relation

TOTAL = Budget.of("1", "1e-9")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path):
    with Ledger(path) as opened:
        opened.open_dataset("people", TOTAL, Relation.ADD_REMOVE, "basic")
        yield opened


@pytest.fixture
def zledger(path):
    with Ledger(path) as opened:
        opened.open_dataset("people", TOTAL, Relation.ADD_REMOVE, "zcdp")
        yield opened
