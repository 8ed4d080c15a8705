"""The second verifier's accounting against closed forms, brute force, mpmath, and the first one's.

Everywhere: never below the truth, and hardly above it.
"""

import math
import random
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import binom

from tests.thorough import slow, some
from tools import verify_release as stranger
from understudy.privacy import accounting
from understudy.privacy.cost import Charge, Gaussian, Laplace, Plan, SampledGroups

Event = dict[str, Any]
Draws = list[tuple[Event, int]]


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(50):
        yield


def gaussian(sigma: float, step: int = 1, changes: int = 1) -> Event:
    return {"kind": "gaussian", "sigma": sigma, "step": step, "changes": changes}


def laplace(epsilon: float) -> Event:
    return {"kind": "laplace", "scale": 1 / epsilon, "l1": 1}


def selection(epsilon: float, k: int = 1) -> Event:
    return {"kind": "selection", "scale": 2 / epsilon, "sensitivity": 1, "k": k}


def sampled(multiplier: float, rate: float, sides: int = 1) -> Event:
    words = round(rate * 2**32) / 2**32
    return {"kind": "sampled groups", "multipliers": [multiplier], "coordinates": 1,
            "rate": words, "sides": sides}  # fmt: skip


def claimed(draws: Draws, delta: float, group: int = 1) -> float:
    return stranger.epsilon([{"event": e, "times": n} for e, n in draws], delta, group)


def profile(draws: Draws, delta: float, group: int = 1) -> float:
    """By the composed profile alone, without the help of zCDP and pure ε."""
    return stranger.profile_epsilon(draws, delta, group, 1e4)


def least(delta_at: Callable[[Any], Any], delta: float, high: float = 2000.0) -> float:
    """The ε at which an exact profile is δ; 0 if it is lower already at 0."""
    low, top = mp.mpf(0), mp.mpf(high)
    for _ in range(80):
        middle = (low + top) / 2
        low, top = (middle, top) if delta_at(middle) > delta else (low, middle)
    return float(top)


def tail(x: Any) -> Any:
    return mp.erfc(x / mp.sqrt(2)) / 2


def normal_delta(epsilon: Any, mu: Any) -> Any:
    return tail(epsilon / mu - mu / 2) - mp.exp(epsilon) * tail(epsilon / mu + mu / 2)


def normal_epsilon(mu: float, delta: float) -> float:
    return least(lambda e: normal_delta(e, mp.mpf(mu)), delta)


def require(found: float, exact: float, share: float = 2e-4) -> None:
    assert exact * (1 - 1e-12) <= found <= exact * (1 + share) + 1e-6


def require_least(found: float, delta: float, *ways: Callable[[Any], Any]) -> None:
    """At `found` every exact profile is at most δ, and a little below it one is not."""
    assert max(way(mp.mpf(found)) for way in ways) <= delta * (1 + 1e-9)
    short = mp.mpf(found) * (1 - mp.mpf("2e-4")) - mp.mpf("1e-6")
    assert found == 0 or max(way(short) for way in ways) > delta


# --- Gaussians ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exact", "delta", "many"), [(3.123, 1e-14, 100_000), slow((5.055, 1e-12, 100_000))]
)
def test_a_learner_of_100_000_steps_that_takes_every_row(exact: float, delta: float, many: int):
    """An FFT without a tilt claims 2.932 and 4.985 here."""
    low, high = 0.01, 10.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if normal_epsilon(middle, delta) > exact else (middle, high)
    found = claimed([(sampled(math.sqrt(many) / high, 1.0), many)], delta)
    require(found, normal_epsilon(high, delta), 1e-6)
    assert found == pytest.approx(exact, rel=1e-6)


def test_one_gaussian_on_20_000_tables():
    """An FFT without a tilt claims 4.981 here."""
    mu, delta = 0.66, 1e-12
    found = claimed([(gaussian(math.sqrt(20_000) / mu, changes=20_000), 1)], delta)
    require(found, normal_epsilon(mu, delta), 2e-5)


@pytest.mark.parametrize("delta", [1e-3, slow(1e-9), 1e-15, slow(1e-30)])
@pytest.mark.parametrize(("sigma", "step", "changes"), [(20.5, 1, 1), (80.0, 4, 50), (3e4, 7, 90)])
def test_discrete_gaussians_are_hardly_more_than_continuous_ones(
    sigma: float, step: int, changes: int, delta: float
):
    found = claimed([(gaussian(sigma, step, changes), 1)], delta)
    require(found, normal_epsilon(math.sqrt(changes) * step / sigma, delta), 4e-4)


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-20])
@pytest.mark.parametrize(("sigma", "step"), [(0.4, 1), (1.0, 2), (5.0, 1), (19.0, 3)])
def test_a_narrow_gaussian_is_summed_over_its_lattice(sigma: float, step: int, delta: float):
    z = range(-math.ceil(16 * sigma) - 5, math.ceil(16 * sigma) + 6)
    masses = [mp.exp(-(mp.mpf(x) ** 2) / (2 * mp.mpf(sigma) ** 2)) for x in z]
    losses = [step / mp.mpf(sigma) ** 2 * (x + mp.mpf(step) / 2) for x in z]
    total = mp.fsum(masses)

    def delta_at(e: Any) -> Any:
        pairs = zip(losses, masses, strict=True)
        return mp.fsum(p * (1 - mp.exp(e - x)) for x, p in pairs if x > e) / total

    require_least(profile([(gaussian(sigma, step), 1)], delta), delta, delta_at)


