"""Public rules at their ends: a budget too small for a round still plays one, and it is within it."""

from fractions import Fraction

import pytest

from understudy.game.methods import METHODS
from understudy.privacy import accounting
from understudy.privacy.cost import Plan
from understudy.testing.methods import tiny_design

GAMES = {"fem": 1, "sepfem": 1, "dualquery": 2, "dqrs": 2, "mwem": 1, "frankwolfe": 1}


@pytest.mark.parametrize("name", GAMES)
def test_a_rule_that_rounds_to_no_round_plays_the_fewest(name):
    """κ = n·√(2ρ) is far below 1 here, so every rule says T = 0."""
    design, rho = tiny_design((2, 3), rows=1), Fraction(1, 10**8)
    method = METHODS[name]()
    method.check(design)
    plan = Plan(method.charges(design, rho))
    query, _ = method.players(design, plan)
    assert query.rounds == GAMES[name]
    assert 0 < accounting.total_rho(plan) <= rho
