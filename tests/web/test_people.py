"""Who may come in."""

import json
import time

import pytest

from understudy.errors import InputError
from understudy.web import people as room
from understudy.web.people import People, Role, Throttle

WORD = "correct horse battery"


@pytest.fixture
def people(tmp_path):
    return People(tmp_path, "a token")


def test_the_token_makes_a_custodian_and_no_other_does(people):
    assert people.by_token("a token").role is Role.CUSTODIAN
    for wrong in ("", "a toke", "a token ", "A token", "☃"):
        assert people.by_token(wrong) is None
    assert People(people._users_file.parent, None).by_token("") is None


def test_passwords_are_kept_as_salted_hashes(people):
    people.add("ana", WORD, Role.CUSTODIAN)
    people.add("ben", WORD, Role.ANALYST)
    kept = json.loads(people._users_file.read_text())
    assert WORD not in json.dumps(kept)
    assert kept["ana"]["scrypt"] != kept["ben"]["scrypt"]
    assert people._users_file.stat().st_mode & 0o077 == 0
    assert people.by_password("ana", WORD).role is Role.CUSTODIAN
    assert people.by_password("ben", WORD).role is Role.ANALYST
    assert people.by_password("ben", WORD + "!") is None
    assert people.by_password("nobody", WORD) is None


def test_a_cookie_speaks_for_one_session_and_cannot_be_changed(people):
    people.add("ben", WORD, Role.ANALYST)
    session = people.by_password("ben", WORD)
    cookie = people.cookie(session)
    assert people.session(cookie) == session
    forged = cookie.replace(".analyst.", ".custodian.")
    assert forged != cookie
    for wrong in (forged, cookie + "x", cookie[:-2], "", None, "a.b.c.d.e", "...."):
        assert people.session(wrong) is None


def test_a_cookie_outlives_a_restart_but_not_its_user(people, tmp_path, monkeypatch):
    people.add("ben", WORD, Role.ANALYST)
    cookie = people.cookie(people.by_password("ben", WORD))
    again = People(tmp_path, "another token")
    assert again.session(cookie).name == "ben"
    again.add("ben", WORD + "2", Role.ANALYST)
    assert again.session(cookie) is None
    fresh = again.cookie(again.by_password("ben", WORD + "2"))
    again.remove("ben")
    assert again.session(fresh) is None
    owner = people.cookie(people.by_token("a token"))
    assert again.session(owner).custodian
    assert People(tmp_path, None).session(owner) is None
    later = time.time() + 13 * 3600
    monkeypatch.setattr(room.time, "time", lambda: later)
    assert again.session(owner) is None


def test_forms_belong_to_a_session(people):
    first, second = people.by_token("a token"), people.by_token("a token")
    assert people.form_is_ours(first, people.form_token(first))
    assert not people.form_is_ours(first, people.form_token(second))
    assert not people.form_is_ours(first, people.form_token(None))
    assert not people.form_is_ours(first, "")


@pytest.mark.parametrize("name", ["", "token", "a.b", "a b", "x" * 65, "../x", "ä"])
def test_names_that_cannot_be(people, name):
    with pytest.raises(InputError, match="a name is"):
        people.add(name, WORD, Role.ANALYST)


def test_short_passwords_and_unknown_users_are_refused(people):
    with pytest.raises(InputError, match="at least 10"):
        people.add("ana", "short", Role.ANALYST)
    with pytest.raises(InputError, match="no user 'ana'"):
        people.remove("ana")


def test_the_key_is_for_its_owner_alone_and_made_once(tmp_path):
    first = People(tmp_path)
    assert (tmp_path / "secret").stat().st_mode & 0o077 == 0
    assert People(tmp_path)._key == first._key
    (tmp_path / "secret").write_text("not hexadecimal")
    with pytest.raises(InputError, match="logs in anew"):
        People(tmp_path)


def test_guessing_is_slowed_down():
    throttle = Throttle(most=3, seconds=60)
    for _ in range(3):
        assert throttle.wait("here") == 0
        throttle.failed("here")
    assert 0 < throttle.wait("here") <= 60
    assert throttle.wait("elsewhere") == 0
