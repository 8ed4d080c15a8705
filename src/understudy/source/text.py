"""Separated text: the header, and a reader that takes any row.

The fast readers (Arrow, DuckDB) stop at a row that has too few or too many cells or bytes that are
not UTF-8. Whether there is such a row is private, so `lenient` reads on: it fills short rows up
with nulls, cuts long ones, and replaces what is not UTF-8. On well-formed text all readers agree.
"""

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from understudy.errors import SourceError
from understudy.quoting import require_names
from understudy.source.base import BATCH_ROWS, Unreadable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Layout", "about_lines", "is_gzip", "layout", "lenient"]

_SEPARATORS = ",;\t|"
_HEADER_BYTES = 1 << 20
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ADD_A_HEADER = (
    "the first line must name the columns; add one above the rows, for instance 'age,sex,income'"
)


@dataclass(frozen=True)
class Layout:
    """What the header of a text file says."""

    separator: str
    columns: tuple[str, ...]


def is_gzip(path: Path) -> bool:
    """Whether the file is compressed, by its name."""
    return path.suffix.lower() == ".gz"


def layout(path: Path) -> Layout:
    """Read the header, and nothing below it.

    The separator is the one of `, ; tab |` that the header has most of. The header of a file
    without one is a private row, so no message quotes it.

    Raises:
        SourceError: Empty, not text, or the first line does not look like names.
    """
    where = f"file {str(path)!r}"
    try:
        with _open(path) as file:
            head = file.read(_HEADER_BYTES)
    except OSError as error:
        reason = error.strerror or "it is not a gzip file"
        raise SourceError(f"{where} cannot be read: {reason}") from None
    except (EOFError, zlib.error):
        raise SourceError(f"{where} cannot be read: it is not a whole gzip file") from None
    if head.startswith(_WIDE):
        raise SourceError(f"{where} is not UTF-8 text: save it as CSV in UTF-8, or as Parquet")
    text = head.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    line = _first_record(text)
    if line is None and len(head) == _HEADER_BYTES:
        raise SourceError(
            f"{where}: the first line is longer than {_HEADER_BYTES:,} bytes: {_ADD_A_HEADER}"
        )
    line = text if line is None else line
    if not line.strip():
        raise SourceError(f"{where} is empty or begins with an empty line: {_ADD_A_HEADER}")
    if "\0" in line:
        raise SourceError(f"{where} is not text: save it as CSV in UTF-8, or as Parquet")
    separator = _separator(line)
    try:
        columns = tuple(next(csv.reader(io.StringIO(line, newline=""), delimiter=separator)))
    except csv.Error:
        raise SourceError(
            f"{where}: a cell of the first line is too long: {_ADD_A_HEADER}"
        ) from None
    _check_names(columns, where)
    return Layout(separator, columns)


def _open(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if is_gzip(path) else path.open("rb")


def _first_record(text: str) -> str | None:
    """The text up to the first line break outside quotes; None if there is none.

    A quote opens a cell only at its beginning, as the readers have it.
    """
    quoted, opens = False, True  # opens: whether a quote here would open a cell, or open it again
    for at, character in enumerate(text):
        if character == '"':
            opens, quoted = quoted, not quoted if quoted else opens
        elif character in "\r\n" and not quoted:
            return text[:at]
        else:
            opens = character in _SEPARATORS
    return None


def _separator(line: str) -> str:
    outside = "".join(line.split('"')[::2])
    return max(_SEPARATORS, key=outside.count)  # the first of them where none occurs


def _check_names(columns: tuple[str, ...], where: str) -> None:
    require_names(columns, where)
    if all(_is_number(name) for name in columns):
        raise SourceError(
            f"{where} seems to have no header, its first line holds only numbers: {_ADD_A_HEADER}"
        )
    empty = [at for at, name in enumerate(columns, 1) if not name.strip()]
    if empty:
        raise SourceError(
            f"{where}: cell {empty[0]} of the first line is empty, so the header seems to be "
            f"missing or incomplete: {_ADD_A_HEADER}; a nameless first column often is an index "
            "that pandas wrote, leave it out with to_csv(..., index=False)"
        )
    first: dict[str, int] = {}
    for at, name in enumerate(columns, 1):
        if name in first:
            raise SourceError(
                f"{where}: cells {first[name]} and {at} of the first line are the same. If it is "
                f"the header, that is a duplicate column: rename one; if it is a row, "
                f"{_ADD_A_HEADER}"
            )
        first[name] = at


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def about_lines(path: Path) -> int:
    """How many lines there are, private: as many for every byte of the file as at its beginning."""
    try:
        with path.open("rb") as stored:
            text = gzip.GzipFile(fileobj=stored) if is_gzip(path) else stored
            head = text.read(_HEADER_BYTES)
            return path.stat().st_size * head.count(b"\n") // max(1, stored.tell())
    except (OSError, EOFError, zlib.error):
        return 0


def lenient(path: Path, layout: Layout, names: Sequence[str]) -> Iterator["pa.RecordBatch"]:
    """The rows as texts, whatever is wrong with them; blank lines are no rows."""
    wanted = [layout.columns.index(name) for name in names]
    width = len(layout.columns)
    rows: list[list[str]] = []
    try:
        with io.TextIOWrapper(
            _open(path),
            encoding="utf-8-sig",
            errors="replace",
            newline="",
        ) as file:
            for number, row in enumerate(_records(csv.reader(file, delimiter=layout.separator))):
                if number == 0 or not row:
                    continue
                rows.append(row + [""] * (width - len(row)))
                if len(rows) == BATCH_ROWS:
                    yield _batch(rows, wanted, names)
                    rows = []
    except (OSError, EOFError, zlib.error):
        raise Unreadable from None
    if rows:
        yield _batch(rows, wanted, names)


def _records(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:  # a cell beyond the csv module's limit: a row all the same
            yield [""]


def _batch(rows: list[list[str]], wanted: Sequence[int], names: Sequence[str]) -> "pa.RecordBatch":
    import pyarrow as pa

    arrays = [pa.array([row[at] for row in rows], pa.string()) for at in wanted]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))
