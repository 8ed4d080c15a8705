"""Dominating pairs dominate, and δ(ε) of their composition is never below the truth and close to it."""

import math
import random
import subprocess
import sys

import mpmath as mp
import pytest

from tests.thorough import examples, slow, some
from understudy.privacy import accounting, pairs, profile
from understudy.privacy.cost import (
    Charge,
    Gaussian,
    Laplace,
    Plan,
    SampledGaussian,
    SampledGroups,
    Selection,
)

DIGITS = 50


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(DIGITS):
        yield


# --- the truth, in 50 digits ----------------------------------------------------------------------


def tail(x):
    return mp.erfc(x / mp.sqrt(2)) / 2


def gaussian(mu, epsilon):
    if mu == 0:
        return max(mp.mpf(0), -mp.expm1(epsilon))
    return tail(epsilon / mu - mu / 2) - mp.exp(epsilon) * tail(epsilon / mu + mu / 2)


def responses(times, epsilon):
    """Losses of randomised response and their masses."""
    up = 1 / (1 + mp.exp(-epsilon))
    return [
        ((2 * j - times) * epsilon, mp.binomial(times, j) * up**j * (1 - up) ** (times - j))
        for j in range(times + 1)
    ]


def mixed(mu, atoms, epsilon):
    return sum(mass * gaussian(mu, epsilon - loss) for loss, mass in atoms)


def mixture(rate, shift, way, epsilon):
    """δ(ε) of one Poisson sample, by the half-line on which the loss exceeds ε."""
    p = [(1, 0)] if way == "add" else [(1 - rate, 0), (rate, shift)]
    q = [(1, 0)] if way == "remove" else [(1 - rate, 0), (rate, -shift)]

    def loss(x):
        top, bottom = (mp.fsum(w * mp.exp(m * x - m * m / 2) for w, m in side) for side in (p, q))
        return mp.log(top / bottom)

    low, high = mp.mpf(-60), mp.mpf(60)
    if loss(high) <= epsilon:
        return mp.mpf(0)
    if loss(low) >= epsilon:
        return -mp.expm1(epsilon)
    for _ in range(mp.mp.prec):
        middle = (low + high) / 2
        low, high = (middle, high) if loss(middle) < epsilon else (low, middle)
    return mp.fsum(w * tail(high - m) for w, m in p) - mp.exp(epsilon) * mp.fsum(
        w * tail(high - m) for w, m in q
    )


def between(delta_of, delta, claimed, above=1.01):
    """The claim is not below the exact ε, and at most `above` times as large."""
    assert delta_of(mp.mpf(claimed)) <= delta
    if claimed > 1e-9 and above:
        assert delta_of(mp.mpf(claimed) / mp.mpf(above)) > delta


# --- the closed form ------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.1, 1.0, 8.0, 60.0])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-9, 1e-16, 1e-30, 1e-100])
def test_the_closed_form_is_never_below_and_relatively_exact(mu, delta):
    epsilon = profile.gaussian_epsilon(mu, delta)
    truth = gaussian(mp.mpf(mu), mp.mpf(epsilon))
    assert truth <= delta
    if epsilon:
        assert truth > delta * (1 - 1e-3)
        assert truth <= profile.gaussian_delta(mu, epsilon) <= truth * (1 + 1e-3)


@pytest.mark.parametrize("x", [-25.0, -3.0, 0.0, 1.0, 9.0, 24.9, 25.1, 40.0, 1e4])
def test_mills_ratio_is_enclosed(x):
    truth = tail(mp.mpf(x)) / mp.npdf(mp.mpf(x))
    low, high = profile._mills(x)
    assert low <= truth <= high
    assert high - low < 1e-6 * high


# --- composition ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("times", "each"), [(1, 0.7), (3, 1.5), (20, 0.1), (60, 0.005)])
@pytest.mark.parametrize("mu", [0.0, 0.02, 0.5])
def test_the_sum_is_never_below_at_any_tilt(times, each, mu):
    """Whatever λ, period and end are: the bound holds, and where it is sharp it is sharp."""
    parts = [(pairs.response(each), times)]
    atoms = responses(times, mp.mpf(each))
    for at in (0.3, 2.0, 15.0, 80.0):
        sum_ = profile._Sum(parts, mu * mu, at)
        for epsilon in (0.0, 0.4 * times * each, 0.9 * times * each, max(sum_.centre, 0.0)):
            truth = mixed(mp.mpf(mu), atoms, mp.mpf(epsilon))
            assert mp.mpf(sum_.log_delta(epsilon)) >= (mp.log(truth) if truth > 0 else -mp.inf)


