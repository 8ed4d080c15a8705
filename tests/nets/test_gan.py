"""The critic's factors row by row, and rows that stay apart."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.thorough import slow

from understudy.errors import WorkError
from understudy.nets.coding import Coding
from understudy.nets.gan import Critic, Gan, Loss, Rows, require_apart


@pytest.mark.parametrize("loss", list(Loss))
def test_factors_are_those_of_the_gradient(loss):
    """Row by row, a ⊗ δ of every layer is what automatic differentiation finds."""
    rng = np.random.default_rng(1)
    critic = Critic((5, 7, 3, 1))
    layers = tuple(
        (jnp.asarray(rng.normal(size=(i, o)), jnp.float32),
         jnp.asarray(rng.normal(size=o), jnp.float32))
        for i, o in critic.layers
    )  # fmt: skip
    features = jnp.asarray(rng.normal(size=(6, 5)), jnp.float32)
    factors = jax.jit(critic.factors, static_argnums=2)(layers, features, loss)
    gradient = jax.jit(jax.grad(lambda w, x: loss.real(critic.scores(w, x[None, :])).sum()))
    for row in range(6):
        wanted = np.asarray(critic.flat(gradient(layers, features[row])))
        made = [np.outer(np.append(a[row], 1.0), d[row]).reshape(-1) for a, d in factors]
        assert np.concatenate(made) == pytest.approx(wanted, rel=1e-4, abs=1e-5)


class Averaged(Rows):
    """Rows that are scaled by their batch: what a normalisation over rows does."""

    def factors(self, rows):
        mean = np.float32(rows[:, 0].mean())
        return [(a, d * mean) for a, d in super().factors(rows)]


class Placed(Rows):
    """Rows that are rounded by where they stand."""

    def factors(self, rows):
        last = np.float32([1.0] * (self.slots - 1) + [1.0 + 2**-20])
        return [(a, d * last[:, None]) for a, d in super().factors(rows)]


@pytest.mark.parametrize(("width", "slots"), [slow((128, 256)), slow((256, 256)), (33, 7)])
def test_factors_of_a_row_do_not_depend_on_its_company(width, slots):
    """Bit by bit, wherever it stands in a chunk: what the privacy of sums asks of a network."""
    shape = (7, 2, 30, 5)
    coding = Coding(shape, ("choice", "choice", "real", "bits"), (False, False, True, False))
    gan = Gan(coding, critic_width=width)
    shares = [np.full(size, 1 / size) for size in shape]
    made = gan, gan.start(3, shares).critic, tuple(coding.tables(shares)), slots
    require_apart(Rows(*made))
    for broken in (Averaged, Placed):
        with pytest.raises(WorkError, match="depends on the rows beside it"):
            require_apart(broken(*made))
