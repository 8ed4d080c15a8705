import re
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.columns import Date, Datetime, Integer, Number
from understudy.columns.binned import Cells
from understudy.columns.shape import Search
from understudy.errors import SchemaError, WorkloadError

DAY = date(2000, 1, 1)


@st.composite
def integer_cells(draw):
    lows = sorted(draw(st.sets(st.integers(-20, 20), min_size=1, max_size=6)))
    highs = [*(low - 1 for low in lows[1:]), lows[-1] + draw(st.integers(0, 5))]
    return Cells(np.array(lows), np.array(highs))


@given(integer_cells(), st.lists(st.integers(-60, 60).map(lambda n: Fraction(n, 2)), max_size=8))
def test_membership_against_brute_force(cells, literals):
    inner, outer = cells.compared("in", literals)
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
    inner, outer = cells.compared(op, [literal])
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
    assert cells.compared("in", [Fraction(0)])[0].tolist() == [False]
    far = Cells(np.array([2**54 + 1]), np.array([2**54 + 2]))  # one double, two integers
    assert far.compared("in", [Fraction(2**54 + 1)])[0].tolist() == [False]
    assert cells.compared("<", [Fraction(2**70)])[0].tolist() == [True]


SPECIAL = [
    Integer("x", 0, 120, special=(99,), nullable=True),
    Integer("x", 0, 120, bins=7, special=("N", 99, 999), nullable=True),
    Integer("x", edges=(0, 1, 2, 50, 99, 100, 120), special=(0, 99, -9, 50)),
    Number("x", 0, 100, bins=10, special=("N", -9, 50, 0)),
    Number("x", 0, 100, bins=10, decimals=2, special=(-9.25, 50)),
    Number("x", 0, 100, bins=10, special=(10, 55.5, 100), dtype="float16"),
    Date("x", DAY, date(2001, 1, 1), bins=12, special=(date(9999, 12, 31), DAY)),
    Date("x", DAY, date(2001, 1, 1), bins=12, special=("unknown", DAY), format="%d/%m/%Y"),
    Date("x", DAY, date(2001, 1, 1), bins=12, special=(date(9999, 12, 31),), format="%d/%m/%Y"),
    Datetime("x", datetime(2000, 1, 1), datetime(2001, 1, 1), bins=12, special=("unknown", DAY)),
]


@pytest.mark.parametrize("column", SPECIAL, ids=repr)
def test_special_values_are_cells_of_their_own(column):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, column.size, 4000)
    values = column.decode(codes, rng)
    np.testing.assert_array_equal(column.encode(values), codes)
    assert column.legal(values).all()
    assert not any(mask.any() for mask in column.misfits(values).values())
    special = slice(column.size - column.apart, column.cells)
    assert len(column.labels()[special]) == len(column.special)
    for value in column.special:
        holds = column.compare("=", value)[0]
        assert holds[special].sum() == holds.sum() == 1
        np.testing.assert_array_equal(column.evaluate("=", value, values), holds[codes])
    for op in ("<", ">="):  # between them every value but special ones and null
        assert not column.compare(op, column.lower)[1][special].any()
        assert not column.evaluate(op, column.lower, values)[codes >= special.start].any()
    sides = [column.evaluate(op, column.lower, values) for op in ("<", ">=")]
    np.testing.assert_array_equal(sides[0] | sides[1], codes < special.start)


@given(integer_cells(), st.sets(st.integers(-20, 25), max_size=6))
def test_cells_without_some_points(cells, gone):
    left = cells.without(sorted(gone))
    held = [
        [p for p in range(low, high + 1) if p not in gone]
        for low, high in zip(cells.lows, cells.highs, strict=True)
    ]
    ends = [(points[0], points[-1]) for points in held if points]
    assert list(zip(left.lows.tolist(), left.highs.tolist(), strict=True)) == ends


def test_counts_by_interval():
    column = Integer("x", edges=(0, 1, 2, 5), special=(1, 99), nullable=True)
    assert column.by_interval(np.array([7, 8, 100, 101, 102])).tolist() == [7, 0, 8]


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"special": "N"}, "must be a list"),
        ({"special": ("5",)}, "write it without quotes"),
        ({"special": (99, 99.0)}, "twice"),
        ({"special": (" N",)}, "without blanks"),
        ({"special": ("N",), "dtype": "int64"}, 'dtype = "string"'),
        ({"special": ("?",), "null_values": ("?",)}, "one of its null_values"),
        ({"special": (1.5,)}, "must be whole"),
        ({"special": (7, 999), "dtype": "uint8"}, "'x': special holds 999, .*choose a wider dtype"),
        ({"special": (-1,), "dtype": "uint64"}, "'x': special holds -1, which dtype = 'uint64'"),
        ({"special": (9999,), "dtype": "decimal128(3, 0)"}, "special holds 9999, "),
        ({"special": (2**53 + 1,), "dtype": "float64"}, "special holds 9007199254740993, "),
        ({"special": tuple(range(121))}, "every value between its bounds is special"),
        ({"special": ("N",), "upper": 2**60, "bins": 4}, "beyond 2\\^53"),
    ],
)
def test_special_values_that_cannot_be(facts, said):
    with pytest.raises(SchemaError, match=said):
        Integer("x", **{"lower": 0, "upper": 120, **facts})


@pytest.mark.parametrize(
    ("facts", "value"),
    [
        ({"dtype": "float32"}, 1e300),
        ({"dtype": "decimal128(5, 2)"}, 1e9),
        ({"decimals": 2}, 1e300),
        ({"decimals": 2}, 0.125),
    ],
)
def test_special_numbers_that_cannot_be(facts, value):
    with pytest.raises(SchemaError, match=re.escape(f"'x': special holds {value}")):
        Number("x", 0, 1, bins=2, special=(value,), **facts)


