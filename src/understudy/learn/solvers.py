"""The two solvers, over released numbers, and the L1 ball that both stay in (docs/learn.md).

Frank-Wolfe goes towards one noisy vertex of the ball after the other, w_{t+1} = w_t + γ_t·(s_t − w_t)
with γ_t = 2/(t + 2 + k). Steps are exact: w_t = 2r/((t+k)(t+k+1))·A_t with whole numbers A_{t+1} = A_t
+ (t+k+1)·(±e_j). Iterates have at most t entries that are not 0 and stay in the ball. With h_t = E
F(w_t) − F*, C = L1·diam², diam = 2r, and ν = (2Δ/ε0)·ln K the error of a pick, Δ = c·r·L0/n (c = 1
add-remove, 2 replace), h_{t+1} ≤ (1 − γ_t)·h_t + γ_t·ν + γ_t²·C/2, hence the bound of docs/learn.md on
h_T.

Stochastic descent takes projected, averaged steps along noisy gradients, 0.1·√(0.2/ν) for noise of
norm ν on the mean gradient, shorter in a small ball; they adapt to the gradients' own second moments
and fall to nothing (Kingma-Ba 2015). Iterates are projected to the L1 ball in the metric of those
steps, and the average over the last half is returned. The noisy sum is divided by the public q·n.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from understudy._types import Floats
from understudy.learn.plans import GRADIENT, PICK, START
from understudy.privacy.cost import SampledGaussian
from understudy.privacy.gate import Gate
from understudy.privacy.losses import Loss
from understudy.privacy.questions.descent import (
    UNIT,
    LinearGradient,
    SteepestVertex,
    TargetLevels,
    Weights,
)

_UNIT = 2.0**-24
_FIRST, _SECOND, _TINY = 0.9, 0.99, 1e-12
_STEP, _NOISE, _SHORTEST, _LONGEST, _WIDE = 0.1, 0.2, 0.03, 0.5, 40.0


def project(weights: Floats, radius: float, metric: Floats | None = None) -> Floats:
    """argmin Σ d_j·(w_j − weights_j)² over ‖w‖₁ ≤ radius; d = 1 without `metric` (Duchi et al. 2008).

    Soft thresholding at θ/d_j, with the θ ≥ 0 for which the L1 norm is the radius. Steps scaled by 1/d
    need the projection of that metric: in another one they rest at a point that is not the minimum.
    """
    sizes = np.abs(weights).reshape(-1)
    if sizes.sum() <= radius:
        return weights
    ease = np.ones(sizes.size) if metric is None else 1.0 / metric.reshape(-1)
    order = np.argsort(-sizes / ease)
    excess = np.cumsum(sizes[order]) - radius
    thresholds = excess / np.cumsum(ease[order])
    last = np.flatnonzero(sizes[order] / ease[order] > thresholds)[-1]
    left = np.maximum(sizes - thresholds[last] * ease, 0.0)
    return np.sign(weights) * left.reshape(weights.shape)


def frank_wolfe(
    gate: Gate,
    loss: Loss,
    rows: int,
    radius: float,
    steps: int,
    *,
    delay: int = 0,
    kept: range | None = None,
) -> Floats:
    """Weights (outputs, width): the average of the iterates w_{t+1}, t in `kept`; the last if None.

    Where the plan has a charge for it, scores begin at the best constant, by noisy sums over about
    `rows` rows, and the first weight, that of the intercept, has it added in the end.
    """
    kept = range(steps - 1, steps) if kept is None else kept
    start = np.zeros(loss.outputs)
    if START in gate.plan:
        start = loss.constant(gate.ask(START, TargetLevels(loss)).astype(np.float64), rows)
    whole = np.zeros((loss.outputs, gate.facts.shape[0]), np.int64)
    total = np.zeros(whole.shape)
    public = Weights(whole, radius, tuple(start.tolist()))
    for t in range(delay, delay + steps):
        picked = gate.ask(PICK, SteepestVertex(loss, public))
        whole[picked.output, picked.feature] += (t + 1) * picked.sign
        public = replace(public, unit=2 * radius / ((t + 1) * (t + 2)))
        if t - delay in kept:
            total += public.values
    found = total / len(kept)
    found[:, 0] += start
    return found


def stochastic_descent(gate: Gate, loss: Loss, rows: int, radius: float, steps: int) -> Floats:
    """Weights (outputs, width): the average of the last half of `steps` iterates, in the ball."""
    event = gate.plan.event(GRADIENT, SampledGaussian)
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
