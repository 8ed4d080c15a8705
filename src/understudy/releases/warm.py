"""A public table that a method may start from: rows that anybody may know, in the same schema.

Nothing here is protected: what is wrong with the public table is said in full. It must not hold rows of
the private one unless these are public as well; that is the custodian's promise and cannot be checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from understudy.errors import InputError, UnderstudyError
from understudy.game.methods import Method
from understudy.game.methods import method as named_method
from understudy.schema import Schema
from understudy.source import read, read_table
from understudy.source.base import check_header

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["warmed"]


def warmed(
    method: str | Method, parameters: Mapping[str, Any] | None, public: Any, schema: Schema
) -> Method:
    """The method, starting from the rows of `public`.

    Raises:
        InputError: The method takes no public rows, or they do not fit the schema.
    """
    chosen = named_method(method, **(parameters or {})) if isinstance(method, str) else method
    warm = getattr(chosen, "warm", None)
    if warm is None:
        raise InputError(
            f"public: method = {chosen.name} does not start from public rows; use method = gem or "
            f"dpgan, or leave public out"
        )
    table = _table(public, schema)
    if not table.num_rows:
        raise InputError("public: the table has no rows; leave it out")
    return warm(tuple(schema.encode(table)))


def _table(public: Any, schema: Schema) -> pa.Table:
    import pyarrow as pa

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
            columns.append(table[field.name].cast(field.type))
        except pa.ArrowException:
            raise InputError(
                f"public: column {field.name!r} has dtype {table[field.name].type} and cannot be "
                f"read as {field.type}; {remedy}"
            ) from None
    table = pa.table(columns, names=wanted.names)
    if problems := schema.illegal(table):
        raise InputError(f"public: {'; '.join(problems[:3])}; {remedy}")
    return table
