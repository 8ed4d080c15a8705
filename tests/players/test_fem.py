"""FEM and sepFEM: exact privacy of the whole game, limits of the noise, and that it learns."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from tests.thorough import examples, slow

import understudy as us
from understudy.errors import InputError, WorkError
from understudy.game.methods import FEM, Design, SepFEM
from understudy.oracles import Law
from understudy.players.base import Measured, MeasuredCell, Problem
from understudy.players.data import PerturbedLeader
from understudy.players.query import CellPicker
from understudy.privacy import accounting
from understudy.privacy.buckets import SCORE_SENSITIVITY
from understudy.privacy.cost import Charge, Plan, Selection
from understudy.privacy.questions import Cell
from understudy.privacy.relation import Relation
from understudy.schema import Category, Integer, Schema
from understudy.testing import GivenNoise, game_law
from understudy.testing.exact import PrivacyViolation, check, neighbours

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


class HalfNoise(GivenNoise):
    """Selects with half the noise that was charged for."""

    def top_k(self, scores, scale, k):
        return super().top_k(scores, scale / 2, k)


@pytest.mark.parametrize("relation", list(Relation))
def test_exact_privacy_of_two_rounds(relation):
    problem, query, data, plan, claimed = small_game(1.0)
    pairs = list(neighbours(UNIVERSE, 2, relation))[:: examples(15, 5)]

    def law(rows, noise=GivenNoise):
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


def leader(step, law=Law.EXPONENTIAL, answers=20, decay=np.inf):
    """Records after the same query was picked again and again."""
    problem = Problem((3, 4), ((0, 1),), (1.0,), 100)
    player = PerturbedLeader(answers + 1, samples=400, step=step, decay=decay, law=law)
    state, rng = player.start(problem), np.random.default_rng(0)
    for _ in range(answers):
        picked = MeasuredCell((0, 1), Cell(0, (2, 1), 1))
        state = player.respond(problem, state, (picked,), rng)
    return player.view(problem, state)


@pytest.mark.parametrize("law", list(Law))
def test_noise_without_end_hides_the_queries(law):
    """Weights are in units of the noise, so noise without end is a step of nothing."""
    shares = leader(0.0, law).marginal((0, 1))
    assert np.abs(shares - 1 / 12).max() < 0.06


@pytest.mark.parametrize("law", list(Law))
def test_without_noise_the_leader_follows_the_queries(law):
    assert leader(1.0, law).marginal((0, 1))[2, 1] > 0.99


@pytest.mark.parametrize("law", list(Law))
def test_a_round_takes_its_step(law):
    before, after = leader(0.1, law, 0), leader(0.1, law, 1)
    moved = after.marginal((0, 1))[2, 1] - before.marginal((0, 1))[2, 1]
    assert moved == pytest.approx(0.1, abs=0.04)


def test_steps_begin_large_and_end_small():
    before = leader(0.04, answers=0).marginal((0, 1))[2, 1]
    for answers, steps in ((1, 2**-1.5), (2, 2**-1.5 + 3**-1.5)):
        share = leader(0.04, answers=answers, decay=1.5).marginal((0, 1))[2, 1]
        assert share == pytest.approx(before + steps, abs=0.08)
    assert leader(0.04, answers=1).marginal((0, 1))[2, 1] < 0.2


def test_a_cell_among_millions_is_met_at_once():
    problem = Problem((100, 100, 100), ((0, 1, 2),), (1.0,), 100)
    player = PerturbedLeader(10, samples=300)
    state, rng = player.start(problem), np.random.default_rng(0)
    for wanted in (2**-1.5, 2**-1.5 + 3**-1.5):
        picked = MeasuredCell((0, 1, 2), Cell(0, (7, 70, 99), 1))
        state = player.respond(problem, state, (picked,), rng)
        share = (state.records == (7, 70, 99)).all(axis=1).mean()
        assert share == pytest.approx(wanted, abs=0.12)


def test_a_complement_drives_records_away():
    problem = Problem((2, 2), ((0, 1),), (1.0,), 100)
    player = PerturbedLeader(10, samples=200, step=1.0)
    state, rng = player.start(problem), np.random.default_rng(0)
    shares = [player.view(problem, state).marginal((0, 1))[1, 1]]
    for _ in range(4):
        state = player.respond(problem, state, (MeasuredCell((0, 1), Cell(0, (1, 1), -1)),), rng)
        shares.append(player.view(problem, state).marginal((0, 1))[1, 1])
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 0.06


def test_measured_tables_are_refused():
    problem = Problem((2, 2), ((0, 1),), (1.0,), 100)
    player = PerturbedLeader(10)
    table = Measured((0, 1), np.zeros((2, 2), np.int64), 1.0)
    with pytest.raises(WorkError, match="picked queries"):
        player.respond(problem, player.start(problem), (table,), np.random.default_rng(0))


def test_the_kept_rounds_are_the_last_ones():
    problem = Problem((2, 2), ((0, 1),), (1.0,), 100)
    player = PerturbedLeader(10, samples=7, keep=0.3)
    state, rng = player.start(problem), np.random.default_rng(0)
    for _ in range(10):
        state = player.respond(problem, state, (MeasuredCell((0, 1), Cell(0, (1, 1), 1)),), rng)
    assert player.finish(problem, state).size == 3 * 7


def table(rows=4000):
    rng = np.random.default_rng(1)
    a = rng.choice(4, rows, p=[0.6, 0.2, 0.15, 0.05])
    b = np.where(rng.random(rows) < 0.8, a % 3, rng.integers(0, 3, rows))
    c = (a + b + (rng.random(rows) < 0.2)) % 5
    return pa.table({"a": a, "b": b, "c": c})


SCHEMA = Schema(
    (Category("a", (0, 1, 2, 3), dtype="int64"), Integer("b", 0, 2), Integer("c", 0, 4))
)


@pytest.mark.parametrize("method", ["fem", slow("sepfem")])
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
    charges = FEM().charges(design, Fraction(1, 50))
    assert accounting.total_rho(Plan(charges)) <= Fraction(1, 50)
    assert charges[0].times == round(2 * np.sqrt(1000 * np.sqrt(0.04)))
    wide = Design((400,) * 3, ((0, 1, 2),), (1.0,), Relation.ADD_REMOVE, 1000)
    balanced = round(88 * 1000 * np.sqrt(0.04) / np.log(2 * 400**3) ** 2.5)
    assert FEM().charges(wide, Fraction(1, 50))[0].times == balanced
    for method in (FEM(), SepFEM()):
        theorem = method.theorem(design, Plan(charges), 1000, 0.05)
        assert 0 < theorem.bound <= 1
        assert "oracle" in theorem.statement
    for bad in (
        FEM(rounds=0), FEM(samples=0), FEM(keep=0.0), FEM(step=0.0), FEM(decay=-1.0),
        FEM(law="cauchy"), FEM(samples=10**9),
    ):  # fmt: skip
        with pytest.raises(InputError, match="method = fem"):
            bad.check(design)