def test_mills_ratio():
    x = np.concatenate([np.linspace(0, 8, 161), [np.nextafter(2.0, 3), 40.0, 1e3, 1e6]])
    exact = [tail(mp.mpf(v)) / mp.npdf(mp.mpf(v)) for v in x]
    assert max(abs(float(a / b - 1)) for a, b in zip(stranger.mills(x), exact, strict=True)) < 2e-14


@pytest.mark.parametrize("mu", [1e-5, 0.01, 0.7, 5.0, 20.0])
def test_the_gaussian_profile_is_rounded_up(mu: float):
    y = np.concatenate([np.linspace(-9, 14, 47) * mu + mu * mu / 2, [0.0]])
    for value, log in zip(y, stranger.log_gaussian_delta(y, mu), strict=True):
        with mp.workdps(80 + int(abs(value))):
            exact = mp.log(normal_delta(mp.mpf(value), mp.mpf(mu)))
            slack = 1e-12 * (1 + abs(value) / mu)  # of which ε takes the share u
            assert -slack <= log - exact <= slack + 1e-11 / mu


# --- pure events and Gaussians -----------------------------------------------------------------


def response_law(epsilon: float, times: int) -> dict[int, Any]:
    truth = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
    return {
        2 * i - times: mp.binomial(times, i) * truth**i * (1 - truth) ** (times - i)
        for i in range(times + 1)
    }


@pytest.mark.parametrize("seed", some(range(24), 3))
def test_randomised_responses_and_gaussians(seed: int):
    """δ(ε) = Σ over both binomials of their masses times δ_G at what is left of ε."""
    rng = random.Random(seed)
    kinds = [(rng.uniform(0.01, 0.4), rng.randint(1, 12)) for _ in range(rng.randint(1, 2))]
    sigma, changes = rng.uniform(20, 300), rng.randint(1, 80)
    delta = 10 ** rng.uniform(-30, -3)
    mu = mp.sqrt(changes) / mp.mpf(sigma)
    law = [(mp.mpf(0), mp.mpf(1))]
    for epsilon, times in kinds:
        each = response_law(epsilon, times)
        law = [(x + i * mp.mpf(epsilon), p * q) for x, p in law for i, q in each.items()]
    draws = [(gaussian(sigma, changes=changes), 1), *((laplace(e), n) for e, n in kinds)]
    require_least(
        profile(draws, delta), delta, lambda e: mp.fsum(p * normal_delta(e - x, mu) for x, p in law)
    )


@pytest.mark.parametrize("delta", [1e-3, 1e-12, 1e-30])
def test_ten_million_randomised_responses(delta: float):
    many, each = 10**7, 1e-4
    mean = many / (1 + math.exp(-each))
    i = np.arange(int(mean - 25_000), int(mean + 25_000))
    logs, losses = binom.logpmf(i, many, 1 / (1 + math.exp(-each))), (2 * i - many) * each

    def delta_at(e: Any) -> float:
        kept = losses > float(e)
        return float(np.exp(logs[kept]) @ -np.expm1(float(e) - losses[kept]))

    exact = least(delta_at, delta, 20)
    assert exact * (1 - 1e-6) <= claimed([(laplace(each), many)], delta) <= exact * (1 + 1e-4)


@pytest.mark.parametrize("delta", [1e-6, 1e-12, 1e-30])
def test_a_million_samples_of_every_row(delta: float):
    exact = normal_epsilon(1000 / 2000.0, delta)
    assert exact <= claimed([(sampled(2000.0, 1.0, 1), 10**6)], delta) <= exact * 1.0001 + 1e-5


def test_events_that_are_pure():
    pick = {"kind": "sampled selection", "scale": 4.0, "sensitivity": 1, "rate": 0.25}
    expected = math.log(1 + 0.25 * (math.exp(0.5) - 1))
    assert stranger.pure(pick) == pytest.approx(expected, rel=1e-14)
    assert claimed([(pick, 2)], 1e-30) == pytest.approx(2 * expected, rel=1e-12)
    assert claimed([(pick, 2)], 1e-30, 3) == pytest.approx(6 * expected, rel=1e-12)


