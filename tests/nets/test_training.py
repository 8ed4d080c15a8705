"""Training: repeatable, stops at the last good state, and needs JAX and optax alone."""

import subprocess
import sys

import jax
import numpy as np
import pytest

from understudy.nets.generator import Generator
from understudy.nets.tables import Table
from understudy.nets.training import Effort, Evidence, start, train

SHAPE = (2, 3)
SHARES = [np.array([0.6, 0.4]), np.array([0.5, 0.3, 0.2])]
SEEN = np.array([[0.5, 0.1, 0.0], [0.0, 0.2, 0.2]])
EVIDENCE = [
    Evidence(Table((0, 1)), SEEN, np.multiply.outer(*SHARES), np.full(SEEN.shape, 1e-4)),
]  # fmt: skip


@pytest.fixture(scope="module")
def fresh():
    return start(Generator(SHAPE, latent=4, width=8, blocks=1), 32, 5, SHARES)


def test_training_reaches_the_table_and_is_repeatable_bit_by_bit(fresh):
    told = []
    first = train(fresh, SHARES, EVIDENCE, Effort(300, 0.03), lambda *s: told.append(s))
    again = train(fresh, SHARES, EVIDENCE, Effort(300, 0.03))
    a, b = first.mixture.heads()
    assert np.abs(a.T @ b / 32 - SEEN).sum() / 2 < 0.02
    assert [step for step, _, _ in told] == list(range(50, 301, 50))
    assert told[-1][2] < told[0][2]
    assert first.loss == again.loss
    for x, y in zip(first.mixture.heads(), again.mixture.heads(), strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_loss_that_is_no_number_ends_training_with_the_last_good_state(fresh):
    done = train(fresh, SHARES, EVIDENCE, Effort(300, 1e30))
    assert done.diverged
    assert done.steps == 0
    for x, y in zip(done.mixture.heads(), fresh.heads(), strict=True):
        np.testing.assert_array_equal(x, y)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(done.mixture.params))


def test_the_room_needs_jax_and_optax_alone():
    code = (
        "import sys, understudy.nets.training; "
        "print(*sorted({m.split('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    loaded = set(done.stdout.split())
    assert "jax" in loaded
    assert not loaded & {"opendp", "duckdb", "pyarrow", "pandas", "mbi", "numba", "dp_accounting"}
