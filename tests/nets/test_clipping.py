"""Ghost norms, groups of weights, thresholds and noise; all on public gradients."""

from __future__ import annotations

import math
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.thorough import slow

from understudy.errors import WorkError
from understudy.nets.clipping import (
    adapted,
    bit_share,
    clipped_sum,
    clusters,
    joint,
    least_noise,
    norms,
    thresholds,
)
from understudy.nets.coding import Coding
from understudy.nets.dense import Critic, Loss
from understudy.nets.gan import Gan, Rows, require_apart


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
    factors = critic.factors(layers, features, loss)
    gradient = jax.jit(jax.grad(lambda w, x: loss.real(critic.scores(w, x[None, :])).sum()))
    for row in range(6):
        wanted = np.asarray(critic.flat(gradient(layers, features[row])))
        made = [np.outer(np.append(a[row], 1.0), d[row]).reshape(-1) for a, d in factors]
        assert np.concatenate(made) == pytest.approx(wanted, rel=1e-4, abs=1e-5)


@given(
    sizes=st.lists(st.integers(1, 9), min_size=2, max_size=4),
    rows=st.integers(1, 6),
    groups=st.integers(1, 3),
    key=st.integers(0, 10_000),
)
@settings(max_examples=60, deadline=None)
def test_norms_and_clipped_sums_are_those_of_a_loop(sizes, rows, groups, key):
    rng = np.random.default_rng(key)
    layers = list(pairwise(sizes))
    factors = [(rng.normal(size=(rows, i)), rng.normal(size=(rows, o))) for i, o in layers]
    whole = np.array(
        [
            np.concatenate([np.outer(np.append(a[r], 1.0), d[r]).reshape(-1) for a, d in factors])
            for r in range(rows)
        ]
    )
    members = tuple(rng.integers(groups, size=(i + 1, o)) for i, o in layers)
    flat = (
        np.concatenate([m.reshape(-1) for m in members]) if groups > 1 else np.zeros(len(whole[0]))
    )
    found = norms(factors, members if groups > 1 else None, groups)
    limits = rng.uniform(0.05, 2.0, groups)
    total = np.zeros(whole.shape[1])
    for j in range(groups):
        part = np.where(flat == j, whole, 0.0)
        lengths = np.linalg.norm(part, axis=1)
        assert found[:, j] == pytest.approx(lengths, rel=1e-9, abs=1e-9)
        for row, length in zip(part, lengths, strict=True):
            total += row * min(1.0, limits[j] / length) if length > 0 else row
    sums = clipped_sum(factors, limits.tolist(), members if groups > 1 else None)
    assert sums == pytest.approx(total, rel=1e-5, abs=1e-5)


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


def naive_clusters(sizes, groups):
    found = [([i], max(abs(x), 1e-12)) for i, x in enumerate(sizes)]
    while len(found) > groups:
        found.sort(key=lambda group: group[1])
        at = min(
            range(len(found) - 1), key=lambda i: math.log(found[i + 1][1]) - math.log(found[i][1])
        )
        (one, c), (other, d) = found[at], found[at + 1]
        found[at : at + 2] = [(one + other, math.hypot(c, d))]
    found.sort(key=lambda group: group[1])
    named = np.zeros(len(sizes), int)
    for number, (group, _) in enumerate(found):
        named[group] = number
    return named


def test_clusters_of_four_numbers():
    assert clusters(np.array([1, 1.01, 10, 10.2]), 2).tolist() == [0, 0, 1, 1]
    assert clusters(np.array([10.2, -1, 10, 1.01]), 2).tolist() == [1, 0, 1, 0]


@given(
    st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=40, unique=True), st.integers(1, 5)
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_clusters_are_those_of_all_pairs(sizes, groups):
    groups = min(groups, len(sizes))
    made = clusters(np.array(sizes), groups, floor=1e-12)
    assert len(set(made.tolist())) == groups
    logs = np.sort(np.log(sizes))
    if np.diff(logs).min() > 1e-9:  # ties may fall either way
        assert made.tolist() == naive_clusters(sizes, groups).tolist()


def test_zero_gradients_have_a_floor():
    made = clusters(np.array([0.0, 0.0, 1.0, 0.0, 1.1]), 2)
    assert made.tolist() == [0, 0, 1, 0, 1]
    assert set(clusters(np.zeros(6), 3).tolist()) == {0, 1, 2}


def test_thresholds_are_medians_of_rows_not_of_their_mean():
    rows = np.array([[1.0, 4.0], [3.0, 2.0], [2.0, 9.0]])
    assert thresholds(rows) == (2.0, 4.0)


@given(
    st.lists(st.tuples(st.floats(0.01, 10), st.integers(1, 10_000)), min_size=1, max_size=6),
    st.floats(0.3, 10),
)
@settings(max_examples=50, deadline=None)
def test_least_noise_costs_the_same_and_adds_less(pairs, multiplier):
    limits, sizes = zip(*pairs, strict=True)
    found = least_noise(multiplier, limits, sizes)
    assert joint(found) == pytest.approx(multiplier, rel=1e-9)

    def total(multipliers):
        triples = zip(multipliers, limits, sizes, strict=True)
        return sum(d * (m * c) ** 2 for m, c, d in triples)

    expected = multiplier**2 * sum(c * math.sqrt(d) for c, d in pairs) ** 2
    assert total(found) == pytest.approx(expected, rel=1e-9)
    even = [multiplier * math.sqrt(len(pairs))] * len(pairs)
    assert total(found) <= total(even) * (1 + 1e-9)


def test_thresholds_follow_the_quantile():
    assert adapted((1.0,), (0.5,), 0.5, 0.2) == (1.0,)
    assert adapted((1.0,), (1.0,), 0.5, 0.2)[0] == pytest.approx(math.exp(-0.1))
    assert adapted((1.0,), (-3.0,), 0.5, 0.2)[0] == pytest.approx(math.exp(0.1))
    sizes = np.random.default_rng(0).lognormal(size=2000)
    limit = (20.0,)
    for _ in range(200):
        limit = adapted(limit, (float((sizes <= limit[0]).mean()),), 0.5, 0.2)
    assert limit[0] == pytest.approx(np.median(sizes), rel=0.05)


def test_bits_and_gradients_share_one_multiplier():
    """z_grad = (z^−2 − l·(2σ_b)^−2)^−½."""
    left = bit_share(2.0, 3, 10.0)
    assert joint((left, 10.0, 10.0, 10.0)) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="more than"):
        bit_share(2.0, 3, 2.0)
