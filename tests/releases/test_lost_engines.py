"""An engine that goes away in the middle: charged, gone on with, and never counted again for free."""

import json
import re
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

import understudy as us
from tests.thorough import slow
from tests.tools import servers
from understudy import report
from understudy.errors import CountingError, InputError, LedgerError, SourceError
from understudy.game.methods import Method
from understudy.privacy.ledger import Ledger
from understudy.privacy.noise import OpenDPNoise
from understudy.schema import Schema
from understudy.source import read
from understudy.source.frames import FrameSource

from .conftest import TOML, charges, people
from .test_checkpoint import Killed, make


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


def one_by_one(monkeypatch):
    """Every question is a pass of its own, as where the tables of all are too large to be kept."""
    monkeypatch.setattr(Method, "counted", lambda method, design: ())


def lossy(monkeypatch, failing):
    bind = FrameSource.bind
    if max(failing) > 1:
        one_by_one(monkeypatch)
    monkeypatch.setattr(FrameSource, "bind", lambda s, schema: Flaky(bind(s, schema), failing))


@pytest.mark.parametrize("failing", [1, 2, slow(3)])
def test_what_was_charged_is_drawn_once_when_the_engine_is_back(
    schema, tmp_path, ledger, monkeypatch, failing
):
    with monkeypatch.context() as patch:
        lossy(patch, {failing})
        with pytest.raises(CountingError):
            make(schema, tmp_path)
    before = charges(ledger)
    lines = [json.loads(x) for x in (tmp_path / "c" / "journal.jsonl").read_text().splitlines()]
    assert sum("drawn" in line for line in lines) == len(before) - 1
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

    def die(*given):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("understudy.privacy.noise.OpenDPNoise.gaussian", die)
        with pytest.raises(Killed):
            make(schema, tmp_path)
    with pytest.raises(LedgerError, match=r"was drawn again already, elsewhere.*ledger settle"):
        make(schema, tmp_path)


def test_two_do_not_go_on_from_one_checkpoint(schema, tmp_path, ledger, monkeypatch):
    """Both would draw under the charge that waits, and it was made for one draw."""
    with monkeypatch.context() as patch:
        lossy(patch, {2})
        with pytest.raises(CountingError):
            make(schema, tmp_path)
    refused = []

    def meanwhile(progress):
        if progress.stage == "playing" and not refused:
            with pytest.raises(InputError, match="in use") as error:
                make(schema, tmp_path)
            refused.append(error)

    made = make(schema, tmp_path, progress=meanwhile)
    assert refused
    us.verify(made.save(tmp_path / "out"), ledger=ledger, dataset="t").require()


def test_every_charge_that_waits_is_drawn_once(schema, tmp_path, ledger, monkeypatch):
    """Lost at one charge, and at another after the first was drawn: a note in the ledger for each."""
    for failing in ({2}, {3}):
        with monkeypatch.context() as patch:
            lossy(patch, failing)
            with pytest.raises(CountingError):
                make(schema, tmp_path)
    made = make(schema, tmp_path)
    noted = redraws(ledger)
    assert len(noted) == len({body["charge"] for body in noted}) == 2
    assert sorted(charges(ledger)) == sorted(c.purpose for c in made.plan for _ in range(c.times))
    us.verify(made.save(tmp_path / "out"), ledger=ledger, dataset="t").require()
    assert report.render(made).count("drawn under the charge above") == 2


# --- copies of the folder -----------------------------------------------------------------------

COPIES = [f"copy {i}" for i in range(8)]


class Watched(OpenDPNoise):
    """Real noise that writes down every draw, and dies after the first if it is to."""

    def __init__(self, dies=False):
        super().__init__()
        self.dies, self.drawn = dies, []

    def _made(self, drawn):
        self.drawn.append(drawn)
        if self.dies:
            raise Killed
        return drawn

    def gaussian(self, values, sigma):
        return self._made(super().gaussian(values, sigma))

    def laplace(self, values, scale):
        return self._made(super().laplace(values, scale))

    def top_k(self, scores, scale, k):
        return self._made(super().top_k(scores, scale, k))


