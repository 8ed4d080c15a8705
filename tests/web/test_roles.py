"""Every route × every role. The list of routes is the app's own: one without a decision fails."""

import re
from enum import IntEnum

import pytest

from tests.web.conftest import Page, TestClient, app_here, put_bundle, put_table, without_tokens
from tests.web.live import routes
from understudy.web.people import Role

PASSWORD = "a long enough word"


class Least(IntEnum):
    """Who may at least be asking."""

    NOBODY = 0
    ANALYST = 1
    CUSTODIAN = 2


N, A, C = Least
DECIDED = {
    "GET /healthz": N,
    "GET /enter": N,
    "GET /login": N,
    "POST /login": N,
    "GET /static": N,
    "GET /": A,
    "POST /logout": A,
    "GET /releases": A,
    "GET /releases/{identity}": A,
    "GET /releases/{identity}/answer": A,
    "GET /releases/{identity}/bundle.zip": A,
    "GET /releases/{identity}/estimate": A,
    "GET /releases/{identity}/files/{name}": A,
    "GET /releases/{identity}/report": A,
    "GET /releases/{identity}/rows": A,
    "GET /releases/{identity}/sample": A,
    "GET /releases/{identity}/verify": A,
    "GET /audits": C,
    "GET /audits/{identity}": C,
    "GET /import": C,
    "GET /jobs": C,
    "GET /jobs/{identity}": C,
    "GET /jobs/{identity}/state": C,
    "GET /ledger": C,
    "GET /openapi.json": C,
    "GET /tables": C,
    "GET /tables/new": C,
    "GET /tables/{identity}": C,
    "GET /tables/{identity}/plan": C,
    "GET /tables/{identity}/plan/forecast": C,
    "GET /tables/{identity}/schema": C,
    "GET /tables/{identity}/schema/text": C,
    "POST /audits": C,
    "POST /import": C,
    "POST /releases/{identity}/publish": C,
    "POST /jobs/{identity}/cancel": C,
    "POST /jobs/{identity}/close": C,
    "POST /jobs/{identity}/resume": C,
    "POST /ledger/{reservation}/settle": C,
    "POST /tables": C,
    "POST /tables/{identity}/budget": C,
    "POST /tables/{identity}/releases": C,
    "POST /tables/{identity}/remove": C,
    "POST /tables/{identity}/schema/confirm": C,
    "POST /tables/{identity}/schema/decisions": C,
    "POST /tables/{identity}/schema/text": C,
    "POST /tables/{identity}/schema/undo": C,
}
"""Written down by hand: what is not here is not decided, and what is no route is not needed."""


def test_every_route_has_a_decision(page):
    assert sorted(map(" ".join, routes(page.client.app))) == sorted(DECIDED)


@pytest.fixture(params=list(Least), ids=lambda least: least.name.lower())
def somebody(request, tmp_path, bundle):
    """A page with something behind every address, and whoever asks."""
    app = app_here(tmp_path / "desk")
    people = app.state.site.people
    people.add("ben", PASSWORD, Role.ANALYST)
    people.add("ana", PASSWORD, Role.CUSTODIAN)
    with TestClient(app) as client:
        page = Page(client, tmp_path / "desk")
        put_table(page)
        put_bundle(page, bundle, "people")
        if request.param is not N:
            name = {A: "ben", C: "ana"}[request.param]
            assert page.log_in(name, PASSWORD).status_code == 200
        yield request.param, page


def asked(page, route):
    """The response to a route, with a form of our own where it changes something."""
    method, path = route.split()
    path = path.replace("{at}", "0").replace("{name}", "release.json")
    path = re.sub(r"\{[a-z]+\}", "people", path).replace("/static", "/static/app.css")
    token = {"x-csrf-token": page.csrf("/login" if page.who is N else "/releases")}
    headers = {"accept": "application/json", **(token if method == "POST" else {})}
    return page.client.request(method, path, headers=headers, follow_redirects=False)


def test_every_route_for_every_role(somebody):
    who, page = somebody
    page.who = who
    refused = {N: 401, A: 403}
    for route, least in DECIDED.items():
        if route == "POST /logout":
            continue
        status = asked(page, route).status_code
        if who < least:
            assert status == refused[who], (route, status)
        elif route in ("GET /enter", "POST /login"):  # a wrong token
            assert status == 401, (route, status)
        else:
            assert status not in (401, 403), (route, status)
    if who is not N:
        assert asked(page, "POST /logout").status_code == 303


ASIDE = [
    "/releases/../tables", "/releases/%2e%2e/tables", "/static/../tables", "/login/../tables",
    "/static/%2e%2e/tables/people", "//tables", "/./tables", "/releases/..%2ftables/people",
    "/TABLES", "/tables/", "/tables/people/", "/releases;/tables", "/healthz/../ledger",
]  # fmt: skip


@pytest.mark.parametrize("somebody", [N, A], indirect=True, ids=["nobody", "analyst"])
def test_no_other_way_of_writing_an_address_leads_further(somebody):
    _, page = somebody
    for path in ASIDE:
        for method in ("GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "X"):
            request = page.client.build_request(method, "http://testserver/")
            request.url = request.url.copy_with(raw_path=path.encode())
            response = page.client.send(request, follow_redirects=False)
            assert response.status_code >= 300, (method, path)
            assert "Aa" not in without_tokens(response.text)
            assert "people" not in response.headers.get("location", "")


@pytest.mark.parametrize("somebody", [A], indirect=True, ids=["analyst"])
def test_what_an_analyst_sees_names_no_table(somebody):
    """No page that an analyst may open links to what she may not."""
    page = somebody[1]
    page.who = A
    for route, least in DECIDED.items():
        if least <= A and route.startswith("GET"):
            text = asked(page, route).text
            assert not re.search(r'(href|action)="/(tables|jobs|ledger|audits|import)', text), route
