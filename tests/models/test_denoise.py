"""One-way tables: closer to the truth than the simplex, whatever the column looks like."""

import numpy as np
import pytest

from understudy.models.denoise import deconvolve, one_way
from understudy.models.measured import simplex

ROWS = 20_000.0


def smooth(key, size=100):
    """Two hills."""
    x, at = np.arange(size), 35 + key
    shares = np.exp(-(((x - at) / 18) ** 2)) + 0.4 * np.exp(-(((x - 80) / 9) ** 2)) + 0.01
    return ROWS * shares / shares.sum()


def spiky(key, size=100):
    """A tenth of the values hold nearly everything."""
    rng = np.random.default_rng(key)
    shares = np.where(rng.random(size) < 0.1, rng.pareto(1.2, size) + 0.2, 1e-4)
    return ROWS * shares / shares.sum()


def both(key, size=100):
    """Hills with spikes on them, as ages rounded to tens."""
    shares = 0.7 * smooth(key, size)
    shares[np.random.default_rng(key).choice(size, 5, replace=False)] += 0.3 * ROWS / 5
    return shares


def even(key, size=100):
    return np.full(size, ROWS / size)


COLUMNS = {"smooth": smooth, "spiky": spiky, "both": both, "even": even}
# Mean L1 error, as a share of what the simplex projection leaves: measured, and some room.
WANTED = {"smooth": 0.65, "spiky": 0.9, "both": 0.85, "even": 0.5}


def noisy(truth, sigma, key):
    return np.rint(truth + np.random.default_rng(1000 + key).normal(0, sigma, truth.size))


@pytest.mark.parametrize("sigma", [10, 30, 100])
@pytest.mark.parametrize("name", COLUMNS)
def test_the_error_is_below_that_of_the_simplex(name, sigma):
    ours, theirs = [], []
    for key in range(10):
        truth = COLUMNS[name](key)
        y = noisy(truth, sigma, key)
        ours.append(np.abs(one_way(y, sigma, ROWS) - truth).sum())
        theirs.append(np.abs(ROWS * simplex(y, ROWS) - truth).sum())
    assert np.mean(ours) < WANTED[name] * np.mean(theirs)
    assert sum(a < b for a, b in zip(ours, theirs, strict=True)) >= 8


@pytest.mark.parametrize("sigma", [0.5, 10, 1_000])
@pytest.mark.parametrize("rows", [1, 300, ROWS])
@pytest.mark.parametrize("size", [1, 2, 20, 21, 100])
@pytest.mark.parametrize("name", COLUMNS)
def test_counts_above_zero_that_sum_to_the_rows(name, size, rows, sigma):
    truth = COLUMNS[name](0)[:size]
    found = one_way(noisy(truth * rows / ROWS, sigma, 3), sigma, rows)
    assert found.shape == (size,)
    assert (found > 0).all()
    assert found.sum() == pytest.approx(rows, rel=1e-9)


@pytest.mark.parametrize("value", [-1_000, 0, 10**9])
@pytest.mark.parametrize("size", [3, 50])
def test_absurd_answers_do_no_harm(size, value):
    found = one_way(np.full(size, value), 5.0, 40)
    np.testing.assert_allclose(found, 40 / size)


def test_without_noise_the_counts_stay():
    for make in COLUMNS.values():
        truth = np.maximum(np.rint(make(1)), 1)
        found = one_way(truth, 0.05, truth.sum())
        np.testing.assert_allclose(found, truth, atol=0.02 * 100)
        assert np.abs(found - truth).sum() < 1e-3 * truth.sum()


def test_order_is_noticed_without_being_told():
    """Shuffled, the hills have no neighbours to learn from, and the answer is worse."""
    shuffle = np.random.default_rng(5).permutation(100)
    sorted_error = shuffled_error = 0.0
    for key in range(5):
        truth = smooth(key)
        y = noisy(truth, 100, key)
        sorted_error += np.abs(one_way(y, 100, ROWS) - truth).sum()
        shuffled_error += np.abs(one_way(y[shuffle], 100, ROWS) - truth[shuffle]).sum()
    assert sorted_error < 0.7 * shuffled_error


# --- the law of the unknowns --------------------------------------------------------------------


def test_posterior_means_shrink_noise_and_leave_what_is_far_from_it():
    rng = np.random.default_rng(0)
    truth = np.where(np.arange(400) < 20, 50.0, 0.0)
    y = truth + rng.normal(0, 5, 400)
    mean, evidence = deconvolve(y, 5.0, positive=True)
    assert np.isfinite(evidence)
    assert np.abs(mean - truth).mean() < 0.3 * np.abs(y - truth).mean()
    assert np.array_equal(mean[np.abs(y) > 35], y[np.abs(y) > 35])
    assert (mean >= 0).all()


def test_a_law_on_both_sides_when_it_is_not_positive():
    rng = np.random.default_rng(1)
    truth = np.where(np.arange(400) % 2, 6.0, -6.0)
    mean, _ = deconvolve(truth + rng.normal(0, 2, 400), 2.0, positive=False)
    assert np.abs(mean - truth).mean() < 0.3


def test_a_better_guess_has_more_evidence():
    y = np.random.default_rng(2).normal(0, 3, 200)
    assert deconvolve(y, 3.0, positive=False)[1] > deconvolve(4 * y, 3.0, positive=False)[1]


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("y", [[0.0], [-3.0], [1e9], [-1e6, 0.0, 1e6]], ids=str)
def test_one_value_and_huge_values(y, positive):
    mean, evidence = deconvolve(np.array(y), 1.0, positive=positive)
    assert np.isfinite(mean).all()
    assert np.isfinite(evidence)
