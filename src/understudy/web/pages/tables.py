"""Tables: upload one, confirm what its draft took from the rows, open its account."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from pydantic import BaseModel
from starlette.responses import HTMLResponse, RedirectResponse, Response

from understudy import files
from understudy.draft import RowsPerUnit, confirm
from understudy.draft.review import Choice, Decision, Topic, answered, decision_named, decisions
from understudy.errors import InputError, SchemaError, UnderstudyError
from understudy.privacy.budget import Budget
from understudy.privacy.ledger import Composition
from understudy.privacy.relation import Relation
from understudy.schema import Schema
from understudy.source.base import check_header
from understudy.source.files import find
from understudy.units import OPEN, ROW, Unit
from understudy.web import editor
from understudy.web.errors import Missing
from understudy.web.guard import session_of
from understudy.web.site import Here, Named, Site, Typed, account_of, site_of
from understudy.web.uploads import received
from understudy.web.workspace import Table, read_json, suffix_of

router = APIRouter(default_response_class=HTMLResponse)

_NUMBER = re.compile(r"[0-9]{0,9}(\.[0-9]{0,18})?(e-?[0-9]{1,2})?", re.IGNORECASE)
_LONGEST_NAME = 80


def plain_number(text: str, name: str) -> str:
    """A number as somebody typed it, if it is one of a size that can be meant."""
    text = text.strip().replace(",", ".")
    if not text or not _NUMBER.fullmatch(text) or text.lower().startswith(("e", ".e")):
        raise InputError(f"{name} = {text[:40]!r} is not a number; give one such as 1 or 0.5")
    return text


def whole(text: str, name: str) -> int | None:
    """A whole number from 1 on, or nothing."""
    text = text.strip().replace(",", "").replace(" ", "")
    if not text:
        return None
    if not re.fullmatch(r"[0-9]{1,12}", text) or int(text) < 1:
        raise InputError(f"{name} = {text[:40]!r} must be a whole number from 1 to 10^12")
    return int(text)


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
        return len(_open(table))
    except UnderstudyError:
        return None


def _open(table: Table) -> tuple[Decision, ...]:
    """What is open in the schema of a table, with what a custodian may see of its rows."""
    load_schema(table)
    return _decided(table, _state(table))


@lru_cache(maxsize=64)
def _decided(table: Table, state: tuple[int, int]) -> tuple[Decision, ...]:
    seen = [RowsPerUnit(**facts) for facts in read_json(table.units) or ()]
    return decisions(_parsed(table.schema, *state), seen)


@router.get("/tables/new")
async def new_table(request: Request, site: Here) -> Response:
    """The form for a file."""
    return site.page(request, "upload.html", here="tables", most=site.settings.max_upload)


@router.post("/tables")
async def add_table(request: Request, site: Here) -> Response:
    """Take a file, draft its schema, and show the draft."""
    async with received(request, _rows_name) as file:
        if file.size == 0:
            raise InputError(f"{file.filename} is empty; choose the file that holds the table")
        draft = await site.workers.draft(file.path, file.filename, session_of(request).name)
        given = " ".join(file.fields.get("name", "").split())[:_LONGEST_NAME]
        name = given or _stem(file.filename)
        table = site.workspace.add_table(name, file.path, **draft)
    return RedirectResponse(f"/tables/{table.id}/schema", 303)


def _rows_name(filename: str) -> str:
    suffix = suffix_of(filename)
    if suffix is None:
        ending = filename.rpartition(".")[2][:12] if "." in filename else "nothing"
        raise InputError(
            f"{filename[:80]} is not a table that understudy reads (its name ends in {ending}): "
            "give CSV (.csv, .tsv, .txt, also with .gz) or Parquet (.parquet, .pq). In a "
            "spreadsheet, choose Save as, CSV, UTF-8"
        )
    return "rows" + suffix


def _stem(filename: str) -> str:
    suffix = suffix_of(filename) or ""
    stem = filename[: len(filename) - len(suffix)].replace("_", " ").strip()
    return "".join(c for c in stem if c.isprintable())[:_LONGEST_NAME] or "table"


def load_schema(table: Table) -> Schema:
    """The schema of a table whose rows are still here."""
    if not table.schema.is_file():
        raise Missing(f"the rows of {table.name} were removed, and their schema with them")
    return _parsed(table.schema, *_state(table))


def _state(table: Table) -> tuple[int, int]:
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
    request: Request, site: Site, table: Table, problem: str = "", status: int = 200
) -> Response:
    known: dict[str, Any] = {"waiting": 0, "ready": False, "why": "", "unit": "row"}
    if table.schema.is_file():
        schema = load_schema(table)
        known["waiting"] = len(_open(table))
        known["unit"] = schema.unit.column if schema.unit is not None else "row"
        try:
            schema.require_confirmed()
            known["ready"] = True
        except SchemaError as error:
            known["why"], _ = site.problem(error)
    with site.workspace.ledger() as ledger:
        known["account"] = account_of(ledger, table.id)
    known["jobs"] = [job for job in site.jobs.all() if job.facts.get("table") == table.id]
    known |= {"here": "tables", "table": table, "problem": problem}
    return site.page(request, "table.html", status, **known)


class BudgetForm(BaseModel, frozen=True):
    """The total budget of a table, as typed."""

    epsilon: str = ""
    delta: str = "1e-8"
    neighbours: str = "add-remove"
    rows_public: str = ""
    composition: str = ""

    def facts(self) -> tuple[Budget, Relation, Composition | None, int | None]:
        """For `Ledger.open_dataset`; InputError where something cannot be meant."""
        budget = Budget.of(plain_number(self.epsilon, "ε"), plain_number(self.delta, "δ"))
        rows = whole(self.rows_public, "number of rows")
        if rows is not None and budget.delta * rows >= 1:
            raise InputError(
                f"δ = {self.delta} must be below 1/n = {1 / rows:.3g} for the declared n = {rows}"
            )
        if self.neighbours not in tuple(Relation):
            raise InputError(f"neighbours = {self.neighbours[:40]!r} must be add-remove or replace")
        rule = self.composition or None
        if rule not in (None, "basic", "zcdp"):
            raise InputError(f"composition = {rule[:40]!r} must be basic or zcdp")
        return budget, Relation(self.neighbours), rule, rows


@router.post("/tables/{identity}/budget")
async def open_budget(
    request: Request, site: Here, table: Named, form: Annotated[BudgetForm, Form()]
) -> Response:
    """Declare the total budget of a table, once."""
    try:
        with site.workspace.ledger() as ledger:
            ledger.open_dataset(table.id, *form.facts(), _unit_of(table))
    except InputError as error:
        return _table(request, site, table, *site.problem(error))
    return RedirectResponse(f"/tables/{table.id}", 303)


def _unit_of(table: Table) -> str | None:
    """The column that tells people apart, as the schema declares it; None for rows."""
    unit = load_schema(table).unit
    return None if unit is None else unit.column


@router.post("/tables/{identity}/remove")
async def remove_rows(site: Here, table: Named, sure: Typed = "") -> Response:
    """Delete the private rows; the account stays."""
    if any(job.facts.get("table") == table.id for job in site.jobs.active()):
        raise InputError("a release of this table is being made; cancel it or wait for it first")
    if not sure:
        raise InputError("tick the box that says that the rows are to be deleted")
    site.workspace.remove_rows(table)
    return RedirectResponse(f"/tables/{table.id}", 303)


# The schema


@router.get("/tables/{identity}/schema")
async def edit_schema(request: Request, site: Here, table: Named) -> Response:
    """Every column as a card; facts from private rows stand out until they are confirmed."""
    load_schema(table)
    return HTMLResponse(_cards(site, table, _state(table), tuple(site.asked(request).items())))


@lru_cache(maxsize=32)
def _cards(
    site: Site, table: Table, state: tuple[int, int], asked: tuple[tuple[str, Any], ...]
) -> str:
    """The largest of the pages, kept for one login until the schema's file changes."""
    return _written(site, table, dict(asked))


