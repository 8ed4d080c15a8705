"""A plan before anything is spent, and the start of a release."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from pydantic import BaseModel
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from understudy.columns.unmodelled import Undeclared
from understudy.errors import BudgetExhausted, InputError, UnderstudyError
from understudy.game.methods import METHODS
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Plan
from understudy.schema import Modelled
from understudy.units import Unit
from understudy.web.guard import session_of, status_of, wants_page
from understudy.web.pages.tables import load_schema, plain_number, whole
from understudy.web.site import Account, account_of, site_of
from understudy.web.workspace import Table, without_paths

router = APIRouter(default_response_class=HTMLResponse)

EPSILONS = ("0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "4", "6", "8", "10")
"""Where the slider stops: each is a promise that somebody could mean."""

WORKLOADS = {
    "marginals:1": "single columns",
    "marginals:2": "all pairs of columns",
    "marginals:3": "all triples of columns",
}
_WORKLOAD = re.compile(r"[a-z]{3,20}:[0-9]{1,2}(:[0-9]{1,6}(@[0-9]{1,9})?)?")
_SHOWN = 5


class PlanForm(BaseModel, frozen=True):
    """What somebody asks for, as typed."""

    epsilon: str = "1"
    target: str = ""
    of: str = "worst"
    delta: str = "1e-9"
    workload: str = "marginals:2"
    method: str = "auto"
    rows: str = ""
    size: str = ""
    variations: str = "yes"
    name: str = ""

    def choices(self, account: Account | None) -> dict[str, Any]:
        """For `prepare`; InputError where something cannot be meant."""
        if self.method != "auto" and self.method not in METHODS:
            raise InputError(f"method = {self.method[:40]!r} is not known")
        for part in self.workload.split("+"):
            if not _WORKLOAD.fullmatch(part):
                raise InputError(
                    f"workload = {self.workload[:60]!r} is not understood; write it as marginals:2, "
                    "or marginals:3:64@0 for 64 triples"
                )
        chosen: dict[str, Any] = {
            "delta": plain_number(self.delta, "δ"),
            "workload": self.workload,
            "method": self.method,
            "variations": bool(self.variations),
            "neighbours": str(account.dataset.relation) if account else "add-remove",
            "rows_public": account.dataset.rows_public if account else None,
        }
        if self.target.strip():
            chosen["target_error"] = float(plain_number(self.target, "error")) / 100
            chosen["target_of"] = self.of
        else:
            chosen["epsilon"] = plain_number(self.epsilon, "ε")
        return chosen


class ReleaseForm(PlanForm, frozen=True):
    """A plan that is to be carried out.

    `once` is of the page that the form stood on: sent twice, by a double click, it starts one job. A
    box that is not ticked is not sent.
    """

    epsilon: str = ""
    variations: str = ""
    once: str = ""


Asked = Annotated[PlanForm, Query()]


@router.get("/tables/{identity}/plan")
async def plan(request: Request, identity: str, wish: Asked) -> Response:
    """What a release would cost and how good it would be. Reads the schema and spends nothing."""
    return await _page(request, identity, wish)


async def _page(
    request: Request, identity: str, wish: PlanForm, problem: str = "", status: int = 200
) -> Response:
    site = site_of(request)
    table = site.workspace.table(identity)
    schema = load_schema(table)
    schema.require_confirmed()
    pairs = sum(isinstance(column, (Modelled, Undeclared)) for column in schema.columns) >= 2
    wish = (
        wish
        if pairs or wish.workload != "marginals:2"
        else wish.model_copy(update={"workload": "marginals:1"})
    )
    with site.workspace.ledger() as ledger:
        account = account_of(ledger, table.id)
    outline, told = None, ("", 0)
    if request.query_params:  # without, the page is there at once and asks for the plan itself
        outline, told = await _outlined(request, table, wish, account)
    if outline is not None and wish.target.strip():
        wish = wish.model_copy(update={"epsilon": outline["epsilon"]})
    if not problem:
        problem, status = told
    return site.page(
        request, "plan.html", status or 200, here="tables", table=table, account=account,
        wish=wish, once=secrets.token_hex(8), outline=outline, problem=problem,
        epsilons=EPSILONS, methods=METHODS, workloads=WORKLOADS,
        shown=_shown(outline), after=_after(account, schema.unit, outline),
    )  # fmt: skip


async def _outlined(
    request: Request, table: Table, wish: PlanForm, account: Account | None
) -> tuple[dict[str, Any] | None, tuple[str, int]]:
    """The plan, or why there is none."""
    site = site_of(request)
    schema = table.schema.read_text(encoding="utf-8")
    try:
        rows = whole(wish.rows, "number of rows")
        choices = wish.choices(account)
        if "target_error" in choices and rows is None and choices["rows_public"] is None:
            rows = 10_000
        return await site.workers.plan(schema, choices, rows), ("", 0)
    except UnderstudyError as error:
        return None, (without_paths(str(error), site.workspace.folder), status_of(error))


def _shown(outline: dict[str, Any] | None) -> list[tuple[str, float]]:
    """The marginals that fare worst, by name."""
    errors = (outline or {}).get("forecast", {}).get("errors")
    if not errors or len(errors["columns"]) < 2:
        return []
    found = [
        (" × ".join(names), total)
        for names, total in zip(errors["columns"], errors["total_variations"], strict=True)
    ]
    return sorted(found, key=lambda pair: -pair[1])[:_SHOWN]


@dataclass(frozen=True, slots=True)
class After:
    """What a planned release would leave of the budget, and how many like it fit, itself included."""

    left: float
    fit: int


def _after(
    account: Account | None, unit: Unit | None, outline: dict[str, Any] | None
) -> After | None:
    """None where nobody has opened an account."""
    if account is None or outline is None:
        return None
    budget, plan = Budget.from_json(outline["budget"]), Plan.from_json(outline["charges"])
    left = account.books.after(budget, plan, unit).remaining_epsilon
    return After(float(left), account.books.more_like(budget, plan, unit))


@router.get("/tables/{identity}/plan/forecast")
async def forecast(request: Request, identity: str, wish: Asked) -> Response:
    """The part of the plan that changes when something is moved."""
    site = site_of(request)
    table = site.workspace.table(identity)
    schema = load_schema(table)
    schema.require_confirmed()
    with site.workspace.ledger() as ledger:
        account = account_of(ledger, table.id)
    outline, (problem, status) = await _outlined(request, table, wish, account)
    if not wants_page(request):
        body = {"error": problem} if outline is None else outline
        return JSONResponse(body, status or 200)
    return site.page(
        request, "_forecast.html", status or 200, account=account, outline=outline, table=table,
        problem=problem, shown=_shown(outline), after=_after(account, schema.unit, outline),
    )  # fmt: skip


@router.post("/tables/{identity}/releases")
async def start_release(
    request: Request, identity: str, wish: Annotated[ReleaseForm, Form()]
) -> Response:
    """Begin a release, in a process of its own. Everything is checked before anything is spent."""
    site, session = site_of(request), session_of(request)
    table = site.workspace.table(identity)
    schema = load_schema(table)
    schema.require_confirmed()
    try:
        with site.workspace.ledger() as ledger:
            account = account_of(ledger, table.id)
        if account is None:
            raise InputError(
                f"{table.name} has no budget yet; declare its total on the page of the table first"
            )
        choices = wish.choices(account)
        outline = await site.workers.plan(table.schema.read_text(encoding="utf-8"), choices, None)
        _require_left(account, schema.unit, outline, table)
        rows_assumed, made = whole(wish.rows, "number of rows"), whole(wish.size, "synthetic rows")
    except UnderstudyError as error:
        text = without_paths(str(error), site.workspace.folder)
        return await _page(request, identity, wish, text, status_of(error))
    for begun in site.jobs.all() if wish.once else ():
        if begun.facts.get("once") == wish.once:
            return RedirectResponse(f"/jobs/{begun.id}", 303)
    title = " ".join(wish.name.split())[:80] or f"{table.name} ε {choices['epsilon']}"
    choices = {key: value for key, value in choices.items() if key != "neighbours"}
    job = site.jobs.start(
        "release",
        title,
        {
            "table": table.id,
            "table_name": table.name,
            "by": session.shown,
            "rows": rows_assumed,
            "once": wish.once[:64],
            "choices": {**choices, "rows": made},
        },
        {"schema.toml": table.schema.read_text(encoding="utf-8")},
    )
    return RedirectResponse(f"/jobs/{job.id}", 303)


def _require_left(
    account: Account, unit: Unit | None, outline: dict[str, Any], table: Table
) -> None:
    """Refuse early what the account cannot bear; the job's reservation is what decides."""
    after = _after(account, unit, outline)
    if after is not None and not after.fit:
        total, budget = account.dataset, Budget.from_json(outline["budget"])
        raise BudgetExhausted(
            f"the release asks for {budget}, but of the total {total.budget} of {table.name} only "
            f"ε = {float(account.left):.6g}, δ = {float(account.left_delta):.3g} is left. Nothing "
            f"was spent; ask for less"
        )