def random_plan(rng):
    """A plan of Gaussians and Laplace noise, its μ and the losses of the rest."""
    charges, mu2, atoms = [], mp.mpf(0), [(mp.mpf(0), mp.mpf(1))]
    kind = rng.choice(("gaussian", "laplace", "mixed"))
    if kind != "laplace":
        for name in "ab"[: rng.randint(1, 2)]:
            sigma = 10 ** rng.uniform(1.31, 5)
            step, changes = rng.choice((1, 2, 16, int(sigma))), rng.choice((1, 2, 12, 1000))
            times = int(10 ** rng.uniform(0, 7 if kind == "gaussian" else 3))
            charges.append(Charge(name, Gaussian(sigma, step, changes), times))
            mu2 += mp.mpf(step) ** 2 * changes * times / mp.mpf(sigma) ** 2
    if kind != "gaussian":
        times, scale = rng.choice((1, 2, 3, 10, 40)), 10 ** rng.uniform(-0.3, 2.5)
        charges.append(Charge("l", Laplace(scale), times))
        atoms = responses(times, 1 / mp.mpf(scale))
    return Plan(tuple(charges)), mp.sqrt(mu2), atoms


@pytest.mark.parametrize("seed", range(examples(20, 60)))
def test_random_plans_against_the_closed_form(seed):
    rng = random.Random(seed)
    for _ in range(5):
        plan, mu, atoms = random_plan(rng)
        if mu > 300:
            continue
        delta = 10 ** rng.uniform(-30, -3)
        spent = accounting.epsilon(plan, delta).epsilon
        above = 1.01 if delta >= 1e-12 else None
        between(lambda e, mu=mu, atoms=atoms: mixed(mu, atoms, e), delta, spent, above)


@pytest.mark.parametrize(
    ("times", "epsilon", "delta"), [(100_000, 3, 1e-14), (100_000, 5, 1e-12), (20_000, 5, 1e-12)]
)
def test_plans_that_convolution_in_float64_understated(times, epsilon, delta):
    """Calibrated by the closed form to a little more than the promise, they must not be let pass."""
    low, high = mp.mpf(0), mp.mpf(10)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if gaussian(middle, epsilon) < delta else (low, middle)
    for factor, fits in ((0.999, True), (1.001, False)):
        sigma = float(mp.sqrt(times) / (high * factor)) * 2**20
        learner = Plan((Charge("g", SampledGaussian(sigma, 2**20, 50, 1.0), times),))
        tables = Plan((Charge("g", Gaussian(sigma, 2**20, times)),))
        for plan in (learner, tables):
            assert (accounting.epsilon(plan, delta).epsilon <= epsilon) == fits


@pytest.mark.parametrize("seed", range(6))
def test_one_sample_against_its_closed_form(seed):
    rng = random.Random(100 + seed)
    for _ in range(5):
        rate = max(1, round(10 ** rng.uniform(-5, -0.01) * 2**32)) / 2**32
        multiplier, sides = 10 ** rng.uniform(-0.3, 1.3), rng.choice((1, 2))
        delta = 10 ** rng.uniform(-20, -3)
        spent = accounting.epsilon([SampledGroups((multiplier,), 1, rate, sides)], delta).epsilon
        ways, shift = ("replace",) if sides == 2 else ("add", "remove"), 1 / mp.mpf(multiplier)
        truth = lambda e, r=rate, s=shift, w=ways: max(mixture(mp.mpf(r), s, way, e) for way in w)  # noqa: E731
        between(truth, delta, spent, 1.01 if delta >= 1e-12 else None)


