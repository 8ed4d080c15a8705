"""Tables: upload one, open its account, remove its rows."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response

from understudy.draft import RowsPerUnit, people
from understudy.draft.answers import Decision
from understudy.draft.review import decisions
from understudy.errors import InputError, SchemaError, UnderstudyError
from understudy.privacy.budget import Budget, decimal
from understudy.privacy.ledger import Composition
from understudy.privacy.relation import Relation
from understudy.report.words import REASONABLE, meaning
from understudy.schema import Schema
from understudy.schema.family import Family, FamilySchema
from understudy.web.errors import Missing, NotReady
from understudy.web.guard import session_of
from understudy.web.site import Account, Here, Named, Site, Typed, account_of
from understudy.web.uploads import received
from understudy.web.workspace import Table, read_json, suffix_of

router = APIRouter(default_response_class=HTMLResponse)

_NUMBER = re.compile(r"[0-9]{0,9}(\.[0-9]{0,18})?(e-?[0-9]{1,2})?", re.IGNORECASE)
_GROUPS = re.compile(r"[0-9]{1,3}([, ][0-9]{3})+")
_LONGEST_NAME = 80


def plain_number(text: str, name: str) -> str:
    """A number as somebody typed it, if it is one of a size that can be meant."""
    text = text.strip()
    if "," in text:
        raise InputError(
            f"{name} = {text[:40]!r}: a comma may mean thousands or decimals; write 0.5 or 1000"
        )
    if not text or not _NUMBER.fullmatch(text) or text.lower().startswith(("e", ".e")):
        raise InputError(
            f"{name} = {text[:40]!r} is not understood; give a number such as 1 or 0.5"
        )
    return text


def whole(text: str, name: str) -> int | None:
    """A whole number from 1 on, or nothing."""
    text = text.strip()
    if not text:
        return None
    plain = re.sub(r"[, ]", "", text) if _GROUPS.fullmatch(text) else text
    if not re.fullmatch(r"[0-9]{1,12}", plain) or int(plain) < 1:
        raise InputError(
            f"{name} = {text[:40]!r} must be a whole number of 1 or more, such as 5 or 95,000"
        )
    return int(plain)


@router.get("/tables")
async def list_tables(request: Request, site: Here) -> Response:
    """Tables and what is left of their budgets."""
    with site.workspace.ledger() as ledger:
        opened = ledger.datasets()
        rows = [
            (table, account_of(ledger, table.id, opened), _waiting(table))
            for table in site.workspace.tables()
        ]
    return site.page(request, "tables.html", here="tables", tables=rows, jobs=site.jobs.active())


def _waiting(table: Table) -> int | None:
    """How many decisions wait for somebody; None where there is no schema to read."""
    try:
        return len(open_decisions(table))
    except UnderstudyError:
        return None


def open_decisions(table: Table) -> tuple[Decision, ...]:
    """What is open in the schema of a table, with what a custodian may see of its rows."""
    load_schema(table)
    return _decided(table, state_of(table))


@lru_cache(maxsize=64)
def _decided(table: Table, state: tuple[int, int]) -> tuple[Decision, ...]:
    return decisions(_parsed(table.schema, *state), counts(table)[1])


def counts(table: Table) -> tuple[int | None, list[RowsPerUnit]]:
    """How many rows a table has, and how many one person has: exact and private, for custodians."""
    kept = read_json(table.units)
    if not isinstance(kept, dict):
        return None, []
    return kept["rows"], [RowsPerUnit(**facts) for facts in kept["units"]]


def about_rows(table: Table, schema: Schema) -> int | None:
    """About how many rows or units count, in two digits, for a custodian to assume; None if unknown."""
    rows, seen = counts(table)
    # of two tables the rows are those of the parents, whose children alone were told apart
    return people.about_rows(schema, rows, () if family_of(schema) else seen)


@router.get("/tables/new")
async def new_table(request: Request, site: Here) -> Response:
    """The form for a file."""
    return site.page(request, "upload.html", here="tables", most=site.settings.max_upload)


@router.post("/tables")
async def add_table(request: Request, site: Here) -> Response:
    """Take a file, draft its schema, and show the draft."""
    async with received(request, _rows_name, most=2) as form:
        for file in form.files:
            if file.size == 0:
                raise InputError(f"{file.filename} is empty; choose the file that holds the table")
        named = [(file.path, file.filename) for file in form.files]
        twin = await run_in_threadpool(site.workspace.twin, [file.path for file in form.files])
        if twin is not None and twin.present:
            raise InputError(
                f"these rows are here already, as {twin.name!r}. A second copy would have a budget of "
                "its own, though releases of both reveal facts about the same people. Use that table"
            )
        split = form.fields.get("split", "").strip()
        draft = await site.workers.draft(named, session_of(request).name, split)
        named = named[:: -1 if draft.pop("parents") else 1]  # parents first
        given = " ".join(form.fields.get("name", "").split())[:_LONGEST_NAME]
        name, children = given or _stem(named[0][1]), named[1][0] if named[1:] else None
        table = site.workspace.add_table(name, named[0][0], **draft, children=children, again=twin)
    return RedirectResponse(f"/tables/{table.id}/schema", 303)


def _rows_name(filename: str, at: int) -> str:
    suffix = suffix_of(filename)
    if suffix is None:
        ending = filename.rpartition(".")[2][:12] if "." in filename else "nothing"
        raise InputError(
            f"{filename[:80]} is not a table that understudy reads (its name ends in {ending}): "
            "give CSV (.csv, .tsv, .txt, also with .gz) or Parquet (.parquet, .pq). In a "
            "spreadsheet, choose Save as, CSV, UTF-8"
        )
    return f"rows-{at}{suffix}"


def _stem(filename: str) -> str:
    suffix = suffix_of(filename) or ""
    stem = filename[: len(filename) - len(suffix)].replace("_", " ").strip()
    return "".join(c for c in stem if c.isprintable())[:_LONGEST_NAME] or "table"


def load_schema(table: Table) -> Schema:
    """The schema of a table whose rows are still here."""
    if not table.schema.is_file():
        raise Missing(f"the rows of {table.name} were removed, and their schema with them")
    return _parsed(table.schema, *state_of(table))


def family_of(schema: Schema) -> Family | None:
    """How two tables belong together; None where there is one."""
    return schema.family if isinstance(schema, FamilySchema) else None


def state_of(table: Table) -> tuple[int, int]:
    """Other once the file of the schema has changed."""
    file = table.schema.stat()
    return file.st_mtime_ns, file.st_size


@lru_cache(maxsize=64)
def _parsed(path: Path, changed: int, size: int) -> Schema:
    """A schema is read again when its file has changed."""
    return Schema.load(path)


@router.get("/tables/{identity}")
async def show_table(request: Request, site: Here, table: Named) -> Response:
    """One table: its schema, its account, its releases."""
    return _table(request, site, table)


def _table(
    request: Request,
    site: Site,
    table: Table,
    problem: str = "",
    status: int = 200,
    form: BudgetForm | None = None,
) -> Response:
    with site.workspace.ledger() as ledger:
        account = account_of(ledger, table.id)
    known: dict[str, Any] = {"account": account, "ready": False, "why": "", "family": None}
    if table.schema.is_file():
        schema = load_schema(table)
        known["unit"] = schema.unit.column if schema.unit is not None else "row"
        known["family"] = family_of(schema)
        try:
            known["ready"] = bool(confirmed(table, account))
        except NotReady as error:
            known["why"], _ = site.problem(error)
    jobs = [job for job in site.jobs.all() if job.facts.get("table") == table.id]
    known |= {"jobs": jobs, "published": {j.id for j in jobs if site.workspace.published(j.id)}}
    known |= {"here": "tables", "table": table, "problem": problem, "form": form or BudgetForm()}
    return site.page(request, "table.html", status, **known)


class BudgetForm(BaseModel, frozen=True):
    """The total budget of a table, as typed."""

    epsilon: str = ""
    delta: str = "1e-8"
    neighbours: Relation = Relation.ADD_REMOVE
    rows_public: str = ""
    composition: Composition | Literal[""] = ""
    large: str = ""
    """The ε that was said to promise hardly anything, so that it is meant when it comes again."""
    sure: str = ""

    def facts(self) -> tuple[Budget, Relation, Composition | None, int | None]:
        """For `Ledger.open_dataset`; InputError where something cannot be meant."""
        if not self.sure:
            raise InputError("tick the box that says that the budget cannot be changed")
        budget = Budget.of(plain_number(self.epsilon, "ε"), plain_number(self.delta, "δ"))
        rows = whole(self.rows_public, "number of rows")
        if rows is not None and budget.delta * rows >= 1:
            raise InputError(
                f"δ = {self.delta} must be below 1/n = {1 / rows:.3g} for the declared n = {rows}"
            )
        return budget, self.neighbours, self.composition or None, rows


@router.post("/tables/{identity}/budget")
async def open_budget(
    request: Request, site: Here, table: Named, form: Annotated[BudgetForm, Form()]
) -> Response:
    """Declare the total budget of a table, once."""
    try:
        unit = confirmed(table, None).unit
        budget, relation, composition, rows = form.facts()
        if budget.epsilon > REASONABLE and form.large != form.epsilon:
            means = meaning(float(budget.epsilon), float(budget.delta), unit, relation)
            means = means.replace("this release", "its releases together")
            form = form.model_copy(update={"large": form.epsilon})
            raise InputError(
                f"a total of ε = {decimal(budget.epsilon)} promises hardly anything. {means} If it is "
                "meant, tick the box again"
            )
        with site.workspace.ledger() as ledger:
            column = None if unit is None else unit.column
            ledger.open_dataset(table.id, budget, relation, composition, rows, column)
    except InputError as error:
        return _table(request, site, table, *site.problem(error), form)
    return RedirectResponse(f"/tables/{table.id}", 303)


def confirmed(table: Table, account: Account | None) -> Schema:
    """The schema, once everything in it is confirmed and it protects whom the budget protects.

    Raises:
        NotReady: It does not; the message says what to do.
    """
    schema, link = load_schema(table), f"/tables/{table.id}/schema"
    if waiting := len(open_decisions(table)):
        are = "1 decision about the schema is" if waiting == 1 else f"{waiting} decisions are"
        raise NotReady(f"{are} open. Review the schema first", link)
    try:
        schema.require_confirmed()
    except SchemaError as error:
        raise NotReady(str(error), link) from None
    unit = None if schema.unit is None else schema.unit.column
    if account is not None and account.dataset.unit != unit:
        raise NotReady(
            f"the budget was declared for one {account.dataset.unit or 'row'}, but the schema now "
            f"protects one {unit or 'row'}. A budget cannot be changed: change the schema back, or, as "
            "long as nothing of it is spent, remove the rows and add them again",
            link,
        )
    return schema


@router.post("/tables/{identity}/remove")
async def remove_rows(site: Here, table: Named, sure: Typed = "") -> Response:
    """Delete the private rows; the account stays."""
    if any(job.facts.get("table") == table.id for job in site.jobs.active()):
        raise InputError("a release of this table is being made; cancel it or wait for it first")
    if not sure:
        raise InputError("tick the box that says that the rows are to be deleted")
    site.workspace.remove_rows(table)
    return RedirectResponse(f"/tables/{table.id}", 303)
