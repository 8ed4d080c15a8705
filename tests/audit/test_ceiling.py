"""What differential privacy leaves to any attack."""

import math

import numpy as np
import pytest

from understudy.audit import ceiling


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.5, 1e-3), (1.0, 0.0), (8.0, 0.1)])
def test_ceilings_are_the_best_test_that_the_constraints_allow(epsilon, delta):
    fpr = np.linspace(0, 1, 100_001)
    best = ceiling.tpr(fpr, epsilon, delta)
    ratio = math.exp(epsilon)
    assert np.all(best <= ratio * fpr + delta + 1e-12)
    assert np.all(1 - fpr <= ratio * (1 - best) + delta + 1e-12)
    assert ceiling.advantage(epsilon, delta) == pytest.approx(float(np.max(best - fpr)), abs=1e-4)
    assert ceiling.accuracy(epsilon, delta) == pytest.approx(
        (ratio + delta) / (1 + ratio), rel=1e-12
    )


def test_randomised_response_attains_the_ceilings():
    epsilon = 1.3
    p = 1 / (1 + math.exp(-epsilon))
    assert ceiling.accuracy(epsilon, 0) == pytest.approx(p)
    assert ceiling.tpr(1 - p, epsilon, 0) == pytest.approx(p)
