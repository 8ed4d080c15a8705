"""What every request passes on its way in, and every response on its way out.

In: the host's name is one of ours; a session, or the door; the role; for whatever changes something,
the token that our own forms carry, before anything of the body is used. Out: headers that let a browser
load nothing but our own files and keep nothing. An error that nobody foresaw becomes a page that names
its kind and no more: its message could hold a private value.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from understudy.errors import (
    BudgetExhausted,
    InputError,
    PrivacyError,
    UnconfirmedError,
    UnderstudyError,
)
from understudy.quoting import debugging, unforeseen
from understudy.web.people import People, Session
from understudy.web.settings import Settings
from understudy.web.workspace import Missing

__all__ = ["Guard", "Refused", "TooLarge", "session_of", "status_of", "wants_page"]

log = logging.getLogger("understudy.web")

_FORM = "application/x-www-form-urlencoded"
_MOST_FORM = 4_000_000
_MOST_FIELDS = 1_000
_OPEN = ("/login", "/enter", "/static/", "/healthz")
_UPLOADS = ("/tables", "/import")
_SAFE = ("GET", "HEAD", "OPTIONS")
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


class Refused(UnderstudyError):
    """Somebody may not do this."""


class TooLarge(InputError):
    """More was sent than is taken."""


def session_of(request: Request) -> Session:
    """Who asks; only behind the guard."""
    return request.scope["session"]


def status_of(error: BaseException) -> int:
    """The status that says what kind of refusal it is."""
    match error:
        case Missing():
            return 404
        case TooLarge():
            return 413
        case Refused():
            return 403
        case UnconfirmedError() | BudgetExhausted() | PrivacyError():
            return 409
        case InputError():
            return 422
        case _:
            return 507


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
        session = self._people.session(request.cookies.get(self._people.cookie_name))
        scope["session"] = session
        scope["form_token"] = self._people.form_token(session)
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
            if refusal is None and request.method not in _SAFE:
                receive, refusal = await self._checked(request, session, receive)
            if refusal is not None:
                await refusal(scope, receive, out)
            else:
                await self._app(scope, receive, out)
        except Exception as error:  # noqa: BLE001 - nothing of it may reach a response or a log
            route = getattr(scope.get("route"), "path", "?")
            log.error("%s on %s %s", type(error).__name__, scope["method"], route)
            if debugging():
                traceback.print_exception(error)
            if not started:
                await self._unforeseen(request, error)(scope, receive, out)

    def _unforeseen(self, request: Request, error: Exception) -> Response:
        return self._page(
            request,
            500,
            "Something went wrong here",
            f"{unforeseen(error)} in the terminal. What was charged is in the ledger.",
        )

    def _refusal(self, request: Request, session: Session | None) -> Response | None:
        """Why this request goes no further; None where it may."""
        hosts = self._settings.hosts
        if hosts is not None and _hostname(request.headers.get("host", "")) not in hosts:
            return self._page(
                request,
                421,
                "This is not the address of the page",
                "Open the address that `understudy serve` printed.",
            )
        path = request.scope["path"]
        if path.startswith(_OPEN):
            return None
        if session is None:
            if request.method == "GET" and wants_page(request):
                return RedirectResponse("/login", 303)
            return self._page(
                request, 401, "Please log in", "Your session is over, or never began."
            )
        reading = request.method in _SAFE and (path == "/" or path.startswith("/releases"))
        if not session.custodian and not reading and path != "/logout":
            return self._page(
                request,
                403,
                "This is for custodians",
                "You came in as an analyst: releases are open to you, tables are not.",
            )
        return None

    async def _checked(
        self, request: Request, session: Session | None, receive: Receive
    ) -> tuple[Receive, Response | None]:
        """A request that changes something comes from our own page. Uploads look for themselves."""
        origin = request.headers.get("origin")
        if origin not in (None, "null") and _hostname(origin.partition("://")[2]) != _hostname(
            request.headers.get("host", "")
        ):
            return receive, self._foreign(request)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        given = request.headers.get("x-csrf-token")
        if given is not None and self._people.form_is_ours(session, given):
            return _at_most(receive, self._most(request)), None
        if kind == "multipart/form-data" and request.scope["path"] in _UPLOADS:
            return receive, None
        if kind != _FORM:
            return receive, self._foreign(request)
        body = await _body(receive)
        if body is None:
            return receive, self._page(
                request, 413, "This is too much", f"A form holds at most {_MOST_FORM:,} bytes."
            )
        try:
            fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=_MOST_FIELDS)
        except ValueError:
            fields = {}
        if not self._people.form_is_ours(session, (fields.get("csrf") or [""])[0]):
            return receive, self._foreign(request)
        return _replayed(body), None

    def _most(self, request: Request) -> int:
        upload = request.scope["path"] in _UPLOADS
        return self._settings.max_upload + _MOST_FORM if upload else _MOST_FORM

    def _foreign(self, request: Request) -> Response:
        return self._page(
            request,
            403,
            "This form has expired",
            "It does not come from a page that was shown to you since you came in, so nothing was "
            "done. Go back, load the page again and send it once more.",
        )


def _hostname(host: str) -> str:
    """`host:port` without the port, lowercase; `[::1]:80` is `::1`."""
    host = host.lower().strip()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def wants_page(request: Request) -> bool:
    """Whether a person asks; a program that says so gets JSON."""
    return "application/json" not in request.headers.get("accept", "")


async def _body(receive: Receive) -> bytes | None:
    """A form, if it is small enough."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return body
        body += message.get("body", b"")
        if len(body) > _MOST_FORM:
            return None
        if not message.get("more_body"):
            return body


def _replayed(body: bytes) -> Receive:
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            return {"type": "http.disconnect"}
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


def _at_most(receive: Receive, most: int) -> Receive:
    """The same, until more arrives than is taken."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise TooLarge(f"more than {most:,} bytes were sent")
        return message

    return counted
