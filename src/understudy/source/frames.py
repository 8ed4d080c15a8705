"""Tables in memory, taken in and handed back: Arrow, pandas, Polars, and what else narwhals knows.

Rows are handed back with the dtypes that were given. A dtype is a fact of the header. The categories
inside a pandas `category` dtype are not: they were collected from the rows, so they are taken from the
schema (the Arrow dictionary) or from the synthetic rows instead, and only their order is kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from understudy.errors import InputError, SourceError
from understudy.source.base import Native, Table, Unreadable, batches, check_names


class FrameSource(Table):
    """A data frame; it is looked at when it is bound, and never changed."""

    def __init__(
        self,
        frame: Any,
        header: Sequence[tuple[str, Any]],
        kind: str,
        native: Native,
        nulls: Sequence[str] = (),
    ) -> None:
        """`header`: names and their dtypes, None for those that need not come back."""
        super().__init__([name for name, _ in header], nulls, kind)
        self.native: Native = native
        self._frame = frame
        self._dtypes = dict(header)
        check_names(self.columns, kind)

    def _scan(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from batches(_to_arrow(self._frame, self.columns, names))


def frame_source(frame: Any, nulls: Sequence[str] = ()) -> FrameSource:
    """The source for a frame.

    Raises:
        SourceError: Not a table that is known, or two columns have one name.
    """
    if isinstance(frame, (pa.Table, pa.RecordBatch)):
        header = [(field.name, field.type) for field in frame.schema]
        return FrameSource(frame, header, f"Arrow {type(frame).__name__}", "arrow", nulls)
    import narwhals.stable.v2 as nw

    if nw.dependencies.is_pandas_dataframe(frame):
        header = list(zip(map(str, frame.columns), frame.dtypes, strict=True))
        return FrameSource(frame, header, "pandas DataFrame", "pandas", nulls)
    try:
        wrapped = nw.from_native(frame)
    except TypeError:
        raise SourceError(
            f"cannot read a table from {type(frame).__name__!r}: give a path to CSV or Parquet, a "
            "pandas or Polars frame, or an Arrow table"
        ) from None
    polars = type(frame).__module__.split(".")[0] == "polars"
    kind = f"{'Polars ' if polars else ''}{type(frame).__name__}"
    dtypes = dict(frame.collect_schema()) if polars else {}
    header = [(name, dtypes.get(name)) for name in wrapped.collect_schema().names()]
    return FrameSource(frame, header, kind, "polars" if polars else "arrow", nulls)


def _to_arrow(frame: Any, columns: Sequence[str], names: Sequence[str]) -> pa.Table:
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        return frame.select(list(names))
    import narwhals.stable.v2 as nw

    if nw.dependencies.is_pandas_dataframe(frame):
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


def _from_pandas(series: Any) -> pa.Array | pa.ChunkedArray:
    """A column as Arrow; one of objects as texts.

    What is made of an object depends on it alone: a type for all of them would be chosen by what else
    is there, and one odd cell would change the text of every other.
    """
    if series.dtype != object:
        return pa.Array.from_pandas(series)
    missing = series.isna().to_numpy()
    return pa.array([*map(_text, series)], pa.string(), mask=missing)


def _text(cell: object) -> str:
    """An object as text, by a rule that knows no other cell; whole numbers as integers are."""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, float | np.floating):
        return str(int(cell)) if float(cell).is_integer() else str(cell)
    if isinstance(cell, Decimal) and cell.is_finite():
        return str(int(cell)) if cell == int(cell) else format(cell.normalize(), "f")
    return str(cell).encode("utf-8", "replace").decode("utf-8", "replace")


def to_frame(
    table: pa.Table, like: Native = "arrow", dtypes: Mapping[str, Any] | None = None
) -> Any:
    """A table in the kind asked for.

    Args:
        table: Synthetic rows.
        like: "arrow", "pandas" or "polars".
        dtypes: By column name, the dtype it should have in that kind; where a column cannot have
            it (an `int64` with nulls), it gets the nearest that can.
    """
    makers = {"arrow": _arrow, "pandas": _pandas, "polars": _polars}
    if like not in makers:
        raise InputError(f"like={like!r}: rows come as 'arrow', 'pandas' or 'polars'")
    return makers[like](table, dtypes or {})


def _arrow(table: pa.Table, dtypes: Mapping[str, Any]) -> pa.Table:
    for at, name in enumerate(table.column_names):
        target = dtypes.get(name)
        if target is not None and table.schema.types[at] != target:
            try:
                column = table.column(at).cast(target)
            except pa.ArrowException:
                continue
            table = table.set_column(at, pa.field(name, target), column)
    return table


def _polars(table: pa.Table, dtypes: Mapping[str, Any]) -> Any:
    import polars as pl

    frame = pl.DataFrame(pl.from_arrow(table))
    for name, target in dtypes.items():
        if name in frame.columns and frame.schema[name] != target:
            if isinstance(target, pl.Enum):
                target = _enum(frame[name], target)
            try:
                converted = frame[name].cast(target)
            except pl.exceptions.PolarsError:
                continue
            cuts = frame.schema[name].is_float() and converted.dtype.is_integer()
            if not (cuts and (converted != frame[name]).any()):
                frame = frame.with_columns(converted)
    return frame


def _enum(series: Any, given: Any) -> Any:
    import polars as pl

    present = set(series.cast(pl.String).drop_nulls().unique())
    known = [category for category in given.categories if category in present]
    return pl.Enum(known + sorted(present - set(known)))


def _pandas(table: pa.Table, dtypes: Mapping[str, Any]) -> Any:
    import pandas as pd

    series = {name: _series(table.column(name), dtypes.get(name)) for name in table.column_names}
    return pd.DataFrame(series, columns=list(series), index=pd.RangeIndex(table.num_rows))


def _series(column: pa.ChunkedArray, target: Any) -> Any:
    import pandas as pd

    if isinstance(target, pd.CategoricalDtype):
        return _categorical(column, target)
    series = column.to_pandas(types_mapper=_nullable(column), date_as_object=False)
    if target is None or series.dtype == target:
        return series
    try:
        converted = series.astype(target)
    except (TypeError, ValueError, OverflowError):
        return series
    if series.dtype.kind == "f" and converted.dtype.kind in "iu" and (converted != series).any():
        return series  # an integer would cut fractions off
    return converted


def _nullable(column: pa.ChunkedArray) -> Any:
    """Integers and booleans with nulls stay integers and booleans."""
    import pandas as pd

    if column.null_count == 0:
        return None
    names = {"bool": "boolean"}
    for size in (8, 16, 32, 64):
        names |= {f"int{size}": f"Int{size}", f"uint{size}": f"UInt{size}"}
    found = {pa.type_for_alias(a): pd.api.types.pandas_dtype(b) for a, b in names.items()}
    return found.get


def _categorical(column: pa.ChunkedArray, target: Any) -> Any:
    import pandas as pd

    if pa.types.is_dictionary(column.type):
        legal = column.unify_dictionaries().chunk(0).dictionary.to_pylist() if len(column) else []
        column = column.cast(column.type.value_type)
    else:
        legal = sorted(column.drop_null().unique().to_pylist())
    if target.categories is not None and target.ordered:
        rank = {category: at for at, category in enumerate(target.categories)}
        legal = sorted(legal, key=lambda category: rank.get(category, len(rank)))
    dtype = pd.CategoricalDtype(legal, ordered=target.ordered)
    return pd.Series(column.to_pylist(), dtype=dtype)
