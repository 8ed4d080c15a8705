"""A schema as TOML: read with the standard library, written with the reasons beside the facts.

What is written is canonical, byte for byte: a ledger states its digest, and a release that is loaded
and saved again has to give the same bytes. So the form is fixed here, and no library's next version can
change it. A file that people have written in is changed by `edited`, which keeps what they wrote.
"""

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from understudy.columns import (
    KINDS,
    MOST_SINGLES,
    Category,
    Column,
    Incomplete,
    UndeclaredBins,
    UndeclaredCategory,
    UndeclaredShape,
)
from understudy.columns.base import are_texts, is_whole, near, require_known
from understudy.columns.binned import Binned
from understudy.columns.shape import Shape
from understudy.columns.unmodelled import DISCOVER, SHAPE, UndeclaredOrdered
from understudy.errors import SchemaError
from understudy.units import OPEN

Facts = dict[str, Any]

VERSION = 1
"""The version of the file format for one table."""
NEWEST = 2
"""The version for two tables, and the newest that is read."""

_HEAD_KEYS = (
    *("version", "rows_public", "null_values", "unit", "max_rows", "weight", "unit_salt"),
    *("drop_other_columns", "read_from_rows"),
)
_FIRST = ("name", "type", "dtype", "nullable")
_LAST = ("null_values", "missing", "read_from_rows")
_WIDTH = 100

_HEAD = """\
# A schema for understudy: public facts about the columns of a table.
# Everything in this file is published with a release; nothing in it may come from private rows.
"""
_DRAFT = """\
#
# THIS IS A DRAFT, AND PRIVATE: facts listed under `read_from_rows` were read from private rows.
# Check each one. Replace what is not public knowledge by what is, then delete the
# `read_from_rows` line of the column. No release accepts the schema before that.
"""
_ASKED = """\
#
# WHO IS PROTECTED IS NOT SAID: unit = "?" has to become the column that tells people apart, with
# max_rows, or unit = "row" where one row is all of a person: `understudy schema confirm --unit`.
"""
_MISSING = """\
#
# THIS IS NOT COMPLETE: fill in the facts listed under `missing` and delete that line.
"""
NOTES = {
    "read_from_rows": "# Read from private rows: confirm or correct, then delete this line.",
    "missing": "# Fill these in, then delete this line.",
}
"""What is written above a key that waits for a person."""


@dataclass(frozen=True)
class Document:
    """The tables of a schema file, in the order they are written: heads are keys and values."""

    head: Facts
    columns: list[Facts]
    geography: list[Facts]
    rules: list[Facts]
    tables: list[Facts] = dataclasses.field(default_factory=list)
    """In version 2, the two tables."""


_AT = re.compile(r" \(at line (\d+), column \d+\)")


def _unread(text: str, reason: str) -> str:
    """Why a file is no TOML; a line is quoted only of what is meant as a schema, not of a table."""
    lines = text.split("\n")
    if not any(line.strip() == "[understudy]" for line in lines):
        return f"this is not a schema file (TOML), which has [understudy] in it: {reason}"
    place = _AT.search(reason)
    if place is None:
        return f"this is not TOML, which a schema file is: {reason}"
    line = lines[int(place[1]) - 1].strip()
    told = f"line {place[1]} is not TOML ({_AT.sub('', reason)}): {line}"
    if re.fullmatch(r"\[(column|rule|table|geography)\]", line):
        return f"{told}; write [{line}], with two brackets"
    return told