def _written(
    site: Site, table: Table, asked: Mapping[str, Any], problem: str = "", at: int | None = None
) -> str:
    schema, found = load_schema(table), _open(table)
    context = {
        "here": "tables",
        "table": table,
        "cards": editor.cards(schema),
        "unit": schema.unit,
        "unsaid": schema.unit_word == OPEN,
        "kinds": editor.KINDS,
        "decisions": found,
        "stated": [decision for decision in found if Choice.PUBLIC in decision.choices],
        "verdicts": _VERDICTS,
        "typed": _TYPED,
        "problem": problem,
        "at": at,
    }
    return site.render("schema.html", {**asked, **context})


def _not_saved(
    request: Request, table: Table, error: UnderstudyError, at: int | None = None
) -> Response:
    """The schema as it is, with what was wrong about a change."""
    site = site_of(request)
    problem, status = site.problem(error)
    return HTMLResponse(_written(site, table, site.asked(request), problem, at), status)


@router.post("/tables/{identity}/schema/columns/{at}")
async def save_column(request: Request, table: Named, at: int) -> Response:
    """Keep what the form of a column says, and confirm the facts whose boxes are ticked."""
    schema = load_schema(table)
    if not 0 <= at < len(schema.columns):
        raise Missing("the schema has no such column; it may have been changed by somebody else")
    sent = await request.form()
    form = {key: value for key, value in sent.items() if isinstance(value, str)}
    if form.get("name", schema.columns[at].name) != schema.columns[at].name:
        raise InputError("the schema was changed by somebody else meanwhile; load the page again")
    try:
        column = editor.column_from(form, schema.columns[at], confirm_all=form.get("do") == "all")
        changed = editor.replaced(schema, at, column)
    except UnderstudyError as error:
        return _not_saved(request, table, error, at)
    changed.save(table.schema)
    left = [n for n, c in enumerate(changed.columns) if c.read_from_rows]
    later = [n for n in left if n > at] or left
    stays = column.read_from_rows or column.kind in ("incomplete", "text")
    anchor = f"column-{at}" if stays else f"column-{later[0]}" if later else "done"
    return RedirectResponse(f"/tables/{table.id}/schema#{anchor}", 303)


