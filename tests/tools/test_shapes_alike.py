"""Values drawn from a shape: the package and the standalone verifier, bit by bit."""

import numpy as np
import pytest
from tools.verify_release import by_shape

from understudy.columns.shape import Shape


def shape_of(seed, discrete):
    """A shape with points, gaps, empty cells and both signs."""
    rng = np.random.default_rng(seed)
    cuts = np.unique(np.round(rng.normal(0, 300, 40)).astype(int))
    cuts = np.unique(np.concatenate([cuts, cuts[::3] + 1, [0, 1]]))
    starts = np.unique([0, *rng.integers(1, len(cuts) - 1, 7)])
    weights = rng.integers(0, 50, len(cuts) - 1) * (rng.random(len(cuts) - 1) < 0.8)
    weights[starts[2] : starts[3]] = 0
    leaves = cuts.tolist() if discrete else (cuts + 0.25).tolist()
    edges = (*(leaves[i] for i in starts), leaves[-1])
    decades, steps = (-1000, -99, -9, 0, 1, 10, 100, 1000), (50, 10, 5)
    roundness = rng.integers(0, 9, (len(decades) - 1) * (len(steps) + 1))
    known = (decades, steps, tuple(roundness.tolist())) if discrete else ()
    return Shape(edges, tuple(leaves), tuple(starts.tolist()), tuple(weights.tolist()), *known)


@pytest.mark.parametrize("discrete", [True, False], ids=["integers", "doubles"])
@pytest.mark.parametrize("seed", range(4))
def test_both_draw_the_same_values(seed, discrete):
    shape = shape_of(seed, discrete)
    cells = np.random.default_rng(9).integers(0, len(shape.starts), 2000)
    cells[cells == 1] = 0  # a cell without rows
    lows = np.array(shape.edges[:-1])
    one = shape.draw(cells, np.random.default_rng(seed))
    two = by_shape(shape.facts(), lows, cells, np.random.default_rng(seed))
    assert np.array_equal(one, two)
    assert np.array_equal(np.searchsorted(lows, one, side="right") - 1, cells)
