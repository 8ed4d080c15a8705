"""Files on their way in: limits, types, and what is damaged."""

import asyncio
import gzip
import os
import random
from io import BytesIO

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.web.conftest import csv_bytes, small_table
from understudy.errors import SourceError
from understudy.web import workers as room
from understudy.web.workers import Workers

SECRET = "Wilhelmina"


def as_parquet(table):
    out = BytesIO()
    parquet.write_table(table, out)
    return out.getvalue()


def test_a_csv_and_a_parquet_become_tables_with_drafts(custodian):
    for name, data in (
        ("my people.csv", csv_bytes(small_table())),
        ("more.parquet", as_parquet(small_table())),
        ("packed.csv.gz", gzip.compress(csv_bytes(small_table()))),
        ("european.csv", csv_bytes(small_table()).replace(b",", b";")),
        ("uneven.csv", csv_bytes(small_table()) + b"1\n1,2,3,4\n"),  # a release takes it, too
    ):
        response = custodian.upload(name, data)
        assert response.status_code == 200, custodian.told(response)
        assert "This draft is private" in response.text
    tables = custodian.site.workspace.tables()
    assert [t.name for t in tables] == ["european", "more", "my people", "packed", "uneven"]
    assert {t.columns for t in tables} == {3}
    assert {t.file for t in tables} == {"rows.csv", "rows.parquet", "rows.csv.gz"}
    assert not list((custodian.folder / "incoming").iterdir())
    for table in tables:
        assert table.folder.stat().st_mode & 0o077 == 0


REFUSED = [
    ("notes.docx", b"PK\x03\x04", "docx", "CSV"),
    ("table.xlsx", b"PK\x03\x04", "xlsx", "Save as, CSV"),
    ("table", b"a,b\n1,2\n", "ends in nothing", "CSV"),
    ("empty.csv", b"", "is empty", "choose the file"),
    ("blank.csv", b"\n\n", "empty line", "name the columns"),
    ("headless.csv", b"1,2\n3,4\n", "no header", "add one above"),
    ("twice.csv", b"a,a\n1,2\n", "duplicate column", "rename one"),
    ("wide.csv", "a,b\n1,2\n".encode("utf-16"), "not UTF-8", "save it as CSV in UTF-8"),
    ("old.csv", "ward,age\nA,1\nP\xe4d,2\n".encode("latin-1"), "line 3 is not UTF-8", "save it as"),
    ("fake.parquet", b"a,b\n1,2\n", "not a whole Parquet file", ""),
    ("short.parquet", b"PAR1", "not a whole Parquet file", ""),
    ("fake.csv.gz", b"a,b\n1,2\n", "gzip", ""),
]


@pytest.mark.parametrize(("name", "data", "what", "remedy"), REFUSED)
def test_what_is_wrong_and_what_to_do(custodian, name, data, what, remedy):
    response = custodian.upload(name, data)
    told = custodian.told(response)
    assert response.status_code == 422
    assert what in told, told
    assert remedy in told
    assert SECRET not in response.text
    assert str(custodian.folder) not in response.text
    assert custodian.site.workspace.tables() == []
    assert not list((custodian.folder / "incoming").iterdir())


def test_no_file_no_form_and_too_many_files(custodian):
    nothing = custodian.upload("", b"")
    assert (nothing.status_code, "no file was chosen" in custodian.told(nothing).lower()) == (
        422,
        True,
    )
    token = custodian.csrf("/releases")
    headers = {"x-csrf-token": token, "content-type": "text/plain"}
    assert custodian.client.post("/tables", content=b"a", headers=headers).status_code == 422
    headers["content-type"] = "multipart/form-data; boundary=x"
    assert custodian.client.post("/tables", content=b"garbage", headers=headers).status_code == 422
    files = [("file", (f"{name}.csv", b"a\nx\n")) for name in "abc"]
    three = custodian.client.post("/tables", data={"csrf": token}, files=files)
    assert "at most 2 files at a time" in custodian.told(three).lower()
    zips = [("file", (f"{name}.zip", b"")) for name in "ab"]
    two = custodian.client.post("/import", data={"csrf": token}, files=zips)
    assert "one file at a time" in custodian.told(two).lower()


class Counting:
    """A body that is made while it is sent, and remembers how much was taken."""

    def __init__(self, token, size):
        head = f'--x\r\ncontent-disposition: form-data; name="csrf"\r\n\r\n{token}\r\n'
        head += '--x\r\ncontent-disposition: form-data; name="file"; filename="big.csv"\r\n\r\n'
        self.head, self.size, self.sent = head.encode(), size, 0

    async def __call__(self):
        await asyncio.sleep(0)
        if self.sent == 0:
            self.sent = len(self.head)
            return {"type": "http.request", "body": self.head, "more_body": True}
        self.sent += 1 << 20
        return {
            "type": "http.request",
            "body": b"x" * (1 << 20),
            "more_body": self.sent < self.size,
        }


