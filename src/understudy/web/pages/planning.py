"""A plan before anything is spent, and the start of a release."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Form, Query, Request
from pydantic import BaseModel
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from understudy.columns.unmodelled import Undeclared
from understudy.errors import BudgetExhausted, InputError, UnderstudyError
from understudy.game.methods import METHODS
from understudy.privacy.budget import Budget, decimal
from understudy.privacy.cost import Plan
from understudy.releases.outline import Room
from understudy.schema import Modelled, Schema
from understudy.schema.family import FamilySchema
from understudy.units import Unit, scope, things
from understudy.web.errors import status_of
from understudy.web.guard import session_of, wants_page
from understudy.web.jobs import Job
from understudy.web.pages.tables import about_rows, confirmed, family_of, plain_number, whole
from understudy.web.site import Account, Here, Named, Site, account_of
from understudy.web.workspace import Table

router = APIRouter(default_response_class=HTMLResponse)

EPSILONS = ("0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "4", "6", "8", "10")
"""Where the slider stops: each is a promise that somebody could mean."""

WORKLOADS = {
    "marginals:1": "single columns",
    "marginals:2": "all pairs of columns",
    "marginals:3": "all triples of columns",
}
PURPOSES = {
    "": "everything alike",
    "subgroups": "comparing groups of",
    "model": "predicting",
    "regression": "a regression",
}
"""What rows may be for; but for the first, with a column or a formula."""
_WORKLOAD = re.compile(r"[a-z]{3,20}:[0-9]{1,2}(:[0-9]{1,6}(@[0-9]{1,9})?)?")
_SHOWN = 5


class PlanForm(BaseModel, frozen=True):
    """What somebody asks for, as typed; what is left out is as on the command line."""

    epsilon: str = "1"
    target: str = ""
    of: str = "worst"
    delta: str = "1e-9"
    workload: str = "marginals:2"
    purpose: str = ""
    columns: str = ""
    method: str = "auto"
    rows: str = ""
    size: str = ""
    variations: str = ""
    name: str = ""
    owner: str = ""

    @property
    def aim(self) -> tuple[str, str]:
        """What the rows are for, and which columns that is about."""
        kind, _, columns = self.purpose.strip().partition(":")
        return kind, kind and (columns or self.columns.strip())

    def purposes(self, names: Sequence[str]) -> str | list[str] | None:
        """What the rows are for, as `prepare` takes it; a comma in one of `names` parts nothing."""
        kind, columns = self.aim
        if not columns:
            return kind or None
        one = kind == "regression" or columns in names
        return [f"{kind}:{each.strip()}" for each in ([columns] if one else columns.split(","))]

    def choices(self, account: Account | None, names: Sequence[str] = ()) -> dict[str, Any]:
        """For `prepare`, of a table with the columns `names`; InputError where it cannot be meant."""
        if self.method != "auto" and self.method not in METHODS:
            raise InputError(f"method = {self.method[:40]!r} is not known")
        for part in self.workload.split("+") if self.workload else ():
            if not _WORKLOAD.fullmatch(part):
                raise InputError(
                    f"workload = {self.workload[:60]!r} is not understood; write it as marginals:2, "
                    "or marginals:3:64@0 for 64 triples"
                )
        kind, columns = self.aim
        if kind in PURPOSES and kind and not columns:
            raise InputError(f"the rows are for {PURPOSES[kind]} …: name the column")
        chosen: dict[str, Any] = {
            "delta": plain_number(self.delta, "δ"),
            "workload": self.workload or None,
            "purpose": self.purposes(names),
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

    `once` is of the page that the form stood on: sent twice, by a double click, it starts one job.
    `begun` is how many releases of the table had been started when it was shown.
    """

    epsilon: str = ""
    once: str = ""
    begun: str = ""
    sure: str = ""


F = TypeVar("F", bound=PlanForm)
Asked = Annotated[PlanForm, Query()]


@router.get("/tables/{identity}/plan")
async def plan(request: Request, site: Here, table: Named, form: Asked) -> Response:
    """What a release would cost and how good it would be. Reads the schema and spends nothing."""
    return await _page(request, site, table, form)


async def _page(
    request: Request,
    site: Site,
    table: Table,
    form: PlanForm,
    problem: str = "",
    status: int = 200,
) -> Response:
    known = _known(site, table)
    form = _fitting(form, known["schema"])
    # without, the page is there at once and asks for the plan itself
    if request.query_params or status == status_of(BudgetExhausted()):
        known = await _outlined(site, known, form)
    if known["outline"] is not None and form.target.strip():
        form = form.model_copy(update={"epsilon": known["outline"]["epsilon"]})
    if problem:
        known |= {"problem": problem, "status": status}
    choices = {"epsilons": EPSILONS, "methods": METHODS, "workloads": WORKLOADS}
    choices |= {"purposes": PURPOSES, "once": secrets.token_hex(8)}
    begun = len(_started(site, table))
    return site.page(
        request, "plan.html", here="tables", form=form, begun=begun, **choices, **known
    )


def _started(site: Site, table: Table) -> list[Job]:
    """The releases of a table that were ever started, the newest first."""
    return [job for job in site.jobs.all() if job.facts.get("table") == table.id]


def _fitting(form: F, schema: Schema) -> F:
    """The form with what the page leaves no choice about: one column has no pairs, and families have
    tables and a method of their own.
    """
    if family_of(schema) is not None:
        return form.model_copy(update={"workload": "", "method": "auto"})
    pairs = sum(isinstance(column, (Modelled, Undeclared)) for column in schema.columns) >= 2
    if form.workload == "marginals:2" and not pairs:
        return form.model_copy(update={"workload": "marginals:1"})
    return form


