"""Moves: weights stay nearly equal, the model's law is reached, rules and reach are kept."""

from itertools import combinations

import numpy as np
import pytest
from tests.thorough import slow

from understudy.models import Measured
from understudy.models.blocks import blocks_of, column_blocks
from understudy.models.fitting import Effort, fit
from understudy.models.margins import one_ways
from understudy.models.moves import Cloud, spread

ROWS = 20_000


def people(columns=8, size=12):
    """Columns that all follow one hidden number closely: independent records are far from them."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=ROWS)
    shape = (size,) * columns
    cuts = np.linspace(-1.8, 1.8, size - 1)
    return [np.searchsorted(cuts, hidden + 0.3 * rng.normal(size=ROWS)) for _ in shape], shape


def tables_of(codes, shape, sigma=30.0):
    rng, cliques = np.random.default_rng(1), []
    cliques += [(i,) for i in range(len(shape))]
    cliques += list(combinations(range(len(shape)), 2))
    out = []
    for clique in cliques:
        table = np.zeros(tuple(shape[i] for i in clique))
        np.add.at(table, tuple(codes[i] for i in clique), 1)
        out.append(Measured(clique, np.rint(table + rng.normal(0, sigma, table.shape)), sigma))
    return out


def parts(codes, shape):
    measured = tables_of(codes, shape)
    estimates, deviations = one_ways(shape, measured, ROWS)
    blocks = [block for block in blocks_of(shape, measured, estimates, ROWS)[0] if block.shows]
    return blocks, column_blocks(estimates, deviations)


def independent_cloud(columns, shape, size=20_000):
    rng = np.random.default_rng(2)
    return Cloud(
        [rng.choice(s, size, p=b.y / b.y.sum()) for s, b in zip(shape, columns, strict=True)],
        shape,
        ROWS,
    )


def far(cloud, blocks):
    """Mean total variation between the records and what the blocks were told."""
    return np.mean([np.abs(table - b.y).sum() / 2 / ROWS for b, table in cloud.tables(blocks)])


def test_records_far_from_the_model_are_moved_to_it_where_weights_collapse():
    codes, shape = people(6)
    blocks, columns = parts(codes, shape)
    weighed = independent_cloud(columns, shape)
    for _ in range(6):
        weighed.refine([*blocks, *columns])
    assert weighed.effective < 0.1 * weighed.size
    blocks, columns = parts(codes, shape)
    moved = independent_cloud(columns, shape)
    reach = {b.clique: np.ones([shape[i] for i in b.clique], bool) for b in blocks}
    spread(moved, blocks, columns, reach, np.random.default_rng(3), rounds=12)
    assert moved.effective > 0.5 * moved.size
    assert far(moved, blocks) < 0.12
    for block, table in moved.tables(columns):
        np.testing.assert_allclose(table, block.y, atol=0.02 * ROWS)


def test_what_is_out_of_reach_stays_empty():
    codes, shape = people(4)
    blocks, columns = parts(codes, shape)
    cloud = independent_cloud(columns, shape)
    keep = (cloud.codes[0] < 6) == (cloud.codes[1] < 6)
    cloud.codes = np.ascontiguousarray(cloud.codes[:, keep])
    cloud.weights = np.full(cloud.size, ROWS / cloud.size)
    low = np.arange(12) < 6
    reach = {(0, 1): low[:, None] == low[None, :]}
    spread(cloud, blocks, columns, reach, np.random.default_rng(3), rounds=3)
    assert ((cloud.codes[0] < 6) == (cloud.codes[1] < 6)).all()


def test_no_record_is_moved_to_what_rules_forbid():
    codes, shape = people(4)
    blocks, columns = parts(codes, shape)

    def project(found):
        found = [column.copy() for column in found]
        found[1] = np.where(found[0] == 0, 0, found[1]).astype(found[1].dtype)
        return found

    cloud = independent_cloud(columns, shape)
    cloud.codes = np.stack(project(list(cloud.codes)))
    spread(cloud, blocks, columns, {}, np.random.default_rng(3), project, rounds=3)
    assert (cloud.codes[1][cloud.codes[0] == 0] == 0).all()


@pytest.mark.parametrize("tree_cells", [slow(1), 1_000_000])
def test_a_fit_leaves_half_of_its_records_effective(tree_cells):
    codes, shape = people()
    effort = Effort(20_000, tree_cells)
    fitted = fit(shape, tables_of(codes, shape), ROWS, effort, np.random.default_rng(4))
    weights = fitted.model.weights.astype(float)
    assert weights.sum() ** 2 / (weights**2).sum() > 0.5 * weights.size
    again = fit(shape, tables_of(codes, shape), ROWS, effort, np.random.default_rng(4))
    assert all(
        np.array_equal(a, b) for a, b in zip(fitted.model.codes, again.model.codes, strict=True)
    )
    assert np.array_equal(fitted.model.weights, again.model.weights)


def test_a_table_of_three_columns_is_followed():
    """Parity: no pair shows it, its triple does, and moves must keep it."""
    rng = np.random.default_rng(5)
    a, b, c = rng.integers(2, size=(3, ROWS))
    codes, shape = [a, b, a ^ b, c], (2, 2, 2, 2)
    measured = tables_of(codes, shape, 10.0)
    triple = np.zeros((2, 2, 2))
    np.add.at(triple, tuple(codes[:3]), 1)
    measured.append(Measured((0, 1, 2), triple, 10.0))
    estimates, deviations = one_ways(shape, measured, ROWS)
    blocks = [block for block in blocks_of(shape, measured, estimates, ROWS)[0] if block.shows]
    columns = column_blocks(estimates, deviations)
    cloud = independent_cloud(columns, shape)
    spread(cloud, blocks, columns, {}, np.random.default_rng(6), rounds=12)
    odd = cloud.weights[cloud.codes[0] ^ cloud.codes[1] ^ cloud.codes[2] == 1].sum() / ROWS
    assert odd < 0.03


@pytest.mark.parametrize("known", [0, 1])
def test_of_near_copies_the_column_known_best_is_in_place(known):
    """Two columns that all but 20 of the records agree on, and estimates that do not: passes crawl."""
    first = np.arange(ROWS) % 2
    second = np.where(np.arange(ROWS) < 20, 1 - first, first)
    wanted = [np.array([0.5, 0.5]) * ROWS, np.array([0.45, 0.55]) * ROWS]
    deviations = [100.0, 100.0]
    deviations[known] = 10.0
    cloud, columns = Cloud([first, second], (2, 2), ROWS), column_blocks(wanted, deviations)
    cloud.hold(columns)
    off = [np.abs(table - block.y).max() for block, table in cloud.tables(columns)]
    assert off[known] < 1e-3 * ROWS < off[1 - known]
