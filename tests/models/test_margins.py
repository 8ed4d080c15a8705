"""One-way tables read through pairs: nearer than plain sums where that can be, never far worse."""

import numpy as np
import pytest

from understudy.models.margins import _matched, deconvolve, one_way, one_ways
from understudy.models.measured import Measured, simplex

ROWS = 20_000
SKEWED = np.array([0.9, 0.04, 0.03, 0.01, 0.01, 0.01])
EVEN = np.array([0.3, 0.25, 0.2, 0.15, 0.1])


def noisy(table, sigma, rng):
    return table + rng.normal(0, sigma, table.shape)


def errors(joint, sigma, key, labels=None):
    """(error of the first column through the pair, error of plain sums), in rows."""
    rng = np.random.default_rng(key)
    values = noisy(joint, sigma, rng)
    found, _ = one_ways(joint.shape, [Measured((0, 1), values, sigma, labels)], ROWS)
    truth = joint.sum(axis=1)
    return np.abs(found[0] - truth).sum(), np.abs(values.sum(axis=1) - truth).sum()


def mean_errors(joint, sigma):
    return np.mean([errors(joint, sigma, key) for key in range(30)], axis=0)


def test_a_skewed_partner_no_longer_adds_its_noise():
    through, plain = mean_errors(ROWS * np.multiply.outer(EVEN, SKEWED), 300.0)
    # σ²/Σp² against 6σ²: a factor of 2.2 in deviations, if independence were known for certain.
    assert through < 0.7 * plain


def test_where_columns_depend_on_each_other_plain_sums_are_what_is_left():
    joint = np.zeros((5, 5))
    joint[np.arange(5), [1, 0, 3, 2, 4]] = ROWS * EVEN
    through, plain = mean_errors(joint, 100.0)
    assert through < 1.15 * plain


def test_the_variance_is_that_of_the_two_extremes():
    own, sigma = ROWS * EVEN, 50.0
    joint = np.multiply.outer(own, SKEWED)
    variance, found = _matched(joint, own, SKEWED, sigma, ROWS)
    assert np.allclose(found, own)
    assert np.all(variance >= sigma**2 / (SKEWED**2).sum() * (1 - 1e-9))
    assert np.all(variance <= sigma**2 * SKEWED.size * (1 + 1e-9))
    # A dependence beyond all noise: cells tell nothing that their sum does not.
    swapped = joint[:, ::-1]
    variance, found = _matched(swapped, own, SKEWED, 1e-3, ROWS)
    assert np.allclose(variance, 1e-6 * SKEWED.size, rtol=1e-3)
    assert np.allclose(found, own, rtol=1e-6)


def test_sums_of_groups_stay_where_they_were_seen():
    """De-noising value by value moves the halves of such a column by some 200 rows."""
    column = np.concatenate([np.full(40, 55.0), np.full(80, 20.0), [ROWS - 3_800.0]])
    half = np.repeat([0, 1, 2], [40, 80, 1])
    apart = []
    joint = np.multiply.outer(column, SKEWED)
    for key in range(20):
        rng = np.random.default_rng(key)
        runs = Measured((0,), noisy(column, 50.0, rng), 50.0)
        labels = half, np.array([0, 1, 1, 1, 1, 1])
        sums = np.add.reduceat(np.add.reduceat(joint, [0, 40, 120]), [0, 1], axis=1)
        pair = Measured((0, 1), noisy(sums, 60.0, rng), 60.0, labels)
        found, _ = one_ways(joint.shape, [runs, pair], ROWS)
        apart.append(np.bincount(half, found[0]) - np.bincount(half, column))
    # A sum was seen with a deviation of 60 to 85 rows.
    assert np.sqrt(np.mean(np.square(apart), axis=0)).max() < 150


def test_merged_values_share_what_their_sum_says():
    joint = ROWS * np.multiply.outer(EVEN, SKEWED)
    labels = (np.array([0, 0, 1, 2, 2]), np.array([0, 1, 1, 1, 1, 1]))
    merged = np.zeros((3, 2))
    np.add.at(merged, np.ix_(*labels), joint)
    column = Measured((0,), noisy(joint.sum(axis=1), 400.0, np.random.default_rng(1)), 400.0)
    alone, _ = one_ways(joint.shape, [column], ROWS)
    found, _ = one_ways(joint.shape, [column, Measured((0, 1), merged, 1.0, labels)], ROWS)
    sums = np.bincount(labels[0], found[0])
    assert np.allclose(sums, merged.sum(axis=1), rtol=0.01)
    # Inside a group nothing was added: what the column said of its values stays.
    assert found[0][0] - found[0][1] == pytest.approx(alone[0][0] - alone[0][1], rel=0.05)


