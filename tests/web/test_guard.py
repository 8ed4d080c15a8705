"""What every request passes: hosts, sessions, roles, forms, headers, errors without values."""

import base64
import json
import re

import pytest

from tests.web import live
from tests.web.conftest import (
    TOKEN,
    Page,
    TestClient,
    app_here,
    put_bundle,
    put_table,
    without_tokens,
)
from understudy.web.people import Role


def routes(page, method):
    paths = [path for own, path in live.routes(page.client.app) if own == method]
    assert len(paths) > 10
    paths = [path for path in paths if path != "/static"]
    return [re.sub(r"\{at\}", "0", re.sub(r"\{[a-z]+\}", "people", path)) for path in paths]


OPEN = {"/healthz", "/login", "/enter"}


def test_nobody_comes_in_without_a_token(page):
    for path in routes(page, "GET"):
        response = page.client.get(path, follow_redirects=False)
        if path not in OPEN:
            assert (response.status_code, response.headers["location"]) == (303, "/login"), path
            program = page.client.get(path, headers={"accept": "application/json"})
            assert program.status_code == 401
    assert page.client.get("/openapi.json", follow_redirects=False).status_code == 303


def login_cookie(page):
    return page.client.cookies.get(page.site.people.cookie_name)


def with_cookie(page, cookie):
    """What somebody gets who has nothing but this cookie."""
    other = TestClient(page.client.app, cookies={page.site.people.cookie_name: cookie})
    return other.get("/tables", follow_redirects=False).status_code


def test_a_cookie_is_signed_and_cannot_be_changed(tmp_path):
    app = app_here(tmp_path / "desk")
    app.state.site.people.add("ben", "a long enough word", Role.ANALYST)
    with TestClient(app) as client:
        page = Page(client, tmp_path / "desk")
        page.log_in("ben", "a long enough word")
        cookie = login_cookie(page)
        assert with_cookie(page, cookie) == 403  # an analyst
        body, _, signature = cookie.partition(".")
        kept = json.loads(base64.b64decode(body))
        kept["login"]["role"] = "custodian"
        forged = base64.b64encode(json.dumps(kept).encode()).decode()
        unsigned = base64.b64encode(b'{"login": {"name": "token"}}').decode()
        for wrong in (
            f"{forged}.{signature}",
            cookie + "x",
            cookie[:-2],
            body,
            unsigned,
            "null",
            ".",
        ):
            assert with_cookie(page, wrong) == 303, wrong


def test_a_copied_cookie_is_refused_after_logging_out(custodian):
    page = custodian
    copied = login_cookie(page)
    assert with_cookie(page, copied) == 200
    assert page.post("/logout").status_code == 200
    assert page.client.get("/tables", follow_redirects=False).status_code == 303
    assert with_cookie(page, copied) == 303


def test_forms_belong_to_a_session(tmp_path):
    app = app_here(tmp_path / "desk")
    with TestClient(app) as one, TestClient(app) as two:
        first, second = Page(one, None).enter(), Page(two, None).enter()
        token = first.csrf("/releases")
        for wrong in (second.csrf("/releases"), "", "-", token[:-1]):
            assert one.post("/logout", data={"csrf": wrong}).status_code == 403
        assert one.post("/logout", data={"csrf": token}).status_code == 200
        two.cookies.clear()
        assert two.post("/login", data={"token": TOKEN, "csrf": ""}).status_code == 403


def test_nothing_is_changed_without_our_own_form(custodian):
    page = custodian
    table = put_table(page)
    before = sorted(p.name for p in page.folder.rglob("*"))
    for path in routes(page, "POST"):
        path = path.replace("people", table.id)
        for form in ({}, {"csrf": "wrong"}):
            assert page.client.post(path, data=form).status_code == 403, path
        assert page.client.post(path, json={"csrf": "wrong"}).status_code == 403, path
        assert page.client.post(path, files={"file": ("a.csv", b"a\n1\n")}).status_code == 403, path
    foreign = {"csrf": page.csrf("/releases")}
    elsewhere = page.client.post("/logout", data=foreign, headers={"origin": "http://evil.example"})
    assert elsewhere.status_code == 403
    assert sorted(p.name for p in page.folder.rglob("*")) == before


