"""The private spanning tree."""

import numpy as np
import pytest

from understudy.players.base import Problem
from understudy.players.data.maxent import MaximumEntropy
from understudy.players.query.tree import SpanningTree
from understudy.privacy.cost import Charge, Gaussian, Plan, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.questions import GRID
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StillNoise, StrictCharges, TinyCounts

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


def tree_plan(columns, sigma=1.0, scale=1.0):
    charges = [Charge(SpanningTree.ONE_WAY, Gaussian(sigma, changes=2 * columns))]
    if columns > 1:
        charges += [
            Charge(SpanningTree.SELECT, Selection(scale, 2 * GRID), columns - 1),
            Charge(SpanningTree.PAIRS, Gaussian(sigma, changes=2 * (columns - 1))),
        ]
    return Plan(tuple(charges))


def run(rows, shape, noise, scale=1.0):
    problem = Problem(shape, tuple((i,) for i in range(len(shape))), (1.0,) * len(shape), len(rows))
    account = StrictCharges(tree_plan(len(shape), scale=scale))
    gate = Gate(TinyCounts(shape, rows), account, Relation.ADD_REMOVE, noise)
    player, data = SpanningTree(1.0, 1.0), MaximumEntropy()
    ones = player.play(problem, gate, data.start(problem), 0)
    state = data.respond(problem, data.start(problem), ones, np.random.default_rng(0))
    return ones, player.play(problem, gate, data.view(problem, state), 1), account


@pytest.mark.parametrize("name", TREES)
def test_a_planted_tree_is_found_with_little_noise(name):
    rows = planted(TREES[name])
    for noise in (StillNoise(), SeededNoise(1), SeededNoise(2)):
        ones, pairs, account = run(rows, (3,) * 5, noise)
        assert [answer.clique for answer in ones] == [(i,) for i in range(5)]
        assert [answer.clique for answer in pairs] == sorted(TREES[name])
        purposes = [purpose for purpose, _ in account.charged]
        select = [SpanningTree.SELECT] * 4
        assert purposes == [SpanningTree.ONE_WAY, *select, SpanningTree.PAIRS]


def test_with_much_noise_it_is_some_tree():
    seen = set()
    for key in range(12):
        _, pairs, _ = run(planted(TREES["chain"]), (3,) * 5, SeededNoise(key), scale=1e6)
        edges = [answer.clique for answer in pairs]
        assert len(edges) == 4
        assert spans(edges, 5)
        seen.add(tuple(edges))
    assert len(seen) > 5


def spans(edges, columns):
    reached, grew = {0}, True
    while grew:
        grew = False
        for i, j in edges:
            if (i in reached) != (j in reached):
                reached |= {i, j}
                grew = True
    return len(reached) == columns


def test_one_column_has_no_tree():
    ones, pairs, account = run([(0,), (2,)], (3,), StillNoise())
    assert ones[0].values.tolist() == [1, 0, 1]
    assert pairs == ()
    assert len(account.charged) == 1
