"""Drawing a graph from what was measured of it."""

import numpy as np

from understudy.models.graphs import triangles
from understudy.players.base import Measured, MeasuredDegrees, MeasuredTriangles, Problem
from understudy.players.data.matching import Matching

SIZES = (3, 2)
NODES = sum(SIZES)
PROBLEM = Problem((NODES, NODES, 2, 2), ((0, 1),), (1.0,), 5)


def degrees_of(model):
    u, v = (np.asarray(codes) for codes in model.codes[:2])
    return np.bincount(np.concatenate([u, v]), minlength=NODES)


def test_without_noise_degrees_and_blocks_are_those_that_were_measured():
    """A triangle in the first block, and one edge from each of its first nodes to the second."""
    named = np.array([3, 3, 2, 1, 1])
    answers = (
        MeasuredDegrees(np.array([2, 3, 3, 1, 1]), 1e-6),
        MeasuredDegrees(named, 1e-6, named=True),
        Measured((2, 3), np.array([[3, 2], [0, 0]]), 1e-6),
    )
    data, rng = Matching(SIZES, 0.0), np.random.default_rng(0)
    state = data.respond(PROBLEM, data.start(PROBLEM), answers, rng)
    model = data.finish(PROBLEM, state)
    assert degrees_of(model).tolist() == named.tolist()
    assert model.marginal((2, 3)).sum() == 1
    assert len(model.codes[0]) == 5
    # Later answers swap edges: no degree changes.
    labels = np.array([1, 1, 0, 0, 0])
    mixture = Measured((0, 1), np.array([[0, 4], [0, 1]]), 1e-6, (labels, labels))
    swapped = data.respond(PROBLEM, state, (mixture, MeasuredTriangles(1, 1e-6)), rng)
    assert degrees_of(swapped).tolist() == named.tolist()
    u, v = (np.asarray(codes, np.int64) for codes in swapped.codes[:2])
    assert triangles(u, v, NODES) == 1


def test_before_any_answer_there_is_one_edge():
    data = Matching(SIZES, 1.0)
    assert len(data.view(PROBLEM, data.start(PROBLEM)).codes[0]) == 1
