"""A generator network as data player: what it learns, and the records that stand for it."""

from dataclasses import replace

import numpy as np
import pytest

from understudy.models.blocks import Belief
from understudy.players.base import Measured, Problem
from understudy.players.data.generator import GeneratorPlayer, ProductMixture, _evidence, listed
from understudy.queries import counts

SHAPE = (3, 4, 2)
PROBLEM = Problem(SHAPE, ((0, 1), (1, 2), (0, 1, 2)), (1.0,) * 3, 5_000)


def rows_of(n, seed):
    """Three columns that depend on one another, the third on both others together."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.7, a, rng.integers(0, 4, n))
    c = np.where(rng.random(n) < 0.8, (a + b) % 2, rng.integers(0, 2, n))
    return [a, b, c]


def answers(n=5_000, sigma=10.0, columns=10.0, cliques=((0, 1), (1, 2), (0, 2), (0, 1, 2))):
    rng = np.random.default_rng(1)
    tables = counts(rows_of(n, 0), SHAPE, [(0,), (1,), (2,), *cliques])
    found = [(0,), (1,), (2,), *cliques]
    noise = [columns if len(clique) == 1 else sigma for clique in found]
    return tuple(
        Measured(c, t + np.rint(rng.normal(0, s, t.shape)).astype(np.int64), s)
        for c, t, s in zip(found, tables, noise, strict=True)
    )


@pytest.mark.slow
def test_the_network_learns_what_was_released():
    player = GeneratorPlayer(1, batch=200, latent=16, width=32, steps=400)
    state = player.respond(PROBLEM, player.start(PROBLEM), answers(), np.random.default_rng(0))
    view = player.view(PROBLEM, state)
    model = player.finish(PROBLEM, state)
    (exact,) = counts(rows_of(5_000, 0), SHAPE, [(0, 1, 2)])
    truth = exact / exact.sum()
    apart = np.multiply.outer(
        np.multiply.outer(truth.sum((1, 2)), truth.sum((0, 2))), truth.sum((0, 1))
    )
    far = np.abs(apart - truth).sum() / 2
    assert far > 0.25
    for made in (view, model):
        assert np.abs(made.marginal((0, 1, 2)) - truth).sum() / 2 < far / 5
    sampled = counts(model.sample(5_000, np.random.default_rng(2)), SHAPE, [(0, 1, 2)])[0] / 5_000
    assert np.abs(sampled - truth).sum() / 2 < far / 5


def test_marginals_of_a_mixture_are_exact_and_records_follow_it():
    rng = np.random.default_rng(0)
    heads = tuple(rng.dirichlet(np.ones(size), 6) for size in SHAPE)
    view = ProductMixture(heads)
    table = np.einsum("zi,zj,zk->ijk", *heads) / 6
    np.testing.assert_allclose(view.marginal((0, 1, 2)), table, atol=1e-12)
    np.testing.assert_allclose(view.marginal((0, 2)), table.sum(axis=1), atol=1e-12)
    codes = listed(list(heads), 2_000, rng)
    for i, head in enumerate(heads):  # systematic: every product is within one record of its shares
        for b in range(6):
            seen = np.bincount(codes[i][b * 2_000 : (b + 1) * 2_000], minlength=SHAPE[i])
            assert np.abs(seen - 2_000 * head[b]).max() <= 1
    (found,) = counts(list(codes), SHAPE, [(0, 1, 2)])
    assert np.abs(found / found.sum() - table).sum() / 2 < 0.02


def test_no_spike_is_held_so_closely_that_it_outweighs_the_rest():
    shares = np.array([0.5, 0.01, 0.0])
    told = 1e4 * shares, np.full(3, 5.0), np.full(3, 1e-3), np.ones(3), np.zeros(3)
    belief = Belief((0, 1), None, *told)
    ratio = _evidence(belief, 1e4).ratio
    np.testing.assert_allclose(ratio, 1e-3 * np.maximum(shares, 5e-4))
    loose = _evidence(replace(belief, ratio=np.full(3, 1e5)), 1e4).ratio
    np.testing.assert_array_equal(loose, 10.0)


@pytest.mark.slow
def test_public_rows_are_where_the_network_starts():
    """With noise that hides everything, the public rows' dependence is what is believed."""
    public = tuple(rows_of(4_000, 5))
    hidden = answers(sigma=3_000.0, cliques=((0, 1), (1, 2), (0, 2)))
    (exact,) = counts(rows_of(5_000, 0), SHAPE, [(0, 1)])
    errors = []
    for rows in (None, public):
        player = GeneratorPlayer(1, batch=100, latent=8, width=16, steps=200, public=rows)
        state = player.respond(PROBLEM, player.start(PROBLEM), hidden, np.random.default_rng(0))
        table = player.view(PROBLEM, state).marginal((0, 1))
        given = table / table.sum(axis=1, keepdims=True)
        errors.append(np.abs(given - exact / exact.sum(axis=1, keepdims=True)).sum() / 6)
    assert errors[1] < 0.6 * errors[0]