# --- selections --------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [0.05, 1.0, 6.0])
def test_one_pick_is_the_worst_pair_of_bounded_range(whole: float):
    delta = 0.02 * whole / (1 + whole)

    def two_points(t: float) -> float:
        upper = (math.exp(whole) - math.exp(t)) / math.expm1(whole)
        return max(0.0, t + math.log(1 - delta / upper)) if upper > delta else 0.0

    found = profile([(selection(whole), 1)], delta)
    require(found, max(two_points(t) for t in np.linspace(0, whole, 20_001)))
    root = math.sqrt(-delta * math.expm1(-whole))  # δ = (1 − e^((x − ε)/2))²/(1 − e^−ε)
    require(found, whole + 2 * math.log1p(-root))


@pytest.mark.parametrize("delta", [1e-3, 1e-8, 1e-14])
@pytest.mark.parametrize("mu", [0.0, 0.3])
def test_two_picks_and_a_gaussian(mu: float, delta: float):
    whole = mp.mpf(0.8)
    scale = 1 / (4 * mp.sinh(whole / 2)) ** 2

    def delta_at(e: Any) -> Any:
        def integrand(x: Any) -> Any:
            rest = normal_delta(e - x, mp.mpf(mu)) if mu else max(mp.mpf(0), 1 - mp.exp(e - x))
            return scale * mp.exp(x / 2) * (2 * whole - abs(x)) * rest

        ends = [-2 * whole, 0, *([e] if 0 < e < 2 * whole else []), 2 * whole]
        return mp.quad(integrand, sorted(ends))

    draws: Draws = [(selection(0.8, 2), 1)]
    draws += [(sampled(1 / mu, 1.0), 1)] if mu else []
    with mp.workdps(25):
        require_least(profile(draws, delta), delta, delta_at)


# --- samples -----------------------------------------------------------------------------------


class Pair:
    """One step of the sampled Gaussian, exactly."""

    def __init__(self, m: float, q: float, sides: int, turned: bool) -> None:
        self.m, self.sides, self.turned = mp.mpf(m), sides, turned
        self.q = mp.mpf(round(q * 2**32)) / 2**32

    def density(self, x: Any, moved: int) -> Any:
        q = self.q if moved else mp.mpf(0)
        return (1 - q) * mp.npdf(x, 0, self.m) + q * mp.npdf(x, moved, self.m)

    def above(self, x: Any, moved: int) -> Any:
        q = self.q if moved else mp.mpf(0)
        return (1 - q) * tail(x / self.m) + q * tail((x - moved) / self.m)

    def loss(self, x: Any) -> Any:
        """Of the first table against the second; it rises with x."""
        return mp.log(self.density(x, 1) / self.density(x, -1 if self.sides == 2 else 0))

    def delta(self, e: Any) -> Any:
        """P(loss > e) − e^e·Q(loss > e)."""
        e = -e if self.turned else e
        other = -1 if self.sides == 2 else 0
        if self.sides == 1 and e <= mp.log(1 - self.q):
            return mp.mpf(0) if self.turned else 1 - mp.exp(e)
        square, q = self.m**2, self.q
        if self.sides == 1:
            low = square * mp.log((mp.exp(e) - 1 + q) / q) + mp.mpf(1) / 2
        else:
            low = square * (
                e / 2 + mp.asinh((1 - q) / q * mp.exp(1 / (2 * square)) * mp.sinh(e / 2))
            )
        if self.turned:
            return (1 - self.above(low, other)) - mp.exp(-e) * (1 - self.above(low, 1))
        return self.above(low, 1) - mp.exp(e) * self.above(low, other)


@pytest.mark.parametrize("delta", [slow(1e-4), slow(1e-12), 1e-30])
@pytest.mark.parametrize(
    ("m", "q", "sides"),
    some([(1.0, 0.01, 1), (0.5, 0.3, 1), (4.0, 0.5, 1), (1.0, 0.01, 2), (3.0, 0.9, 2)], 3, 1),
)
def test_one_sample(m: float, q: float, sides: int, delta: float):
    ways = [Pair(m, q, sides, turned).delta for turned in {False, sides == 1}]
    require_least(profile([(sampled(m, q, sides), 1)], delta), delta, *ways)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-5, 1e-20])
