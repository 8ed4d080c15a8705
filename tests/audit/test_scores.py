"""Scores by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from understudy.audit import scores

P = np.array([[0.9, 0.1, 0.0], [1 / 3, 1 / 3, 1 / 3], [0.2, 0.5, 0.3]])


Y = np.array([0, 2, 0])


def test_scores_by_hand():
    assert scores.correctness(P, Y).tolist() == [1, 0, 0]
    assert scores.confidence(P, Y).tolist() == pytest.approx([0.9, 1 / 3, 0.5])
    assert scores.loss(P, Y).tolist() == pytest.approx(np.log([0.9, 1 / 3, 0.2]).tolist())
    expected = [-stats.entropy(p, base=2) for p in P]
    assert scores.entropy(P, Y).tolist() == pytest.approx(expected)
    assert scores.logit(P, Y).tolist() == pytest.approx([math.log(9), -math.log(2), -math.log(4)])
    assert scores.squared_loss(np.array([1.0]), np.array([3.0])).tolist() == [-2]


def test_members_have_low_entropy_and_the_score_says_so():
    """Entropy is largest, one bit, at one half: the score of a sure prediction is the larger."""
    sure, torn = np.array([[0.99, 0.01]]), np.array([[0.5, 0.5]])
    label = np.array([0])
    assert scores.entropy(sure, label) > scores.entropy(torn, label)
    assert scores.entropy(torn, label)[0] == -1
    assert scores.entropy(np.array([[1.0, 0.0]]), label)[0] == 0


def test_scores_stay_finite_for_certain_predictions():
    sure = np.array([[1.0, 0.0], [0.0, 1.0]])
    for score in (*scores.SCORES.values(), scores.logit):
        assert np.isfinite(score(sure, np.array([0, 0]))).all()
