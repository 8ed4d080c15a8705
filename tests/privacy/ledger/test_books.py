"""What entries say is spent: exact sums, under either rule of composition."""

import math
import random
from fractions import Fraction

import pytest

from tests.privacy.ledger.test_ledger import PART, TOTAL, kinds, pure_plan, reserve, spend
from understudy.errors import BudgetExhausted
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Charge, Gaussian, Laplace, Plan
from understudy.privacy.relation import Relation


def test_ten_tenths_fit_exactly_and_nothing_more(ledger):
    for _ in range(10):
        spend(ledger, "0.1", "1e-10")
    spent = ledger.spent("people")
    assert spent.epsilon == 1
    assert spent.delta == Fraction(1, 10**9)
    assert spent.remaining_epsilon == 0
    assert isinstance(spent.epsilon, Fraction)
    before = kinds(ledger)
    with pytest.raises(BudgetExhausted):
        spend(ledger, "1e-9")
    assert kinds(ledger) == before


def test_delta_is_a_budget_too(ledger):
    spend(ledger, "0.01", "6e-10")
    with pytest.raises(BudgetExhausted):
        spend(ledger, "0.01", "6e-10")
    spend(ledger, "0.01", "4e-10")


def test_an_open_reservation_counts_in_full(ledger):
    first = reserve(ledger, Budget.of("0.6", "1e-10"), pure_plan("0.6"))
    assert ledger.spent("people").epsilon == Fraction(3, 5)
    with pytest.raises(BudgetExhausted):
        reserve(ledger, Budget.of("0.5", "1e-10"), pure_plan("0.5"))
    first.settle("aborted")
    assert ledger.spent("people").epsilon == 0
    assert ledger.spent("people").remaining_epsilon == 1
    reserve(ledger, Budget.of("0.5", "1e-10"), pure_plan("0.5"))


def test_one_charge_makes_the_whole_reservation_count(ledger):
    plan = Plan((Charge("a", Laplace(40.0)), Charge("b", Laplace(40.0))))
    reservation = reserve(ledger, plan=plan)
    reservation.charge("a")
    reservation.settle("aborted")
    assert ledger.spent("people").epsilon == PART.epsilon
    assert ledger.spent("people").delta == PART.delta


@pytest.mark.parametrize("seed", range(3))
def test_any_history_agrees_with_exact_addition(ledger, seed):
    """Random reservations, some charged, some not, some left open: the filter is one exact sum."""
    rng = random.Random(seed)
    counted = Fraction(0)
    for _ in range(25):
        epsilon = Fraction(rng.randint(1, 170), 1000)
        budget = Budget.of(epsilon, 0)
        if counted + epsilon > 1:
            with pytest.raises(BudgetExhausted):
                reserve(ledger, budget, pure_plan(epsilon))
            continue
        reservation = reserve(ledger, budget, pure_plan(epsilon))
        charged, settled = rng.random() < 0.6, rng.random() < 0.7
        if charged:
            reservation.charge("count")
        if settled:
            reservation.settle(rng.choice(["finished", "aborted"]))
        if charged or not settled:
            counted += epsilon
        assert ledger.spent("people").epsilon == counted
        assert ledger.spent("people").remaining_epsilon == 1 - counted
    ledger.verify("people")


def test_datasets_do_not_share_budgets(ledger):
    ledger.open_dataset("places", TOTAL, Relation.REPLACE, "basic", 90)
    spend(ledger, "1")
    assert ledger.spent("places").epsilon == 0
    reserve(ledger, name="places", relation=Relation.REPLACE)
    with pytest.raises(BudgetExhausted):
        spend(ledger, "0.1")


GAUSS = Plan((Charge("a", Gaussian(100.0)), Charge("b", Gaussian(50.0), times=2)))


RHO_A, RHO_B = accounting.rho(Gaussian(100.0)), accounting.rho(Gaussian(50.0))


def assert_spent_rho(ledger, rho):
    spent = ledger.spent("people")
    expected = accounting.epsilon_from_rho(rho, TOTAL.delta) if rho else 0
    assert float(spent.epsilon) == pytest.approx(expected, rel=1e-9)
    assert spent.epsilon >= Fraction(expected) * (1 - Fraction(1, 10**12))


def test_zcdp_counts_whole_plans_while_open_and_charges_once_settled(zledger):
    reservation = reserve(zledger, Budget.of("0.5", "1e-9"), GAUSS)
    assert_spent_rho(zledger, RHO_A + 2 * RHO_B)
    reservation.charge("b")
    assert_spent_rho(zledger, RHO_A + 2 * RHO_B)
    reservation.settle("aborted")
    assert_spent_rho(zledger, RHO_B)
    reserve(zledger, Budget.of("0.5", "1e-9"), GAUSS).settle("aborted")
    assert_spent_rho(zledger, RHO_B)


def test_a_refusal_names_an_epsilon_that_fits_and_no_smaller_one_than_need_be(zledger):
    def planned(epsilon):
        budget = Budget.of(epsilon, TOTAL.delta)
        return budget, planning.calibrate(
            lambda x: Plan((Charge("g", Gaussian(1 / math.sqrt(x))),)), budget
        )

    first = reserve(zledger, *planned("0.6"))
    first.charge("g")
    first.settle("finished")
    asked = planned("0.95")
    largest = zledger.books("people").largest(*asked)
    with pytest.raises(BudgetExhausted, match=f"at most about ε = {float(largest):g}") as refused:
        reserve(zledger, *asked)
    assert "settle" not in str(refused.value)
    with pytest.raises(BudgetExhausted):
        reserve(zledger, *planned(largest + Fraction(1, 50)))
    reserve(zledger, *planned(largest))
    with pytest.raises(BudgetExhausted, match="freed by `understudy ledger settle`"):
        reserve(zledger, *asked)


def test_zcdp_composition_fits_more_than_basic_but_never_too_much(zledger):
    total = planning.rho_for(TOTAL)
    plan = Plan((Charge("g", Gaussian(40.0)),))
    own = accounting.epsilon(plan, TOTAL.delta).epsilon
    budget = Budget.of(own * 1.0001, TOTAL.delta)
    made = 0
    while made < 10_000:
        try:
            reservation = reserve(zledger, budget, plan)
        except BudgetExhausted:
            break
        reservation.charge("g")
        reservation.settle("finished")
        made += 1
    assert made == int(total / accounting.rho(Gaussian(40.0)))
    assert made > 1 / own
    assert zledger.spent("people").epsilon <= TOTAL.epsilon
