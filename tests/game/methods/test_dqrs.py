"""`dqrs`: its contract, what it refuses, and a release with coins."""

from fractions import Fraction

import numpy as np
import pytest

import understudy as us
from understudy.errors import InputError
from understudy.game.methods.dqrs import DQRSMethod
from understudy.game.methods.dualquery import DualQueryMethod
from understudy.players.query.recycling import Recycling
from understudy.players.query.weights import QueryWeights
from understudy.privacy.cost import Plan
from understudy.schema import Boolean, Category, Schema
from understudy.testing import check_method, tiny_design

RECYCLES = DQRSMethod(rounds=10, samples=100)


@pytest.mark.slow
def test_the_method_keeps_its_contract_where_it_tosses_coins():
    design = tiny_design((2, 3, 2), rows=30)
    assert len(Recycling.of(Plan(RECYCLES.charges(design, Fraction(1, 16)))).recycled) > 2
    assert check_method(RECYCLES) >= 10


def test_no_theorem_is_claimed():
    design = tiny_design((2, 3), rows=30)
    plan = Plan(RECYCLES.charges(design, Fraction(1, 16)))
    assert RECYCLES.theorem(design, plan, 30, 0.05) is None
    assert DualQueryMethod().theorem(
        design, Plan(DualQueryMethod().charges(design, Fraction(1))), 30, 0.05
    )


@pytest.mark.parametrize(
    "settings", [{"rounds": 1}, {"samples": 0}, {"samples": 10**8}, {"fresh": 0}]
)
def test_sizes_that_make_no_game_are_refused(settings):
    ((name, value),) = settings.items()
    with pytest.raises(InputError, match=f"method = dqrs: {name} = {value}"):
        DQRSMethod(**settings).check(tiny_design((2, 2)))


@pytest.mark.parametrize("rho", [Fraction(1, 6000), Fraction(1, 300)], ids=str)
@pytest.mark.parametrize("shape", [(16, 15, 42), (100,) * 3], ids=str)
def test_nearly_every_round_recycles_and_draws_as_many(shape, rho):
    """n of ADULT at about ε = 0.1 and 0.5."""
    design = tiny_design(shape, rows=48_842)
    plan = Plan(DQRSMethod().charges(design, rho))
    rounds, fresh, _ = QueryWeights.read(plan)
    assert len(Recycling.of(plan).recycled) > 0.9 * rounds
    dual_rounds, samples, _ = QueryWeights.read(Plan(DualQueryMethod().charges(design, rho)))
    assert (fresh, rounds) == (samples, dual_rounds)


def test_a_release_with_coins_verifies(tmp_path):
    import pyarrow as pa

    rng = np.random.default_rng(0)
    rows = pa.table({"a": rng.choice(["x", "y"], 40, p=[0.9, 0.1]), "b": rng.random(40) < 0.2})
    schema = Schema((Category("a", ("x", "y")), Boolean("b")))
    made = us.release(rows, schema, epsilon=1, delta="1e-6", method=RECYCLES, rows_public=40, key=3)
    assert any("coins" in charge.purpose for charge in made.plan)
    made.save(tmp_path / "bundle")
    us.verify(tmp_path / "bundle").require()
