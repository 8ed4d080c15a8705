"""Kinds of round values: which, how many, and what is refused."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.thorough import examples
from understudy.columns.kinds import Kinds
from understudy.columns.ladder import Scale, rounds


def kinds_of(scale):
    form = rounds(scale)
    assert form is not None
    return form.kinds


PRICES = kinds_of(Scale(-(10**5), 10**5))


def brute(kinds, point):
    """The first kind that fits, by the definition."""
    fits = [abs(point) % step == rest for step, rest in kinds.classed]
    return fits.index(True) if any(fits) else len(fits)


@st.composite
def countable(draw):
    """Chains of some steps above 100, and others that divide 60, 72, 90 or 100, with rests."""
    period = draw(st.sampled_from([60, 72, 90, 100]))
    factors = draw(st.lists(st.integers(2, 9), max_size=4))
    chain = [int(2 * period * np.prod(factors[:many])) for many in range(len(factors), -1, -1)]
    divisors = [step for step in range(2, period + 1) if period % step == 0]
    kinds = Kinds(tuple(chain), (0,) * len(chain))
    for step in draw(st.lists(st.sampled_from(divisors), max_size=6)):
        more = Kinds((*kinds.steps, step), (*kinds.rests, draw(st.integers(0, step - 1))))
        kinds = kinds if more.fault else more
    return kinds


@settings(max_examples=examples(40, 400), deadline=None)
@given(kinds=countable(), ends=st.lists(st.integers(-3000, 3000), min_size=2, unique=True))
@example(kinds=PRICES, ends=[-2500, -1000, -99, -1, 0, 1, 99, 100, 2500])
@example(kinds=Kinds((50, 10, 5)), ends=[-7, 120])
@example(kinds=Kinds((86_400, 3600, 60)), ends=[-7201, 7201])
@example(kinds=Kinds((3600, 1000)), ends=[-9, 9])
@example(kinds=Kinds(()), ends=[-9, 9])
def test_kinds_and_their_numbers_are_those_of_the_definition(kinds, ends):
    ends = np.array(sorted(ends))
    points = np.arange(ends[0], ends[-1])
    wanted = np.array([brute(kinds, int(point)) for point in points])
    assert np.array_equal(kinds.of(points), wanted)
    counted = kinds.between(ends)
    for low, high, row in zip(ends[:-1] - ends[0], ends[1:] - ends[0], counted, strict=True):
        assert row.tolist() == np.bincount(wanted[low:high], minlength=kinds.classes).tolist()


def test_large_numbers():
    ends = np.array([-(2**63), -(10**18), 10**18, 2**63 - 1])
    counted = Kinds(PRICES.steps, PRICES.rests).between(ends)
    assert counted.sum(axis=1) == pytest.approx(np.diff(ends.astype(float)))
    assert PRICES.of(ends[:1]).tolist() == [brute(PRICES, -(2**63))]


def test_a_kind_that_holds_another():
    wider = {PRICES.classed[at]: PRICES.wider(at) for at in range(len(PRICES.steps))}
    at = {kind: place for place, kind in enumerate(PRICES.classed)}
    assert wider[1000, 0] == at[500, 0]
    assert wider[10, 0] == wider[25, 0] == wider[100, 95] == at[5, 0]
    assert wider[100, 99] == at[10, 9]
    assert wider[10, 9] == wider[5, 0] == PRICES.classes - 1


def test_endings_belong_to_columns_that_reach_a_hundred():
    assert kinds_of(Scale(0, 99)) == Kinds((50, 10, 5))
    short = kinds_of(Scale(0, 100))
    assert short.classed[4:] == ((100, 99), (100, 95), (25, 0), (10, 9), (5, 0))
    assert short.classed[:4] == ((500, 0), (100, 0), (50, 0), (10, 0))


@pytest.mark.parametrize(
    ("steps", "rests", "why"),
    [
        ((10,), (1, 2), "as many"),
        ((10,), (10,), "above their rests"),
        ((0,), (), "above their rests"),
        ((-10,), (-20,), "above their rests"),
        ((200, 10), (1, 0), "come first, with rests of 0"),
        ((10, 200), (), "come first"),
        ((300, 200), (), "multiples of the next"),
        ((200, 200), (), "multiples of the next"),
        ((99, 98), (), "least common multiple"),
        ((150, 100), (), "divide the larger"),
        ((10, 10), (), "no number of its own"),
        ((10, 20), (), "no number of its own"),
        ((2, 2), (0, 1), "no number of its own"),
        ((1,), (), "no number of its own"),
    ],
)
def test_what_cannot_be_counted_is_refused(steps, rests, why):
    assert why in Kinds(steps, rests).fault


def test_what_can_be_counted_is_not():
    powers = tuple(2**k for k in range(62, 0, -1))
    odd = Kinds((7200, 144, 24, 24, 9), (0, 0, 23, 1, 7))
    for kinds in (PRICES, Kinds((50, 10, 5)), Kinds(powers), Kinds(()), odd):
        assert kinds.fault == ""
