"""How noise meets exact integers."""

import itertools

import numpy as np
import pytest

from tests.privacy.test_gate import SECRET, Lying, refused_after_the_charge
from understudy.privacy import accounting
from understudy.privacy.cost import (
    Discovery,
    Gaussian,
    Laplace,
    SampledGaussian,
    SampledGroups,
    SampledSelection,
    Selection,
)
from understudy.privacy.mechanisms import (
    Grouped,
    Held,
    added,
    bernoulli,
    found,
    independent,
    noised,
    top,
)
from understudy.testing.stand_ins import StillNoise


@pytest.mark.parametrize(
    "gives",
    [
        Grouped(np.array([SECRET] * 3), np.zeros(3, int), 1),
        Grouped(np.array([float(SECRET)] * 2), np.zeros(2, int), 1),
        Grouped(np.array([SECRET] * 2, np.int32), np.zeros(2, int), 1),
    ],
    ids=["too many", "floats", "shorter integers"],
)
def test_groups_are_held_to_what_was_charged(gives):
    event = SampledGroups((2.0,), 2, 1.0, 2)
    text = refused_after_the_charge(Lying(gives, None, noised), event)
    assert "another answer than it declared" in text
    assert str(SECRET) not in text


def still(mechanism, exact, event):
    return mechanism(exact, event, StillNoise())


def test_each_event_draws_the_noise_it_states():
    """What noise was asked for, at which scale: the mechanism computes none of its own."""
    values = np.array([4, 9, 1])
    asked = {}
    for event in (Gaussian(3.0), Laplace(5.0), SampledGaussian(7.0, 1, 3)):
        noise = StillNoise()
        assert (added(values, event, noise) == values).all()
        ((kind, _, scale),) = noise.asked
        asked[type(event).__name__] = kind, scale
    assert asked == {
        "Gaussian": ("gaussian", 3.0),
        "Laplace": ("laplace", 5.0),
        "SampledGaussian": ("gaussian", 7.0),
    }


def test_without_noise_the_largest_are_chosen():
    scores = np.array([4, 9, 1, 7])
    assert still(top, scores, Selection(2.0, 1, 2)).tolist() == [1, 3]
    assert still(top, scores, SampledSelection(2.0, 1, 0.5)).tolist() == [1]
    assert still(independent, scores, Selection(2.0, 1, 3)).tolist() == [1, 1, 1]
    assert still(bernoulli, np.array([3, -3, 0]), Selection(2.0, 1, 3)).tolist() == [1, 0, 1]


def test_values_are_shown_from_the_threshold_on_the_commonest_first():
    held = Held(["c", "a", "b", "d"], np.array([5, 9, 9, 4]))
    assert still(found, held, Discovery(2.0, 5)) == [("a", 9), ("b", 9), ("c", 5)]
    assert still(found, Held([], np.zeros(0, np.int64)), Discovery(2.0, 5)) == []


def law_of_the_largest(scores, scale):
    """P(r) of the largest after discrete Laplace noise, of equals the first, added up directly."""
    reach = np.arange(-60 * int(scale), 60 * int(scale) + 1)
    mass = np.exp(-np.abs(reach) / scale)
    mass /= mass.sum()
    below = np.concatenate([[0.0], np.cumsum(mass)])  # P(Z < reach[0] + i)

    def less(number):
        return below[np.clip(number - reach[0], 0, reach.size)]

    law = []
    for r, own in enumerate(scores):
        chance = mass.copy()
        for j, other in enumerate(scores):
            if j != r:
                chance *= less(own + reach - other + (j > r))
        law.append(chance.sum())
    return np.array(law)


def test_the_largest_after_laplace_noise_costs_what_it_states():
    """Δ = 2, scale 4: ε = 2Δ/scale = 1, which is nearly reached; Δ/scale would be wrong by far."""
    delta, event = 2, Laplace(4.0, 4)
    claimed = float(accounting.pure(event))
    worst = 0.0
    for scores in ([0, 0, 0], [9, 0, 3], [20, 4, 0], [0, 25, 25]):
        law = law_of_the_largest(scores, event.scale)
        assert abs(law.sum() - 1) < 1e-12
        for moves in itertools.product((-delta, 0, delta), repeat=3):
            moved = law_of_the_largest(np.add(scores, moves), event.scale)
            worst = max(worst, float(np.abs(np.log(moved / law)).max()))
    assert 0.9 * claimed < worst <= claimed


def test_the_largest_after_laplace_noise_is_the_first_of_equals():
    noise = StillNoise()
    assert top(np.array([3, 7, 7, 1]), Laplace(5.0, 2), noise).tolist() == [1]
    assert noise.asked[0][0] == "laplace"
    assert noise.asked[0][2] == 5.0
