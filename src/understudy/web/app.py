"""The application: the pages behind the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.sessions import SessionMiddleware
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from understudy._version import __version__
from understudy.errors import UnderstudyError
from understudy.web.errors import NotReady, headline_of
from understudy.web.guard import Guard, Settings, own_form
from understudy.web.jobs import Jobs, Launch
from understudy.web.pages import accounts, audits, login, planning, releases, schemas, tables
from understudy.web.pages import jobs as job_pages
from understudy.web.people import HOURS, People, TooManyTries
from understudy.web.proxy import BehindProxy
from understudy.web.site import Site, site_of
from understudy.web.workers import Workers
from understudy.web.workspace import Workspace


def create_app(
    settings: Settings, starter: Launch | None = None, workers: Workers | None = None
) -> FastAPI:
    """The page over a workspace; `starter` starts a job's process, `workers` draft and plan.

    Raises:
        InputError: The folder cannot be the page's.
    """
    workspace = Workspace(settings.folder)
    workspace.sweep()
    people = People(workspace.folder, settings.token)
    jobs = Jobs(workspace, settings.jobs, starter)
    site = Site(settings, workspace, people, jobs, workers or Workers())

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        site.workers.close()

    app = FastAPI(
        title="understudy",
        version=__version__,
        docs_url=None,  # FastAPI's own pages load scripts from elsewhere
        redoc_url=None,
        lifespan=life,
        dependencies=[Depends(own_form)],
    )
    app.state.site = site
    for room in (login, tables, schemas, planning, job_pages, releases, accounts, audits):
        app.include_router(room.router)
    app.mount("/static", StaticFiles(packages=[("understudy.web", "static")]), name="static")
    app.add_exception_handler(UnderstudyError, _refused)  # type: ignore[arg-type]
    app.add_exception_handler(TooManyTries, login.too_many)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, _http)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, _malformed)  # type: ignore[arg-type]
    app.add_middleware(Guard, settings=settings, people=people, page=site.error)
    app.add_middleware(
        SessionMiddleware,
        secret_key=people.key,
        session_cookie=people.cookie_name,
        max_age=HOURS * 3600,
        same_site="strict",
        https_only=settings.tls,
    )
    if settings.proxies:
        app.add_middleware(BehindProxy, proxies=settings.proxies)
    return app


def _refused(request: Request, error: UnderstudyError) -> Response:
    """An error that understudy raised on purpose: its message is for people."""
    site = site_of(request)
    message, status = site.problem(error)
    link = error.link if isinstance(error, NotReady) else ""
    return site.error(request, status, headline_of(error), message, link)


def _http(request: Request, error: HTTPException) -> Response:
    words = {
        404: ("There is nothing here", "Check the address, or go back to where you came from."),
        405: ("This address does not take that", "Use the buttons of the page."),
        413: ("This is too large", "Send less at once; for files the limit is --max-upload."),
    }
    headline, text = words.get(error.status_code, ("This does not work", "Go back and try again."))
    return site_of(request).error(request, error.status_code, headline, text)


def _malformed(request: Request, error: RequestValidationError) -> Response:
    """A parameter of another type than the page sends; its value is not repeated."""
    names = sorted({str(part["loc"][:2][-1]) for part in error.errors()})  # where, then what
    return site_of(request).error(
        request, 422, "This does not work as given", f"Please check: {', '.join(names)}."
    )
