"""A form is the encoding itself, written down: both give the same code to every value."""

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.thorough import some
from understudy.columns.forms import ANY_DECIMAL, BLANKS, Pieces, Spelled, Words, form, unit_steps
from understudy.columns.reading import PLAIN_NUMBER
from understudy.errors import SchemaError
from understudy.schema import Boolean, Category, Date, Datetime, Integer, Number

INT, DOUBLE, TEXT = pa.int64(), pa.float64(), pa.string()
CENTS, DAYS = pa.decimal128(12, 2), pa.date32()
MOMENT, INSTANT = pa.timestamp("us"), pa.timestamp("us", "UTC")

NUMBERS = [
    Integer("x", 0, 9, nullable=True),
    Integer("x", -5, 700, bins=9),
    Integer("x", edges=(-3, 0, 1, 2, 100)),
    Integer("x", -(2**63), 2**63 - 1, bins=3),
    Number("x", 0, 1, bins=10, nullable=True),
    Number("x", -1, 3, edges=(-1, 0.1, 0.30000000000000004, 3)),
    Number("x", 0, 10, bins=7, decimals=1),
    Number("x", 0, 10, bins=7, dtype="float32"),
    Integer("x", 0, 9, special=(4, 9, 99), nullable=True),
    Integer("x", -5, 700, bins=9, special=("N", 400, -1)),
    Number("x", 0, 1, bins=10, special=(0.25, -9, 0), nullable=True),
    Number("x", 0, 10, bins=7, decimals=1, special=(2.5,)),
    Boolean("x", nullable=True),
    Category("x", (3, 1, 2), nullable=True),
    Category("x", (3, 1, 2), other=9),
    Category("x", (0.5, -1.25, 0.1)),
    Category("x", (True, False), nullable=True),
    Category("x", ("1", "2.5", "-0", "0", "true", "1.00", "x"), other=True, nullable=True),
]
TIMES = [
    Date("x", date(2024, 1, 1), date(2024, 12, 31), bins=5, nullable=True),
    Date("x", date(1, 1, 1), date(9999, 12, 31), bins=4),
    Date("x", edges=(date(1969, 12, 30), date(1970, 1, 1), date(1970, 1, 2), date(1980, 1, 1))),
    Datetime("x", datetime(2024, 1, 1), datetime(2024, 1, 2), bins=24, nullable=True),
    Datetime("x", datetime(2024, 1, 1), datetime(2024, 1, 2), bins=7, resolution="microsecond"),
    Category("x", (date(2024, 1, 1), date(2024, 1, 3)), other=date(1900, 1, 1)),
]
ZONED = [
    Datetime("x", datetime(2024, 1, 1), datetime(2024, 1, 2), bins=7, dtype="timestamp[us, tz=UTC]")
]
TEXTS = [
    Category("x", ("F", "M", " padded ", "?'\";--", "é"), other=True, nullable=True),
    Category("x", ("F", "M"), nullable=True, null_values=("?", "n/a")),
    Category("x", ("F", "M")),
    Boolean("x", nullable=True),
    Boolean("x", null_values=("y",), nullable=True),
    Category("x", ("F", " p*", "T*", "n/*"), other=True, prefixes=(2, 1), nullable=True),
    Category("x", (True, False), nullable=True),
]


written_down = cache(form)


def look_up(found, values):
    """What an engine does with a form, one value at a time."""
    codes = []
    for x in values:
        if x is None or x != x:  # NaN
            codes.append(found.missing)
        elif isinstance(found, Pieces):
            codes.append(found.codes[sum(start <= x for start in found.starts)])
        elif isinstance(found, Spelled):
            bare = x.strip(BLANKS)
            if x in found.blanks or bare in found.blanks:
                codes.append(found.missing)
            elif bare in found.words:
                codes.append(found.words[bare])
            elif re.fullmatch(PLAIN_NUMBER, bare):
                codes += look_up(found.pieces, [float(bare)])
            else:
                codes.append(found.missing)
        else:
            bare = x.strip(BLANKS)
            if x in found.exact:
                codes.append(found.exact[x])
            elif x in found.blanks or bare in found.blanks:
                codes.append(found.missing)
            elif bare in found.trimmed:
                codes.append(found.trimmed[bare])
            else:
                above = [codes_[x[:n]] for n, codes_ in found.parents if x[:n] in codes_]
                codes.append([*above, found.otherwise][0])
    return codes


