"""Privacy per unit: groups in the account, exact laws for users of one to three rows."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from tests.exact_privacy import (
    ChoosingNoise,
    PrivacyViolation,
    check,
    discrete_gaussian_law,
    discrete_laplace_law,
    enumerate_transcripts,
    product_law,
    unit_neighbours,
)
from tests.privacy.privacy_fakes import LoggedCharges, LoggedNoise
from tests.thorough import slow
from understudy.errors import InputError, PrivacyError, RelationError
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget
from understudy.privacy.cost import (
    Charge,
    Gaussian,
    Laplace,
    Plan,
    SampledGaussian,
    Selection,
    Zcdp,
)
from understudy.privacy.gate import Gate
from understudy.privacy.ledger import Ledger
from understudy.privacy.questions import Marginals, WorstCell, WorstError
from understudy.privacy.relation import Relation
from understudy.source.units import chosen
from understudy.testing.stand_ins import TinyCounts
from understudy.units import Unit, group

K = 2
UNIT = Unit("who", K)
DELTA = 1e-6


@cache
def bounded(data):
    """The rows that count, chosen as a source does."""
    if not data:
        return ()
    codes = [np.array([row for _, row in data], np.uint8)]
    units = pa.array([str(name) for name, _ in data])
    return tuple((int(codes[0][at]),) for at in chosen(codes, units, UNIT))


def everything(data):
    return tuple((row,) for _, row in data)


def asked(data, event, ask, choose, noise, n):
    relation = Relation.ADD_REMOVE if n is None else Relation.REPLACE
    counts, charges = TinyCounts((2,), choose(data)), LoggedCharges(c=event, relation=relation)
    counts.unit = charges.unit = UNIT
    return ask(Gate(counts, charges, relation, noise, n))


def tables(relation, units):
    """Pairs, each once; counts do not see the order of rows."""
    return list(dict.fromkeys(unit_neighbours((0, 1), units, 3, relation)))


def gaussian_law(event, choose, n):
    span = range(-11, 16)

    def law(data):
        noise = LoggedNoise()
        asked(data, event, lambda c: c.ask("c", Marginals([(0,)])), choose, noise, n)
        cells = (
            discrete_gaussian_law(int(v), event.sigma, span, tails="lumped")
            for v in noise.values[0]
        )
        return product_law(*cells)

    return law


def laplace_law(event, choose, n):
    span = range(-40, 41)
    synthetic = [np.array([1, 0])]

    def law(data):
        noise = LoggedNoise()
        asked(data, event, lambda c: c.ask("c", WorstError([(0,)], synthetic, 1)), choose, noise, n)
        return discrete_laplace_law(int(noise.values[0][0]), event.scale, span)

    return law


def selection_law(event, choose, n):
    references = [np.array([1.0, 0.0])]

    def law(data):
        def play(chooser):
            return asked(
                data,
                event,
                lambda c: c.ask("c", WorstCell([(0,)], references, True)),
                choose,
                ChoosingNoise(chooser),
                n,
            )

        return enumerate_transcripts(play)

    return law


CASES = {
    "gaussian": (Gaussian(4.0, changes=2), gaussian_law),
    "laplace": (Laplace(3.0, l1=1), laplace_law),
    "selection": (Selection(40.0, sensitivity=16), selection_law),
}


@pytest.mark.parametrize(
    ("kind", "relation"),
    [
        ("selection", "replace"),
        ("laplace", "add-remove"),
        *map(slow, [("selection", "add-remove"), ("laplace", "replace")]),
        *map(slow, [("gaussian", "add-remove"), ("gaussian", "replace")]),
    ],
)
def test_users_of_one_to_three_rows_have_what_the_account_says(kind, relation):
    event, law = CASES[kind]
    n = 4 if relation == "replace" else None
    pairs = tables(relation, 2 if relation == "add-remove" else 1)
    pure = accounting.pure(event, K)
    spent = accounting.epsilon([event], DELTA, K).epsilon
    claims = {
        "pure": None if pure is None else float(pure),
        "rho": float(accounting.rho(event, K)),
        "epsilon_delta": (spent, DELTA),
    }
    report = check(law(event, bounded, n), pairs, **claims)
    assert report.pairs == len(pairs) > 50
    # The account is not far above what is there: two rows that are alike move one cell by two.
    if relation == "add-remove" and kind == "laplace":
        assert report.pure == pytest.approx(float(pure))
    if relation == "replace" and kind == "gaussian":
        assert report.rho == pytest.approx(claims["rho"], rel=1e-2)
    # Broken twins: the cost of one row for two, and all three rows of a user.
    one = {"rho": float(accounting.rho(event))}
    with pytest.raises(PrivacyViolation):
        check(law(event, bounded, n), pairs, **one)
    with pytest.raises(PrivacyViolation):
        check(law(event, everything, n), pairs, **claims)


EVENTS = [
    Gaussian(3.0, step=2, changes=5),
    Laplace(7.0, l1=3),
    Selection(11.0, sensitivity=2, k=4),
    Zcdp(0.01),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_group_of_k_costs_k_squared_or_less(event):
    one = accounting.rho(event)
    for k in (1, 2, 7):
        found = accounting.rho(event, k)
        assert k * one <= found <= k * k * one
        if accounting.pure(event) is not None:
            assert accounting.pure(event, k) == k * accounting.pure(event)
    if not isinstance(event, Laplace):
        assert accounting.rho(event, 3) == 9 * one
    assert accounting.total_rho([event, event], 3) == 2 * accounting.rho(event, 3)


def test_a_group_moves_gaussians_k_times_as_far():
    events = [Gaussian(40.0, changes=12)]
    spent = accounting.epsilon(events, 1e-9, 2)
    assert spent.by == "pld"
    assert spent.epsilon < accounting.epsilon_from_rho(4 * accounting.rho(events[0]), 1e-9)
    farther = accounting.epsilon([Gaussian(40.0, step=2, changes=12)], 1e-9)
    assert spent.epsilon == pytest.approx(farther.epsilon, rel=1e-3)
    sampled = [SampledGaussian(4000.0, 100, 3, 0.25)]
    assert accounting.epsilon(sampled, 1e-9, 2).by == "zcdp"
    assert accounting.epsilon([Laplace(10.0)], 0, 3).epsilon == pytest.approx(0.3)


@pytest.mark.parametrize("k", [1, 2, 9])
def test_plans_are_calibrated_for_groups(k):
    budget = Budget.of("0.7", "1e-8")

    def build(rho):
        return Plan(
            (
                Charge("t", planning.gaussian(rho * Fraction(9, 10), changes=4)),
                Charge("c", planning.laplace(rho / 10)),
            )
        )

    plan = planning.calibrate(build, budget, k)
    spent = accounting.epsilon(plan, budget.delta, k).epsilon
    assert 0.97 * 0.7 < spent <= 0.7
    if k > 1:  # k times the noise
        single = planning.calibrate(build, budget, 1)
        assert k * 0.95 < plan["t"].event.sigma / single["t"].event.sigma < k * 1.1


def test_counts_and_account_must_speak_of_one_unit():
    counts, charges = TinyCounts((2,), [(0,)]), LoggedCharges(c=Gaussian(1.0))
    counts.unit = UNIT
    with pytest.raises(PrivacyError, match="kept for one row, the counts are of one who"):
        Gate(counts, charges, Relation.ADD_REMOVE, LoggedNoise())
    charges.unit = Unit("who", 3)
    with pytest.raises(PrivacyError, match="nothing was charged"):
        Gate(counts, charges, Relation.ADD_REMOVE, LoggedNoise())
    counts.unit = None
    with pytest.raises(PrivacyError, match="counts are of one row"):
        Gate(counts, charges, Relation.ADD_REMOVE, LoggedNoise())
    assert charges.log == []


def plan_of(sigma):
    return Plan((Charge("t", Gaussian(sigma)),))


def test_one_account_protects_one_kind_of_unit(tmp_path):
    budget = Budget.of(2, "1e-6")
    with Ledger(tmp_path / "l") as ledger:
        ledger.open_dataset("people", budget, unit="who", composition="basic")
        ledger.open_dataset("rows", budget, composition="basic")
        asked_for = {"relation": Relation.ADD_REMOVE}
        small = Budget.of(1, "1e-7")
        for name, unit in (("people", None), ("people", Unit("other", 1)), ("rows", UNIT)):
            with pytest.raises(RelationError, match="cannot be added"):
                ledger.reserve(name, small, plan_of(99.0), unit=unit, **asked_for)
            with pytest.raises(RelationError):
                ledger.require_room(name, small, plan_of(99.0), unit)
        assert ledger.spent("people").epsilon == 0
        with pytest.raises(InputError, match="unit who"):
            ledger.open_dataset("people", budget, composition="basic")
        # Releases with another bound share an account; each is private per unit.
        for k in (2, 5):
            made = ledger.reserve("people", small, plan_of(99.0), unit=Unit("who", k), **asked_for)
            assert made.unit == Unit("who", k)
            assert ledger.resume("people", made.id, small, plan_of(99.0)).unit == made.unit
        assert ledger.spent("people").epsilon == 2


def test_a_plan_is_checked_for_the_group(tmp_path):
    with Ledger(tmp_path / "l") as ledger:
        ledger.open_dataset("people", Budget.of(9, "1e-6"), unit="who", composition="basic")
        event = planning.gaussian(planning.rho_for(Budget.of(1, "1e-7")))
        plan = Plan((Charge("t", event),))
        with pytest.raises(PrivacyError, match="the plan costs"):
            ledger.reserve(
                "people", Budget.of(1, "1e-7"), plan, relation=Relation.ADD_REMOVE, unit=UNIT
            )
        assert [entry.kind for entry in ledger.entries("people")] == ["open"]


def test_rho_adds_up_for_groups(tmp_path):
    budget = Budget.of(3, "1e-6")
    with Ledger(tmp_path / "l") as ledger:
        ledger.open_dataset("people", budget, composition="zcdp", unit="who")
        rho = Fraction(0)
        for k in (1, 3):
            plan = plan_of(30.0)
            made = ledger.reserve(
                "people",
                Budget.of(2, "1e-7"),
                plan,
                relation=Relation.ADD_REMOVE,
                unit=Unit("who", k),
            )
            if k == 3:
                made.charge("t")
                made.settle()
            rho += k * k * accounting.total_rho(plan)
            spent = float(ledger.spent("people").epsilon)
            assert math.isclose(spent, accounting.epsilon_from_rho(rho, budget.delta))


@pytest.mark.parametrize("k", [0, -1, True, 2.0, "3", 10**7])
def test_a_bound_is_a_whole_number(k):
    with pytest.raises(InputError, match="max_rows"):
        Unit("who", k)


def test_units_are_read_back():
    for unit in (Unit("who", 3), Unit("é", 1, "salt"), None):
        assert unit is None or Unit.from_json(unit.to_json()) == unit
    assert group(None) == 1
    assert group(Unit("who", 7)) == 7
    for column, salt in (("", ""), ("who", "a|b"), ("who", "\n")):
        with pytest.raises(InputError):
            Unit(column, 1, salt)
