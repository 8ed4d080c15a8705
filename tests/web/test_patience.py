"""Clients that take their time, send too much, or find the disk full: others go on, nothing is kept."""

import errno
import os
import re
import socket
import time
from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.web.conftest import (
    TOKEN,
    Page,
    Server,
    app_here,
    csv_bytes,
    put_bundle,
    small_table,
    zipped,
)
from tests.web.live import IMPATIENT, answer, asks, everything, fields, listening

UPLOAD = "content-type: multipart/form-data; boundary=x"
HTTPS = "x-forwarded-proto: https"
FORM = "application/x-www-form-urlencoded"
END = b"\r\n--x--\r\n"


def begun(token, name="big.csv"):
    """A form up to the first byte of its file."""
    return (
        f'--x\r\ncontent-disposition: form-data; name="csrf"\r\n\r\n{token}\r\n'
        f'--x\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    ).encode()


def enter(address, token=TOKEN):
    """A custodian's cookie, as a header, and the token of its forms."""
    _, told, _ = answer(address, asks(f"/enter?token={token}", headers=[HTTPS]))
    cookie = "cookie: " + re.search(r"set-cookie: ([^;]+)", told)[1]
    _, _, page = answer(address, asks("/releases", headers=[cookie, HTTPS]))
    return cookie, re.search(r'name="csrf" value="([^"]+)"', page)[1]


def half_kept(folder):
    return list((folder / "incoming").iterdir())


def eventually(true):
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def served(tmp_path):
    folder = tmp_path / "desk"
    with listening(app_here(folder, max_upload=5_000_000), IMPATIENT) as address:
        yield address, folder


def test_headers_that_never_end_are_cut_off_and_others_are_answered(served):
    """One letter at a time, from as many connections as there are places."""
    address, _ = served
    with ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(address))
            for _ in range(2 * IMPATIENT.most)
        ]
        began = time.monotonic()
        ends = [None] * len(slow)
        while None in ends and time.monotonic() < began + 60:
            assert answer(address, asks("/healthz"))[0] == 200
            for at, connection in enumerate(slow):
                if ends[at] is None:
                    connection.settimeout(0.001)
                    try:
                        connection.sendall(b"G" if connection.fileno() % 2 else b"")
                        if connection.recv(1) == b"":
                            ends[at] = time.monotonic() - began
                    except TimeoutError:
                        pass
                    except ConnectionError:
                        ends[at] = time.monotonic() - began
        assert None not in ends


def test_connections_that_are_kept_open_make_room(served):
    """Each has had its answer and asks for nothing more: files are few, and others want one."""
    address, _ = served
    with ExitStack() as stack:
        kept = []
        for _ in range(2 * IMPATIENT.most):
            connection = stack.enter_context(socket.create_connection(address, 60))
            connection.sendall(asks("/healthz"))
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
            kept.append(connection)
        for connection in kept[: IMPATIENT.most]:
            everything(connection)  # until it is hung up on, long before 75 seconds
        assert answer(address, asks("/healthz"))[0] == 200


@pytest.mark.parametrize("proxies", [(), ("127.0.0.1",)], ids=["direct", "proxy"])
def test_strangers_make_room_before_somebody_who_is_logged_in(tmp_path, proxies):
    """An upload is under way, for longer than any other connection, and strangers take every place."""
    folder, patient = tmp_path / "desk", replace(IMPATIENT, headers=60.0, body=60.0)
    with ExitStack() as stack:
        address = stack.enter_context(listening(app_here(folder, proxies=proxies), patient))
        cookie, token = enter(address)
        body = begun(token) + csv_bytes(small_table(50)) + END
        headers = [cookie, UPLOAD, f"content-length: {len(body)}", HTTPS]
        upload = stack.enter_context(socket.create_connection(address, 60))
        upload.sendall(asks("/tables", "POST", headers, body[:-50]))
        eventually(lambda: half_kept(folder))
        form = [f"content-type: {FORM}", "content-length: 1000", HTTPS]
        for _ in range(2 * IMPATIENT.most):
            stranger = stack.enter_context(socket.create_connection(address, 60))
            stranger.sendall(asks("/login", "POST", form, b"name="))
        assert answer(address, asks("/healthz", headers=[HTTPS]))[0] == 200
        upload.sendall(body[-50:])
        assert upload.recv(65536).startswith(b"HTTP/1.1 303")


