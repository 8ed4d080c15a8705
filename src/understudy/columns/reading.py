"""Read any physical Arrow array as integers, floats, texts, booleans or ticks, and never fail.

Every reader returns `(values, valid)`, two NumPy arrays of the input's length. A cell that is
null, is one of the `tokens` (texts that stand for null), or cannot be read as the wanted kind has
`valid = False`; what `values` holds there is unspecified. No reader raises, warns or prints for
a value, so that nothing about private rows shows outside the result.

Texts are read through their distinct values: a column of a million cells with a hundred different
texts costs a hundred parses.

Types have names, which say what a column is on output: what Arrow prints for the type ("int64",
"large_string", "timestamp[us, tz=UTC]", "dictionary<values=string, indices=int32, ordered=0>"), except
that floats are spelt with their width: "float64", "float32", "float16".
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from understudy._types import Bools, Floats, Whole

pc: Any = pyarrow.compute
"""Arrow's compute functions; they are made at run time, so a type checker cannot know them."""

_FLOATS = {"double": "float64", "float": "float32", "halffloat": "float16"}
_DICTIONARY = re.compile(r"dictionary<values=(.+), indices=(\w+), ordered=([01])>")
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:, tz=(.+))?\]")
_DECIMAL = re.compile(r"decimal(128|256)?\((\d+), ?(-?\d+)\)")

Read = tuple[NDArray, Bools]
"""Values, and where they are valid."""

DAY = 86_400 * 10**9
"""Nanoseconds in a day."""

UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""Nanoseconds in a unit of Arrow's."""

