"""Private discovery of values: its exact law, its simulation, its place in the account."""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest

from tests.exact_privacy import PrivacyViolation, check, product_law, unit_neighbours
from tests.privacy.privacy_fakes import LoggedCharges, LoggedNoise
from understudy.errors import BudgetExhausted, LedgerError, PrivacyError
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget
from understudy.privacy.cost import (
    Charge,
    Discovery,
    Gaussian,
    Laplace,
    Plan,
    Zcdp,
    event_from_json,
)
from understudy.privacy.gate import Gate
from understudy.privacy.ledger import Ledger, planned
from understudy.privacy.questions import Values
from understudy.privacy.relation import Relation
from understudy.privacy.sensitive import Sensitive
from understudy.testing import SeededNoise
from understudy.testing.stand_ins import TinyCounts
from understudy.units import Unit

K = 2
UNIT = Unit("who", K)


class Held:
    """Values held by units, each at most K of its own; the first in order count."""

    def __init__(self, data, unit=UNIT, most=K):
        self.unit = unit
        counts: dict[str, int] = {}
        for name in {name for name, _ in data}:
            for value in sorted({value for owner, value in data if owner == name})[:most]:
                counts[value] = counts.get(value, 0) + 1
        self._counts = counts

    def holders(self, column):
        texts = sorted(self._counts)
        return Sensitive((texts, np.array([self._counts[t] for t in texts], dtype=np.int64)))


def gate(event, noise, relation=Relation.ADD_REMOVE, unit=UNIT):
    counts, charges = TinyCounts((2,), []), LoggedCharges(d=event, relation=relation)
    counts.unit = charges.unit = unit
    return Gate(counts, charges, relation, noise)


def asked(event, noise, data):
    relation = Relation.ADD_REMOVE if event.sides == 1 else Relation.REPLACE
    return gate(event, noise, relation).ask("d", Values(Held(data), "c", 10))


def shown(value, sigma, threshold):
    """P(value + Z ≥ threshold), exactly."""
    reach = np.arange(-400, 401)
    mass = np.exp(-(reach**2) / (2 * sigma**2))
    return float(mass[reach >= threshold - value].sum() / mass.sum())


