"""From scores to guesses: the rank rule, and a threshold found on calibration runs.

The rank rule knows how many members there are and declares the N best scores of 2N rows members; then
TN = TP and the accuracy is TP/N. The threshold rule knows nothing about the rows that it judges: its τ
comes from other runs. A τ between the true means of members and others would use the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.audit.roc import roc
from understudy.errors import InputError

__all__ = ["Guessed", "best_threshold", "rank_rule", "threshold_rule"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Guessed:
    """What came of one guess per row."""

    hits: int
    members: int
    alarms: int
    others: int

    @property
    def tpr(self) -> float:
        """Members called members."""
        return self.hits / self.members

    @property
    def fpr(self) -> float:
        """Others called members."""
        return self.alarms / self.others

    @property
    def accuracy(self) -> float:
        """Right guesses among all; below one half the rule is to be flipped, it is no privacy."""
        return (self.hits + self.others - self.alarms) / (self.members + self.others)


def rank_rule(scores: Floats, members: Bools, rng: np.random.Generator) -> Guessed:
    """Declare as many of the best scores members as there are members; ties fall by lot."""
    count = int(members.sum())
    order = np.lexsort((rng.random(len(scores)), -scores))
    called = np.zeros(len(scores), dtype=bool)
    called[order[:count]] = True
    return _count(called, members)


def threshold_rule(scores: Floats, members: Bools, threshold: float) -> Guessed:
    """Declare a member whoever scores at least the threshold."""
    return _count(scores >= threshold, members)


def best_threshold(scores: Floats, members: Bools) -> float:
    """The τ with the largest TPR − FPR on calibration rows; never on the rows to be judged."""
    if len(scores) == 0:
        raise InputError("a threshold needs calibration rows; there are none")
    curve = roc(scores, members)
    levels = np.unique(scores)[::-1]
    best = int(np.argmax(curve.tpr - curve.fpr))
    return float("inf") if best == 0 else float(levels[best - 1])


def _count(called: Bools, members: Bools) -> Guessed:
    return Guessed(
        hits=int((called & members).sum()),
        members=int(members.sum()),
        alarms=int((called & ~members).sum()),
        others=int((~members).sum()),
    )