def test_a_whole_request_in_pieces_is_answered(served):
    """Slow, and within the time; where a busy machine took longer than that, once more."""
    address, _ = served
    for _ in range(10):
        with socket.create_connection(address) as connection:
            in_time = in_pieces(connection)
            if not in_time:
                continue
            time.sleep(1.5 * IMPATIENT.headers)  # between requests there is more time
            if in_pieces(connection):  # on the same connection: its time begins anew
                return
    pytest.fail("the machine is too busy for this test")


def in_pieces(connection):
    """Whether the pieces were sent within half of the time; then they are answered."""
    request, began = asks("/healthz"), time.monotonic()
    connection.settimeout(60)
    connection.sendall(request[:9])
    time.sleep(0.2)
    connection.sendall(request[9:])
    if time.monotonic() - began > IMPATIENT.headers / 2:
        return False
    told = b""
    while b"true}" not in told:
        told += connection.recv(65536)
    assert told.startswith(b"HTTP/1.1 200")
    return True


def test_an_upload_that_trickles_is_cut_off_and_leaves_nothing(served):
    address, folder = served
    cookie, token = enter(address)
    headers = [cookie, UPLOAD, "content-length: 4000000"]
    with socket.create_connection(address) as connection:
        connection.sendall(asks("/tables", "POST", headers, begun(token)))
        eventually(lambda: half_kept(folder))

        def trickle():
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                connection.sendall(b"x")  # every byte in time, and not enough of them
                time.sleep(0.05)
                assert answer(address, asks("/healthz"))[0] == 200

        with pytest.raises(ConnectionError):
            trickle()
    eventually(lambda: not half_kept(folder))


