"""What is learnt from shadows, against the best possible test."""

import math

import numpy as np
import pytest
from scipy import stats

from understudy.audit import shadows
from understudy.audit.roc import roc
from understudy.errors import InputError


def test_lira_is_the_best_test_on_normal_scores():
    """Known laws: its ROC is that of Neyman and Pearson, Φ(Φ⁻¹(FPR) + μ)."""
    rng, runs, points, mu = np.random.default_rng(5), 400, 400, 1.5
    hard = rng.normal(0, 3, points)  # how hard a row is, whatever its membership
    inside = rng.random((runs, points)) < 0.5
    found = hard + mu * inside + rng.normal(size=(runs, points))
    judged = shadows.lira_online(found[200:], found[:200], inside[:200])
    curve = roc(judged, inside[200:])
    for fpr in (0.001, 0.01, 0.1, 0.5):
        best = stats.norm.cdf(stats.norm.ppf(fpr) + mu)
        assert curve.tpr_at(fpr) == pytest.approx(best, abs=0.02)
    assert curve.auc == pytest.approx(stats.norm.cdf(mu / 2**0.5), abs=0.01)
    away = roc(shadows.lira_offline(found[200:], found[:200], inside[:200]), inside[200:])
    assert away.auc == pytest.approx(curve.auc, abs=0.01)
    assert roc(found[200:], inside[200:]).auc < curve.auc - 0.15  # one threshold for all rows


def test_lira_pools_where_shadows_are_few():
    rng = np.random.default_rng(6)
    inside = rng.random((40, 300)) < 0.5
    found = inside + rng.normal(size=(40, 300))
    judged = shadows.lira_online(found[20:], found[:20], inside[:20])
    assert np.isfinite(judged).all()
    assert roc(judged, inside[20:]).auc > 0.7


def test_lira_gives_nothing_for_a_row_without_a_law():
    inside = np.array([[True, False], [True, True], [True, False], [True, True]])
    found = np.array([[1.0, 0.0], [2.0, 1.0], [1.5, 0.2], [1.2, 1.1]])
    assert shadows.lira_online(np.array([9.0, 9.0]), found, inside)[0] == 0
    assert shadows.lira_offline(np.array([9.0, 9.0]), found, inside)[0] == 0.5


@pytest.mark.slow
def test_the_network_learns_what_a_line_cannot():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(1200, 2))
    ring = np.square(x).sum(axis=1) < 1.4
    made = shadows.train_network(x[:800], ring[:800], key=1)
    assert roc(made(x[800:]), ring[800:]).auc > 0.97
    again = shadows.train_network(x[:800], ring[:800], key=1)
    assert np.array_equal(made(x), again(x))


def test_the_network_refuses_what_it_cannot_learn():
    with pytest.raises(InputError, match="not finite"):
        shadows.train_network(np.full((4, 2), np.nan), np.arange(4) < 2, key=0)


def test_the_discriminant_is_the_best_test_between_two_normals():
    rng = np.random.default_rng(8)
    mixing = rng.normal(size=(4, 4))
    shift = np.array([1.0, 0, 0.5, -0.5])
    inside = rng.random(4000) < 0.5
    x = rng.normal(size=(4000, 4)) @ mixing.T + np.outer(inside, shift)
    made = shadows.fit_discriminant(x[:2000], inside[:2000])
    mu = math.sqrt(shift @ np.linalg.solve(mixing @ mixing.T, shift))
    assert roc(made(x[2000:]), inside[2000:]).auc == pytest.approx(
        stats.norm.cdf(mu / 2**0.5), abs=0.02
    )


def test_the_discriminant_bears_features_that_never_move():
    x = np.column_stack([np.ones(20), np.arange(20) % 2, np.arange(20)])
    made = shadows.fit_discriminant(x, np.arange(20) % 2 == 0)
    assert np.isfinite(made(x)).all()
