"""A public table that a method may start from: rows that anybody may know, in the same schema.

Nothing here is protected: what is wrong with the public table is said in full. It must not hold rows of
the private one unless these are public as well; that is the custodian's promise and cannot be checked.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from understudy.columns.reading import flat, is_text, pc, present
from understudy.errors import InputError, UnderstudyError
from understudy.game.methods import method as named_method
from understudy.releases.options import Options
from understudy.schema import Schema
from understudy.source import read, read_table
from understudy.source.base import check_header
from understudy.source.files import FileSource, find


def warmed(options: Options, schema: Schema, private: Any = None) -> Options:
    """With a method that starts from the rows of `public`, where such are given.

    Raises:
        InputError: The method takes no public rows, or they do not fit the schema, or they are handed
            in as (a part of) the `private` table itself. Values are not compared: whether a row is
            in the private table is private.
    """
    if options.public is None:
        return options
    _require_other(options.public, private)
    method, parameters = options.method, options.parameters or {}
    chosen = named_method(method, **parameters) if isinstance(method, str) else method
    table = _table(options.public, schema)
    if not table.num_rows:
        raise InputError("public: the table has no rows; leave it out")
    return replace(
        options, method=chosen.warm(tuple(schema.encode(table))), parameters=None, public=None
    )


def _require_other(public: Any, private: Any) -> None:
    """Refuse what is visibly the private table: a share of it, the same object, file or memory."""
    rule = (
        "whoever is declared public loses all protection: take people who agreed, remove them from "
        "the private table and state its number of rows without them, or use rows from elsewhere"
    )
    if isinstance(public, (int, float)):
        raise InputError(f"public = {public} is a share and not a table; {rule}")
    ours, theirs = _files(public), _files(private)
    if public is private or (ours and ours == theirs):
        raise InputError(f"public: this is the private table; {rule}")
    if ours & theirs or _overlap(public, private):
        raise InputError(f"public: this is a part of the private table; {rule}")


def _files(table: Any) -> frozenset[Path]:
    """The files that a table is read from, links followed; none where it lies elsewhere."""
    if not isinstance(table, (str, os.PathLike)):
        paths = table.paths if isinstance(table, FileSource) else ()
        return frozenset(path.resolve() for path in paths)
    try:
        return frozenset(path.resolve() for path in find(Path(table)).paths)
    except (UnderstudyError, OSError):
        return frozenset()  # whoever reads it says what is wrong with it


def _overlap(one: Any, other: Any) -> bool:
    """Whether two Arrow tables are slices of one that have rows in common, wherever those lie."""
    return any(
        address == there and start < end and begin < stop
        for address, start, stop in _places(one)
        for there, begin, end in _places(other)
    )


def _places(table: Any) -> list[tuple[int, int, int]]:
    """(address, first row, last row + 1) of the chunks of an Arrow table's first column."""
    if not isinstance(table, pa.Table) or not table.num_columns:
        return []
    return [
        (buffer.address, chunk.offset, chunk.offset + len(chunk))
        for chunk in table.column(0).chunks
        for buffer in chunk.buffers()[-1:]
        if buffer is not None
    ]


def _table(public: Any, schema: Schema) -> pa.Table:
    wanted = schema.arrow_schema
    remedy = "a public table must have the schema of the private one"
    try:
        source = read(public)
        check_header(source.columns, schema, source.describe())
        table = read_table(source).select(wanted.names)
    except UnderstudyError as error:
        raise InputError(f"public: {error}; {remedy}") from None
    columns: list[pa.ChunkedArray] = []
    for field in wanted:
        try:
            columns.append(_without_blanks(table[field.name], schema).cast(field.type))
        except pa.ArrowException:
            raise InputError(
                f"public: column {field.name!r} has dtype {table[field.name].type} and cannot be "
                f"read as {field.type}; {remedy}"
            ) from None
    table = pa.table(columns, names=wanted.names)
    if problems := schema.illegal(table):
        raise InputError(f"public: {'; '.join(problems[:3])}; {remedy}")
    return table


def _without_blanks(column: pa.ChunkedArray, schema: Schema) -> pa.ChunkedArray:
    """Texts that stand for null, as nulls: a text file has no others."""
    if not is_text(column.type):
        return column
    filled = [
        pc.if_else(pa.array(present(part, schema.null_values)), part, pa.scalar(None, part.type))
        for part in flat(column)
    ]
    return pa.chunked_array(filled, filled[0].type)
