"""Tables: upload one, confirm what its draft took from the rows, open its account."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response

from understudy import files
from understudy.draft import RowsPerUnit, confirm, people
from understudy.draft.answers import Choice, Decision, Topic, answered, require_spelling
from understudy.draft.review import consequences, decision_named, decisions, left_out
from understudy.errors import InputError, SchemaError, UnderstudyError
from understudy.privacy.budget import Budget
from understudy.privacy.ledger import Composition
from understudy.privacy.relation import Relation
from understudy.schema import Identifier, Schema
from understudy.schema.family import Family, FamilySchema
from understudy.source import read
from understudy.source.base import check_header
from understudy.source.families import FamilySource
from understudy.source.files import find
from understudy.units import OPEN, Unit
from understudy.web import editor
from understudy.web.errors import Missing, NotReady
from understudy.web.guard import session_of
from understudy.web.site import Account, Here, Named, Site, Typed, account_of, site_of
from understudy.web.uploads import received
from understudy.web.workspace import Table, read_json, suffix_of, write_json

router = APIRouter(default_response_class=HTMLResponse)

_NUMBER = re.compile(r"[0-9]{0,9}(\.[0-9]{0,18})?(e-?[0-9]{1,2})?", re.IGNORECASE)
_GROUPS = re.compile(r"[0-9]{1,3}([, ][0-9]{3})+")
_LONGEST_NAME = 80
_MOST_CHANGES = 100


def plain_number(text: str, name: str) -> str:
    """A number as somebody typed it, if it is one of a size that can be meant."""
    text = text.strip()
    if "," in text:
        raise InputError(
            f"{name} = {text[:40]!r}: a comma may mean thousands or decimals; write 0.5 or 1000"
        )
    if not text or not _NUMBER.fullmatch(text) or text.lower().startswith(("e", ".e")):
        raise InputError(f"{name} = {text[:40]!r} is not a number; give one such as 1 or 0.5")
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
        return len(_open(table))
    except UnderstudyError:
        return None


def _open(table: Table) -> tuple[Decision, ...]:
    """What is open in the schema of a table, with what a custodian may see of its rows."""
    load_schema(table)
    return _decided(table, _state(table))


@lru_cache(maxsize=64)
def _decided(table: Table, state: tuple[int, int]) -> tuple[Decision, ...]:
    return decisions(_parsed(table.schema, *state), _counts(table)[1])


def _counts(table: Table) -> tuple[int | None, list[RowsPerUnit]]:
    """How many rows a table has, and how many one person has: exact and private, for custodians."""
    kept = read_json(table.units)
    if not isinstance(kept, dict):
        return None, []
    return kept["rows"], [RowsPerUnit(**facts) for facts in kept["units"]]


def about_rows(table: Table, schema: Schema) -> int | None:
    """About how many rows or units count, in two digits, for a custodian to assume; None if unknown."""
    return people.about_rows(schema, *_counts(table))


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
    return _parsed(table.schema, *_state(table))


def family_of(schema: Schema) -> Family | None:
    """How two tables belong together; None where there is one."""
    return schema.family if isinstance(schema, FamilySchema) else None


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
    known["jobs"] = [job for job in site.jobs.all() if job.facts.get("table") == table.id]
    known |= {"here": "tables", "table": table, "problem": problem, "form": form or BudgetForm()}
    return site.page(request, "table.html", status, **known)


class BudgetForm(BaseModel, frozen=True):
    """The total budget of a table, as typed."""

    epsilon: str = ""
    delta: str = "1e-8"
    neighbours: Relation = Relation.ADD_REMOVE
    rows_public: str = ""
    composition: Composition | Literal[""] = ""
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
        with site.workspace.ledger() as ledger:
            ledger.open_dataset(table.id, *form.facts(), None if unit is None else unit.column)
    except InputError as error:
        return _table(request, site, table, *site.problem(error), form)
    return RedirectResponse(f"/tables/{table.id}", 303)


def confirmed(table: Table, account: Account | None) -> Schema:
    """The schema, once everything in it is confirmed and it protects whom the budget protects.

    Raises:
        NotReady: It does not; the message says what to do.
    """
    schema, link = load_schema(table), f"/tables/{table.id}/schema"
    if waiting := len(_open(table)):
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
    site: Site,
    table: Table,
    asked: Mapping[str, Any],
    problem: str = "",
    at: int | None = None,
    sent: Mapping[str, str] | None = None,
) -> str:
    schema, found = load_schema(table), _open(table)
    context = {
        "here": "tables",
        "table": table,
        "cards": editor.cards(schema),
        "family": family_of(schema),
        "siblings": _SIBLINGS,
        "unit": schema.unit,
        "unsaid": schema.unit_word == OPEN,
        "last": (_changes(table) or [("", "")])[-1][0].splitlines(),
        "kinds": editor.KINDS,
        "decisions": found,
        "stated": [decision for decision in found if Choice.PUBLIC in decision.choices],
        "verdicts": _VERDICTS,
        "typed": _TYPED,
        "problem": problem,
        "at": at,
        "sent": sent or {},
        "refused": next((each for each in found if sent and each.key == sent.get("key")), None),
        "rules": [rule.says for rule in schema.rules if not rule.read_from_rows],
        "found": [column.name for column in schema.undeclared],
    }
    return site.render("schema.html", {**asked, **context})


def _changes(table: Table) -> list[tuple[str, str]]:
    """What was changed in a schema, the last at the end: in words, and the text from before."""
    return read_json(table.changes) or []


def _kept(
    table: Table,
    schema: Schema | str,
    what: str,
    anchor: str = "review",
    also: Sequence[str] = (),
) -> Response:
    """Save a changed schema so that the change can be undone, and show it, with what else it did."""
    change = ("\n".join([what, *also]), table.schema.read_text(encoding="utf-8"))
    write_json(table.changes, [*_changes(table), change][-_MOST_CHANGES:])
    if isinstance(schema, str):
        files.write(table.schema, schema)
    else:
        schema.save(table.schema)
    return RedirectResponse(f"/tables/{table.id}/schema#{anchor}", 303)


@router.post("/tables/{identity}/schema/undo")
async def undo(table: Named) -> Response:
    """Take back the last change of the schema."""
    changes = _changes(table)
    if not changes:
        raise InputError("there is no change to take back")
    files.write(table.schema, changes[-1][1])
    write_json(table.changes, changes[:-1])
    return RedirectResponse(f"/tables/{table.id}/schema#review", 303)


def _not_saved(
    request: Request,
    table: Table,
    error: UnderstudyError,
    at: int | None = None,
    sent: Mapping[str, str] | None = None,
) -> Response:
    """The schema as it is, with what was wrong about a change, and the answer as it was sent."""
    site = site_of(request)
    problem, status = site.problem(error)
    return HTMLResponse(_written(site, table, site.asked(request), problem, at, sent), status)


@router.post("/tables/{identity}/schema/columns/{at}")
async def save_column(request: Request, table: Named, at: int) -> Response:
    """Keep what the form of a column says, and confirm the facts whose boxes are ticked."""
    schema = load_schema(table)
    columns = [column for _, column in editor.columns(schema)]
    if not 0 <= at < len(columns):
        raise Missing("the schema has no such column; it may have been changed by somebody else")
    sent = await request.form()
    form = {key: value for key, value in sent.items() if isinstance(value, str)}
    if form.get("name", columns[at].name) != columns[at].name:
        raise InputError("the schema was changed by somebody else meanwhile; load the page again")
    try:
        column = editor.column_from(form, columns[at], confirm_all=form.get("do") == "all")
        require_spelling(columns[at], column)
        changed = editor.replaced(schema, at, column)
    except UnderstudyError as error:
        return _not_saved(request, table, error, at)
    left = [n for n, (_, c) in enumerate(editor.columns(changed)) if c.read_from_rows]
    later = [n for n in left if n > at] or left
    stays = column.read_from_rows or column.kind in ("incomplete", "text")
    anchor = f"column-{at}" if stays else f"column-{later[0]}" if later else "done"
    return _kept(table, changed, f"{column.name} was changed.", anchor, left_out(schema, changed))


_VERDICTS = {
    Choice.PUBLIC: "",
    Choice.PRIVATE: "Let releases find it privately",
    Choice.DROP: "Leave it out",
}
_TYPED = {
    Topic.FAMILY: "what is different, such as max_children = 5, order = none",
    Topic.VALUES: "all values, between commas, or 1 to 29; end with ... if there may be others",
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
        before = schema = load_schema(table)
        decision, said = decision_named(schema, form.get("key", "")), list[str]()
        for about, choice, text in _answers(decision, form):
            schema = answered(schema, about, choice, text)
            named = f"{', '.join(about.columns)}: " if about != decision else ""
            said.append(named + (_VERDICTS.get(choice, text) or about.yes))
    except UnderstudyError as error:
        return _not_saved(request, table, error, sent=form)
    if decision.topic is Topic.RULES:
        said = [f"{sum(key.startswith('keep-') for key in form)} of {len(decision.columns)}"]
    also = consequences(before, schema, decision.key)
    return _kept(table, schema, f"{decision.question} {'; '.join(said)}.", also=also)


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
    some = [name for at, name in enumerate(decision.columns, 1) if f"only-{at}" in form]
    decision = decision.of(*some) if some else decision
    if choice is not Choice.REPLACE or decision.shared:
        return [(decision, choice, form.get("text", ""))]
    typed = {name: form.get(f"text-{name}", "") for name in decision.columns}
    given = [(decision.of(name), choice, text) for name, text in typed.items() if text.strip()]
    if not given:
        raise InputError("nothing was typed in place of the facts")
    return given


@router.post("/tables/{identity}/schema/confirm")
async def confirm_all(table: Named) -> Response:
    """State that every fact of the draft is public."""
    return _kept(table, confirm(load_schema(table)), "Everything was said to be public.", "done")


@router.post("/tables/{identity}/schema/unit")
async def choose_unit(
    request: Request,
    table: Named,
    column: Typed = "",
    other: Typed = "",
    max_rows: Typed = "",
    equal: Typed = "",
) -> Response:
    """Say who is protected: one row, or everybody with at most so many rows each.

    `other` is a column that the draft did not offer. With `equal` rows count together as one.
    """
    loaded = schema = load_schema(table)
    before, unit, column = schema.unit, None, other or column
    try:
        if column:
            most = whole(max_rows, "rows of one person")
            if most is None:
                raise InputError(f"say how many rows of one {column[:60]} may count, such as 5")
            make = Unit.sharing if equal else Unit
            unit = make(column, most, "" if before is None else before.salt)
            if column not in [c.name for c in schema.columns if isinstance(c, Identifier)]:
                schema = schema.resolved({column: Identifier(column)})
        changed = schema.protecting(unit)
    except InputError as error:
        sent = {"key": "unit", "column": column, "max_rows": max_rows, "equal": equal}
        return _not_saved(request, table, error, sent=sent)
    also = consequences(loaded, changed, Topic.UNIT)
    return _kept(table, changed, f"One {unit or 'row'} is protected.", also=also)


_SIBLINGS = {
    "same": "each column with itself",
    "all": "all pairs of columns",
    "none": "nothing",
}


class FamilyForm(BaseModel, frozen=True):
    """How two tables belong together, as typed."""

    max_children: str = ""
    min_children: str = ""
    order: str = ""
    siblings: str = ""


@router.post("/tables/{identity}/schema/family")
async def choose_family(
    request: Request, table: Named, form: Annotated[FamilyForm, Form()]
) -> Response:
    """Say how many children count, in which order, and what of siblings is measured."""
    schema = load_schema(table)
    try:
        if not isinstance(schema, FamilySchema):
            raise InputError("the schema is of one table; one of two has version = 2")
        before = schema.tables[2]
        family = replace(
            before,
            max_children=whole(form.max_children, "max_children") or before.max_children,
            min_children=int(bool(form.min_children)),
            order=form.order or None,
            siblings=form.siblings or before.siblings,
            pairs=before.pairs if form.siblings == before.siblings else (),
        )
        changed = schema.changed(family=family)
    except InputError as error:
        return _not_saved(request, table, error)
    return _kept(table, changed, "How the two tables belong together")


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
            _check_headers(table, schema)
    except UnderstudyError as error:
        return _text(request, table, text, *site.problem(error))
    also = left_out(load_schema(table), schema)
    return _kept(table, text, "The schema was edited as text.", also=also)


def _check_headers(table: Table, schema: Schema) -> None:
    """Refuse a schema that is not of the columns that the files have."""
    if isinstance(schema, FamilySchema):
        FamilySource(*map(read, table.files)).check_headers(schema)
    elif table.children:
        raise InputError(
            f"{table.name} has two files, and the schema is of one table; one of two has version = 2 "
            "and [[table]] entries"
        )
    else:
        check_header(find(table.rows).columns, schema, table.name)
