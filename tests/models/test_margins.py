"""One-way tables read through pairs: nearer than plain sums where that can be, never far worse."""

import numpy as np
import pytest

from understudy.models.margins import _matched, one_ways
from understudy.models.measured import Measured

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
