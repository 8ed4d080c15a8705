"""What columns need of Arrow: its functions, arrays from NumPy's, and the names of types.

A name says which physical type a column has on output. It is what Arrow prints for the type ("int64",
"large_string", "timestamp[us, tz=UTC]", "dictionary<values=string, indices=int32, ordered=0>"), except
that floats are spelt with their width: "float64", "float32", "float16".
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

pc: Any = pyarrow.compute
"""Arrow's compute functions; they are made at run time, so a type checker cannot know them."""

_FLOATS = {"double": "float64", "float": "float32", "halffloat": "float16"}
_DICTIONARY = re.compile(r"dictionary<values=(.+), indices=(\w+), ordered=([01])>")
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:, tz=(.+))?\]")
_DECIMAL = re.compile(r"decimal(128|256)?\((\d+), ?(-?\d+)\)")


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type of that name; ValueError if there is none."""
    if match := _DICTIONARY.fullmatch(name):
        values, indices, ordered = match.groups()
        return pa.dictionary(arrow_type(indices), arrow_type(values), ordered == "1")
    if match := _TIMESTAMP.fullmatch(name):
        return pa.timestamp(match[1], match[2])
    try:
        if match := _DECIMAL.fullmatch(name):
            wide = pa.decimal256 if match[1] == "256" else pa.decimal128
            return wide(int(match[2]), int(match[3]))
        return pa.type_for_alias(name)
    except (ValueError, KeyError) as error:
        raise ValueError(f"{name!r} is not the name of an Arrow type") from error


def type_name(type_: pa.DataType) -> str:
    """The canonical name of an Arrow type; `arrow_type(type_name(t)) == t` for supported types."""
    if pa.types.is_dictionary(type_):
        values, indices = type_name(type_.value_type), type_name(type_.index_type)
        return f"dictionary<values={values}, indices={indices}, ordered={int(type_.ordered)}>"
    name = str(type_)
    return _FLOATS.get(name, name)


def array_of(values: NDArray[Any], null: NDArray[np.bool_] | None = None) -> pa.Array:
    """Numbers or booleans as Arrow's, null where told.

    So does `pa.array`, but it imports pandas first, to see whether the values are its own.
    """
    bits = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else values
    valid = None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little"))
    buffers = [valid, pa.py_buffer(np.ascontiguousarray(bits))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def texts_of(texts: Sequence[str]) -> pa.Array:
    """Texts as Arrow's, without pandas as well."""
    cells = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, cells)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(cells))]
    return pa.Array.from_buffers(pa.string(), len(cells), buffers)


def numpy_of(array: pa.Array) -> NDArray[Any]:
    """Numbers or booleans as NumPy's, zero at nulls; pandas is left out here, too."""
    end, data = array.offset + len(array), array.buffers()[1]
    if not len(array):
        return np.zeros(0, array.type.to_pandas_dtype())
    if pa.types.is_boolean(array.type):
        bits = np.unpackbits(np.frombuffer(data, np.uint8), count=end, bitorder="little")
        values = bits[array.offset :].view(np.bool_)
    else:
        values = np.frombuffer(data, array.type.to_pandas_dtype(), end)[array.offset :]
    return np.where(valid_of(array), values, values.dtype.type(0)) if array.null_count else values


def valid_of(array: pa.Array) -> NDArray[np.bool_]:
    """Which entries are not null."""
    return numpy_of(array.is_valid()) if array.null_count else np.ones(len(array), np.bool_)


def value_type(type_: pa.DataType) -> pa.DataType:
    """The type of the values themselves, looking through a dictionary encoding."""
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def writes_text(type_: pa.DataType) -> bool:
    """Whether any value can be written into this type as text."""
    return type_ in (
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
    )


def is_number(type_: pa.DataType) -> bool:
    """Whether cells of this type are integers, floats or decimals."""
    return pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)


def converted(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The array in another type, by way of text where that is needed; Arrow's error if it loses."""
    return array.cast(pa.string()).cast(type_) if writes_text(type_) else array.cast(type_)


def same_stored(declared: pa.DataType, found: pa.DataType) -> bool:
    """Whether `found` is `declared`, or what a Parquet file gives back for it.

    Parquet widens timestamp[s] to timestamp[ms] and date64 to date32, and does not keep every
    dictionary, run-end encoding or view; none of this changes a value.
    """
    return declared.equals(found) or _stored(declared) == _stored(found)


def _stored(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_run_end_encoded(type_):
        return _stored(type_.value_type)
    if pa.types.is_string_view(type_):
        return pa.string()
    if pa.types.is_dictionary(type_):
        values = type_.value_type
        return pa.string() if pa.types.is_large_string(values) else values
    if pa.types.is_timestamp(type_) and type_.unit == "s":
        return pa.timestamp("ms", type_.tz)
    return pa.date32() if pa.types.is_date64(type_) else type_
