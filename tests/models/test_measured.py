"""Which values are counted as one, and the projection onto the simplex by its optimality."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.thorough import examples

from understudy.models.measured import (
    Measured,
    frequent,
    merge,
    simplex,
    total,
)
from understudy.privacy.coarsened import Coarsened

# --- labels --------------------------------------------------------------------------------------


def require_onto(labels, size):
    """Every label from 0 on is used: what the gate asks of a merged table."""
    assert labels.shape == (size,)
    assert labels.dtype == np.int64
    assert set(labels.tolist()) == set(range(int(labels.max()) + 1))


def shares_of(key, size):
    rng = np.random.default_rng(key)
    return rng.dirichlet(np.full(size, 10 ** rng.uniform(-2, 1)))


@pytest.mark.parametrize("least", [0.0, 0.05, 0.3, 0.99])
@pytest.mark.parametrize("key", range(6))
def test_frequent_values_stay_alone_and_all_others_are_one(key, least):
    shares = shares_of(key, 12)
    labels = frequent(shares, least)
    require_onto(labels, 12)
    kept = shares >= least if (shares >= least).any() else shares == shares.max()
    counts = np.bincount(labels)
    assert all(counts[labels[i]] == 1 for i in np.flatnonzero(kept))
    assert len(set(labels[~kept].tolist())) <= 1
    assert counts.size == kept.sum() + (not kept.all())


def test_frequent_takes_counts_as_well():
    shares = shares_of(1, 12)
    assert np.array_equal(frequent(shares, 0.05), frequent(1_000 * shares, 0.05))
    assert frequent(np.array([1.0]), 0.05).tolist() == [0]


def brute(table, labels):
    out = np.zeros([int(label.max()) + 1 for label in labels])
    for cell in itertools.product(*map(range, table.shape)):
        out[tuple(label[i] for label, i in zip(labels, cell, strict=True))] += table[cell]
    return out


@pytest.mark.parametrize("shape", [(5,), (4, 6), (3, 4, 5), (1, 3)])
@pytest.mark.parametrize("key", range(4))
def test_merge_sums_over_values(shape, key):
    rng = np.random.default_rng(key)
    table = rng.normal(size=shape)
    labels = tuple(
        np.unique(rng.integers(size, size=size), return_inverse=True)[1].astype(np.int64)
        for size in shape
    )
    merged = merge(table, labels)
    np.testing.assert_allclose(merged, brute(table, labels), atol=1e-12)
    assert merged.flags.c_contiguous
    counts = rng.integers(50, size=shape)
    ours = merge(counts.astype(float), labels)
    np.testing.assert_array_equal(ours, Coarsened(tuple(range(len(shape))), labels).table(counts))


def test_labels_that_only_rename_are_followed():
    table = np.arange(6.0).reshape(2, 3)
    labels = (np.array([1, 0]), np.array([2, 0, 1]))
    np.testing.assert_array_equal(merge(table, labels), brute(table, labels))
    same = (np.arange(2), np.arange(3))
    np.testing.assert_array_equal(merge(table, same), table)


# --- the simplex --------------------------------------------------------------------------------

tables = st.lists(st.integers(-1000, 1000), min_size=1, max_size=12).map(
    lambda v: np.array(v, dtype=np.int64)
)


@given(tables, st.integers(1, 2000))
@settings(max_examples=examples(50, 300), deadline=None)
def test_projection_meets_the_optimality_conditions(values, total):
    """min ‖x − v‖² over x ≥ 0, Σx = total: x = max(v − τ, 0) for one τ, and only then."""
    x = simplex(values, total) * total
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(total, rel=1e-12)
    positive = x > 1e-9
    tau = (values - x)[positive]
    np.testing.assert_allclose(tau, tau[0], atol=1e-7)
    assert (values[~positive] <= tau[0] + 1e-7).all()


@given(tables, st.integers(1, 500), st.randoms(use_true_random=False))
@settings(max_examples=examples(20, 100), deadline=None)
def test_no_other_point_of_the_simplex_is_nearer(values, total, random):
    best = ((simplex(values, total) * total - values) ** 2).sum()
    for _ in range(20):
        weights = np.array([random.random() + 1e-9 for _ in values])
        other = total * weights / weights.sum()
        assert best <= ((other - values) ** 2).sum() + 1e-6


def test_a_table_that_is_one_already_stays():
    exact = np.array([[3, 0], [5, 2]])
    np.testing.assert_allclose(simplex(exact, 10), exact / 10)


@pytest.mark.parametrize("total", [0, -5, 0.2])
def test_totals_below_one_row_count_as_one(total):
    np.testing.assert_allclose(simplex(np.array([-7, -9]), total), [1.0, 0.0])


def test_huge_and_single_values():
    assert simplex(np.array([-(10**15)]), 3) == pytest.approx([1.0])
    far = simplex(np.array([10**15, -(10**15), 10**15]), 10)
    np.testing.assert_allclose(far, [0.5, 0.0, 0.5], atol=1e-6)


# --- the number of rows ---------------------------------------------------------------------------


def test_the_number_of_rows_follows_all_tables_by_precision():
    tables = [
        Measured((0,), np.array([60.0, 50.0]), 1.0),  # a sum of 110 with variance 2
        Measured((0, 1), np.full((2, 4), 12.0), 2.0),  # 96 with 32
    ]
    expected = (100 / 4 + 110 / 2 + 96 / 32) / (1 / 4 + 1 / 2 + 1 / 32)
    assert total(tables, 100, 2.0) == pytest.approx(expected)
    assert total([], 100, 2.0) == 100


def test_a_public_number_of_rows_stays():
    assert total([Measured((0,), np.array([60.0, 50.0]), 1.0)], 100, 0.0) == 100


def test_there_is_a_row_whatever_the_noise():
    assert total([Measured((0,), np.array([-60.0, 10.0]), 1.0)], 1, 2.0) == 1.0
