"""Nothing that is sent to the page makes it connect to anything."""

import asyncio
import os
import socket

import pytest

from tests.web.conftest import csv_bytes, put_bundle, put_table, small_table
from tests.web.live import routes
from understudy.errors import InputError
from understudy.source import read
from understudy.source.addresses import VARIABLE
from understudy.web.workers import Workers


@pytest.fixture
def trap():
    """A port that nobody should knock at."""
    with socket.create_server(("127.0.0.1", 0)) as port:
        port.setblocking(False)
        yield port


def untouched(trap):
    with pytest.raises(BlockingIOError):
        trap.accept()


def fields_of(app, method, path):
    """The names of everything that a route takes: in its address, and in its form."""
    known = app.openapi()
    facts = known["paths"].get(path, {}).get(method.lower(), {})
    yield from (each["name"] for each in facts.get("parameters", ()) if each["in"] == "query")
    for form in facts.get("requestBody", {}).get("content", {}).values():
        name = form["schema"]["$ref"].rpartition("/")[2]
        yield from known["components"]["schemas"][name]["properties"]


def test_no_field_of_any_form_is_taken_for_an_address(custodian, bundle, trap):
    table = put_table(custodian)
    put_bundle(custodian, bundle, "people")
    token = custodian.csrf("/releases")
    place = f"127.0.0.1:{trap.getsockname()[1]}"
    addresses = [f"postgresql://ann@{place}/db", f"http://{place}/x.parquet", f"spark://{place}"]
    tried = set()
    for method, path in routes(custodian.client.app):
        if path in ("/logout", "/static", "/login", "/enter") or method not in ("GET", "POST"):
            continue
        names = set(fields_of(custodian.client.app, method, path))
        tried |= names
        where = path.replace("{identity}", table.id).replace("{at}", "0")
        for address in addresses:
            sent = {**dict.fromkeys(names, address), "csrf": token, "text": f'x = "{address}"'}
            if method == "GET":
                custodian.client.get(where, params=sent)
            else:
                custodian.client.post(where, data=sent)
    assert {"epsilon", "name", "release", "q", "text", "column", "workload"} <= tried
    untouched(trap)


def test_no_upload_is_taken_for_an_address(custodian, trap):
    address = f"http://127.0.0.1:{trap.getsockname()[1]}/x.csv"
    for name in (address, f"{address}\\..\\rows.csv", "rows.csv"):
        for data in (
            address.encode(),
            f"{address}\n{address}\n".encode(),
            csv_bytes(small_table()),
        ):
            custodian.upload(name, data, name=address)
    untouched(trap)


def opens(url):
    """In a worker of the page: what becomes of an address that got there after all."""
    try:
        read(url, table="t")
    except InputError as error:
        return os.environ[VARIABLE], str(error)
    return None


def test_the_processes_of_the_page_open_no_database(trap):
    url = f"postgresql://ann@127.0.0.1:{trap.getsockname()[1]}/db"

    async def both():
        workers = Workers(1)
        try:
            from understudy.web.workers import TABLE

            return [await workers._run(opens, url), await workers._alone(TABLE, opens, url)]
        finally:
            workers.close()

    for listed, said in asyncio.run(both()):
        assert listed == ""
        assert "may not be opened here" in said
    untouched(trap)
