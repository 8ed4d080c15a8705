"""The conversion of events to ε is valid, tight and on the private side."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant
from scipy import optimize, stats

from tests.exact_privacy import compare, discrete_gaussian_law, discrete_laplace_law, product_law
from understudy.errors import InputError, PrivacyError
from understudy.privacy import accounting
from understudy.privacy.cost import Charge, Gaussian, Laplace, Plan, Selection, Zcdp

REFUSED = (PrivacyError, InputError)

# --- the formulas, written a second time --------------------------------------------------------


def tight_delta(rho, epsilon):
    """inf over a > 1 of exp((a-1)(a rho - ε))/(a-1) (1-1/a)^a, by a grid and a local search."""

    def log_delta(log_excess):
        x = math.exp(log_excess)  # a - 1
        a = 1 + x
        return x * (a * rho - epsilon) - math.log(x) + a * (math.log(x) - math.log(a))

    grid = np.linspace(-30, 30, 1201)
    best = grid[int(np.argmin([log_delta(g) for g in grid]))]
    found = optimize.minimize_scalar(log_delta, bounds=(best - 0.1, best + 0.1), method="bounded")
    return math.exp(min(float(found.fun), log_delta(best), 0.0))


def tight_epsilon(rho, delta):
    if tight_delta(rho, 0.0) <= delta:
        return 0.0
    high = rho + 2 * math.sqrt(rho * math.log(1 / delta)) + 1e-12
    return optimize.brentq(
        lambda e: math.log(tight_delta(rho, e)) - math.log(delta), 0.0, high * 1.01, xtol=1e-13
    )


def quick_epsilon(rho, delta):
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def gaussian_delta(mu, epsilon):
    cdf = stats.norm.cdf
    return cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * cdf(-mu / 2 - epsilon / mu)


def gaussian_epsilon(mu, delta):
    return optimize.brentq(lambda e: gaussian_delta(mu, e) - delta, 0.0, 200.0)


RHOS = (1e-6, 1e-3, 0.05, 0.5, 3.0, 40.0)
DELTAS = (1e-2, 1e-5, 1e-9, 1e-14)


# --- rho and pure -------------------------------------------------------------------------------


def test_rho_of_gaussian_is_an_exact_fraction():
    assert accounting.rho(Gaussian(2.0)) == Fraction(1, 8)
    assert accounting.rho(Gaussian(0.75, step=2, changes=3)) == Fraction(3 * 4 * 16, 2 * 9)
    assert accounting.rho(Gaussian(3.0, step=10**9, changes=7)) == Fraction(7 * 10**18, 18)
    assert isinstance(accounting.rho(Gaussian(0.1)), Fraction)
    assert float(accounting.rho(Gaussian(0.1))) == pytest.approx(50.0, rel=1e-15)


def test_rho_of_selection_is_an_exact_fraction():
    assert accounting.rho(Selection(4.0)) == Fraction(1, 32)  # eps0 = 1/2
    assert accounting.rho(Selection(4.0, sensitivity=2, k=3)) == Fraction(3, 8)  # eps0 = 1


def test_rho_of_a_filter_is_itself():
    assert accounting.rho(Zcdp(0.125)) == Fraction(1, 8)


@pytest.mark.parametrize(("scale", "l1"), [(1.0, 1), (10.0, 1), (0.5, 3), (1e6, 1), (3.0, 7)])
def test_rho_of_laplace_is_rounded_up(scale, l1):
    with mpmath.workdps(60):
        epsilon = mpmath.mpf(l1) / mpmath.mpf(scale)
        truth = epsilon * mpmath.tanh(epsilon / 2)
        charged = accounting.rho(Laplace(scale, l1=l1))
        assert isinstance(charged, Fraction)
        charged = mpmath.mpf(charged.numerator) / mpmath.mpf(charged.denominator)
        assert charged >= truth * (1 - mpmath.mpf(10) ** -50)
        assert charged <= truth * (1 + mpmath.mpf(10) ** -9)


def test_pure():
    assert accounting.pure(Gaussian(2.0)) is None
    assert accounting.pure(Zcdp(0.125)) is None
    assert accounting.pure(Laplace(8.0, l1=3)) == Fraction(3, 8)
    assert accounting.pure(Selection(8.0, sensitivity=2, k=5)) == Fraction(5, 2)


@pytest.mark.parametrize(("scale", "l1"), [(1.0, 1), (0.6, 2), (5.0, 3)])
def test_rho_and_pure_of_laplace_hold_for_the_exact_law(scale, l1):
    for shift in range(1, l1 + 1):
        rest = l1 - shift
        support = range(-3, l1 + 4)
        origin = product_law(*[discrete_laplace_law(0, scale, support)] * 2)
        moved = product_law(
            discrete_laplace_law(shift, scale, support), discrete_laplace_law(rest, scale, support)
        )
        found = compare(origin, moved)
        event = Laplace(scale, l1=l1)
        assert found.max_log_ratio <= float(accounting.pure(event)) + 1e-12
        assert found.rho <= float(accounting.rho(event)) + 1e-12
    assert found.max_log_ratio == pytest.approx(float(accounting.pure(event)))


def test_the_formula_for_continuous_laplace_does_not_hold_on_the_integers():
    """ε + e^-ε - 1 is for continuous noise; one lattice step costs ε tanh(ε/2), which is more."""
    support = range(-3, 5)
    found = compare(*(discrete_laplace_law(c, 1.0, support) for c in (0, 1)))
    assert found.rho > 1 + math.exp(-1) - 1
    assert found.rho <= float(accounting.rho(Laplace(1.0)))


@pytest.mark.parametrize("sigma", [0.4, 1.0, 2.5])
@pytest.mark.parametrize("step", [1, 2])
def test_rho_of_gaussian_holds_for_the_exact_law(sigma, step):
    reach = 64 * step + math.ceil(40 * sigma)
    laws = [
        discrete_gaussian_law(c, sigma, range(-reach, reach + 1), tails="lumped") for c in (0, step)
    ]
    assert compare(*laws).rho <= float(accounting.rho(Gaussian(sigma, step=step))) * (1 + 1e-9)


# --- zCDP to (ε, δ) -----------------------------------------------------------------------------


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_tight_conversion_against_brute_minimisation(rho, delta):
    epsilon = accounting.epsilon_from_rho(rho, delta)
    assert epsilon == pytest.approx(tight_epsilon(rho, delta), rel=1e-6, abs=1e-9)
    assert tight_delta(rho, epsilon) <= delta * (1 + 1e-7), "rounded to the wrong side"
    assert epsilon <= quick_epsilon(rho, delta)


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("delta", DELTAS)
def test_tight_conversion_against_the_library(rho, delta):
    orders = 1 + np.geomspace(1e-3, 1e7, 4000)
    library = RdpAccountant(orders)
    library.compose(GaussianDpEvent(math.sqrt(1 / (2 * rho))))
    ours = accounting.epsilon_from_rho(rho, delta)
    assert ours == pytest.approx(library.get_epsilon(delta), rel=1e-4, abs=1e-7)


def test_conversion_accepts_fractions_and_is_monotone():
    values = [accounting.epsilon_from_rho(Fraction(k, 100), 1e-9) for k in range(1, 40)]
    assert values == sorted(values)
    by_delta = [accounting.epsilon_from_rho(Fraction(1, 10), 10.0**-k) for k in range(1, 15)]
    assert by_delta == sorted(by_delta)
    assert accounting.epsilon_from_rho(Fraction(0), 1e-9) == 0


@pytest.mark.parametrize("mu", [0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("delta", DELTAS)
def test_zcdp_never_undercuts_the_gaussian_it_describes(mu, delta):
    assert accounting.epsilon_from_rho(mu**2 / 2, delta) >= gaussian_epsilon(mu, delta)


# --- ε of a plan: the smallest valid of three ---------------------------------------------------


def upper_epsilon_zcdp(events, delta):
    return accounting.epsilon_from_rho(sum(map(accounting.rho, events)), delta)


def upper_epsilon_pure(events):
    costs = [accounting.pure(event) for event in events]
    return math.inf if None in costs else float(sum(costs))


MIXES = {
    "laplace": [Laplace(2.0)],
    "laplace l1": [Laplace(3.0, l1=2)],
    "many laplace": [Laplace(20.0)] * 30,
    "gaussian": [Gaussian(3.0)],
    "gaussian cells": [Gaussian(8.0, step=1, changes=12)],
    "selection": [Selection(4.0)],
    "many selections": [Selection(30.0)] * 40,
    "top-k": [Selection(10.0, k=5)],
    "mixed": [Gaussian(6.0), Laplace(9.0), Selection(12.0, k=2)],
}


@pytest.mark.parametrize("delta", [1e-3, 1e-9])
@pytest.mark.parametrize("events", MIXES.values(), ids=MIXES)
def test_epsilon_is_the_smallest_of_the_valid_ways(events, delta):
    spent = accounting.epsilon(events, delta)
    assert isinstance(spent.epsilon, float)
    assert spent.by in {"pure", "zcdp", "pld"}
    ways = {"zcdp": upper_epsilon_zcdp(events, delta), "pure": upper_epsilon_pure(events)}
    assert spent.epsilon <= min(ways.values()) * (1 + 1e-12)
    if spent.by in ways:
        assert spent.epsilon == pytest.approx(ways[spent.by], rel=1e-9)
        assert spent.epsilon >= ways[spent.by] * (1 - 1e-12)


def test_epsilon_of_a_plan_counts_multiplicity():
    plan = Plan((Charge("a", Gaussian(9.0), times=3), Charge("b", Laplace(30.0))))
    events = [Gaussian(9.0)] * 3 + [Laplace(30.0)]
    assert accounting.epsilon(plan, 1e-9) == accounting.epsilon(events, 1e-9)
    fewer = Plan((Charge("a", Gaussian(9.0), times=2), Charge("b", Laplace(30.0))))
    assert accounting.epsilon(fewer, 1e-9).epsilon < accounting.epsilon(plan, 1e-9).epsilon


def test_epsilon_of_pure_events_needs_no_delta():
    spent = accounting.epsilon([Laplace(4.0), Selection(16.0, k=2)], 0)
    assert spent.by == "pure"
    assert spent.epsilon == 0.5


def test_epsilon_is_never_rounded_down():
    for scale in (3.0, 7.0, 10.0, 0.3):
        spent = accounting.epsilon([Laplace(scale)] * 3, 0)
        assert Fraction(spent.epsilon) >= 3 * accounting.pure(Laplace(scale))


def test_gaussians_without_delta_promise_nothing():
    try:
        spent = accounting.epsilon([Gaussian(5.0)], 0)
    except REFUSED:
        return
    assert spent.epsilon == math.inf


def test_a_filter_leaves_only_zcdp():
    events = [Zcdp(0.01), Laplace(50.0)]
    spent = accounting.epsilon(events, 1e-9)
    assert spent.by == "zcdp"
    assert spent.epsilon == pytest.approx(upper_epsilon_zcdp(events, 1e-9), rel=1e-9)
    alone = accounting.epsilon([Zcdp(0.125)], 1e-6)
    assert alone.by == "zcdp"
    assert alone.epsilon > accounting.epsilon([Gaussian(2.0)], 1e-6).epsilon


def test_nothing_drawn_costs_nothing():
    assert accounting.epsilon([], 1e-9).epsilon == 0
    assert accounting.epsilon(Plan(()), 1e-9).epsilon == 0


@pytest.mark.parametrize("sigma", [3.0, 10.0, 40.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_gaussian_lies_between_its_exact_curve_and_zcdp(sigma, delta):
    spent = accounting.epsilon([Gaussian(sigma)], delta)
    reach = range(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 2)
    curve = compare(*(discrete_gaussian_law(c, sigma, reach) for c in (0, 1)))
    truth = optimize.brentq(lambda e: curve.delta(e) - delta, 0.0, 20.0)
    assert truth == pytest.approx(gaussian_epsilon(1 / sigma, delta), rel=0.02)
    assert spent.epsilon >= truth * (1 - 1e-9)
    assert spent.epsilon <= truth * 1.01 + 1e-3
    assert spent.epsilon <= upper_epsilon_zcdp([Gaussian(sigma)], delta)
    assert spent.by == "pld"


def test_gaussian_cells_compose_like_one_wider_gaussian():
    """12 cells moved by one each are one Gaussian with mu = sqrt(12)/sigma."""
    spent = accounting.epsilon([Gaussian(20.0, changes=12)], 1e-9)
    truth = gaussian_epsilon(math.sqrt(12) / 20, 1e-9)
    assert truth * (1 - 1e-3) <= spent.epsilon <= truth * 1.02 + 1e-3
    wide = accounting.epsilon([Gaussian(2000.0, step=100, changes=12)], 1e-9)
    assert truth * (1 - 1e-3) <= wide.epsilon <= truth * 1.02 + 1e-3


def test_epsilon_is_not_above_the_library():
    library = pld.from_laplace_mechanism(1.0, value_discretization_interval=1e-3).self_compose(1)
    events = [Laplace(1.0)]
    assert accounting.epsilon(events, 1e-4).epsilon <= library.get_epsilon_for_delta(1e-4) + 5e-3


# --- ε against the exact law of small mechanisms ------------------------------------------------


def gaussian_pairs(sigma, step, changes):
    reach = range(-math.ceil(9 * sigma) - 2, math.ceil(9 * sigma) + step + 3)
    for shifts in itertools.product(range(step + 1), repeat=changes):
        yield (
            product_law(*(discrete_gaussian_law(0, sigma, reach) for _ in shifts)),
            product_law(*(discrete_gaussian_law(s, sigma, reach) for s in shifts)),
        )


@pytest.mark.parametrize(
    ("sigma", "step", "changes"),
    [(0.3, 1, 1), (0.5, 1, 1), (0.5, 1, 2), (0.8, 2, 1), (1.0, 1, 2), (1.5, 2, 2), (2.0, 3, 1)],
)
@pytest.mark.parametrize("delta", [0.05, 1e-3, 1e-6])
def test_epsilon_of_discrete_gaussian_covers_its_exact_delta(sigma, step, changes, delta):
    """Small sigma: here the continuous Gaussian's curve would be too optimistic or too rough."""
    spent = accounting.epsilon([Gaussian(sigma, step=step, changes=changes)], delta)
    for a, b in gaussian_pairs(sigma, step, changes):
        assert compare(a, b).delta(spent.epsilon) <= delta * (1 + 1e-6)


