"""CSV and Parquet files: found, checked by their headers, and read a batch at a time.

Text is read as text, whatever it looks like; the schema does the casting. So no type is guessed
from private rows, and every reader gives the same codes.
"""

import codecs
import csv
import glob
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, Literal, TypeAlias, cast

import pyarrow as pa

from understudy.errors import SourceError
from understudy.quoting import require_names
from understudy.source.base import BATCH_ROWS, Source, Table, Unreadable, check_names, empty_batch

Format: TypeAlias = Literal["csv", "parquet"]

_BLOCK_BYTES = 1 << 24
_FORMATS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_SPREADSHEETS = (".xlsx", ".xls", ".ods", ".xlsm")
_SUPPORTED = "CSV (.csv, .tsv, .txt, also with .gz) and Parquet (.parquet, .pq)"
_SEPARATORS = ",;\t|"
_HEADER_BYTES = 1 << 20
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_DAY = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([ T].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}")
_WHOLE = re.compile(r"-?[0-9]+")
_BROKEN = re.compile(r"-?[0-9]*[.][0-9]+")
_VALUE = re.compile(
    r"[^@\s]+@[^@\s]+\.[a-z]{2,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE
)
_LATIN = (
    "is not UTF-8 text (Latin-1, as old spreadsheets write it, or no table at all?): save it as CSV in "
    "UTF-8 (iconv -f latin1 -t utf-8 OLD > NEW), or as Parquet"
)
_ADD_A_HEADER = (
    "the first line must name the columns; add one above the rows, for instance 'age,sex,income'"
)


@dataclass(frozen=True)
class Layout:
    """What the header of a text file says."""

    separator: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Ragged:
    """How many rows do not have as many cells as the header; the first of them. NOT PRIVATE."""

    count: int
    row: int
    cells: int
    columns: int

    def __str__(self) -> str:
        one = self.count == 1
        return (
            f"{self.count:,} {'row has' if one else 'rows have'} another number of cells than the "
            f"header, {'' if one else 'the first '}in line {self.row:,} ({self.cells} cells, "
            f"{self.columns} columns): correct the file, for a release cuts long rows and fills short "
            f"ones up with nulls"
        )


@dataclass(frozen=True)
class Files:
    """Files of one format and one header that make up a table."""

    given: str
    format: Format
    paths: tuple[Path, ...]
    columns: tuple[str, ...]
    layouts: tuple[Layout, ...]  # one per text file

    @property
    def where(self) -> str:
        """What was given, and its format."""
        return f"{'CSV' if self.format == 'csv' else 'Parquet'} {self.given!r}"

    def footprint(self) -> int:
        """About how many bytes the encoded rows need; private, for choosing an engine."""
        if self.format == "csv":  # a cell is at least a separator; text gzips to about an eighth
            return sum(path.stat().st_size * (8 if _is_gzip(path) else 1) for path in self.paths)
        return 2 * self.length() * len(self.columns)

    def length(self) -> int:
        """The number of rows, private; about so many for text, which does not say."""
        import pyarrow.parquet as pq

        if self.format == "csv":
            return sum(map(_about_lines, self.paths))
        return sum(pq.read_metadata(path).num_rows for path in self.paths)


def find(given: str | Path) -> Files:
    """Find a file, a folder of Parquet files or a glob, and read the headers.

    Raises:
        SourceError: Nothing there, not a format that is known, or a header that cannot be one.
    """
    paths = _paths(given)
    formats: set[Format] = {_format(path) for path in paths}
    if len(formats) > 1:
        raise SourceError(f"{str(given)!r} mixes CSV and Parquet files: name files of one format")
    format = formats.pop()
    layouts = tuple(read_layout(path) for path in paths) if format == "csv" else ()
    columns = [one.columns for one in layouts] or [_parquet_columns(path) for path in paths]
    for path, other in zip(paths, columns, strict=True):
        if set(other) != set(columns[0]):
            raise SourceError(
                f"the headers of {str(paths[0])!r} and {str(path)!r} differ: files that make up "
                "one table need the same columns"
            )
    return Files(str(given), format, paths, columns[0], layouts)


def stem(path: Path) -> str:
    """Its name without what says how it is written: `visits` of `visits.csv.gz`."""
    name = path.name
    for suffix in (".gz", *_FORMATS):
        name = name.removesuffix(suffix) or name
    return name


def _paths(given: str | Path) -> tuple[Path, ...]:
    path = Path(given)
    if path.is_dir():
        found = sorted(p for p in path.rglob("*") if p.suffix.lower() in (".parquet", ".pq"))
        if not found:
            raise SourceError(
                f"the folder {str(path)!r} holds no .parquet files: name a file, or a glob such as "
                f"'{path}/*.csv'"
            )
        return tuple(found)
    if path.exists():
        return (path,)
    if glob.has_magic(str(given)):
        found = sorted(Path(p) for p in glob.glob(str(given), recursive=True))
        files = tuple(p for p in found if p.is_file())
        if files:
            return files
        raise SourceError(f"no file matches {str(given)!r}")
    raise SourceError(f"there is no file {str(path)!r}")


