"""The projection onto the simplex by its optimality conditions; maximum entropy by closed forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.models import Measured, simplex
from understudy.models.graphical import _calibrated, _running_intersection, fit, maximum_entropy

# --- the simplex --------------------------------------------------------------------------------

tables = st.lists(st.integers(-1000, 1000), min_size=1, max_size=12).map(
    lambda v: np.array(v, dtype=np.int64)
)


@given(tables, st.integers(1, 2000))
@settings(max_examples=300, deadline=None)
def test_projection_meets_the_optimality_conditions(values, total):
    """min ‖x − v‖² over x ≥ 0, Σx = total: x = max(v − τ, 0) for one τ, and only then."""
    x = simplex(values, total) * total
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(total, rel=1e-12)
    positive = x > 1e-9
    tau = (values - x)[positive]
    np.testing.assert_allclose(tau, tau[0], atol=1e-7)
    assert (values[~positive] <= tau[0] + 1e-7).all()


@given(tables, st.integers(1, 500), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_no_other_point_of_the_simplex_is_nearer(values, total, random):
    best = ((simplex(values, total) * total - values) ** 2).sum()
    for _ in range(20):
        weights = np.array([random.random() + 1e-9 for _ in values])
        other = total * weights / weights.sum()
        assert best <= ((other - values) ** 2).sum() + 1e-6


def test_a_table_that_is_one_already_stays():
    exact = np.array([[3, 0], [5, 2]])
    np.testing.assert_allclose(simplex(exact, 10), exact / 10)


@pytest.mark.parametrize("total", [0, -5, 0.2])
def test_totals_below_one_row_count_as_one(total):
    np.testing.assert_allclose(simplex(np.array([-7, -9]), total), [1.0, 0.0])


def test_huge_and_single_values():
    assert simplex(np.array([-(10**15)]), 3) == pytest.approx([1.0])
    far = simplex(np.array([10**15, -(10**15), 10**15]), 10)
    np.testing.assert_allclose(far, [0.5, 0.0, 0.5], atol=1e-6)


# --- maximum entropy ----------------------------------------------------------------------------

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
    return joint, maximum_entropy(SHAPE, measured, joint.sum())


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
    again = maximum_entropy(SHAPE, measured, joint.sum())
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
    model = maximum_entropy(SHAPE, measured, 2000)
    expected = (good + bad / 9) / (1 + 1 / 9) / 2000
    np.testing.assert_allclose(model.marginal((0, 1)), expected, atol=2e-3)


def test_unmeasured_columns_are_uniform_and_independent():
    model = maximum_entropy((2, 3, 4), [Measured((1,), np.array([1, 2, 1]), 1.0)], 4)
    np.testing.assert_allclose(model.marginal((0, 2)), np.full((2, 4), 1 / 8), atol=1e-9)
    np.testing.assert_allclose(model.marginal((1,)), [0.25, 0.5, 0.25], atol=1e-4)


@pytest.mark.parametrize(
    "cliques",
    [
        [(1, 2), (3, 4), (2, 3), (0, 1)],
        [(0, 4), (1, 4), (2, 4), (3, 4)],
        [(0, 1), (3, 4), (2,)],
        [(0, 1, 2), (3, 4), (2, 3)],
        [(1, 2, 3), (2, 3, 4), (0, 1), (0, 5)],
    ],
)
def test_cliques_are_put_into_running_intersection(cliques):
    ordered = _running_intersection(list(cliques))
    assert sorted(ordered) == sorted(cliques)
    for position, clique in enumerate(ordered):
        shared = set(clique) & {i for before in ordered[:position] for i in before}
        assert not shared or any(shared <= set(before) for before in ordered[:position])


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
