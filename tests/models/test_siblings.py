"""What is believed of tables of siblings is what made them, on either side of who has a sibling."""

import numpy as np
import pytest

from understudy.models.blocks import blocks_of
from understudy.models.measured import Measured
from understudy.models.siblings import believed

ROWS, SIGMA, VALUES = 100_000.0, 300.0, 12


def table(alike, alone, rng):
    """(counts of a child's column and its sibling's, those expected of independent columns).

    `alike` is the deviation of the logarithm of every cell of two siblings, `alone` of who has none.
    """
    own, other = rng.dirichlet(np.full(VALUES, 5.0)), rng.dirichlet(np.full(VALUES, 5.0))
    lonely = 0.7 * np.exp(alone * rng.standard_normal(VALUES))
    joint = np.multiply.outer(own, other) * np.exp(alike * rng.standard_normal((VALUES, VALUES)))
    counts = np.column_stack([0.3 * joint, own * lonely])
    counts *= ROWS / counts.sum()
    return counts, np.multiply.outer(counts.sum(axis=1), counts.sum(axis=0)) / ROWS


def beyond_columns(residual):
    for axis in (0, 1):
        residual = residual - residual.mean(axis=axis, keepdims=True)
    return residual


@pytest.mark.parametrize("key", range(5))
def test_who_has_a_sibling_says_nothing_of_what_siblings_share(key):
    rng = np.random.default_rng(key)
    counts, base = table(0.0, 0.5, rng)
    noise = np.full(base.size, SIGMA**2)
    residual = beyond_columns(counts + rng.normal(0, SIGMA, base.shape) - base)
    kappa = believed(residual, base, noise).reshape(base.shape)
    unit = SIGMA**2 / base[:, :-1].mean()
    assert len({*kappa[:, :-1].reshape(-1)}) == len({*kappa[:, -1]}) == 1
    assert kappa[0, 0] < 0.5 * unit  # noise is not believed
    assert kappa[0, -1] > 2 * kappa[0, 0]


@pytest.mark.parametrize("key", range(5))
def test_what_siblings_share_is_believed(key):
    rng = np.random.default_rng(key)
    counts, base = table(1.5, 0.0, rng)
    noise = np.full(base.size, SIGMA**2)
    residual = beyond_columns(counts + rng.normal(0, SIGMA, base.shape) - base)
    kappa = believed(residual, base, noise).reshape(base.shape)
    variance = ((counts - base)[:, :-1] ** 2).sum() / base[:, :-1].sum()
    assert variance / 4 < kappa[0, 0] < 4 * variance


def test_the_fit_uses_it_for_columns_of_siblings_alone():
    rng = np.random.default_rng(3)
    counts, _ = table(0.0, 0.5, rng)
    measured = [Measured((0, 1), np.rint(counts + rng.normal(0, SIGMA, counts.shape)), SIGMA)]
    columns = counts.sum(axis=1), counts.sum(axis=0)
    own, joined = (
        blocks_of(counts.shape, measured, columns, ROWS, absent=absent)[0][0]
        for absent in ((), (1,))
    )
    inner = np.arange(counts.size).reshape(counts.shape)[:, :-1]
    assert (joined.y == own.y).all()
    assert (joined.ratio[inner] > 2 * own.ratio[inner]).all()
    both = blocks_of(counts.shape, measured, columns, ROWS, absent=(0, 1))[0][0]
    assert (both.ratio == own.ratio).all()
