"""What a shadow-model attack is shown of one row: outputs (black box), or also the inside (white box).

Shadow models are trained on rows that the attacker knows; the features of their own members and of
others are what the attack learns from. The target is only ever asked afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.audit import scores
from understudy.errors import InputError

__all__ = ["black_box", "has_inside", "white_box"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


def black_box(probabilities: Floats, labels: Labels) -> Floats:
    """Probabilities from the largest down, and the four scores with LiRA's logit."""
    ranked = -np.sort(-probabilities, axis=1)
    singles = [score(probabilities, labels) for score in scores.SCORES.values()]
    return np.column_stack([ranked, *singles, scores.logit(probabilities, labels)])


def has_inside(model: Any) -> bool:
    """Whether `white_box` can look: the model offers `internals(X, y)`, or is linear."""
    return hasattr(model, "internals") or (hasattr(model, "coef_") and hasattr(model, "intercept_"))


def white_box(model: Any, rows: Floats, probabilities: Floats, labels: Labels) -> Floats:
    """The black box's features, activations, the gradient's norm per block of parameters, the loss.

    For a linear model p = softmax(W[1, x]) the gradient of the loss in the weights of class c is
    (p_c − 1[y = c])·[1, x]; activations are the logits. Other models say theirs by `internals(X, y)`,
    one row of numbers per row.
    """
    outside = black_box(probabilities, labels)
    if hasattr(model, "internals"):
        inside = np.asarray(model.internals(rows, labels), dtype=float)
    elif has_inside(model):
        weights = np.atleast_2d(np.asarray(model.coef_, dtype=float))
        logits = rows @ weights.T + np.atleast_1d(np.asarray(model.intercept_, dtype=float))
        wrong = probabilities.copy()
        wrong[np.arange(len(labels)), labels] -= 1.0
        length = np.sqrt(1 + np.square(rows).sum(axis=1, keepdims=True))
        inside = np.column_stack([logits, np.abs(wrong) * length])
    else:
        raise InputError(
            f"the model {type(model).__name__} shows nothing of its inside: it has neither "
            f"internals(X, y) nor coef_ and intercept_; attack it as a black box"
        )
    if inside.ndim != 2 or len(inside) != len(rows):
        raise InputError(
            f"internals of {type(model).__name__} has shape {inside.shape}, expected one line for "
            f"each of {len(rows)} rows"
        )
    return np.column_stack([outside, inside])
