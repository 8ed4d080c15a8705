"""Numbers and domains as people read them."""

from datetime import date
from fractions import Fraction

import pytest

from understudy.schema import Boolean, Category, Date, Identifier, Incomplete, Integer, Number, Text
from understudy.wording import (
    between,
    bound,
    byte_size,
    domain,
    duration,
    left,
    nothing,
    number,
    percent,
    points,
    unbroken,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (0.1234, "0.123"),
        (Fraction(1, 3), "0.333"),
        (999.6, "1,000"),
        (12_345.6, "12,346"),
        (1e-5, "1e-05"),
        (2.5e7, "2.5e+07"),
    ],
)
def test_numbers_have_three_digits_that_mean_something(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0, "0 %"), (0.00001, "0.001 %"), (0.1234, "12 %"), (0.996, "100 %"), (1.5, "150 %")],
)
def test_shares_have_two(share, shown):
    assert percent(share) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0123, "≤ 1.23 percentage points"),
        (0.012301, "≤ 1.24 percentage points"),
        (0.9999, "≤ 99.99 percentage points"),
        (0.99996, "≤ 100.00 percentage points, which says nothing here"),
        (1, "≤ 100.00 percentage points, which says nothing here"),
        (17.5, "≤ 100.00 percentage points, which says nothing here"),
    ],
)
def test_a_bound_is_rounded_up_and_one_says_nothing(share, shown):
    assert bound(share) == shown
    assert bound(share, "at most") == shown.replace("≤", "at most")
    assert shown.endswith(nothing(share))


def test_errors_of_shares_are_in_percentage_points():
    assert points(0.0084) == "0.84 percentage points"
    assert points(0.01) == "1 percentage point"
    assert points(0.19) == "19 percentage points"


def test_an_interval_is_rounded_outwards():
    assert between(0.123456, 0.654321) == "between 12.34 % and 65.44 %"
    assert between(0.12, 0.65) == "between 12.00 % and 65.00 %"


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_500, "1.5 kB"), (2e9, "2 GB"), (3e15, "3e+03 TB")],
)
def test_bytes_are_decimal(size, shown):
    assert byte_size(size) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.4, "0 s"), (99, "99 s"), (600, "10 min"), (7_200, "2.0 h")]
)
def test_times(seconds, shown):
    assert duration(seconds) == shown


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (Category("c", ("a", "b"), nullable=True), "2 values: a, b or null"),
        (Category("c", ("a",), other="rest"), "1 value + OTHER: a"),
        (
            Category("c", tuple(f"a long value {n}" for n in range(9))),
            "9 values: a long value 0, …",
        ),
        (Boolean("b"), "true, false"),
        (Integer("i", 0, 99_999, bins=10), "0 to 99,999 in 10 bins"),
        (Number("n", 0, 1, bins=4), "0 to 1 in 4 bins"),
        (Date("d", date(2024, 1, 1), date(2024, 1, 31)), "2024-01-01 to 2024-01-31"),
        (Identifier("k"), "left out"),
        (Identifier("k", "K-{:04d}"), "written anew as K-{:04d}"),
        (Text("t"), "not modelled, left out"),
    ],
)
def test_what_a_column_may_hold_is_said_in_a_few_words(column, shown):
    assert domain(column) == shown


def test_what_is_missing_is_named():
    column = Incomplete("x", wanted="integer", missing=("lower", "upper"))
    assert domain(column) == "an integer; to fill in: lower, upper"


def test_all_is_left_only_where_nothing_is_spent():
    told = [left(share) for share in (1.0, 0.99998, 0.995, 0.99, 0.0)]
    assert told == ["100 %", "more than 99 %", "more than 99 %", "99 %", "0 %"]


def test_no_line_ends_inside_a_figure():
    assert unbroken("ε = 1: 50 % of the rows") == "ε\xa0=\xa01: 50\xa0% of the rows"