def test_a_special_value_is_on_no_side():
    column = Integer("x", 0, 120, bins=4, special=("N", 99))
    with pytest.raises(WorkloadError, match="on no side"):
        column.compare("<", "N")
    assert column.compare("<=", 99)[1].tolist() == [True] * 4 + [False] * 2
    assert column.compare("!=", 99)[0].tolist() == [True] * 5 + [False]


_SHAPED = {"leaves": [0, 5, 10, 101], "weights": [1, 2, 3]}
_ROUND = {"decades": [0, 101], "steps": [10], "roundness": [1, 1]}


@pytest.mark.parametrize(
    "changed",
    [
        {"weights": [1, 2, 10**400]},
        {"weights": [1, 2, -1]},
        {"leaves": [0, 5, 10, 102]},
        {"leaves": [0, 5, 11, 101]},
        {"decades": [0, 2**63]},
        {"decades": [101, 0]},
        {"steps": [10**30]},
        {"steps": [10, 3, 7], "roundness": [1, 1, 1, 1]},
        {"steps": [200, 30], "roundness": [1, 1, 1]},
        {"rests": [10]},
        {"rests": [-1]},
        {"rests": [1, 2]},
        {"rests": [0.5]},
        {"steps": [2**k for k in range(62, 0, -1)] + [1] * 3, "roundness": [1] * 66},
        {"leaves": list(range(70_000)), "weights": [1] * 69_999},
    ],
    ids=str,
)
def test_shapes_of_strangers(changed):
    """What does not nest, or would take all memory, is refused where it is read."""
    Integer("x", edges=(0, 10, 100), shape={**_SHAPED, **_ROUND})
    with pytest.raises(SchemaError, match="shape"):
        Integer("x", edges=(0, 10, 100), shape={**_SHAPED, **_ROUND, **changed})


_LEAVES = {"leaves": (0, 10, 50, 60, 101)}


def test_quantiles_are_where_rows_are_drawn():
    """The mean of 40 quantiles of each cell is that of 4,000 draws, within 6 standard errors."""
    shape = {**_LEAVES, "weights": (3, 1, 0, 4)}
    shares = (np.arange(40) + 0.5) / 40
    for column in (
        Integer("x", edges=(0, 50, 100), shape=shape),
        Integer("x", 0, 99, bins=4),
        Number("x", 0, 10, bins=4, special=(3.0,)),
    ):
        found = column.quantiles(shares)
        assert np.all(np.diff(found, axis=1) >= 0)
        assert np.all((found >= column.grid.lows[:, None]) & (found <= column.grid.highs[:, None]))
        codes = np.repeat(np.arange(len(column.grid)), 4_000)
        drawn = column._draw(codes, np.random.default_rng(0)).reshape(len(column.grid), -1)
        near = 6 * drawn.std(axis=1) / 4_000**0.5 + drawn.std(axis=1) / 40
        assert np.all(np.abs(found.mean(axis=1) - drawn.mean(axis=1)) <= near)


NOISE = {"whole": 0.001, "part": 0.003}


def test_the_noise_of_a_found_shape_moves_sums():
    column = Integer("x", edges=(0, 50, 100), shape={**_LEAVES, "weights": (3, 1, 0, 4)})
    shares = np.array([0.5, 0.5])
    # Leaves [0, 10) and [10, 50) about their mean 11.25; [60, 101) about itself, and what noise may
    # have hidden in [50, 60), near to it.
    one = Search(np.array([0, 101]), **NOISE)
    wanted = 0.003 * np.array([np.hypot(5 - 11.25, 30 - 11.25), 80.5 - 60])
    assert column.uncertain(one, shares) == pytest.approx(wanted)
    # Where each is a cell of the first level it was counted five times.
    each = Search(np.array([0, 10, 50, 60, 101]), **NOISE)
    assert column.uncertain(each, shares) == pytest.approx(wanted / 3)
    # Rows that the shape did not find lie anywhere in the cell, but not outside it.
    more = column.uncertain(one, np.array([0.5, 0.8]))
    assert more == pytest.approx(wanted * [1, 0.8 / 0.5])
    assert column.uncertain(one, np.array([1e-6, 1e-6])) == pytest.approx(
        [0.5e-6 * 49, 0.5e-6 * 50]
    )
    assert not Integer("x", 0, 99, bins=4).uncertain(one, np.full(4, 0.25)).any()


def test_rows_that_a_shape_lacks_may_lie_beyond_it():
    column = Integer("x", edges=(0, 50, 100), shape={**_LEAVES, "weights": (3, 1, 4, 2)})
    shares = np.array([0.35, 0.65])
    found = Search(np.array([0, 101]), **NOISE, low=True, high=True)
    assert column.beyond(found, shares) == ((0.0, 101.0), (pytest.approx(0.05), 101.0))
    # A tail holds no more than the outer half of what was found.
    light = Integer("x", edges=(0, 50, 100), shape={**_LEAVES, "weights": (6, 3, 0, 1)})
    assert light.beyond(found, np.array([0.5, 0.5]))[1] == (pytest.approx(0.1), 101.0)
    # Declared ends are no further than they are.
    assert column.beyond(replace(found, high=False), shares)[1][1] == 0.0
    assert Integer("x", 0, 99, bins=4).beyond(found, np.full(4, 0.25)) == ((0.0, 0.0), (0.0, 0.0))
