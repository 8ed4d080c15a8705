from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from understudy.columns import Date, Datetime, Integer, Number
from understudy.columns.kinds import Kinds
from understudy.columns.ladder import SHARES, Measured, Scale, finer, first, rounds
from understudy.columns.reading import DAY

SECOND = 10**9
CENTS = Fraction(1, 100)
SCALES = {
    "whole": (Scale(), lambda e: Integer("x", edges=e)),
    "from 0": (Scale(0), lambda e: Integer("x", edges=e)),
    "loose": (Scale(0, 10**7), lambda e: Integer("x", edges=e)),
    "signed": (Scale(-500, 10**6), lambda e: Integer("x", edges=e)),
    "negative": (Scale(-(10**6), -10), lambda e: Integer("x", edges=e)),
    "few": (Scale(0, 100), lambda e: Integer("x", edges=e)),
    "two": (Scale(0, 1), lambda e: Integer("x", edges=e)),
    "years": (Scale(1900, 2015), lambda e: Integer("x", edges=e)),
    "cents": (Scale(grid=CENTS), lambda e: Number("x", edges=e, decimals=2)),
    "cents, bounds": (Scale(0.0, 0.75, CENTS), lambda e: Number("x", edges=e, decimals=2)),
    "degrees": (
        Scale(-123.0, -121.5, Fraction(1, 10**4)),
        lambda e: Number("x", edges=e, decimals=4),
    ),
    "doubles": (Scale(grid=None), lambda e: Number("x", edges=e)),
    "share": (Scale(0.0, 1.0, None), lambda e: Number("x", edges=e)),
    "tiny": (Scale(0.0, 1e-9, None), lambda e: Number("x", edges=e)),
    "close": (Scale(47.1, 47.8, None), lambda e: Number("x", edges=e, dtype="float32")),
    "days": (Scale(calendar=DAY), lambda e: Date("x", edges=e)),
    "some days": (
        Scale(date(2014, 5, 2), date(2015, 5, 27), calendar=DAY),
        lambda e: Date("x", edges=e),
    ),
    "times": (Scale(calendar=SECOND), lambda e: Datetime("x", edges=e)),
    "an hour": (
        Scale(datetime(2014, 5, 2, 8), datetime(2014, 5, 2, 9), calendar=SECOND),
        lambda e: Datetime("x", edges=e),
    ),
    "the end of time": (Scale(upper=date.max, calendar=DAY), lambda e: Date("x", edges=e)),
}


@pytest.mark.parametrize("name", SCALES)
def test_every_level_is_an_ordinary_column_and_cuts_the_one_before(name):
    scale, made = SCALES[name]
    rng = np.random.default_rng(3)
    history = []
    for share in SHARES:
        edges = finer(scale, history) if history else first(scale)
        column = made(edges)
        points = [scale.point(edge) for edge in edges]
        assert points == sorted(set(points))
        assert column.grid.lows.tolist() == pytest.approx(points[:-1], rel=0, abs=0)
        assert (points[0], points[-1]) == (scale.low, scale.end)
        if history:
            assert set(history[-1].edges) <= set(edges)
        sigma = 10 * (SHARES[0] / share) ** 0.5
        counts = rng.normal(0, sigma, len(edges) - 1)
        counts[rng.integers(0, len(counts), 5)] += 1000
        history.append(Measured(edges, counts, sigma))
    assert len(history[-1].edges) < 10_000


def test_the_first_level_has_decades_zero_and_the_usual_codes():
    edges = first(Scale(0, 10**5))
    assert edges[:9] == (0, 1, 2, 5, 9, 10, 20, 50, 99)
    assert edges[-3:] == (99_999, 10**5, 10**5 + 1)
    assert {-1, 0, 1, -9, -8, 999, 1000} <= set(first(Scale()))
    mirrored = {1 - edge for edge in first(Scale())}
    assert {1, 2, 5, 10, 20, 50, 10**9} <= mirrored


def test_years_are_cut_evenly_and_dates_by_the_calendar():
    assert set(np.diff(first(Scale(1900, 2015))[2:-3])) == {5}
    edges = first(Scale(date(2014, 5, 2), date(2015, 5, 27), calendar=DAY))
    assert edges[2:5] == tuple(datetime(2014, month, 1) for month in (6, 7, 8))


def counted(edges, heavy, sigma=10.0, count=1000.0):
    counts = np.zeros(len(edges) - 1)
    counts[[i for i, edge in enumerate(edges[:-1]) if edge in heavy]] = count
    return Measured(edges, counts, sigma)


def test_a_heavy_cell_is_opened_and_its_round_end_is_a_point():
    scale = Scale(0, 10**6)
    level = counted(first(scale), {1000})
    new = sorted(set(finer(scale, [level])) - set(level.edges))
    assert new == [1001, *range(1100, 2000, 100)]
    negative = Scale(-(10**6), 0)
    level = counted(first(negative), {-1999})
    new = sorted(set(finer(negative, [level])) - set(level.edges))
    assert new == [*range(-1899, -1000, 100), -1000]


