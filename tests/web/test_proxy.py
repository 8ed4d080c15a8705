"""A proxy that speaks TLS: secure cookies, https alone, and addresses that nobody can forge."""

import datetime
import http.client
import re
import socket
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlencode

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from fastapi import Request

from tests.web.conftest import app_here
from tests.web.live import answer, asks, listening
from understudy.cli.app import main
from understudy.errors import InputError
from understudy.web.people import Role, Throttle
from understudy.web.proxy import networks

NAME = "data.example"
PASSWORD = "a long enough word"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A file with a key and a certificate that it signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    plain = serialization.NoEncryption(), serialization.Encoding.PEM
    path.write_bytes(
        key.private_bytes(plain[1], serialization.PrivateFormat.PKCS8, plain[0])
        + made.public_bytes(plain[1])
    )
    return path


@contextmanager
def proxying(certificate, page, proto="https"):
    """The port of a proxy that ends TLS and appends to X-Forwarded-For, one request a connection.

    The last octet of the address that it says it saw is that of the client's own loopback address.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    outside = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def hand_on(client, address):
        seen = f"203.0.113.{address[0].rpartition('.')[2]}"
        try:
            with context.wrap_socket(client, server_side=True) as inside:
                inside.settimeout(30)
                request = b""
                while b"\r\n\r\n" not in request:
                    request += inside.recv(65536)
                head, _, body = request.partition(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: *(\d+)", head)
                while length and len(body) < int(length[1]):
                    body += inside.recv(65536)
                kept = [
                    line for line in head.split(b"\r\n")
                    if not line.lower().startswith((b"x-forwarded-", b"connection:"))
                ]  # fmt: skip
                forged = re.findall(rb"(?im)^x-forwarded-for: *(.*?)\r?$", head)
                whole = b", ".join([*forged, seen.encode()])
                kept += [b"X-Forwarded-For: " + whole, b"X-Forwarded-Proto: " + proto.encode()]
                kept += [b"Connection: close"]
                with socket.create_connection(page) as back:
                    back.sendall(b"\r\n".join(kept) + b"\r\n\r\n" + body)
                    while piece := back.recv(65536):
                        inside.sendall(piece)
        except OSError:
            pass

    def accept():
        while not over.is_set():
            try:
                client, address = outside.accept()
            except OSError:
                return
            threading.Thread(target=hand_on, args=(client, address), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield outside.getsockname()[1]
    finally:
        over.set()
        outside.close()


@dataclass
class Browser:
    """Speaks TLS to the proxy, from a loopback address of its own, under the page's name."""

    port: int
    certificate: object
    source: str = "127.0.0.1"
    cookie: str = ""

    def ask(self, path, method="GET", body=None, headers=None):
        context = ssl.create_default_context(cafile=str(self.certificate))
        raw = socket.create_connection(("127.0.0.1", self.port), source_address=(self.source, 0))
        with context.wrap_socket(raw, server_hostname=NAME) as wrapped:
            connection = http.client.HTTPConnection(NAME)
            connection.sock = wrapped
            given = {"cookie": self.cookie, **(headers or {})}
            connection.request(method, path, body, given)
            response = connection.getresponse()
            response.text = response.read().decode()
            kept = response.headers["set-cookie"]
            self.cookie = self.cookie if kept is None else kept.partition(";")[0]
            return response

    def token(self):
        return re.search(r'name="csrf" value="([^"]+)"', self.ask("/login").text)[1]

    def log_in(self, password=PASSWORD, name="ana", headers=None, token=None):
        token = token or self.token()
        body = urlencode({"name": name, "password": password, "csrf": token})
        kind = {"content-type": "application/x-www-form-urlencoded", "origin": f"https://{NAME}"}
        return self.ask("/login", "POST", body, {**kind, **(headers or {})})


@pytest.fixture
def app(tmp_path):
    made = app_here(
        tmp_path / "desk", token=None, hosts=None, tls=True, proxies=("127.0.0.1", "::1")
    )
    made.state.site.people.add("ana", PASSWORD, Role.CUSTODIAN)
    return made


