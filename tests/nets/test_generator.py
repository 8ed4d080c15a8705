"""The generator: heads that are distributions, and hard records that follow them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from understudy.nets.generator import Generator, one_hot

SHAPE = (2, 1, 5, 3)


@pytest.fixture(scope="module")
def made():
    generator = Generator(SHAPE, latent=4, width=8, blocks=2)
    return generator, generator.init(jax.random.key(0))


def test_heads_are_distributions_in_column_order(made):
    generator, params = made
    p = jax.jit(generator.probabilities)(params, generator.latents(jax.random.key(1), 7))
    assert p.shape == (7, sum(SHAPE))
    assert p.dtype == jnp.float32
    assert [part.shape[-1] for part in generator.split(p)] == list(SHAPE)
    for part in generator.split(p):
        np.testing.assert_allclose(part.sum(axis=-1), 1.0, rtol=1e-5)


def test_heads_start_at_given_shares(made):
    generator, _ = made
    shares = [np.array([0.9, 0.1]), np.ones(1), np.array([0.0, 0.1, 0.2, 0.3, 0.4]), np.ones(3) / 3]
    params = generator.init(jax.random.key(0), shares)
    p = jax.jit(generator.probabilities)(params, generator.latents(jax.random.key(1), 500))
    np.testing.assert_allclose(np.mean(p, axis=0), np.concatenate(shares), atol=0.06)


def test_codes_follow_the_heads(made):
    generator, params = made
    z = jnp.tile(generator.latents(jax.random.key(2), 1), (20_000, 1))

    @jax.jit
    def every(params):
        codes = generator.codes(params, z, jax.random.key(3))
        return codes, one_hot(SHAPE, codes).mean(axis=0), generator.probabilities(params, z[:1])[0]

    codes, seen, wanted = every(params)
    assert codes.dtype == jnp.int32
    np.testing.assert_allclose(seen, wanted, atol=0.02)


def test_hard_rows_are_the_codes_of_the_same_key(made):
    generator, params = made
    z, key = generator.latents(jax.random.key(2), 50), jax.random.key(3)

    @jax.jit
    def every(params):
        logits = generator.logits(params, z)
        rows = one_hot(SHAPE, generator.codes(params, z, key))
        logs = generator.log_softmax(logits)
        return generator.hard(logits, key), rows, jnp.exp(logs), generator.softmax(logits)

    hard, rows, shares, directly = every(params)
    np.testing.assert_array_equal(hard, rows)
    np.testing.assert_allclose(shares, directly, rtol=1e-4, atol=1e-7)


@pytest.mark.slow
def test_relaxed_records_become_hard_as_the_temperature_falls(made):
    generator, params = made
    z, key = generator.latents(jax.random.key(4), 200), jax.random.key(5)
    hard = one_hot(SHAPE, jax.jit(generator.codes)(params, z, key))
    relaxed = jax.jit(generator.relaxed)
    soft, warm = (relaxed(params, z, key, temperature=t) for t in (1e-3, 5.0))
    assert jnp.abs(hard - soft).mean() < 0.01 < jnp.abs(hard - warm).mean()
    for part in generator.split(warm):
        np.testing.assert_allclose(part.sum(axis=-1), 1.0, rtol=1e-5)


def test_gradients_reach_every_parameter_through_both_readings(made):
    generator, params = made
    z, key = generator.latents(jax.random.key(6), 32), jax.random.key(7)
    target = jax.random.uniform(jax.random.key(8), (sum(SHAPE),))

    def exact(p):
        return (generator.probabilities(p, z).mean(axis=0) * target).sum()

    def relaxed(p):
        return (generator.relaxed(p, z, key, temperature=0.5).mean(axis=0) * target).sum()

    for loss in (exact, relaxed):
        assert all(jnp.abs(g).sum() > 0 for g in jax.tree.leaves(jax.jit(jax.grad(loss))(params)))
