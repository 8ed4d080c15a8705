"""Critics: features against brute force, best responses, units that are conjunctions, kernels."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tests.thorough import some

from understudy.nets.critics import (
    Cells,
    Conjunctions,
    Objective,
    Question,
    Units,
    best_response,
    reach,
)
from understudy.nets.generator import one_hot

CUBE = np.array(list(itertools.product((0.0, 1.0), repeat=6)))
SHAPE = (3, 2, 4)
CLIQUES = ((2,), (0, 1), (0, 1, 2), (1, 2))


def drawn(rows, seed=0):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, rows) for size in SHAPE], axis=1)


def shares(codes, clique):
    table = np.zeros(tuple(SHAPE[i] for i in clique))
    for row in codes:
        table[tuple(row[i] for i in clique)] += 1 / len(codes)
    return table


# --- feature maps -------------------------------------------------------------------------------


def test_moments_of_records_are_their_tables():
    cells, codes = Cells(SHAPE, CLIQUES), drawn(40)
    found = cells.tables(cells.moments(one_hot(SHAPE, jnp.asarray(codes))))
    for clique, table in zip(CLIQUES, found, strict=True):
        np.testing.assert_allclose(table, shares(codes, clique), atol=1e-6)
    assert cells.size == 4 + 6 + 24 + 8


def test_moments_of_products_are_exact_expectations():
    rng = np.random.default_rng(0)
    heads = [rng.dirichlet(np.ones(size), 5) for size in SHAPE]
    cells = Cells(SHAPE, ((0, 1, 2),))
    (table,) = cells.tables(cells.moments(jnp.asarray(np.concatenate(heads, axis=1))))
    np.testing.assert_allclose(table, np.einsum("ba,bc,bd->acd", *heads) / 5, atol=1e-6)


def test_vectors_and_tables_are_the_same_thing():
    cells = Cells(SHAPE, CLIQUES)
    tables = [np.random.default_rng(1).random(tuple(SHAPE[i] for i in c)) for c in CLIQUES]
    for table, again in zip(tables, cells.tables(cells.flat(tables)), strict=True):
        np.testing.assert_allclose(again, table, atol=1e-6)
    assert [set(t.ravel()) for t in cells.tables(cells.spread([1, 2, 3, 4]))] == [
        {1},
        {2},
        {3},
        {4},
    ]


def test_scores_are_sums_of_the_cells_a_record_lies_in():
    cells, codes = Cells(SHAPE, CLIQUES), drawn(30)
    theta = np.random.default_rng(2).standard_normal(cells.size)
    tables = cells.tables(theta)
    expected = [
        sum(t[tuple(row[i] for i in c)] for c, t in zip(CLIQUES, tables, strict=True))
        for row in codes
    ]
    rows = one_hot(SHAPE, jnp.asarray(codes))
    found = cells.scores(jnp.asarray(theta, jnp.float32), rows)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_conjunctions_are_products_of_heads():
    rng, shape = np.random.default_rng(0), (2, 3)
    heads = np.concatenate([rng.dirichlet(np.ones(s), 7) for s in shape], axis=1)
    literals = np.array([[0, 2], [1, 4], [3, 5], [5, 5]])
    picked = Conjunctions(4, 2)
    found = picked.features(jnp.asarray(heads), jnp.asarray(literals)).mean(axis=0)
    padded = np.concatenate([heads, np.ones((7, 1))], axis=1)
    expected = [(padded[:, a] * padded[:, b]).mean() for a, b in literals]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    hard = one_hot(shape, jnp.asarray(list(np.ndindex(shape))))
    scores = picked.scores((jnp.asarray(literals), jnp.asarray([1.0, 2, 4, 8])), hard)
    assert scores.tolist() == [1 + 8, 4 + 8, 8, 8, 4 + 8, 2 + 8]


@pytest.mark.parametrize("objective", some(Objective, 5))
def test_no_critic_pays_more_than_its_reach(objective):
    rng = np.random.default_rng(0)
    asked = {Objective.WASSERSTEIN: Question.CUT, Objective.PARITY: Question.SIGN}
    cells = Cells(SHAPE, CLIQUES, (asked.get(objective, Question.CELL),) * len(SHAPE))
    waves = Units("fourier", rng.standard_normal((sum(SHAPE), 8)), np.zeros(8), math.sqrt(8))
    rows = one_hot(SHAPE, jnp.asarray(list(np.ndindex(SHAPE))))
    for features in (cells,) if objective in asked else (cells, waves):
        weights = (
            rng.uniform(0.1, 1, features.size)
            if features is waves
            else cells.spread([1, 1, 1, 1] if objective in asked else [1, 0.5, 0.2, 1])
        )
        most = reach(objective, features, weights)

        @jax.jit
        def paid(*given, features=features):
            theta = best_response(objective, features, *given)
            return jnp.abs(features.scores(theta, rows)).max()

        for _ in range(20):
            given = [rng.standard_normal(features.size), np.full(features.size, 0.1), weights]
            assert float(paid(*(np.float32(each) for each in given))) <= most * (1 + 1e-5)


def test_waves_have_norm_one_and_the_gaussian_kernel():
    rng = np.random.default_rng(0)
    frequencies = rng.standard_normal((sum(SHAPE), 4_000))
    waves = Units("fourier", frequencies, np.zeros(4_000), math.sqrt(4_000))
    rows = one_hot(SHAPE, jnp.asarray(drawn(20)))
    psi = np.asarray(waves.features(rows))
    np.testing.assert_allclose((psi**2).sum(axis=1), 1.0, rtol=1e-4)
    apart = ((np.asarray(rows)[:, None] - np.asarray(rows)[None]) ** 2).sum(-1)
    np.testing.assert_allclose(psi @ psi.T, np.exp(-apart / 2), atol=0.08)


# --- best responses -----------------------------------------------------------------------------

# JAX may not start while tests are collected: some of them fork.
DIFFERENCE = np.array([0.3, -0.5, 0.01, 0.0], np.float32)
ONES = np.ones(4, np.float32)


def answer(objective, noise=0.02 * ONES, weights=ONES):
    respond = jax.jit(best_response, static_argnums=(0, 1))
    return np.asarray(respond(objective, Cells((4,), ((0,),)), DIFFERENCE, noise, weights))


def test_the_worst_cell_is_a_signed_unit_vector():
    assert answer(Objective.MAX).tolist() == [0, -1, 0, 0]


def test_total_variation_is_its_sup_norm_ball_softened_within_the_noise():
    np.testing.assert_allclose(answer(Objective.TV), [1, -1, 0.25, 0])
    exact = answer(Objective.TV, noise=1e-6 * ONES)
    assert exact.tolist() == [1, -1, 1, 0]
    assert float(exact @ DIFFERENCE) == pytest.approx(float(np.abs(DIFFERENCE).sum()))
    # It maximises ⟨θ, d⟩ − σ‖θ‖² over the ball.
    rng = np.random.default_rng(0)
    value = [t @ DIFFERENCE - 0.02 * t @ t for t in rng.uniform(-1, 1, (2_000, 4))]
    best = answer(Objective.TV)
    assert best @ DIFFERENCE - 0.02 * best @ best >= max(value)


def test_the_kernel_ball_gives_the_kernel_distance():
    weights = np.array([1.0, 0.25, 0.25, 1.0])
    theta = answer(Objective.MMD, weights=weights)
    distance = math.sqrt(float((weights * DIFFERENCE**2).sum()))
    assert float(theta @ DIFFERENCE) == pytest.approx(distance, rel=1e-5)
    assert (theta**2 / weights).sum() == pytest.approx(1.0, rel=1e-5)


# --- distribution functions and parities --------------------------------------------------------


@partial(jax.jit, static_argnums=(0, 1))
def _played(objective, cells, real, fake):
    hot = [one_hot(cells.shape, each) for each in (real, fake)]
    apart = cells.moments(hot[0]) - cells.moments(hot[1])
    ones = jnp.ones(cells.size)
    theta = best_response(objective, cells, apart, 1e-9 * ones, ones)
    return theta, theta @ apart


def played(objective, cells, real, fake):
    """(θ, its payoff) of the critic between two tables of records, without noise."""
    theta, payoff = _played(objective, cells, real, fake)
    return theta, float(payoff)


def test_the_payoff_grows_with_the_distance():
    ordered = Cells((10,), ((0,),), (Question.CUT,))
    here = np.zeros((5, 1), int)
    for cells_away in range(1, 10):
        _, payoff = played(Objective.WASSERSTEIN, ordered, here, here + cells_away)
        assert payoff == pytest.approx(cells_away / 9, rel=1e-5)
        assert played(Objective.TV, ordered, here, here + cells_away)[1] == pytest.approx(2)


def test_on_one_column_it_is_the_wasserstein_distance():
    rng = np.random.default_rng(0)
    real, fake = rng.integers(0, 7, (2, 40, 1))
    _, payoff = played(Objective.WASSERSTEIN, Cells((7,), ((0,),), (Question.CUT,)), real, fake)
    expected = stats.wasserstein_distance(real[:, 0], fake[:, 0]) / 6
    assert payoff == pytest.approx(expected, rel=1e-4)


def test_critics_of_tables_are_lipschitz_and_a_column_without_order_has_its_cells():
    shape, cliques = (4, 3, 5), ((0,), (0, 1), (2, 0), (1,))
    cells = Cells(shape, cliques, (Question.CUT, Question.CELL, Question.CUT_OR_NULL))
    rng = np.random.default_rng(1)
    real, fake = (np.stack([rng.integers(0, s, 30) for s in shape], axis=1) for _ in range(2))
    theta, payoff = played(Objective.WASSERSTEIN, cells, real, fake)
    tables = dict(zip(cliques, cells.tables(theta), strict=True))
    joint = tables[2, 0]  # four values and null, against four
    assert (np.abs(np.diff(joint, axis=1)) <= 1 / 3 + 1e-6).all()
    assert (np.abs(np.diff(joint[:4], axis=0)) <= 1 / 3 + 1e-6).all()
    mixed = tables[0, 1]
    assert (np.abs(np.diff(mixed, axis=0)) <= 1 / 3 + 1e-6).all()
    assert np.abs(mixed[:, :1] - mixed).max() <= 2 + 1e-6
    # Mean |F − G| over cuts, by hand; over cells where there is no order.
    expected = 0.0
    for clique in cliques:
        p, q = (np.zeros([shape[i] for i in clique]) for _ in range(2))
        for table, rows in ((p, real), (q, fake)):
            np.add.at(table, tuple(rows[:, i] for i in clique), 1 / 30)
        d = p - q
        if clique == (0,):
            d = np.cumsum(d)[:-1] / 3
        elif clique == (0, 1):
            d = np.cumsum(d, axis=0)[:-1] / 3
        elif clique == (2, 0):
            d = np.cumsum(d, axis=1)[:, :-1] / 3
            d = np.concatenate([np.cumsum(d[:4], axis=0)[:-1] / 3, d[4:]])
        expected += np.abs(d).sum()
    assert payoff == pytest.approx(expected, rel=1e-4)


def test_steps_within_the_noise_are_softened():
    cells = Cells((3,), ((0,),), (Question.CUT,))
    d, sigma = jnp.asarray([0.01, 0.02, -0.03]), 0.02
    theta = best_response(Objective.WASSERSTEIN, cells, d, jnp.full(3, sigma), jnp.ones(3))
    steps = np.array([0.01 / sigma, 0.03 / (sigma * math.sqrt(2))]) / 2
    np.testing.assert_allclose(theta, [steps.sum() / 2, steps[1] / 2, 0], rtol=1e-4)


def test_the_worst_parity_is_found_with_its_sign():
    shape, cliques = (2, 3, 2), ((0, 1), (0, 2), (0, 1, 2))
    cells = Cells(shape, cliques, (Question.SIGN,) * 3)
    rng = np.random.default_rng(2)
    real, fake = (np.stack([rng.integers(0, s, 25) for s in shape], axis=1) for _ in range(2))
    values = [range(s)[1 if s == 2 else 0 :] for s in shape]
    found = {}
    for clique in cliques:
        for at in itertools.product(*(values[i] for i in clique)):
            odd = [np.prod(1 - 2 * (rows[:, clique] == at), axis=1) for rows in (real, fake)]
            found[clique, at] = odd[0].mean() - odd[1].mean()
    clique, at = max(found, key=lambda each: abs(found[each]))
    theta, payoff = played(Objective.PARITY, cells, real, fake)
    assert payoff == pytest.approx(abs(found[clique, at]), rel=1e-4)
    tables = cells.tables(theta)
    every = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1).reshape(-1, 3)
    total = sum(t[tuple(every[:, i] for i in c)] for c, t in zip(cliques, tables, strict=True))
    sign = np.sign(found[clique, at])
    np.testing.assert_allclose(total, sign * np.prod(1 - 2 * (every[:, clique] == at), axis=1))


# --- one layer of units -------------------------------------------------------------------------


def units(kind, literals, kappa=8.0):
    """One unit for each row of literals."""
    return Units(kind, literals.T, 1 - literals.sum(axis=1), kappa=kappa)


def test_a_rectified_unit_is_a_conjunction_on_hard_rows_and_not_on_soft_ones():
    chosen = CUBE[1:]  # every conjunction of up to six literals
    inside = CUBE[:, None] >= chosen[None]
    conjunctions = inside.all(axis=-1)
    layer = units("relu", chosen)
    assert (np.asarray(layer.features(jnp.asarray(CUBE))) == conjunctions).all()
    for theta in (np.ones(layer.size), -np.ones(layer.size)):
        together = np.asarray(layer.scores(jnp.asarray(theta), jnp.asarray(CUBE)))
        assert (together == theta[0] * conjunctions.sum(axis=1)).all()
    soft = units("relu", np.ones((1, 6))).features(jnp.full((1, 6), 0.5))
    assert float(soft[0, 0]) == 0.0 != 0.5**6


@pytest.mark.parametrize("kappa", [1.0, 10.0])
def test_a_smooth_unit_is_within_its_bound(kappa):
    rows = jnp.asarray(np.random.default_rng(0).random((200, 4)))
    literals = np.array([[1.0, 1, 0, 0], [0, 1, 1, 1]])
    smooth, sharp = units("softplus", literals, kappa), units("relu", literals)
    apart = jnp.abs(smooth.features(rows) - sharp.features(rows))
    assert 0 < float(apart.max()) <= math.log(2) / kappa + 1e-6
    kink = units("softplus", np.array([[1.0, 0, 0, 0]]), kappa).features(jnp.zeros((1, 4)))
    assert float(kink[0, 0]) == pytest.approx(math.log(2) / kappa)
    curve = jax.vmap(jax.grad(jax.grad(lambda x: jax.nn.softplus(kappa * x) / kappa)))
    assert float(curve(jnp.linspace(-2, 2, 41)).max()) <= kappa / 4 + 1e-6


def test_the_payoff_of_a_softplus_critic_is_not_convex():
    """V(θ) = softplus(θ) − softplus(2θ): one row 1, one record 2; the curvature changes sign."""

    def payoff(theta):
        return jax.nn.softplus(theta) - jax.nn.softplus(2 * theta)

    def curvature(theta, h=1e-2):
        x = np.array([theta - h, theta, theta + h])
        y = np.logaddexp(0, x) - np.logaddexp(0, 2 * x)
        return (y[0] - 2 * y[1] + y[2]) / h**2

    assert curvature(0.0) == pytest.approx(-0.75, abs=1e-3)
    assert curvature(2.0) == pytest.approx(0.034, abs=1e-3)
    second = jax.grad(jax.grad(payoff))
    assert [float(second(0.0)), float(second(2.0))] == pytest.approx([-0.75, 0.034], abs=1e-3)


# --- the all-subsets kernel ---------------------------------------------------------------------


def all_subsets(x, z, weight, degree=None):
    """k_w(x, z) = Π_i (1 + w·x_i·z_i) between rows (n, S) and (m, S) of zeros and ones.

    With `degree`, only subsets of up to so many coordinates: Σ_{j≤k} C(⟨x, z⟩, j)·w^j.
    """
    common = x @ z.T
    if degree is None:
        return (1 + weight) ** common
    total = jnp.zeros_like(common)
    for j in range(degree + 1):
        binomial = jnp.ones_like(common)
        for i in range(j):
            binomial = binomial * (common - i) / (i + 1)
        total = total + weight**j * binomial
    return total


def mmd_squared(x, y, weight, degree=None):
    """‖φ̄(x) − φ̄(y)‖² in the space of the all-subsets kernel; biased, so it is a true norm.

    Equals Σ_A w^{|A|}(m_A(x) − m_A(y))² over all subsets A. A conjunction of k literals has norm
    w^{−k/2}, so no conjunction of up to k literals is off by more than w^{−k/2}·MMD.
    """
    parts = ((x, x, 1.0), (y, y, 1.0), (x, y, -2.0))
    return sum((s * all_subsets(a, b, weight, degree).mean() for a, b, s in parts), jnp.zeros(()))


def features(rows, weight, degree=6):
    """φ_A = w^{|A|/2}·Π_{i∈A} x_i for every subset."""
    subsets = [
        A for size in range(degree + 1) for A in itertools.combinations(range(rows.shape[1]), size)
    ]
    return np.stack([weight ** (len(A) / 2) * rows[:, A].prod(axis=1) for A in subsets], axis=1)


@pytest.mark.parametrize(("weight", "degree"), [(1.0, None), (1 / 6, None), (0.3, 2), (1.0, 3)])
def test_the_kernel_is_the_product_of_its_features(weight, degree):
    phi = features(CUBE, weight, 6 if degree is None else degree)
    kernel = all_subsets(jnp.asarray(CUBE), jnp.asarray(CUBE), weight, degree)
    np.testing.assert_allclose(kernel, phi @ phi.T, rtol=1e-5)


def test_the_distance_is_a_weighted_sum_over_conjunctions():
    rng = np.random.default_rng(0)
    x, y = CUBE[rng.integers(0, 64, 12)], CUBE[rng.integers(0, 64, 9)]
    weight = 1 / 6
    apart = features(x, weight).mean(axis=0) - features(y, weight).mean(axis=0)
    found = float(mmd_squared(jnp.asarray(x), jnp.asarray(y), weight))
    assert found == pytest.approx(float((apart**2).sum()), rel=1e-4)
    # No conjunction of k literals is off by more than w^{−k/2}·MMD.
    for size in range(1, 4):
        for A in itertools.combinations(range(6), size):
            off = abs(x[:, A].prod(axis=1).mean() - y[:, A].prod(axis=1).mean())
            assert off <= weight ** (-size / 2) * math.sqrt(found) + 1e-6


def test_the_distance_moves_no_more_than_its_sensitivity():
    """All pairs of tables of two rows on {0,1}³ that differ in one."""
    cube = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
    weight = 1 / 3
    phi = features(cube, weight, 3)
    kappa = (1 + weight) ** 3
    fixed = phi[[1, 6, 7]].mean(axis=0)

    def distance(rows):
        return np.linalg.norm(phi[list(rows)].mean(axis=0) - fixed)

    moves = [
        abs(distance((a, b)) - distance((a, c)))
        for a in range(8)
        for b in range(8)
        for c in range(8)
    ]
    assert 0 < max(moves) <= math.sqrt(2 * kappa) / 2
    assert kappa <= math.e