@pytest.mark.parametrize(("m", "q", "sides"), [(1.2, 0.05, 1), (2.0, 0.2, 2)])
def test_two_samples(m: float, q: float, sides: int, delta: float):
    """δ of two steps is the integral over one of them of δ of the other."""

    def delta_at(e: Any, turned: bool) -> Any:
        pair, sign = Pair(m, q, sides, turned), -1 if turned else 1

        def integrand(x: Any) -> Any:
            return pair.density(x, 1 - turned) * pair.delta(e - sign * pair.loss(x))

        ends = [mp.mpf(x) * m for x in range(-16, 17)]
        return mp.quad(integrand, ends, maxdegree=4)

    with mp.workdps(25):
        require_least(
            profile([(sampled(m, q, sides), 2)], delta),
            delta,
            *(lambda e, turned=turned: delta_at(e, turned) for turned in {False, sides == 1}),
        )


def test_samples_with_discrete_noise_cost_what_samples_with_gaussian_noise_do():
    event = {"kind": "sampled gaussian", "sigma": 4e4, "l2": 10_000, "coordinates": 1000,
             "rate": 0.125, "sides": 1}  # fmt: skip
    one, other = claimed([(event, 500)], 1e-9), claimed([(sampled(4.0, 0.125), 500)], 1e-9)
    assert one == pytest.approx(other, rel=1e-6)
    narrow = {**event, "sigma": 1.2, "l2": 1}
    assert claimed([(narrow, 5)], 1e-9) == stranger.zcdp_epsilon(5 / 2.88, 1e-9)


# --- what the profile leaves to zCDP, and groups -----------------------------------------------


def test_filters_and_discoveries_are_left_to_zcdp():
    plan = [(gaussian(50.0), 1), ({"kind": "zcdp", "rho": 0.1}, 1)]
    assert claimed(plan, 1e-9) == stranger.zcdp_epsilon(0.1 + 1 / 5000, 1e-9)
    found = {"kind": "discovery", "sigma": 5.0, "threshold": 40, "values": 1, "sides": 1}
    shown = float(tail(mp.mpf(38) / 5))
    left = stranger.zcdp_epsilon(1 / 50, 1e-9 - shown)
    assert claimed([(found, 1)], 1e-9) == pytest.approx(left, rel=1e-9)


@pytest.mark.parametrize("delta", [1e-6, 1e-20])
@pytest.mark.parametrize("group", [2, 7])
def test_a_group_of_rows(group: int, delta: float):
    found = claimed([(gaussian(900.0, 2, 30), 1)], delta, group)
    require(found, normal_epsilon(group * math.sqrt(30) * 2 / 900, delta), 1e-5)
    one = claimed([(laplace(0.03 * group), 9), (sampled(40.0 / group, 1.0), 5)], delta)
    assert claimed([(laplace(0.03), 9), (sampled(40.0, 0.25), 5)], delta, group) == pytest.approx(
        one
    )
    narrow = claimed([(gaussian(5.0), 1)], delta, group)
    require(narrow, normal_epsilon(group / 5, delta), 0.03)


def test_no_plan_is_too_large():
    """An absurd number of steps: what cannot be certified is left to zCDP, never to chance."""
    plan = [(gaussian(19.0, changes=10**6), 10**7), (sampled(0.03, 2.0**-20, 2), 10**7)]
    found = claimed(plan, 1e-30)
    exact = normal_epsilon_floor(10**13 / 361, 1e-30)
    by_zcdp = claimed([({"kind": "zcdp", "rho": total(plan)}, 1)], 1e-30)
    assert exact <= found <= by_zcdp * (1 + 1e-9)


def total(plan: Draws) -> float:
    return sum(stranger.rho(event) * times for event, times in plan)


def normal_epsilon_floor(mu_squared: float, delta: float) -> float:
    """Below it P(loss > ε) alone, halved, is above δ, for a Gaussian loss."""
    mu = math.sqrt(mu_squared)
    assert log_ndtr(-5.0) > math.log(4 * delta)
    return mu_squared / 2 + 5 * mu


# --- the first accountant ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", some(range(100), 16))
def test_the_first_accountant_agrees(seed: int):
    rng = random.Random(seed)
    charges: list[Charge] = []
    if seed % 4:
        for i in range(rng.randint(1, 4)):
            event = Gaussian(rng.uniform(15, 900), rng.choice([1, 1, 2]), rng.randint(1, 60))
            charges.append(Charge(f"tables {i}", event))
        if rng.random() < 0.8:
            charges.append(Charge("certificate", Laplace(rng.uniform(8, 60)), rng.randint(1, 3)))
    else:
        rate = round(10 ** rng.uniform(-3, -1) * 2**32) / 2**32
        event = SampledGroups((rng.uniform(0.7, 5),), 7, rate, rng.choice([1, 2]))
        charges.append(Charge("gradients", event, int(10 ** rng.uniform(1, 3.6))))
    plan, delta = Plan(tuple(charges)), 10 ** rng.uniform(-9, -4)
    ours = accounting.epsilon(plan, delta).epsilon
    assert stranger.epsilon(plan.to_json(), delta) == pytest.approx(ours, rel=1e-3)
