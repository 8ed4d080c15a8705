"""Events are inert, checked when they are made, and exact when they are read back."""

import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import examples
from understudy.errors import InputError, PrivacyError
from understudy.privacy import accounting
from understudy.privacy.cost import (
    Charge,
    Gaussian,
    Laplace,
    Plan,
    SampledGroups,
    Selection,
    Zcdp,
    event_from_json,
)

REFUSED = (PrivacyError, InputError)


EVENTS = [
    Gaussian(2.5),
    Gaussian(sigma=0.1, step=3, changes=2),
    Laplace(7.25),
    Laplace(scale=0.3, l1=4),
    Selection(11.0),
    Selection(scale=1.7, sensitivity=2, k=3),
    Zcdp(0.15),
]


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_events_survive_json_exactly(event):
    text = json.dumps(event.to_json(), sort_keys=True, allow_nan=False)
    again = event_from_json(json.loads(text))
    assert again == event
    assert type(again) is type(event)
    assert accounting.rho(again) == accounting.rho(event)


@given(st.floats(min_value=1e-6, max_value=1e12), st.integers(1, 10**6), st.integers(1, 500))
@settings(max_examples=examples(15, 60))
def test_any_event_survives_json(scale, step, changes):
    for event in (
        Gaussian(scale, step=step, changes=changes),
        Laplace(scale, l1=step),
        Selection(scale, sensitivity=step, k=changes),
    ):
        assert event_from_json(json.loads(json.dumps(event.to_json()))) == event


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_events_are_frozen_and_hashable(event):
    name = dataclasses.fields(event)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(event, name, 1.0)
    assert len({event, event_from_json(event.to_json())}) == 1


@pytest.mark.parametrize("bad", [0, 0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("kind", [Gaussian, Laplace, Selection])
def test_scales_must_be_positive_and_finite(kind, bad):
    """A scale of zero would be a release without noise."""
    with pytest.raises(REFUSED):
        kind(bad)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Gaussian(1.0, step=0),
        lambda: Gaussian(1.0, step=1.5),
        lambda: Gaussian(1.0, step=-1),
        lambda: Gaussian(1.0, changes=0),
        lambda: Gaussian(1.0, changes=1.5),
        lambda: Laplace(1.0, l1=0),
        lambda: Laplace(1.0, l1=0.5),
        lambda: Selection(1.0, sensitivity=0),
        lambda: Selection(1.0, sensitivity=0.5),
        lambda: Selection(1.0, k=0),
        lambda: Selection(1.0, k=1.5),
        lambda: Zcdp(0),
        lambda: Zcdp(-0.5),
        lambda: Zcdp(math.nan),
        lambda: Charge("a", Gaussian(1.0), times=0),
        lambda: Charge("a", Gaussian(1.0), times=1.5),
        lambda: Charge("a", Gaussian(1.0), times=-1),
    ],
)
def test_impossible_costs_are_refused(make):
    with pytest.raises(REFUSED):
        make()


@pytest.mark.parametrize("body", [{}, {"kind": "bogus"}, {"type": "bogus", "sigma": 1}, {"a": 1}])
def test_unknown_json_is_refused(body):
    with pytest.raises(REFUSED):
        event_from_json(body)


def test_plan_holds_named_slots():
    plan = Plan((Charge("select", Selection(5.0), times=3), Charge("measure", Gaussian(2.0))))
    assert plan["select"].times == 3
    assert plan["measure"].event == Gaussian(2.0)
    assert [charge.event for charge in plan] == [Selection(5.0), Gaussian(2.0)]
    with pytest.raises((KeyError, *REFUSED)):
        plan["certificate"]


def test_plan_refuses_a_purpose_twice():
    with pytest.raises(REFUSED, match="measure"):
        Plan((Charge("measure", Gaussian(2.0)), Charge("measure", Gaussian(3.0))))


def test_a_filter_may_be_an_exact_fraction():
    """`rho_for` and `split` hand out fractions; rounding one to a float could exceed the budget."""
    event = Zcdp(Fraction(1, 7))
    assert accounting.rho(event) <= Fraction(1, 7)
    assert float(accounting.rho(event)) == pytest.approx(1 / 7)
    assert event_from_json(json.loads(json.dumps(event.to_json()))) == event


class Copied(int):
    """A number whose copy is another kind of number."""

    def __deepcopy__(self, memo):
        return 1

    __copy__ = __reduce__ = __deepcopy__


@pytest.mark.parametrize("make", [lambda n: Gaussian(2.0, n), lambda n: Laplace(2.0, n)])
def test_what_is_checked_is_what_is_kept_and_no_copy(make):
    with pytest.raises(PrivacyError, match="whole number"):
        make(Copied(1))


class Lying(float):
    """0.01 to whoever compares, a million to whoever asks for a fraction."""

    def as_integer_ratio(self):
        return 10**6, 1


def test_a_number_that_says_two_things_is_kept_as_the_plain_one():
    event, groups = Gaussian(Lying(0.01)), SampledGroups((Lying(0.01),), 1, 0.5, 1)
    assert type(event.sigma) is type(groups.multipliers[0]) is float
    assert accounting.rho(event) == accounting.rho(Gaussian(0.01))
    assert type(Gaussian(np.float64(2.5)).sigma) is float
