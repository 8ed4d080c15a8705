"""Lower bounds on ε: known values, closed forms, coverage, and what they refuse."""

import math

import numpy as np
import pytest
from scipy import stats

from understudy.audit import bounds
from understudy.errors import InputError


@pytest.mark.parametrize(
    ("guesses", "correct", "delta", "expected"),
    [
        (100, 80, 0.0, 0.958),
        (200, 150, 0.0, 0.821),
        (1000, 560, 0.0, 0.134),
        (100, 100, 0.0, 3.493),
        (100, 80, 1e-5, 0.955),
    ],
)
def test_one_run_values(guesses, correct, delta, expected):
    found = bounds.one_run_lower_bound(
        canaries=1000, guesses=guesses, correct=correct, delta=delta, beta=0.05
    )
    assert found == pytest.approx(expected, abs=5e-4)


def test_one_run_is_a_binomial_tail_where_every_canary_is_guessed():
    found = bounds.one_run_lower_bound(canaries=60, guesses=60, correct=45, delta=0, beta=0.02)
    p = math.exp(found) / (1 + math.exp(found))
    assert stats.binom.sf(44, 60, p) == pytest.approx(0.02, rel=1e-9)


def test_one_run_with_delta_against_the_formula_by_brute_force():
    m, r, v, delta, beta = 40, 25, 21, 1e-4, 0.05
    found = bounds.one_run_lower_bound(canaries=m, guesses=r, correct=v, delta=delta, beta=beta)

    def right(epsilon):
        p = math.exp(epsilon) / (1 + math.exp(epsilon))

        def f(k):
            return stats.binom.sf(k - 1, r, p)

        return f(v) + 2 * m * delta * max((f(v - i) - f(v)) / i for i in range(1, m + 1))

    assert right(found) == pytest.approx(beta, rel=1e-6)
    assert right(found + 1e-3) > beta


def test_perfect_attacks_show_what_the_closed_forms_say():
    root = (0.05 / 2) ** (1 / 50)
    expected = math.log(root / (1 - root))
    found = bounds.largest_many_runs_bound(
        with_canary=50, without_canary=50, delta=0, beta=0.05
    )  # fmt: skip
    assert found == pytest.approx(expected)
    one = bounds.largest_one_run_bound(canaries=50, guesses=50, delta=0, beta=0.05)
    root = 0.05 ** (1 / 50)
    assert one == pytest.approx(math.log(root / (1 - root)))


def test_many_runs_by_hand():
    """The formula, with Clopper-Pearson from scipy's own binomial test."""
    hits, alarms, runs, delta, beta = 70, 12, 100, 1e-3, 0.1
    found = bounds.many_runs_lower_bound(
        hits=hits, with_canary=runs, alarms=alarms, without_canary=runs, delta=delta, beta=beta
    )
    t = stats.binomtest(hits, runs).proportion_ci(1 - beta).low
    f = stats.binomtest(alarms, runs).proportion_ci(1 - beta).high
    by_hand = max(math.log((t - delta) / f), math.log((1 - f - delta) / (1 - t)))
    assert found == pytest.approx(by_hand, rel=1e-9)


def test_both_tails_count():
    """Hits that are nearly certain refute as well as alarms that are nearly absent."""
    common = {"delta": 0.0, "beta": 0.05}
    alarms = bounds.many_runs_lower_bound(
        hits=30, with_canary=100, alarms=0, without_canary=100, **common
    )
    misses = bounds.many_runs_lower_bound(
        hits=100, with_canary=100, alarms=70, without_canary=100, **common
    )
    assert alarms == pytest.approx(misses)
    assert alarms > 1


def test_the_credible_bound_is_the_quantile_of_the_posterior():
    hits, alarms, runs, delta, beta = 70, 12, 100, 1e-3, 0.05
    found = bounds.credible_lower_bound(
        hits=hits, with_canary=runs, alarms=alarms, without_canary=runs, delta=delta, beta=beta
    )
    rng = np.random.default_rng(1)
    fpr = rng.beta(0.5 + alarms, 0.5 + runs - alarms, 400_000)
    fnr = rng.beta(0.5 + runs - hits, 0.5 + hits, 400_000)
    drawn = np.maximum(np.log((1 - delta - fnr) / fpr), np.log((1 - delta - fpr) / fnr))
    assert found == pytest.approx(np.quantile(drawn, beta), abs=0.01)
    confident = bounds.many_runs_lower_bound(
        hits=hits, with_canary=runs, alarms=alarms, without_canary=runs, delta=delta, beta=beta
    )
    assert found > confident


