"""Events over Poisson samples: what they cost."""

from __future__ import annotations

import math

import pytest
from scipy.stats import norm

from understudy.errors import PrivacyError
from understudy.privacy import accounting
from understudy.privacy.cost import (
    Charge,
    Plan,
    SampledGaussian,
    SampledSelection,
    Selection,
    event_from_json,
)

L2 = 2**30


def by_library(sigma, rate, steps, delta, relation="ADD_OR_REMOVE_ONE"):
    import dp_accounting
    from dp_accounting.pld import privacy_loss_distribution as pld

    pair = pld.from_gaussian_mechanism(
        sigma, sampling_prob=rate, value_discretization_interval=1e-4,
        neighboring_relation=getattr(dp_accounting.NeighboringRelation, relation),
    )  # fmt: skip
    return pair.self_compose(steps).get_epsilon_for_delta(delta)


def test_the_published_value():
    """Rate 0.01, σ = 4, 10⁴ steps, δ = 10⁻⁵: 0.947 by PLD."""
    rate = round(0.01 * 2**32) / 2**32
    plan = Plan((Charge("g", SampledGaussian(4.0 * L2, L2, 100, rate), 10_000),))
    spent = accounting.epsilon(plan, 1e-5)
    assert spent.by == "pld"
    assert spent.epsilon == pytest.approx(0.947, abs=1e-3)


@pytest.mark.parametrize(
    ("sigma", "rate", "steps"), [(30.0, 1.0, 50), (5.0, 0.0625, 400), (1.5, 0.015625, 500)]
)
@pytest.mark.parametrize("sides", [1, 2])
def test_accounting_is_that_of_the_library(sigma, rate, steps, sides):
    plan = Plan((Charge("g", SampledGaussian(sigma * L2, L2, 50, rate, sides), steps),))
    relation = "ADD_OR_REMOVE_ONE" if sides == 1 else "REPLACE_ONE"
    expected = by_library(sigma, rate, steps, 1e-8, relation)
    assert accounting.epsilon(plan, 1e-8).epsilon == pytest.approx(expected, rel=2e-3)


def test_without_sampling_it_is_the_gaussian_mechanism():
    """Δ/σ = μ over T steps is one Gaussian mechanism with μ√T."""
    plan = Plan((Charge("g", SampledGaussian(10.0 * L2, L2, 5), 25),))
    epsilon, mu = accounting.epsilon(plan, 1e-6).epsilon, 0.5
    delta = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert delta == pytest.approx(1e-6, rel=0.01)


def test_coarse_noise_pays_for_being_discrete():
    fine = Plan((Charge("g", SampledGaussian(4.0 * L2, L2, 10, 0.5), 10),))
    coarse = Plan((Charge("g", SampledGaussian(4.0 * 5, 5, 10, 0.5), 10),))
    ratio = accounting.epsilon(coarse, 1e-6).epsilon / accounting.epsilon(fine, 1e-6).epsilon
    assert 1 + 1 / (2 * 20**2) < ratio < 1 + 3 / (2 * 20**2)
    # Noise of less than the variance that is set aside has zCDP of all rows alone.
    assert accounting.epsilon([SampledGaussian(1.0, 1, 10, 0.5)], 1e-6).by == "zcdp"


def test_a_sampled_pick_is_amplified():
    event = SampledSelection(2.0 * L2, L2, 0.25)
    assert float(accounting.pure(event)) == pytest.approx(math.log1p(0.25 * math.expm1(1)))
    eps = float(accounting.pure(event))
    assert float(accounting.rho(event)) == pytest.approx(
        min(eps * math.tanh(eps / 2), eps**2 / 2, 1 / 8)
    )
    # Never above the pick over all rows, never below what pure ε of a huge ε0 must be.
    assert accounting.rho(SampledSelection(2.0 * L2, L2, 1.0)) == accounting.rho(
        Selection(2.0 * L2, L2)
    )
    assert accounting.pure(SampledSelection(1.0, 1000, 0.5)) == 2000


def test_events_are_read_back():
    for event in (SampledGaussian(5.5, 3, 7, 0.5, 2), SampledSelection(5.5, 3, 0.25)):
        assert event_from_json(event.to_json()) == event


@pytest.mark.parametrize(
    "make",
    [
        lambda: SampledGaussian(0.0, 1, 1),
        lambda: SampledGaussian(1.0, 0, 1),
        lambda: SampledGaussian(1.0, 1, 0),
        lambda: SampledGaussian(1.0, 1, 1, 0.0),
        lambda: SampledGaussian(1.0, 1, 1, 1.5),
        lambda: SampledGaussian(1.0, 1, 1, 1 / 3),
        lambda: SampledGaussian(1.0, 1, 1, 1.0, 3),
        lambda: SampledSelection(1.0, 1, 1 / 3),
        lambda: SampledSelection(-1.0, 1, 0.5),
    ],
)
def test_events_that_cannot_be(make):
    with pytest.raises(PrivacyError):
        make()
