"""Checkpoints judged by a task or by clusters: what is fitted on made-up rows, and its bounds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from understudy.players.data.checkpoints import Clusters, by_clusters, k_means, least_squares


def test_the_built_in_estimator_learns():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(500, 4))
    target = np.where(features[:, 0] + 0.1 * rng.normal(size=500) > 0, 3, 1)
    found = least_squares().fit(features, target).predict(features)
    assert (found == target).mean() > 0.95


def test_centres_are_found():
    rng = np.random.default_rng(1)
    true = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    rows = true[rng.integers(3, size=600)] + 0.02 * rng.normal(size=(600, 2))
    found = k_means(rows, 3)
    assert np.abs(found[:, None] - true).max(axis=2).min(axis=0).max() < 0.01
    assert k_means(rows[:1], 4).shape == (4, 2)  # fewer rows than centres


SMALL = Clusters((3, 4, 3), (False, True, True), (0, 0, 1), centres=2)


def test_no_two_rows_are_further_apart_than_the_columns():
    """diam² = d, over all pairs of rows; a column attains 1."""
    tables = SMALL.tables
    rows = np.array([
        np.concatenate([t[c] for t, c in zip(tables, codes, strict=True)])
        for codes in product(*map(range, SMALL.shape))
    ])  # fmt: skip
    away = ((rows[:, None] - rows) ** 2).sum(axis=2)
    assert away.max() == pytest.approx(3)
    for table in tables:
        assert ((table[:, None] - table) ** 2).sum(axis=2).max() == pytest.approx(1)


def test_costs_are_squared_distances_to_the_nearest_centre():
    rng = np.random.default_rng(2)
    made = [[rng.integers(n, size=300) for n in SMALL.shape] for _ in range(2)]
    found = by_clusters(SMALL, made)
    assert 0 < found.sensitivity <= 3
    for codes, costs in zip(made, found.costs, strict=True):
        rows = np.concatenate([t[c] for t, c in zip(SMALL.tables, codes, strict=True)], axis=1)
        centres = k_means(rows, 2)
        wanted = ((rows[:, None] - centres) ** 2).sum(axis=2).min(axis=1)
        given = sum(table[c] for table, c in zip(costs, codes, strict=True)).min(axis=1)
        assert given == pytest.approx(wanted)
        assert (given <= found.sensitivity).mean() >= 0.985
