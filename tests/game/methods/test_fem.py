"""`fem` and `sepfem`: exact privacy of the whole game, plans and theorems, and that they learn."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.exact_privacy import ChoosingNoise, PrivacyViolation, check, game_law, neighbours
from tests.thorough import examples, some
from understudy.errors import InputError
from understudy.game.methods import Design
from understudy.game.methods.fem import FEMMethod, SepFEMMethod
from understudy.players.base import Problem
from understudy.players.data.ftpl import PerturbedLeader, UnitLeader
from understudy.players.query.picking import CellPicker
from understudy.privacy import accounting
from understudy.privacy.buckets import SCORE_SENSITIVITY
from understudy.privacy.cost import Charge, Plan, Selection
from understudy.privacy.relation import Relation
from understudy.schema import Category, Integer, Schema

SHAPE = (2, 2)
UNIVERSE = list(product(range(2), range(2)))


def small_game(scale_rows: float, rounds: int = 2, charged: int | None = None):
    """Two rounds on four possible rows; the plan claims `charged` rounds."""
    plan = Plan(
        (Charge(CellPicker.PICK, Selection(scale_rows * 65536, SCORE_SENSITIVITY), rounds),)
    )
    claimed = plan if charged is None else Plan((Charge("x", plan.charges[0].event, charged),))
    problem = Problem(SHAPE, ((0, 1),), (1.0,), 2)
    query = CellPicker(rounds)
    data = PerturbedLeader(rounds, samples=2)
    return problem, query, data, plan, claimed


class HalfNoise(ChoosingNoise):
    """Selects with half the noise that was charged for."""

    def top_k(self, scores, scale, k):
        return super().top_k(scores, scale / 2, k)


@pytest.mark.parametrize("relation", some(Relation, 2))
def test_exact_privacy_of_two_rounds(relation):
    problem, query, data, plan, claimed = small_game(1.0)
    pairs = list(neighbours(UNIVERSE, 2, relation))[:: examples(30, 5)]

    def law(rows, noise=ChoosingNoise):
        return game_law(
            query, data, problem, plan, rows, relation=relation, rows_public=2, noise=noise
        )

    pure = float(sum(accounting.pure(charge.event) * charge.times for charge in claimed))
    check(law, pairs, pure=pure, rho=float(accounting.total_rho(claimed)))
    with pytest.raises(PrivacyViolation):
        check(lambda rows: law(rows, HalfNoise), pairs, pure=pure)


def test_a_forgotten_round_is_caught():
    problem, query, data, plan, claimed = small_game(1.0, charged=1)
    pairs = list(neighbours(UNIVERSE, 2, Relation.REPLACE))[::5]
    pure = float(sum(accounting.pure(charge.event) * charge.times for charge in claimed))
    with pytest.raises(PrivacyViolation):
        check(
            lambda rows: game_law(
                query, data, problem, plan, rows, relation=Relation.REPLACE, rows_public=2
            ),
            pairs,
            pure=pure,
        )


def table(rows=4000):
    rng = np.random.default_rng(1)
    a = rng.choice(4, rows, p=[0.6, 0.2, 0.15, 0.05])
    b = np.where(rng.random(rows) < 0.8, a % 3, rng.integers(0, 3, rows))
    c = (a + b + (rng.random(rows) < 0.2)) % 5
    return pa.table({"a": a, "b": b, "c": c})


SCHEMA = Schema(
    (Category("a", (0, 1, 2, 3), dtype="int64"), Integer("b", 0, 2), Integer("c", 0, 4))
)


@pytest.mark.slow  # of releases it is seen in tests/releases/test_class_releases.py
@pytest.mark.parametrize("method", ["fem", "sepfem"])
def test_error_falls_with_the_budget(method):
    data = table()
    codes = SCHEMA.encode(data)

    def error(epsilon):
        made = us.release(
            data, SCHEMA, epsilon=epsilon, workload="marginals:2", method=method, rows_public=4000
        )
        drawn = SCHEMA.encode(made.rows)
        worst = 0.0
        for i, j in ((0, 1), (0, 2), (1, 2)):
            size = SCHEMA.shape[i] * SCHEMA.shape[j]
            real = np.bincount(codes[i].astype(int) * SCHEMA.shape[j] + codes[j], minlength=size)
            fake = np.bincount(drawn[i].astype(int) * SCHEMA.shape[j] + drawn[j], minlength=size)
            worst = max(worst, np.abs(real / 4000 - fake / len(drawn[0])).max())
        return worst

    poor, good = error("0.02"), error("100")
    assert good < 0.04
    assert poor > good


def test_plans_theorems_and_bad_settings():
    design = Design((4, 3), ((0, 1),), (1.0,), Relation.ADD_REMOVE, 1000)
    charges = FEMMethod().charges(design, Fraction(1, 50))
    assert accounting.total_rho(Plan(charges)) <= Fraction(1, 50)
    assert charges[0].times == round(2 * np.sqrt(1000 * np.sqrt(0.04)))
    wide = Design((400,) * 3, ((0, 1, 2),), (1.0,), Relation.ADD_REMOVE, 1000)
    balanced = round(88 * 1000 * np.sqrt(0.04) / np.log(2 * 400**3) ** 2.5)
    assert FEMMethod().charges(wide, Fraction(1, 50))[0].times == balanced
    for bad in (
        FEMMethod(rounds=0),
        FEMMethod(samples=0),
        FEMMethod(keep=0.0),
        FEMMethod(step=0.0),
        FEMMethod(decay=-1.0),
        FEMMethod(starts=0),
        FEMMethod(blocks=-1),
        FEMMethod(law="cauchy"),
        FEMMethod(samples=10**9),
        FEMMethod(scale=2.0),
        FEMMethod(published=True, scale=0.0),
        FEMMethod(published=True, step=0.1),
        FEMMethod(published="yes"),
    ):
        with pytest.raises(InputError, match="method = fem"):
            bad.check(design)


def test_the_theorem_is_for_the_published_algorithm_alone():
    design = Design((2, 2), ((0, 1),), (1.0,), Relation.ADD_REMOVE, 10**12)
    plan = Plan(FEMMethod(rounds=10**9).charges(design, Fraction(10)))
    for ours in (FEMMethod(), SepFEMMethod(), FEMMethod(published=True, law="gumbel")):
        assert ours.theorem(design, plan, 10**12, 0.05) is None
    picks = 8 * 10**9  # T|Q|, cells and complements
    event = plan[CellPicker.PICK].event
    rest = event.scale / 65536 / 10**12 * np.log(2 * picks / 0.05)
    rest += np.sqrt(np.log(4 * picks / 0.05) / (2 * 10**6))
    d, T = 4, 10**9
    for method, scale, regret in (
        (FEMMethod, 50 * np.sqrt(T * d), 5 * d**1.5 / np.sqrt(T)),  # the best scale: 2√(AB)
        (FEMMethod, 10**6, 125 * d**2 / 10**6 + d * 10**6 / (20 * T)),
        (SepFEMMethod, np.sqrt(2 * T / (5 * np.sqrt(d))), 2 * np.sqrt(40 * d**2.5 / T)),
    ):
        published = method(published=True, scale=float(scale), samples=10**6)
        theorem = published.theorem(design, plan, 10**12, 0.05)
        assert theorem.bound == pytest.approx(regret + rest, rel=1e-6)
        assert "oracle" in theorem.statement


def test_the_published_algorithm_is_played():
    design = Design((4, 3, 5), ((0, 1), (1, 2)), (1.0, 1.0), Relation.ADD_REMOVE, 1000)
    for method, law in ((FEMMethod, "exponential"), (SepFEMMethod, "laplace")):
        settings = method(published=True, scale=3.0, rounds=7, samples=9)
        plan = Plan(settings.charges(design, Fraction(1, 50)))
        _, leader = settings.players(design, plan)
        assert isinstance(leader, UnitLeader)
        assert (leader.law, leader.scale, leader.keep) == (law, 3.0, 1.0)
        assert accounting.total_rho(plan) <= Fraction(1, 50)
    made = us.release(
        table(), SCHEMA, epsilon=1, workload="marginals:2", method="fem", rows_public=4000,
        parameters={"published": True, "rounds": 5, "samples": 20},
    )  # fmt: skip
    assert made.method["published"] is True
    assert made.theorem is not None
