"""Tables that are in memory already: Arrow, pandas, Polars, and what else narwhals knows."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from understudy.errors import SourceError
from understudy.source.base import (
    EncodedCounts,
    Native,
    Unreadable,
    batches,
    check_header,
    check_names,
    with_nulls,
)
from understudy.source.frames import to_frame

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.schema import Schema

__all__ = ["FrameSource", "frame_source"]


class FrameSource:
    """A data frame; it is looked at when it is bound, and never changed."""

    typed = True

    def __init__(
        self,
        frame: Any,
        *,
        kind: str,
        columns: Sequence[str],
        native: Native,
        dtypes: Mapping[str, Any],
        nulls: Sequence[str] = (),
    ) -> None:
        self.columns: tuple[str, ...] = tuple(columns)
        self.native: Native = native
        self._frame = frame
        self._kind = kind
        self._dtypes = dict(dtypes)
        self.null_values = tuple(nulls)
        check_names(self.columns, self._kind)

    def describe(self) -> str:
        """The kind of frame and its number of columns."""
        return f"{self._kind} with {len(self.columns)} columns"

    def scans(self, names: Sequence[str]) -> Iterator[Iterator["pa.RecordBatch"]]:
        """One way: column by column into Arrow."""
        yield self._scan(names)

    def _scan(self, names: Sequence[str]) -> Iterator["pa.RecordBatch"]:
        table = _to_arrow(self._frame, self._kind, self.columns, names)
        yield from batches(table)

    def bind(self, schema: "Schema") -> EncodedCounts:
        """Check the header and encode the rows once."""
        check_header(self.columns, schema, self._kind)
        return EncodedCounts.encode(self, with_nulls(schema, self.null_values))

    def frame(self, table: "pa.Table") -> Any:
        """Rows in the kind of frame, and with the dtypes, that were given."""
        return to_frame(table, self.native, self._dtypes)


def frame_source(frame: Any, nulls: Sequence[str] = ()) -> FrameSource:
    """The source for a frame.

    Raises:
        SourceError: Not a table that is known, or two columns have one name.
    """
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        return FrameSource(
            frame,
            kind=f"Arrow {type(frame).__name__}",
            columns=frame.schema.names,
            native="arrow",
            dtypes=dict(zip(frame.schema.names, frame.schema.types, strict=True)),
            nulls=nulls,
        )
    if nw.dependencies.is_pandas_dataframe(frame):
        columns = [str(name) for name in frame.columns]
        return FrameSource(
            frame,
            kind="pandas DataFrame",
            columns=columns,
            native="pandas",
            dtypes=dict(zip(columns, frame.dtypes, strict=True)),
            nulls=nulls,
        )
    try:
        wrapped = nw.from_native(frame)
    except TypeError:
        raise SourceError(
            f"cannot read a table from {type(frame).__name__!r}: give a path to CSV or Parquet, a "
            "pandas or Polars frame, or an Arrow table"
        ) from None
    polars = nw.dependencies.is_polars_dataframe(frame) or nw.dependencies.is_polars_lazyframe(
        frame
    )
    return FrameSource(
        frame,
        kind=f"{'Polars ' if polars else ''}{type(frame).__name__}",
        columns=wrapped.collect_schema().names(),
        native="polars" if polars else "arrow",
        dtypes=dict(frame.collect_schema()) if polars else {},
        nulls=nulls,
    )


def _to_arrow(frame: Any, kind: str, columns: Sequence[str], names: Sequence[str]) -> "pa.Table":
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        return frame.select(list(names))
    if kind == "pandas DataFrame":
        series = [frame.iloc[:, columns.index(name)] for name in names]
        return pa.table([_from_pandas(one) for one in series], names=list(names))
    wrapped = nw.from_native(frame)
    try:
        wrapped = wrapped.select(*names)
        if isinstance(wrapped, nw.LazyFrame):
            wrapped = wrapped.collect()
        return wrapped.to_arrow()
    except Exception:  # noqa: BLE001  (a lazy query's own errors quote values)
        raise Unreadable from None


def _from_pandas(series: Any) -> "pa.Array | pa.ChunkedArray":
    """A column as Arrow; one of mixed objects as texts, because Arrow would quote a value."""
    import pyarrow as pa

    try:
        return pa.Array.from_pandas(series)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        missing = series.isna().to_numpy()
        cells = [
            None if absent else _text(cell)
            for cell, absent in zip(series.astype(object), missing, strict=True)
        ]
        return pa.array(cells, pa.string())


def _text(cell: object) -> str:
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    return str(cell).encode("utf-8", "replace").decode("utf-8")
