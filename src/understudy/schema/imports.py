"""Schemas from other tools' files: mbi domains and SDV metadata."""

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from understudy.columns import MOST_CELLS, Boolean, Category, Column, Identifier, Incomplete, Text
from understudy.columns.base import is_whole
from understudy.errors import SchemaError
from understudy.schema.schema import Schema


def import_mbi(source: str | os.PathLike[str]) -> Schema:
    """A schema from an mbi domain, `{"age": 85, "sex": 2}`, given as a path or as JSON text.

    Every column becomes a category with the integers 0..k-1; the table is expected to hold them.
    As in mbi, a domain may name some columns of the table: the others are left out. A domain is a
    public file, so nothing is left to confirm.
    """
    where, document = _json(source)
    columns = []
    for name, size in document.items():
        if not is_whole(size, 1):
            raise SchemaError(
                f"{where}: column {name!r} has the size {size!r}; "
                "an mbi domain maps each column to a whole number above zero"
            )
        if size > MOST_CELLS:
            raise SchemaError(
                f"{where}: column {name!r} has {size} values, more than {MOST_CELLS}; "
                'merge rare values first, or declare it by hand with type = "integer" and bins'
            )
        columns.append(Category(name, tuple(range(size))))
    return Schema(tuple(columns), drop_other_columns=True)


def import_sdv(source: str | os.PathLike[str]) -> Schema:
    """A schema from SDV metadata of a single table, given as a path or as JSON text.

    Reads `{"columns": ...}` and `{"tables": {name: {"columns": ...}}}` with one table. SDV does
    not state domains, so most columns come back `Incomplete`: their missing facts are named in
    the file, and `Schema.require_confirmed` refuses them until someone fills them in. Keys and
    personal information become identifiers that the output drops, ids with a simple
    `regex_format` identifiers that it writes anew.
    """
    where, document = _json(source)
    table = document
    if "tables" in document:
        tables = document["tables"]
        if not isinstance(tables, dict) or len(tables) != 1:
            names = ", ".join(tables) if isinstance(tables, dict) else repr(tables)
            raise SchemaError(
                f"{where}: the metadata must describe one table, and lists {names or 'none'}; "
                "keep the one to release"
            )
        table = next(iter(tables.values()))
    columns = table.get("columns") if isinstance(table, dict) else None
    if not isinstance(columns, dict):
        raise SchemaError(f'{where}: there is no "columns"; this is not SDV metadata')
    key = table.get("primary_key")
    keys = set(key if isinstance(key, list) else [key])
    return Schema(
        tuple(_sdv_column(where, name, facts, name in keys) for name, facts in columns.items())
    )


def _sdv_column(where: str, name: str, facts: Any, is_key: bool) -> Column:
    sdtype = facts.get("sdtype") if isinstance(facts, dict) else None
    if not isinstance(sdtype, str):
        raise SchemaError(f'{where}: column {name!r} has no "sdtype"; this is not SDV metadata')
    if sdtype == "id":
        return Identifier(name, _id_pattern(str(facts.get("regex_format", ""))))
    if is_key or facts.get("pii"):
        return Identifier(name)
    reader = _SDTYPES.get(sdtype)
    # Every sdtype that SDV does not model itself names a person or a thing: email, name, ssn, ...
    return reader(name, facts) if reader else Identifier(name)


def _id_pattern(regex: str) -> str:
    """The action for ids such as "HID_[0-9]{3}"; a form that is not as simple is dropped."""
    match = re.fullmatch(r"([\w -]*)(?:\[0-9\]|\\d)(?:\{(\d{1,2})(?:,\d*)?\}|\+)([\w -]*)", regex)
    if match is None:
        return "drop"
    width = f":0{int(match[2])}d" if match[2] else ""
    return f"{match[1]}{{{width}}}{match[3]}"


def _category(name: str, facts: Mapping[str, Any]) -> Column:
    return Incomplete(name, "category", ("values",), dtype="string", nullable=True)


def _numerical(name: str, facts: Mapping[str, Any]) -> Column:
    stored = str(facts.get("computer_representation", "Float"))
    whole = re.fullmatch("U?Int(8|16|32|64)", stored) is not None
    kind, known = ("integer", {}) if whole else ("number", {"bins": 32})
    dtype = stored.lower() if whole else "float64"
    return Incomplete(name, kind, ("lower", "upper"), known, dtype=dtype, nullable=True)


_TIME_CODES = ("%H", "%I", "%M", "%S", "%f", "%p", "%T", "%X", "%c", "%s")


def _datetime(name: str, facts: Mapping[str, Any]) -> Column:
    form = facts.get("datetime_format")
    timed = form is None or any(code in form for code in _TIME_CODES)
    wanted, dtype = ("datetime", "timestamp[us]") if timed else ("date", "date32[day]")
    known = {} if form is None else {"format": form}
    return Incomplete(name, wanted, ("lower", "upper"), known, dtype=dtype, nullable=True)


_SDTYPES: dict[str, Callable[[str, Mapping[str, Any]], Column]] = {
    "categorical": _category,
    "boolean": lambda name, facts: Boolean(name, nullable=True),
    "numerical": _numerical,
    "datetime": _datetime,
    "text": lambda name, facts: Text(name, nullable=True),
    "unknown": _category,
}


def _json(source: str | os.PathLike[str]) -> tuple[str, dict[str, Any]]:
    """Where it came from, and the object in it."""
    where, text = "the text", source
    if not isinstance(source, str) or not source.lstrip().startswith("{"):
        where = os.fspath(source)
        try:
            text = Path(source).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SchemaError(f"{where}: cannot be read: {error}") from None
    try:
        document = json.loads(str(text), object_pairs_hook=lambda pairs: _object(where, pairs))
    except json.JSONDecodeError as error:
        raise SchemaError(f"{where}: this is not JSON: {error}") from None
    if not isinstance(document, dict) or not document:
        raise SchemaError(f"{where}: expected a JSON object with one entry per column")
    return where, document


def _object(where: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise SchemaError(f"{where}: {key!r} is there more than once; keep one of them")
        seen[key] = value
    return seen
