"""Coming in and going out."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from understudy.web.guard import session_of
from understudy.web.people import Session
from understudy.web.site import Site, site_of

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
    """Where everybody begins."""
    return RedirectResponse("/tables" if session_of(request).custodian else "/releases", 303)


@router.get("/enter")
async def enter(request: Request, token: str = "") -> Response:
    """The address that is printed at the start."""
    return await _by_token(request, token)


@router.get("/login")
async def login(request: Request) -> Response:
    """Ask who it is."""
    if request.scope["session"] is not None:
        return RedirectResponse("/", 303)
    return _door(request, "", 200)


@router.post("/login")
async def log_in(
    request: Request,
    token: Annotated[str, Form()] = "",
    name: Annotated[str, Form()] = "",
    password: Annotated[str, Form()] = "",
) -> Response:
    """Let somebody in by token or by password."""
    if token or not (name or password):
        return await _by_token(request, token.strip())
    site = site_of(request)
    who = f"{_address(request)} {name[:64]}"
    if wait := site.throttle.wait(who):
        return _door(request, f"Too many wrong tries; wait {wait} seconds.", 429)
    found = await asyncio.to_thread(site.people.by_password, name, password[:1024])
    if found is None:
        site.throttle.failed(who)
        return _door(request, "That name and password do not go together.", 401)
    return _welcome(site, found)


async def _by_token(request: Request, token: str) -> Response:
    site = site_of(request)
    who = _address(request)
    found = site.people.by_token(token)  # too long to be guessed, so nobody is kept waiting
    if found is not None:
        return _welcome(site, found)
    if wait := site.throttle.wait(who):
        return _door(request, f"Too many wrong tries; wait {wait} seconds.", 429)
    site.throttle.failed(who)
    return _door(request, _WRONG_TOKEN, 401)


def _address(request: Request) -> str:
    return request.client.host if request.client else "?"


def _door(request: Request, problem: str, status: int) -> Response:
    site = site_of(request)
    return site.page(
        request, "login.html", status, problem=problem, users=bool(site.people.users()),
        token=site.people.token is not None,
    )  # fmt: skip


def _welcome(site: Site, session: Session) -> Response:
    response = RedirectResponse("/", 303)
    response.set_cookie(
        site.people.cookie_name,
        site.people.cookie(session),
        expires=session.expires - _now(),
        httponly=True,
        samesite="strict",
        secure=site.settings.tls,
    )
    return response


def _now() -> int:
    import time

    return int(time.time())


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """End the session in this browser."""
    response = RedirectResponse("/login", 303)
    response.delete_cookie(site_of(request).people.cookie_name)
    return response