def _format(path: Path) -> Format:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compressed = bool(suffixes) and suffixes[-1] == ".gz"
    suffix = suffixes[-2] if compressed and len(suffixes) > 1 else (suffixes or [""])[-1]
    format = _FORMATS.get(suffix)
    if format is None or (compressed and format == "parquet"):
        how = ""
        if suffix in _SPREADSHEETS:
            how = ". Open it in the spreadsheet and save the sheet as CSV (UTF-8)"
        raise SourceError(
            f"the format of {str(path)!r} is not known: understudy reads {_SUPPORTED}{how}"
        )
    return format


def _parquet_columns(path: Path) -> tuple[str, ...]:
    import pyarrow.parquet as pq

    where = f"file {str(path)!r}"
    try:
        columns = tuple(pq.read_schema(path).names)
    except OSError as error:
        reason = error.strerror or "it is not a whole Parquet file"
        raise SourceError(f"{where} cannot be read: {reason}") from None
    except pa.ArrowException:
        raise SourceError(f"{where} cannot be read: it is not a whole Parquet file") from None
    check_names(columns, where)
    return columns


def _is_gzip(path: Path) -> bool:
    return path.suffix.lower() == ".gz"


def read_layout(path: Path) -> Layout:
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
        raise SourceError(
            f"{where} is UTF-16 and not UTF-8 text: save it as CSV in UTF-8 "
            "(iconv -f utf-16 -t utf-8 OLD > NEW), or as Parquet"
        )
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
    if "\ufffd" in line:
        raise SourceError(f"{where}: the header {_LATIN}")
    outside = "".join(line.split('"')[::2])
    separator = max(_SEPARATORS, key=outside.count)  # the first of them where none occurs
    try:
        columns = tuple(next(csv.reader(io.StringIO(line, newline=""), delimiter=separator)))
    except csv.Error:
        raise SourceError(
            f"{where}: a cell of the first line is too long: {_ADD_A_HEADER}"
        ) from None
    _check_first_line(columns, where)
    return Layout(separator, columns)


