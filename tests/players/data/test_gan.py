"""DP-GAN as data player."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from understudy.game.methods.dpgan import DPGANMethod
from understudy.players.base import CriticGradient
from understudy.privacy.cost import Plan
from understudy.privacy.gate import Gate
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StrictCharges, TinyCounts, tiny_design

TINY = {"steps": 6, "width": 4, "latent": 4, "critic_width": 4, "fakes": 8}


def started(made):
    """A data player that has been told the columns of a tiny table."""
    design = tiny_design((3, 2), rows=30)
    plan = Plan(made.charges(design, Fraction(1)))
    query, data = made.players(design, plan)
    problem = design.problem(30)
    charges = StrictCharges(plan)
    gate = Gate(TinyCounts((3, 2), [(0, 1)] * 30), charges, Relation.ADD_REMOVE,
                      SeededNoise(0), 30)  # fmt: skip
    rng = np.random.default_rng(0)
    answers = query.play(problem, gate, None, 0)
    return problem, data, data.respond(problem, data.start(problem), answers, rng)


def some_answer(data):
    size = sum((inputs + 1) * outputs for inputs, outputs in data.gan.critic.layers)
    return (CriticGradient(np.linspace(-1, 1, size).astype(np.float32)),)


@pytest.mark.slow
def test_the_last_critic_gradient_alone_moves_the_networks():
    """The same answers, whatever the rows: state is a function of them and of the key."""
    problem, data, start = started(DPGANMethod(**TINY))
    answer = some_answer(data)
    one, other = (data.respond(problem, start, answer, np.random.default_rng(5)) for _ in range(2))
    import jax

    for a, b in zip(
        jax.tree.leaves(one.networks.playing), jax.tree.leaves(other.networks.playing), strict=True
    ):
        assert (np.asarray(a) == np.asarray(b)).all()


@pytest.mark.slow
def test_groups_are_found_anew_every_so_many_steps():
    problem, data, state = started(DPGANMethod(**TINY, groups=2, regroup=2))
    found = []
    for step in range(4):
        state = data.respond(problem, state, some_answer(data), np.random.default_rng(step))
        found.append(state.networks.grouping)
    assert found[0] is state.history[0][3]
    assert found[1] is not found[0]
    assert found[2] is found[1]
    assert found[3] is not found[2]
