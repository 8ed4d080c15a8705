"""Players with a fixed strategy, one after the other and together."""

import numpy as np

from understudy.models import Decomposable
from understudy.players.base import Problem
from understudy.players.query.fixed import FixedMarginals, InTurn, Together
from understudy.privacy.cost import Charge, Gaussian, Plan
from understudy.privacy.gate import Gate
from understudy.privacy.relation import Relation
from understudy.testing import StillNoise, StrictCharges, TinyCounts


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


def test_players_in_turn_and_together_play_all_rounds_under_their_own_charges():
    ones, pair = FixedMarginals(((0,), (1,)), 2.0, "ones"), FixedMarginals(((0, 1),), 3.0, "pair")
    rows = [(1, 2), (0, 0), (1, 2)]
    problem = Problem((2, 3), ((0, 1),), (1.0,), 3)
    plan = Plan((Charge("ones", Gaussian(2.0, changes=2)), Charge("pair", Gaussian(3.0))))
    for player, rounds in ((InTurn(ones, pair), 2), (Together((ones, pair)), 1)):
        charges = StrictCharges(plan)
        gate = Gate(TinyCounts((2, 3), rows), charges, Relation.ADD_REMOVE, StillNoise())
        assert player.rounds == rounds
        assert player.gives == ones.gives
        assert player.needs == ()
        answers = [a for round in range(rounds) for a in player.play(problem, gate, None, round)]
        assert [answer.clique for answer in answers] == [(0,), (1,), (0, 1)]
        assert [answer.sigma for answer in answers] == [2.0, 2.0, 3.0]
        assert [purpose for purpose, _ in charges.charged] == ["ones", "pair"]