def _open(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if _is_gzip(path) else path.open("rb")


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


def _check_first_line(columns: tuple[str, ...], where: str) -> None:
    require_names(columns, where)
    if all(_is_number(name) for name in columns) and not _numbered(columns):
        raise SourceError(
            f"{where} seems to have no header, its first line holds only numbers: {_ADD_A_HEADER}"
        )
    empty = [at for at, name in enumerate(columns, 1) if not name.strip()]
    if 2 * len(empty) >= len(columns) and (len(columns) > 2 or 1 not in empty):
        raise SourceError(
            f"{where}: the first line seems to be a title, as most of its cells are empty: take away "
            "what stands above the names of the columns, and whatever names groups of them"
        )
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
    if (cell := _cell_of_a_row(columns)) is not None:
        raise SourceError(
            f"{where} seems to have no header: cell {cell} of its first line is a value and no name: "
            f"{_ADD_A_HEADER}"
        )


def _numbered(columns: tuple[str, ...]) -> bool:
    """Whether they are numbered from 0 or 1 on, as nobody's row is; of two or fewer, one may be."""
    return len(columns) > 2 and any(
        list(columns) == [str(first + at) for at in range(len(columns))] for first in (0, 1)
    )


def _cell_of_a_row(columns: tuple[str, ...]) -> int | None:
    """The place of the first cell that can be no name: an e-mail, a UUID, a day or a number.

    Wide tables are named by years, days or wavelengths, in their order.
    """
    plain = [name.strip() for name in columns]
    days, whole, broken = (
        [at for at, name in enumerate(plain) if form.fullmatch(name)]
        for form in (_DAY, _WHOLE, _BROKEN)
    )
    odd = [at for at, name in enumerate(plain) if _VALUE.fullmatch(name)]
    odd += days if len(days) < 3 else []
    years = [float(plain[at]) for at in whole]
    odd += whole if not (_rise(years) or _rise(years[::-1])) else []
    odd += broken if len(broken) < 3 or not _rise([float(plain[at]) for at in broken]) else []
    return min(odd) + 1 if odd else None


def _rise(numbers: list[float]) -> bool:
    return all(before < after for before, after in pairwise(numbers))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _about_lines(path: Path) -> int:
    """How many lines there are, private: as many for every byte of the file as at its beginning."""
    try:
        with path.open("rb") as stored:
            text = gzip.GzipFile(fileobj=stored) if _is_gzip(path) else stored
            head = text.read(_HEADER_BYTES)
            return path.stat().st_size * head.count(b"\n") // max(1, stored.tell())
    except (OSError, EOFError, zlib.error):
        return 0


class FileSource(Table):
    """Files that are read once and held in memory as codes."""

    def __init__(self, files: Files, nulls: Sequence[str] = ()) -> None:
        super().__init__(files.columns, nulls, files.where)
        self.paths = files.paths
        self.typed = files.format == "parquet"
        self._files = files

    def scans(self, names: Sequence[str]) -> Iterator[Iterator[pa.RecordBatch]]:
        """The engine's own reader; for text, the lenient reader after it."""
        yield self._scan(names)
        if not self.typed:
            yield self._lenient(names)

    def ragged(self) -> Ragged | None:
        """Rows with another number of cells than the header: NOT PRIVATE, for whoever may see them."""
        if self.typed:
            return None
        pairs = zip(self.paths, self._files.layouts, strict=True)
        found = [ragged for path, layout in pairs if (ragged := _ragged(path, layout)) is not None]
        return replace(found[0], count=sum(each.count for each in found)) if found else None

    def require_utf8(self) -> None:
        """Refuse files of text in another encoding, whose letters would be read as U+FFFD.

        NOT PRIVATE, for whoever may see the rows; a release reads on, as what is in a row is private.

        Raises:
            SourceError: A line is not UTF-8.
        """
        for path in () if self.typed else self.paths:
            with _open(path) as file:
                for number, line in enumerate(file, 1):
                    try:
                        line.decode()
                    except UnicodeDecodeError:
                        raise SourceError(f"file {str(path)!r}: line {number:,} {_LATIN}") from None

    def _lenient(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for path, layout in zip(self.paths, self._files.layouts, strict=True):
            yield from _any_rows(path, layout, names)

    def _scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        if self.typed:
            for path in self.paths:
                yield from _parquet(path, names)
        else:
            for path, layout in zip(self.paths, self._files.layouts, strict=True):
                yield from _csv(path, layout, names)


def ragged(source: Source) -> Ragged | None:
    """The ragged rows of files of text; None where there are none, and of any other source."""
    return source.ragged() if isinstance(source, FileSource) else None


def _parquet(path: Path, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            yield empty_batch(file.schema_arrow).select(list(names))
            for batch in file.iter_batches(BATCH_ROWS, columns=list(names)):
                yield batch.select(list(names))
    except (pa.ArrowException, OSError):
        raise Unreadable from None


def _csv(path: Path, layout: Layout, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    import pyarrow.csv as pacsv

    try:
        with pacsv.open_csv(
            path,
            read_options=pacsv.ReadOptions(block_size=_BLOCK_BYTES),
            parse_options=pacsv.ParseOptions(delimiter=layout.separator, newlines_in_values=True),
            convert_options=pacsv.ConvertOptions(
                column_types={name: pa.string() for name in layout.columns},
                strings_can_be_null=False,
                include_columns=list(names),
            ),
        ) as reader:
            yield from reader
    except (pa.ArrowException, OSError, KeyError):
        raise Unreadable from None


def _ragged(path: Path, layout: Layout) -> Ragged | None:
    """The odd rows of a file that Arrow does not take; in one that it takes there are none.

    Counted without Arrow, whose handler of odd rows is a Python function: a worker that lets go of it
    while the interpreter shuts down takes the whole process with it.
    """
    try:
        for _ in _csv(path, layout, layout.columns[:1]):
            pass
    except Unreadable:
        width = len(layout.columns)
        try:
            odd = [(at, len(row)) for at, row in _texts(path, layout) if len(row) != width]
        except (OSError, EOFError, zlib.error):
            return None
        return Ragged(len(odd), *odd[0], width) if odd else None
    return None


def _any_rows(path: Path, layout: Layout, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows as texts, whatever is wrong with them; blank lines are no rows.

    The fast readers (Arrow, DuckDB) stop at a row that has too few or too many cells or bytes that
    are not UTF-8. Whether there is such a row is private, so this one reads on: it fills short rows up
    with nulls, cuts long ones, and replaces what is not UTF-8. On well-formed text all readers agree.
    """
    wanted = [layout.columns.index(name) for name in names]
    width = len(layout.columns)
    rows: list[list[str]] = []
    try:
        for _, row in _texts(path, layout):
            rows.append(row + [""] * (width - len(row)))
            if len(rows) == BATCH_ROWS:
                yield _batch(rows, wanted, names)
                rows = []
    except (OSError, EOFError, zlib.error):
        raise Unreadable from None
    if rows:
        yield _batch(rows, wanted, names)


def _texts(path: Path, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """The line in which a row ends, and its cells as they are; neither header nor blank lines."""
    with io.TextIOWrapper(_open(path), encoding="utf-8-sig", errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=layout.separator)
        for row in filter(None, islice(_records(reader), 1, None)):
            yield reader.line_num, row


def _records(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:  # a cell beyond the csv module's limit: a row all the same
            yield [""]


def _batch(rows: list[list[str]], wanted: Sequence[int], names: Sequence[str]) -> pa.RecordBatch:
    arrays = [pa.array([row[at] for row in rows], pa.string()) for at in wanted]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))
