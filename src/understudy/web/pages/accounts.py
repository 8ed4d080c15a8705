"""The ledger: every charge ever made here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from understudy.errors import ChainBroken, InputError
from understudy.privacy.ledger import Ledger
from understudy.releases.outline import history
from understudy.web.errors import Missing
from understudy.web.site import Account, Here, account_of

router = APIRouter(default_response_class=HTMLResponse)

_MOST_ENTRIES = 100


@dataclass(frozen=True, slots=True)
class View:
    """A dataset as its entries tell it."""

    name: str
    title: str
    account: Account | None
    releases: list[dict[str, Any]]
    last: list[Any]
    broken: str = ""


def _view(ledger: Ledger, name: str, title: str) -> View:
    try:
        account = account_of(ledger, name, [name])
    except ChainBroken as error:
        return View(name, title, None, [], [], broken=str(error))
    assert account is not None
    since = max(0, len(account.books.hashes) - _MOST_ENTRIES)
    last = ledger.entries(name, since=since)[::-1]
    return View(name, title, account, history(ledger, name)[::-1], last)


@router.get("/ledger")
async def show_ledger(request: Request, site: Here) -> Response:
    """Every account, its releases and its entries; the chain is checked."""
    titles = {table.id: table.name for table in site.workspace.tables()}
    with site.workspace.ledger() as ledger:
        names = ledger.datasets()
        views = [_view(ledger, name, titles.get(name, name)) for name in names]
    stored = {summary.reservation: summary.id for summary in site.storage.summaries()}
    jobs = site.jobs.owners()
    return site.page(request, "ledger.html", here="ledger", views=views, owners=jobs, stored=stored)


@router.post("/ledger/{reservation}/settle")
async def settle(site: Here, reservation: str) -> Response:
    """Close a release that crashed, and free what it did not draw."""
    owner = site.jobs.owners().get(reservation)
    if owner is not None and owner.active:
        raise InputError("this release is being made; cancel its job instead")
    with site.workspace.ledger() as ledger:
        try:
            name = ledger.dataset_of(reservation)
        except InputError:
            raise Missing("the ledger has no such release") from None
        ledger.settle(reservation, dataset=name)
    return RedirectResponse("/ledger", 303)
