"""Budgets in exact arithmetic: what a person meant, kept whole, and split without a remainder."""

import math
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.thorough import examples
from understudy.errors import InputError
from understudy.privacy.budget import Budget, decimal, exact, exact_text
from understudy.privacy.planning import split


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0.1", Fraction(1, 10)),
        (0.1, Fraction(1, 10)),
        (Decimal("0.1"), Fraction(1, 10)),
        (1, Fraction(1)),
        ("1e-9", Fraction(1, 10**9)),
        (1e-9, Fraction(1, 10**9)),
        (Fraction(1, 3), Fraction(1, 3)),
        (0.3, Fraction(3, 10)),
        (2.5, Fraction(5, 2)),
        (np.float64(0.1), Fraction(1, 10)),
    ],
)
def test_exact(value, expected):
    result = exact(value)
    assert isinstance(result, Fraction)
    assert result == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_exact_is_the_shortest_decimal_of_a_float(value):
    assert exact(value) == Fraction(repr(value))
    assert float(exact(value)) == value


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, "nan", "inf", "one", "", None, [], "1,5", object()]
)
def test_exact_refuses(value):
    with pytest.raises(InputError):
        exact(value)


@pytest.mark.parametrize(
    "value",
    ["1e99999999", "-1e-99999999", "1e309", "9" * 400_000, "x" * 400_000, 10**5000],
    ids=["large", "small", "no float", "digits", "letters", "integer"],
)
def test_numbers_beyond_all_use_are_refused_at_once_in_a_line(value):
    begun = time.process_time()
    with pytest.raises(InputError, match="epsilon = ") as refusal:
        exact(value, "epsilon")
    assert time.process_time() - begun < 0.5
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    "text",
    ["1e300000000", "1E-300000000", "1" * 20_000, "1e" + "0" * 50],
    ids=["large", "small", "digits", "zeros"],
)
def test_a_stored_budget_beyond_all_use_is_refused_at_once(text):
    begun = time.process_time()
    with pytest.raises(InputError, match="of a bearable size"):
        Budget.from_json({"epsilon": text, "delta": "0"})
    assert time.process_time() - begun < 0.5


def test_the_smallest_and_largest_numbers_are_kept_whole():
    for value in (5e-324, 1.7e308, "1e-320", "0e999999999", Fraction(1, 7**400)):
        assert exact_text(decimal(exact(value))) == exact(value)


def test_budget_is_exact():
    budget = Budget.of(0.1, "1e-9")
    assert budget.epsilon == Fraction(1, 10)
    assert budget.delta == Fraction(1, 10**9)
    assert Budget.of("0.1", 1e-9) == budget
    assert Budget.of(1, 0).delta == 0
    with pytest.raises(AttributeError):
        budget.epsilon = Fraction(2)


@pytest.mark.parametrize("epsilon", [0, -1, "0", "-0.5", math.nan, math.inf, "x", None])
def test_budget_names_a_bad_epsilon(epsilon):
    with pytest.raises(InputError) as caught:
        Budget.of(epsilon, "1e-9")
    message = str(caught.value)
    assert "epsilon" in message
    assert str(epsilon) in message


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, "1", math.nan, math.inf, "x"])
def test_budget_names_a_bad_delta(delta):
    with pytest.raises(InputError) as caught:
        Budget.of(1, delta)
    message = str(caught.value)
    assert "delta" in message
    assert str(delta) in message


def test_split_by_shares():
    total = Fraction(1, 3)
    parts = split(total, {"select": "0.3", "measure": 0.68, "certificate": Fraction(2, 100)})
    assert list(parts) == ["select", "measure", "certificate"]
    assert sum(parts.values()) <= total
    assert parts["select"] == Fraction(1, 10)
    assert all(isinstance(part, Fraction) for part in parts.values())


@settings(max_examples=examples(50, 200))
@given(
    st.fractions(min_value=Fraction(1, 10**12), max_value=1000),
    st.lists(st.floats(min_value=1e-6, max_value=1.0), min_size=1, max_size=12),
)
def test_split_never_gives_away_more_than_there_is(total, weights):
    scale = sum(exact(w) for w in weights)
    shares = {str(i): exact(w) / scale for i, w in enumerate(weights)}
    parts = split(total, shares)
    assert set(parts) == set(shares)
    assert sum(parts.values()) <= total
    assert sum(parts.values()) >= total * Fraction(999_999, 1_000_000)
    assert all(part >= 0 for part in parts.values())


@pytest.mark.parametrize(
    "shares",
    [{"a": "0.6", "b": "0.6"}, {"a": -0.1, "b": 1}, {"a": "1.0000001"}, {"a": math.nan}],
    ids=["over", "negative", "one over", "nan"],
)
def test_split_refuses_or_stays_within(shares):
    """Shares above one may be refused or scaled down; they may never add up to more than total."""
    try:
        parts = split(Fraction(1), shares)
    except InputError:
        return
    assert sum(parts.values()) <= 1
    assert all(part >= 0 for part in parts.values())