def test_an_analyst_sees_releases_and_nothing_else(analyst, bundle):
    page = analyst
    put_table(page)
    put_bundle(page, bundle, "people")
    for path in routes(page, "GET"):
        if path in OPEN | {"/"}:
            continue
        response = page.client.get(path.replace("{name}", "release.json"))
        allowed = path.startswith("/releases")
        assert (response.status_code != 403) == allowed, path
        if not allowed:
            assert "custodians" in response.text
            assert "Aa" not in without_tokens(response.text)
    token = page.csrf("/releases")
    for path in routes(page, "POST"):
        if path not in ("/login", "/logout"):
            response = page.client.post(path, data={"csrf": token})
            assert response.status_code == 403, path
    assert page.client.get("/tables/people").status_code == 403
    assert page.client.get("/tables/none-such").status_code == 403  # not even whether it is there
    assert "/tables" not in page.client.get("/releases").text


def test_other_names_for_this_machine_are_refused(page):
    for host in ("evil.example", "evil.example:8765", "127.0.0.1.evil.example", ""):
        response = page.client.get("/login", headers={"host": host})
        assert response.status_code == 421, host
    for host in ("localhost:8765", "127.0.0.1", "[::1]:80"):
        assert page.client.get("/login", headers={"host": host}).status_code == 200


def test_headers_of_every_response(custodian, bundle):
    put_bundle(custodian, bundle)
    for path in ("/tables", "/releases/small", "/none", "/releases/small/rows"):
        headers = custodian.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
    report = custodian.client.get("/releases/small/report").headers["content-security-policy"]
    assert "script-src" not in report
    assert "sandbox" in report


def test_pages_load_nothing_from_elsewhere_and_run_no_inline_script(custodian, bundle):
    put_table(custodian)
    put_bundle(custodian, bundle)
    for path in (
        "/tables",
        "/tables/people",
        "/tables/people/schema",
        "/releases/small",
        "/ledger",
    ):
        text = custodian.client.get(path).text
        assert not re.search(r"(src|href|action)=\"https?:", text)
        assert not re.search(r"<script(?![^>]*src=)", text)
        assert not re.search(r"\son[a-z]+=|\sstyle=", text)


NAMES = [
    "../secret",
    "..%2fsecret",
    "%2e%2e/secret",
    "people/../../secret",
    "x%00y",
    ".slot-0",
    "A",
]


@pytest.mark.parametrize("name", NAMES)
def test_no_address_leaves_the_folder(custodian, bundle, name):
    put_bundle(custodian, bundle)
    secret = (custodian.folder / "secret").read_text()
    for path in (f"/tables/{name}", f"/releases/{name}", f"/jobs/{name}/state", f"/audits/{name}",
                 f"/releases/small/files/{name}", f"/static/{name}"):  # fmt: skip
        response = custodian.client.get(path)
        assert response.status_code in (400, 404), path
        assert secret not in response.text


def test_an_unforeseen_error_says_nothing_of_its_message(tmp_path, caplog, capsys):
    app = app_here(tmp_path / "desk")

    @app.get("/releases/broken/now")
    def broken():
        raise ValueError("the income of Ms Smith is 41,250")

    with TestClient(app) as client:
        page = Page(client, tmp_path / "desk").enter()
        response = page.client.get("/releases/broken/now")
    assert response.status_code == 500
    assert "ValueError" in response.text
    seen = response.text + caplog.text + "".join(capsys.readouterr())
    assert "Smith" not in seen
    assert "41,250" not in seen
    assert str(tmp_path) not in seen
    assert "ValueError on GET /releases/broken/now" in caplog.text


def test_cookies_are_for_tls_alone_where_there_is_tls(tmp_path):
    app = app_here(tmp_path / "desk", tls=True, token=None, hosts=None)
    app.state.site.people.add("ana", "a long enough word", Role.CUSTODIAN)
    with TestClient(app, base_url="https://data.example") as client:
        page = Page(client, tmp_path / "desk")
        assert page.client.get("/enter", params={"token": ""}).status_code == 401
        assert 'name="token"' not in page.client.get("/login").text
        form = {"name": "ana", "password": "a long enough word", "csrf": page.csrf()}
        response = client.post("/login", data=form, follow_redirects=False)
        assert "secure" in response.headers["set-cookie"].lower()
        assert "max-age" in response.headers["strict-transport-security"]
        assert client.get("/tables").status_code == 200


@pytest.mark.parametrize("who", ["page", "analyst"])
def test_who_may_only_log_in_or_out_sends_no_more_than_that(who, request):
    """A form of a million empty fields takes the parser, and with it the page, seconds."""
    page = request.getfixturevalue(who)
    kind = {"content-type": "application/x-www-form-urlencoded"}
    for path in ("/login", "/logout") if who == "analyst" else ("/login",):
        assert page.client.post(path, content=b"&" * 20_001, headers=kind).status_code == 413
    assert page.client.post("/login", content=b"&" * 19_000, headers=kind).status_code == 403
