"""`mst`: its plan, and that it learns a tree."""

from fractions import Fraction

import numpy as np
import pytest

from understudy.game import play
from understudy.game.methods.independent import IndependentMethod
from understudy.game.methods.mst import MSTMethod
from understudy.privacy import accounting
from understudy.privacy.cost import Gaussian, Plan, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StrictCharges, TinyCounts, tiny_design

TREES = {
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "star": [(0, 2), (1, 2), (2, 3), (2, 4)],
    "forked": [(0, 4), (1, 4), (0, 3), (2, 3)],
}


def planted(edges, columns=5, size=3, n=400, key=0):
    """Rows in which a column copies its parent in the tree, three times out of four."""
    rng = np.random.default_rng(key)
    parent, left = {}, list(edges)
    known = {0}
    while left:
        i, j = next(e for e in left if (e[0] in known) != (e[1] in known))
        old, new = (i, j) if i in known else (j, i)
        parent[new] = old
        known.add(new)
        left.remove((i, j))
    codes = {0: rng.integers(size, size=n)}
    while len(codes) < columns:
        for new, old in parent.items():
            if new not in codes and old in codes:
                fresh = rng.integers(size, size=n)
                codes[new] = np.where(rng.random(n) < 0.75, codes[old], fresh)
    return list(zip(*(map(int, codes[i]) for i in range(columns)), strict=True))


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_one_column_is_measured_with_all_of_the_budget(relation):
    design = tiny_design((3,), relation, 10)
    (charge,) = MSTMethod().charges(design, Fraction(1, 2))
    assert charge == IndependentMethod().charges(design, Fraction(1, 2))[0]
    query, _ = MSTMethod().players(design, Plan((charge,)))
    assert query.rounds == 1


def test_the_whole_game_learns_the_tree():
    rows, shape = planted(TREES["chain"][:2], columns=3), (3, 3, 3)
    design = tiny_design(shape, Relation.ADD_REMOVE, len(rows))
    plan = Plan(MSTMethod().charges(design, Fraction(10_000)))
    gate = Gate(
        TinyCounts(shape, rows),
        StrictCharges(plan, design.relation),
        design.relation,
        SeededNoise(0),
        len(rows),
    )
    model = play(
        design.problem(len(rows)),
        *MSTMethod().players(design, plan),
        gate,
        np.random.default_rng(0),
    ).model
    truth = np.zeros(shape)
    for row in rows:
        truth[row] += 1 / len(rows)
    assert np.abs(model.marginal((0, 1)) - truth.sum(axis=2)).max() < 2e-3
    assert np.abs(model.marginal((1, 2)) - truth.sum(axis=0)).max() < 2e-3
    assert np.abs(model.marginal((0, 2)) - truth.sum(axis=1)).max() < 0.05


def test_mst_splits_as_it_says():
    plan = Plan(MSTMethod().charges(tiny_design((2, 3, 4, 2), Relation.REPLACE, 100), Fraction(1)))
    cost = {c.purpose: float(accounting.rho(c.event)) * c.times for c in plan}
    assert list(cost.values()) == pytest.approx([0.3, 0.1, 0.6])
    events = {c.purpose: (c.event, c.times) for c in plan}
    (one, _), (select, times), (pair, _) = events.values()
    assert isinstance(one, Gaussian)
    assert isinstance(select, Selection)
    assert (one.changes, select.sensitivity, times, pair.changes) == (8, 32, 3, 6)