def redraws(ledger):
    with Ledger(ledger) as opened:
        return [entry.body for entry in opened.entries("t") if entry.kind == "redraw"]


@pytest.fixture
def copied(schema, tmp_path, ledger, monkeypatch):
    """Eight copies of the folder of a release whose engine failed after a charge; its charges."""
    with monkeypatch.context() as patch:
        lossy(patch, {2})
        with pytest.raises(CountingError):
            make(schema, tmp_path)
    for name in COPIES:
        shutil.copytree(tmp_path / "c", tmp_path / name)
    assert redraws(ledger) == []
    return charges(ledger)


ELSEWHERE = r"was drawn again already, elsewhere.*understudy ledger settle"


def test_eight_copies_draw_once_in_turn(schema, tmp_path, ledger, copied):
    """Each would be killed right after its draw, which somebody has then seen."""
    noises = [Watched(dies=True) for _ in COPIES]
    with pytest.raises(Killed):
        make(schema, tmp_path, checkpoint=COPIES[0], noise=noises[0])
    for name, noise in zip(COPIES[1:], noises[1:], strict=True):
        for _ in range(2):
            with pytest.raises(LedgerError, match=ELSEWHERE):
                make(schema, tmp_path, checkpoint=name, noise=noise)
    assert [len(noise.drawn) for noise in noises] == [1, *[0] * 7]
    assert charges(ledger) == copied
    assert len(redraws(ledger)) == 1


def test_copies_of_a_release_that_went_on_are_refused(schema, tmp_path, ledger, copied):
    made = make(schema, tmp_path, checkpoint=COPIES[0])
    after = charges(ledger)
    for name in ("c", *COPIES[1:]):
        noise = Watched()
        with pytest.raises(LedgerError, match="is settled; it cannot go on"):
            make(schema, tmp_path, checkpoint=name, noise=noise)
        assert noise.drawn == []
    assert charges(ledger) == after
    assert len(redraws(ledger)) == 1
    us.verify(made.save(tmp_path / "out"), ledger=ledger, dataset="t").require()


def test_eight_copies_draw_once_at_once(schema, tmp_path, ledger, copied, monkeypatch):
    """All have counted before the first asks the ledger whether it may draw."""
    barrier, bind = threading.Barrier(len(COPIES), timeout=120), FrameSource.bind

    class Together(Flaky):
        def __getattr__(self, name):
            whole = super().__getattr__(name)

            def asked(*given):
                if not self.calls:
                    barrier.wait()
                return whole(*given)

            return asked

    monkeypatch.setattr(FrameSource, "bind", lambda s, schema: Together(bind(s, schema), ()))
    noises = [Watched() for _ in COPIES]

    def go_on(name, noise):
        try:
            return make(schema, tmp_path, checkpoint=name, noise=noise)
        except LedgerError as error:
            return str(error)

    with ThreadPoolExecutor(len(COPIES)) as pool:
        ended = list(pool.map(go_on, COPIES, noises))
    (made,) = [each for each in ended if not isinstance(each, str)]
    refused = [each for each in ended if isinstance(each, str)]
    assert len(refused) == 7
    # Most find the note; who comes late finds a later charge, or the release settled.
    for message in refused:
        assert re.search(f"{ELSEWHERE}|a copy of it has gone on|is settled; it can", message)
    assert sum(bool(noise.drawn) for noise in noises) == 1
    after = charges(ledger)
    assert after[: len(copied)] == copied
    assert sorted(after) == sorted(c.purpose for c in made.plan for _ in range(c.times))
    assert len(redraws(ledger)) == 1
    us.verify(made.save(tmp_path / "out"), ledger=ledger, dataset="t").require()


def test_a_release_in_two_steps_goes_on_after_a_count_that_failed(tmp_path, monkeypatch):
    schema = Schema.loads(TOML.replace("bins = 10", "bins = {quantiles = 4}"))

    def one():
        return us.release(
            people(300), schema, epsilon=1, method="independent", checkpoint=tmp_path / "c"
        )

    with monkeypatch.context() as patch:
        lossy(patch, {2})  # the table of quantiles is counted by itself, once
        with pytest.raises(CountingError):
            one()
    us.verify(one().save(tmp_path / "out")).require()


