"""Values drawn from a shape: the package and the standalone verifier, bit by bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.verify_release import by_shape, kinds_fault

from tests.thorough import examples
from understudy.columns.kinds import Kinds
from understudy.columns.shape import Shape

KINDS = {
    "plain": ((50, 10, 5), ()),
    "endings": ((500, 100, 50, 10, 100, 100, 25, 10, 5), (0, 0, 0, 0, 99, 95, 0, 9, 0)),
    "hours": ((3600, 60), ()),
    "odd": ((144, 24, 24, 9), (0, 23, 1, 7)),
}


def shape_of(seed, discrete, kinds="plain"):
    """A shape with points, gaps, empty cells and both signs."""
    rng = np.random.default_rng(seed)
    cuts = np.unique(np.round(rng.normal(0, 300, 40)).astype(int))
    cuts = np.unique(np.concatenate([cuts, cuts[::3] + 1, [0, 1]]))
    starts = np.unique([0, *rng.integers(1, len(cuts) - 1, 7)])
    weights = rng.integers(0, 50, len(cuts) - 1) * (rng.random(len(cuts) - 1) < 0.8)
    weights[starts[2] : starts[3]] = 0
    leaves = cuts.tolist() if discrete else (cuts + 0.25).tolist()
    edges = (*(leaves[i] for i in starts), leaves[-1])
    decades, (steps, rests) = (-1000, -99, -9, 0, 1, 10, 100, 1000), KINDS[kinds]
    roundness = rng.integers(0, 9, (len(decades) - 1) * (len(steps) + 1))
    known = (decades, steps, tuple(roundness.tolist()), rests) if discrete else ()
    return Shape(edges, tuple(leaves), tuple(starts.tolist()), tuple(weights.tolist()), *known)


STEPS = st.sampled_from([1, 2, 5, 9, 10, 25, 50, 99, 100, 120, 150, 200, 300, 3600])


@settings(max_examples=examples(300, 5000), deadline=None)
@given(st.lists(st.tuples(STEPS, st.sampled_from([0, 0, 0, 1, 9, 95, 99])), max_size=5))
def test_both_refuse_the_same_kinds(kinds):
    steps, rests = ([kind[at] for kind in kinds] for at in (0, 1))
    assert bool(kinds_fault(steps, rests)) == bool(Kinds(tuple(steps), tuple(rests)).fault)


@pytest.mark.parametrize("kinds", [*KINDS, None])
@pytest.mark.parametrize("seed", range(4))
def test_both_draw_the_same_values(seed, kinds):
    """And every value lies in its cell. Without kinds: doubles."""
    shape = shape_of(seed, kinds is not None, kinds or "plain")
    cells = np.random.default_rng(9).integers(0, len(shape.starts), 2000)
    cells[cells == 1] = 0  # a cell without rows
    lows = np.array(shape.edges[:-1])
    one = shape.draw(cells, np.random.default_rng(seed))
    two = by_shape(shape.facts(), lows, cells, np.random.default_rng(seed))
    assert np.array_equal(one, two)
    assert np.array_equal(np.searchsorted(lows, one, side="right") - 1, cells)
