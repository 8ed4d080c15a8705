from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from understudy.columns.binned import Cells


@st.composite
def integer_cells(draw):
    lows = sorted(draw(st.sets(st.integers(-20, 20), min_size=1, max_size=6)))
    highs = [*(low - 1 for low in lows[1:]), lows[-1] + draw(st.integers(0, 5))]
    return Cells(np.array(lows), np.array(highs))


@given(integer_cells(), st.lists(st.integers(-60, 60).map(lambda n: Fraction(n, 2)), max_size=8))
def test_membership_against_brute_force(cells, literals):
    inner, outer = cells.among(literals)
    for i, (low, high) in enumerate(zip(cells.lows, cells.highs, strict=True)):
        held = [point in literals for point in range(low, high + 1)]
        assert inner[i] == all(held)
        assert outer[i] == any(held)


@given(
    integer_cells(),
    st.sampled_from(["<", "<=", ">", ">="]),
    st.integers(-60, 60).map(lambda n: Fraction(n, 2)),
)
def test_sides_against_brute_force(cells, op, literal):
    inner, outer = cells.ordered(op, literal)
    holds = {
        "<": lambda x: x < literal,
        "<=": lambda x: x <= literal,
        ">": lambda x: x > literal,
        ">=": lambda x: x >= literal,
    }[op]
    for i, (low, high) in enumerate(zip(cells.lows, cells.highs, strict=True)):
        held = [holds(point) for point in range(low, high + 1)]
        assert inner[i] == all(held)
        assert outer[i] == any(held)


@given(integer_cells(), st.lists(st.integers(-40, 40), max_size=9))
def test_points_fall_into_the_nearest_cell(cells, points):
    found = cells.find(np.array(points, np.int64))
    for point, cell in zip(np.clip(points, cells.lows[0], cells.highs[-1]), found, strict=True):
        assert cells.lows[cell] <= point <= cells.highs[cell]


def test_the_widest_cell():
    limits = np.iinfo(np.int64)
    cells = Cells(np.array([limits.min]), np.array([limits.max]))
    drawn = cells.draw(np.zeros(1000, int), np.random.default_rng(0))
    assert (drawn < 0).any()
    assert (drawn > 0).any()
    assert cells.among([Fraction(0)])[0].tolist() == [False]
    far = Cells(np.array([2**54 + 1]), np.array([2**54 + 2]))  # one double, two integers
    assert far.among([Fraction(2**54 + 1)])[0].tolist() == [False]
    assert cells.ordered("<", Fraction(2**70))[0].tolist() == [True]
