"""Private stochastic gradient descent: projected, averaged steps along released noisy gradients.

Everything after the release of a gradient is post-processing. Steps are the longer the less noise the
plan has, 0.1·√(0.2/ν) for noise of norm ν on the mean gradient, and shorter in a small ball; they adapt
to the gradients' own second moments and fall to nothing (Kingma-Ba 2015). Iterates are projected to the
L1 ball in the metric of those steps, and the average over the last half of them is returned. The noisy
sum is divided by the public q·n.
"""

from __future__ import annotations

import math

import numpy as np

from understudy.learn.ball import project
from understudy.learn.plans import GRADIENT
from understudy.privacy.cost import SampledGaussian
from understudy.privacy.gate import Gate
from understudy.privacy.losses import Loss
from understudy.privacy.questions.descent import UNIT, LinearGradient, Reals, Weights

__all__ = ["stochastic_descent"]

_UNIT = 2.0**-24
_FIRST, _SECOND, _TINY = 0.9, 0.99, 1e-12
_STEP, _NOISE, _SHORTEST, _LONGEST, _WIDE = 0.1, 0.2, 0.03, 0.5, 40.0


def stochastic_descent(gate: Gate, loss: Loss, rows: int, radius: float, steps: int) -> Reals:
    """Weights (outputs, width): the average of the last half of `steps` iterates, in the ball."""
    event = gate.plan[GRADIENT].event
    assert isinstance(event, SampledGaussian)
    shape = (loss.outputs, gate.facts.shape[0])
    weights, total = np.zeros(shape), np.zeros(shape)
    first, second = np.zeros(shape), np.zeros(shape)
    spread = event.sigma * loss.bound / UNIT / (event.rate * rows) * math.sqrt(total.size)
    length = min(max(_STEP * math.sqrt(_NOISE / spread), _SHORTEST), _LONGEST)
    length *= min(1.0, radius / _WIDE)
    kept = range(steps // 2, steps)
    for t in range(steps):
        public = Weights(np.rint(weights / _UNIT).astype(np.int64), _UNIT)
        gradient = gate.ask(GRADIENT, LinearGradient(loss, public)) / (event.rate * rows)
        first = _FIRST * first + (1 - _FIRST) * gradient
        second = _SECOND * second + (1 - _SECOND) * gradient**2
        mean = first / (1 - _FIRST ** (t + 1))
        size = np.sqrt(second / (1 - _SECOND ** (t + 1))) + _TINY
        weights = project(weights - length * (1 - t / steps) * mean / size, radius, size)
        if t in kept:
            total += weights
    return total / len(kept)
