"""`understudy serve`: the web app for a team."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from understudy import wording
from understudy.cli import shell, words
from understudy.cli.options import argument, option
from understudy.errors import InputError

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

    from understudy.web.guard import Settings
    from understudy.web.people import People

_WHERE, _PEOPLE, _LIMITS = "Where", "People", "Limits"
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


@dataclass(frozen=True)
class Users:
    """A change of who may log in."""

    add_user: Annotated[
        str | None,
        option(
            "--add-user NAME", "Name a user, or give one a new password or role, and stop.", _PEOPLE
        ),
    ] = None
    role: Annotated[
        Literal["custodian", "analyst"],
        option(
            "--role R",
            "Of --add-user: custodian sees everything, analyst sees published releases only.",
            _PEOPLE,
        ),
    ] = "analyst"
    remove_user: Annotated[
        str | None,
        option("--remove-user NAME", "Forget a user, and stop. Sessions end at once.", _PEOPLE),
    ] = None


@shell.guarded
def serve(
    folder: Annotated[
        Path,
        argument(
            "DIR",
            "The folder of the web app: tables, jobs, releases, the ledger. Made if it is not "
            "there. It holds private rows: keep it where they may lie.",
        ),
    ],
    host: Annotated[
        str,
        option(
            "--host H",
            "The address to listen on. Other than this machine it needs --tls-cert, "
            "--tls-key and at least one user.",
            _WHERE,
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, option("--port P", "The port; 0 takes a free one.", _WHERE, min=0, max=65535)
    ] = 8765,
    tls_cert: Annotated[
        Path | None, option("--tls-cert FILE", "The certificate, with its chain, in PEM.", _WHERE)
    ] = None,
    tls_key: Annotated[Path | None, option("--tls-key FILE", "Its private key.", _WHERE)] = None,
    behind_proxy: Annotated[
        list[str] | None,
        option(
            "--behind-proxy ADDRESS",
            "A proxy on this address speaks TLS to the world and hands requests on; "
            "may be given more than once. The web app takes requests from it alone.",
            _WHERE,
        ),
    ] = None,
    *,
    users: Users,
    max_upload: Annotated[
        str, option("--max-upload SIZE", "The largest file that may be uploaded.", _LIMITS)
    ] = "1GB",
    jobs: Annotated[
        int | None,
        option(
            "--jobs N",
            "Releases and audits at the same time; by default half the cores.",
            _LIMITS,
            min=1,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Start a web app for a team: tables and budgets, schemas, plans, releases, the ledger.

    Listens on this machine alone and prints an address with a token: whoever has it can do all that
    a custodian can. Releases run in processes of their own and go on when the web app is stopped with
    Ctrl-C; start it again on the same folder and everything is there.

    \b
    [bold]On this machine[/bold]
      understudy serve clinic

    \b
    [bold]For a team[/bold], with certificates and named users
      understudy serve clinic --add-user ana --role custodian
      understudy serve clinic --add-user ben --role analyst
      understudy serve clinic --host 0.0.0.0 --port 443 --tls-cert c.pem --tls-key k.pem

    \b
    [bold]Behind a proxy[/bold] on this machine that speaks TLS, with named users
      understudy serve clinic --behind-proxy 127.0.0.1
    """
    _require_installed()
    from understudy.web.guard import LOOPBACK, Settings
    from understudy.web.people import People
    from understudy.web.proxy import networks
    from understudy.web.workspace import Workspace

    most = _bytes(max_upload)
    people = People(Workspace(folder).folder)
    if users.add_user is not None or users.remove_user is not None:
        _change(people, users)
        return
    proxies = tuple(behind_proxy or ())
    networks(proxies)
    local = host in LOOPBACK and not proxies
    tls = _tls(tls_cert, tls_key)
    lacking = [] if tls is not None or proxies else ["--tls-cert and --tls-key"]
    lacking += [] if people.users() else ["a user, named with --add-user"]
    if lacking and not local:
        remedy = "--behind-proxy" if proxies else "--host"
        raise InputError(
            f"{'behind-proxy' if proxies else f'host = {host}'} can be reached from other machines, "
            f"which needs {' and '.join(lacking)}; or leave {remedy} out to serve this machine alone"
        )
    more: dict[str, Any] = {} if jobs is None else {"jobs": jobs}
    settings = Settings(
        folder,
        token=secrets.token_urlsafe(24) if local else None,
        hosts=LOOPBACK if local else None,
        tls=tls is not None or bool(proxies),
        proxies=proxies,
        max_upload=most,
        **more,
    )
    _run(settings, host, port, tls)