@pytest.mark.parametrize("delta", [0.05, 1e-3, 1e-6])
@pytest.mark.parametrize(("scale", "l1", "times"), [(1.0, 1, 1), (2.0, 3, 1), (1.5, 1, 3)])
def test_epsilon_of_discrete_laplace_covers_its_exact_delta(scale, l1, times, delta):
    spent = accounting.epsilon([Laplace(scale, l1=l1)] * times, delta)
    laws = [discrete_laplace_law(c, scale, range(-2, l1 + 3)) for c in (0, l1)]
    found = compare(*(product_law(*[law] * times) for law in laws))
    assert found.delta(spent.epsilon) <= delta * (1 + 1e-6)


def softmax_law(scores, scale):
    z = np.asarray(scores, dtype=float) / scale
    z -= np.logaddexp.reduce(z)
    return dict(enumerate(z))


@pytest.mark.parametrize("delta", [0.05, 1e-3, 1e-6])
@pytest.mark.parametrize("times", [1, 4])
def test_epsilon_of_selections_covers_their_exact_delta(times, delta):
    rng = np.random.default_rng(3)
    scale, sensitivity = 2.5, 2
    spent = accounting.epsilon([Selection(scale, sensitivity=sensitivity)] * times, delta)
    for _ in range(25):
        scores = rng.integers(0, 9, size=3)
        moved = scores + rng.choice([-sensitivity, sensitivity], size=3)
        laws = (softmax_law(s, scale) for s in (scores, moved))
        found = compare(*(product_law(*[law] * times) for law in laws))
        assert found.delta(spent.epsilon) <= delta * (1 + 1e-6)


@pytest.mark.parametrize("delta", [0.05, 1e-3])
def test_epsilon_of_a_mixture_covers_its_exact_delta(delta):
    spent = accounting.epsilon([Gaussian(1.2), Laplace(2.0), Selection(4.0)], delta)

    def law(x):
        return product_law(
            discrete_gaussian_law(x, 1.2, range(-10, 12)),
            discrete_laplace_law(x, 2.0, range(-1, 3)),
            softmax_law([2 * x, 0, 0, -0], 4.0),
        )

    assert compare(law(0), law(1)).delta(spent.epsilon) <= delta * (1 + 1e-6)


def test_a_charge_for_half_the_noise_is_caught():
    """The same check, given a charge that claims twice the noise of the draw."""
    spent = accounting.epsilon([Gaussian(2.0)], 1e-3)
    a, b = list(gaussian_pairs(1.0, 1, 1))[-1]
    assert compare(a, b).delta(spent.epsilon) > 1e-3
