"""CSV and Parquet files: found, checked by their headers, and read a batch at a time.

Text is read as text, whatever it looks like; the schema does the casting. So no type is guessed
from private rows, and every reader gives the same codes.
"""

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from understudy.errors import SourceError
from understudy.source.base import (
    BATCH_ROWS,
    EncodedCounts,
    Native,
    Unreadable,
    check_header,
    check_names,
    empty_batch,
    with_nulls,
)
from understudy.source.frames import to_frame
from understudy.source.text import Layout, about_lines, is_gzip, layout, lenient

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.schema import Schema

__all__ = ["FileSource", "Files", "OfFiles", "find", "lenient_scan"]

Format: TypeAlias = Literal["csv", "parquet"]

_BLOCK_BYTES = 1 << 24
_FORMATS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_SUPPORTED = "CSV (.csv, .tsv, .txt, also with .gz) and Parquet (.parquet, .pq)"


@dataclass(frozen=True)
class Files:
    """Files of one format and one header that make up a table."""

    given: str
    format: Format
    paths: tuple[Path, ...]
    columns: tuple[str, ...]
    layouts: tuple[Layout, ...]  # one per text file

    def describe(self) -> str:
        """What was given, its format and its number of columns."""
        kind = {"csv": "CSV", "parquet": "Parquet"}[self.format]
        return f"{kind} {self.given!r} with {len(self.columns)} columns"

    @property
    def typed(self) -> bool:
        """Whether cells have types: not in text."""
        return self.format == "parquet"

    def footprint(self) -> int:
        """About how many bytes the encoded rows need; private, for choosing an engine."""
        if self.format == "csv":  # a cell is at least a separator; text gzips to about an eighth
            return sum(path.stat().st_size * (8 if is_gzip(path) else 1) for path in self.paths)
        return 2 * self.length() * len(self.columns)

    def length(self) -> int:
        """The number of rows, private; about so many for text, which does not say."""
        import pyarrow.parquet as pq

        if self.format == "csv":
            return sum(map(about_lines, self.paths))
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
    if format == "csv":
        layouts = tuple(layout(path) for path in paths)
        columns = [one.columns for one in layouts]
    else:
        layouts = ()
        columns = [_parquet_columns(path) for path in paths]
    for path, other in zip(paths, columns, strict=True):
        if set(other) != set(columns[0]):
            raise SourceError(
                f"the headers of {str(paths[0])!r} and {str(path)!r} differ: files that make up "
                "one table need the same columns"
            )
    return Files(str(given), format, paths, columns[0], layouts)


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
        raise SourceError(
            f"the format of {str(path)!r} is not known: understudy reads {_SUPPORTED}"
        )
    return format


def _parquet_columns(path: Path) -> tuple[str, ...]:
    import pyarrow as pa
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


class OfFiles:
    """What every source of files knows."""

    native: Native = "arrow"

    def __init__(self, files: Files, nulls: Sequence[str] = ()) -> None:
        self.columns: tuple[str, ...] = files.columns
        self.paths = files.paths
        self.typed = files.typed
        self._files = files
        self.null_values = tuple(nulls)

    def describe(self) -> str:
        """The files, their format and their number of columns."""
        return self._files.describe()

    def frame(self, table: "pa.Table") -> Any:
        """Rows as an Arrow table."""
        return to_frame(table, self.native)


class FileSource(OfFiles):
    """Files that are read once and held in memory as codes."""

    def scans(self, names: Sequence[str]) -> Iterator[Iterator["pa.RecordBatch"]]:
        """Arrow's readers; for text, the lenient reader after them."""
        files = self._files
        if files.format == "parquet":
            yield chain.from_iterable(_parquet(path, names) for path in files.paths)
        else:
            yield chain.from_iterable(
                _csv(path, one, names) for path, one in zip(files.paths, files.layouts, strict=True)
            )
            yield lenient_scan(files, names)

    def bind(self, schema: "Schema") -> EncodedCounts:
        """Check the header and encode the rows once."""
        check_header(self.columns, schema, self.describe())
        return EncodedCounts.encode(self, with_nulls(schema, self.null_values))


def lenient_scan(files: Files, names: Sequence[str]) -> Iterator["pa.RecordBatch"]:
    """The text files one after the other, by the reader that takes any row."""
    for path, one in zip(files.paths, files.layouts, strict=True):
        yield from lenient(path, one, names)


def _parquet(path: Path, names: Sequence[str]) -> Iterator["pa.RecordBatch"]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            yield empty_batch(file.schema_arrow).select(list(names))
            for batch in file.iter_batches(BATCH_ROWS, columns=list(names)):
                yield batch.select(list(names))
    except (pa.ArrowException, OSError):
        raise Unreadable from None


def _csv(path: Path, layout: Layout, names: Sequence[str]) -> Iterator["pa.RecordBatch"]:
    import pyarrow as pa
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
