"""The same models WITHOUT privacy, for comparison only.

They minimise the same loss over the same L1 ball and the same public box, exactly, by accelerated
projected gradients (Beck-Teboulle 2009). They know no curator, no ledger and no noise: nothing that
they return may be published where rows are private.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from understudy.learn.ball import project
from understudy.learn.linear import LinearClassifier, LinearModel, LinearRegressor, positive
from understudy.privacy.features import Box
from understudy.privacy.losses import Loss

__all__ = ["NonPrivateLasso", "NonPrivateLogisticRegression", "minimise"]

Reals = NDArray[np.float64]
_STEPS, _TOLERANCE = 5_000, 1e-7


def minimise(
    features: Reals, targets: Reals, loss: Loss, radius: float, steps: int = _STEPS
) -> Reals:
    """argmin of the mean loss over ‖w‖₁ ≤ radius; NOT PRIVATE.

    Monotone restarts; ends when a step moves no weight by more than a ten millionth of the radius.
    """
    n = len(features)
    smooth = loss.smooth * float(np.linalg.norm(features.T @ features / n, 2))
    weights = ahead = np.zeros((loss.outputs, features.shape[1]))
    momentum, before = 1.0, np.inf
    for _ in range(steps):
        scores = features @ ahead.T
        gradient = loss.residuals(scores, targets).T @ features / n
        moved = project(ahead - gradient / smooth, radius)
        value = float(loss.values(features @ moved.T, targets).mean())
        if value > before:  # restart from where it was best
            ahead, momentum, before = weights, 1.0, np.inf
            continue
        if np.abs(moved - weights).max() <= _TOLERANCE * radius:
            return moved
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + (momentum - 1) / following * (moved - weights)
        weights, momentum, before = moved, following, value
    return weights


class _NonPrivate(LinearModel):
    def _problem(self, y: NDArray[Any]) -> tuple[Loss, Reals]:
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn WITHOUT privacy."""
        rows, given = self._rows(X, y)
        box = Box.of(self.bounds, rows.shape[1], intercept=self.fit_intercept)
        loss, targets = self._problem(given)
        radius = positive("radius", self.radius)
        return self._set(box, minimise(box.scaled(rows), targets, loss, radius))


class NonPrivateLasso(LinearRegressor, _NonPrivate):
    """`PrivateLasso` without privacy: for comparison only."""

    def __init__(
        self,
        *,
        bounds: Any = None,
        target_bounds: Any = None,
        radius: float = 2.0,
        fit_intercept: bool = True,
    ) -> None:
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.radius = radius
        self.fit_intercept = fit_intercept


class NonPrivateLogisticRegression(LinearClassifier, _NonPrivate):
    """`PrivateLogisticRegression` without privacy: for comparison only."""

    def __init__(
        self,
        *,
        bounds: Any = None,
        classes: Any = None,
        radius: float = 100.0,
        fit_intercept: bool = True,
    ) -> None:
        self.bounds = bounds
        self.classes = classes
        self.radius = radius
        self.fit_intercept = fit_intercept
