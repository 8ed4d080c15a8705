"""Options: one list for every shell, checked as soon as it is filled."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

import understudy as us
from understudy.errors import InputError, LedgerError
from understudy.privacy.ledger import Ledger
from understudy.privacy.relation import Relation
from understudy.releases import Options


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        ({"epsilom": 1}, "'epsilom' is not an option of a release; did you mean 'epsilon'"),
        ({"zzzz": 1}, "'zzzz' is not an option of a release: epsilon, "),
        ({"rows": 0}, "rows = 0 must be at least 1"),
        ({"ledger": "a.ledger"}, "ledger and dataset go together"),
        ({"dataset": "people"}, "ledger and dataset go together"),
        ({"expect_head": "1:aa"}, "give ledger and dataset too"),
    ],
)
def test_what_is_wrong_is_named(choices, told):
    with pytest.raises(InputError, match=told):
        Options.of(choices)


@pytest.mark.parametrize("function", [us.release, us.prepare, us.epsilon_for])
def test_signatures_show_every_option(function):
    shown = inspect.signature(function).parameters
    for field in dataclasses.fields(Options):
        assert field.name in shown


def test_the_account_decides_what_is_left_open(ledger):
    assert Options().resolved().neighbours is Relation.ADD_REMOVE
    with Ledger(ledger) as opened:
        known = opened.dataset("t")
        resolved = Options(ledger=opened, dataset="t").resolved()
        assert resolved.neighbours is known.relation
        assert resolved.rows_public == known.rows_public
        with pytest.raises(LedgerError):
            Options(ledger=opened, dataset="t", expect_head=f"7:{'0' * 64}").resolved()
