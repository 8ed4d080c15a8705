"""Files larger than memory: DuckDB streams them, one scan for each call.

A scan hands over batches of rows, which are encoded and added up at once; memory holds one batch,
DuckDB's own buffers and the tables that are counted. DuckDB opens these files and nothing else, writes
nothing to disk, fetches no extension and guesses no type.
"""

import glob
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from understudy.schema import Schema
from understudy.source.base import BATCH_ROWS, StreamedCounts, Unreadable, check_header
from understudy.source.files import Files, FileSource
from understudy.source.units import ROW_BYTES

if TYPE_CHECKING:
    import duckdb

_BYTES_PER_THREAD = 1 << 28


class DuckDBSource(FileSource):
    """Files that DuckDB scans anew for each call."""

    def __init__(self, files: Files, nulls: Sequence[str] = (), *, memory_limit: int) -> None:
        super().__init__(files, nulls)
        self._memory_limit = memory_limit

    def scans(self, names: Sequence[str]) -> Iterator[Iterator[pa.RecordBatch]]:
        """DuckDB; for text, the lenient reader after it."""
        # A blank line is no row; of a single column, DuckDB would read it as a null.
        single = not self.typed and len(self.columns) == 1
        return iter([self._lenient(names)]) if single else super().scans(names)

    def bind(self, schema: Schema) -> StreamedCounts:
        """Check the header; the rows stay where they are."""
        check_header(self.columns, schema, self.describe())
        return StreamedCounts(self, schema, self.turns, self._files.length)

    @property
    def turns(self) -> int:
        """Scans to a question, each for some of the privacy units, that stay within the memory."""
        rows = self._files.footprint() // (2 * len(self.columns)) + 1
        return -(-rows * ROW_BYTES // (self._memory_limit // 2))

    def _scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        import duckdb

        wanted = ", ".join(f'"{name.replace(chr(34), chr(34) * 2)}"' for name in names)
        try:
            with self._connect() as connection:
                for function, parameters in self._tables():
                    asked = f"SELECT {wanted} FROM {function}"
                    found = connection.sql(asked, params=parameters)
                    # Older releases of DuckDB have another name for it.
                    stream = getattr(found, "to_arrow_reader", None) or found.fetch_arrow_reader
                    yield from stream(BATCH_ROWS)
        except (duckdb.Error, pa.ArrowException, OSError):  # later batches fail through Arrow
            raise Unreadable from None

    def _tables(self) -> Iterator[tuple[str, list[Any]]]:
        """Table functions with their parameters; text files one by one, each by its own layout."""
        files = self._files
        if files.format == "parquet":
            paths = [glob.escape(str(path)) for path in files.paths]
            yield "read_parquet(?, union_by_name = true, hive_partitioning = false)", [paths]
            return
        for path, layout in zip(files.paths, files.layouts, strict=True):
            yield (
                "read_csv(?, columns = ?, delim = ?, auto_detect = false, header = true, "
                "quote = '\"', escape = '\"')",
                [
                    glob.escape(str(path)),
                    dict.fromkeys(layout.columns, "VARCHAR"),
                    layout.separator,
                ],
            )

    def _connect(self) -> "duckdb.DuckDBPyConnection":
        import duckdb

        threads = max(1, min(os.cpu_count() or 1, self._memory_limit // _BYTES_PER_THREAD))
        connection = duckdb.connect(
            ":memory:",
            config={
                "memory_limit": f"{self._memory_limit // 1000}KB",
                "threads": threads,
                "temp_directory": "",
                "preserve_insertion_order": False,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            },
        )
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET allowed_paths = ?", [[str(path) for path in self.paths]])
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection
