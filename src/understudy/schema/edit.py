"""Change facts in a schema file that people have written in, and leave all else as it stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from understudy.errors import SchemaError
from understudy.schema.toml import NOTES, Document, unmarked

__all__ = ["edited"]


def edited(text: str, before: Document, after: Document) -> str:
    """The text, which says `before`, with the facts of `after`: comments and order stay.

    Raises:
        SchemaError: Columns were added, renamed or moved, or constraints changed: write it anew.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    names = [[facts["name"] for facts in each.columns] for each in (before, after)]
    same = (before.geography, before.rules) == (after.geography, after.rules)
    if names[0] != names[1] or not same:
        raise SchemaError("the columns or constraints of the file are others")
    try:
        file: Any = tomlkit.parse(unmarked(text, after))
        _change(file["understudy"], before.head, after.head)
        for table, old, new in zip(file["column"], before.columns, after.columns, strict=True):
            _change(table, old, new)
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
