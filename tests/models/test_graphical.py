"""Maximum entropy by closed forms."""

import numpy as np
import pytest

from understudy.models import Measured
from understudy.models.graphical import _calibrated, fit

SHAPE = (2, 3, 2)
TREE = ((0, 1), (1, 2))


def joint_counts(key=0, rows=2_000):
    rng = np.random.default_rng(key)
    return rng.multinomial(rows, rng.dirichlet(np.ones(12))).reshape(SHAPE)


def marginal(joint, clique):
    return joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in clique))


@pytest.fixture(scope="module")
def fitted():
    joint = joint_counts()
    measured = [Measured(c, marginal(joint, c), 1.0) for c in TREE]
    return joint, fit(SHAPE, measured, joint.sum())[0]


def test_exact_measurements_on_a_tree_give_edges_over_nodes(fitted):
    joint, model = fitted
    p = joint / joint.sum()
    expected = (
        marginal(p, (0, 1))[:, :, None]
        * marginal(p, (1, 2))[None]
        / marginal(p, (1,))[None, :, None]
    )
    np.testing.assert_allclose(model.marginal((0, 1, 2)), expected, atol=1e-4)


def test_it_is_what_iterative_proportional_fitting_finds(fitted):
    joint, model = fitted
    p, q = joint / joint.sum(), np.full(SHAPE, 1 / 12)
    for _ in range(50):
        for clique in TREE:
            ratio = marginal(p, clique) / marginal(q, clique)
            q = q * (ratio[:, :, None] if clique == (0, 1) else ratio[None])
    np.testing.assert_allclose(model.marginal((0, 1, 2)), q, atol=1e-4)


def test_its_tables_agree_and_it_repeats(fitted):
    joint, model = fitted
    np.testing.assert_allclose(
        model.marginal((0, 1)).sum(axis=0), model.marginal((1, 2)).sum(axis=1), atol=1e-9
    )
    measured = [Measured(c, marginal(joint, c), 1.0) for c in TREE]
    again = fit(SHAPE, measured, joint.sum())[0]
    for one, other in zip(model.tables, again.tables, strict=True):
        np.testing.assert_array_equal(one, other)


def test_precise_measurements_weigh_more(fitted):
    """Two answers to one table, 1/σ² each: the fit lies at their weighted mean."""
    good, bad = np.array([[600, 0, 400], [500, 300, 200]]), np.array([[400, 200, 400]] * 2)
    pairs = np.array([[700, 400], [200, 100], [300, 300]])
    measured = [
        Measured((0, 1), good, 1.0),
        Measured((0, 1), bad, 3.0),
        Measured((1, 2), pairs, 9e9),
    ]
    model, _ = fit(SHAPE, measured, 2000)
    expected = (good + bad / 9) / (1 + 1 / 9) / 2000
    np.testing.assert_allclose(model.marginal((0, 1)), expected, atol=2e-3)


def test_unmeasured_columns_are_uniform_and_independent():
    model, _ = fit((2, 3, 4), [Measured((1,), np.array([1, 2, 1]), 1.0)], 4)
    np.testing.assert_allclose(model.marginal((0, 2)), np.full((2, 4), 1 / 8), atol=1e-9)
    np.testing.assert_allclose(model.marginal((1,)), [0.25, 0.5, 0.25], atol=1e-4)


@pytest.mark.parametrize("key", range(8))
def test_tables_of_potentials_are_those_of_the_joint(key):
    """Sums towards the root and back, against the whole joint written out; loops included."""
    rng = np.random.default_rng(key)
    shape = tuple(rng.integers(1, 4, size=6).tolist())
    potentials, joint = [], np.zeros(shape)
    for _ in range(7):
        clique = tuple(rng.choice(6, size=rng.integers(1, 4), replace=False).tolist())
        table = 5 * rng.normal(size=tuple(shape[i] for i in clique))
        potentials.append((clique, table))
        ordered = table.transpose(np.argsort(clique))
        joint = joint + ordered.reshape([s if i in clique else 1 for i, s in enumerate(shape)])
    truth = np.exp(joint - joint.max())
    truth /= truth.sum()
    model = _calibrated(shape, potentials)
    for clique, table in zip(model.cliques, model.tables, strict=True):
        np.testing.assert_allclose(table, marginal(truth, clique), atol=1e-12)
    np.testing.assert_allclose(model.marginal(tuple(range(6))), truth, atol=1e-12)


def test_a_fit_may_start_where_the_last_one_ended(fitted):
    joint, model = fitted
    measured = [Measured(c, marginal(joint, c), 1.0) for c in TREE]
    _, potentials = fit(SHAPE, measured, joint.sum())
    again, _ = fit(SHAPE, measured, joint.sum(), iterations=50, start=potentials)
    wider = [*measured, Measured((0, 2), marginal(joint, (0, 2)), 1.0)]
    grown, _ = fit(SHAPE, wider, joint.sum(), start=potentials)
    np.testing.assert_allclose(again.marginal((0, 1)), model.marginal((0, 1)), atol=1e-4)
    p = joint / joint.sum()
    np.testing.assert_allclose(grown.marginal((0, 2)), marginal(p, (0, 2)), atol=1e-3)
