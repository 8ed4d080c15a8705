"""Scores of single rows under a trained model; larger means more like a member (docs/audit.md).

A shadow-model attack is shown more of a row: outputs (`black_box`), or also the model's `inside`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from understudy._types import Floats, Whole

_TINY = np.finfo(np.float64).tiny


def correctness(probabilities: Floats, labels: Whole) -> Floats:
    """1 where the most likely class is the label."""
    return (probabilities.argmax(axis=1) == labels).astype(np.float64)


def loss(probabilities: Floats, labels: Whole) -> Floats:
    """−cross-entropy: ln of the probability of the label."""
    return np.log(np.maximum(_of_label(probabilities, labels), _TINY))


def confidence(probabilities: Floats, labels: Whole) -> Floats:
    """The largest probability, whatever the label."""
    del labels
    return probabilities.max(axis=1)


def entropy(probabilities: Floats, labels: Whole) -> Floats:
    """−H(p) in bits; 0 for a certain prediction, −log₂ K for the uniform one."""
    del labels
    logs = np.log2(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
    return (probabilities * logs).sum(axis=1)


def logit(probabilities: Floats, labels: Whole) -> Floats:
    """ln p_y − ln of the sum of the others, so that p near 1 keeps its digits."""
    own = _of_label(probabilities, labels)
    others = probabilities.copy()
    others[np.arange(len(labels)), labels] = 0.0
    return np.log(np.maximum(own, _TINY)) - np.log(np.maximum(others.sum(axis=1), _TINY))


def squared_loss(predictions: Floats, targets: Floats) -> Floats:
    """−½(t − y)², the loss score of a regression."""
    return -0.5 * np.square(predictions - targets)


SCORES: Mapping[str, Callable[[Floats, Whole], Floats]] = {
    "correctness": correctness,
    "loss": loss,
    "confidence": confidence,
    "entropy": entropy,
}
"""The attacks that need nothing but one model and one row."""


def _of_label(probabilities: Floats, labels: Whole) -> Floats:
    return probabilities[np.arange(len(labels)), labels]


def black_box(probabilities: Floats, labels: Whole) -> Floats:
    """Probabilities from the largest down, and the four scores with LiRA's logit."""
    ranked = -np.sort(-probabilities, axis=1)
    singles = [score(probabilities, labels) for score in SCORES.values()]
    return np.column_stack([ranked, *singles, logit(probabilities, labels)])
