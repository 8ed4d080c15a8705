"""The curve and the rules, by hand and against the statistic that they are."""

import numpy as np
import pytest
from scipy import stats

from understudy.audit.roc import mean_interval, rank_rule, roc


def test_the_curve_by_hand_with_ties():
    curve = roc(np.array([3.0, 2, 2, 1]), np.array([True, True, False, False]))
    assert curve.fpr.tolist() == [0, 0, 0.5, 1]
    assert curve.tpr.tolist() == [0, 0.5, 1, 1]
    assert curve.auc == pytest.approx(0.875)
    assert curve.advantage == pytest.approx(0.5)
    assert curve.tpr_at(0) == 0.5
    assert curve.tpr_at(0.49) == 0.5
    assert curve.tpr_at(0.5) == 1


def test_auc_is_the_mann_whitney_statistic():
    rng = np.random.default_rng(3)
    found = rng.integers(0, 6, 200).astype(float)
    members = rng.random(200) < 0.4
    expected = stats.mannwhitneyu(found[members], found[~members]).statistic
    expected /= members.sum() * (~members).sum()
    assert roc(found, members).auc == pytest.approx(expected)


def test_the_rank_rule_declares_as_many_as_there_are():
    """N rows declared of 2N: then TN = TP and the accuracy is TP/N."""
    rng = np.random.default_rng(0)
    found, members = rng.normal(size=80), np.arange(80) < 40
    top = set(np.argsort(-found)[:40].tolist())
    assert rank_rule(found, members, rng) == len(top & set(range(40))) / 40


def test_ties_fall_by_lot_and_not_by_order():
    rng = np.random.default_rng(1)
    members = np.arange(200) < 100
    right = [rank_rule(np.zeros(200), members, rng) for _ in range(200)]
    assert mean_interval(right, 0.9999).low < 0.5 < mean_interval(right, 0.9999).high
