"""The same models WITHOUT privacy, for comparison only.

They minimise the same loss over the same L1 ball and the same public box, by quasi-Newton steps and,
where these end outside the ball, accelerated projected gradients (Beck-Teboulle 2009). They know no
gate, no ledger and no noise: nothing that they return may be published where rows are private.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from understudy.learn.linear import LinearClassifier, LinearModel, LinearRegressor, settings
from understudy.learn.plans import radius_for
from understudy.learn.solvers import project
from understudy.privacy.features import Box
from understudy.privacy.losses import Logistic, Loss, Softmax, Squared

Reals = NDArray[np.float64]
_STEPS, _GAP = 1_000, 1e-4
SMOOTH = {Squared: 1.0, Logistic: 0.25, Softmax: 0.5}
"""Curvature: |∂²ℓ/∂z²| is at most this."""


def values(loss: Loss, scores: Reals, targets: Reals) -> Reals:
    """The loss of every row."""
    match loss:
        case Squared(limit=limit):
            gap = np.abs(scores[:, 0] - targets)
            inside = np.minimum(gap, limit)
            return inside * (gap - inside / 2)
        case Logistic():
            return np.logaddexp(0.0, scores[:, 0]) - targets * scores[:, 0]
        case Softmax():
            whole = np.concatenate([scores, np.zeros((len(scores), 1))], axis=1)
            chosen = np.take_along_axis(whole, targets.astype(np.int64)[:, None], axis=1)[:, 0]
            top = whole.max(axis=1)
            return top + np.log(np.exp(whole - top[:, None]).sum(axis=1)) - chosen


def minimise(
    features: Reals, targets: Reals, loss: Loss, radius: float, gap: float = _GAP
) -> Reals:
    """argmin of the mean loss over ‖w‖₁ ≤ radius, up to `gap`; NOT PRIVATE.

    Where quasi-Newton steps end inside the ball, that is the minimum. Otherwise projected gradients
    until ⟨∇F, w⟩ + r·‖∇F‖_∞ ≤ gap, which bounds F(w) − F* (Jaggi 2013).
    """
    from scipy.optimize import minimize

    n, shape = len(features), (loss.outputs, features.shape[1])

    def value_and_gradient(weights: Reals) -> tuple[float, Reals]:
        scores = features @ weights.reshape(shape).T
        slope = loss.residuals(scores, targets).T @ features / n
        return float(values(loss, scores, targets).mean()), slope.reshape(-1)

    start, effort = np.zeros(math.prod(shape)), {"maxiter": _STEPS, "gtol": 1e-6}
    free = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=effort).x
    if np.abs(free).sum() <= radius:
        return free.reshape(shape)
    weights = ahead = project(free, radius)
    narrow = features if features.shape[1] <= n else features.T  # the same largest singular value
    smooth = SMOOTH[type(loss)] * float(np.linalg.norm(narrow.T @ narrow / n, 2))
    momentum, best = 1.0, np.inf
    for _ in range(_STEPS):
        _, slope = value_and_gradient(ahead)
        moved = project(ahead - slope / smooth, radius)
        value, at = value_and_gradient(moved)
        if moved @ at + radius * np.abs(at).max() <= gap:
            return moved.reshape(shape)
        if value > best:  # begin again from where it was best
            ahead, momentum, best = weights, 1.0, np.inf
            continue
        following = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / following * (moved - weights)
        weights, momentum, best = moved, following, value
    return weights.reshape(shape)


class _NonPrivate(LinearModel):
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn WITHOUT privacy."""
        rows, given = self._rows(X, y)
        box = Box.of(self.bounds, rows.shape[1], intercept=self.fit_intercept)
        radius = radius_for("sgd", self.radius, classes=is_classifier(self))
        loss, targets = self._problem(given, radius)
        return self._set(box, minimise(box.scaled(rows), targets, loss, radius))


@settings
class NonPrivateLasso(LinearRegressor, _NonPrivate):
    """`PrivateLasso` without privacy: for comparison only."""


@settings
class NonPrivateLogisticRegression(LinearClassifier, _NonPrivate):
    """`PrivateLogisticRegression` without privacy: for comparison only."""
