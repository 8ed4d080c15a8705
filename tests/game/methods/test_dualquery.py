"""`dualquery`: its public rules, its theorem, and that it learns."""

import math
from fractions import Fraction

import numpy as np
import pytest

import understudy as us
from understudy.errors import InputError
from understudy.game.methods.dualquery import DualQueryMethod
from understudy.players.query.weights import QueryWeights
from understudy.privacy.buckets import UNIT
from understudy.privacy.cost import Plan
from understudy.schema import Boolean, Category, Schema
from understudy.testing import tiny_design


def test_rules_are_public_and_bounded():
    for rows, expected in ((400, 400), (None, 10_000)):
        design = tiny_design((2, 3), rows=rows)
        for rho in (Fraction(1, 100), Fraction(1)):
            kappa = expected * math.sqrt(2 * rho)
            plan = Plan(DualQueryMethod().charges(design, rho))
            rounds, samples, _ = QueryWeights.read(plan)
            told = 3 * (kappa / (5 * math.log(2 * design.queries))) ** 2
            draws = min(2 * math.sqrt(kappa) * max(3, math.sqrt(kappa) / 15), told)
            assert 0.6 * draws - 1 < rounds * samples < 1.01 * draws + 1
            assert rounds <= 3 * math.sqrt(kappa) + 1
    for rho in (Fraction(1, 10**15), Fraction(10**6)):
        design = tiny_design((2, 3), rows=10**9)
        rounds, samples, _ = QueryWeights.read(Plan(DualQueryMethod().charges(design, rho)))
        assert 2 <= rounds <= 400
        assert 1 <= samples <= 100


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": 0}, "rounds = 0"),
        ({"rounds": 1}, "rounds = 1"),
        ({"rounds": 10**7}, "rounds = 10000000"),
        ({"samples": 0}, "samples = 0"),
        ({"samples": 10**9}, "holds them in memory"),
        ({"records": 0}, "records = 0"),
    ],
)
def test_sizes_that_make_no_game_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        DualQueryMethod(**settings).check(tiny_design((2, 2)))


def test_the_theorem_is_the_formula():
    design = tiny_design((2, 3), rows=10**9)
    method = DualQueryMethod(rounds=400, samples=10_000)
    plan = Plan(method.charges(design, Fraction(1, 10**7)))
    rounds, samples, scale = QueryWeights.read(plan)
    eta = 10**9 * UNIT / scale
    bound = method.theorem(design, plan, 10**9, 0.05)
    deviation = math.sqrt(math.log(2 * 6 * rounds / 0.05) / (2 * samples))
    expected = eta + math.log(2 * (2 + 3 + 6)) / (eta * rounds) + 2 * deviation
    assert bound.bound == pytest.approx(min(1.0, expected))
    assert "exact oracle" in bound.statement
    small = tiny_design((2, 3), rows=50)
    coarse = Plan(DualQueryMethod().charges(small, Fraction(1, 100)))
    assert DualQueryMethod().theorem(small, coarse, 50, 0.05).bound == 1.0


def table(rows, key=0):
    import pyarrow as pa

    rng = np.random.default_rng(key)
    a = rng.choice(["x", "y", "z"], rows, p=[0.7, 0.2, 0.1])
    b = np.where(rng.random(rows) < 0.9, a == "x", rng.random(rows) < 0.5)
    schema = Schema((Category("a", ("x", "y", "z")), Boolean("b")))
    return pa.table({"a": a, "b": b}), schema


def test_it_learns_and_its_release_verifies(tmp_path):
    rows, schema = table(4_000)
    made = us.release(
        rows, schema, epsilon=4, delta="1e-8", method="dualquery", rows_public=4_000, key=1
    )
    assert made.certificate.bound < 0.25
    made.save(tmp_path / "bundle")
    assert us.verify(tmp_path / "bundle").passed
