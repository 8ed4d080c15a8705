"""Who may come in."""

import hashlib
import json
import os
import threading
import time
from contextlib import suppress
from dataclasses import asdict

import pytest

from tests.web.conftest import COSTLY, Page, TestClient, app_here
from understudy.errors import InputError
from understudy.web import people as room
from understudy.web.people import People, Role, Throttle, TooManyTries

WORD = "correct horse battery"


@pytest.fixture
def people(tmp_path):
    return People(tmp_path, "a token")


def test_the_token_makes_a_custodian_and_no_other_does(people):
    assert people.by_token("a token").role is Role.CUSTODIAN
    for wrong in ("", "a toke", "a token ", "A token", "☃"):
        assert people.by_token(wrong) is None
    assert People(people._users_file.parent, None).by_token("") is None


def test_passwords_are_kept_as_salted_hashes(people, monkeypatch):
    monkeypatch.setattr(room, "_HASHER", COSTLY)
    people.add("ana", WORD, Role.CUSTODIAN)
    people.add("ben", WORD, Role.ANALYST)
    kept = json.loads(people._users_file.read_text())
    assert WORD not in json.dumps(kept)
    assert kept["ana"]["password"] != kept["ben"]["password"]
    assert kept["ana"]["password"].startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert people._users_file.stat().st_mode & 0o077 == 0
    assert people.by_password("ana", WORD).role is Role.CUSTODIAN
    assert people.by_password("ben", WORD).role is Role.ANALYST
    assert people.by_password("ben", WORD + "!") is None
    assert people.by_password("nobody", WORD) is None


def test_an_older_hash_is_verified_once_and_replaced(people):
    people.add("ben", WORD, Role.ANALYST)
    kept = json.loads(people._users_file.read_text())
    del kept["ben"]["password"]
    salt, (n, r, p) = os.urandom(16), (2**15, 8, 1)
    digest = hashlib.scrypt(WORD.encode(), salt=salt, n=n, r=r, p=p, maxmem=2**27)
    kept["ben"]["scrypt"] = f"{n}:{r}:{p}:{salt.hex()}:{digest.hex()}"
    people._users_file.write_text(json.dumps(kept))
    assert people.by_password("ben", WORD + "!") is None
    assert json.loads(people._users_file.read_text()) == kept
    session = people.by_password("ben", WORD)
    assert session.role is Role.ANALYST
    now = json.loads(people._users_file.read_text())["ben"]
    assert "scrypt" not in now
    assert now["password"].startswith("$argon2id$")
    assert people.session(asdict(session)) == session
    assert people.by_password("ben", WORD).role is Role.ANALYST
    assert people.by_password("ben", WORD + "!") is None


def test_a_session_ends_with_its_user_its_password_or_its_time(people, tmp_path, monkeypatch):
    people.add("ben", WORD, Role.ANALYST)
    session = asdict(people.by_password("ben", WORD))
    again = People(tmp_path, "another token")
    assert again.session(session).name == "ben"
    assert again.session({**session, "role": "custodian"}) is None
    again.add("ben", WORD + "2", Role.ANALYST)
    assert again.session(session) is None
    fresh = asdict(again.by_password("ben", WORD + "2"))
    again.remove("ben")
    assert again.session(fresh) is None
    owner = asdict(people.by_token("a token"))
    assert people.session(owner).custodian
    assert People(tmp_path, None).session(owner) is None
    for other in (None, {}, {"name": "token"}, {**owner, "more": 1}, {**owner, "role": "king"}):
        assert people.session(other) is None
    later = time.time() + 13 * 3600
    monkeypatch.setattr(room.time, "time", lambda: later)
    assert people.session(owner) is None


def test_a_session_by_token_ends_with_the_token(people, tmp_path):
    owner = people.by_token("a token")
    assert "a token" not in str(owner)
    assert People(tmp_path, "a token").session(asdict(owner)) == owner
    after = People(tmp_path, "another token")  # a restart, which prints a new one
    assert after.session(asdict(owner)) is None
    assert after.session({**asdict(owner), "stamp": ""}) is None
    assert after.session(asdict(after.by_token("another token"))).custodian


def test_logging_out_ends_a_session_after_a_restart_too(people, tmp_path):
    gone, other = people.by_token("a token"), people.by_token("a token")
    people.end(gone)
    for each in (people, People(tmp_path, "a token")):
        assert each.session(asdict(gone)) is None
        assert each.session(asdict(other)) == other
    old = people._ended / gone.id
    os.utime(old, (0, 0))
    people.end(other)  # clears away what expired long ago
    assert not old.exists()


