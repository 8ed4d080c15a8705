"""`independent`: every column with the whole budget, and columns that are independent."""

from fractions import Fraction

import numpy as np

from understudy.game import play
from understudy.game.methods.independent import IndependentMethod
from understudy.privacy import accounting
from understudy.privacy.cost import Plan
from understudy.privacy.gate import Gate
from understudy.testing import StillNoise, StrictCharges, TinyCounts, tiny_design


def test_columns_are_measured_and_nothing_else():
    rows = [(0, 0)] * 4 + [(1, 2)] * 6
    design = tiny_design((2, 3), rows=10)
    made = IndependentMethod()
    plan = Plan(made.charges(design, Fraction(1, 3)))
    assert 0 <= Fraction(1, 3) - accounting.total_rho(plan) < Fraction(1, 10**12)
    gate = Gate(TinyCounts((2, 3), rows), StrictCharges(plan), design.relation, StillNoise(), 10)
    played = play(design.problem(10), *made.players(design, plan), gate, np.random.default_rng(0))
    ((one, other),) = played.answers
    assert (one.values.tolist(), other.values.tolist()) == ([4, 6], [4, 0, 6])
    joint = played.model.marginal((0, 1))
    np.testing.assert_allclose(joint, np.outer([0.4, 0.6], [0.4, 0, 0.6]))
