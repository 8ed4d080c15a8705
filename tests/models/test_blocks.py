"""Blocks: no cell beyond what its row and column allow, nothing learnt from noise alone."""

import numpy as np
import pytest

from understudy.models import Measured
from understudy.models.blocks import Block, blocks_of, column_blocks

ROWS = 1_000.0
COLUMNS = (np.array([900.0, 90.0, 10.0]), np.array([500.0, 480.0, 20.0]))
INDEPENDENT = np.multiply.outer(*COLUMNS) / ROWS


def block(values, sigma):
    measured = [Measured((0, 1), values, sigma)]
    (first, *_), gains = blocks_of((3, 3), measured, COLUMNS, ROWS)
    return first, gains[(0, 1)]


def test_a_cell_that_stands_out_holds_no_more_than_its_row_and_column():
    """Noise of 300 at the corner (10 and 20 rows): 2,000 rows there can only be 10."""
    values = INDEPENDENT.copy()
    values[2, 2] += 4_500.0
    seen, _ = block(values, 300.0)
    assert seen.shows
    assert seen.y.reshape(3, 3)[2, 2] <= min(COLUMNS[0][2], COLUMNS[1][2]) + 1e-9
    assert (seen.y.reshape(3, 3).sum(axis=1) < 3 * ROWS).all()


def test_cells_within_noise_are_left_as_they_are():
    rng = np.random.default_rng(0)
    values = INDEPENDENT + rng.normal(0, 5.0, (3, 3))
    seen, _ = block(values, 5.0)
    residual = values - INDEPENDENT
    for axis in (0, 1):
        residual = residual - residual.mean(axis=axis, keepdims=True)
    np.testing.assert_allclose(seen.y.reshape(3, 3), INDEPENDENT + residual, atol=1e-9)


def test_a_cell_that_stands_out_does_not_make_its_neighbours_believed():
    """Every value goes with two of the other column, noise is 2: e is small for those alone."""
    size, sigma = 20, 2.0
    held = np.eye(size, dtype=bool) | np.roll(np.eye(size, dtype=bool), 1, axis=1)
    values = 25.0 * held + np.random.default_rng(1).normal(0, sigma, (size, size))
    columns = (np.full(size, 50.0),) * 2
    (seen, *_), _ = blocks_of((size, size), [Measured((0, 1), values, sigma)], columns, ROWS)
    ratio = seen.ratio.reshape(size, size)
    assert seen.shows
    assert 20 * ratio[held].max() < ratio[~held].min()


def test_independent_columns_show_nothing_and_dependent_ones_do():
    assert not block(INDEPENDENT, 5.0)[0].shows
    tied = INDEPENDENT + 80 * np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    seen, gain = block(tied, 5.0)
    assert seen.shows
    assert gain > 0


@pytest.mark.parametrize("part", [1.0, 0.3])
def test_a_part_of_a_step_goes_that_part_of_the_way(part):
    tied = INDEPENDENT + 80 * np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    whole, some = block(tied, 1.0)[0], block(tied, 1.0)[0]
    factors = whole.refine(INDEPENDENT.reshape(-1).copy(), ROWS)
    found = some.refine(INDEPENDENT.reshape(-1).copy(), ROWS, part)
    np.testing.assert_allclose(found, factors**part, rtol=1e-9)
    np.testing.assert_allclose(some.theta, part * whole.theta, rtol=1e-9)


def test_an_empty_cell_goes_along_with_its_row_and_column():
    tied = INDEPENDENT + 80 * np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    seen = block(tied, 1.0)[0]
    current = INDEPENDENT.reshape(-1).copy()
    current[8] = 0.0
    seen.refine(current, ROWS, 0.5)
    theta = seen.theta.reshape(3, 3)
    there = np.ones((3, 3), bool)
    there[2, 2] = False
    expected = theta[2, :2].mean() + theta[:2, 2].mean() - theta[there].mean()
    assert theta[2, 2] == pytest.approx(expected)


def test_strides_and_whole_agree_with_the_cells_of_a_merged_table():
    labels = (np.array([0, 0, 1]), np.array([1, 0, 1]))
    merged = Block((0, 1), labels, np.zeros(4), np.ones(4), np.ones(4), None)
    merged.theta = np.arange(4.0)
    along, across = merged.strides((3, 3))
    cells = along[:, None] + across[None, :]
    np.testing.assert_array_equal(merged.whole((3, 3)), merged.theta[cells])


def test_columns_are_held_exactly():
    for own, estimate in zip(column_blocks(COLUMNS, [1.0] * len(COLUMNS)), COLUMNS, strict=True):
        factors = own.refine(np.full(3, ROWS / 3), ROWS)
        np.testing.assert_allclose(factors * ROWS / 3, estimate, rtol=1e-6)


def test_a_table_of_three_columns_keeps_the_dependence_of_its_pairs():
    """Two equal coins and a third beside them: the block asks for the table, not for three coins."""
    table = np.zeros((2, 2, 2))
    table[0, 0], table[1, 1] = 250.0, 250.0
    coins = (np.full(2, 500.0),) * 3
    (seen,), _ = blocks_of((2, 2, 2), [Measured((0, 1, 2), table, 5.0)], coins, ROWS)
    np.testing.assert_allclose(seen.y.reshape(2, 2, 2), table, atol=1e-9)
