"""The journal tells questions apart, gives back what was drawn, and refuses what is damaged."""

import numpy as np
import pytest

from understudy.errors import InputError, LedgerError
from understudy.privacy.journal import Journal, _digest
from understudy.privacy.questions import Marginals


def test_questions_whose_digits_run_together_are_told_apart():
    one, other = Marginals(((1, 23),)), Marginals(((12, 3),))
    assert _digest("m", one) != _digest("m", other)
    assert _digest("m", ("a", "b")) != _digest("m", ("ab", ""))
    assert _digest("m", ((1,), 2)) != _digest("m", ((1, 2),))
    assert _digest("m", Marginals(((0, 1),))) == _digest("m", Marginals([(0, 1)]))


def drawn(folder, *draws):
    journal = Journal(folder)
    journal.begin("0" * 16, 7, {"method": "mst"})
    for number, each in enumerate(draws):
        journal.keep("m", ("question", number), each)
    journal.let_go()


def test_what_was_drawn_is_given_back_in_order(tmp_path):
    table, pairs = np.arange(6).reshape(2, 3), [("a", 3), ("b", 2)]
    drawn(tmp_path, table, pairs)
    journal = Journal(tmp_path)
    assert journal.header["key"] == "7"
    kept = journal.kept("m", ("question", 0))
    assert kept.dtype == table.dtype
    assert (kept == table).all()
    assert journal.kept("m", ("question", 1)) == pairs
    assert journal.kept("m", ("question", 2)) is None


def test_another_question_than_was_answered_is_noticed(tmp_path):
    drawn(tmp_path, np.arange(2))
    with pytest.raises(LedgerError, match="is not the one that was answered"):
        Journal(tmp_path).kept("m", ("question", 1))


def test_a_folder_is_held_by_one_release(tmp_path):
    journal = Journal(tmp_path)
    with pytest.raises(InputError, match="in use by another release"):
        Journal(tmp_path)
    journal.let_go()
    Journal(tmp_path).let_go()


def test_a_torn_last_line_is_forgotten_and_a_damaged_one_is_named(tmp_path):
    drawn(tmp_path, np.arange(2), np.arange(3))
    file = tmp_path / "journal.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[:-5])
    journal = Journal(tmp_path)
    assert journal.kept("m", ("question", 0)) is not None
    assert journal.kept("m", ("question", 1)) is None
    journal.let_go()
    lines = whole.split(b"\n")
    file.write_bytes(b"\n".join([lines[0], b"{}", *lines[2:]]))
    with pytest.raises(InputError, match="line 2 of"):
        Journal(tmp_path)
