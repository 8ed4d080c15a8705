"""What would narrow an interval: tables that were not measured are named, with a purpose for them."""

import pytest

from tests.estimates import tiny
from understudy.estimates import advice, estimate, remarks
from understudy.models import Measured
from understudy.schema import Boolean, Category, Schema


def known(*, most: int):
    """A release whose tables have at most so many columns, without noise."""
    counts = 2000 * tiny.truth()
    every = [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    tables = [
        Measured(c, counts.sum(axis=tuple({0, 1, 2} - {*c})), 1.0) for c in every if len(c) <= most
    ]
    return tiny.known(tiny.truth(), tables)


@pytest.mark.parametrize(
    ("asked", "purpose"),
    [
        ("mean(x) by a", "subgroups:a"),
        ("difference(mean(x) by a)", "subgroups:a"),
        ("logit(b ~ x + a)", "regression:b ~ a + x"),
        ("mean(x) where a = 'q' and b", "regression:a ~ b + x"),
    ],
)
def test_columns_that_were_not_measured_together_are_named(asked: str, purpose: str):
    told, wanted = advice(known(most=1), asked, ())
    assert wanted == purpose
    assert "a and x" in told
    again, none = advice(known(most=1), asked, (purpose,))
    assert (none, "made for this already" in again) == (None, True)
    told, none = advice(known(most=2), asked, ())
    assert (none, "leave open" in told) == (None, True)


def test_a_purpose_of_triples_alone_does_not_measure_a_pair():
    assert advice(known(most=1), "mean(x) by a", ("model:b",))[1] == "subgroups:a"


def test_the_reason_names_what_failed():
    """A large group is known well: what is not is how it depends on the number."""
    known_alone = known(most=1)
    reasons = [
        each.warning for each in estimate(known_alone, "mean(x) by a") if not each.determined
    ]
    assert all("no noisy table holds a and x together" in each for each in reasons)
    odds = estimate(known_alone, "odds(b, a = 'r')")
    assert not odds.determined
    assert "one of the four cells is" in odds.warning
    assert "no noisy table holds a and b together" in odds.warning


def test_remarks_of_conditions():
    codes = Category("diag", ("250.6", "250*"), other="OTHER", prefixes=(3,))
    schema = Schema((codes, Boolean("b")))
    assert "250.6" in remarks("share(b) where diag = '250*'", schema)[0]
    assert remarks("independence(b, diag)", schema) == ()
