"""What holds for every method: its registry, its charges, its forecast."""

import dataclasses
import json
import subprocess
import sys
from fractions import Fraction

import pytest

from understudy.errors import InputError
from understudy.game.methods import METHODS, method
from understudy.game.methods.aim import AIMMethod
from understudy.game.methods.gaussian import GaussianMethod
from understudy.game.methods.independent import IndependentMethod
from understudy.game.methods.maxent import MaxEntMethod
from understudy.game.methods.mst import MSTMethod
from understudy.game.methods.mwem import MWEMMethod
from understudy.privacy import accounting
from understudy.privacy.cost import Plan
from understudy.privacy.relation import Relation
from understudy.testing import tiny_design

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


def test_methods_by_name():
    assert set(METHODS) >= {"independent", "mst", "mwem"}
    assert method("auto") == MaxEntMethod()
    assert method("mwem", rounds=7) == MWEMMethod(rounds=7)
    for name, make in METHODS.items():
        described = make().describe()
        assert described["name"] == name
        parameters = {k: v for k, v in json.loads(json.dumps(described)).items() if k != "name"}
        assert method(name, **parameters) == make()


def test_a_method_is_loaded_when_it_is_asked_for():
    code = (
        "import sys\n"
        "from understudy.game.methods import METHODS\n"
        "assert 'mst' in METHODS and len(METHODS) == len(list(METHODS))\n"
        "METHODS['mst']\n"
        "print(*(name for name in METHODS if f'understudy.game.methods.{name}' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["mst"]


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [("mts", {}, "choose auto, .*independent"), ("mst", {"round": 3}, "method = mst")],
)
def test_wrong_names_and_parameters_are_named(name, parameters, message):
    with pytest.raises(InputError, match=message):
        method(name, **parameters)


@pytest.mark.parametrize("relation", list(Relation), ids=str)
@pytest.mark.parametrize("rho", [Fraction(1, 1000), Fraction(2, 7), Fraction(50)], ids=str)
@pytest.mark.parametrize(
    "made",
    [
        AIMMethod(),
        GaussianMethod(),
        IndependentMethod(),
        MSTMethod(),
        MWEMMethod(),
        MWEMMethod(measure=False),
        MWEMMethod(rounds=9),
    ],
    ids=str,
)
def test_charges_use_the_whole_budget_and_no_more(made, rho, relation):
    for columns in (1, 2, 5):
        plan = Plan(made.charges(tiny_design((3, 2, 2, 4, 2)[:columns], relation, 500), rho))
        cost = accounting.total_rho(plan)
        assert cost <= rho
        assert float(cost / rho) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("made", [IndependentMethod(), MSTMethod(), MWEMMethod()], ids=str)
def test_methods_are_frozen(made):
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "another"


@pytest.mark.parametrize("name", METHODS)
def test_forecasts_grow_with_the_table(name):
    made, design = METHODS[name](), tiny_design((2, 3, 4), rows=1_000)
    plan = Plan(made.charges(design, Fraction(1)))
    small, large = (made.forecast(design, plan, rows) for rows in (1_000, 10**7))
    assert small.memory_bytes < large.memory_bytes
    assert small.seconds <= large.seconds