_VERDICTS = {
    Choice.PRIVATE: "Let releases find it privately",
    Choice.DROP: "Leave it out",
}
_TYPED = {
    Topic.VALUES: "all values, between commas",
    Topic.BOUNDS: "bounds, such as 0 to 120",
    Topic.MISSING: "values between commas, or bounds such as 0 to 120",
    Topic.TYPES: "columns that may have empty cells, between commas, or all",
}


@router.post("/tables/{identity}/schema/decisions")
async def decide(request: Request, table: Named) -> Response:
    """Keep the answer to one decision about a draft."""
    sent = await request.form()
    form = {key: value for key, value in sent.items() if isinstance(value, str)}
    try:
        schema = load_schema(table)
        for about, choice, text in _answers(decision_named(schema, form.get("key", "")), form):
            schema = answered(schema, about, choice, text)
    except UnderstudyError as error:
        return _not_saved(request, table, error)
    schema.save(table.schema)
    return RedirectResponse(f"/tables/{table.id}/schema#review", 303)


def _answers(decision: Decision, form: Mapping[str, str]) -> list[tuple[Decision, Choice, str]]:
    """What a form says about each of the columns; nothing was said where nothing was typed."""
    if decision.topic is Topic.RULES:
        kept = {says: f"keep-{at}" in form for at, says in enumerate(decision.columns, 1)}
        said = {Choice.PUBLIC: True, Choice.DROP: False}
        chosen = {c: [says for says in kept if kept[says] is yes] for c, yes in said.items()}
        return [(decision.of(*rules), c, "") for c, rules in chosen.items() if rules]
    choice = form.get("choice", "")
    if choice not in tuple(Choice):
        raise InputError(f"choice = {choice[:40]!r} is no answer; use one of the buttons")
    choice = Choice(choice)
    if decision.topic is Topic.UNIT:
        return [(decision, choice, _protected(form))]
    if choice is not Choice.REPLACE or decision.shared:
        return [(decision, choice, form.get("text", ""))]
    typed = {name: form.get(f"text-{name}", "") for name in decision.columns}
    given = [(decision.of(name), choice, text) for name, text in typed.items() if text.strip()]
    if not given:
        raise InputError("nothing was typed in place of the facts")
    return given


def _protected(form: Mapping[str, str]) -> str:
    """Who is protected, as `answered` takes it."""
    if form.get("who") == ROW:
        return ROW
    column = form.get("column", "")
    most = whole(form.get("max_rows", ""), "rows of one person")
    if most is None:
        raise InputError(f"say how many rows of one {column[:60]} may count, such as 5")
    return f"{column} {most}"


@router.post("/tables/{identity}/schema/confirm")
async def confirm_all(table: Named) -> Response:
    """State that every fact of the draft is public."""
    confirm(load_schema(table)).save(table.schema)
    return RedirectResponse(f"/tables/{table.id}/schema#done", 303)


@router.post("/tables/{identity}/schema/unit")
async def choose_unit(
    request: Request, table: Named, column: Typed = "", max_rows: Typed = ""
) -> Response:
    """Say who is protected: one row, or everybody with at most so many rows each."""
    schema = load_schema(table)
    try:
        unit = None
        if column:
            most = whole(max_rows, "rows of one person")
            if most is None:
                raise InputError(f"say how many rows of one {column[:60]} may count, such as 5")
            before = schema.unit
            make = Unit.sharing if before is not None and before.equal else Unit
            unit = make(column, most, "" if before is None else before.salt)
        changed = schema.protecting(unit)
    except InputError as error:
        return _not_saved(request, table, error)
    changed.save(table.schema)
    return RedirectResponse(f"/tables/{table.id}/schema", 303)


@router.get("/tables/{identity}/schema/text")
async def schema_text(request: Request, table: Named) -> Response:
    """The schema as a file."""
    load_schema(table)
    return _text(request, table, table.schema.read_text(encoding="utf-8"))


def _text(
    request: Request, table: Table, text: str, problem: str = "", status: int = 200
) -> Response:
    return site_of(request).page(
        request, "schema_text.html", status, here="tables", table=table, text=text, problem=problem
    )


@router.post("/tables/{identity}/schema/text")
async def save_schema_text(
    request: Request, site: Here, table: Named, text: Typed = ""
) -> Response:
    """Keep a schema that was written by hand, comments included."""
    load_schema(table)
    text = text.replace("\r\n", "\n")
    try:
        schema = Schema.loads(text)
        if table.present:  # headers are public
            check_header(find(table.rows).columns, schema, table.name)
    except UnderstudyError as error:
        return _text(request, table, text, *site.problem(error))
    files.write(table.schema, text)
    return RedirectResponse(f"/tables/{table.id}/schema", 303)
