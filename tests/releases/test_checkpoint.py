"""A killed release goes on from what it had released, without spending again."""

import json
import shutil

import numpy as np
import pytest

import understudy as us
from tests.thorough import some
from understudy import progress
from understudy.errors import InputError, LedgerError, WorkError
from understudy.game.methods.independent import IndependentMethod
from understudy.game.methods.maxent import MaxEntMethod
from understudy.privacy.gate import Gate
from understudy.privacy.journal import Journal
from understudy.privacy.ledger import Ledger, Reservation
from understudy.privacy.noise import OpenDPNoise
from understudy.privacy.questions import Marginals, ThresholdedErrors, WorstError
from understudy.testing import SeededNoise

from .conftest import charges, people


class Killed(BaseException):
    pass


def dying(monkeypatch, kind, after):
    """The gate dies at a question of this kind once `after` of them have been answered."""
    calls = []
    whole = Gate.ask

    def ask(self, purpose, question, event=None):
        if isinstance(question, kind):
            if len(calls) >= after:
                raise Killed
            calls.append(kind)
        return whole(self, purpose, question, event)

    monkeypatch.setattr(Gate, "ask", ask)
    return calls


def make(schema, tmp_path, table=None, checkpoint="c", **more):
    return us.release(
        people(300) if table is None else table, schema, epsilon=1, workload="marginals:2",
        method="maxent", parameters={"records": 2000}, ledger=tmp_path / "l.db", dataset="t",
        checkpoint=tmp_path / checkpoint, **more,
    )  # fmt: skip


def test_a_killed_release_goes_on_and_charges_every_draw_once(
    schema, tmp_path, ledger, monkeypatch
):
    with monkeypatch.context() as patch:
        told = dying(patch, Marginals, 1)
        with pytest.raises(Killed):
            make(schema, tmp_path)
    assert told == [Marginals]
    before = charges(ledger)
    lines = (tmp_path / "c" / "journal.jsonl").read_text().splitlines()
    assert len(lines) == 1 + len(before) > 2
    made = make(schema, tmp_path)
    after = charges(ledger)
    assert after[: len(before)] == before
    assert sorted(after) == sorted(c.purpose for c in made.plan for _ in range(c.times))
    us.verify(made.save(tmp_path / "out"), ledger=ledger, dataset="t").require()
    assert not (tmp_path / "c" / "journal.jsonl").exists()
    with Ledger(ledger) as opened:
        assert opened.spent("t").remaining_epsilon == 0