def test_a_light_cell_stays_and_a_lighter_one_gets_fewer_parts():
    scale = Scale(0, 10**6)
    light = counted(first(scale), {1000}, count=30.0)
    assert finer(scale, [light]) == light.edges
    some = counted(first(scale), {1000}, count=40.0)
    assert set(finer(scale, [some])) - set(some.edges) == {1001, 1500}


def levels(scale, points, sigma=10.0):
    """All levels of exact counts, which are said to be as noisy as those of a release."""
    history = []
    for share in SHARES:
        edges = finer(scale, history) if history else first(scale)
        counts = np.histogram(points, [scale.point(edge) for edge in edges])[0]
        history.append(Measured(edges, counts, sigma * (SHARES[0] / share) ** 0.5))
    return history


@pytest.mark.parametrize("scale", [Scale(0, 10**6), Scale(), Scale(-(10**6), 0), Scale(grid=CENTS)])
def test_rows_of_one_value_are_found_within_five_levels(scale):
    """Too few for ten parts a level: a part that holds all of its cell is cut into more."""
    value = 15_024 if scale.low < scale.high > 0 else -15_024
    last = levels(scale, np.full(120, value))[-1]
    points = [scale.point(edge) for edge in last.edges]
    assert points[points.index(value) + 1] == value + 1


def test_only_a_part_that_holds_nearly_all_is_cut_into_more():
    scale = Scale(0, 10**6)
    opened = levels(scale, np.full(120, 15_024))[:2]
    second = set(opened[1].edges)
    assert {10_000, 10_001, 12_000, 14_000, 16_000, 18_000} <= second

    def parts(rows):
        """How the next level cuts what holds so many rows from 14,000 on."""
        counts = np.array(opened[1].counts)
        counts[opened[1].edges.index(14_000)] = rows
        counts[opened[1].edges.index(16_000)] = 120 - rows
        at = finer(scale, [opened[0], Measured(opened[1].edges, counts, opened[1].sigma)])
        return [edge for edge in at if 14_000 < edge < 16_000]

    assert parts(120) == [14_001, *range(14_100, 16_000, 100)]
    assert parts(90) == [14_001, *range(14_100, 16_000, 100)]
    assert parts(70) == [14_001, 14_500, 15_000, 15_500]
    halves = levels(scale, np.full(60, 15_024))  # of two or three parts one will hold most
    assert 15_000 in halves[1].edges
    assert 15_500 not in halves[2].edges


def test_what_was_counted_twice_is_known_better():
    scale = Scale(0, 10**6)
    low = counted(first(scale), {1000}, count=30.0)
    high = counted(first(scale), {1000}, count=60.0)
    assert finer(scale, [low]) == low.edges
    assert finer(scale, [low, low]) == low.edges
    assert finer(scale, [low, high]) != low.edges  # 45 on average, above 3·13.7
    assert finer(scale, [high, low]) != low.edges


def test_dates_are_opened_by_the_calendar():
    scale = Scale(date(2000, 1, 1), date(2020, 12, 31), calendar=DAY)
    level = counted(first(scale), {datetime(2010, 1, 1)})
    years = finer(scale, [level])
    assert datetime(2014, 1, 1) in years
    assert datetime(2004, 1, 1) not in years
    level = counted(years, {datetime(2014, 1, 1)})
    months = finer(scale, [level])
    assert {datetime(2014, 1, 2), datetime(2014, 2, 1), datetime(2014, 12, 1)} <= set(months)


def test_round_values_have_a_table_by_decades_and_kinds():
    form = rounds(Scale(-50, 1000))
    assert form is not None
    assert form.edges == (-50, -9, 0, 1, 10, 100, 1000, 1001)
    assert form.kinds.steps == (5000, 1000, 500, 100, 50, 10, 100, 100, 25, 10, 5)
    assert form.kinds.rests == (0, 0, 0, 0, 0, 0, 99, 95, 0, 9, 0)
    assert form.kinds.fault == ""
    times = rounds(Scale(calendar=SECOND))
    assert times is not None
    assert times.kinds == Kinds((86_400, 3600, 60))  # never with endings
    assert rounds(Scale(calendar=DAY)) is None
    assert rounds(Scale(grid=None)) is None


def test_edges_of_huge_bounds_stay_apart():
    """A large double and the whole number of the same digits are one edge."""
    scale = Scale(-1e300, 5e299, grid=None)
    level = Measured(first(scale), np.full(len(first(scale)) - 1, 1000.0), 1.0)
    edges = finer(scale, [level])
    assert all(left < right for left, right in pairwise(edges))
