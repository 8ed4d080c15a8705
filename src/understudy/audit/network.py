"""A small binary classifier for attacks: standardised inputs, one hidden layer, Adam, NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError

__all__ = ["Network", "train"]

Floats = NDArray[np.float64]

_RATE, _KEEP, _KEEP_SQUARES = 0.01, 0.9, 0.999


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """z(x) = v·tanh(W(x − mean)/spread + b) + c; `score` is z, the log odds of "member"."""

    mean: Floats
    spread: Floats
    parameters: tuple[Floats, Floats, Floats, Floats]

    def score(self, features: Floats) -> Floats:
        """The log odds of every row."""
        return _forward(self.parameters, (features - self.mean) / self.spread)[1]


def train(
    features: Floats,
    members: NDArray[np.bool_],
    *,
    key: int,
    hidden: int = 16,
    epochs: int = 200,
    batch: int = 256,
    decay: float = 1e-3,
) -> Network:
    """Fit by cross-entropy with weight decay. `key` is public: shadows hold no protected row."""
    if features.ndim != 2 or len(features) != len(members):
        raise InputError(
            f"features {features.shape} and {len(members)} labels do not belong together"
        )
    if members.all() or not members.any():
        raise InputError("the attack's network needs members and others to learn from")
    if not np.isfinite(features).all():
        raise InputError("a feature of the attack is not finite; the model's predictions are not")
    rng = np.random.default_rng(key)
    mean, spread = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-9)
    x, y = (features - mean) / spread, members.astype(float)
    width = features.shape[1]
    parameters = [
        rng.normal(0, width**-0.5, (width, hidden)), np.zeros(hidden),
        rng.normal(0, hidden**-0.5, hidden), np.zeros(()),
    ]  # fmt: skip
    first = [np.zeros_like(p) for p in parameters]
    second = [np.zeros_like(p) for p in parameters]
    step = 0
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for start in range(0, len(x), batch):
            chosen = order[start : start + batch]
            step += 1
            slopes = _slopes(parameters, x[chosen], y[chosen], decay)
            for i, slope in enumerate(slopes):
                first[i] = _KEEP * first[i] + (1 - _KEEP) * slope
                second[i] = _KEEP_SQUARES * second[i] + (1 - _KEEP_SQUARES) * slope**2
                ahead = first[i] / (1 - _KEEP**step)
                scale = np.sqrt(second[i] / (1 - _KEEP_SQUARES**step)) + 1e-8
                parameters[i] = parameters[i] - _RATE * ahead / scale
    inner, bias, outer, shift = parameters
    return Network(mean, spread, (inner, bias, outer, shift))


def _forward(parameters: object, x: Floats) -> tuple[Floats, Floats]:
    inner, bias, outer, shift = parameters  # type: ignore[misc]
    layer = np.tanh(x @ inner + bias)
    return layer, layer @ outer + shift


def _slopes(parameters: list[Floats], x: Floats, y: Floats, decay: float) -> list[Floats]:
    """Gradient of the mean cross-entropy + ½·decay·‖weights‖²."""
    layer, odds = _forward(parameters, x)
    wrong = (1 / (1 + np.exp(-np.clip(odds, -60, 60))) - y) / len(x)
    back = np.outer(wrong, parameters[2]) * (1 - layer**2)
    return [
        x.T @ back + decay * parameters[0],
        back.sum(axis=0),
        layer.T @ wrong + decay * parameters[2],
        np.asarray(wrong.sum()),
    ]
