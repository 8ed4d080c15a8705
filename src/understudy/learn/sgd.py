"""Private stochastic gradient descent: projected, averaged steps along released noisy gradients.

Everything after the release of a gradient is post-processing: the step sizes adapt to the gradients'
own second moments, less what the public noise adds to them; iterates are projected to the L1 ball; the
average over the last half of the steps is returned.
"""

from __future__ import annotations

import numpy as np

from understudy.learn.ball import project
from understudy.learn.plans import GRADIENT
from understudy.privacy.cost import SampledGaussian
from understudy.privacy.descent import UNIT, Descent, Reals, Weights

__all__ = ["stochastic_descent"]

_UNIT = 2.0**-24
_FIRST, _SECOND, _STEP = 0.9, 0.99, 0.5


def stochastic_descent(descent: Descent, rows: int, radius: float, steps: int) -> Reals:
    """Weights (outputs, width): the average of the last half of `steps` iterates, in the ball."""
    event = descent.planned(GRADIENT)
    assert isinstance(event, SampledGaussian)
    shape = (descent.loss.outputs, descent.width)
    weights, total = np.zeros(shape), np.zeros(shape)
    first, second = np.zeros(shape), np.zeros(shape)
    size = event.rate * rows
    variance = (event.sigma * descent.loss.bound / UNIT / size) ** 2
    kept = 0
    for t in range(steps):
        public = Weights(np.rint(weights / _UNIT).astype(np.int64), _UNIT)
        gradient = descent.gradient(GRADIENT, public) / size
        first = _FIRST * first + (1 - _FIRST) * gradient
        second = _SECOND * second + (1 - _SECOND) * gradient**2
        mean = first / (1 - _FIRST ** (t + 1))
        moment = second / (1 - _SECOND ** (t + 1))
        spread = np.sqrt(np.maximum(moment - variance, variance / 4))
        weights = project(weights - _STEP * (1 - t / steps) * mean / spread, radius)
        if t >= steps // 2:
            total += weights
            kept += 1
    return total / kept
