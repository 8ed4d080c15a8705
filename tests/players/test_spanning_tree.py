"""The private spanning tree, and the players that measure fixed tables."""

from fractions import Fraction

import numpy as np
import pytest

from understudy.game import play
from understudy.game.methods import IndependentMethod, MSTMethod
from understudy.models import Decomposable
from understudy.players.base import Problem
from understudy.players.data import MaximumEntropy
from understudy.players.query import FixedMarginals, SpanningTree
from understudy.privacy.cost import Charge, Gaussian, Plan, Selection
from understudy.privacy.gate import Gate
from understudy.privacy.noise import SeededNoise
from understudy.privacy.questions import GRID
from understudy.privacy.relation import Relation
from understudy.testing import StillNoise, StrictCharges, TinyCounts, tiny_design

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


def test_fixed_marginals_measures_what_it_says_once():
    cliques, shape = ((0, 1), (1,)), (2, 3)
    account = StrictCharges(Plan((Charge("these", Gaussian(2.5, changes=4)),)), Relation.REPLACE)
    gate = Gate(
        TinyCounts(shape, [(1, 2), (0, 0), (1, 2)]), account, Relation.REPLACE, StillNoise(), 3
    )
    problem = Problem(shape, cliques, (1.0, 1.0), 3)
    view = Decomposable.independent([np.ones(2), np.ones(3)])
    player = FixedMarginals(cliques, 2.5, "these")
    assert player.rounds == 1
    pair, one = player.play(problem, gate, view, 0)
    assert pair.values.tolist() == [[1, 0, 0], [0, 0, 2]]
    assert one.values.tolist() == [1, 0, 2]
    assert (pair.sigma, one.sigma, len(account.charged)) == (2.5, 2.5, 1)


def test_maximum_entropy_of_one_ways_is_independence_without_mbi():
    problem = Problem((2, 3), ((0,), (1,)), (1.0, 1.0), 10)
    data, rng = MaximumEntropy(), np.random.default_rng(0)
    account = StrictCharges(Plan((Charge("one-way marginals", Gaussian(1.0, changes=2)),)))
    rows = [(0, 0)] * 4 + [(1, 2)] * 6
    gate = Gate(TinyCounts((2, 3), rows), account, Relation.ADD_REMOVE, StillNoise())
    player = FixedMarginals(((0,), (1,)), 1.0)
    state = data.start(problem)
    answers = player.play(problem, gate, data.view(problem, state), 0)
    model = data.finish(problem, data.respond(problem, state, answers, rng))
    assert model.cliques == ((0,), (1,))
    np.testing.assert_allclose(model.marginal((0, 1)), np.outer([0.4, 0.6], [0.4, 0, 0.6]))
