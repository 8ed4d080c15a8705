import numpy as np
import pytest

from understudy.columns.shape import Shape

RNG = np.random.default_rng
WHOLE = Shape((0, 10, 100), (0, 1, 10, 50, 101), (0, 2), (30, 10, 40, 20))
EDGES = np.array([0, 10])


def cell(shape, points):
    return np.searchsorted(np.array(shape.leaves)[list(shape.starts)], points, side="right") - 1


@pytest.mark.parametrize("seed", range(5))
def test_a_drawn_point_lies_in_its_cell(seed):
    rng = RNG(seed)
    edges = np.unique(rng.integers(-1000, 1000, 30))
    starts = (0, *sorted(set(rng.integers(1, len(edges) - 2, 6).tolist())))
    weights = tuple(rng.integers(0, 3, len(edges) - 1).tolist())
    rough = Shape((), tuple(edges.tolist()), starts, weights, (-1000, 0, 1001), (100, 10), (5,) * 6)
    doubles = Shape((), tuple((edges / 7).tolist()), starts, weights)
    cells = rng.integers(0, len(starts), 3000)
    for shape in (rough, doubles):
        assert np.array_equal(cell(shape, shape.draw(cells, rng)), cells)


def test_leaves_are_drawn_by_their_weights_as_evenly_as_they_can_be():
    cells = np.repeat([0, 1], [400, 600])
    points = WHOLE.draw(cells, RNG(0))
    assert abs(np.count_nonzero(points == 0) - 300) <= 1
    assert abs(np.count_nonzero((points >= 10) & (points < 50)) - 400) <= 1
    again = WHOLE.draw(cells, RNG(0))
    assert np.array_equal(points, again)
    assert len(np.unique(points[:20])) > 1  # in random order


def test_a_cell_without_weights_is_drawn_evenly():
    shape = Shape((0, 10, 20), (0, 5, 10, 20), (0, 2), (0, 0, 7))
    points = shape.draw(np.zeros(1000, np.intp), RNG(0))
    assert np.bincount(points, minlength=10).tolist() == pytest.approx([100] * 10, abs=1)


@pytest.mark.parametrize("side", [1, -1])
def test_a_long_leaf_that_touches_zero_is_drawn_evenly(side):
    """Ten years in seconds, whose ratio to 0 no double holds."""
    ends = sorted(side * end for end in (0, 315_532_800, 631_152_000, 946_684_800))
    shape = Shape((), tuple(ends), (0,), (5, 5, 5))
    points = np.sort(shape.draw(np.zeros(300, np.intp), RNG(0)))
    assert np.diff([ends[0], *points]).max() < 2 * (ends[-1] - ends[0]) / 300


def test_density_inside_a_leaf_follows_its_neighbours():
    # A Pareto tail of power 2: halves go like 1/x, the density like x^-2.
    ends = (100, 200, 400, 800)
    shape = Shape((100, 800), ends, (0,), (4000, 2000, 1000))
    points = shape.draw(np.zeros(7000, np.intp), RNG(0))
    inner = points[(points >= 200) & (points < 400)]
    assert np.median(inner) == pytest.approx(266.7, rel=0.01)
    flat = Shape((0, 300), (0, 100, 200, 300), (0,), (10, 10, 10))
    assert np.median(flat.draw(np.zeros(3000, np.intp), RNG(0))) == pytest.approx(150, abs=1)


def test_values_are_as_round_as_they_were():
    # Between 100 and 999: 60 % multiples of 100, 30 % other multiples of 10, 10 % others.
    shape = Shape(
        (100, 999), (100, 400, 1000), (0,), (1, 1), (100, 1000), (100, 10), (600, 300, 100)
    )
    points = shape.draw(np.zeros(20_000, np.intp), RNG(0))
    hundreds, tens = points % 100 == 0, points % 10 == 0
    assert np.mean(hundreds) == pytest.approx(0.6, abs=0.02)
    assert np.mean(tens & ~hundreds) == pytest.approx(0.3, abs=0.02)


ENDINGS = (500, 100, 50, 10, 100, 100, 25, 10, 5), (0, 0, 0, 0, 99, 95, 0, 9, 0)


def test_values_end_as_they_did():
    """Half of them with 99, a fifth with 25 or 75, on either side of zero, in their leaves."""
    steps, rests = ENDINGS
    row = (0, 0, 0, 0, 50, 0, 20, 0, 0, 30)
    leaves = (-2000, -900, -500, 1, 700, 2001)
    shape = Shape(
        (-2000, 1, 2000), leaves, (0, 3), (1, 2, 0, 3, 4), (-2000, 1, 2001), steps, row * 2, rests
    )
    cells = np.arange(2).repeat(20_000)
    points = shape.draw(cells, RNG(0))
    for own in (points[:20_000], points[20_000:]):
        ends = np.abs(own) % 100
        assert np.mean(ends == 99) == pytest.approx(0.5, abs=0.02)
        assert np.mean((ends == 25) | (ends == 75)) == pytest.approx(0.2, abs=0.02)
        assert np.mean((ends % 10 == 9) & (ends != 99)) < 0.01
        assert np.mean(ends % 5 == 0) == pytest.approx(0.2, abs=0.02)
    counted = np.histogram(points, leaves)[0]
    assert counted.tolist() == pytest.approx([6667, 13333, 0, 8571, 11429], abs=2)


def test_drawn_points_stay_in_their_leaves():
    """Of every kind, also where a leaf has none or is narrow."""
    rng, (steps, rests) = RNG(1), ENDINGS
    for _ in range(20):
        cuts = np.unique(rng.integers(-1500, 1500, 60)).tolist()
        row = rng.integers(0, 5, 3 * (len(steps) + 1)).tolist()
        many, ends = len(cuts) - 1, (cuts[0], cuts[-1])
        shape = Shape(
            ends, tuple(cuts), (0,), (1,) * many, (-2000, -99, 100, 2000), steps, tuple(row), rests
        )
        found = np.histogram(shape.draw(np.zeros(50 * many, np.intp), rng), cuts)[0]
        assert np.all(np.abs(found - 50) <= 1)


def test_round_values_outside_a_leaf_are_not_reached():
    shape = Shape((101, 199), (101, 150, 200), (0,), (1, 1), (100, 1000), (100, 10), (600, 300, 0))
    points = shape.draw(np.zeros(1000, np.intp), RNG(0))
    assert np.all(points % 10 == 0)
    assert np.all(points % 100 != 0)


def test_points_that_are_leaves_keep_their_value():
    shape = Shape((0, 1000), (0, 998, 999, 1001), (0,), (1, 1, 0), (0, 1001), (10,), (1, 0))
    points = shape.draw(np.zeros(100, np.intp), RNG(0))
    assert np.count_nonzero(points == 998) == 50
