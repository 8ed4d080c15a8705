"""Compiled sums over rows are those of NumPy, to the last digit."""

import numpy as np

from understudy.privacy import _rows


def test_scores_and_sums_are_exact():
    rng = np.random.default_rng(3)
    features = rng.integers(-(2**14), 2**14 + 1, (50, 7)).astype(np.int16)
    weights = rng.integers(-(2**40), 2**40, (3, 7))
    wide = features.astype(np.int64)
    assert (_rows.scores(features, weights) == wide @ weights.T).all()
    rows = rng.integers(0, 50, 20)
    residuals = rng.integers(-(2**16), 2**16 + 1, (20, 3))
    assert (_rows.sums(features, rows, residuals) == residuals.T @ wide[rows]).all()


def test_the_largest_products_do_not_wrap():
    features = np.full((4, 1), -(2**14), np.int16)
    residuals = np.full((4, 1), 2**16)
    assert _rows.sums(features, np.arange(4), residuals).tolist() == [[-(2**32)]]