def test_without_a_checkpoint_the_account_is_settled(schema, ledger, monkeypatch):
    with monkeypatch.context() as patch:
        lossy(patch, {2})
        with pytest.raises(CountingError):
            us.release(
                people(300), schema, epsilon="0.5", method="independent", ledger=ledger, dataset="t"
            )
    assert len(charges(ledger)) == 2
    with Ledger(ledger) as opened:
        spent = opened.spent("t")
    assert 0 < spent.remaining_epsilon < 1


# --- a real server ------------------------------------------------------------------------------


def cut_in_the_middle(after):
    """End the session of whoever counts, `after` questions later, while the server works on it."""
    seen = set()
    deadline = time.monotonic() + 60
    with psycopg.connect(servers.postgres(), autocommit=True) as connection:
        while time.monotonic() < deadline:
            working = connection.execute(
                "SELECT pid, query_start FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            ).fetchall()
            seen |= set(working)
            if len(seen) > after and working:
                connection.execute("SELECT pg_terminate_backend(%s)", [working[0][0]])
                return True
            time.sleep(0.01)
    return False


@pytest.fixture
def slow_people():
    """A table of a server that takes its time: a millisecond for every row."""
    servers.create(people(150), "people")
    with servers.executed(
        'CREATE VIEW "slow people" AS SELECT people.* FROM people '
        "WHERE pg_sleep(0.001 + 0 * people.age) IS NOT NULL"
    ):
        yield lambda: read(servers.postgres(), table="slow people")


@pytest.mark.parametrize("after", [slow(0), 2])
def test_a_server_that_is_lost_in_the_middle_of_a_pass(
    slow_people, schema, tmp_path, ledger, monkeypatch, after
):
    """Charged, gone on with, and drawn once; the rows are never counted for a second answer."""
    with monkeypatch.context() as patch, ThreadPoolExecutor() as pool:
        one_by_one(patch)
        patch.setattr("understudy.source.sql._PATIENCE", 0.01)
        patch.setattr("understudy.source.sql._Link._reconnect", lambda link: None)  # it stays away
        cut = pool.submit(cut_in_the_middle, after)
        with pytest.raises(CountingError, match=r"connection was lost.*stays in the ledger"):
            make(schema, tmp_path, table=slow_people())
        assert cut.result()
    before = charges(ledger)
    assert before
    made = make(schema, tmp_path, table=slow_people())
    after = charges(ledger)
    assert after[: len(before)] == before
    assert sorted(after) == sorted(c.purpose for c in made.plan for _ in range(c.times))
    us.verify(made.save(tmp_path / "out"), ledger=ledger, dataset="t").require()


@pytest.mark.slow
def test_a_server_that_comes_back_in_the_middle_of_a_pass(
    slow_people, schema, tmp_path, ledger, monkeypatch
):
    """The question is asked again on a new connection: one charge, one answer, no error."""
    monkeypatch.setattr("understudy.source.sql._PATIENCE", 0.01)
    one_by_one(monkeypatch)
    with ThreadPoolExecutor() as pool:
        cut = pool.submit(cut_in_the_middle, 1)
        made = make(schema, tmp_path, table=slow_people())
        assert cut.result()
    assert sorted(charges(ledger)) == sorted(c.purpose for c in made.plan for _ in range(c.times))
    us.verify(made.save(tmp_path / "out"), ledger=ledger, dataset="t").require()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "visits"', 'name = "visit"', r"lacks 'visit' \(is it 'visits'\?\)"),
        ('"F", "M"', "1, 2", "'sex' is of type 'category' in the schema and text"),
    ],
)
def test_a_table_that_does_not_fit_costs_nothing(tmp_path, ledger, old, new, said):
    servers.create(people(20), "people")
    wrong = Schema.loads(TOML.replace(old, new))
    with pytest.raises(SourceError, match=said):
        make(wrong, tmp_path, table=read(servers.postgres(), table="people"))
    with Ledger(ledger) as opened:
        assert [entry.kind for entry in opened.entries("t")] == ["open"]