def _known(site: Site, table: Table) -> dict[str, Any]:
    """What the pages show before there is a plan."""
    with site.workspace.ledger() as ledger:
        account = account_of(ledger, table.id)
    schema = confirmed(table, account)
    empty = {"outline": None, "shown": [], "room": None, "problem": "", "status": 200}
    untaken = (job for job in _started(site, table) if job.active)
    empty |= {"pending": [job.name for job in untaken if not site.jobs.spent(job).charged]}
    shared = {"family": family_of(schema), "things": things(schema.unit), "counted": None}
    some = schema.modelled
    if isinstance(schema, FamilySchema):
        some = [some[i] for i in (*schema.layout.parent, *schema.layout.child)]
    shared |= {"names": [column.name for column in some], "scope": scope(schema.unit)}
    about = about_rows(table, schema)
    return {"table": table, "account": account, "schema": schema, "about": about, **shared, **empty}


async def _outlined(site: Site, known: dict[str, Any], form: PlanForm) -> dict[str, Any]:
    """The plan, or why there is none, as the pages show it."""
    table, account = known["table"], known["account"]
    try:
        rows = whole(form.rows, "number of rows")
        choices = form.choices(account, known["names"])
        if rows is None and choices["rows_public"] is None:
            if "target_error" in choices:  # the ε that it finds is published
                raise InputError(
                    "an error is turned into ε for a number of rows that you state: fill in about how "
                    "many there are"
                )
            rows = known["counted"] = known["about"]
        outline = await site.workers.plan(table.schema.read_text(encoding="utf-8"), choices, rows)
    except UnderstudyError as error:
        problem, status = site.problem(error)
        problem = re.sub(r"^purpose '[^']*': ", "", problem)  # which the page has in other words
        return {**known, "problem": problem, "status": status}
    known = {**known, "outline": outline, "shown": _shown(outline)}
    if account is None:
        return known
    room, largest = _room(account, known["schema"].unit, outline)
    return {**known, "room": room, "largest": largest}


def _shown(outline: dict[str, Any]) -> list[tuple[str, float]]:
    """The marginals that fare worst, by name."""
    errors = outline["forecast"].get("errors")
    if not errors or len(errors["columns"]) < 2:
        return []
    names = [" × ".join(columns) for columns in errors["columns"]]
    pairs = zip(names, errors["total_variations"], strict=True)
    return sorted(pairs, key=lambda pair: -pair[1])[:_SHOWN]


def _room(account: Account, unit: Unit | None, outline: dict[str, Any]) -> tuple[Room, str]:
    """What a release takes of an account; and where it does not fit, the ε that would, if any."""
    budget, plan = Budget.from_json(outline["budget"]), Plan.from_json(outline["charges"])
    room = Room.of(account.books, budget, plan, unit)
    largest = 0 if room.fit else account.books.largest(budget, plan, unit)
    return room, decimal(largest) if largest else ""


@router.get("/tables/{identity}/plan/forecast")
async def forecast(request: Request, site: Here, table: Named, form: Asked) -> Response:
    """The part of the plan that changes when something is moved."""
    known = _known(site, table)
    known = await _outlined(site, known, _fitting(form, known["schema"]))
    if not wants_page(request):
        body = known["outline"] or {"error": known["problem"]}
        return JSONResponse(body, known["status"])
    return site.page(request, "_forecast.html", **known)


@router.post("/tables/{identity}/releases")
async def start_release(
    request: Request, site: Here, table: Named, form: Annotated[ReleaseForm, Form()]
) -> Response:
    """Begin a release, in a process of its own. Everything is checked before anything is spent."""
    known = _known(site, table)
    schema, account = known["schema"], known["account"]
    form = _fitting(form, schema)
    text = table.schema.read_text(encoding="utf-8")
    try:
        if account is None:
            raise InputError(
                f"the table {table.name} has no budget yet; declare its total on its page first"
            )
        if not form.sure:
            raise InputError("tick the box that says that ε is to be spent")
        # The ε that the plan found for an error stands in the form; it is what is spent.
        choices = form.model_copy(update={"target": ""}).choices(account, known["names"])
        assumed, size = whole(form.rows, "number of rows"), whole(form.size, "synthetic rows")
        about = None if choices["rows_public"] else known["about"]  # for the forecast of time alone
        outline = await site.workers.plan(text, choices, assumed or about)
        _require_left(account, schema.unit, outline, table)
        started = _started(site, table)
        for job in started if form.once else ():
            if job.facts.get("once") == form.once:
                return RedirectResponse(f"/jobs/{job.id}", 303)
        if form.begun not in ("", str(len(started))):
            raise BudgetExhausted(
                f"since this page was shown, the release {started[0].name} was started, which takes "
                "of the same budget. To make this one as well, tick the box again and start it"
            )
    except UnderstudyError as error:
        return await _page(request, site, table, form, *site.problem(error))
    title, owner = (" ".join(typed.split())[:80] for typed in (form.name, form.owner))
    title = title or f"{table.name} ε {choices['epsilon']}"
    del choices["neighbours"]  # the ledger's
    facts = {
        "table": table.id,
        "table_name": table.name,
        "by": session_of(request).shown,
        "owner": owner,
        "seconds": outline["forecast"]["seconds"],
        "once": form.once[:64],
        "choices": {**choices, "rows": size},
    }
    job = site.jobs.start("release", title, facts, {"schema.toml": text})
    return RedirectResponse(f"/jobs/{job.id}", 303)


def _require_left(
    account: Account, unit: Unit | None, outline: dict[str, Any], table: Table
) -> None:
    """Refuse early what the account cannot bear; the job's reservation is what decides."""
    if not _room(account, unit, outline)[0].fit:
        raise BudgetExhausted(
            f"nothing was started, and nothing of the budget of {table.name} spent"
        )
