"""Marginals in orthogonal pieces: against explicit matrices, and the strategy against small moves."""

import itertools
import math

import numpy as np
import pytest

from understudy.models import Measured
from understudy.models.residual import cell_variance, closure, optimise, reconstruct

SHAPE = (2, 3, 2, 1)
CLIQUES = ((0, 1), (1, 2), (0, 2, 3))


def matrix(shape, clique):
    """The marginal as a 0/1 matrix on the flattened universe."""
    universe = list(itertools.product(*map(range, shape)))
    cells = {c: i for i, c in enumerate(itertools.product(*(range(shape[i]) for i in clique)))}
    found = np.zeros((len(cells), len(universe)))
    for column, row in enumerate(universe):
        found[cells[tuple(row[i] for i in clique)], column] = 1
    return found


STRATEGIES = [
    {(0, 1): 2.0, (1, 2): 0.5, (0, 2, 3): 1.0},
    {(0, 1): 1.0, (1, 2): 4.0, (0, 2, 3): 0.3, (0,): 0.1, (2,): 3.0, (1,): 0.7},
    {(0, 1, 2, 3): 1.5, (1,): 0.2},
]


@pytest.mark.parametrize("variances", STRATEGIES)
def test_answers_and_variances_are_those_of_the_pseudo_inverse(variances):
    """W·A⁺·y and the diagonal of W·A⁺·(A⁺)ᵀ·Wᵀ, with A the marginals over their deviations."""
    rng = np.random.default_rng(0)
    a = np.vstack([matrix(SHAPE, c) / math.sqrt(v) for c, v in variances.items()])
    measured, stacked = [], []
    for clique, variance in variances.items():
        table = rng.integers(-5, 30, tuple(SHAPE[i] for i in clique))
        measured.append(Measured(clique, table, math.sqrt(variance)))
        stacked.append(table.reshape(-1) / math.sqrt(variance))
    inverse = np.linalg.pinv(a)
    p_hat = inverse @ np.concatenate(stacked)
    answers = reconstruct(SHAPE, measured, CLIQUES)
    for clique, answer, variance in zip(
        CLIQUES, answers, cell_variance(SHAPE, variances, CLIQUES), strict=True
    ):
        w = matrix(SHAPE, clique)
        np.testing.assert_allclose(answer.reshape(-1), w @ p_hat, atol=1e-9)
        np.testing.assert_allclose(((w @ inverse) ** 2).sum(axis=1), variance, rtol=1e-9)


def test_answers_agree_where_they_overlap():
    rng = np.random.default_rng(1)
    measured = [
        Measured(c, rng.integers(0, 50, tuple(SHAPE[i] for i in c)), 1.0 + i)
        for i, c in enumerate(CLIQUES)
    ]
    first, second, third = reconstruct(SHAPE, measured, CLIQUES)
    np.testing.assert_allclose(first.sum(axis=0), second.sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(first.sum(axis=1), third.sum(axis=(1, 2)), atol=1e-9)


def test_the_identity_gives_plain_histogram_noise():
    """A = I: the answer is the noisy histogram itself, and nothing beats it for its own cells."""
    table = np.random.default_rng(2).integers(-9, 40, (2, 3))
    (answer,) = reconstruct((2, 3), [Measured((0, 1), table, 4.0)], [(0, 1)])
    np.testing.assert_allclose(answer, table, atol=1e-12)
    assert cell_variance((2, 3), {(0, 1): 16.0}, [(0, 1)]) == pytest.approx([16.0])
    assert optimise((2, 3), ((0, 1),), (1.0,)).error == pytest.approx(6.0, rel=1e-3)


def error_of(shape, cliques, weights, spent):
    """Σ weight·cells·variance for Σ 1/v = 1."""
    total = sum(spent.values())
    variances = {clique: total / each for clique, each in spent.items() if each > 0}
    return sum(
        weight * math.prod(shape[i] for i in clique) * variance
        for clique, weight, variance in zip(
            cliques, weights, cell_variance(shape, variances, cliques), strict=True
        )
    )


def spent_on(strategy):
    return {
        clique: share / len(level)
        for level, share in zip(strategy.levels, strategy.shares, strict=True)
        for clique in level
    }


@pytest.mark.parametrize("levels", [1, 3, 50])
def test_the_strategy_says_its_error(levels):
    shape, cliques = (4, 2, 6, 3), tuple(itertools.combinations(range(4), 2))
    weights = (1.0, 2.0, 1.0, 0.5, 1.0, 1.0)
    strategy = optimise(shape, cliques, weights, levels)
    assert len(strategy.levels) <= levels
    assert sum(strategy.shares) == pytest.approx(1.0)
    found = error_of(shape, cliques, weights, spent_on(strategy))
    assert strategy.error == pytest.approx(found, rel=1e-3)


def test_the_strategy_cannot_be_improved():
    """Convex, so no small move of weight between marginals of the closure may help."""
    shape, weights = (4, 2, 6, 3), (1.0,) * 6
    cliques = tuple(itertools.combinations(range(4), 2))
    spent = spent_on(optimise(shape, cliques, weights, 100))
    best = error_of(shape, cliques, weights, spent)
    for more in closure(cliques)[1:]:
        moved = {c: 0.99 * w for c, w in spent.items()}
        moved[more] = moved.get(more, 0.0) + 0.01
        assert error_of(shape, cliques, weights, moved) >= best * (1 - 1e-3)
    even = error_of(shape, cliques, weights, dict.fromkeys(cliques, 1.0))
    assert best < 0.95 * even
