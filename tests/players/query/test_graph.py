"""What is measured of a graph, in two rounds."""

import numpy as np

from understudy.models import Empirical
from understudy.players.base import Kind, MeasuredTriangles, Problem, kinds_of
from understudy.players.query.graph import DegreesAndBlocks
from understudy.privacy.cost import Charge, Gaussian, Plan
from understudy.privacy.gate import Gate
from understudy.privacy.relation import Relation
from understudy.testing import StillNoise, StrictCharges, TinyCounts

SIZES = (3, 2)
SHAPE = (5, 5, 2, 2)
EDGES = [(0, 1), (0, 2), (1, 2), (0, 3), (1, 4)]
ROWS = [(u, v, int(u > 2), int(v > 2)) for u, v in EDGES]
PURPOSES = {
    DegreesAndBlocks.DEGREES: Gaussian(1.0, changes=2),
    DegreesAndBlocks.NAMES: Gaussian(1.0, changes=2),
    DegreesAndBlocks.PAIRS: Gaussian(1.0),
    DegreesAndBlocks.CLASSES: Gaussian(1.0),
    DegreesAndBlocks.TRIANGLES: Gaussian(1.0, step=3),
}


def test_degrees_blocks_classes_and_triangles_are_counted():
    plan = Plan(tuple(Charge(purpose, event) for purpose, event in PURPOSES.items()))
    charges = StrictCharges(plan)
    gate = Gate(TinyCounts(SHAPE, ROWS), charges, Relation.ADD_REMOVE, StillNoise())
    player = DegreesAndBlocks(SIZES, 1.0, 1.0, 1.0, 1.0, 1.0)
    problem = Problem(SHAPE, ((0, 1),), (1.0,), len(ROWS))
    view = Empirical.of(SHAPE, np.array(ROWS))
    first = player.play(problem, gate, view, 0)
    by_block, by_name, pairs = first
    assert by_block.values.tolist() == [2, 3, 3, 1, 1]
    assert by_name.values.tolist() == [3, 3, 2, 1, 1]
    assert by_name.named
    assert pairs.values.tolist() == [[3, 2], [0, 0]]
    mixture, closed = player.play(problem, gate, view, 1)
    assert mixture.values.sum() == len(ROWS)
    assert closed == MeasuredTriangles(1, 1.0)
    assert kinds_of((*first, mixture, closed)) == player.gives
    assert [purpose for purpose, _ in charges.charged] == list(PURPOSES)


def test_one_block_has_no_pairs_and_triangles_are_asked_for_or_not():
    purposes = (DegreesAndBlocks.DEGREES, DegreesAndBlocks.NAMES, DegreesAndBlocks.CLASSES)
    plan = Plan(tuple(Charge(purpose, PURPOSES[purpose]) for purpose in purposes))
    gate = Gate(TinyCounts(SHAPE, ROWS), StrictCharges(plan), Relation.ADD_REMOVE, StillNoise())
    player = DegreesAndBlocks((5,), 1.0, 1.0, 1.0, None)
    problem = Problem(SHAPE, ((0, 1),), (1.0,), len(ROWS))
    view = Empirical.of(SHAPE, np.array(ROWS))
    answers = [answer for round in range(2) for answer in player.play(problem, gate, view, round)]
    assert kinds_of(answers) == {Kind.DEGREES, Kind.COARSENED}
