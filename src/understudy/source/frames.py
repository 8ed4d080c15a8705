"""Rows that are handed back: Arrow, pandas or Polars, with the dtypes that were given.

A dtype is a fact of the header. The categories inside a pandas `category` dtype are not: they were
collected from the rows, so they are taken from the schema (the Arrow dictionary) or from the
synthetic rows instead, and only their order is kept.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from understudy.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from understudy.source.base import Native

__all__ = ["to_frame"]


def to_frame(
    table: "pa.Table", like: "Native" = "arrow", dtypes: Mapping[str, Any] | None = None
) -> Any:
    """A table in the kind asked for.

    Args:
        table: Synthetic rows.
        like: "arrow", "pandas" or "polars".
        dtypes: By column name, the dtype it should have in that kind; where a column cannot have
            it (an `int64` with nulls), it gets the nearest that can.
    """
    dtypes = dtypes or {}
    match like:
        case "arrow":
            return _arrow(table, dtypes)
        case "pandas":
            return _pandas(table, dtypes)
        case "polars":
            return _polars(table, dtypes)
        case _:
            raise InputError(f"like={like!r}: rows come as 'arrow', 'pandas' or 'polars'")


def _arrow(table: "pa.Table", dtypes: Mapping[str, Any]) -> "pa.Table":
    import pyarrow as pa

    for at, name in enumerate(table.column_names):
        target = dtypes.get(name)
        if target is not None and table.schema.types[at] != target:
            try:
                column = table.column(at).cast(target)
            except pa.ArrowException:
                continue
            table = table.set_column(at, pa.field(name, target), column)
    return table


def _polars(table: "pa.Table", dtypes: Mapping[str, Any]) -> Any:
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


def _pandas(table: "pa.Table", dtypes: Mapping[str, Any]) -> Any:
    import pandas as pd

    series = {name: _series(table.column(name), dtypes.get(name)) for name in table.column_names}
    return pd.DataFrame(series, columns=list(series), index=pd.RangeIndex(table.num_rows))


def _series(column: "pa.ChunkedArray", target: Any) -> Any:
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


def _nullable(column: "pa.ChunkedArray") -> Any:
    """Integers and booleans with nulls stay integers and booleans."""
    import pandas as pd
    import pyarrow as pa

    if column.null_count == 0:
        return None
    nullable: dict[pa.DataType, Any] = {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.uint8(): pd.UInt8Dtype(),
        pa.uint16(): pd.UInt16Dtype(),
        pa.uint32(): pd.UInt32Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }
    return nullable.get


def _categorical(column: "pa.ChunkedArray", target: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

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
