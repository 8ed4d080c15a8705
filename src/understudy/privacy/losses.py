"""Losses of linear models: a row's gradient is its residuals times its features.

With scores z = ⟨w, x⟩ (one per output k) the gradient of ℓ(z; y) is ∂ℓ/∂z_k · x, and
|∂ℓ/∂z_k| ≤ `bound`, so that with |x_j| ≤ 1 no coordinate of a row's gradient passes `bound`; that is
L0.

* `Squared`: ½(z − y)² with the residual held within ±limit (Huber's loss); L0 = limit. For |y| ≤ 1
  and ‖w‖₁ ≤ r the residual is at most 1 + r anyway.
* `Logistic`: ln(1 + e^z) − y·z, residual σ(z) − y; L0 = 1.
* `Softmax`: −ln π_y, π the softmax of (z, 0): the last class is the reference; residual π_k − 1[y = k],
  L0 = 1, ‖·‖₂ ≤ √2.

*Levels* are whole numbers that a row's target says of where its scores lie; from their sum over n rows
follows the best constant score (`constant`). `moves` says how far one row moves the sums: (step,
changes), at most so many of them by at most so much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from understudy._types import Floats, Whole
from understudy.privacy.relation import Relation

_FINE = 2**16  # Targets that are numbers are added up in steps of one over this


@dataclass(frozen=True, slots=True)
class Squared:
    """Half the squared residual, linear beyond `limit`."""

    limit: float = math.inf
    outputs: int = 1

    @property
    def bound(self) -> float:
        """The limit."""
        return self.limit

    def residuals(self, scores: Floats, targets: Floats) -> Floats:
        """z − y, held within ±limit."""
        return np.clip(scores - targets[:, None], -self.limit, self.limit)

    def levels(self, targets: Floats) -> Whole:
        """(n, 1): y, held within ±1, in steps of 2^−16."""
        return np.rint(_FINE * np.clip(targets, -1, 1)).astype(np.int64)[:, None]

    def moves(self, relation: Relation) -> tuple[int, int]:
        """From end to end where a row is replaced."""
        return _FINE * relation.marginal_l1(), 1

    def constant(self, sums: Floats, rows: int) -> Floats:
        """The mean."""
        return np.clip(sums / (_FINE * rows), -1, 1)


@dataclass(frozen=True, slots=True)
class Logistic:
    """Two classes; targets are 0 and 1."""

    outputs: int = 1
    bound: float = 1.0

    def residuals(self, scores: Floats, targets: Floats) -> Floats:
        """σ(z) − y."""
        from scipy.special import expit

        return expit(scores) - targets[:, None]

    def levels(self, targets: Floats) -> Whole:
        """(n, 1): 1 or −1."""
        return np.where(targets > 0.5, 1, -1).astype(np.int64)[:, None]

    def moves(self, relation: Relation) -> tuple[int, int]:
        """From −1 to 1 where a row is replaced."""
        return relation.marginal_l1(), 1

    def constant(self, sums: Floats, rows: int) -> Floats:
        """ln(p/(1 − p)) of the share p, which is taken for at least 1/√n, as is 1 − p."""
        share = np.clip((1 + sums / rows) / 2, rows**-0.5, 1 - rows**-0.5)
        return np.log(share / (1 - share))


@dataclass(frozen=True, slots=True)
class Softmax:
    """`outputs` + 1 classes, targets 0 to `outputs`; the last is the reference."""

    outputs: int
    bound: float = 1.0

    def residuals(self, scores: Floats, targets: Floats) -> Floats:
        """π_k − 1[y = k]; classes are added up in order, whatever the number of rows."""
        top = np.maximum(scores.max(axis=1), 0.0)
        parts = np.exp(scores - top[:, None])
        total = np.exp(-top)
        for k in range(self.outputs):
            total = total + parts[:, k]
        shares = parts / total[:, None]
        return shares - (targets[:, None] == np.arange(self.outputs))

    def levels(self, targets: Floats) -> Whole:
        """(n, outputs): 1 for the class of a row, unless it is the last."""
        return (targets[:, None] == np.arange(self.outputs)).astype(np.int64)

    def moves(self, relation: Relation) -> tuple[int, int]:
        """A row that is replaced leaves one class and joins another."""
        return 1, relation.marginal_l2_squared(1)

    def constant(self, sums: Floats, rows: int) -> Floats:
        """ln(p_k/p) against the last class; every share is taken for at least 1/√n."""
        shares = np.maximum(sums / rows, rows**-0.5)
        return np.log(shares / max(1 - float(shares.sum()), rows**-0.5))


Loss = Squared | Logistic | Softmax
"""A convex loss of scores (n, outputs) against targets (n,): a row's residuals depend on it alone."""