def asked(page, receive, headers):
    """One POST by the bare protocol, so that nothing is read that the page does not ask for."""
    status = []

    async def send(message):
        if message["type"] == "http.response.start":
            status.append(message["status"])

    cookie = "; ".join(f"{c.name}={c.value}" for c in page.client.cookies.jar)
    plain = {"host": "testserver", "cookie": cookie, **headers}
    scope = {
        "type": "http", "method": "POST", "path": "/tables", "raw_path": b"/tables",
        "query_string": b"", "http_version": "1.1", "scheme": "http", "client": ("127.0.0.1", 1),
        "server": ("testserver", 80), "root_path": "", "asgi": {"version": "3.0"},
        "headers": [(k.encode(), v.encode()) for k, v in plain.items()],
    }  # fmt: skip
    asyncio.run(page.client.app(scope, receive, send))
    return status[0]


@pytest.fixture
def limited(tmp_path):
    from tests.web.conftest import Page, TestClient, app_here

    app = app_here(tmp_path / "desk", max_upload=5_000_000)
    with TestClient(app) as client:
        yield Page(client, tmp_path / "desk").enter()


def test_two_gigabytes_over_the_limit_are_not_read(limited):
    form = {"content-type": "multipart/form-data; boundary=x"}
    told = Counting(limited.csrf("/releases"), 2 * 10**9)
    assert asked(limited, told, {**form, "content-length": str(2 * 10**9)}) == 413
    assert told.sent == 0
    untold = Counting(limited.csrf("/releases"), 2 * 10**9)
    assert asked(limited, untold, form) == 413
    assert untold.sent < 10_000_000
    foreign = Counting("a foreign token", 2 * 10**9)
    assert asked(limited, foreign, form) == 403
    assert foreign.sent < 2_000_000
    assert not list((limited.folder / "incoming").iterdir())


def test_the_limit_is_told(limited):
    response = limited.upload("big.csv", b"a,b\n" + b"1,2\n" * 2_000_000)
    assert response.status_code == 413
    assert "5 MB" in limited.told(response)
    assert "--max-upload" in limited.told(response)


# --- fuzzed files --------------------------------------------------------------------------------


def damaged(seed):
    """A file that once was one, as disks, networks and spreadsheets leave them."""
    rng = random.Random(seed)
    table = small_table(40, seed).append_column("name", pa.array([SECRET] * 40))
    kind = rng.choice(["csv", "parquet"])
    data = bytearray(csv_bytes(table) if kind == "csv" else as_parquet(table))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) or 1)
        match rng.randrange(6):
            case 0:
                del data[at:]
            case 1:
                data[at : at + rng.randint(1, 40)] = rng.randbytes(rng.randint(1, 40))
            case 2:
                data[at:at] = b'"' * rng.randint(1, 3)
            case 3:
                data[at:at] = rng.choice([b"\0", b"\r", b",,,,", b"\n\n", b"\xff\xfe", b"PAR1"])
            case 4:
                data[: rng.randint(1, 60)] = b""
            case _:
                data = data[at:] + data[:at]
    return f"file.{kind}", bytes(data)


def test_damaged_files_get_a_reason(custodian):
    refused = 0
    for seed in range(16):
        name, data = damaged(seed)
        response = custodian.upload(name, data)
        assert response.status_code in (200, 422), (seed, response.status_code)
        if response.status_code == 422:
            told = custodian.told(response)
            refused += 1
            assert len(told) > 20
            assert SECRET not in told
            assert str(custodian.folder) not in told
    assert refused >= 5


def dies(files, split):
    os._exit(3)


def test_a_file_that_kills_its_reader_does_not_kill_the_page(tmp_path, monkeypatch):
    """In a process of its own: the page goes on, and so does the next file."""

    async def both():
        workers = Workers(1)
        path = tmp_path / "rows.csv"
        path.write_bytes(csv_bytes(small_table(20)))
        try:
            monkeypatch.setattr(room, "draft_files", dies)
            with pytest.raises(SourceError, match="brought its reader down"):
                await workers.draft([(path, "x.csv")])
            monkeypatch.undo()
            return await workers.draft([(path, "x.csv")])
        finally:
            workers.close()

    assert asyncio.run(both())["columns"] == 3


@pytest.mark.slow
def test_two_hundred_malformed_files(custodian):
    refused, seed = 0, 1000
    while refused < 200:
        seed += 1
        name, data = damaged(seed)
        response = custodian.upload(name, data)
        assert response.status_code in (200, 422), (seed, response.status_code)
        if response.status_code == 422:
            told = custodian.told(response)
            refused += 1
            assert len(told) > 20
            assert SECRET not in told
            assert str(custodian.folder) not in told
