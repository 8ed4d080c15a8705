"""Factors that are linear between runs: against a normal copula, and where runs are single values."""

import numpy as np
import pytest

from understudy.models.blocks import Block, blocks_of
from understudy.models.measured import Measured, merge
from understudy.models.smooth import Smooth, between, smooth
from understudy.players.query.survey import adjacent

ROWS = 20_000.0


def copula(correlation, cells=12):
    """Counts of two columns of equal cells, by a normal copula."""
    rng = np.random.default_rng(0)
    normal = rng.multivariate_normal((0, 0), [[1, correlation], [correlation, 1]], size=400_000)
    ranks = normal.argsort(axis=0).argsort(axis=0) * cells // len(normal)
    table = np.zeros((cells, cells))
    np.add.at(table, (ranks[:, 0], ranks[:, 1]), ROWS / len(normal))
    return table


def fitted(block, table):
    """The table of a model of one pair, after some sweeps from independence."""
    now = np.outer(table.sum(axis=1), table.sum(axis=0)) / ROWS
    for _ in range(12):
        strides = block.labels
        if strides is None:
            now = now * block.refine(now.reshape(-1), ROWS).reshape(now.shape)
        else:
            sums = merge(now, strides).reshape(-1)
            factors = block.refine(sums, ROWS).reshape([int(s.max()) + 1 for s in strides])
            now = now * factors[np.ix_(*strides)]
        for axis in (0, 1):
            wanted, has = (t.sum(axis=1 - axis, keepdims=True) for t in (table, now))
            now = now * (wanted / has)
    return now


def in_runs(table, labels):
    """The block of the table measured in runs, nearly without noise."""
    estimates = (table.sum(axis=1), table.sum(axis=0))
    measured = [Measured((0, 1), merge(table, labels), 1.0, labels)]
    (block,), _ = blocks_of(table.shape, measured, estimates, ROWS)
    return block, estimates


@pytest.mark.parametrize("correlation", [-0.8, 0.5, 0.9])
def test_inside_runs_a_normal_copula_is_met_better(correlation):
    table = copula(correlation)
    labels = (adjacent(table.sum(axis=1), 4), adjacent(table.sum(axis=0), 4))
    block, estimates = in_runs(table, labels)
    even = np.abs(fitted(block, table) - table).sum()
    block, _ = in_runs(table, labels)
    made = smooth(block, estimates, (12, 12))
    assert isinstance(made, Smooth)
    model = fitted(made, table)
    assert np.abs(model - table).sum() < even / 2.5
    sums = np.abs(merge(model, labels) - merge(table, labels)).sum()
    assert sums < 0.01 * ROWS


def test_runs_of_one_value_change_nothing():
    table = copula(0.7, 5)
    labels = (np.arange(5), np.arange(5))
    block, estimates = in_runs(table, labels)
    other, _ = in_runs(table, labels)
    model = fitted(smooth(other, estimates, (5, 5)), table)
    assert model == pytest.approx(fitted(block, table), rel=1e-3)


def test_every_value_follows_the_runs_beside_it():
    labels = np.array([0, 0, 0, 1, 1, 2, 2, 2, 3])  # the last value, a null, is by itself
    estimate = np.array([1.0, 4, 2, 3, 3, 2, 4, 1, 5])
    shares = between(labels, estimate, 8)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert shares[8].tolist() == [0, 0, 0, 1]
    assert not shares[:8, 3].any()
    assert np.all(np.diff(shares[:8] @ np.arange(4.0)) > 0)  # in order
    assert shares.min() >= -1
    assert shares.max() <= 2
    mirrored = between(labels, np.append(estimate[7::-1], 5), 8)
    assert shares[:8, :3] == pytest.approx(mirrored[7::-1, 2::-1])


def test_what_is_not_in_runs_stays_as_it_is():
    table = copula(0.5, 4)
    for labels in (np.array([2, 0, 1, 2]), np.array([0, 1, 2, 2])):
        block, estimates = in_runs(table, (labels, labels))
        ordered = 4 if labels[0] else 3  # the second takes a value beside the order with another
        assert smooth(block, estimates, (ordered, ordered)) is block
    whole = Block((0, 1), None, np.ones(16), np.ones(16), np.ones(16), None)
    assert smooth(whole, (np.ones(4), np.ones(4)), (4, 4)) is whole
