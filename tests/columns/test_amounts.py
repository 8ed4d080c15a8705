"""Columns as numbers: what has a point, and sums of them."""

from datetime import date
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from understudy.columns import Boolean, Category, Date, Datetime, Integer, Number
from understudy.columns.amounts import DAY, NUMBER, Linear, amounts, points_of
from understudy.errors import SchemaError


@pytest.mark.parametrize(
    ("column", "unit", "decimals", "lows"),
    [
        (Integer("x", 0, 9, 2), NUMBER, 0, [0, 5]),
        (Number("x", 0, 1, 2, decimals=2), NUMBER, 2, [0, 50]),
        (Number("x", 0, 1, 2), NUMBER, None, [0.0, 0.5]),
        (Date("x", date(1970, 1, 2), date(1970, 1, 5), 2), DAY, 0, [1, 3]),
        (Category("x", (3, 1, 2), 99), NUMBER, 0, [3, 1, 2]),
        (Category("x", (0.5, 1.5)), NUMBER, None, [0.5, 1.5]),
        (Category("x", (date(1970, 1, 3),)), DAY, 0, [2]),
    ],
)
def test_cells_are_numbers(column, unit, decimals, lows):
    found = amounts(column)
    assert (found.unit, found.decimals, found.lows.tolist()) == (unit, decimals, lows)


def test_what_has_no_number():
    assert amounts(Category("x", ("a", "b"))) is None
    assert amounts(Category("x", (True, False))) is None
    assert amounts(Boolean("x")) is None


def test_moments_are_compared_by_their_resolution():
    days = {"lower": "2020-01-01T00:00:00", "upper": "2021-01-01T00:00:00", "bins": 2}
    one, two = (amounts(Datetime("x", **days, resolution=r)) for r in ("second", "hour"))
    assert one.unit != two.unit


def test_nulls_and_other_have_no_point():
    column = Category("x", (1, 5), 99, nullable=True)
    points, there = points_of(column, pa.array([5, 99, None, 1, 7]))
    assert there.tolist() == [True, False, False, True, False]
    assert points[there].tolist() == [5, 1]
    column = Number("x", 0, 10, 5, decimals=1, nullable=True)
    points, there = points_of(column, pa.chunked_array([[0.3, None], [2.5]]))
    assert there.tolist() == [True, False, True]
    assert points[there].tolist() == [3, 25]


def test_sums_are_exact():
    """0.1 + 0.2 is 0.3 where the decimals are known."""
    linear = Linear((("a", 1), ("b", 1), ("c", -1)), Fraction("0.25"))
    parts = [amounts(Number(n, 0, 10, 2, decimals=d)) for n, d in (("a", 1), ("b", 1), ("c", 0))]
    assert linear.decimals(parts) == 2
    total = linear.of(parts, [np.array([1]), np.array([2]), np.array([4])])
    assert total.tolist() == [10 + 20 - 400 + 25]


def test_sums_of_doubles():
    linear = Linear((("a", 1), ("b", -2)))
    parts = [amounts(Number("a", 0, 1, 2)), amounts(Integer("b", 0, 9))]
    assert linear.decimals(parts) is None
    assert linear.of(parts, [np.array([0.5]), np.array([3])]).tolist() == [-5.5]


def test_ranges_hold_every_sum():
    linear = Linear((("a", 1), ("b", -1)), Fraction(3))
    parts = [amounts(Integer("a", 0, 9, 2)), amounts(Integer("b", -5, 5, 1))]
    low, high = linear.range(parts, [(p.lows, p.highs) for p in parts])
    assert (low.tolist(), high.tolist()) == ([-2, 3], [12, 17])


def test_sums_of_sums_are_written_out():
    total = Linear((("a", 1), ("b", 1)), Fraction(1))
    twice = Linear((("total", 2), ("a", -1))).expanded({"total": total})
    assert dict(twice.terms) == {"a": 1, "b": 2}
    assert twice.constant == 2
    assert (total - total).terms == ()
    assert str(Linear((("a", 1), ("b", -1)))) == "a - b"


def test_sums_that_leave_64_bits():
    far, cents = amounts(Integer("a", 0, 10**18, 2)), amounts(Number("b", 0, 1, 2, decimals=2))
    assert Linear((("a", 1),)).fits([far])
    assert Linear((("a", 9),)).fits([far])
    assert not Linear((("a", -10),)).fits([far])
    assert not Linear((("a", 1), ("b", 1))).fits([far, cents])
    assert Linear((("x", 99),)).fits([amounts(Number("x", -1e300, 1e300, 2))])


def test_a_constant_of_too_many_decimals():
    with pytest.raises(SchemaError, match="more than 39 decimals"):
        Linear((("a", 1),), Fraction(1, 10**50)).decimals([amounts(Integer("a", 0, 9))])