def test_recorded_answers_are_used_as_they_were(schema, tmp_path, ledger, monkeypatch):
    seen = []
    whole = MaxEntMethod.players

    def players(self, design, plan):
        query, data = whole(self, design, plan)
        respond = type(data).respond

        class Watched(type(data)):
            def respond(self, problem, state, answers, rng):
                seen.append([np.asarray(a.values) for a in answers])
                return respond(self, problem, state, answers, rng)

        return query, Watched(data.records)

    monkeypatch.setattr(MaxEntMethod, "players", players)
    with monkeypatch.context() as patch:
        dying(patch, ThresholdedErrors, 0)
        with pytest.raises(Killed):
            make(schema, tmp_path)
    first = list(seen)
    seen.clear()
    made = make(schema, tmp_path)
    assert len(seen) > len(first) > 1
    drawn = [values for told in seen for values in told]
    for table, values in zip(made.tables, drawn, strict=True):
        np.testing.assert_array_equal(table.values, values)
    for told, again in zip(first, seen, strict=False):
        for a, b in zip(told, again, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_release_with_an_account_of_its_own_goes_on_too(schema, tmp_path, monkeypatch):
    def one():
        return us.release(
            people(300), schema, epsilon=1, method=IndependentMethod(), workload="marginals:1",
            checkpoint=tmp_path / "c",
        )  # fmt: skip

    with monkeypatch.context() as patch:
        dying(patch, WorstError, 0)
        with pytest.raises(Killed):
            one()
    assert (tmp_path / "c" / "ledger.db").exists()
    us.verify(one().save(tmp_path / "out")).require()
    assert list((tmp_path / "c").iterdir()) == []
    us.verify(one().save(tmp_path / "another")).require()  # the folder can be used again


@pytest.mark.parametrize("kind", [Marginals, WorstError])
def test_a_copied_folder_with_an_account_of_its_own_is_refused(schema, tmp_path, monkeypatch, kind):
    """The copy's account would know nothing of what the original draws."""

    def one(folder):
        return us.release(
            people(300), schema, epsilon=1, method=IndependentMethod(), workload="marginals:1",
            checkpoint=tmp_path / folder,
        )  # fmt: skip

    with monkeypatch.context() as patch:
        dying(patch, kind, 0)
        with pytest.raises(Killed):
            one("c")
    shutil.copytree(tmp_path / "c", tmp_path / "copy")
    before = {f.name: f.read_bytes() for f in (tmp_path / "copy").iterdir()}
    for _ in range(2):
        with pytest.raises(
            InputError, match=r"checkpoint = .*copy was copied together with the acc"
        ):
            one("copy")
    assert {f.name: f.read_bytes() for f in (tmp_path / "copy").iterdir()} == before
    (tmp_path / "c").rename(tmp_path / "moved")  # the same files under another name
    us.verify(one("moved").save(tmp_path / "out")).require()


def test_a_copy_that_is_put_back_in_place_is_refused(schema, tmp_path, monkeypatch):
    """The very same files, with what they held before the release went on."""

    def one():
        return us.release(
            people(300), schema, epsilon=1, method=IndependentMethod(), workload="marginals:1",
            checkpoint=tmp_path / "c",
        )  # fmt: skip

    for kind in (Marginals, WorstError):
        with monkeypatch.context() as patch:
            dying(patch, kind, 0)
            with pytest.raises(Killed):
                one()
        if kind is Marginals:
            shutil.copytree(tmp_path / "c", tmp_path / "copy")
    for file in (tmp_path / "copy").iterdir():
        shutil.copyfile(file, tmp_path / "c" / file.name)
    with pytest.raises(InputError, match="was copied together with the account"):
        one()


def test_another_release_is_refused(schema, tmp_path, ledger, monkeypatch):
    with monkeypatch.context() as patch:
        dying(patch, Marginals, 1)
        with pytest.raises(Killed):
            make(schema, tmp_path)
    spent = charges(ledger)
    with pytest.raises(InputError, match=r"checkpoint = .* is of another release: rows_public"):
        make(schema, tmp_path, rows_public=300)
    assert charges(ledger) == spent


def test_a_draw_whose_answer_was_lost_is_not_drawn_again(schema, tmp_path, ledger, monkeypatch):
    with monkeypatch.context() as patch:
        dying(patch, ThresholdedErrors, 0)
        with pytest.raises(Killed):
            make(schema, tmp_path)
    path = tmp_path / "c" / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])  # torn while it was written
    before = charges(ledger)
    with pytest.raises(LedgerError, match=r"one was lost.*understudy ledger settle"):
        make(schema, tmp_path)
    assert charges(ledger) == before


def test_a_settled_release_does_not_go_on(schema, tmp_path, ledger, monkeypatch):
    with monkeypatch.context() as patch:
        dying(patch, Marginals, 1)
        with pytest.raises(Killed):
            make(schema, tmp_path)
    header = json.loads((tmp_path / "c" / "journal.jsonl").read_text().splitlines()[0])
    with Ledger(ledger) as opened:
        opened.settle(header["reservation"])
    with pytest.raises(LedgerError, match="is settled; it cannot go on"):
        make(schema, tmp_path)


def test_other_questions_than_those_answered_are_noticed(schema, tmp_path, ledger, monkeypatch):
    with monkeypatch.context() as patch:
        dying(patch, ThresholdedErrors, 0)
        with pytest.raises(Killed):
            make(schema, tmp_path)
    path = tmp_path / "c" / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], *reversed(lines[1:])]))
    with pytest.raises(LedgerError, match="is not the one that was answered"):
        make(schema, tmp_path)


def test_a_release_that_began_with_test_noise_stays_not_private(
    schema, tmp_path, ledger, monkeypatch
):
    with monkeypatch.context() as patch:
        dying(patch, Marginals, 1)
        with pytest.raises(Killed):
            make(schema, tmp_path, noise=SeededNoise(1))
    made = make(schema, tmp_path)  # with private noise, from answers that had none
    assert not made.private
    assert "NOT PRIVATE" in made.promise


# --- damage, a full disk, somebody else's ledger ------------------------------------------------


