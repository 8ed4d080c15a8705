"""Numbers inside cells."""

from dataclasses import replace

import numpy as np
import pytest

from understudy.columns.shape import Search
from understudy.errors import WorkloadError
from understudy.estimates.inner import DRAWN, inner, lines
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
    rising = 0.4 * np.array([1, 0.5, 1 / 3, 0.375])
    assert steep == pytest.approx([*rising[:3], rising[3] + 2.5 * 0.625])  # it ends: 0.15 were due
    _, heap = lines(column, np.array([0.1, 0.7, 0.1, 0.1]))
    assert heap[1] == pytest.approx(2.5 * 6 / 7)
    assert not np.any(lines(Integer("x", 0, 3), np.full(4, 0.25)))
    assert not np.any(lines(SHAPED, np.array([0.5, 0.5])))
    alone = Number("x", 0, 4, bins=1, nullable=True)
    assert lines(alone, np.array([1.0, 0]))[1].tolist() == [2.5, 0]


def test_densities_with_a_slope():
    column = Number("x", 0, 10, bins=2)
    found = inner(column, np.array([0.6, -1.0]))
    assert found.mean == pytest.approx([2.5 + 5 * 0.6 / 6, 7.5 - 5 / 6], abs=0.05)
    t = np.linspace(0.1, 0.9, 9)
    below = np.array([found.below(5 * x)[0] for x in t])
    assert below == pytest.approx(t - 0.6 * t * (1 - t), abs=0.03)
