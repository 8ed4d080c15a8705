"""Training: repeatable, stops at the last good state, and needs JAX and optax alone."""

import importlib
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from understudy import nets
from understudy.nets.generator import Generator
from understudy.nets.tables import Table
from understudy.nets.training import Effort, Evidence, start, train

SHAPE = (2, 3)
SHARES = [np.array([0.6, 0.4]), np.array([0.5, 0.3, 0.2])]
SEEN = np.array([[0.5, 0.1, 0.0], [0.0, 0.2, 0.2]])
APART = np.multiply.outer(*SHARES)


def evidence(values=SEEN, expected=APART, deviation=1e-4, hold=1.0):
    """`hold` = 0 holds nothing out."""
    ratio, noise = np.full(values.shape, 1e-4), np.full(values.shape, deviation**2)
    again = hold * np.random.default_rng(8).normal(0, deviation, values.shape)
    return [Evidence(Table((0, 1)), values, expected, ratio, noise, again)]


@pytest.fixture(scope="module")
def fresh():
    return start(Generator(SHAPE, latent=4, width=8, blocks=1), 32, 5, SHARES)


def test_training_reaches_the_table_and_is_repeatable_bit_by_bit(fresh):
    told = []
    first = train(fresh, SHARES, evidence(), Effort(300, 0.03), lambda *s: told.append(s))
    again = train(fresh, SHARES, evidence(), Effort(300, 0.03))
    a, b = first.mixture.heads()
    assert np.abs(a.T @ b / 32 - SEEN).sum() / 2 < 0.02
    assert [step for step, _, _ in told] == list(range(25, told[-1][0] + 1, 25))
    assert told[-1][0] <= told[-1][1] == 300
    assert told[-1][2] < told[0][2]
    assert first.loss == again.loss
    for x, y in zip(first.mixture.heads(), again.mixture.heads(), strict=True):
        np.testing.assert_array_equal(x, y)


def test_steps_beyond_those_that_help_are_not_taken():
    """Columns are independent and noise alone says otherwise: all steps fit it, the rule does not."""
    shares = [np.full(10, 0.1), np.full(12, 1 / 12)]
    truth = np.multiply.outer(*shares)
    noisy = truth + np.random.default_rng(3).normal(0, 0.01, truth.shape)
    begin = start(Generator(truth.shape, latent=4, width=16, blocks=1), 32, 5, shares)
    errors, steps = [], []
    for hold in (0.0, 1.0):
        done = train(begin, shares, evidence(noisy, truth, 0.01, hold), Effort(1000, 0.003))
        a, b = done.mixture.heads()
        errors.append(np.abs(a.T @ b / 32 - truth).sum() / 2)
        steps.append(done.steps)
    assert steps[1] < steps[0]
    assert errors[1] < errors[0] / 2


def test_a_loss_that_is_no_number_ends_training_with_the_last_good_state(fresh):
    done = train(fresh, SHARES, evidence(), Effort(300, 1e30))
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


@pytest.mark.parametrize(("before", "after"), [(None, "false"), ("true", "true")])
def test_the_memory_of_a_gpu_is_not_taken_beforehand_unless_somebody_wants_it(
    monkeypatch, before, after
):
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE", raising=False)
    if before is not None:
        monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", before)
    importlib.reload(nets)
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == after
