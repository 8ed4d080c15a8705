"""QueryGAN's own oracles."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from understudy.game import play
from understudy.game.methods.querygan import QueryGANMethod
from understudy.models import Empirical
from understudy.players.data.ftpl_generator import FTPLGenerator
from understudy.players.query.querygan import LogisticCritics, grouped
from understudy.privacy.cost import Perturbation, Plan
from understudy.privacy.gate import Gate
from understudy.testing import StillNoise, StrictCharges, TinyCounts, tiny_design

TINY = QueryGANMethod(rounds=2, batch=8, width=4, records=60, steps=1)


def test_logistic_critics_take_their_groups_in_turn():
    shape, cliques = (2, 3, 4), ((0, 1), (0, 2), (1, 2))
    assert grouped(cliques, shape, 15) == (((0, 1), (0, 2)), ((1, 2),))
    assert grouped(cliques, shape, 1) == tuple((c,) for c in cliques)
    made = QueryGANMethod(oracle="logistic", cells=15, rounds=5)
    design = replace(tiny_design(shape, rows=50), cliques=cliques)
    plan = Plan(made.charges(design, Fraction(1)))
    assert [(c.purpose, c.times) for c in plan][1:] == [
        ("critics of group 1", 3),
        ("critics of group 2", 2),
    ]
    assert all(isinstance(c.event, Perturbation) for c in list(plan)[1:])
    query, leader = made.players(design, plan)
    assert isinstance(query.then, LogisticCritics)
    assert (query.rounds, leader.rounds) == (6, 5)


def leader(**settings):
    given = {"rounds": 3, "batch": 32, "width": 8, "records": 90, "keep": 1.0, **settings}
    return FTPLGenerator(**given)


PICKING = replace(TINY, oracle="exponential", rounds=6, keep=0.5)


@pytest.mark.slow
def test_no_query_is_off_by_more_than_the_payoff_of_the_best_ones():
    """Without noise picks are the best, and the payoff alone bounds the error of the mixture."""
    design = tiny_design((3, 2), rows=5)
    plan = Plan(PICKING.charges(design, Fraction(1)))
    rows = [(0, 1), (2, 0), (2, 1), (2, 1), (1, 0)]
    counts = TinyCounts(design.shape, rows)
    gate = Gate(counts, StrictCharges(plan, design.relation), design.relation, StillNoise(), 5)
    query, data = PICKING.players(design, plan)
    model = play(design.problem(5), query, data, gate, np.random.default_rng(0)).model
    exact = Empirical.of(design.shape, np.array(rows))
    worst = max(np.abs(exact.marginal(c) - model.marginal(c)).max() for c in design.cliques)
    assert model.paid.rounds == 3
    assert worst <= model.paid.value / (5 * 3) + 1e-4
    theorem = PICKING.judged(design, plan, 5, 0.05, model, 10**9)
    assert worst <= theorem.bound
