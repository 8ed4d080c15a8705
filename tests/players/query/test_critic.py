"""A query player that trains a critic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from understudy.errors import BudgetExhausted
from understudy.game.methods.dpgan import DPGANMethod
from understudy.players.query.critic import CriticSteps
from understudy.privacy.cost import Plan
from understudy.privacy.gate import Gate
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StrictCharges, TinyCounts, tiny_design

TINY = {"steps": 6, "width": 4, "latent": 4, "critic_width": 4, "fakes": 8}


@pytest.mark.slow  # a release by training is in tests/releases/test_dpgan_releases.py
def test_training_never_passes_the_plan():
    design = tiny_design((3, 2), rows=30)
    made = DPGANMethod(**TINY)
    charges = StrictCharges(Plan(made.charges(design, Fraction(1))))
    rows = [(i % 3, i % 2) for i in range(30)]
    gate = Gate(
        TinyCounts((3, 2), rows), charges, Relation.ADD_REMOVE, SeededNoise(0), 30
    )  # fmt: skip
    query, data = made.players(design, charges.plan)
    problem, rng = design.problem(30), np.random.default_rng(0)
    state = data.start(problem)
    for round in range(query.rounds):
        answers = query.play(problem, gate, data.view(problem, state), round)
        state = data.respond(problem, state, answers, rng)
    assert sum(purpose == CriticSteps.STEP for purpose, _ in charges.charged) == 6
    with pytest.raises(BudgetExhausted):
        query.play(problem, gate, data.view(problem, state), 1)
    kept = data.diagnostics(state)["training"]
    assert kept["step"] == [1, 2, 3, 4, 5, 6]
    assert all(math.isfinite(x) for x in kept["critic_loss_on_made_up_rows"])
