"""The page on a real port, in a thread of the test, and clients that speak bytes."""

import socket
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlencode

import uvicorn

from understudy.cli.serve import _config
from understudy.web.patience import Patience, PatientProtocol


@contextmanager
def listening(app, patience=None):
    """`(host, port)` of an app that is served as `understudy serve` serves it."""
    config = _config(app, None)
    if patience is not None:
        config.http = type("Quick", (PatientProtocol,), {"patience": patience})
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as port:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [port]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield port.getsockname()
        finally:
            server.should_exit = True
            thread.join(60)


IMPATIENT = Patience(headers=1.0, body=1.0, rate=10_000.0, linger=0.5, most=40)
"""Seconds instead of half minutes, so that a test sees the end of them."""


def asks(path, method="GET", headers=(), body=b""):
    """A request, as it stands on the wire."""
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", *headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def fields(**values):
    """A form and the headers that say so."""
    body = urlencode(values).encode()
    kind = "content-type: application/x-www-form-urlencoded"
    return [kind, f"content-length: {len(body)}"], body


def everything(connection, seconds=60):
    """All that comes until the other side hangs up."""
    connection.settimeout(seconds)
    found = b""
    try:
        while piece := connection.recv(65536):
            found += piece
    except ConnectionError:
        pass
    return found


def answer(address, request):
    """`(status, head, body)` of one request on a connection of its own."""
    with socket.create_connection(address) as connection:
        connection.sendall(request.replace(b"\r\n", b"\r\nconnection: close\r\n", 1))
        head, _, body = everything(connection).partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), body.decode(errors="replace")


def routes(app):
    """`(method, path)` of everything that an app answers to."""
    for route in app.routes:
        if hasattr(route, "original_router"):  # as newer releases of FastAPI keep what is included
            yield from routes(route.original_router)
        else:
            own = getattr(route, "methods", None) or {"GET"}  # a mount is for reading
            yield from ((method, route.path) for method in own if method != "HEAD")
