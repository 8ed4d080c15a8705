"""How well scores tell members from others: the ROC curve, and rules from scores to guesses.

The rank rule knows how many members there are and declares the N best scores of 2N rows members; then
TN = TP and the accuracy is TP/N.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from understudy._types import Bools, Floats, Rng
from understudy.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class Roc:
    """The curve from (0, 0) to (1, 1), one point per distinct score, so ties are drawn straight."""

    fpr: Floats
    tpr: Floats

    @property
    def auc(self) -> float:
        """P(member's score > other's) + ½P(equal)."""
        return float(np.trapezoid(self.tpr, self.fpr))

    @property
    def advantage(self) -> float:
        """The largest TPR − FPR. Chosen after the fact, so it is no bound on anything."""
        return float(np.max(self.tpr - self.fpr))

    def tpr_at(self, fpr: float) -> float:
        """TPR of the best threshold whose FPR is at most this."""
        return float(self.tpr[np.searchsorted(self.fpr, fpr, side="right") - 1])


def roc(scores: Floats, members: Bools) -> Roc:
    """The curve of "member iff score ≥ threshold" over all thresholds.

    Raises:
        InputError: There are no members, no others, or a score is not a number.
    """
    scores, members = np.ravel(scores), np.ravel(members)
    inside, outside = int(members.sum()), int((~members).sum())
    if not inside or not outside:
        raise InputError(
            f"a ROC curve needs both kinds of rows: {inside} members, {outside} others"
        )
    if np.isnan(scores).any():
        raise InputError("a score is not a number; the model's predictions are not finite")
    from sklearn.metrics import roc_curve

    ranks = np.unique(scores, return_inverse=True)[1]  # an infinite score is one, too
    fpr, tpr, _ = roc_curve(members, ranks, drop_intermediate=False)
    return Roc(fpr, tpr)


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over independent trainings, between `low` and `high` at the confidence asked for."""

    mean: float
    low: float
    high: float
    runs: int


def mean_interval(values: Sequence[float] | Floats, confidence: float = 0.95) -> Interval:
    """Student's interval for a mean of independent runs.

    Rows of one run share a model, so intervals count runs and never rows.
    """
    found = np.asarray(values, dtype=float)
    mean = float(found.mean())
    if len(found) < 2:
        return Interval(mean, -math.inf, math.inf, len(found))
    spread = found.std(ddof=1) / len(found) ** 0.5
    half = float(stats.t.ppf(0.5 + confidence / 2, len(found) - 1) * spread)
    return Interval(mean, mean - half, mean + half, len(found))


def rank_rule(scores: Floats, members: Bools, rng: Rng) -> float:
    """The accuracy of declaring as many of the best scores members as there are; ties fall by lot.

    Below one half a rule is to be flipped, it is no privacy.
    """
    order = np.lexsort((rng.random(len(scores)), -scores))
    called = np.zeros(len(scores), dtype=bool)
    called[order[: int(members.sum())]] = True
    return float((called == members).mean())
