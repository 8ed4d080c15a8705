"""Columns and arrays of every kind, for the property tests of schemas."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
from hypothesis import strategies as st

from understudy.errors import SchemaError
from understudy.schema import Boolean, Category, Date, Datetime, Integer, Number

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=6)
NAMES = TEXTS


def _values():
    finite = st.floats(allow_nan=False, allow_infinity=False, width=32)
    return st.one_of(
        st.lists(TEXTS.filter(str.strip), min_size=1, max_size=8, unique=True),
        st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=8, unique=True),
        st.lists(finite.map(lambda x: x + 0.0), min_size=1, max_size=8, unique=True),
        st.lists(st.dates(), min_size=1, max_size=8, unique=True),
        st.permutations([False, True]),
    )


@st.composite
def categories(draw):
    values = draw(_values())
    other = None
    if not isinstance(values[0], bool) and draw(st.booleans()):
        other = {str: "OTHER", int: 2**41, float: 0.125, date: date(1, 1, 1)}[type(values[0])]
    dtypes = {
        str: [
            "string",
            "large_string",
            "string_view",
            "binary",
            "dictionary<values=string, indices=int16, ordered=0>",
        ],
        int: ["int64", "string", "float64", "dictionary<values=int64, indices=int8, ordered=0>"],
        float: ["float64"],
        date: ["date32[day]", "date64[ms]"],
        bool: ["bool", "string"],
    }[type(values[0])]
    if other in values:
        other = None
    return Category(
        draw(NAMES),
        tuple(values),
        other,
        draw(st.booleans()),
        dtype=draw(st.sampled_from(dtypes)),
        nullable=draw(st.booleans()),
    )


@st.composite
def integers(draw):
    lower = draw(st.integers(-(2**63), 2**63 - 2000) | st.integers(-300, 300))
    upper = lower + draw(st.integers(1, 999))
    facts = {}
    if draw(st.booleans()):
        facts["bins"] = draw(st.integers(1, upper - lower + 1))
    elif draw(st.booleans()):
        inner = draw(st.sets(st.integers(lower, upper), max_size=6))
        facts["edges"] = tuple(sorted({lower, upper, *inner}))
    dtypes = ["int64", "string", "string_view", "large_binary"]
    if lower >= -128 and upper <= 127:
        dtypes.append("int8")
    if abs(lower) < 2**50:
        dtypes += ["float64", "decimal128(20, 1)"]
    if lower >= 0:
        dtypes.append("uint64")
    dtype = draw(st.sampled_from(dtypes))
    if abs(lower) < 2**50:  # as people write them, numbers are read as floats
        facts["format"] = draw(st.sampled_from([None, "#,##0", "€0.00", "0 kg", "# ##0,0 %"]))
    return Integer(draw(NAMES), lower, upper, **facts, dtype=dtype, nullable=draw(st.booleans()))


@st.composite
def numbers(draw):
    decimals = draw(st.none() | st.integers(0, 4))
    lower = draw(st.integers(-1000, 1000)) / draw(st.sampled_from([1, 3, 7, 10, 1000]))
    width = draw(st.integers(1, 5000)) / draw(st.sampled_from([1, 3, 10, 1000]))
    dtype = draw(st.sampled_from(["float64", "float32", "string", "decimal128(20, 6)"]))
    facts = {"decimals": decimals, "dtype": dtype, "nullable": draw(st.booleans())}
    if decimals is not None:
        facts["format"] = draw(st.sampled_from([None, "#.##0,0000 €", "$0.0000"]))
    bins = draw(st.integers(1, 40))
    try:
        return Number(draw(NAMES), lower, lower + width, bins, **facts)
    except SchemaError:  # bins finer than the decimals, or than the type
        return Number(draw(NAMES), -1000.0, 1000.0, bins, **facts)


@st.composite
def dates(draw):
    lower = draw(st.dates(date(1000, 1, 1), date(9000, 1, 1)))
    upper = lower + timedelta(days=draw(st.integers(1, 999)))
    dtype, form = draw(
        st.sampled_from(
            [
                ("date32[day]", None),
                ("date64[ms]", None),
                ("timestamp[s]", None),
                ("timestamp[us]", None),
                ("string", None),
                ("string", "%d/%m/%Y"),
                ("large_string", "%Y%m%dT%H%M%S"),
                ("string_view", None),
            ]
        )
    )
    bins = draw(st.none() | st.integers(1, (upper - lower).days))
    nullable = draw(st.booleans())
    return Date(draw(NAMES), lower, upper, bins, format=form, dtype=dtype, nullable=nullable)


@st.composite
def datetimes(draw):
    lower = draw(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))).replace(microsecond=0)
    upper = lower + timedelta(seconds=draw(st.integers(1000, 10**8)))
    resolution, dtypes = draw(
        st.sampled_from(
            [
                ("second", ["timestamp[s]", "timestamp[us, tz=Europe/Berlin]", "string"]),
                ("minute", ["timestamp[s]", "timestamp[ns]"]),
                ("millisecond", ["timestamp[ms]", "timestamp[ns, tz=UTC]"]),
                ("microsecond", ["timestamp[us]", "string"]),
            ]
        )
    )
    return Datetime(
        draw(NAMES),
        lower,
        upper,
        draw(st.integers(1, 16)),
        resolution=resolution,
        dtype=draw(st.sampled_from(dtypes)),
        nullable=draw(st.booleans()),
    )


@st.composite
def booleans(draw):
    dtype = draw(st.sampled_from(["bool", "int8", "string", "string_view"]))
    return Boolean(draw(NAMES), dtype=dtype, nullable=draw(st.booleans()))


@st.composite
def with_special(draw, ordered):
    """The column with special values among its own and beside them, where its type holds them."""
    column = draw(ordered)
    far = {int: 2**40, float: 4096.0}.get(type(column.lower), column.upper)
    inside = [column.lower, column.upper, *(column.edges or ())[1:2]]
    words = ["N", "not asked"] if column.dtype == "string" else []
    chosen = draw(st.lists(st.sampled_from([*inside, far, *words]), unique=True, max_size=3))
    try:
        return replace(column, special=tuple(chosen))
    except SchemaError:
        return column


def columns():
    ordered = (with_special(of) for of in (integers(), numbers(), dates(), datetimes()))
    return st.one_of(categories(), booleans(), *ordered)


_CELLS = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=8)
    | st.sampled_from(["12", "1e400", "-inf", "nan", " 7 ", "2014-02-30", "20140131T000000", "?"]),
    pa.large_string(): st.text(max_size=8),
    pa.string_view(): st.text(max_size=8),
    pa.binary(): st.binary(max_size=8),
    pa.binary(2): st.binary(min_size=2, max_size=2),
    pa.date32(): st.dates(),
    pa.date64(): st.dates(),
    pa.timestamp("s"): st.datetimes(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("ms", "America/New_York"): st.datetimes(
        datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)
    ),
    pa.time64("us"): st.times(),
    pa.duration("us"): st.timedeltas(timedelta(days=-9999), timedelta(days=9999)),
    pa.decimal128(10, 3): st.decimals(-1000, 1000, places=3).map(Decimal),
    pa.decimal256(50, 3): st.decimals(-1000, 1000, places=3).map(Decimal),
    pa.list_(pa.int64()): st.lists(st.integers(0, 9), max_size=2),
    pa.struct({"a": pa.int64()}): st.fixed_dictionaries({"a": st.integers(0, 9)}),
    pa.null(): st.none(),
}


_RAW = {
    pa.timestamp("s"): pa.int64(),
    pa.timestamp("us", "America/New_York"): pa.int64(),
    pa.timestamp("s", "Asia/Tokyo"): pa.int64(),
    pa.timestamp("s", "No/Where"): pa.int64(),
    pa.date32(): pa.int32(),
    pa.date64(): pa.int64(),
    pa.string(): pa.binary(),
    pa.large_string(): pa.binary(),
}
"""Types whose cells can hold what no Python value says: far instants, texts that are not UTF-8."""


@st.composite
def _plain_arrays(draw):
    if draw(st.booleans()):
        type_ = draw(st.sampled_from(list(_CELLS)))
        return pa.array(draw(st.lists(st.none() | _CELLS[type_], max_size=6)), type_)
    type_ = draw(st.sampled_from(list(_RAW)))
    cells = _CELLS[_RAW[type_]] if _RAW[type_] in _CELLS else st.integers(-(2**31), 2**31 - 1)
    raw = pa.array(draw(st.lists(st.none() | cells, max_size=6)), _RAW[type_])
    if pa.types.is_binary(raw.type):
        return pa.compute.cast(raw, type_, safe=False)
    return raw.cast(type_)


@st.composite
def arrays(draw):
    """An Arrow array of any type, plain, chunked, dictionary or run-end encoded."""
    array = draw(_plain_arrays())
    type_ = array.type
    shape = draw(st.sampled_from(["plain", "chunks", "no chunks", "dictionary", "runs", "slice"]))
    nested = pa.types.is_nested(type_) or pa.types.is_null(type_)
    if shape == "chunks":
        return pa.chunked_array([array, array.slice(1), array])
    if shape == "no chunks":
        return pa.chunked_array([], type_)
    if shape == "dictionary" and not nested and not pa.types.is_string_view(type_):
        return array.dictionary_encode()
    if shape == "runs" and not nested and not pa.types.is_string_view(type_):
        return pa.compute.run_end_encode(array)
    return array.slice(1) if shape == "slice" else array
