"""Numbers inside cells."""

from dataclasses import replace

import numpy as np
import pytest

from understudy.columns.shape import Search
from understudy.errors import WorkloadError
from understudy.estimates.inner import DRAWN, MEAN, MEAN_OF_POINTS, Heaps, inner, lines, rounded
from understudy.schema import Boolean, Category, Date, Integer, Number

SHAPED = Integer("x", edges=(0, 4, 9), shape={"leaves": (0, 1, 4, 5, 10), "weights": (3, 1, 0, 4)})


def test_even_cells():
    found = inner(Number("x", 0, 10, bins=5, decimals=2, nullable=True, special=(99,)))
    assert len(found) == 5
    assert found.mean == pytest.approx([1, 3, 5, 7, 9], abs=0.02)
    assert found.deviation == pytest.approx(np.full(5, 2 / 12**0.5), rel=0.01)
    assert found.below(3.0) == pytest.approx([1, 0.5, 0, 0, 0], abs=1 / DRAWN)
    whole = inner(Integer("x", 0, 9, bins=5))
    assert whole.mean == pytest.approx([0.5, 2.5, 4.5, 6.5, 8.5])
    assert whole.deviation == pytest.approx(np.full(5, 0.5))
    single = inner(Integer("x", 3, 6))
    assert (single.mean.tolist(), single.deviation.any()) == ([3, 4, 5, 6], False)


def test_other_columns_with_numbers():
    assert inner(Boolean("b")).mean.tolist() == [0, 1]
    assert inner(Category("c", (1, 5, 9))).mean.tolist() == [1, 5, 9]
    with pytest.raises(WorkloadError, match=r"'c' \(category\) holds no numbers.*share\(c = "):
        inner(Category("c", ("u", "v")))
    with pytest.raises(WorkloadError, match="'d'"):
        inner(Date("d", "2020-01-01", "2020-12-31", bins=12))


def test_a_shape_has_its_own_means_and_noise():
    search = Search(np.array([0, 10]), 0.005, 0.01)
    found = inner(SHAPED, None, search, np.array([0.5, 0.5, 0.0]))
    # A quarter of the first cell's rows are spread over 1, 2, 3; the second cell's over 5 … 9,
    # by a density that follows its neighbours'.
    assert found.mean == pytest.approx([0.5, 7.0], abs=0.3)
    # Middles of leaves less the mean; of the empty one, the end at which more rows are.
    spread = [np.hypot(0.5 - 1.0, 2.5 - 1.0), 7.5 - 5.0]
    assert found.uncertain == pytest.approx(0.01 * np.array(spread), rel=1e-6)
    assert found.relative == pytest.approx(found.uncertain / found.deviation)
    assert not inner(SHAPED).uncertain.any()
    even = Integer("x", 0, 9, bins=5)
    assert not inner(even, None, search, np.full(5, 0.2)).uncertain.any()
    # What the cells hold beyond the shape may lie beyond it, where its end was found.
    ends = replace(search, high=True)
    assert inner(SHAPED, None, search, np.array([0.4, 0.6])).beyond == (0.0, 0.0)
    assert inner(SHAPED, None, ends, np.array([0.4, 0.6])).beyond == (0.0, pytest.approx(0.1 * 10))


def test_what_cells_may_hide_follows_neighbours():
    column = Number("x", 0, 4, bins=4)
    slopes, steep = lines(column, np.array([0.1, 0.2, 0.3, 0.4]))
    assert slopes == pytest.approx([0.5, 0.25, 1 / 6, -0.1875])
    rising = 0.64 * np.array([1, 0.5, 1 / 3, 0.375])
    assert steep == pytest.approx([*rising[:3], rising[3] + 4 * 0.625])  # it ends: 0.15 were due
    _, heap = lines(column, np.array([0.1, 0.7, 0.1, 0.1]))
    assert heap[1] == pytest.approx(4 * 6 / 7)
    assert not np.any(lines(Integer("x", 0, 3), np.full(4, 0.25)))
    assert not np.any(lines(SHAPED, np.array([0.5, 0.5])))
    alone = Number("x", 0, 4, bins=1, nullable=True)
    assert lines(alone, np.array([1.0, 0]))[1].tolist() == [4, 0]


def test_densities_with_a_slope():
    column = Number("x", 0, 10, bins=2)
    found = inner(column, np.array([0.6, -1.0]))
    assert found.mean == pytest.approx([2.5 + 5 * 0.6 / 6, 7.5 - 5 / 6], abs=0.05)
    t = np.linspace(0.1, 0.9, 9)
    below = np.array([found.below(5 * x)[0] for x in t])
    assert below == pytest.approx(t - 0.6 * t * (1 - t), abs=0.03)


HOURS = Integer("h", 0, 79, bins=8)
SMOOTH = np.array([1, 4, 9, 14, 14, 9, 4, 1]) / 56


def test_whole_numbers_in_declared_bins_may_be_round():
    assert Heaps.of(HOURS, SMOOTH).steps == (5, 10)
    assert Heaps.of(Number("m", 0, 100_000, bins=8, decimals=0), SMOOTH).steps == (5_000, 10_000)
    assert Heaps.of(Integer("age", 18, 95, bins=26), np.full(26, 1 / 26)).steps == (2,)
    pence, measured = Number("p", 0, 80, bins=8, decimals=2), Number("m", 0, 80, bins=8)
    single, day = Integer("s", 0, 7), Date("d", "2020-01-01", "2020-12-31", bins=8)
    for column in (pence, measured, single, day, SHAPED, Category("c", tuple("abcdefgh"))):
        assert not Heaps.of(column, np.ones(column.size)).steps, column.name


def test_more_may_be_round_where_bins_jump():
    assert 0.2 <= Heaps.of(HOURS, SMOOTH).share < 0.5
    heaped = np.array([1, 2, 3, 4, 60, 6, 3, 1]) / 80
    assert Heaps.of(HOURS, heaped).share == 1.0
    assert Heaps.of(HOURS, 80 * heaped).share == 1.0  # of shares, whatever their sum
    alternating = np.array([8, 2, 9, 2, 9, 2, 9, 2]) / 43
    assert Heaps.of(HOURS, alternating).share > 0.5


def test_round_numbers_are_the_multiples_that_a_cell_has():
    assert rounded(HOURS, 5, 4)[1].tolist() == [10, 10, 15, 15]
    assert np.isnan(rounded(HOURS, 20, 2)[1]).all()
    even = inner(HOURS)
    whole, some = even.heaped(HOURS, 10, 1.0), even.heaped(HOURS, 10, 0.25)
    assert whole.mean.tolist() == [10 * k for k in range(8)]
    assert not whole.deviation.any()
    assert some.mean == pytest.approx(0.75 * even.mean + 0.25 * whole.mean, abs=0.1)
    assert (np.diff(some.points, axis=1) >= 0).all()
    assert even.heaped(HOURS, 20, 1.0).mean[:3].tolist() == [0, even.mean[1], 20]


def test_means_of_measured_numbers_are_better_known_than_places():
    assert inner(Number("m", 0, 80, bins=8)).loose == MEAN < MEAN_OF_POINTS
    assert (
        inner(HOURS).loose == inner(Number("p", 0, 80, bins=8, decimals=2)).loose == MEAN_OF_POINTS
    )
