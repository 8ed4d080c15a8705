"""Polygons against shapely, which judges points in another way only where they lie on an edge."""

from functools import reduce

import numpy as np
import pytest
import shapely

from understudy.constraints.masks import Polygons

EDGE = 1e-9


def reference(mask: Polygons):
    """The even-odd rule: what is in an odd number of rings, each valid by the same rule."""
    rings = [shapely.make_valid(shapely.Polygon(ring)) for ring in mask.rings]
    return reduce(shapely.symmetric_difference, rings)


def outlines(mask: Polygons):
    return shapely.MultiLineString([[*ring, ring[0]] for ring in mask.rings])


@pytest.mark.parametrize("rings", [1, 2, 3])
@pytest.mark.parametrize("grid", [True, False])
def test_points_off_the_edges_are_judged_alike(rings, grid):
    rng = np.random.default_rng(rings)
    tenths = np.arange(51) / 10
    judged = 0
    for _ in range(20):
        corners = rng.uniform(0, 5, (rings, int(rng.integers(3, 9)), 2)).round(1)
        mask = Polygons(tuple(tuple(map(tuple, ring)) for ring in corners.tolist()))
        if grid:
            y, x = (each.ravel() for each in np.meshgrid(tenths, tenths, indexing="ij"))
        else:
            y, x = rng.uniform(0, 5, (2, 2_000))
        off = ~shapely.dwithin(shapely.points(x, y), outlines(mask), EDGE)
        judged += int(off.sum())
        assert np.array_equal(
            mask.contains(y, x)[off], shapely.contains_xy(reference(mask), x, y)[off]
        )
        lines, columns = np.unique(y), np.unique(x)
        if grid:
            assert np.array_equal(mask.over(lines, columns).ravel(), mask.contains(y, x))
    assert judged > 20_000


def test_boxes_that_no_edge_passes_are_inside_or_outside_as_a_whole():
    rng = np.random.default_rng(7)
    for _ in range(10):
        corners = rng.uniform(0, 5, (1, 7, 2)).round(1)
        mask = Polygons(tuple(tuple(map(tuple, ring)) for ring in corners.tolist()))
        cuts = np.sort(rng.uniform(0, 5, 12))
        low, high = cuts[:-1], cuts[1:]
        boxes = shapely.box(low[None, :], low[:, None], high[None, :], high[:, None])
        touched = shapely.intersects(boxes, outlines(mask))
        assert not (touched & ~mask.cut(low, high, low, high)).any()


def test_a_point_on_an_edge_belongs_to_one_of_two_neighbours():
    west = Polygons((((0, 0), (1, 0), (1, 1), (0, 1)),))
    east = Polygons((((1, 0), (2, 0), (2, 1), (1, 1)),))
    y = np.arange(10) / 10
    x = np.ones(10)
    assert (west.contains(y, x) ^ east.contains(y, x)).all()
