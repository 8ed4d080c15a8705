"""Randomised response: exact odds, an unbiased estimate and its variance, by enumeration."""

import itertools
import math

import numpy as np
import pytest

from tests.exact_privacy import ChoosingNoise, enumerate_transcripts
from understudy.errors import InputError
from understudy.privacy.response import RandomisedResponse
from understudy.testing import StillNoise

EPSILONS = (0.1, 1.0, math.log(3), 4.0)


def law(response, truth):
    """P(answer), by playing both coins."""
    found = enumerate_transcripts(lambda chooser: response.answer(truth, ChoosingNoise(chooser)))
    return {answer: math.exp(log) for answer, log in found.items()}


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_odds_are_exactly_those_of_epsilon(epsilon):
    response = RandomisedResponse(epsilon)
    yes, no = law(response, True), law(response, False)
    assert yes[True] == pytest.approx(0.5 + response.gamma, rel=1e-12)
    for answer in (True, False):
        assert abs(math.log(yes[answer] / no[answer])) == pytest.approx(epsilon, rel=1e-12)
        assert abs(math.log(yes[answer] / no[answer])) <= epsilon * (1 + 1e-15)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("truths", itertools.product((False, True), repeat=3))
def test_estimates_are_unbiased_and_have_the_variance_they_state(epsilon, truths):
    response = RandomisedResponse(epsilon)
    right = 0.5 + response.gamma
    mean = square = 0.0
    for answers in itertools.product((False, True), repeat=3):
        chance = math.prod(
            right if a == t else 1 - right for a, t in zip(answers, truths, strict=True)
        )
        found = response.estimate(answers)
        mean += chance * found.value
        square += chance * found.value**2
    assert mean == pytest.approx(sum(truths) / 3, abs=1e-9)
    assert math.sqrt(square - mean**2) == pytest.approx(found.error, rel=1e-6)


def test_without_noise_the_truth_is_told_and_the_coin_is_drawn_at_its_scale():
    noise = StillNoise()
    response = RandomisedResponse(2)
    assert [response.answer(truth, noise) for truth in (True, False)] == [True, False]
    assert [scale for *_, scale in noise.asked] == [math.nextafter(1.0, 2.0)] * 2


def test_real_coins_are_not_all_alike():
    """At ε = 0.1 both answers are missed in 200 with probability below 0.53^200 < 1e-54."""
    response = RandomisedResponse(0.1)
    answers = [response.answer(np.True_) for _ in range(200)]
    assert set(answers) == {True, False}
    assert all(type(answer) is bool for answer in answers)


@pytest.mark.parametrize("epsilon", [0, -1, float("inf"), float("nan")])
def test_a_budget_must_be_a_number_above_zero(epsilon):
    with pytest.raises(InputError, match="epsilon"):
        RandomisedResponse(epsilon)


def test_an_estimate_needs_answers():
    with pytest.raises(InputError, match="answers are missing"):
        RandomisedResponse(1).estimate([])
