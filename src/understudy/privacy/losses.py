"""Losses of linear models: a row's gradient is its residuals times its features.

With scores z = ⟨w, x⟩ (one per output k) the gradient of ℓ(z; y) is ∂ℓ/∂z_k · x, and
|∂ℓ/∂z_k| ≤ `bound`, so that with |x_j| ≤ 1 no coordinate of a row's gradient passes `bound`; that is
L0. Curvature: |∂²ℓ/∂z²| ≤ `smooth`.

* `Squared`: ½(z − y)² with the residual held within ±limit (Huber's loss); L0 = limit. For |y| ≤ 1
  and ‖w‖₁ ≤ r the residual is at most 1 + r anyway.
* `Logistic`: ln(1 + e^z) − y·z, residual σ(z) − y; L0 = 1, curvature ¼.
* `Softmax`: −ln π_y, π the softmax of (z, 0): the last class is the reference; residual π_k − 1[y = k],
  L0 = 1, ‖·‖₂ ≤ √2, curvature ½.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Logistic", "Loss", "Softmax", "Squared"]

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Squared:
    """Half the squared residual, linear beyond `limit`."""

    limit: float = math.inf
    outputs: int = 1
    smooth: float = 1.0

    @property
    def bound(self) -> float:
        """The limit."""
        return self.limit

    def values(self, scores: Reals, targets: Reals) -> Reals:
        """½r² for |r| ≤ limit, else limit·(|r| − limit/2)."""
        gap = np.abs(scores[:, 0] - targets)
        inside = np.minimum(gap, self.limit)
        return inside * (gap - inside / 2)

    def residuals(self, scores: Reals, targets: Reals) -> Reals:
        """z − y, held within ±limit."""
        return np.clip(scores - targets[:, None], -self.limit, self.limit)


@dataclass(frozen=True, slots=True)
class Logistic:
    """Two classes; targets are 0 and 1."""

    outputs: int = 1
    bound: float = 1.0
    smooth: float = 0.25

    def values(self, scores: Reals, targets: Reals) -> Reals:
        """ln(1 + e^z) − y·z."""
        z = scores[:, 0]
        return np.logaddexp(0.0, z) - targets * z

    def residuals(self, scores: Reals, targets: Reals) -> Reals:
        """σ(z) − y."""
        from scipy.special import expit

        return expit(scores) - targets[:, None]


@dataclass(frozen=True, slots=True)
class Softmax:
    """`outputs` + 1 classes, targets 0 to `outputs`; the last is the reference."""

    outputs: int
    bound: float = 1.0
    smooth: float = 0.5

    def values(self, scores: Reals, targets: Reals) -> Reals:
        """logsumexp(z, 0) − z_y."""
        whole = np.concatenate([scores, np.zeros((len(scores), 1))], axis=1)
        chosen = np.take_along_axis(whole, targets.astype(np.int64)[:, None], axis=1)[:, 0]
        top = whole.max(axis=1)
        return top + np.log(np.exp(whole - top[:, None]).sum(axis=1)) - chosen

    def residuals(self, scores: Reals, targets: Reals) -> Reals:
        """π_k − 1[y = k]; classes are added up in order, whatever the number of rows."""
        top = np.maximum(scores.max(axis=1), 0.0)
        parts = np.exp(scores - top[:, None])
        total = np.exp(-top)
        for k in range(self.outputs):
            total = total + parts[:, k]
        shares = parts / total[:, None]
        return shares - (targets[:, None] == np.arange(self.outputs))


Loss = Squared | Logistic | Softmax
"""A convex loss of scores (n, outputs) against targets (n,): a row's residuals depend on it alone."""