@pytest.mark.parametrize("sides", [slow(1), 2])
@pytest.mark.parametrize(("rate", "multiplier", "times"), [(0.25, 1.0, 2), slow((0.02, 0.8, 2))])
def test_two_samples_against_an_integral(rate, multiplier, times, sides):
    """δ of two steps is the mean of δ(ε − L) of one over the loss L of the other."""
    rate, shift, delta = round(rate * 2**32) / 2**32, 1 / mp.mpf(multiplier), 1e-6
    spent = accounting.epsilon(
        [SampledGroups((multiplier,), 1, rate, sides)] * times, delta
    ).epsilon
    worst = mp.mpf(0)
    with mp.workdps(20):
        for way in ("replace",) if sides == 2 else ("add", "remove"):
            p = [(1, 0)] if way == "add" else [(1 - rate, 0), (rate, shift)]
            q = [(1, 0)] if way == "remove" else [(1 - rate, 0), (rate, -shift)]
            x, total = mp.linspace(-8, 10, 181), mp.mpf(0)
            for y in x:  # the trapezoidal rule on a line is exact to many digits here
                weight, other = (mp.fsum(w * mp.npdf(y, m) for w, m in side) for side in (p, q))
                rest = mp.mpf(spent) - mp.log(weight / other)
                total += weight * mixture(mp.mpf(rate), shift, way, rest) / 10
            worst = max(worst, total)
    assert 0.8 * delta < worst <= delta


@pytest.mark.parametrize("delta", [1e-4, slow(1e-9), slow(1e-12)])
@pytest.mark.parametrize(("scale", "times"), some([(2.0, 2), (12.0, 3), (100.0, 6), (0.8, 4)], 2))
def test_selections_against_sums_of_their_worst_losses(scale, times, delta):
    """The losses have the density e^{x/2} on an interval, so that sums are those of uniform ones."""
    e0 = 2 / mp.mpf(scale)

    def volume(x):
        parts = (
            (-1) ** k * mp.binomial(times, k) * max(x + (times - 2 * k) * e0, 0) ** (times - 1)
            for k in range(times + 1)
        )
        return mp.fsum(parts) / mp.factorial(times - 1)

    def truth(epsilon):
        knots = [(2 * k - times) * e0 for k in range(times + 1)]
        ends = [epsilon, *(x for x in knots if x > epsilon)]
        whole = mp.quad(lambda x: mp.exp(x / 2) * volume(x) * -mp.expm1(epsilon - x), ends)
        return whole / (4 * mp.sinh(e0 / 2)) ** times

    events = [Selection(scale)] * times
    spent = accounting.epsilon(events, delta)
    assert spent.epsilon <= accounting.epsilon_from_rho(accounting.total_rho(events), delta)
    assert spent.epsilon <= accounting.epsilon([Laplace(scale / 2)] * times, delta).epsilon
    if spent.by == "pld":
        between(truth, delta, spent.epsilon)
    found = profile.composed_epsilon(
        [(pairs.bounded_range(float(e0) * (1 + 1e-15)), times)], 0.0, delta
    )
    assert found is not None
    between(truth, delta, min(found, float(e0) * times * (1 - 1e-12)), 1.011)


def test_a_mean_over_half_the_losses_would_be_caught():
    """The same comparisons fail for an account that forgets a draw."""
    events, delta = [Laplace(10.0)] * 12, 1e-6
    spent = accounting.epsilon(events[1:], delta).epsilon
    with pytest.raises(AssertionError):
        between(lambda e: mixed(mp.mpf(0), responses(12, mp.mpf(1) / 10), e), delta, spent)


def test_accounting_loads_neither_scipy_nor_the_library_of_old():
    code = (
        "import sys; from understudy.privacy import accounting; from understudy.privacy.cost import *\n"
        "accounting.epsilon([Gaussian(30.0), Laplace(9.0), Selection(4.0),"
        " SampledGroups((2.0,), 1, 0.5)], 1e-9)\n"
        "print(*{m.split('.')[0] for m in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert not set(done.stdout.split()) & {"scipy", "dp_accounting"}


@pytest.mark.parametrize(("scale", "times"), [(1e11, 2**70), (1e14, 2**90), (1e8, 2**56)])
def test_absurd_numbers_of_draws_are_accounted_for(scale, times):
    """No rounding of a period ends the sum; the limit is a Gaussian, and zCDP remains."""
    spent = accounting.epsilon(Plan((Charge("a", Laplace(scale), times),)), 1e-9)
    limit = profile.gaussian_epsilon(math.sqrt(times) / scale, 1e-9)
    assert limit < spent.epsilon < 1.1 * limit