@pytest.fixture
def browser(app, certificate):
    with listening(app) as page, proxying(certificate, page) as port:
        yield Browser(port, certificate)


def test_a_team_behind_a_proxy_with_tls(browser):
    response = browser.log_in()
    assert response.status == 303
    cookie = response.headers["set-cookie"]
    for word in ("secure", "httponly", "samesite=strict"):
        assert word in cookie.lower()
    assert "max-age" in response.headers["strict-transport-security"]
    assert browser.ask("/tables").status == 200


def test_redirects_stay_on_https(browser):
    assert browser.log_in().status == 303
    for path in ("/", "/tables/"):  # one of ours, and one that the framework makes whole
        to = browser.ask(path).headers["location"]
        assert to.startswith(("/", f"https://{NAME}/")), to
    assert browser.ask("/tables/").headers["location"].startswith("https://")


def seen_by(app):
    """Have the app note the address of everybody who asks."""
    seen = []

    @app.get("/healthz/seen")
    def note(request: Request):
        seen.append(request.client.host)

    return seen


FORGED = ["198.51.100.7", "127.0.0.1", "198.51.100.7, 127.0.0.1", "nonsense", "::1, 198.51.100.7"]


def test_a_forged_address_counts_for_nothing(app, browser):
    seen = seen_by(app)
    for forged in FORGED:
        browser.ask("/healthz/seen", headers={"x-forwarded-for": forged})
    browser.source = "127.0.0.9"
    browser.ask("/healthz/seen")
    assert seen == ["203.0.113.1"] * len(FORGED) + ["203.0.113.9"]


def test_login_limits_count_the_clients_address_and_not_the_proxys(app, browser):
    """Guessing stops under any forged address; somebody elsewhere still logs in to her account."""
    app.state.site.throttle = Throttle(address=5, seconds=3600)
    token = browser.token()
    forged = [{"x-forwarded-for": f"198.51.100.{n}"} for n in range(8)]
    tries = [
        browser.log_in("wrong", f"nobody{n}", headers, token).status
        for n, headers in enumerate(forged)
    ]
    assert tries == [401] * 5 + [429] * 3
    assert Browser(browser.port, browser.certificate, "127.0.0.77").log_in().status == 303


def test_only_the_proxy_is_listened_to(tmp_path):
    """A request from elsewhere is refused, whatever its headers say."""
    app = app_here(tmp_path / "desk", token=None, hosts=None, tls=True, proxies=("10.1.0.0/16",))
    with listening(app) as page:
        headers = ["x-forwarded-for: 10.1.0.1", "x-forwarded-proto: https"]
        status, _, text = answer(page, asks("/login", headers=headers))
    assert (status, "behind a proxy" in text) == (403, True)


def test_a_proxy_that_lets_plain_http_through_is_refused(app, certificate):
    with listening(app) as page, proxying(certificate, page, "http") as port:
        response = Browser(port, certificate).ask("/login")
    assert (response.status, "https alone" in response.text) == (403, True)


def test_without_a_proxy_forwarded_headers_count_for_nothing(tmp_path):
    """Also on this machine, whose own addresses a server might trust by itself."""
    app = app_here(tmp_path / "desk")
    seen = seen_by(app)
    with listening(app) as page:
        for forged in FORGED:
            headers = [f"x-forwarded-for: {forged}", "x-forwarded-proto: https"]
            answer(page, asks("/healthz/seen", headers=headers))
    assert seen == ["127.0.0.1"] * len(FORGED)


def test_the_command_line_says_what_a_proxy_needs(tmp_path, capsys):
    assert main(["serve", str(tmp_path / "desk"), "--behind-proxy", "127.0.0.1"]) == 2
    assert "a user, named with --add-user" in capsys.readouterr().err
    assert main(["serve", str(tmp_path / "desk"), "--behind-proxy", "proxy.example"]) == 2
    assert "address of the proxy" in capsys.readouterr().err
    with pytest.raises(InputError, match="behind-proxy"):
        networks(["10.1.0.0/33"])
