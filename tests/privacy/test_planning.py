"""Plans that use a budget well end on the private side of it."""

import math
from fractions import Fraction

import pytest

from tests.privacy.test_accounting import REFUSED, tight_delta
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Gaussian, Selection
from understudy.privacy.relation import Relation


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1", "4", "20"])
@pytest.mark.parametrize("delta", ["1e-3", "1e-9", "1e-14"])
def test_rho_for_ends_on_the_private_side_and_close(epsilon, delta):
    budget = Budget.of(epsilon, delta)
    rho = planning.rho_for(budget)
    assert isinstance(rho, Fraction)
    reached = accounting.epsilon_from_rho(rho, budget.delta)
    assert Fraction(reached) <= budget.epsilon
    assert reached >= float(budget.epsilon) * (1 - 1e-6)
    assert tight_delta(float(rho), float(budget.epsilon)) <= float(budget.delta) * (1 + 1e-7)


def test_rho_for_buys_more_than_the_quick_form():
    """n = 48842, (0.1, 1/n²), ε0 = 0.003: 102 rounds by the quick form at ε0²/8, 25 at ε0²/2."""
    n, eps0 = 48842, Fraction(3, 1000)
    log = math.log(n**2)
    quick = (math.sqrt(log + 0.1) - math.sqrt(log)) ** 2
    assert int(quick / float(eps0**2 / 8)) == 102
    assert int(quick / float(eps0**2 / 2)) == 25
    rho = planning.rho_for(Budget.of("0.1", Fraction(1, n**2)))
    assert float(rho) > quick
    event = Selection(float(2 / eps0))
    rounds = int(rho / accounting.rho(event))
    assert rounds >= 102
    delta = Fraction(1, n**2)
    assert accounting.epsilon([event] * rounds, delta).epsilon <= 0.1
    assert accounting.epsilon_from_rho(accounting.rho(event) * (rounds + 1), delta) > 0.1


def test_rho_for_without_delta_is_no_loophole():
    """zCDP gives nothing at δ = 0: either refused or no ρ at all."""
    try:
        rho = planning.rho_for(Budget.of(1, 0))
    except REFUSED:
        return
    assert rho == 0


@pytest.mark.parametrize("relation", list(Relation), ids=str)
def test_noise_on_tables_is_the_least_that_costs_at_most_rho(relation):
    rho = Fraction(1, 7)
    event = planning.tables(rho, relation, 5)
    assert (event.step, event.changes) == (1, relation.marginal_l2_squared(5))
    assert accounting.rho(event) <= rho
    assert accounting.rho(Gaussian(event.sigma * (1 - 1e-12), 1, event.changes)) > rho


@pytest.mark.parametrize("relation", list(Relation))
def test_draws_become_charges_that_cost_at_most_their_rho(relation):
    kinds = {"a": planning.tables, "b": planning.errors, "c": planning.worst}
    draws = [planning.Draws(name, of, Fraction(1, 9), 4, 2) for name, of in kinds.items()]
    charges = planning.charges(relation, draws)
    assert [(charge.purpose, charge.times) for charge in charges] == [("a", 2), ("b", 2), ("c", 2)]
    assert all(
        Fraction(1, 10) < accounting.rho(charge.event) <= Fraction(1, 9) for charge in charges
    )


@pytest.mark.parametrize("relation", list(Relation))
def test_noise_on_errors_of_tables_is_the_least_that_costs_at_most_rho(relation):
    rho, event = Fraction(1, 7), planning.errors(Fraction(1, 7), relation, 6)
    assert (event.step, event.changes) == (relation.multiplicity, 6)
    assert accounting.rho(event) <= rho
    less = Gaussian(event.sigma * (1 - 1e-12), event.step, event.changes)
    assert accounting.rho(less) > rho