DAMAGE = {
    "no JSON": lambda line: line[:-9],
    "no UTF-8": lambda line: b"\xff" + line[1:],
    "no object": lambda line: b"[1, 2]",
    "a number": lambda line: b"7",
    "nested too deeply": lambda line: b"[" * 100_000,
    "a key is gone": lambda line: line.replace(b'"asked"', b'"asket"').replace(b'"key"', b'"kez"'),
    "the numbers are cut": lambda line: line.replace(b'"array": "', b'"array": "A').replace(
        b'"facts": {', b'"facts": 1, "more": {'
    ),
    "two lines in one": lambda line: line + line,
}


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("kind", some(DAMAGE, 2))
def test_a_damaged_line_is_named_and_nothing_is_charged(
    schema, tmp_path, ledger, monkeypatch, kind, at
):
    with monkeypatch.context() as patch:
        dying(patch, ThresholdedErrors, 0)
        with pytest.raises(Killed):
            make(schema, tmp_path)
    path = tmp_path / "c" / "journal.jsonl"
    lines = path.read_bytes().splitlines()
    assert len(lines) > 2
    lines[at] = DAMAGE[kind](lines[at])
    path.write_bytes(b"\n".join(lines) + b"\n")
    before = charges(ledger)
    with pytest.raises(InputError, match=rf"line {at + 1} of journal\.jsonl is damaged"):
        make(schema, tmp_path)
    assert charges(ledger) == before
    assert path.read_bytes() == b"\n".join(lines) + b"\n"


@pytest.mark.parametrize("lines", [0, 1])
def test_a_journal_that_cannot_be_written_says_so(schema, tmp_path, ledger, monkeypatch, lines):
    whole, written = Journal._note, []

    def note(self, line):
        if len(written) >= lines:  # the folder is gone: no file can be made in it
            monkeypatch.setattr(self, "_path", tmp_path / "gone" / "journal.jsonl")
        written.append(line)
        return whole(self, line)

    monkeypatch.setattr(Journal, "_note", note)
    with pytest.raises(WorkError, match=r"checkpoint = .* could not be written: No such file"):
        make(schema, tmp_path)
    assert len(charges(ledger)) == lines  # no draw but one whose answer nobody saw
    with Ledger(ledger) as opened:
        (made,) = opened.releases("t")
        assert made.outcome == ("aborted" if lines == 0 else None)


def test_a_ledger_that_somebody_keeps_in_the_folder_is_not_removed(schema, tmp_path):
    (tmp_path / "c").mkdir()
    kept = tmp_path / "c" / "ledger.db"
    with Ledger(kept) as opened:
        opened.open_dataset("t", us.Budget.of(3, "1e-9"))

    def one(**more):
        return us.release(
            people(300), schema, epsilon=1, method=IndependentMethod(), workload="marginals:1",
            checkpoint=tmp_path / "c", **more,
        )  # fmt: skip

    with pytest.raises(InputError, match="holds a ledger that is not this release's own"):
        one()
    one(ledger=kept, dataset="t")
    with pytest.raises(InputError, match="holds a ledger that is not this release's own"):
        one()
    with Ledger(kept) as opened:
        assert len(opened.releases("t")) == 1


def interrupted(monkeypatch, owner, name):
    """Somebody presses Ctrl-C when the second call of this has done its work."""
    calls = []
    whole = getattr(owner, name)

    def called(*given, **more):
        found = whole(*given, **more)
        calls.append(name)
        if len(calls) == 2:
            progress.stop(KeyboardInterrupt)
        return found

    monkeypatch.setattr(owner, name, called)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Reservation, "charge"),
        (Marginals, "exact"),
        (OpenDPNoise, "gaussian"),
        (Journal, "keep"),
    ],
)
def test_one_that_is_interrupted_at_any_moment_loses_no_draw(
    schema, tmp_path, ledger, monkeypatch, owner, name
):
    try:
        with monkeypatch.context() as patch:
            interrupted(patch, owner, name)
            with pytest.raises(KeyboardInterrupt):
                make(schema, tmp_path)
    finally:
        progress.forget()
    before = charges(ledger)
    made = make(schema, tmp_path)
    after = charges(ledger)
    assert after[: len(before)] == before
    assert sorted(after) == sorted(c.purpose for c in made.plan for _ in range(c.times))
    us.verify(made.save(tmp_path / "out"), ledger=ledger, dataset="t").require()
