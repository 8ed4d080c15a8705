"""Every address, with whatever can be thought of sent to it: refusals, and never a 5xx."""

import os

import pytest
from hypothesis import HealthCheck, given, settings

from tests.web.conftest import FAST, Page, TestClient, app_here, put_bundle, put_table

THERE = {"/tables": "people", "/releases": "small", "/jobs": "small-2", "/audits": "small-2"}
PATIENCE = 300
"""Seconds for an answer: a plan takes its time where the machine is busy."""


def idle(folder, lock):
    """A job that is gone at once."""
    return os.getpid()


@pytest.fixture(scope="module")
def api(tmp_path_factory, bundle):
    """The page with a table, a release and a job, and a session to ask with."""
    import schemathesis  # seconds, which only this test is to pay for

    app = app_here(tmp_path_factory.mktemp("api") / "desk", idle)
    with TestClient(app) as client:
        page = Page(client, app.state.site.workspace.folder).enter()
        put_table(page)
        put_bundle(page, bundle)
        page.post("/tables/people/releases", **FAST, name="small")
        cookies = "; ".join(f"{c.name}={c.value}" for c in client.cookies.jar)
        headers = {"cookie": cookies, "x-csrf-token": page.csrf("/releases"), "host": "testserver"}
        yield schemathesis.openapi.from_asgi("/openapi.json", app, headers=headers), headers


def operations(schema):
    found = [each.ok() for each in schema.get_all_operations()]
    return sorted(found, key=lambda operation: "remove" in operation.path)  # the table goes last


def fuzz(api, examples):
    from schemathesis.checks import not_a_server_error

    schema, headers = api
    tried = 0
    for operation in operations(schema):

        @settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def ask(case):
            nonlocal tried
            tried += 1
            parameters = case.path_parameters or {}
            if "identity" in parameters and tried % 4:
                parameters["identity"] = THERE["/" + case.path.split("/")[1]]
            response = case.call(headers=headers, timeout=PATIENCE)
            case.validate_response(response, checks=[not_a_server_error], headers=headers)

        ask()
    return tried


def test_no_request_breaks_the_page(api):
    assert len(operations(api[0])) > 30
    assert fuzz(api, 2) > 75


@pytest.mark.slow
def test_many_requests_do_not_break_the_page(api):
    assert fuzz(api, 100) > 2000
