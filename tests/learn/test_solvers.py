"""The solvers without noise: closed forms, textbook recursions, the theory's rate."""

from __future__ import annotations

import numpy as np
import pytest
from bench.twins import SMOOTH, minimise, values

from understudy.learn.plans import GRADIENT, PICK, START
from understudy.learn.solvers import frank_wolfe, project, stochastic_descent
from understudy.privacy.cost import Charge, Gaussian, Plan, SampledGaussian, Selection
from understudy.privacy.exact import Examples
from understudy.privacy.features import Box
from understudy.privacy.gate import Gate
from understudy.privacy.losses import Logistic, Softmax, Squared
from understudy.privacy.questions.descent import UNIT, l2_units
from understudy.privacy.relation import Relation
from understudy.testing import SeededNoise, StillNoise, StrictCharges


def gate_of(rows, targets, event, purpose, steps, noise=None):
    box = Box.of((-1, 1), rows.shape[1], intercept=False)
    plan = Plan((Charge(purpose, event, steps),))
    examples = Examples.seal(rows, targets, box)
    return Gate(examples, StrictCharges(plan), Relation.ADD_REMOVE, noise or StillNoise())


def picker(rows, targets, steps, noise=None):
    return gate_of(rows, targets, Selection(1.0, UNIT), PICK, steps, noise)


def table(seed, n=400, width=6, loss=None):
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (n, width))
    w = rng.normal(0, 2, (loss.outputs, width))
    scores = rows @ w.T
    if isinstance(loss, Squared):
        return rows, np.clip(scores[:, 0] / 10 + rng.normal(0, 0.1, n), -1, 1)
    whole = np.concatenate([scores, np.zeros((n, 1))], axis=1) + rng.gumbel(
        size=(n, loss.outputs + 1)
    )
    if loss.outputs == 1:
        return rows, (whole[:, 0] > whole[:, 1]).astype(float)
    return rows, whole.argmax(axis=1).astype(float)


def plain_frank_wolfe(rows, targets, loss, radius, steps):
    w = np.zeros((loss.outputs, rows.shape[1]))
    for t in range(steps):
        gradient = loss.residuals(rows @ w.T, targets).T @ rows
        k, j = np.unravel_index(np.abs(gradient).argmax(), w.shape)
        vertex = np.zeros_like(w)
        vertex[k, j] = -radius * np.sign(gradient[k, j])
        w = w + 2 / (t + 2) * (vertex - w)
    return w


@pytest.mark.parametrize("loss", [Squared(2.0), Logistic(), Softmax(2)], ids=str)
def test_without_noise_it_is_frank_wolfe(loss):
    rows, targets = table(0, loss=loss)
    found = frank_wolfe(picker(rows, targets, 12), loss, 400, 3.0, 12)
    np.testing.assert_allclose(found, plain_frank_wolfe(rows, targets, loss, 3.0, 12), atol=1e-9)


@pytest.mark.parametrize("loss", [Squared(2.0), Logistic(), Softmax(2)], ids=str)
def test_scores_begin_at_the_best_constant_and_the_intercept_ends_with_it(loss):
    """Without noise: the minimum over the constant alone, and picks that begin there."""
    rows, targets = table(6, loss=loss)
    targets = np.where(rows[:, 0] > -0.6, targets, 0.0)  # an uneven share, a mean other than 0
    rows = np.concatenate([np.ones((len(rows), 1)), rows], axis=1)
    start = Charge(START, Gaussian(1.0, *loss.moves(Relation.ADD_REMOVE)))
    plan = Plan((start, Charge(PICK, Selection(1.0, UNIT), 9)))
    examples = Examples.seal(rows, targets, Box.of((-1, 1), rows.shape[1], intercept=False))
    gate = Gate(examples, StrictCharges(plan), Relation.ADD_REMOVE, StillNoise())
    found = frank_wolfe(gate, loss, len(rows), 2.0, 9)
    at = loss.constant(loss.levels(targets).sum(axis=0).astype(float), len(rows))
    residuals = loss.residuals(np.tile(at, (len(rows), 1)), targets)
    np.testing.assert_allclose(residuals.mean(axis=0), 0, atol=1e-5)
    w = np.zeros((loss.outputs, rows.shape[1]))
    for t in range(9):
        gradient = loss.residuals(rows @ w.T + at, targets).T @ rows
        k, j = np.unravel_index(np.abs(gradient).argmax(), w.shape)
        vertex = np.zeros_like(w)
        vertex[k, j] = -2.0 * np.sign(gradient[k, j])
        w = w + 2 / (t + 2) * (vertex - w)
    w[:, 0] += at
    np.testing.assert_allclose(found, w, atol=1e-6)


