"""What (ε, δ)-differential privacy leaves to any attack, whatever it knows.

For one record and a prior of one half; under `replace` also on average over the records of a random
half of 2N rows, since exchanging a member for a non-member is one step. All formulas follow from
TPR ≤ e^ε·FPR + δ and its mirror image 1 − FPR ≤ e^ε·(1 − TPR) + δ.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from understudy._types import Floats
from understudy.errors import InputError


def accuracy(epsilon: float, delta: float) -> float:
    """The largest accuracy: (e^ε + δ)/(1 + e^ε)."""
    _check(epsilon, delta)
    shrunk = math.exp(-epsilon)
    return (1 + delta * shrunk) / (1 + shrunk)


def advantage(epsilon: float, delta: float) -> float:
    """The largest TPR − FPR: (e^ε − 1 + 2δ)/(e^ε + 1)."""
    return 2 * accuracy(epsilon, delta) - 1


def tpr(fpr: ArrayLike, epsilon: float, delta: float) -> Floats:
    """The largest TPR at a given FPR: min(1, e^ε·FPR + δ, 1 − e^−ε·(1 − FPR − δ))."""
    _check(epsilon, delta)
    at = np.asarray(fpr, dtype=float)
    rising = math.exp(min(epsilon, 700.0)) * at + delta
    flat = 1 - math.exp(-epsilon) * (1 - at - delta)
    return np.minimum(1.0, np.minimum(rising, flat))


def _check(epsilon: float, delta: float) -> None:
    if not epsilon >= 0:
        raise InputError(f"epsilon = {epsilon} must be at least 0")
    if not 0 <= delta < 1:
        raise InputError(f"delta = {delta} must be at least 0 and below 1")