def _require_installed() -> None:
    try:
        import argon2  # noqa: F401
        import fastapi  # noqa: F401
        import itsdangerous  # noqa: F401
        import python_multipart  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"the web app needs {error.name}, which is not installed: pip install '.[web]', in the "
            f"folder of the source"
        ) from None


def _bytes(text: str) -> int:
    plain = text.strip().lower().removesuffix("b").rstrip("i")
    unit = plain[-1:] if plain[-1:] in _UNITS and plain[-1:] else ""
    try:
        size = int(float(plain.removesuffix(unit)) * _UNITS[unit])
    except (ValueError, OverflowError):
        size = 0
    if size < 1:
        raise InputError(f"max_upload = {text!r} is not a size; write it as 500MB or 2GB")
    return size


def _tls(cert: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    if cert is None and key is None:
        return None
    if cert is None or key is None:
        raise InputError("--tls-cert and --tls-key go together: give both, or neither")
    import ssl

    for name, path in (("tls-cert", cert), ("tls-key", key)):
        if not path.is_file():
            raise InputError(f"{name} = {path} is not a file; give one in PEM")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
    except (ssl.SSLError, OSError):
        raise InputError(
            f"tls-cert = {cert} and tls-key = {key} are not a certificate in PEM and its key"
        ) from None
    return cert, key


def _change(people: People, users: Users) -> None:
    from understudy.web.people import Role

    add, remove = users.add_user, users.remove_user
    if add is not None and remove is not None:
        raise InputError("give --add-user or --remove-user, not both")
    if remove is not None:
        people.remove(remove)
        shell.say(f"{remove} is no user any more")
        return
    assert add is not None
    chosen = Role(users.role)
    people.add(add, _password(add), chosen)
    shell.say(f"{add} may log in as {chosen}")


def _password(name: str) -> str:
    """Typed twice and not shown; or a line of what is piped in."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    import getpass

    from understudy.web.people import SHORTEST

    first = getpass.getpass(f"Password of {name}, at least {SHORTEST} characters: ")
    if getpass.getpass("Once more: ") != first:
        raise InputError("the two passwords differ; nothing was changed")
    return first


def _run(settings: Settings, host: str, port: int, tls: tuple[Path, Path] | None) -> None:
    import uvicorn

    from understudy.web.app import create_app

    listening = _listen(host, port)
    os.umask(0o077)
    try:
        app = create_app(settings)
        config = _config(app, tls)
        _say(settings, host, listening.getsockname()[1], tls is not None)
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
        still = app.state.site.jobs.active()
    finally:
        listening.close()
    if still:
        number = f"{len(still)} jobs go" if len(still) > 1 else "1 job goes"
        shell.note(f"stopped; {number} on without the web app. Start it again to see the outcome.")
    else:
        shell.note("stopped; everything is kept.")


def _config(app: FastAPI, tls: tuple[Path, Path] | None) -> uvicorn.Config:
    """How the server listens and how long it waits."""
    import uvicorn

    from understudy.web.patience import PatientProtocol

    return uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        proxy_headers=False,  # uvicorn would believe whoever connects from this machine
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=3,
        timeout_keep_alive=75,
        ssl_certfile=None if tls is None else tls[0],
        ssl_keyfile=None if tls is None else tls[1],
    )


def _listen(host: str, port: int) -> socket.socket:
    six = ":" in host
    family = socket.AF_INET6 if six else socket.AF_INET
    both = six and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, backlog=256, dualstack_ipv6=both)
    except socket.gaierror as error:
        reason = error.strerror
    except OSError as error:
        reason = os.strerror(error.errno or 0)
    raise InputError(
        f"host = {host}, port = {port}: {reason}; choose another with --port, or 0 for any that is "
        "free"
    )


def _say(settings: Settings, host: str, port: int, tls: bool) -> None:
    shown = f"[{host}]" if ":" in host else host
    place = f"{'https' if tls else 'http'}://{shown}:{port}"
    address = place if settings.token is None else f"{place}/enter?token={settings.token}"
    shell.say(("The web app is at ", "bold"), address)
    named, local = "named users", "whoever has this address, on this machine"
    facts = {
        "folder": f"{settings.folder}, which holds private rows",
        "who": named if settings.token is None else local,
        "proxy": f"requests from {', '.join(settings.proxies)} alone",
        "uploads": f"up to {wording.byte_size(settings.max_upload)}",
        "stop": "Ctrl-C; jobs that run go on",
    }
    if not settings.proxies:
        del facts["proxy"]
    words.facts(list(facts.items()))
    sys.stdout.flush()