def law(event):
    """The exact law of the set that is shown: values are independent given their counts."""

    def mechanism(data):
        noise = LoggedNoise()
        asked(event, noise, data)
        counts = noise.values[0] if noise.values else ()
        names = sorted(Held(data)._counts)
        parts = []
        for name, count in zip(names, counts, strict=True):
            p = shown(int(count), event.sigma, event.threshold)
            parts.append({(name,): math.log(p), (): math.log1p(-p)})
        joint = product_law(*parts)
        return {tuple(sorted(sum(out, ()))): log for out, log in joint.items()}

    return mechanism


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_the_set_that_is_shown_is_as_private_as_the_account_says(relation):
    sides = 1 if relation == "add-remove" else 2
    event = Discovery(2.0, 9, values=K, sides=sides)
    delta = 1e-2
    epsilon = accounting.epsilon([event], delta, K).epsilon
    assert 0 < epsilon < 10
    pairs = list(dict.fromkeys(unit_neighbours("abc", 2, 3, relation)))
    if relation == "replace":
        pairs = pairs[:: max(1, len(pairs) // 400)]
    report = check(law(event), pairs, epsilon_delta=(epsilon, delta))
    assert report.delta > 0  # values that one neighbour alone holds are shown, if rarely
    # The broken twin: a threshold that any single holder reaches.
    low = Discovery(2.0, 2, values=K, sides=sides)
    with pytest.raises(PrivacyViolation):
        check(law(low), pairs, epsilon_delta=(epsilon, delta))


def test_delta_is_above_the_exact_chance_and_not_far():
    for sigma, threshold, values in ((3.0, 18, 1), (30.0, 190, 4), (1.0, 7, 2)):
        event = Discovery(sigma, threshold, values)
        alone = shown(1, sigma, threshold)
        exact = 1 - (1 - alone) ** values
        # One step of the lattice is between them.
        assert exact <= event.delta <= 60 * exact
        bound = values * NormalDist().cdf(-(threshold - 2) / sigma)
        assert event.delta == pytest.approx(bound, rel=1e-6)


@pytest.mark.parametrize("delta", [1e-4, 1e-7, 1e-12])
@pytest.mark.parametrize("values", [1, 5])
def test_the_least_threshold_that_delta_allows(delta, values):
    event = planning.discovery(Fraction(1, 500), delta, values=values, sides=2)
    assert accounting.rho(event) <= Fraction(1, 500)
    assert event.delta <= delta
    assert Discovery(event.sigma, event.threshold - 1, values, 2).delta > delta


def test_a_value_of_one_unit_alone_is_not_shown_but_for_delta():
    """20 000 runs with one common value and 40 that one unit holds each."""
    event = planning.discovery(Fraction(1, 8), 1e-3)
    data = [(i, "common") for i in range(100)] + [(1000 + i, f"solo{i}") for i in range(40)]
    held = Held(data, unit=None)
    asked = gate(event, SeededNoise(4), unit=None)
    runs = 500
    solo = 0
    for _ in range(runs):
        found = asked.ask("d", Values(held, "c", 100))
        assert found[0] == "common"
        solo += len(found) - 1
    trials = runs * 40
    exact = shown(1, event.sigma, event.threshold)
    assert exact <= 1e-3
    spread = math.sqrt(trials * exact)
    assert abs(solo - trials * exact) <= 6 * spread + 1  # the same noise at every run of the test
    # Half the threshold would be seen at once.
    low = Discovery(event.sigma, event.threshold // 2)
    found = gate(low, SeededNoise(4), unit=None).ask("d", Values(held, "c", 100))
    assert len(found) > 1


def test_the_commonest_come_first_and_no_more_than_were_asked_for():
    data = [(i, value) for value, n in (("a", 40), ("b", 90), ("c", 60)) for i in range(n * 7)]
    data = [(f"{v}{i}", v) for i, v in data]
    asked = gate(Discovery(1.0, 20), LoggedNoise(), unit=None)
    assert asked.ask("d", Values(Held(data, None), "c", 2)) == ("b", "c")
    assert asked.ask("d", Values(Held(data, None), "c", 9)) == ("b", "c", "a")
    assert asked.ask("d", Values(Held([], None), "c", 9)) == ()


@pytest.mark.parametrize(
    ("event", "relation", "unit", "held"),
    [
        (Discovery(1.0, 9), Relation.ADD_REMOVE, UNIT, UNIT),
        (Discovery(1.0, 9, values=K), Relation.REPLACE, UNIT, UNIT),
        (Discovery(1.0, 9, values=K), Relation.ADD_REMOVE, UNIT, None),
        (Gaussian(1.0), Relation.ADD_REMOVE, None, None),
    ],
)
def test_what_the_plan_does_not_cover_is_refused(event, relation, unit, held):
    asked = gate(event, LoggedNoise(), relation, unit)
    with pytest.raises(PrivacyError):
        asked.ask("d", Values(Held([], held), "c", 3))
    assert asked._charges.log == []


def test_discoveries_in_the_account():
    event = planning.discovery(Fraction(1, 100), 1e-10, values=3)
    other = Gaussian(30.0)
    assert accounting.pure(event) is None
    assert accounting.rho(event, 7) == accounting.rho(event)  # it speaks of units itself
    assert accounting.total_delta([event, other, event]) == 2 * Fraction(event.delta)
    spent = accounting.epsilon([event, other], 1e-9)
    assert spent.by == "zcdp"
    both = accounting.total_rho([event, other])
    assert spent.epsilon == pytest.approx(accounting.epsilon_from_rho(both, 1e-9 - event.delta))
    assert accounting.epsilon([event], event.delta / 2).epsilon == math.inf
    assert event_from_json(event.to_json()) == event


# --- the ledger ---------------------------------------------------------------------------------

OUTER = Plan((Charge("values", Discovery(9.0, 60)), Charge("rest", Zcdp(0.01))))
INNER = Plan((Charge("count", Gaussian(20.0), times=2), Charge("certificate", Laplace(60.0))))
FACTS = {"schema": "0" * 64}


def reserved(path, composition="basic"):
    ledger = Ledger(path)
    ledger.open_dataset("people", Budget.of(3, "1e-6"), composition=composition)
    made = ledger.reserve("people", Budget.of(2, "1e-7"), OUTER, relation=Relation.ADD_REMOVE)
    return ledger, made


def test_a_filter_is_filled_after_the_first_draw(tmp_path):
    ledger, made = reserved(tmp_path / "l")
    with ledger:
        made.charge("values")
        whole = made.refine("rest", INNER, FACTS)
        assert [charge.purpose for charge in whole.plan] == ["values", "count", "certificate"]
        assert whole.charge("count") == Gaussian(20.0)
        with pytest.raises(BudgetExhausted):
            made.charge("rest", Gaussian(1000.0))
        whole.charge("count")
        with pytest.raises(BudgetExhausted):
            whole.charge("count")
        again = ledger.resume("people", made.id, made.budget, OUTER).refine("rest", INNER, FACTS)
        assert again.plan == whole.plan
        with pytest.raises(LedgerError, match="otherwise"):
            made.refine("rest", Plan((Charge("x", Gaussian(99.0)),)), FACTS)
        whole.charge("certificate")
        whole.settle("finished")
        assert planned(whole.entries(), made.id) == (OUTER, whole.plan)
        ledger.verify("people")
        with pytest.raises(LedgerError, match="settled"):
            made.refine("rest", INNER, FACTS)


def test_a_plan_that_costs_more_than_the_filter_is_refused(tmp_path):
    ledger, made = reserved(tmp_path / "l")
    with ledger:
        with pytest.raises(PrivacyError, match="costs more"):
            made.refine("rest", Plan((Charge("x", Gaussian(7.0)),)), FACTS)
        with pytest.raises(PrivacyError, match="no zCDP filter"):
            made.refine("values", INNER, FACTS)
        made.charge("rest", Gaussian(30.0))
        with pytest.raises(BudgetExhausted, match="in use"):
            made.refine("rest", INNER, FACTS)
        assert [e.kind for e in ledger.entries("people")] == ["open", "reserve", "charge"]


def test_the_delta_of_discoveries_adds_up_over_releases(tmp_path):
    ledger, made = reserved(tmp_path / "l", "zcdp")
    with ledger:
        rho, delta = accounting.total_rho(OUTER), accounting.total_delta(OUTER)
        assert delta > 0
        expected = accounting.epsilon_from_rho(rho, Fraction(1, 10**6) - delta)
        assert float(ledger.spent("people").epsilon) == pytest.approx(expected)
        made.charge("values")
        made.settle("aborted")
        one = accounting.rho(OUTER["values"].event)
        expected = accounting.epsilon_from_rho(one, Fraction(1, 10**6) - delta)
        assert float(ledger.spent("people").epsilon) == pytest.approx(expected)
        greedy = Plan((Charge("values", Discovery(40.0, 160)),))
        assert 1e-6 < accounting.total_delta(greedy) < 1e-3
        with pytest.raises(BudgetExhausted):
            ledger.require_room("people", Budget.of(2, "1e-4"), greedy)