@pytest.mark.parametrize("name", ["", "token", "a.b", "a b", "x" * 65, "../x", "ä"])
def test_names_that_cannot_be(people, name):
    with pytest.raises(InputError, match="a name is"):
        people.add(name, WORD, Role.ANALYST)


def test_short_passwords_and_unknown_users_are_refused(people):
    with pytest.raises(InputError, match="at least 10"):
        people.add("ana", "short", Role.ANALYST)
    with pytest.raises(InputError, match="at most 1024"):
        people.add("ana", "x" * 1025, Role.ANALYST)
    with pytest.raises(InputError, match="no user 'ana'"):
        people.remove("ana")


def test_the_key_is_for_its_owner_alone_and_made_once(tmp_path):
    first = People(tmp_path)
    assert (tmp_path / "secret").stat().st_mode & 0o077 == 0
    assert People(tmp_path).key == first.key
    (tmp_path / "secret").write_text("not hexadecimal")
    with pytest.raises(InputError, match="logs in anew"):
        People(tmp_path)


def tried(throttle, *tries):
    """How many of the tries are let through, one after the other."""
    begun = len(throttle._tries)
    for account, address in tries:
        with suppress(TooManyTries):
            throttle.begin(account, address)
    return len(throttle._tries) - begun


def test_who_must_wait_is_told_how_long():
    throttle = Throttle(account=1)
    throttle.begin("ana", "here")
    with pytest.raises(TooManyTries, match=r"wait \d+ seconds"):
        throttle.begin("ana", "there")


def test_tries_are_counted_for_an_account_for_an_address_and_in_all(monkeypatch):
    throttle = Throttle()
    assert tried(throttle, *(("ana", f"10.0.0.{n}") for n in range(100))) == 8
    assert tried(throttle, *((f"user{n}", "10.0.1.1") for n in range(100))) == 20
    assert tried(throttle, *((f"user{n}", f"10.0.2.{n}") for n in range(100))) == 60 - 28
    later = time.monotonic() + 61
    monkeypatch.setattr(time, "monotonic", lambda: later)
    throttle.begin("ben", "10.0.0.1")
    assert tried(throttle, *(("ana", "10.0.0.1") for _ in range(100))) == 8


def test_addresses_of_one_ipv6_network_count_as_one():
    """Whoever has one address there has the whole /64, and may guess from another each time."""
    same = [(f"user{n}", f"2001:db8:0:7:{n:x}::1") for n in range(25)]
    assert tried(throttle := Throttle(), *same) == 20
    assert tried(throttle, ("ana", "2001:db8:0:8::1"), ("ben", "2001:db8:0:7::2%eth0")) == 1
    mapped = [(f"user{n}", f"::ffff:10.0.{n}.1") for n in range(25)]  # IPv4, written another way
    assert tried(throttle := Throttle(), *mapped) == 25
    assert tried(throttle, *((f"other{n}", "10.0.3.1") for n in range(25))) == 19


def test_a_right_password_does_not_count():
    throttle = Throttle(account=3)
    for _ in range(100):
        throttle.forgive(throttle.begin("ana", "here"))
    assert tried(throttle, *(("ana", "here") for _ in range(10))) == 3


def guess(app, name, password, address, found):
    with TestClient(app, client=(address, 1)) as client:
        found.append(Page(client, None).log_in(name, password).status_code)


def test_sixty_wrong_passwords_at_once(tmp_path, monkeypatch):
    """Eight of them are hashed; and somebody else, from elsewhere, logs in all the same."""
    app = app_here(tmp_path / "desk")
    people = app.state.site.people
    people.add("ana", WORD, Role.CUSTODIAN)
    people.add("ben", WORD, Role.ANALYST)
    hashed, matches, together = [], room._matches, threading.Event()

    def slowly(facts, password):
        hashed.append(password)
        together.wait(60)  # all of them are here before the first one is found to be wrong
        return matches(facts, password)

    monkeypatch.setattr(room, "_matches", slowly)
    found, other = [], []
    guesses = [
        threading.Thread(target=guess, args=(app, "ana", f"{WORD}{n}", "10.0.0.1", found))
        for n in range(60)
    ]
    for each in guesses:
        each.start()
    waiting = time.monotonic() + 120
    while len(found) < 52 and time.monotonic() < waiting:
        time.sleep(0.05)
    assert found == [429] * 52
    together.set()
    for each in guesses:
        each.join()
    assert sorted(found) == [401] * 8 + [429] * 52
    assert len(hashed) == 8
    guess(app, "ben", WORD, "10.0.0.2", other)
    assert other == [200]
    guess(app, "ana", WORD, "10.0.0.2", other)
    assert other == [200, 429]  # even a right one waits while its account is being guessed
