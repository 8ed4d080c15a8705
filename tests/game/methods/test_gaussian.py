"""`gaussian`: what is measured, and that it is answered."""

import math
from fractions import Fraction

import numpy as np
import pytest

from understudy.game import play
from understudy.game.methods import Design
from understudy.game.methods.gaussian import GaussianMethod
from understudy.privacy.cost import Plan
from understudy.privacy.gate import Gate
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StrictCharges, TinyCounts


def parity(n=2_000):
    """Three coins of which any two are independent and all three are not."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(2, size=(2, n))
    return list(zip(a.tolist(), b.tolist(), (a ^ b).tolist(), strict=True))


def played(method, rows, shape, rho, noise, cliques=((0, 1, 2),)):
    design = Design(shape, cliques, (1.0,) * len(cliques), Relation.ADD_REMOVE, len(rows))
    plan = Plan(method.charges(design, rho))
    account = StrictCharges(plan, design.relation)
    gate = Gate(TinyCounts(shape, rows), account, design.relation, noise, len(rows))
    query, data = method.players(design, plan)
    model = play(design.problem(len(rows)), query, data, gate, np.random.default_rng(0)).model
    return model, account


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_gaussian_measures_the_workload_and_lone_columns_alike(relation):
    design = Design((2, 3, 4), ((0, 1), (1,), (0, 1)), (1.0,) * 3, relation, 50)
    (charge,) = GaussianMethod().charges(design, Fraction(1, 2))
    tables = 3  # (0, 1), (1,) and the column that nobody asks for
    assert charge.event.changes == tables * relation.multiplicity
    assert charge.event.sigma == pytest.approx(math.sqrt(tables * relation.multiplicity))
    query, _ = GaussianMethod().players(design, Plan((charge,)))
    assert query.cliques == ((0, 1), (1,), (2,))


def test_gaussian_answers_what_it_measured():
    rows = parity()
    model, account = played(
        GaussianMethod(), rows, (2, 2, 2), Fraction(100), SeededNoise(4), ((0, 1, 2), (0, 1))
    )
    truth = np.zeros((2, 2, 2))
    for row in rows:
        truth[row] += 1 / len(rows)
    assert np.abs(model.marginal((0, 1, 2)) - truth).max() < 2e-3
    assert len(account.charged) == 1
