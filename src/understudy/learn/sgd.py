"""Private stochastic gradient descent: projected, averaged steps along released noisy gradients.

Everything after the release of a gradient is post-processing: the step sizes adapt to the gradients'
own second moments and fall to nothing (Kingma-Ba 2015); iterates are projected to the L1 ball in
the metric of those steps; the average over the last half of the steps is returned. The noisy sum is
divided by the public q·n.
"""

from __future__ import annotations

import numpy as np

from understudy.learn.ball import project
from understudy.learn.plans import GRADIENT
from understudy.privacy.cost import SampledGaussian
from understudy.privacy.descent import Descent, Reals, Weights

__all__ = ["stochastic_descent"]

_UNIT = 2.0**-24
_FIRST, _SECOND, _STEP, _TINY = 0.9, 0.99, 0.1, 1e-12


def stochastic_descent(descent: Descent, rows: int, radius: float, steps: int) -> Reals:
    """Weights (outputs, width): the average of the last half of `steps` iterates, in the ball."""
    event = descent.planned(GRADIENT)
    assert isinstance(event, SampledGaussian)
    shape = (descent.loss.outputs, descent.width)
    weights, total = np.zeros(shape), np.zeros(shape)
    first, second = np.zeros(shape), np.zeros(shape)
    kept = range(steps // 2, steps)
    for t in range(steps):
        public = Weights(np.rint(weights / _UNIT).astype(np.int64), _UNIT)
        gradient = descent.gradient(GRADIENT, public) / (event.rate * rows)
        first = _FIRST * first + (1 - _FIRST) * gradient
        second = _SECOND * second + (1 - _SECOND) * gradient**2
        mean = first / (1 - _FIRST ** (t + 1))
        size = np.sqrt(second / (1 - _SECOND ** (t + 1))) + _TINY
        weights = project(weights - _STEP * (1 - t / steps) * mean / size, radius, size)
        if t in kept:
            total += weights
    return total / len(kept)
