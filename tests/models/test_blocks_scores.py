"""Scores of an ordered column: in order, of mean 0 and variance 1."""

import numpy as np
import pytest

from understudy.models.blocks import scores


def test_scores_have_mean_0_variance_1_and_leave_other_values_in_the_middle():
    estimate = np.array([5.0, 1, 3, 2, 4])
    share = estimate / estimate.sum()
    found = scores(estimate, 4)
    assert share @ found == pytest.approx(0, abs=1e-12)
    assert share @ found**2 == pytest.approx(1)
    assert np.all(np.diff(found[:4]) > 0)
    assert found[4] == pytest.approx(0, abs=1e-12)


def test_where_most_rows_lie_beside_the_order_the_score_is_whether_they_do():
    found = scores(np.array([1.0, 2, 1, 96]), 3)
    assert np.ptp(found[:3]) == pytest.approx(0)
    assert found[0] > 0 > found[3]


def test_of_a_sibling_the_order_is_the_score_though_most_have_none():
    found = scores(np.array([1.0, 2, 1, 96]), 3, sibling=True)
    assert np.all(np.diff(found[:3]) > 0)
    assert found[3] == pytest.approx(0, abs=1e-12)
