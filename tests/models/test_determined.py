"""A pair that is a function is believed as one; what is not, is not."""

import numpy as np
import pytest

from understudy.models import Measured
from understudy.models.blocks import blocks_of
from understudy.models.determined import determined
from understudy.models.measured import merge

VALUES, GROUPS, ROWS, SIGMA = 40, 6, 20_000, 40.0


def pair(kept, key=0):
    """(counts, counts of independent columns, with noise): a code and its group, kept so often."""
    rng = np.random.default_rng(key)
    shares = 1 / np.arange(1, VALUES + 1) ** 0.7
    first = rng.choice(VALUES, ROWS, p=shares / shares.sum())
    group = rng.integers(GROUPS, size=VALUES)
    second = np.where(rng.random(ROWS) < kept, group[first], rng.integers(GROUPS, size=ROWS))
    table = np.zeros((VALUES, GROUPS))
    np.add.at(table, (first, second), 1)
    base = np.multiply.outer(table.sum(axis=1), table.sum(axis=0)) / ROWS
    return table, base, table + rng.normal(0, SIGMA, table.shape)


def off(one, other):
    return np.abs(one - other).sum() / 2 / ROWS


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kept", [1.0, 0.97])
def test_a_function_is_found_in_either_direction(kept, turned):
    table, base, noisy = (each.T if turned else each for each in pair(kept))
    found = determined(noisy, base, SIGMA)
    assert found is not None
    assert off(found, table) < 0.03 < off(noisy, table)
    np.testing.assert_allclose(found.sum(axis=1), base.sum(axis=1), rtol=1e-2, atol=1)
    np.testing.assert_allclose(found.sum(axis=0), base.sum(axis=0), rtol=1e-2, atol=1)


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.6])
def test_no_function_is_invented(kept):
    for key in range(5):
        _, base, noisy = pair(kept, key)
        assert determined(noisy, base, SIGMA) is None


def test_where_noise_hides_the_table_nothing_is_believed():
    for key in range(5):
        table, base, _ = pair(1.0, key)
        rng = np.random.default_rng(key)
        assert determined(table + rng.normal(0, 20_000.0, table.shape), base, 20_000.0) is None


def test_the_fit_takes_the_function_for_what_it_saw():
    table, base, noisy = pair(1.0)
    columns = (base.sum(axis=1), base.sum(axis=0))
    measured = [Measured((0, 1), noisy, SIGMA)]
    (block, *_), gains = blocks_of((VALUES, GROUPS), measured, columns, ROWS)
    assert off(block.y.reshape(table.shape), table) < 0.03
    assert gains[0, 1] > 1.0  # of ln 6 = 1.8 nats


def test_a_function_that_a_merged_view_contradicts_is_not_believed():
    table, base, noisy = pair(1.0)
    columns = (base.sum(axis=1), base.sum(axis=0))
    labels = np.arange(VALUES) // 10, np.arange(GROUPS) // 2
    seen = merge(table, labels)
    moved = np.zeros_like(seen)
    moved[:2, :2] = [[500.0, -500.0], [-500.0, 500.0]]  # a hundred times the noise of this view
    for other, believed in ((seen, True), (seen + moved, False)):
        measured = [Measured((0, 1), noisy, SIGMA), Measured((0, 1), other, 5.0, labels)]
        block = blocks_of((VALUES, GROUPS), measured, columns, ROWS)[0][0]
        assert (off(block.y.reshape(table.shape), table) < 0.03) == believed