def test_iterates_stay_in_the_ball_whatever_the_noise():
    rows, targets = table(1, loss=Logistic())
    for steps in (1, 2, 17):
        for delay, kept in ((0, None), (7, range(steps))):
            gate = picker(rows, targets, steps, SeededNoise(steps))
            found = frank_wolfe(gate, Logistic(), 400, 3.0, steps, delay=delay, kept=kept)
            assert np.abs(found).sum() <= 3.0 * (1 + 1e-12)


@pytest.mark.parametrize("loss", [Squared(2.0), Logistic()], ids=str)
def test_the_gap_falls_as_the_theory_says(loss):
    """F(w_T) − F* ≤ 2·L1·diam²/(T + 2), diam = 2r."""
    rows, targets = table(2, loss=loss)
    radius = 1.5

    def value(w):
        return values(loss, rows @ w.T, targets).mean()

    best = value(minimise(rows, targets, loss, radius, gap=1e-9))
    for steps in (1, 5, 25, 100):
        reached = value(frank_wolfe(picker(rows, targets, steps), loss, 400, radius, steps))
        assert -1e-6 < reached - best <= 2 * SMOOTH[type(loss)] * (2 * radius) ** 2 / (steps + 2)


def test_least_squares_in_closed_form():
    """Orthogonal rows: the minimum over the ball is the projection of the free one."""
    rows = np.concatenate([np.eye(4)] * 50)
    targets = np.concatenate([[0.8, -0.5, 0.2, 0.05]] * 50)
    free = np.array([[0.8, -0.5, 0.2, 0.05]])
    for radius in (0.5, 1.0, 5.0):
        expected = project(free, radius)
        np.testing.assert_allclose(
            minimise(rows, targets, Squared(2.0), radius, gap=1e-10), expected, atol=1e-4
        )
        if radius < 5:
            found = frank_wolfe(picker(rows, targets, 2000), Squared(2.0), 200, radius, 2000)
            np.testing.assert_allclose(found, expected, atol=0.02)
        event = SampledGaussian(1.0, l2_units(3.0, Squared(2.0)), 4)
        gate = gate_of(rows, targets, event, GRADIENT, 600)
        found = stochastic_descent(gate, Squared(2.0), len(rows), radius, 600)
        np.testing.assert_allclose(found, expected, atol=0.01)


def test_without_noise_it_is_projected_descent_with_adapted_steps():
    loss, steps, radius = Logistic(), 30, 2.0
    rows, targets = table(3, loss=loss)
    event = SampledGaussian(1.0, l2_units(10.0, loss), rows.shape[1])
    gate = gate_of(rows, targets, event, GRADIENT, steps)
    found = stochastic_descent(gate, loss, len(rows), radius, steps)
    w, kept = np.zeros((1, rows.shape[1])), []
    m, v = np.zeros_like(w), np.zeros_like(w)
    for t in range(steps):
        g = loss.residuals(rows @ w.T, targets).T @ rows / len(rows)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        step = 0.5 * radius / 40 * (1 - t / steps) * (m / (1 - 0.9 ** (t + 1)))
        size = np.sqrt(v / (1 - 0.99 ** (t + 1)))
        w = project(w - step / size, radius, size)
        kept.append(w)
    np.testing.assert_allclose(found, np.mean(kept[15:], axis=0), atol=2e-3)


@pytest.mark.parametrize("loss", [Squared(2.0), Logistic(), Softmax(2)], ids=str)
def test_descent_without_noise_comes_close_to_the_minimum(loss):
    rows, targets = table(4, loss=loss)
    event = SampledGaussian(1.0, l2_units(20.0, loss), rows.shape[1] * loss.outputs)
    gate = gate_of(rows, targets, event, GRADIENT, 400)
    found = stochastic_descent(gate, loss, len(rows), 8.0, 400)
    best = minimise(rows, targets, loss, 8.0, gap=1e-8)
    reached = [values(loss, rows @ w.T, targets).mean() for w in (found, best)]
    assert reached[0] - reached[1] < 2e-3


def test_projection_is_nearest_and_idempotent():
    rng = np.random.default_rng(5)
    for _ in range(50):
        v, radius = rng.normal(0, 2, (2, 4)), rng.uniform(0.1, 5)
        p = project(v, radius)
        assert np.abs(p).sum() <= radius * (1 + 1e-12)
        np.testing.assert_allclose(project(p, radius), p, atol=1e-12)
        # Nearest: ⟨v − p, s − p⟩ ≤ 0 for every vertex s.
        g = v - p
        assert radius * np.abs(g).max() - (g * p).sum() <= 1e-9
        # In a metric: ⟨d·(v − p), s − p⟩ ≤ 0.
        d = rng.uniform(0.1, 5, v.shape)
        q = project(v, radius, d)
        assert np.abs(q).sum() <= radius * (1 + 1e-12)
        assert radius * np.abs(d * (v - q)).max() - (d * (v - q) * q).sum() <= 1e-9
    inside = np.array([[0.2, -0.1]])
    assert project(inside, 1.0) is inside