def agree(column, type_, values, tokens=()):
    array = pa.array(values, type_)
    found = written_down(column, type_, tuple(tokens))
    assert look_up(found, array.to_pylist()) == column.encode(array, tokens).tolist()


def near(found):
    """The starts, and the doubles or whole numbers on either side."""
    values = [x for x in found.starts if not isinstance(x, date)]
    if found.type == DOUBLE:
        return [y for x in values for y in (x, np.nextafter(x, -np.inf), np.nextafter(x, np.inf))]
    return [y for x in values for y in (x - 1, x, x + 1) if -(2**63) <= y < 2**63]


whole = st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 800)
doubles = st.floats() | st.floats(-6, 12) | st.integers(-30, 30).map(lambda i: i / 4)
cents = st.integers(-(10**12) + 1, 10**12 - 1) | st.integers(-700, 80_000)
moments = st.datetimes() | st.datetimes(datetime(2023, 12, 31), datetime(2024, 1, 4))
days = st.dates() | st.dates(date(2023, 12, 1), date(2025, 2, 1))
WRITTEN = ["F", "M", " F", "", "  ", "?", " ? ", "n/a", "TRUE", " yes\n", "Y", "0.0"]
WRITTEN += ["é", " padded ", "?'\";--", "\x85no\u3000", "F\x00", "f"]
texts = st.text() | st.sampled_from(WRITTEN)
few = settings(max_examples=20, deadline=None)


@pytest.mark.parametrize("column", NUMBERS, ids=repr)
@given(wholes=st.lists(whole | st.none()), floats=st.lists(doubles | st.none()))
@few
def test_whole_numbers_and_doubles(column, wholes, floats):
    agree(column, INT, [*wholes, *near(written_down(column, INT))])
    agree(column, DOUBLE, [*floats, -0.0, *near(written_down(column, DOUBLE))])
    agree(column, pa.bool_(), [True, False, None])


@pytest.mark.parametrize("column", some(NUMBERS, 3), ids=repr)
@given(units=st.lists(cents))
@few
def test_decimals(column, units):
    values = [Decimal(unit).scaleb(-2) for unit in units] + [None]
    agree(column, CENTS, values)
    agree(column, pa.decimal128(9, 0), [Decimal(unit % 10**8) for unit in units])
    if not isinstance(column, Category) or not isinstance(column.values[0], str):
        agree(column, ANY_DECIMAL, [*values, Decimal("0.1"), Decimal("0.30000000000000001")])


@pytest.mark.parametrize("column", TIMES, ids=repr)
@given(instants=st.lists(moments), when=st.lists(days))
@few
def test_days_and_moments(column, instants, when):
    edges = [x for x in written_down(column, MOMENT).starts if x > datetime(1, 1, 2)]
    agree(
        column, MOMENT, [*instants, None, *edges, *(x - timedelta(microseconds=1) for x in edges)]
    )
    agree(column, INSTANT, [x.replace(tzinfo=UTC) for x in [*instants, *edges]])
    agree(column, DAYS, [*when, None, *written_down(column, DAYS).starts])


@pytest.mark.parametrize("column", ZONED, ids=repr)
@given(instants=st.lists(moments))
@few
def test_instants(column, instants):
    agree(column, INSTANT, [x.replace(tzinfo=UTC) for x in instants])


@pytest.mark.parametrize("column", TEXTS, ids=repr)
@given(values=st.lists(texts | st.none()), tokens=st.lists(texts, max_size=2))
@example(values=["F", "?", "y", "Y "], tokens=["F"])
@few
def test_texts(column, values, tokens):
    tokens = [token for token in tokens if token not in getattr(column, "listed", ())]
    agree(column, TEXT, values, tokens)


