"""Codes, their features and the heads that make them, by kind of column."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.nets.coding import Coding


def test_codes_come_back_from_their_features():
    """Every code of every kind: features are distinct, and what heads draw is legal."""
    shape, kinds = (5, 2, 12, 40, 9), ("choice", "choice", "bits", "real", "bits")
    nullable = (True, False, True, True, False)
    coding = Coding(shape, kinds, nullable)
    shares = [np.random.default_rng(i).dirichlet(np.ones(s)) for i, s in enumerate(shape)]
    tables = coding.tables(shares)
    for column, table in enumerate(tables):
        assert len({row.tobytes() for row in table}) == shape[column]
        assert np.abs(table).max() <= 1
    assert sum(t.shape[1] for t in tables) == coding.width == 5 + 1 + (4 + 1) + (1 + 1) + 4
    rng = np.random.default_rng(0)
    drawn = [
        rng.uniform(-1, 1, 500) if size == 1 else rng.integers(size, size=500).astype(float)
        for size in coding.heads
    ]
    for column, codes in enumerate(coding.codes(np.stack(drawn, axis=1), shares)):
        assert codes.min() >= 0
        assert codes.max() < shape[column]
    # Bits beyond the last value are the last value; a null bit is null.
    whole = coding.codes(np.ones((1, len(coding.heads))), shares)
    assert whole[2][0] == 11
    assert whole[4][0] == 8


def test_a_column_of_one_value_has_that_value():
    coding = Coding((1, 3), ("choice", "choice"), (False, False))
    drawn = np.array([[1.0, 2.0], [-1.0, 0.0], [0.3, 1.0]])
    assert [c.tolist() for c in coding.codes(drawn)] == [[0, 0, 0], [2, 0, 1]]


def test_real_values_are_placed_by_rank_and_come_back():
    coding = Coding((10,), ("real",), (False,))
    shares = [np.array([0.5, 0.2, 0.1] + [0.2 / 7] * 7)]
    (table,) = coding.tables(shares)
    assert (np.diff(table[:, 0]) > 0).all()
    assert coding.codes(table, shares)[0].tolist() == list(range(10))
    assert coding.codes(np.array([[-1.0], [1.0]]), shares)[0].tolist() == [0, 9]


def test_heads_start_at_the_released_shares():

    coding = Coding((4, 2, 6), ("choice", "choice", "bits"), (False, False, False))
    shares = [np.array([0.7, 0.1, 0.1, 0.1]), np.array([0.9, 0.1]), np.full(6, 1 / 6)]
    biases = np.tile(coding.start(shares), (20_000, 1))
    codes = coding.codes(coding.drawn(biases, jax.random.key(0)), shares)
    assert np.bincount(codes[0], minlength=4) / 20_000 == pytest.approx(shares[0], abs=0.03)
    assert (codes[1] == 1).mean() == pytest.approx(0.1, abs=0.03)


def test_soft_rows_are_one_hot_forward_and_differentiable_backward():

    coding = Coding((3, 2, 8), ("choice", "choice", "real"), (False, False, False))
    logits = jnp.asarray(np.random.default_rng(0).normal(size=(50, sum(coding.heads))))

    @jax.jit
    def shown(z):
        return coding.seen(coding.relaxed(z, jax.random.key(1), 0.5))

    seen = np.asarray(shown(logits))
    assert seen.shape == (50, coding.width)
    assert np.allclose(seen[:, :3].sum(axis=1), 1)
    assert np.allclose(np.round(seen[:, :4]), seen[:, :4], atol=1e-5)
    slope = jax.jit(jax.grad(lambda z: shown(z)[:, 0].sum()))
    assert float(np.abs(slope(logits)).sum()) > 0
