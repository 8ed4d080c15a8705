"""What every request passes on its way in, and every response on its way out.

In: the host's name is one of ours; a session, or the login; the role; a limit on what is sent; for
whatever changes something, the token that our own forms carry. Out: headers that let a browser load
nothing but our own files and keep nothing. An error that nobody foresaw becomes a page that names its
kind and no more: its message could hold a private value.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import secrets
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from understudy.quoting import debugging, unforeseen
from understudy.web.errors import Refused
from understudy.web.people import People, Session

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def _jobs() -> int:
    return max(1, (os.cpu_count() or 2) // 2)


@dataclass(frozen=True, slots=True)
class Settings:
    """Public choices of whoever starts the page."""

    folder: Path
    token: str | None = None
    """Makes its holder a custodian; None where only named users may log in."""
    hosts: tuple[str, ...] | None = LOOPBACK
    """Names that this server answers to; None for any. On loopback it keeps other sites' names,
    pointed at this machine, from reaching it."""
    tls: bool = False
    """Whether browsers speak TLS, to this server or to a proxy before it."""
    proxies: tuple[str, ...] = ()
    """Addresses of a proxy, which alone is listened to; see `understudy.web.proxy`."""
    max_upload: int = 1_000_000_000
    """Bytes of one uploaded file."""
    jobs: int = field(default_factory=_jobs)
    """Releases and audits that run at the same time; others wait."""


log = logging.getLogger("understudy.web")

_FORM = "application/x-www-form-urlencoded"
_MOST_FORM = 4_000_000
_MOST_LOGIN = 20_000
"""Bytes of a form of those who may only log in or out: reading many fields takes the page's time."""
_OPEN = ("/login", "/enter", "/static/", "/healthz")
_UPLOADS = ("/tables", "/import")
_SAFE = ("GET", "HEAD", "OPTIONS")
FOREIGN = (
    "this form has expired: it does not come from a page that was shown to you since you logged in, so "
    "nothing was done. Go back, load the page again and send it once more"
)
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


def session_of(request: Request) -> Session:
    """Who asks; only behind the guard."""
    return request.scope["user"]


def form_token(request: Request) -> str:
    """What a form must carry back: a random text of the session that no other site can read."""
    return request.session.setdefault("form", secrets.token_urlsafe(24))


def form_is_ours(request: Request, token: str) -> bool:
    """Whether a form comes from a page that was shown in the same session."""
    kept = request.session.get("form", "")
    return bool(kept) and hmac.compare_digest(kept.encode(), token.encode())


async def own_form(request: Request) -> None:
    """Let only our own forms change something; those with a file are looked at as they stream.

    Raises:
        Refused: The token is missing, or of another session.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    token = request.headers.get("x-csrf-token", "")
    if request.method in _SAFE or (kind == "multipart/form-data" and _uploads(request)):
        return
    if not token and kind == _FORM:
        token = str((await request.form()).get("csrf", ""))
    if not form_is_ours(request, token):
        raise Refused(FOREIGN)


def _uploads(request: Request) -> bool:
    return request.scope["path"] in _UPLOADS


Page = Callable[[Request, int, str, str], Response]
"""`(request, status, headline, text)` to an error page."""


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, settings: Settings, people: People, page: Page) -> None:
        self._app = app
        self._settings = settings
        self._people = people
        self._page = page
        extra = {"strict-transport-security": "max-age=31536000"} if settings.tls else {}
        self._headers = [(k.encode(), v.encode()) for k, v in {**_HEADERS, **extra}.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        session = self._people.session(scope["session"].get("login"))
        scope["user"] = session
        started = False

        async def out(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                own = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in self._headers if pair[0] not in own),
                ]
            await send(message)

        try:
            refusal = self._refusal(request, session)
            if refusal is not None:
                await refusal(scope, receive, out)
            else:
                if session is None or not session.custodian:
                    most = _MOST_LOGIN
                else:
                    most = _MOST_FORM + self._settings.max_upload * _uploads(request)
                await self._app(scope, _at_most(receive, most), out)
        except asyncio.CancelledError:  # the server stops, and does not wait for this
            if not started:
                stopping = "The web app is being stopped", "Send this again when it is back."
                await self._page(request, 503, *stopping)(scope, receive, out)
        except Exception as error:  # noqa: BLE001 - nothing of it may reach a response or a log
            route = getattr(scope.get("route"), "path", "?")
            log.error("%s on %s %s", type(error).__name__, scope["method"], route)
            if debugging():
                traceback.print_exception(error)
            if not started:
                text = f"{unforeseen(error)} in the terminal. What was charged is in the ledger."
                page = self._page(request, 500, "Something went wrong here", text)
                await page(scope, receive, out)

    def _refusal(self, request: Request, session: Session | None) -> Response | None:
        """Why this request goes no further; None where it may."""
        hosts = self._settings.hosts
        if hosts is not None and _hostname(request.headers.get("host", "")) not in hosts:
            text = "Open the address that `understudy serve` printed."
            return self._page(request, 421, "This is not the address of the web app", text)
        origin = request.headers.get("origin")
        named = "" if origin in (None, "null") else _hostname(origin.partition("://")[2])
        if named and request.method not in _SAFE and named != _hostname(request.headers["host"]):
            return self._page(request, 403, "This may not be done", FOREIGN)
        path = request.scope["path"]
        if path.startswith(_OPEN):
            return None
        if session is None:
            if request.method == "GET" and wants_page(request):
                return RedirectResponse("/login", 303)
            text = "Your session is over, or never began."
            return self._page(request, 401, "Please log in", text)
        reading = request.method in _SAFE and (path == "/" or path.startswith("/releases"))
        if not session.custodian and not reading and path != "/logout":
            text = "You are an analyst: published releases are open to you, tables are not."
            return self._page(request, 403, "This is for custodians", text)
        return None


def _hostname(host: str) -> str:
    """`host:port` without the port, lowercase; `[::1]:80` is `::1`."""
    host = host.lower().strip()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def wants_page(request: Request) -> bool:
    """Whether a person asks; a program that says so gets JSON."""
    return "application/json" not in request.headers.get("accept", "")


def _at_most(receive: Receive, most: int) -> Receive:
    """The same, until more arrives than is taken."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise HTTPException(413)
        return message

    return counted
