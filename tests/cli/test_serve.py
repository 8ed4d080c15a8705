"""`understudy serve` on the command line."""

import json
import shutil
import socket
import ssl
import subprocess
import sys
import urllib.request

import pytest

from tests.web.conftest import Server
from understudy.cli.app import main


def told(capsys, *arguments):
    code = main([str(a) for a in arguments])
    seen = capsys.readouterr()
    return code, seen.out + seen.err


def test_the_help_teaches(capsys):
    code, text = told(capsys, "serve", "--help")
    assert code == 0
    for word in ("--add-user", "--tls-cert", "--max-upload", "Ctrl-C", "token", "analyst"):
        assert word in text


REFUSED = [
    (["--host", "0.0.0.0"], "--tls-cert and --tls-key and a user"),
    (["--tls-cert", "x.pem"], "go together"),
    (["--tls-cert", "x.pem", "--tls-key", "y.pem"], "is not a file"),
    (["--max-upload", "much"], "max_upload = 'much'"),
    (["--max-upload", "0"], "max_upload"),
    (["--add-user", "ana", "--remove-user", "ben"], "not both"),
    (["--remove-user", "ana"], "no user 'ana'"),
    (["--add-user", "ana", "--role", "king"], "is not one of"),
]


@pytest.mark.parametrize(("options", "said"), REFUSED)
def test_wrong_use(capsys, tmp_path, options, said):
    code, text = told(capsys, "serve", tmp_path / "desk", *options)
    assert code == 2
    assert said in text


def test_folders_that_are_not_ours(capsys, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.doc").write_text("x")
    (tmp_path / "newer").mkdir()
    (tmp_path / "newer" / "workspace.json").write_text('{"version": 99}')
    for name, said in (
        ("file", "is a file"),
        ("other", "other files"),
        ("newer", "another version"),
    ):
        code, text = told(capsys, "serve", tmp_path / name)
        assert code == 2
        assert said in text
    assert (tmp_path / "other" / "thesis.doc").exists()


def test_users_are_named_and_forgotten(capsys, tmp_path, monkeypatch):
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO("a long enough word\n"))
    code, text = told(
        capsys, "serve", tmp_path / "desk", "--add-user", "ana", "--role", "custodian"
    )
    assert (code, "ana may log in as custodian" in text) == (0, True)
    kept = (tmp_path / "desk" / "users.json").read_text()
    assert "long enough" not in kept
    assert json.loads(kept)["ana"]["role"] == "custodian"
    code, text = told(capsys, "serve", tmp_path / "desk", "--host", "0.0.0.0")
    assert (code, "needs --tls-cert and --tls-key;" in text) == (2, True)
    code, _ = told(capsys, "serve", tmp_path / "desk", "--remove-user", "ana")
    assert code == 0
    assert json.loads((tmp_path / "desk" / "users.json").read_text()) == {}


def test_without_the_extra(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    code, text = told(capsys, "serve", tmp_path / "desk")
    assert code == 2
    assert "pip install '.[web]'" in text
    assert not (tmp_path / "desk").exists()


def test_a_taken_port_is_told(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, text = told(capsys, "serve", tmp_path / "desk", "--port", taken.getsockname()[1])
    assert code == 2
    assert "choose another with --port" in text


@pytest.mark.slow
def test_ctrl_c_stops_it(server):
    with urllib.request.urlopen(f"{server.base}/healthz") as answer:
        assert json.load(answer) == {"ok": True}
    code, text = server.stop()
    assert code == 0
    assert "everything is kept" in text
    assert "Traceback" not in text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the test's certificate")
def test_a_team_over_tls(tmp_path):
    cert, key = tmp_path / "c.pem", tmp_path / "k.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
         "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    from understudy.web.people import People, Role
    from understudy.web.workspace import Workspace

    People(Workspace(tmp_path / "desk").folder).add("ana", "a long enough word", Role.CUSTODIAN)
    server = Server(tmp_path / "desk", "--host", "0.0.0.0", "--tls-cert", cert, "--tls-key", key)
    server.options = tuple(map(str, server.options))
    server.start()
    try:
        trust = ssl.create_default_context(cafile=cert)
        address = f"https://localhost:{server.port}/login"
        with urllib.request.urlopen(address, context=trust) as answer:
            text = answer.read().decode()
        assert 'name="password"' in text
        assert 'name="token"' not in text
        assert "token" not in server.url
    finally:
        code, _ = server.stop()
        server.close()
    assert code == 0