NULL_TEXTS = ("?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "Null", "<NA>")
"""Texts that usually stand for null in any column; a draft declares those that it finds."""

NULL_AMONG_NUMBERS = (*NULL_TEXTS, "None", "none", "-", "--", ".", "missing", "unknown")
"""Those that do where all other texts are numbers or dates; elsewhere they may be values."""

_JOIN_BELOW = 2**30
_INT64 = np.iinfo(np.int64)
_INTEGER = r"^[+-]?[0-9]{1,19}$"
PLAIN_NUMBER = (
    r"^[+-]?(([0-9]{1,200}(\.[0-9]{0,50})?|\.[0-9]{1,50})([eE][+-]?[0-9]{1,2})?"
    r"|[1-9](\.[0-9]{0,20})?[eE]-([12][0-9][0-9]|3[01][0-9]|32[0-3])|[5-9](\.[0-9]{0,20})?[eE]-324)$"
)
"""Numbers that every engine reads alike: none is too large or too small for a double."""
_FLOAT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"
TRUE_WORDS = frozenset({"true", "t", "yes", "y", "1", "1.0"})
FALSE_WORDS = frozenset({"false", "f", "no", "n", "0", "0.0"})
_ISO = (
    r"^(?P<y>[0-9]{4})-?(?P<m>[0-9]{2})-?(?P<d>[0-9]{2})"
    r"(?:[T ](?P<H>[0-9]{2}):?(?P<M>[0-9]{2})(?::?(?P<S>[0-9]{2})(?:[.,](?P<f>[0-9]{1,9}))?)?)?"
    r" ?(?P<z>Z|[+-][0-9]{2}:?(?:[0-9]{2})?)?$"
)


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


def array_of(values: NDArray[Any], null: Bools | None = None) -> pa.Array:
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


def _text(text: str) -> pa.Scalar:
    """One of them."""
    return texts_of([text])[0]


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


def valid_of(array: pa.Array) -> Bools:
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


def flat(array: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    """The plain arrays an array is made of: extensions, run-end encodings and views taken off.

    Chunks are joined where that is cheap; entries keep their order.
    """
    if isinstance(array, pa.Array):
        return [_unwrapped(array)]
    if array.num_chunks > 1 and array.nbytes < _JOIN_BELOW:
        if pa.types.is_dictionary(array.type):
            array = array.unify_dictionaries()
        return [_unwrapped(array.combine_chunks())]
    return [_unwrapped(chunk) for chunk in array.chunks or [pa.nulls(0, array.type)]]


def _unwrapped(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if pa.types.is_string_view(array.type):
        return array.cast(pa.string())
    return array.cast(pa.binary()) if pa.types.is_binary_view(array.type) else array


def is_text(type_: pa.DataType) -> bool:
    """Whether cells of this type are texts (binary counts: it is read as UTF-8)."""
    plain = value_type(type_)
    return (
        writes_text(plain) or pa.types.is_binary_view(plain) or pa.types.is_fixed_size_binary(plain)
    )


def distinct_texts(array: pa.Array) -> tuple[pa.Array, NDArray[np.intp]]:
    """`(texts, index)`: every cell as text is `texts[index]`; a null has `index == len(texts)`.

    `texts` holds no null. Whole floats are written as integers ("3", not "3.0"), dates and
    timestamps in ISO form; lists, structs and the like have no text and count as null.
    """
    if not pa.types.is_dictionary(array.type):
        try:
            array = pc.dictionary_encode(array)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            return texts_of([]), np.zeros(len(array), np.intp)
    texts, absent = _as_text(array.dictionary), ~valid_of(array.indices)
    index = numpy_of(array.indices).astype(np.intp)
    if texts.null_count:
        absent |= ~valid_of(texts)[index]
        texts = texts.fill_null(_text(""))
    index[absent] = len(texts)
    return texts, index


def _as_text(values: pa.Array) -> pa.Array:
    type_ = values.type
    if is_text(type_):
        return _as_unicode(values)
    try:
        if pa.types.is_floating(type_):
            values = pc.if_else(pc.is_nan(values), None, values)
        texts = values.cast(pa.string())
        if pa.types.is_time(type_):
            return pc.replace_substring_regex(texts, r"\.0+$", "")
        if pa.types.is_float64(type_) or pa.types.is_float32(type_):  # Arrow writes 1e+10 so
            whole = pc.and_(pc.equal(values, pc.floor(values)), pc.less(pc.abs(values), 2.0**53))
            whole = pc.fill_null(whole, False)
            texts = pc.if_else(
                whole, pc.if_else(whole, values, 0.0).cast(pa.int64()).cast(pa.string()), texts
            )
        return pc.if_else(pc.equal(texts, "-0"), "0", texts)  # zero has no sign
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.nulls(len(values), pa.string())


def _as_unicode(values: pa.Array) -> pa.Array:
    """The texts with every byte that is not UTF-8 replaced: files do hold such texts."""
    try:
        texts = values.cast(pa.string())
        texts.validate(full=True)
        return texts
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        cells = values.cast(pa.binary()).to_pylist()
        decoded = [None if cell is None else cell.decode("utf-8", "replace") for cell in cells]
        return pa.array(decoded, pa.string())


def null_texts(texts: pa.Array, tokens: Sequence[str]) -> Bools:
    """Which texts stand for null: the tokens, with or without blanks around, and empty ones."""
    known = texts_of(["", *tokens])
    return numpy_of(pc.or_(pc.is_in(texts, known), pc.is_in(pc.utf8_trim_whitespace(texts), known)))


def nulled(array: pa.Array | pa.ChunkedArray, tokens: Sequence[str]) -> pa.Array:
    """The cells as texts, null where they are empty or say so."""
    parts: list[pa.Array] = []
    for chunk in flat(array):
        texts, index = distinct_texts(chunk)
        null = np.append(null_texts(texts, tokens), True)
        named = pa.concat_arrays([texts.cast(pa.string()), pa.nulls(1, pa.string())])
        parts.append(named.take(array_of(np.where(null[index], len(texts), index))))
    return pa.concat_arrays(parts)


def present(array: pa.Array, tokens: Sequence[str] = ()) -> Bools:
    """Which cells hold a value, readable or not: neither null nor NaN nor a text that says so."""
    if is_text(array.type):
        texts, index = distinct_texts(array)
        return ~np.append(null_texts(texts, tokens), True)[index]
    array, type_ = _plain(array)
    return floats(array)[1] if pa.types.is_floating(type_) else valid_of(array)


def shown(cell: pa.Scalar) -> str:
    """A cell for a message; also one that no Python value can hold, such as the year 30000."""
    try:
        temporal = pa.types.is_temporal(cell.type)
        return cell.cast(pa.string()).as_py() if temporal else repr(cell.as_py())
    except (ValueError, OverflowError, NotImplementedError):
        return f"a {cell.type}"


def integers(array: pa.Array, tokens: Sequence[str] = ()) -> Read:
    """Read as int64: fractions round to the nearest integer, what is too large to the last one."""
    array, type_ = _plain(array)
    if is_text(type_) or pa.types.is_decimal(type_):  # decimals exactly, digit by digit
        return _through_text(array, tokens, _text_to_integers, np.int64)
    if pa.types.is_boolean(type_) or pa.types.is_signed_integer(type_):
        return numpy_of(array).astype(np.int64), valid_of(array)
    if pa.types.is_unsigned_integer(type_):
        values = np.minimum(numpy_of(array).astype(np.uint64), np.uint64(_INT64.max))
        return values.astype(np.int64), valid_of(array)
    values, valid = floats(array, tokens)
    return round_to_integers(values), valid


def floats(array: pa.Array, tokens: Sequence[str] = (), *, plain: bool = False) -> Read:
    """Read as float64; NaN is null, infinities are kept. Of texts the `PLAIN_NUMBER`s, if `plain`."""
    array, type_ = _plain(array)
    if plain and is_text(type_):
        return _through_text(array, tokens, _plain_text_to_floats, np.float64)
    if is_text(type_) or pa.types.is_decimal(type_):
        return _through_text(array, tokens, _text_to_floats, np.float64)
    if not (is_number(type_) or pa.types.is_boolean(type_)):
        return np.zeros(len(array)), np.zeros(len(array), np.bool_)
    values = numpy_of(array).astype(np.float64)
    return values, valid_of(array) & ~np.isnan(values)


def booleans(array: pa.Array, tokens: Sequence[str] = ()) -> Read:
    """Read as bool: true/t/yes/y/1 and their opposites; a number is true from one half upwards."""
    array, type_ = _plain(array)
    if is_text(type_):
        return _through_text(array, tokens, _text_to_booleans, np.bool_)
    if pa.types.is_boolean(type_):
        return numpy_of(array).astype(np.bool_), valid_of(array)
    values, valid = floats(array)
    return values >= 0.5, valid


def ticks(
    array: pa.Array,
    tokens: Sequence[str] = (),
    *,
    tick: int,
    form: str | None = None,
    zoned: bool = False,
) -> Read:
    """Read as whole ticks of `tick` nanoseconds since 1970-01-01, rounding down.

    Texts, integers and times are read as ISO dates or timestamps ("2014-10-13", "20141013T000000",
    "2014-10-13 12:00:00.5+02:00"), or by `form` (strptime). With `zoned`, a time with an offset
    or time zone counts as the instant it names; without, as the wall clock it shows.
    """
    array, type_ = _plain(array)
    if pa.types.is_timestamp(type_):
        unit = UNITS[type_.unit]
        if type_.tz is not None and not zoned:
            array = _wall_clock(array)
        return _rescale(numpy_of(array.cast(pa.int64())), unit, tick), valid_of(array)
    if pa.types.is_date32(type_):
        days = numpy_of(array.cast(pa.int32())).astype(np.int64)
        return _rescale(days, DAY, tick), valid_of(array)
    if pa.types.is_date64(type_):
        return _rescale(numpy_of(array.cast(pa.int64())), 10**6, tick), valid_of(array)
    if not (is_text(type_) or pa.types.is_integer(type_) or pa.types.is_time(type_)):
        return np.zeros(len(array), np.int64), np.zeros(len(array), np.bool_)

    def parse(texts: pa.Array) -> Read:
        if form is None:
            return _iso_to_ticks(texts, tick, zoned)
        return _form_to_ticks(texts, tick, form, zoned)

    return _through_text(array, tokens, parse, np.int64)


def tick_of(moment: datetime, tick: int) -> int:
    """The tick that holds a moment; a naive one counts as UTC."""
    elapsed = moment.replace(tzinfo=None) - datetime(1970, 1, 1)
    if (offset := moment.utcoffset()) is not None:
        elapsed -= offset
    micros = (elapsed.days * 86_400 + elapsed.seconds) * 10**6 + elapsed.microseconds
    return micros * 1000 // tick


def round_to_integers(values: Floats) -> Whole:
    """Nearest int64 of each float; what lies beyond int64 becomes its last value, NaN zero."""
    limit = 2.0**63
    inside = np.nan_to_num(np.rint(values), nan=0.0, posinf=limit, neginf=-limit)
    result = np.where(np.abs(inside) < limit, inside, 0.0).astype(np.int64)
    return np.where(inside >= limit, _INT64.max, np.where(inside <= -limit, _INT64.min, result))


def _plain(array: pa.Array) -> tuple[pa.Array, pa.DataType]:
    if pa.types.is_dictionary(array.type) and not is_text(array.type):
        array = array.dictionary_decode()
    return array, array.type


def _through_text(
    array: pa.Array, tokens: Sequence[str], parse: Callable[[pa.Array], Read], dtype: type
) -> Read:
    texts, index = distinct_texts(array)
    trimmed = pc.utf8_trim_whitespace(texts)
    values, valid = parse(trimmed)
    if tokens:
        known = texts_of(tokens)
        valid = valid & ~numpy_of(pc.is_in(texts, known)) & ~numpy_of(pc.is_in(trimmed, known))
    values = np.append(values.astype(dtype), dtype(0))
    return values[index], np.append(valid, False)[index]


def _plain_text_to_floats(texts: pa.Array) -> Read:
    plain = pc.match_substring_regex(texts, PLAIN_NUMBER)
    digits = pc.utf8_ltrim(pc.if_else(plain, texts, _text("0")), "+")
    return numpy_of(digits.cast(pa.float64())), numpy_of(plain)


def _text_to_floats(texts: pa.Array) -> Read:
    plain = pc.match_substring_regex(texts, _FLOAT)
    digits = pc.utf8_ltrim(pc.if_else(plain, texts, _text("nan")), "+")
    values = numpy_of(digits.cast(pa.float64())).copy()
    lowered = pc.utf8_ltrim(pc.utf8_lower(texts), "+")
    values[numpy_of(pc.is_in(lowered, texts_of(["inf", "infinity"])))] = np.inf
    values[numpy_of(pc.is_in(lowered, texts_of(["-inf", "-infinity"])))] = -np.inf
    return values, ~np.isnan(values)


def _text_to_integers(texts: pa.Array) -> Read:
    whole = pc.match_substring_regex(texts, _INTEGER)
    digits = pc.utf8_ltrim(pc.if_else(whole, texts, _text("0")), "+-").cast(pa.uint64())
    size = np.minimum(numpy_of(digits), np.uint64(2**63))
    below = np.minimum(size, np.uint64(_INT64.max)).astype(np.int64)
    lowest = np.where(size == 2**63, _INT64.min, -below)
    exact = np.where(numpy_of(pc.starts_with(texts, "-")), lowest, below)
    values, valid = _text_to_floats(texts)
    return np.where(numpy_of(whole), exact, round_to_integers(values)), valid


def _text_to_booleans(texts: pa.Array) -> Read:
    lowered = pc.utf8_lower(texts)
    true = numpy_of(pc.is_in(lowered, texts_of(sorted(TRUE_WORDS))))
    return true, true | numpy_of(pc.is_in(lowered, texts_of(sorted(FALSE_WORDS))))


def _rescale(values: Whole, unit: int, tick: int) -> Whole:
    if tick >= unit:
        return values // (tick // unit)
    factor = unit // tick
    return np.clip(values, -(_INT64.max // factor), _INT64.max // factor) * factor


def _wall_clock(array: pa.Array) -> pa.Array:
    """What a clock in the array's time zone shows; a zone this machine does not know is UTC."""
    try:
        pc.local_timestamp(array_of(np.zeros(1, np.int64)).cast(array.type))
    except (pa.ArrowInvalid, OSError):
        return array
    day = DAY // UNITS[array.type.unit]  # away from the ends of the type, where it would wrap
    moments = np.clip(numpy_of(array.cast(pa.int64())), _INT64.min + day, _INT64.max - day)
    return pc.local_timestamp(array_of(moments, ~valid_of(array)).cast(array.type))


def _iso_to_ticks(texts: pa.Array, tick: int, zoned: bool) -> Read:
    parts = pc.extract_regex(texts, _ISO)
    valid = valid_of(parts)

    def number(key: str) -> Whole:
        part = pc.struct_field(parts, key).fill_null(_text("0"))
        part = pc.if_else(pc.equal(part, _text("")), _text("0"), part)
        return numpy_of(part.cast(pa.int64()))

    year, month, day = number("y"), number("m"), number("d")
    hour, minute, second = number("H"), number("M"), number("S")
    valid &= (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    valid &= (hour < 24) & (minute < 60) & (second < 60)
    months = np.where(valid, (year - 1970) * 12 + month - 1, 0)
    dates = months.astype("M8[M]").astype("M8[D]") + np.where(valid, day - 1, 0)
    valid &= dates.astype("M8[M]").astype(np.int64) == months
    fraction = pc.utf8_rpad(pc.struct_field(parts, "f").fill_null(_text("")), 9, "0")
    nanos = numpy_of(fraction.cast(pa.int64())) + (hour * 3600 + minute * 60 + second) * 10**9
    if zoned:
        nanos = nanos - _offsets(pc.struct_field(parts, "z").fill_null(_text(""))) * 10**9
    return _rescale(dates.astype(np.int64), DAY, tick) + nanos // tick, valid


def _offsets(zones: pa.Array) -> Whole:
    """Seconds east of Greenwich of "Z", "+02", "+0200", "+02:00" or ""."""
    digits = pc.replace_substring_regex(zones, r"[^0-9]", "")
    digits = numpy_of(pc.utf8_rpad(digits, 4, "0").cast(pa.int64()))
    seconds = (digits // 100) * 3600 + (digits % 100) * 60
    return np.where(numpy_of(pc.starts_with(zones, "-")), -seconds, seconds)


def _form_to_ticks(texts: pa.Array, tick: int, form: str, zoned: bool) -> Read:
    if re.search("%[fzZpcxX]", form):  # what Arrow's strptime does not know
        found = [_strptime(text, form, zoned) for text in texts.to_pylist()]
        values = np.array([0 if t is None else tick_of(t, tick) for t in found], np.int64)
        return values, np.array([t is not None for t in found], np.bool_)
    moments = pc.strptime(texts, format=form, unit="us", error_is_null=True)
    return _rescale(numpy_of(moments.cast(pa.int64())), 10**3, tick), valid_of(moments)


def _strptime(text: str, form: str, zoned: bool) -> datetime | None:
    try:
        moment = datetime.strptime(text, form)
    except ValueError:
        return None
    return moment if zoned else moment.replace(tzinfo=None)
