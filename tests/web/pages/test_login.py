"""Logging in and out."""

from tests.web.conftest import TOKEN
from tests.web.test_guard import login_cookie, with_cookie
from understudy.web.people import LONGEST, Role


def test_a_wrong_token_is_told_and_guessing_stops(page):
    response = page.client.get("/enter", params={"token": "wrong"})
    assert response.status_code == 401
    assert "not this page" in page.told(response)
    for _ in range(10):
        last = page.client.get("/enter", params={"token": "wrong"})
    assert last.status_code == 429
    assert "wait" in page.told(last)


def test_the_token_leaves_the_address_and_the_cookie_is_locked_away(page):
    response = page.client.get("/enter", params={"token": TOKEN}, follow_redirects=False)
    assert response.headers["location"] == "/"
    cookie = response.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert TOKEN not in cookie
    page.post("/logout")
    assert page.client.get("/tables", follow_redirects=False).status_code == 303


def test_logging_in_begins_a_new_session(page):
    before = page.csrf()
    planted = login_cookie(page)
    page.enter()
    assert page.csrf("/releases") != before
    assert with_cookie(page, planted) == 303


def test_the_longest_password_is_taken(page):
    password = "\N{SNOWMAN}" * LONGEST
    page.site.people.add("ann", password, Role.ANALYST)
    assert page.log_in("ann", password).status_code == 200


def test_a_wrong_password_leaves_the_name(page):
    page.site.people.add("ann", "a long enough word", Role.ANALYST)
    refused = page.log_in("ann", "another long word")
    assert refused.status_code == 401
    assert 'value="ann"' in refused.text
    assert "another long word" not in refused.text
