"""Names of Arrow types: how a schema says which physical type a column has on output.

A name is what Arrow prints for the type ("int64", "large_string", "timestamp[us, tz=UTC]",
"dictionary<values=string, indices=int32, ordered=0>"), except that floats are spelt with their
width: "float64", "float32", "float16".
"""

import re

import pyarrow as pa

__all__ = ["arrow_type", "converted", "same_stored", "type_name", "value_type", "writes_text"]

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


def value_type(type_: pa.DataType) -> pa.DataType:
    """The type of the values themselves, looking through a dictionary encoding."""
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def writes_text(type_: pa.DataType) -> bool:
    """Whether any value can be written into this type as text."""
    return (
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
        or pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
    )


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
