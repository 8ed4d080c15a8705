"""Scores by hand, and what a shadow attack is shown against finite differences."""

import math

import numpy as np
import pytest
from scipy import stats

from understudy.audit import scores
from understudy.errors import InputError

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


class Linear:
    coef_ = np.array([[1.0, 0.0], [0.0, 1.0]])
    intercept_ = np.array([0.0, 0.5])


def test_white_box_features_are_the_gradient_by_finite_differences():
    rng = np.random.default_rng(9)
    x, y = rng.normal(size=(3, 2)), np.array([0, 1, 1])

    def probabilities(coef, intercept):
        z = x @ coef.T + intercept
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    p = probabilities(Linear.coef_, Linear.intercept_)
    found = scores.white_box(Linear(), x, p, y)
    black = scores.black_box(p, y)
    assert np.array_equal(found[:, : black.shape[1]], black)
    assert found[:, -4:-2] == pytest.approx(x @ Linear.coef_.T + Linear.intercept_)
    norms = np.zeros((3, 2))
    for c in range(2):
        squares = np.zeros(3)
        for j in range(3):
            coef, intercept = Linear.coef_.copy(), Linear.intercept_.copy()
            (coef if j < 2 else intercept)[(c, j) if j < 2 else c] += 1e-6
            moved = -np.log(probabilities(coef, intercept)[np.arange(3), y])
            squares += ((moved + np.log(p[np.arange(3), y])) / 1e-6) ** 2
        norms[:, c] = np.sqrt(squares)
    assert found[:, -2:] == pytest.approx(norms, rel=1e-4)


def test_a_model_that_shows_nothing_is_named():
    with pytest.raises(InputError, match="object shows nothing of its inside"):
        scores.white_box(object(), np.zeros((1, 2)), P[:1], Y[:1])
