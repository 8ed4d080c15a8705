"""Numbers, questions and texts beyond all use: refused at once, in a line, and nothing else happens."""

import socket
import time
from urllib.parse import quote

import pytest

from tests.web.conftest import FAST, put_bundle, put_table

LONG = "x" * 400_000
NUMBERS = ["1e99999999", "1e-99999999", "9" * 5_000, "1/0", "nan"]
CLAUSES = "age=1 or " * 100_000 + "age=1"


@pytest.fixture
def desk(custodian, bundle):
    put_table(custodian)
    put_table(custodian, name="new", epsilon=None)
    put_bundle(custodian, bundle)
    return custodian


def refused(page, ask):
    """A refusal, and what it says; the seconds are CPU seconds, which other work does not change."""
    begun = time.process_time()
    response = ask()
    assert time.process_time() - begun < 2
    assert response.status_code in (400, 413, 422), response.status_code
    told = page.told(response)
    assert len(told) < 1_000
    return told


@pytest.mark.parametrize("number", NUMBERS, ids=["large", "small", "long", "ratio", "nan"])
def test_absurd_numbers_are_refused_in_a_line(desk, number):
    plan = "/tables/people/plan"
    json = {"accept": "application/json"}
    for name in ("epsilon", "delta", "target", "rows"):
        refused(desk, lambda name=name: desk.client.get(plan, params={name: number}))
        forecast = desk.client.get(f"{plan}/forecast", params={name: number}, headers=json)
        assert forecast.status_code == 422, name
        assert len(forecast.text) < 1_000
    for name in ("epsilon", "delta", "size", "rows"):
        form = {**FAST, name: number}
        refused(desk, lambda form=form: desk.post("/tables/people/releases", **form))
    for name in ("epsilon", "delta", "rows_public"):
        form = {"epsilon": "1", name: number}
        refused(desk, lambda form=form: desk.post("/tables/new/budget", **{"sure": "yes", **form}))
    sample = "/releases/small/sample"
    for name in ("rows", "key"):
        refused(desk, lambda name=name: desk.client.get(sample, params={name: number}))
    assert list((desk.folder / "jobs").iterdir()) == []


@pytest.mark.parametrize(
    "question",
    [CLAUSES[:9_000] + "age=1", LONG[:20_000], "(" * 1_900, "not " * 400 + "age=1"],
    ids=["clauses", "word", "brackets", "nots"],
)
def test_absurd_questions_are_refused_in_a_line(desk, question):
    for path in ("/releases/small", "/releases/small/answer", "/releases/small/estimate"):
        refused(desk, lambda path=path: desk.client.get(path, params={"q": question}))


def test_no_page_echoes_what_is_absurdly_long(desk):
    for name in ("method", "workload", "delta"):
        text = refused(
            desk, lambda name=name: desk.post("/tables/people/releases", **{**FAST, name: LONG})
        )
        assert text
    refused(desk, lambda: desk.post("/tables/new/budget", epsilon="1", neighbours=LONG, sure="yes"))
    refused(
        desk,
        lambda: desk.post("/tables/new/schema/decisions", again="unit", column=LONG, max_rows="5"),
    )
    refused(desk, lambda: desk.post("/tables/people/schema/text", text=LONG))
    refused(desk, lambda: desk.post("/tables/people/schema/text", text=LONG * 20))
    assert desk.post("/login", name=LONG, password=LONG).status_code == 401


@pytest.mark.slow
def test_a_server_refuses_a_hundred_thousand_clauses_in_an_address(server):
    """Before the page is asked at all."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as line:
        line.sendall(f"GET /releases/small?q={quote(CLAUSES)} HTTP/1.1\r\n".encode())
        line.sendall(b"host: 127.0.0.1\r\n\r\n")
        answer = line.recv(4_096)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert len(answer) < 400
