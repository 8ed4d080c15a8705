"""Logging in and out."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from understudy.web.guard import form_token, session_of
from understudy.web.people import LONGEST, Session, TooManyTries
from understudy.web.site import Here, Typed, site_of

router = APIRouter(default_response_class=HTMLResponse)

_WRONG_TOKEN = (
    "That token is not this page's. It is printed when `understudy serve` starts, and is a new one "
    "each time."
)


@router.get("/healthz", response_class=JSONResponse)
async def healthz() -> Response:
    """Whether the server answers; says nothing else."""
    return JSONResponse({"ok": True})


@router.get("/")
async def home(request: Request) -> Response:
    """The first page of a role."""
    return RedirectResponse("/tables" if session_of(request).custodian else "/releases", 303)


@router.get("/enter")
async def enter(request: Request, token: str = "") -> Response:
    """The address that is printed at the start."""
    return _by_token(request, token)


@router.get("/login")
async def login(request: Request) -> Response:
    """Ask who it is."""
    if request.scope["user"] is not None:
        return RedirectResponse("/", 303)
    return _login(request, "", 200)


@router.post("/login")
async def log_in(
    request: Request, site: Here, token: Typed = "", name: Typed = "", password: Typed = ""
) -> Response:
    """By token or by password."""
    if token or not (name or password):
        return _by_token(request, token.strip())
    tried = site.throttle.begin(name[:64], _address(request))
    session = await asyncio.to_thread(site.people.by_password, name, password[: LONGEST + 1])
    if session is None:
        return _login(request, "That name and password do not go together.", 401, name[:64])
    site.throttle.forgive(tried)
    return _welcome(request, session)


def _by_token(request: Request, token: str) -> Response:
    site = site_of(request)
    session = site.people.by_token(token)  # too long to be guessed, so nobody is kept waiting
    if session is not None:
        return _welcome(request, session)
    site.throttle.begin(":token", _address(request))
    return _login(request, _WRONG_TOKEN, 401)


def too_many(request: Request, error: TooManyTries) -> Response:
    """Somebody guesses."""
    response = _login(request, f"Too many wrong tries; wait {error.wait} seconds.", 429)
    response.headers["retry-after"] = str(error.wait)
    return response


def _address(request: Request) -> str:
    return request.client.host if request.client else "?"


def _login(request: Request, problem: str, status: int, name: str = "") -> Response:
    people = site_of(request).people
    ways = {"users": bool(people.users()), "token": people.token is not None, "typed": name}
    return site_of(request).page(request, "login.html", status, problem=problem, **ways)


def _welcome(request: Request, session: Session) -> Response:
    """A session that nothing of the one before is taken into."""
    request.session.clear()
    request.session["login"] = asdict(session)
    form_token(request)
    return RedirectResponse("/", 303)


@router.post("/logout")
async def log_out(request: Request, site: Here) -> Response:
    """End the session, here and on the server."""
    site.people.end(session_of(request))
    request.session.clear()
    return RedirectResponse("/login", 303)
