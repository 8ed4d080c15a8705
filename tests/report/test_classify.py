"""The classifier that comparisons are made with."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.report.classify import area, fit


def test_the_classifier_is_at_its_optimum():
    """Where the ridge is nothing, every class is as frequent among the rows of a value as predicted."""
    rng = np.random.default_rng(0)
    codes = [rng.integers(0, k, 800).astype(np.uint8) for k in (3, 4)]
    labels = (codes[0] + codes[1] + rng.integers(0, 3, 800)) % 3
    off = fit(codes, labels, (3, 4), ridge=1e-6).probabilities(codes) - np.eye(3)[labels]
    for column, size in zip(codes, (3, 4), strict=True):
        assert np.abs(np.eye(size)[column].T @ off / 800).max() < 1e-3


def test_a_single_class_is_predicted_as_such():
    codes = [np.zeros(5, dtype=np.uint8)]
    assert fit(codes, np.full(5, 2), (1,)).predict(codes).tolist() == [2] * 5


def test_the_area_counts_pairs():
    rng = np.random.default_rng(1)
    scores, positive = rng.integers(0, 5, 40).astype(float), rng.random(40) < 0.4
    wins = [(a > b) + (a == b) / 2 for a in scores[positive] for b in scores[~positive]]
    assert area(scores, positive) == pytest.approx(np.mean(wins))