def test_an_upload_that_is_slow_and_fast_enough_is_taken(served):
    """Longer than the time for a body, at more than the least rate."""
    address, folder = served
    cookie, token = enter(address)
    body = begun(token, "people.csv") + csv_bytes(small_table(4000)) + END
    headers = [cookie, UPLOAD, f"content-length: {len(body)}"]
    with socket.create_connection(address) as connection:
        connection.sendall(asks("/tables", "POST", headers))
        for at in range(0, len(body), len(body) // 8):
            connection.sendall(body[at : at + len(body) // 8])
            time.sleep(0.2)
        connection.settimeout(120)
        assert connection.recv(65536).startswith(b"HTTP/1.1 303")
    assert len(list((folder / "tables").iterdir())) == 1


def test_a_stranger_who_trickles_a_form_is_cut_off(served):
    """Refused before the body is read, or not: in either case the connection ends."""
    address, _ = served
    headers, _ = fields(name="ana", password="x" * 1000)
    for path in ("/login", "/tables"):
        with socket.create_connection(address) as connection:
            connection.sendall(asks(path, "POST", headers))
            began = time.monotonic()
            everything(connection)
            assert time.monotonic() < began + 50


def test_a_client_that_does_not_read_is_cut_off(tmp_path, bundle):
    app = app_here(tmp_path / "desk")
    put_bundle(Page(None, tmp_path / "desk"), bundle)
    with listening(app, replace(IMPATIENT, rate=1e6)) as address, socket.socket() as connection:
        cookie, _ = enter(address)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(address)
        connection.sendall(asks("/releases/small/sample?rows=10000000", headers=[cookie]))
        time.sleep(0.5)
        eventually(lambda: _hung_up(connection))


def _hung_up(connection):
    try:
        connection.sendall(b"x")
    except ConnectionError:
        return True
    return False


def test_too_much_is_refused_when_it_is_known_and_not_stored(served):
    """By its length before a byte of it; without a length, where it passes the limit."""
    address, folder = served
    cookie, token = enter(address)
    with socket.create_connection(address) as connection:
        headers = [cookie, UPLOAD, "content-length: 2000000000"]
        connection.sendall(asks("/tables", "POST", headers))
        assert everything(connection).startswith(b"HTTP/1.1 413")  # and it hangs up by itself
    with socket.create_connection(address) as connection:
        headers = [cookie, UPLOAD, "transfer-encoding: chunked"]
        connection.sendall(asks("/tables", "POST", headers))
        sent = []

        def pour():
            while len(sent) < 20_000:
                chunk = b"y" * 100_000 if sent else begun(token)
                connection.sendall(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                sent.append(len(chunk))
                if len(sent) > 60:
                    time.sleep(0.05)

        with pytest.raises(ConnectionError):
            pour()
        assert sum(sent) < 50_000_000
    eventually(lambda: not half_kept(folder))
    assert not list((folder / "tables").iterdir())


@pytest.mark.parametrize("close", [[], ["connection: close"]])
def test_an_answer_before_the_body_is_read_reaches_a_client_that_goes_on_sending(tmp_path, close):
    """More than the system's buffers hold; a connection reset would lose the answer."""
    body = b"y" * 30_000_000
    with (
        listening(app_here(tmp_path / "desk"), replace(IMPATIENT, linger=60.0)) as address,
        socket.create_connection(address) as connection,
    ):
        headers = [UPLOAD, f"content-length: {len(body)}", *close]
        connection.sendall(asks("/tables", "POST", headers, body))
        connection.shutdown(socket.SHUT_WR)
        assert everything(connection).startswith(b"HTTP/1.1 401")


def test_a_form_that_ends_in_the_middle_of_its_file_is_refused(served):
    address, folder = served
    cookie, token = enter(address)
    body = begun(token) + b"a,b\n1,2\n"
    status, _, text = answer(
        address, asks("/tables", "POST", [cookie, UPLOAD, f"content-length: {len(body)}"], body)
    )
    assert (status, "arrived damaged" in text) == (422, True)
    assert not half_kept(folder)


# --- a full disk ----------------------------------------------------------------------------------


def test_a_disk_that_fills_up_in_the_middle_of_an_upload(tmp_path):
    """A real limit of the system, on every file that the server writes."""
    limit = 1_000_000
    code = (
        "import resource, runpy, sys\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "sys.argv[0] = 'understudy'\n"
        "runpy.run_module('understudy', run_name='__main__')"
    )
    server = Server(tmp_path / "desk", code=code).start()
    try:
        address = ("127.0.0.1", server.port)
        cookie, token = enter(address, server.url.partition("token=")[2])
        body = begun(token) + b"a,b\n" + b"1,2\n" * limit + END
        told = answer(
            address, asks("/tables", "POST", [cookie, UPLOAD, f"content-length: {len(body)}"], body)
        )
        assert told[0] == 507
        assert re.search(r"could not be kept \(File too large\).*free some space", told[2])
        assert str(tmp_path) not in told[2]
        assert not half_kept(tmp_path / "desk")
        body = begun(token, "good.csv") + csv_bytes(small_table(40)) + END
        headers = [cookie, UPLOAD, f"content-length: {len(body)}"]
        assert answer(address, asks("/tables", "POST", headers, body))[0] == 303
    finally:
        _, said = server.stop()
        server.close()
    assert "Traceback" not in said


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("place", ["in the file", "at its last bytes", "in its schema"])
def test_a_full_disk_at_any_moment_of_an_upload_is_told_in_a_line(custodian, monkeypatch, place):
    from pathlib import Path

    def full(*args, **kwargs):
        raise FULL

    class Full:
        def __init__(self, file):
            self.file, self.written = file, 0

        def write(self, data):
            if place == "in the file":
                raise FULL

        def close(self):
            self.file.close()
            raise FULL

    opened = Path.open
    if place == "in its schema":
        monkeypatch.setattr(Path, "write_text", full)
    else:
        monkeypatch.setattr(Path, "open", lambda self, mode="r", *a, **k: Full(
            opened(self, mode)) if mode == "wb" else opened(self, mode, *a, **k))  # fmt: skip
    response = custodian.upload("people.csv", csv_bytes(small_table()))
    monkeypatch.undo()
    assert response.status_code == 507
    told = custodian.told(response)
    assert "No space left on device" in told
    assert "free some space" in told
    assert "\n" not in told.strip()
    assert not half_kept(custodian.folder)
    assert custodian.site.workspace.tables() == []


def test_a_disk_that_fills_up_while_a_release_is_unpacked(custodian, bundle, monkeypatch):
    import zipfile

    data = zipped(bundle)

    def full(self, *args):
        raise FULL

    monkeypatch.setattr(zipfile.ZipExtFile, "read", full)
    response = custodian.upload("small.zip", data, to="/import")
    monkeypatch.undo()
    assert response.status_code == 507
    assert "No space left on device" in custodian.told(response)
    assert not half_kept(custodian.folder)
    assert not list((custodian.folder / "releases").iterdir())