SPELLED = [
    Integer("x", 0, 9, special=("N", "n/a", 4, 99), nullable=True),
    Number("x", -1, 3, edges=(-1, 0, 1.5, 3), special=("N", "-", 0)),
    Number("x", 0, 10, bins=7, decimals=1, special=("not asked", 2.5), nullable=True),
]
NUMERALS = ["N", " N\n", "n", "n/a", "-", "not asked", "4", "4.4", "+4.0e0", "99", "-0", "2.5", "0"]
NUMERALS += [
    "1e5",
    "1e-5",
    "5e-324",
    "1e999",
    "inf",
    "nan",
    ".5",
    "5.",
    "1e",
    "0x1",
    "1_0",
    "٣",
    "?",
]


@pytest.mark.parametrize("column", SPELLED, ids=repr)
@given(values=st.lists(texts | doubles.map(repr) | st.none()))
@few
def test_numbers_and_special_values_as_texts(column, values):
    agree(column, TEXT, [*values, *NUMERALS], ["?"])


def test_dates_as_texts_of_a_category():
    column = Category("x", ("2024-02-29", "2024-2-1", "soon"), nullable=True)
    agree(column, DAYS, [date(2024, 2, 29), date(2024, 2, 28), date(2024, 3, 1), None])


def test_the_blanks_are_what_arrow_trims():
    every = [chr(c) for c in range(0x3100) if not 0xD800 <= c < 0xE000]
    bare = pc.utf8_trim_whitespace(pa.array(every)).to_pylist()
    assert [c for c, left in zip(every, bare, strict=True) if left == ""] == list(BLANKS)


def test_whole_numbers_one_by_one_are_a_subtraction():
    assert unit_steps(form(Integer("x", -2, 40), INT)) == (-2, 40)
    assert unit_steps(form(Integer("x", -2, 40, bins=3), INT)) is None
    assert unit_steps(form(Category("x", (2, 1)), INT)) is None


def test_a_large_column_is_written_down_quickly():
    found = form(Integer("x", 0, 10**9, bins=10_000), DOUBLE)
    assert len(found.starts) == 9_999


@pytest.mark.parametrize(
    ("column", "type_"),
    [
        (Integer("x", 0, 9), TEXT),
        (Integer("x", 0, 9), DAYS),
        (Date("x", date(2024, 1, 1), date(2024, 12, 31), bins=5), INT),
        (Date("x", date(2024, 1, 1), date(2024, 12, 31), bins=5), TEXT),
        (Boolean("x"), DAYS),
        (Category("x", ("a",)), MOMENT),
        (Category("x", ("a",)), ANY_DECIMAL),
        (Category("x", (1, 2)), TEXT),
        (Category("x", ("a",)), pa.binary()),
    ],
)
def test_types_that_are_not_read_so(column, type_):
    with pytest.raises(SchemaError, match="column 'x' is of type"):
        form(column, type_)


def test_forms_are_of_two_kinds():
    assert isinstance(form(TEXTS[0], TEXT), Words)
    assert isinstance(form(NUMBERS[0], INT), Pieces)


def test_texts_that_are_enormous_numbers_are_no_whole_ones():
    column = Category("x", ("1", "1e999999999", "1e-999999999"), other=True)
    assert form(column, pa.int64()).starts == (1, 2)


def test_negative_decimals_between_two_doubles_are_read_as_the_even_one():
    column = Integer("x", -(2**63), 2**63 - 1, 5)
    type_ = pa.decimal128(38, 1)
    found = form(column, type_)
    for text in ("-5534023222112865792.0", "-5534023222112865791.9", "5534023222112865792.0"):
        code = found.codes[sum(start <= Decimal(text) for start in found.starts)]
        assert code == column.encode(pa.array([Decimal(text)], type_))[0]
