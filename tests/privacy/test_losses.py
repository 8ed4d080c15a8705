"""Losses against finite differences, and rows that stand alone."""

from __future__ import annotations

import numpy as np
import pytest
from bench.twins import SMOOTH, values

from understudy.privacy.losses import Logistic, Softmax, Squared

LOSSES = [Squared(2.0), Logistic(), Softmax(3)]


def targets_of(loss, rng, n):
    if isinstance(loss, Squared):
        return rng.uniform(-1, 1, n)
    return rng.integers(loss.outputs + 1, size=n).astype(float)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_residuals_are_the_derivative(loss):
    rng = np.random.default_rng(0)
    z, y, h = rng.normal(0, 2, (50, loss.outputs)), targets_of(loss, rng, 50), 1e-6
    for k in range(loss.outputs):
        moved = np.zeros(loss.outputs)
        moved[k] = h
        slope = (values(loss, z + moved, y) - values(loss, z - moved, y)) / (2 * h)
        np.testing.assert_allclose(loss.residuals(z, y)[:, k], slope, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_no_residual_passes_the_bound_and_some_reach_it(loss):
    rng = np.random.default_rng(1)
    z, y = rng.normal(0, 30, (5000, loss.outputs)), targets_of(loss, rng, 5000)
    largest = np.abs(loss.residuals(z, y)).max()
    assert 0.99 * loss.bound < largest <= loss.bound


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_curvature_stays_below_its_bound(loss):
    rng = np.random.default_rng(2)
    z, y, h = rng.normal(0, 2, (2000, loss.outputs)), targets_of(loss, rng, 2000), 1e-4
    step = rng.normal(size=z.shape)
    step /= np.linalg.norm(step, axis=1, keepdims=True)
    change = (loss.residuals(z + h * step, y) - loss.residuals(z - h * step, y)) / (2 * h)
    assert (change * step).sum(axis=1).max() <= SMOOTH[type(loss)] + 1e-6


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_rows_residual_does_not_depend_on_other_rows(loss):
    """To the last bit, whatever the number of rows: the sensitivity rests on it."""
    rng = np.random.default_rng(3)
    z, y = rng.normal(0, 3, (257, loss.outputs)), targets_of(loss, rng, 257)
    whole = loss.residuals(z, y)
    for size in (1, 2, 3, 5, 8, 17, 64, 200):
        for start in (0, 1, 7, 50):
            part = slice(start, start + size)
            assert np.array_equal(loss.residuals(z[part].copy(), y[part].copy()), whole[part])
