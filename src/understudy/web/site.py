"""Everything that a page needs, put together once, and how a page is made of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from importlib import resources
from typing import Annotated, Any

from fastapi import Depends, Form
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from understudy._version import __version__
from understudy.errors import UnderstudyError
from understudy.markup import environment
from understudy.privacy.ledger import Books, Dataset, Ledger
from understudy.releases.outline import gone
from understudy.web.errors import status_of
from understudy.web.guard import Settings, form_token, wants_page
from understudy.web.jobs import Jobs
from understudy.web.people import People, Throttle
from understudy.web.storage import Storage
from understudy.web.workers import Workers
from understudy.web.workspace import Table, Workspace, without_paths
from understudy.wording import (
    ADDS_UP,
    COUNTED,
    at_most,
    byte_size,
    duration,
    left,
    nothing,
    number,
    percent,
    points,
    unbroken,
)


def static_version() -> str:
    """Part of the addresses of our files, so that a browser may keep them until they change."""
    root = resources.files("understudy.web") / "static"
    size = sum(len(file.read_bytes()) for file in root.iterdir() if file.is_file())
    return f"{__version__}-{size}"


@dataclass(frozen=True, slots=True)
class Account:
    """What is left of a table's budget, for a meter."""

    books: Books

    @property
    def dataset(self) -> Dataset:
        """The facts under which it was opened."""
        return self.books.facts

    @property
    def total(self) -> Fraction:
        """The total budget, over all releases."""
        return self.dataset.budget.epsilon

    @property
    def remains(self) -> float:
        """The share that is left of what adds up."""
        return max(0.0, 1 - gone(self.books.spent(), self.dataset))


def account_of(ledger: Ledger, name: str, opened: list[str] | None = None) -> Account | None:
    """The account of a table; None where nobody has opened one."""
    if name not in (ledger.datasets() if opened is None else opened):
        return None
    return Account(ledger.books(name))


@dataclass(eq=False)
class Site:
    """One running page."""

    settings: Settings
    workspace: Workspace
    people: People
    jobs: Jobs
    workers: Workers

    def __post_init__(self) -> None:
        """Keep what is made once."""
        self.storage, self.throttle = Storage(self.workspace), Throttle()
        self._templates = environment("understudy.web")
        shown = (number, percent, left, points, duration, nothing, at_most, byte_size, unbroken)
        own = {
            "when": _when,
            "exact": _exact,
            "prose": _prose,
            "sentence": _sentence,
        }
        self._templates.filters.update({each.__name__: each for each in shown} | own)
        known = {"ADDS_UP": ADDS_UP, "COUNTED": COUNTED, "version": __version__}
        self._templates.globals.update(known, static=static_version())

    def render(self, name: str, context: Mapping[str, Any]) -> str:
        """A template, filled in; everything in it is escaped."""
        return self._templates.get_template(name).render(context)

    def problem(self, error: UnderstudyError) -> tuple[str, int]:
        """What to say of an error on the page where it was made, and the status."""
        return without_paths(str(error), self.workspace.folder), status_of(error)

    def page(self, request: Request, name: str, status: int = 200, **context: Any) -> Response:
        """A page for whoever asks."""
        return HTMLResponse(self.render(name, {**self.asked(request), **context}), status)

    def asked(self, request: Request) -> dict[str, Any]:
        """What every page says of who asks, and where."""
        return {
            "session": request.scope["user"],
            "csrf": form_token(request),
            "path": request.scope["path"],
            "here": "",
        }

    def error(
        self, request: Request, status: int, headline: str, text: str, link: str = ""
    ) -> Response:
        """What happened and what to do, perhaps at the address `link`; as a page or as JSON."""
        text = _sentence(text)
        if not wants_page(request):
            return JSONResponse({"error": headline, "detail": text}, status)
        known = {"headline": headline, "text": text, "code": status, "link": link}
        return self.page(request, "error.html", status, **known)


def site_of(request: Request) -> Site:
    """The page that a request came to."""
    return request.app.state.site


async def _here(request: Request) -> Site:
    return site_of(request)


async def _named(request: Request, identity: str) -> Table:
    return site_of(request).workspace.table(identity)


Typed = Annotated[str, Form()]
"""A field of a form, as somebody typed it."""
Here = Annotated[Site, Depends(_here)]
"""The page, for a handler."""
Named = Annotated[Table, Depends(_named)]
"""The table that the address names, for a handler."""


def _when(text: str) -> str:
    """A time as people read it."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"


def _exact(value: Any) -> str:
    """An ε without needless digits."""
    return f"{float(value):.6g}".replace("e-0", "e-")


def _sentence(text: str) -> str:
    """A message with a capital at its beginning, unless that is the name of a file or an option."""
    named = re.match(r"\S*[._]\S|\S+ = ", text)
    return text if named else text[:1].upper() + text[1:]


def _prose(text: str) -> Markup:
    """A message as a sentence on a page; what stands in `backticks` is code."""
    written = str(escape(_sentence(text) + ("" if text.endswith((".", "?", ":")) else ".")))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", written))  # escaped above
