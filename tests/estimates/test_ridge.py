"""Least squares over overlapping tables, against the normal equations written out."""

from dataclasses import replace

import numpy as np
import pytest

from understudy.estimates.ridge import Feature, Ridge

SIZES = (4, 3, 5)
TABLES = ((0, 1), (1, 2), (0,), (0, 1, 2), (3,))
PENALTIES = (1e-4, 2e-3, 1e-3, 1e-2, 0.0)


def made(points=400):
    rng = np.random.default_rng(1)
    features = [Feature(rng.integers(0, size, points), size) for size in SIZES]
    ones = Feature(np.zeros(points, np.int64), 1)
    return Ridge((*features, ones), TABLES, PENALTIES, rng.dirichlet(np.ones(points)))


def written_out(ridge):
    """A, dense."""
    columns = []
    for table in ridge.tables:
        sizes = [ridge.features[f].size for f in table]
        cells = np.ravel_multi_index([ridge.features[f].values for f in table], sizes)
        columns.append(np.eye(int(np.prod(sizes)))[cells])
    return np.concatenate(columns, axis=1)


def objective(ridge, x, target):
    left = target - written_out(ridge) @ x
    return ridge.penalty @ x**2 + ridge.weights @ left**2


def test_the_matrix_has_a_one_in_every_table():
    ridge = made(50)
    x = np.random.default_rng(5).normal(size=(92, 2))
    assert ridge.matrix.told(x) == pytest.approx(written_out(ridge) @ x)
    assert ridge.matrix.summed(x[:50, 0]) == pytest.approx(x[:50, 0] @ written_out(ridge))
    assert ridge.penalty.tolist() == np.repeat(PENALTIES, [12, 15, 4, 60, 1]).tolist()


@pytest.mark.parametrize("near", [1e-2, 1e-5])
@pytest.mark.parametrize("whole", [True, False])
def test_it_comes_as_near_as_asked(near, whole, monkeypatch):
    """`near` bounds the excess by the preconditioner's norm: within a factor of ten of the true one.

    Solved for directly, or with a direct part of 30 of the 92 cells.
    """
    if not whole:
        monkeypatch.setattr("understudy.estimates.ridge._WHOLE", 50)
        monkeypatch.setattr("understudy.estimates.ridge._PART", 30)
        monkeypatch.setattr("understudy.estimates.ridge._STEPS", 24)
    ridge = made()
    target = np.random.default_rng(2).normal(size=(400, 3))
    a = written_out(ridge)
    whole = np.diag(ridge.penalty) + (a.T * ridge.weights) @ a
    best = np.linalg.lstsq(whole, a.T @ (ridge.weights[:, None] * target), rcond=None)[0]
    excess = objective(ridge, ridge.solved(target, np.full(3, near)), target) - objective(
        ridge, best, target
    )
    assert np.all(excess >= -1e-12)
    assert np.all(excess <= 10 * near**2)


def test_from_the_solution_nothing_moves():
    ridge = made()
    target = np.random.default_rng(3).normal(size=(400, 2))
    found = ridge.solved(target, np.full(2, 1e-6))
    assert np.array_equal(ridge.solved(target, np.full(2, 1e-4), found), found)


@pytest.mark.parametrize("part", [30, 92])
def test_of_many_points_every_so_many_stand_for_all(part, monkeypatch):
    """The same x as of these alone, at their weights times the step; the matrix has all points."""
    monkeypatch.setattr("understudy.estimates.ridge._WHOLE", part)
    monkeypatch.setattr("understudy.estimates.ridge._PART", 30)
    ridge = made()
    target = np.random.default_rng(2).normal(size=(400, 3))
    some = replace(ridge, every=3)
    features = tuple(Feature(each.values[::3], each.size) for each in ridge.features)
    alone = replace(ridge, features=features, every_weight=3 * ridge.every_weight[::3])
    near = np.full(3, 1e-3)
    assert some.solved(target, near) == pytest.approx(alone.solved(target[::3], near), abs=1e-6)
    assert some.solved(target, near) != pytest.approx(ridge.solved(target, near), abs=1e-2)
    assert some.matrix.cells.shape == (400, 5)
    assert some.matrix.size == 92