def test_columns_that_nothing_was_said_of_are_uniform():
    pair = Measured((0, 1), ROWS * np.multiply.outer(EVEN, SKEWED), 1.0)
    found, deviations = one_ways((5, 6, 4), [pair], ROWS)
    assert np.allclose(found[2], ROWS / 4)
    assert deviations[2] == ROWS
    assert np.allclose(found[1], ROWS * SKEWED, atol=5)
    assert found[0].sum() == pytest.approx(ROWS)


def test_noise_alone_and_no_rows_still_give_counts():
    rng = np.random.default_rng(3)
    pair = Measured((0, 1), rng.normal(0, 1e6, (5, 6)), 1e6)
    for rows in (1.0, 10.0):
        found, _ = one_ways((5, 6), [pair], rows)
        assert all(np.isfinite(t).all() and (t > 0).all() for t in found)
        assert all(t.sum() == pytest.approx(rows) for t in found)


# --- one noisy column: closer to the truth than the simplex, whatever it looks like ---------------


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


def noisy_column(truth, sigma, key):
    return np.rint(truth + np.random.default_rng(1000 + key).normal(0, sigma, truth.size))


@pytest.mark.parametrize("sigma", [10, 30, 100])
@pytest.mark.parametrize("name", COLUMNS)
def test_the_error_is_below_that_of_the_simplex(name, sigma):
    ours, theirs = [], []
    for key in range(10):
        truth = COLUMNS[name](key)
        y = noisy_column(truth, sigma, key)
        ours.append(np.abs(one_way(y, sigma, ROWS) - truth).sum())
        theirs.append(np.abs(ROWS * simplex(y, ROWS) - truth).sum())
    assert np.mean(ours) < WANTED[name] * np.mean(theirs)
    assert sum(a < b for a, b in zip(ours, theirs, strict=True)) >= 8


@pytest.mark.parametrize("sigma", [0.5, 10, 1_000])
@pytest.mark.parametrize("rows", [1, 300, ROWS])
@pytest.mark.parametrize("name", COLUMNS)
def test_counts_above_zero_that_sum_to_the_rows(name, rows, sigma):
    for size in (1, 2, 20, 21, 100):
        truth = COLUMNS[name](0)[:size]
        found = one_way(noisy_column(truth * rows / ROWS, sigma, 3), sigma, rows)
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
        y = noisy_column(truth, 100, key)
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


def test_the_tail_of_a_column_in_order_is_believed_as_a_whole():
    values, far = np.array([40, 900, 9000, 6000, 1500, 300, 50, 10, *[1] * 3, *[0] * 10]), []
    rows, places = float(values.sum()), np.arange(values.size)
    spread = lambda counts: np.sqrt(counts @ (places - counts @ places / rows) ** 2 / rows)  # noqa: E731
    for seed in range(12):
        noisy = values + np.random.default_rng(seed).normal(0, 60, values.size)
        seen = [Measured((0,), noisy, 60.0)]
        kinds = (one_ways((values.size,), seen, rows, ordered)[0][0] for ordered in ((), (21,)))
        far.append([abs(spread(counts) / spread(values) - 1) for counts in kinds])
    plain, ordered = np.median(far, axis=0)
    assert ordered < 0.3 * plain
    assert ordered < 0.05


def test_where_hardly_anything_is_clear_no_tail_is_sought():
    noisy = np.random.default_rng(1).normal(20, 60, 40)
    plain, ordered = (
        one_ways((40,), [Measured((0,), noisy, 60.0)], 800.0, known)[0][0] for known in ((), (40,))
    )
    assert (plain == ordered).all()


def test_what_was_counted_before_is_averaged_by_precision():
    told = [((400.0, 900.0), (600.0, np.inf)), ()]
    seen = [Measured((0,), np.array([430.0, 590.0, 20.0]), 60.0)]
    (plain, _), (known, _) = (one_ways((3, 2), seen, 1000.0, told=t)[0] for t in ((), told))
    assert plain[0] < 430 < plain[1]
    assert known[0] == pytest.approx(401, abs=3)
    assert known.sum() == pytest.approx(1000)
