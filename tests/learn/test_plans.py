"""Plans that stay within the budget, and public rules."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from understudy.errors import InputError
from understudy.learn.plans import (
    PICK,
    START,
    Facts,
    Rule,
    descent_plan,
    on_words,
    picks_plan,
    rule_for,
)
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget
from understudy.privacy.losses import Logistic, Softmax, Squared
from understudy.privacy.relation import Relation


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("rate", [1.0, 0.125])
def test_plans_use_the_budget_and_stay_within_it(relation, rate):
    facts = Facts(5000, 20, Logistic(), 10.0, relation, Budget.of(1, "1e-7"))
    for plan, least in (
        (picks_plan(facts, 40, rate), 0.94),
        (descent_plan(facts, 40, rate, 1.0), 0.99),
    ):
        assert least < accounting.epsilon(plan, Fraction(1, 10**7)).epsilon <= 1


def test_rules_are_functions_of_public_facts():
    few, many = (
        Facts(n, 20, Logistic(), 10.0, Relation.ADD_REMOVE, Budget.of(1, "1e-7"))
        for n in (5_000, 500_000)
    )
    assert rule_for(few, "sgd") == rule_for(many, "sgd") == Rule(400, on_words(0.1), 2.0)
    assert rule_for(few, "frank-wolfe").steps < rule_for(many, "frank-wolfe").steps
    assert rule_for(few, "sgd", 7, 0.5, 1.5) == Rule(7, 0.5, 1.5)
    picked = rule_for(few, "frank-wolfe", 9)
    assert (picked.delay, picked.kept) == (18, range(4, 9))  # the first step is 2/20 of the radius
    with pytest.raises(InputError, match="setting of sgd"):
        rule_for(few, "frank-wolfe", clip=1.0)


def test_rates_can_be_drawn_exactly():
    assert [on_words(rate) for rate in (0.0, 0.5, 1.0)] == [2.0**-32, 0.5, 1.0]
    assert on_words(0.1) * 2**32 % 1 == 0


def test_the_number_of_picks_follows_rows_budget_and_vertices():
    """0.6·n·√(8ρ)/(c·L0·ln²K), or 1.8·n·√(8ρ)/(c·L0·ln³K) for numbers, from 1 to 1000, whatever the
    radius; ρ what the start leaves."""

    def picks(n=10_000, width=11, epsilon=1, relation=Relation.ADD_REMOVE, radius=80.0, loss=None):
        facts = Facts(n, width, loss or Logistic(), radius, relation, Budget.of(epsilon, "1e-8"))
        return rule_for(facts, "frank-wolfe").steps

    signal = 10_000 * (8 * 0.9 * float(planning.rho_for(Budget.of(1, "1e-8")))) ** 0.5
    assert picks() == round(0.6 * signal / math.log(22) ** 2)
    assert picks(loss=Squared(2.0)) == round(1.8 * signal / (2 * math.log(22) ** 3))
    assert picks(n=20) == picks(n=300, width=100_000) == picks(epsilon=0.001) == 1
    assert picks(n=1_000_000) == 1_000
    assert abs(picks(relation=Relation.REPLACE) - picks() / 2) <= 1
    assert picks(radius=1e9) == picks()


FACTS = Facts(5_000, 20, Logistic(), 10.0, Relation.ADD_REMOVE, Budget.of(1, "1e-8"))


def test_what_of_the_iterates_is_kept():
    for iterate, kept in (("tail", range(20, 40)), ("last", range(39, 40))):
        assert rule_for(FACTS, "frank-wolfe", 40, iterate=iterate).kept == kept
    drawn = {rule_for(FACTS, "frank-wolfe", 4, delay=0, iterate="one").kept for _ in range(200)}
    # Each of the four is missed with probability 0.75^200 < 1e-24.
    assert drawn == {range(at, at + 1) for at in range(4)}


@pytest.mark.parametrize(
    ("picks", "said"),
    [
        ({"delay": -1}, "delay = -1 must be a whole number from 0"),
        ({"delay": 2.5}, "delay = 2.5 must be"),
        ({"delay": True}, "delay = True must be"),
        ({"iterate": "best"}, "iterate = 'best' is not one of tail, last, one"),
        ({"noise": "normal"}, "noise = 'normal' is not one of gumbel, laplace"),
        ({"start": 1}, "start = 1 must be at least 0 and below 1"),
        ({"start": "no"}, "start = 'no' must be a number"),
    ],
)
def test_settings_of_picks_that_cannot_be(picks, said):
    with pytest.raises(InputError, match=said):
        rule_for(FACTS, "frank-wolfe", **picks)
    with pytest.raises(InputError, match="is a setting of frank-wolfe; sgd has none"):
        rule_for(FACTS, "sgd", **picks)


def test_laplace_noise_sees_all_rows():
    with pytest.raises(InputError, match="'laplace' sees all rows"):
        rule_for(FACTS, "frank-wolfe", rate=0.5, noise="laplace")


def test_laplace_noise_is_about_twice_gumbel_noise_and_uses_the_budget():
    gumbel, laplace = (picks_plan(FACTS, 400, noise=noise) for noise in ("gumbel", "laplace"))
    scales = [plan.charges[0].event.scale for plan in (gumbel, laplace)]
    assert 1.7 < scales[1] / scales[0] < 2.1
    assert 0.94 < accounting.epsilon(laplace, Fraction(1, 10**8)).epsilon <= 1


def test_first_steps_are_shorter_where_picks_are_few():
    for steps, first in ((2, 0.5), (8, 1.0), (100, 1.0)):
        assert rule_for(FACTS, "frank-wolfe", steps).delay == 2 * 10 / first - 2


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("loss", [Logistic(), Squared(2.0), Softmax(3)], ids=str)
def test_the_start_has_its_share_of_the_budget(relation, loss):
    facts = Facts(5_000, 20, loss, 10.0, relation, Budget.of(1, "1e-8"))
    assert rule_for(facts, "frank-wolfe").start == 0.1
    plan = picks_plan(facts, 40, start=0.1)
    costs = {charge.purpose: accounting.rho(charge.event) * charge.times for charge in plan}
    assert list(costs) == [START, PICK]
    assert float(costs[START] / sum(costs.values())) == pytest.approx(0.1, rel=1e-6)
    assert 0.94 < accounting.epsilon(plan, Fraction(1, 10**8)).epsilon <= 1
    assert START not in picks_plan(facts, 40)


def test_without_an_intercept_nothing_is_spent_on_it():
    assert rule_for(FACTS, "frank-wolfe", intercept=False).start == 0
    assert rule_for(FACTS, "sgd", intercept=False).start == 0
    with pytest.raises(InputError, match=r"start = 0.2 is that of an intercept.*leave it out"):
        rule_for(FACTS, "frank-wolfe", start=0.2, intercept=False)
