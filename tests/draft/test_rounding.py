"""Round bounds and cuts: they enclose what was seen, and say no more than round numbers do."""

from datetime import date
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from understudy.draft.rounding import amount_edges, calendar_edges, fewest_decimals, nice_bounds

FLOATS = st.floats(-1e9, 1e9).map(lambda x: round(x, 3))


@given(FLOATS, FLOATS)
def test_bounds_enclose_by_at_most_a_tenth(low, high):
    if low == high:
        return
    low, high = sorted((low, high))
    lower, upper = nice_bounds(low, high)
    assert lower <= Fraction(repr(low)) < Fraction(repr(high)) <= upper
    assert upper - lower <= (Fraction(repr(high)) - Fraction(repr(low))) * Fraction(5, 4)


def test_bounds_are_round():
    assert nice_bounds(17, 90) == (15, 90)
    assert nice_bounds(0.012, 0.98) == (0, 1)


def test_amounts_keep_zero_apart_and_even_ones_are_not_cut():
    values = np.array([0.0, 10, 20, 500, 90_000])
    edges = amount_edges(values, np.array([50, 9, 9, 9, 1]), Fraction(1))
    assert edges[:2] == [0, 1]
    assert edges[-1] >= 90_000
    assert amount_edges(np.arange(1.0, 99), np.ones(98, int), None) is None
    assert amount_edges(np.array([-1.0, 2, 3]), np.ones(3, int), None) is None


def test_decimals():
    assert fewest_decimals(np.array([1.5, 2.25])) == 2
    assert fewest_decimals(np.array([np.pi])) is None


@given(st.dates(), st.dates())
def test_calendars_cover_all_days_in_at_most_forty_two_steps(one, other):
    first, last = sorted((one, other))
    edges = calendar_edges(first, last)
    assert edges[0] <= first
    assert edges[-1] >= last
    assert list(edges) == sorted(set(edges))
    assert len(edges) <= 43
    assert calendar_edges(date(2024, 2, 3), date(2024, 4, 5))[0] == date(2024, 2, 1)
