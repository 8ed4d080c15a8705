"""Scores of single rows under a trained model; larger means more like a member.

correctness   1[argmax p(x) = y]
loss          ln p_y(x), the negative of the loss
confidence    max p(x)
entropy       −H(p(x)), H in bits, 0·log 0 = 0: members have *low* entropy
logit         ln(p_y/(1 − p_y)), the statistic of LiRA: nearly normal over trainings

A shadow-model attack is shown more of a row: outputs (`black_box`), or also the inside (`white_box`).
Shadow models are trained on rows that the attacker knows; the features of their own members and of
others are what the attack learns from. The target is only ever asked afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError

__all__ = [
    "SCORES",
    "black_box",
    "confidence",
    "correctness",
    "entropy",
    "has_inside",
    "logit",
    "loss",
    "squared_loss",
    "white_box",
]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
_TINY = np.finfo(np.float64).tiny


def correctness(probabilities: Floats, labels: Labels) -> Floats:
    """1 where the most likely class is the label."""
    return (probabilities.argmax(axis=1) == labels).astype(np.float64)


def loss(probabilities: Floats, labels: Labels) -> Floats:
    """−cross-entropy: ln of the probability of the label."""
    return np.log(np.maximum(_of_label(probabilities, labels), _TINY))


def confidence(probabilities: Floats, labels: Labels) -> Floats:
    """The largest probability, whatever the label."""
    del labels
    return probabilities.max(axis=1)


def entropy(probabilities: Floats, labels: Labels) -> Floats:
    """−H(p) in bits; 0 for a certain prediction, −log₂ K for the uniform one."""
    del labels
    logs = np.log2(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
    return (probabilities * logs).sum(axis=1)


def logit(probabilities: Floats, labels: Labels) -> Floats:
    """ln p_y − ln of the sum of the others, so that p near 1 keeps its digits."""
    own = _of_label(probabilities, labels)
    others = probabilities.copy()
    others[np.arange(len(labels)), labels] = 0.0
    return np.log(np.maximum(own, _TINY)) - np.log(np.maximum(others.sum(axis=1), _TINY))


def squared_loss(predictions: Floats, targets: Floats) -> Floats:
    """−½(t − y)², the loss score of a regression."""
    return -0.5 * np.square(predictions - targets)


SCORES: Mapping[str, Callable[[Floats, Labels], Floats]] = {
    "correctness": correctness,
    "loss": loss,
    "confidence": confidence,
    "entropy": entropy,
}
"""The attacks that need nothing but one model and one row."""


def _of_label(probabilities: Floats, labels: Labels) -> Floats:
    return probabilities[np.arange(len(labels)), labels]


def black_box(probabilities: Floats, labels: Labels) -> Floats:
    """Probabilities from the largest down, and the four scores with LiRA's logit."""
    ranked = -np.sort(-probabilities, axis=1)
    singles = [score(probabilities, labels) for score in SCORES.values()]
    return np.column_stack([ranked, *singles, logit(probabilities, labels)])


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
