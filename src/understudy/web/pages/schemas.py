"""The schema of a table: what its draft leaves to people, one question at a time, or as text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Request
from pydantic import BaseModel
from starlette.responses import HTMLResponse, RedirectResponse, Response

from understudy import files
from understudy.draft import confirm
from understudy.draft.answers import Choice, Decision, Topic, answered
from understudy.draft.review import again, consequences, decisions, left_out, opened
from understudy.errors import InputError, UnderstudyError
from understudy.schema import Identifier, Schema, Text
from understudy.schema.family import FamilySchema
from understudy.source import read
from understudy.source.base import check_header
from understudy.source.families import FamilySource
from understudy.source.files import find
from understudy.units import EQUAL
from understudy.web.pages.tables import (
    counts,
    family_of,
    load_schema,
    open_decisions,
    state_of,
    whole,
)
from understudy.web.site import Here, Named, Site, Typed, site_of
from understudy.web.workspace import Table, read_json, write_json
from understudy.wording import domain

router = APIRouter(default_response_class=HTMLResponse)

_MOST_CHANGES = 100


@router.get("/tables/{identity}/schema")
async def edit_schema(request: Request, site: Here, table: Named, open: str = "") -> Response:
    """What is left to decide, and every column; `open` names the question that is open line by line."""
    load_schema(table)
    asked = (*site.asked(request).items(), ("open", open))
    return HTMLResponse(_cards(site, table, state_of(table), asked))


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
    schema, found, sent = load_schema(table), open_decisions(table), sent or {}
    seen = counts(table)[1]
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
    beside = (Topic.UNIT, Topic.TYPES)
    asked = {(d.table, name) for d in found if d.topic not in beside for name in d.columns}
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


class AnswerForm(BaseModel, frozen=True, extra="allow"):
    """An answer as typed: to which question, and what. Ticked lines are `only-1` and so on."""

    key: str = ""
    part: str = ""
    again: str = ""
    version: str = ""
    choice: str = ""
    ready: str = ""
    text: str = ""
    column: str = ""
    max_rows: str = ""
    equal: str = ""


@router.post("/tables/{identity}/schema/decisions")
async def decide(
    request: Request, site: Here, table: Named, sent: Annotated[AnswerForm, Form()]
) -> Response:
    """Keep the answer to a question: a decision of the draft, a line of it, or one answered before."""
    form = {name: value for name, value in sent if isinstance(value, str) and value}
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
    if decision.topic is Topic.RULES and len(decision.lines) > 1 and not form.get("choice"):
        said = [f"{sum(key.startswith('only-') for key in form)} of {len(decision.columns)}"]
    what = f"{decision.question} {'; '.join(said)}."
    if decision.topic is Topic.UNIT:
        what = f"One {schema.unit or 'row'} is protected."
    also = consequences(before, schema, decision.key)
    rest = decisions(schema) if decision != whole_ else ()
    alike = (d for d in rest if d.topic is whole_.topic and d.table == whole_.table)
    same = (d.key for d in alike if set(d.columns) & set(whole_.columns))
    return _kept(table, schema, what, also, next(same, ""))


class _Changed(InputError):
    """A question is not what it was when it was shown."""


def _asked(table: Table, form: Mapping[str, str]) -> tuple[Decision, Decision]:
    """The decision that a form is about, and the line of it that it answers, or all of it.

    Raises:
        _Changed: It is not what was shown.
    """
    schema, found = load_schema(table), {each.key: each for each in open_decisions(table)}
    if form.get("again"):
        asked = [again(schema, form["again"], counts(table)[1])]
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
    if decision.topic is Topic.RULES and len(lines) > 1 and form.get("choice") != Choice.PUBLIC:
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
    # what was typed beside another button is not the answer
    return [(about, Choice(choice), form.get("text", "") if choice == Choice.REPLACE else "")]


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
    known = {"table": table, "text": text, "stamp": _stamp(table), "problem": problem}
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