def test_the_gaussian_bound_solves_its_curve():
    found = bounds.gaussian_lower_bound(
        hits=800, with_canary=1000, alarms=150, without_canary=1000, delta=1e-5, beta=0.05
    )
    t, f = bounds.rate_below(800, 1000, 0.025), bounds.rate_above(150, 1000, 0.025)
    mu = stats.norm.ppf(t) - stats.norm.ppf(f)
    back = stats.norm.cdf(-found / mu + mu / 2) - math.exp(found) * stats.norm.cdf(
        -found / mu - mu / 2
    )
    assert back == pytest.approx(1e-5, rel=1e-6)
    assert found > bounds.many_runs_lower_bound(
        hits=800, with_canary=1000, alarms=150, without_canary=1000, delta=1e-5, beta=0.05
    )


def test_randomised_response_is_never_refuted_and_nearly_reached():
    """ε = 1: the bounds stay below it in at least 95 of 100 repetitions, and tend to it."""
    rng, p, beta = np.random.default_rng(7), 1 / (1 + math.exp(-1)), 0.05
    one, many, runs = [], [], 4000
    for _ in range(300):
        correct = int(rng.binomial(runs, p))
        one.append(
            bounds.one_run_lower_bound(
                canaries=runs, guesses=runs, correct=correct, delta=0, beta=beta
            )
        )
        many.append(
            bounds.many_runs_lower_bound(
                hits=int(rng.binomial(runs, p)), with_canary=runs,
                alarms=int(rng.binomial(runs, 1 - p)), without_canary=runs, delta=0, beta=beta,
            )
        )  # fmt: skip
    for found in (one, many):
        beyond = int(np.sum(np.array(found) > 1))
        assert stats.binom.sf(beyond - 1, 300, beta) > 1e-3
        assert np.mean(found) > 0.88


def test_a_constant_output_shows_nothing():
    same = {"with_canary": 200, "without_canary": 200, "delta": 1e-6, "beta": 0.05}
    for hits in (0, 100, 200):
        assert bounds.many_runs_lower_bound(hits=hits, alarms=hits, **same) == 0
        assert bounds.credible_lower_bound(hits=hits, alarms=hits, **same) == 0
        assert bounds.gaussian_lower_bound(hits=hits, alarms=hits, **same) == 0
    half = {"canaries": 200, "guesses": 200, "delta": 0.0, "beta": 0.05}
    assert bounds.one_run_lower_bound(correct=100, **half) == 0
    assert bounds.one_run_lower_bound(canaries=9, guesses=0, correct=0, delta=0, beta=0.05) == 0


def test_more_evidence_shows_more():
    found = [
        bounds.one_run_lower_bound(canaries=500, guesses=100, correct=v, delta=1e-6, beta=0.05)
        for v in range(50, 101, 5)
    ]
    assert found == sorted(found)
    assert found[-1] > found[0]


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"canaries": 0}, "canaries = 0"),
        ({"guesses": 11}, "guesses = 11"),
        ({"correct": 8}, "correct = 8"),
        ({"correct": -1}, "correct = -1"),
        ({"correct": 2.5}, "correct = 2.5"),
        ({"delta": 1.0}, "delta = 1.0"),
        ({"delta": -1e-9}, "delta = -1e-09"),
        ({"beta": 0.0}, "beta = 0.0"),
        ({"beta": math.nan}, "beta = nan"),
    ],
)
def test_what_one_run_refuses(changed, named):
    fine = {"canaries": 10, "guesses": 7, "correct": 5, "delta": 0.0, "beta": 0.05}
    with pytest.raises(InputError, match=named):
        bounds.one_run_lower_bound(**fine | changed)


@pytest.mark.parametrize("which", ["many_runs", "gaussian", "credible"])
@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"hits": 11}, "hits = 11"),
        ({"alarms": 21}, "alarms = 21"),
        ({"with_canary": 0}, "with_canary = 0"),
        ({"beta": 0.7}, "beta = 0.7"),
    ],
)
def test_what_rates_refuse(which, changed, named):
    fine = {
        "hits": 5, "with_canary": 10, "alarms": 2, "without_canary": 20, "delta": 1e-6, "beta": 0.05,
    }  # fmt: skip
    with pytest.raises(InputError, match=named):
        getattr(bounds, f"{which}_lower_bound")(**fine | changed)


def test_the_gaussian_bound_needs_a_delta():
    with pytest.raises(InputError, match="delta = 0"):
        bounds.gaussian_lower_bound(
            hits=5, with_canary=9, alarms=1, without_canary=9, delta=0, beta=0.05
        )
