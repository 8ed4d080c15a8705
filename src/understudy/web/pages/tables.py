"""Tables: upload one, confirm what its draft took from the rows, open its account."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, RedirectResponse, Response

from understudy import files
from understudy.draft import RowsPerUnit, confirm, people
from understudy.draft.answers import Choice, Decision, Topic, answered
from understudy.draft.review import again, consequences, decisions, left_out, opened
from understudy.errors import InputError, SchemaError, UnderstudyError
from understudy.privacy.budget import Budget
from understudy.privacy.ledger import Composition
from understudy.privacy.relation import Relation
from understudy.schema import Identifier, Schema, Text
from understudy.schema.family import Family, FamilySchema
from understudy.source import read
from understudy.source.base import check_header
from understudy.source.families import FamilySource
from understudy.source.files import find
from understudy.units import EQUAL
from understudy.web.errors import Missing, NotReady
from understudy.web.guard import session_of
from understudy.web.site import Account, Here, Named, Site, Typed, account_of, site_of
from understudy.web.uploads import received
from understudy.web.workspace import Table, read_json, suffix_of, write_json
from understudy.wording import domain

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
async def edit_schema(request: Request, site: Here, table: Named, open: str = "") -> Response:
    """What is left to decide, and every column; `open` names the question that is open line by line."""
    load_schema(table)
    asked = (*site.asked(request).items(), ("open", open))
    return HTMLResponse(_cards(site, table, _state(table), asked))


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
    sent: Mapping[str, str] | None = None,
) -> str:
    schema, found, sent = load_schema(table), _open(table), sent or {}
    seen = _counts(table)[1]
    columns, keys = _columns(schema, found), [decision.key for decision in found]
    who = again(schema, Topic.FAMILY if family_of(schema) else Topic.UNIT, seen)
    forms = {who.key, *(row.of for row in columns if row.question)} - set(keys)
    context = {
        "here": "tables",
        "table": table,
        "columns": columns,
        "who": who,
        "unit": schema.unit,
        "last": (_changes(table) or [("", "")])[-1][0].splitlines(),
        "decisions": [(decision, opened(schema, decision)) for decision in found],
        "stated": [decision for decision in found if Choice.PUBLIC in decision.choices],
        "version_of": version_of,
        "words": _words,
        "typed": _TYPED,
        "problem": problem,
        "sent": sent,
        "placed": sent.get("key") in keys or sent.get("again") in forms,
        "keys": keys,
        "rules": [rule.says for rule in schema.rules if not rule.read_from_rows],
        "found": [column.name for column in schema.undeclared],
    }
    return site.render("schema.html", {"open": "", **asked, **context})


def version_of(decision: Decision) -> str:
    """What a form sends back, so that nobody answers what has changed since the page was shown."""
    return hashlib.sha256(repr(decision).encode()).hexdigest()[:16]


class Row(NamedTuple):
    """A column in the list of all."""

    name: str
    table: str
    holds: str
    becomes: str
    question: Decision | None
    """To answer about it anew; None while it is asked above, and where only the text can change it."""

    @property
    def of(self) -> str:
        """Its name, with that of its table where there are two."""
        return f"{self.table}.{self.name}" if self.table else self.name


def _columns(schema: Schema, found: Sequence[Decision]) -> list[Row]:
    """Every column, of two tables those of the parents first."""
    tables = schema.named if isinstance(schema, FamilySchema) else {"": schema}
    asked = {(d.table, name) for d in found if d.topic is not Topic.UNIT for name in d.columns}
    family, unit = family_of(schema), schema.unit
    keys = {} if unit is None else {unit.column: "tells people apart"}
    if family is not None:
        keys = dict.fromkeys((family.key, family.foreign_key), f"tells {family.parent} apart")
    rows: list[Row] = []
    for table, own in tables.items():
        for column in own.columns:
            row = Row(column.name, table, "", "confirmed", None)
            if column.name in keys:
                row = row._replace(
                    holds=keys[column.name], becomes="written anew" if table else "left out"
                )
            elif isinstance(column, Identifier | Text):
                written = isinstance(column, Identifier) and not column.dropped
                row = row._replace(becomes="written anew" if written else "left out")
            else:
                row = row._replace(holds=domain(column), question=again(schema, row.of))
                if column in own.undeclared:
                    row = row._replace(becomes="found privately")
            if (table, column.name) in asked:
                row = row._replace(becomes="to decide", question=None)
            rows.append(row)
    return rows


def _changes(table: Table) -> list[tuple[str, str]]:
    """What was changed in a schema, the last at the end: in words, and the text from before."""
    return read_json(table.changes) or []


def _kept(
    table: Table, schema: Schema | str, what: str, also: Sequence[str] = (), open_: str = ""
) -> Response:
    """Save a changed schema so that the change can be undone, and show it, with what else it did."""
    change = ("\n".join([what, *also]), table.schema.read_text(encoding="utf-8"))
    write_json(table.changes, [*_changes(table), change][-_MOST_CHANGES:])
    if isinstance(schema, str):
        files.write(table.schema, schema)
    else:
        schema.save(table.schema)
    asked = f"?{urlencode({'open': open_})}" if open_ else ""
    return RedirectResponse(f"/tables/{table.id}/schema{asked}#review", 303)


@router.post("/tables/{identity}/schema/undo")
async def undo(table: Named) -> Response:
    """Take back the last change of the schema."""
    changes = _changes(table)
    if not changes:
        raise InputError("there is no change to take back")
    files.write(table.schema, changes[-1][1])
    write_json(table.changes, changes[:-1])
    return RedirectResponse(f"/tables/{table.id}/schema#review", 303)


def _words(decision: Decision, choice: Choice) -> str:
    """An answer as its button has it."""
    them = "them" if len(decision.columns) > 1 else "it"
    match choice:
        case Choice.PUBLIC:
            return decision.yes
        case Choice.PRIVATE:
            return f"Let releases find {them} privately"
        case _:
            return "Drop it" if decision.topic is Topic.RULES else f"Leave {them} out"


_TYPED = {
    Topic.FAMILY: "what is different, such as max_children = 5, order = none, siblings = all",
    Topic.VALUES: "all values, between commas, or 1 to 29; end with ... if there may be others",
    Topic.BOUNDS: "bounds, such as 0 to 120",
    Topic.MISSING: "values between commas, or bounds such as 0 to 120",
    Topic.TYPES: "columns that may have empty cells, between commas, or all",
}


@router.post("/tables/{identity}/schema/decisions")
async def decide(request: Request, site: Here, table: Named) -> Response:
    """Keep the answer to a question: a decision of the draft, a line of it, or one answered before."""
    sent = await request.form()
    form = {key: value for key, value in sent.items() if isinstance(value, str)}
    said = list[str]()
    try:
        before = schema = load_schema(table)
        whole_, decision = _asked(table, form)
        for about, choice, text in _answers(decision, form):
            schema = answered(schema, about, choice, text)
            named = f"{', '.join(about.columns)}: " if about != decision else ""
            said.append(named + (text or _words(about, choice)))
    except UnderstudyError as error:
        problem, status = site.problem(error)
        form = {} if isinstance(error, _Changed) else form
        return HTMLResponse(_written(site, table, site.asked(request), problem, form), status)
    if decision.topic is Topic.RULES and len(decision.lines) > 1:
        said = [f"{sum(key.startswith('only-') for key in form)} of {len(decision.columns)}"]
    what = f"{decision.question} {'; '.join(said)}."
    if decision.topic is Topic.UNIT:
        what = f"One {schema.unit or 'row'} is protected."
    also = consequences(before, schema, decision.key)
    rest = decisions(schema) if decision != whole_ else ()
    same = (d.key for d in rest if d.topic is whole_.topic and d.table == whole_.table
            and set(d.columns) & set(whole_.columns))  # fmt: skip
    return _kept(table, schema, what, also, next(same, ""))


class _Changed(InputError):
    """A question is not what it was when it was shown."""


def _asked(table: Table, form: Mapping[str, str]) -> tuple[Decision, Decision]:
    """The decision that a form is about, and the line of it that it answers, or all of it.

    Raises:
        _Changed: It is not what was shown.
    """
    schema, found = load_schema(table), {each.key: each for each in _open(table)}
    if form.get("again"):
        asked = [again(schema, form["again"], _counts(table)[1])]
    else:
        asked = [found[key] for key in [form.get("key", "")] if key in found]
    part = whole(form.get("part", ""), "part") or 0
    shown = [*asked, *(line for decision in asked for line in opened(schema, decision))]
    shown = shown[part : part + 1]
    if not shown or form.get("version", version_of(shown[0])) != version_of(shown[0]):
        raise _Changed(
            "this question has changed since it was shown: it was answered, or the schema edited, by "
            "somebody else or in another tab. Nothing was kept; answer it as it stands here now"
        )
    return asked[0], shown[0]


def _answers(decision: Decision, form: Mapping[str, str]) -> list[tuple[Decision, Choice, str]]:
    """What a form says about the decision, or about some of its lines."""
    lines = list(enumerate(decision.lines, 1))
    ticked = [name for at, names in lines if f"only-{at}" in form for name in names]
    if decision.topic is Topic.RULES and len(lines) > 1:
        rest = [name for name in decision.columns if name not in ticked]
        both = ((ticked, Choice.PUBLIC), (rest, Choice.DROP))
        return [(decision.of(*rules), choice, "") for rules, choice in both if rules]
    about = decision.of(*ticked) if ticked else decision
    if ready := form.get("ready"):
        return [(about, Choice.REPLACE, ready)]
    if decision.topic is Topic.UNIT and form.get("choice") != Choice.PUBLIC:
        column, most = form.get("column", ""), whole(form.get("max_rows", ""), "rows of one person")
        if not column:
            raise InputError("choose who is protected")
        if most is None:
            raise InputError(f"say how many rows of one {column[:60]} may count, such as 5")
        return [
            (about, Choice.REPLACE, f"{column} {most}{f' {EQUAL}' if form.get('equal') else ''}")
        ]
    choice = form.get("choice", "")
    if choice not in tuple(Choice):
        raise InputError(f"choice = {choice[:40]!r} is no answer; use one of the buttons")
    return [(about, Choice(choice), form.get("text", ""))]


@router.post("/tables/{identity}/schema/confirm")
async def confirm_all(table: Named) -> Response:
    """State that every fact of the draft is public."""
    return _kept(table, confirm(load_schema(table)), "Everything was said to be public.")


@router.get("/tables/{identity}/schema/text")
async def schema_text(request: Request, table: Named) -> Response:
    """The schema as a file."""
    load_schema(table)
    return _text(request, table, table.schema.read_text(encoding="utf-8"))


def _text(
    request: Request, table: Table, text: str, problem: str = "", status: int = 200
) -> Response:
    known = {"table": table, "text": text, "version": _stamp(table), "problem": problem}
    return site_of(request).page(request, "schema_text.html", status, here="tables", **known)


def _stamp(table: Table) -> str:
    """Of the schema's text, so that nobody overwrites what has changed since it was shown."""
    return hashlib.sha256(table.schema.read_bytes()).hexdigest()[:16]


@router.post("/tables/{identity}/schema/text")
async def save_schema_text(
    request: Request, site: Here, table: Named, text: Typed = "", version: Typed = ""
) -> Response:
    """Keep a schema that was written by hand, comments included."""
    load_schema(table)
    text = text.replace("\r\n", "\n")
    try:
        if version and version != _stamp(table):
            raise InputError(
                "the schema has changed since it was shown here, by somebody else or in another tab; "
                "saved once more, this text replaces those changes"
            )
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