def parse(text: str) -> Document:
    """The tables of a schema file; SchemaError names what is wrong and where."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(_unread(text, str(error))) from None
    require_known(document, ("understudy", "table", "column", "geography", "rule"), "the file")
    head = document.get("understudy")
    if not isinstance(head, dict) or "version" not in head:
        raise SchemaError(
            f"the file does not say its version; start it with [understudy] and version = {VERSION}"
        )
    version = head["version"]
    if not is_whole(version, 1):
        raise SchemaError(f"[understudy] version = {version!r} must be {VERSION}")
    if version > NEWEST:
        raise SchemaError(
            f"[understudy] version = {version} is newer than {NEWEST}, the newest this version "
            "of understudy reads; upgrade understudy"
        )
    if "weights" in head:
        raise SchemaError(
            f"[understudy] weights = {head['weights']!r}: a weight without a bound lets one row move a "
            "count by any amount, so weights are refused; leave them out, or, if they are whole "
            "numbers up to m, repeat every row so often and declare unit and max_rows = m"
        )
    require_known(head, _HEAD_KEYS, "[understudy]")
    keys = ("column", "geography", "rule", "table")
    columns, geography, rules, tables = (_tables(document, key) for key in keys)
    if bool(tables) != (version == NEWEST):
        raise SchemaError(
            f"[understudy] version = {version}: a file with two tables has version = {NEWEST} and "
            f"[[table]] entries, a file with one has version = {VERSION} and none"
        )
    return Document(head, columns, geography, rules, tables)


def _tables(document: Mapping[str, Any], key: str) -> list[Facts]:
    tables = document.get(key, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise SchemaError(f"{key} must be a list of tables; write [[{key}]] with two brackets")
    return tables


def build_column(table: Mapping[str, Any], at: int = 1) -> Column:
    """The column that a [[column]] table declares; `at` is its place, for messages."""
    facts: Facts = dict(table)
    name = facts.pop("name", None)
    if not isinstance(name, str) or not name:
        raise SchemaError(f'[[column]] number {at} has no name; add name = "..."')
    where = f"column {name!r}"
    kind = facts.pop("type", None)
    if not isinstance(kind, str) or kind not in KINDS:
        said = "type is missing" if kind is None else f"unknown type {kind!r}"
        raise SchemaError(f"{where}: {said}{near(str(kind), KINDS)}; use one of {', '.join(KINDS)}")
    cls = _undeclared(kind, name, facts) or KINDS[kind]
    keys = _keys(KINDS[kind] if issubclass(cls, UndeclaredOrdered) else cls)
    require_known(facts, [*_FIRST, *keys, "missing"], where)
    missing = facts.pop("missing", [])
    if not are_texts(missing):
        raise SchemaError(f'{where}: missing = {missing!r} must be a list such as ["values"]')
    require_known(missing, keys, f"{where}: missing")
    still = tuple(key for key in missing if key not in facts)
    marks = facts.get("read_from_rows", [])
    if isinstance(marks, list):
        require_known(marks, ["type", *keys], f"{where}: read_from_rows")
    facts = {k: tuple(v) if isinstance(v, list) else v for k, v in facts.items()}
    known: Facts = {}
    if cls is UndeclaredBins:
        known = facts.pop("bins")
        require_known(known, ["quantiles"], f"{where}: bins")
        if "quantiles" not in known:
            said = f"{where}: bins = {known!r}"
            raise SchemaError(f"{said} must say how many, bins = {{quantiles = 16}}")
    elif still:
        cls, known = Incomplete, {"missing": still}
    elif cls is UndeclaredShape:
        facts.pop("bins", None)
    if issubclass(cls, Incomplete | UndeclaredOrdered):
        shared = {field.name for field in dataclasses.fields(Column)}
        common = {key: facts.pop(key) for key in shared.intersection(facts)}
        return cls(name, wanted=kind, facts=facts, **known, **common)
    if cls is Category and "values" not in facts:
        raise SchemaError(f"{where}: values is missing; a category column needs it")
    return cls(name, **facts)


def _undeclared(kind: str, name: str, facts: dict[str, Any]) -> type[Column] | None:
    """The column without a domain that a table declares; `categories = "discover"` says it, too."""
    if kind == "category" and "categories" in facts:
        if facts["categories"] != DISCOVER or "values" in facts:
            raise SchemaError(
                f"column {name!r}: categories = {facts['categories']!r} can only be "
                f'"{DISCOVER}", in place of values; list known ones with values = [...]'
            )
        facts["values"] = facts.pop("categories")
    if kind == "category" and isinstance(facts.get("values"), str):
        return UndeclaredCategory
    if isinstance(facts.get("bins"), dict):
        return UndeclaredBins
    ordered = KINDS[kind]
    if not issubclass(ordered, Binned):
        return None
    shaped = facts.get("bins") == SHAPE or _uncut(ordered, name, facts)
    return UndeclaredShape if shaped else None


def _uncut(kind: type[Binned], name: str, facts: Facts) -> bool:
    """Whether it is left to a release to cut an ordered column: no cells and no few values."""
    if not {"bins", "edges", "shape"}.isdisjoint(facts):
        return False
    if kind.kind == "number" or not {"lower", "upper"} <= facts.keys():
        return True
    known = {key: facts[key] for key in facts if key in ("lower", "upper", "resolution")}
    whole = kind(name, **known, bins=1)
    return int(whole.grid.highs[-1]) - int(whole.grid.lows[0]) >= MOST_SINGLES


def _keys(cls: type[Column]) -> list[str]:
    return [field.name for field in dataclasses.fields(cls) if field.name != "name"]


def write(document: Document, *, comments: bool = True) -> str:
    """The file; without comments it is canonical, and `Schema.digest` is its hash."""
    lines: list[str] = []
    if comments:
        needed = (text for text, needs in _warnings(document).items() if needs)
        lines += "".join((_HEAD, *needed)).splitlines()
        lines.append("")
    lines.append("[understudy]")
    lines += _lines(document.head, comments)
    named = {
        "table": document.tables,
        "column": document.columns,
        "geography": document.geography,
        "rule": document.rules,
    }
    for name, facts in ((name, facts) for name, tables in named.items() for facts in tables):
        lines += ["", f"[[{name}]]", *_lines(facts, comments)]
    return "\n".join(lines) + "\n"


def _warnings(document: Document) -> dict[str, bool]:
    """What may be said at the head of a file, and whether the document gives a reason for it."""
    tables = (document.head, *document.tables, *document.columns, *document.rules)
    marked = any("read_from_rows" in facts for facts in tables)
    return {
        _ASKED: document.head.get("unit") == OPEN and "max_rows" not in document.head,
        _DRAFT: marked,
        _MISSING: any("missing" in column for column in document.columns),
    }


def _lines(facts: Mapping[str, Any], notes: bool) -> list[str]:
    lines: list[str] = []
    for key, value in facts.items():
        if notes and key in NOTES:
            lines.append(NOTES[key])
        lines.append(_line(key, value))
    return lines


def column_facts(column: Column) -> Facts:
    """What a [[column]] table holds, in the order it is written."""
    facts: dict[str, Any] = {"name": column.name, "type": column.kind}
    own: dict[str, Any] = {}
    for field in dataclasses.fields(column):
        value = getattr(column, field.name)
        if field.name in ("dtype", "nullable") or value != field.default:
            own[field.name] = value
    if isinstance(column, Incomplete | UndeclaredOrdered):
        facts["type"] = own.pop("wanted")
        own |= own.pop("facts", {})
        if isinstance(column, UndeclaredBins):
            own["bins"] = {"quantiles": own.pop("quantiles")}
        elif isinstance(column, UndeclaredShape):
            own["bins"] = SHAPE
    elif own.get("edges") is not None:  # the outermost edges are the bounds
        del own["lower"], own["upper"]
        if isinstance(shape := own.get("shape"), Shape):
            del own["shape"]
            own["shape"] = shape.facts()  # after all that a person reads
    first = {key: own.pop(key) for key in _FIRST if key in own}
    last = {key: own.pop(key) for key in _LAST if key in own}
    return {**facts, **first, **own, **last}


def _line(key: str, value: Any) -> str:
    line = f"{key} = {_value(value)}"
    if len(line) > _WIDTH and isinstance(value, dict) and key == "shape":
        return f"{key} = {{" + ", ".join(_line(name, each) for name, each in value.items()) + "}"
    if len(line) <= _WIDTH or not isinstance(value, (tuple, list)):
        return line
    rows, row = [f"{key} = ["], "   "
    for item in (_value(item) for item in value):
        if len(row) + len(item) + 2 > _WIDTH and row.strip():
            rows.append(row)
            row = "   "
        row += f" {item},"
    return "\n".join([*rows, row, "]"])


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = (_ESCAPES.get(c) or (c if c.isprintable() else _escape(c)) for c in value)
        return f'"{"".join(escaped)}"'
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(i)}" for key, i in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    return repr(value)


def _key(key: str) -> str:
    return key if key.isascii() and key.isidentifier() else _value(key)


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


# --- files that people have written in


def edited(text: str, before: Document, after: Document) -> str:
    """The text, which says `before`, with the facts of `after`: comments and order stay.

    Raises:
        SchemaError: Columns were added, renamed or moved, or constraints added: write it anew.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    names = [[facts["name"] for facts in each.columns] for each in (before, after)]
    rules = [[facts["says"] for facts in each.rules] for each in (before, after)]
    kept = [says for says in rules[0] if says in rules[1]]
    if names[0] != names[1] or before.geography != after.geography or kept != rules[1]:
        raise SchemaError("the columns or constraints of the file are others")
    try:
        file: Any = tomlkit.parse(_unmarked(text, after))
        _change(file["understudy"], before.head, after.head)
        for old, new in zip(before.tables, after.tables, strict=True):
            (own,) = (table for table in file["table"] if table["name"] == old["name"])
            _change(own, old, new)
        for table, old, new in zip(file["column"], before.columns, after.columns, strict=True):
            _change(table, old, new)
        for at, old in reversed(list(enumerate(before.rules))):
            if old["says"] in kept:
                _change(file["rule"][at], old, after.rules[kept.index(old["says"])])
            else:
                del file["rule"][at]
        return tomlkit.dumps(file)
    except (TOMLKitError, LookupError, ValueError) as error:
        raise SchemaError(f"the file cannot be edited: {error}") from None


def _change(table: Any, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    for key in old:
        if key not in new:
            if key in NOTES:
                _drop_note(table, key)
            table.pop(key, None)
    for key, value in new.items():
        if key not in old or old[key] != value:
            table[key] = list(value) if isinstance(value, tuple) else value


def _drop_note(table: Any, key: str) -> None:
    """Take out the line above a key that says what to do with it."""
    from tomlkit.items import Null, Table

    if not isinstance(table, Table):
        return
    body = table.value.body
    for at, (name, _) in enumerate(body):
        noted = name is not None and name.key == key and at > 0
        if noted and body[at - 1][1].as_string().strip() == NOTES[key]:
            body[at - 1] = (None, Null())


def _unmarked(text: str, document: Document) -> str:
    """The text of a file without the warnings at its head that the document gives no reason for."""
    for warning, needed in _warnings(document).items():
        if not needed:
            text = text.replace(warning, "")
    return text
