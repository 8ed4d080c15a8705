"""An engine that goes away in the middle: charged, gone on with, and never counted again for free."""

import json

import pytest

import understudy as us
from understudy.errors import CountingError, LedgerError
from understudy.privacy.ledger import Ledger
from understudy.source import read
from understudy.source.memory import FrameSource

from .conftest import people


class Flaky:
    """Counts that fail at some calls, as a database that goes away does."""

    def __init__(self, bound, failing):
        self.shape, self.unit = bound.shape, None
        self._bound, self._failing = bound, failing
        self.calls = 0

    def __getattr__(self, name):
        whole = getattr(self._bound, name)

        def asked(*given):
            self.calls += 1
            if self.calls in self._failing:
                raise CountingError("the connection was lost")
            return whole(*given)

        return asked


def lossy(monkeypatch, failing):
    bind = FrameSource.bind
    monkeypatch.setattr(FrameSource, "bind", lambda s, schema: Flaky(bind(s, schema), failing))


def make(schema, tmp_path, **more):
    return us.release(
        read(people(300)), schema, epsilon=1, workload="marginals:2", method="maxent",
        parameters={"records": 2000}, ledger=tmp_path / "l.db", dataset="t",
        checkpoint=tmp_path / "c", **more,
    )  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "l.db") as opened:
        opened.open_dataset("t", us.Budget.of(1, "1e-8"))
    return tmp_path / "l.db"


def charges(path):
    with Ledger(path) as ledger:
        ledger.verify("t")
        entries = ledger.entries("t")
    return [e.body["purpose"] for e in entries if e.kind == "charge"]


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_what_was_charged_is_drawn_once_when_the_engine_is_back(
    schema, tmp_path, ledger, monkeypatch, failing
):
    with monkeypatch.context() as patch:
        lossy(patch, {failing})
        with pytest.raises(CountingError):
            make(schema, tmp_path)
    before = charges(ledger)
    lines = [json.loads(x) for x in (tmp_path / "c" / "journal.jsonl").read_text().splitlines()]
    assert sum("answer" in line for line in lines) == len(before) - 1
    assert "uncounted" in lines[-1]
    with monkeypatch.context() as patch:  # gone again, at the same place
        lossy(patch, {1})
        with pytest.raises(CountingError):
            make(schema, tmp_path)
    assert charges(ledger) == before
    made = make(schema, tmp_path)
    after = charges(ledger)
    assert after[: len(before)] == before
    assert sorted(after) == sorted(c.purpose for c in made.plan for _ in range(c.times))
    us.verify(made.save(tmp_path / "out"), ledger=ledger, dataset="t").require()


def test_a_death_after_the_second_count_began_is_not_gone_on_with(
    schema, tmp_path, ledger, monkeypatch
):
    with monkeypatch.context() as patch:
        lossy(patch, {2})
        with pytest.raises(CountingError):
            make(schema, tmp_path)

    class Killed(BaseException):
        pass

    def die(*given):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("understudy.privacy.noise.OpenDPNoise.gaussian", die)
        with pytest.raises(Killed):
            make(schema, tmp_path)
    with pytest.raises(LedgerError, match="an answer was lost"):
        make(schema, tmp_path)


def test_without_a_checkpoint_the_account_is_settled(schema, tmp_path, monkeypatch):
    with Ledger(tmp_path / "l.db") as opened:
        opened.open_dataset("t", us.Budget.of(1, "1e-8"))
    with monkeypatch.context() as patch:
        lossy(patch, {2})
        with pytest.raises(CountingError):
            us.release(
                read(people(300)), schema, epsilon="0.5", method="independent",
                ledger=tmp_path / "l.db", dataset="t",
            )  # fmt: skip
    assert len(charges(tmp_path / "l.db")) == 2
    with Ledger(tmp_path / "l.db") as opened:
        spent = opened.spent("t")
    assert 0 < spent.remaining_epsilon < 1
