"""Open a table for a look at its rows: what `draft` and `check` are given.

Both look at private rows on purpose, and say so; a release never comes this way.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from understudy.errors import SourceError
from understudy.quoting import in_our_words, require_names, unquoted

__all__ = ["open_table"]

_SEPARATORS = ",;\t|"
_HEADER_BYTES = 1 << 20
_PARQUET = (".parquet", ".pq")


def open_table(source: Any) -> tuple[pa.Table, bool]:
    """`(table, typed)` from a CSV or Parquet file or an Arrow, pandas or Polars table.

    A CSV file has no types: every column arrives as text and `typed` is False.
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        where, typed = str(path), path.suffix.lower() in _PARQUET
        with unquoted(where):
            table = _parquet(path) if typed else _csv(path)
    else:
        where, typed = f"a {type(source).__name__}", True
        with unquoted(where):
            table = _frame(source)
    require_names(table.schema.names, where)
    return table, typed


def _frame(source: Any) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    try:
        if type(source).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(source, preserve_index=False).replace_schema_metadata()
        return pa.table(source)
    except (pa.ArrowException, TypeError, ValueError):
        raise SourceError(
            f"a {type(source).__name__} cannot be read as a table; give a CSV or Parquet file, or "
            "an Arrow, pandas or Polars table whose columns have one type each"
        ) from None


def _parquet(path: Path) -> pa.Table:
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path).read()
    except FileNotFoundError:
        raise SourceError(f"{path}: there is no such file") from None
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"{path}: cannot be read as Parquet: {in_our_words(error)}") from None


def _csv(path: Path) -> pa.Table:
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter=_separator(path), newlines_in_values=True)
    try:
        with csv.open_csv(path, parse_options=parse) as reader:
            names = reader.schema.names
        texts = csv.ConvertOptions(
            column_types={name: pa.string() for name in names}, strings_can_be_null=False
        )
        return csv.read_csv(path, parse_options=parse, convert_options=texts)
    except FileNotFoundError:
        raise SourceError(f"{path}: there is no such file") from None
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"{path}: cannot be read as CSV: {in_our_words(error)}") from None


def _separator(path: Path) -> str:
    """What the header has most of outside quotes, as a release reads it; a comma where none occurs."""
    try:
        with pa.input_stream(path) as file:
            head = file.read(_HEADER_BYTES)
    except (OSError, pa.ArrowException):
        return ","  # reading it will say what is wrong
    line = head.decode("utf-8", "replace").lstrip("\ufeff").splitlines()[:1]
    outside = "".join("".join(line).split('"')[::2])
    return max(_SEPARATORS, key=outside.count)
