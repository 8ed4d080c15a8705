"""What a white-box attack is shown of a row: activations, and the gradient of the row's own loss.

Both are read off the parameters, for models whose shape is known:

* linear models (`coef_`, `intercept_`): logits, and the norm of the gradient in each class's weights;
* scikit-learn's `MLPClassifier` and `MLPRegressor` (`coefs_`, `intercepts_`): the last layer's inputs,
  norm, mean and largest value of every hidden layer, and the norm of the gradient in every layer's
  weights and in its intercepts: nothing that depends on the order of hidden units;
* others that say theirs by `internals(X, y)`, one row of numbers per row.

A pipeline is looked into behind its last transformer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from understudy._types import Floats
from understudy.audit.scores import black_box, squared_loss
from understudy.errors import InputError

if TYPE_CHECKING:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

Curve = Callable[[Floats], Floats]

_HIDDEN: Mapping[str, tuple[Curve, Curve]] = {
    "identity": (lambda z: z, np.ones_like),
    "logistic": (expit, lambda a: a * (1 - a)),
    "tanh": (np.tanh, lambda a: 1 - a**2),
    "relu": (lambda z: np.maximum(z, 0.0), lambda a: (a > 0).astype(np.float64)),
}
"""A hidden unit's activation, and its slope as a function of the activation."""

_LAST: Mapping[str, Curve] = {
    "identity": lambda z: z,
    "logistic": expit,
    "softmax": lambda z: softmax(z, axis=1),
    "exp": np.exp,
}
"""The last layer. Each goes with the loss whose slope is prediction − target."""


@runtime_checkable
class Internals(Protocol):
    """A model that shows its inside itself."""

    def internals(self, X: Floats, y: NDArray[Any]) -> Floats:
        """One row of numbers for every row."""
        ...


def has_inside(model: Any) -> bool:
    """Whether `white_box` can look."""
    model, _ = _opened(model)
    return isinstance(model, Internals) or _is_network(model) or _is_linear(model)


def white_box(model: Any, rows: Floats, outputs: Floats, targets: NDArray[Any]) -> Floats:
    """The black box's features, and the model's inside.

    `outputs` are the probabilities of a classifier, whose `targets` are their columns, or the numbers
    that a regression predicts.

    Raises:
        InputError: The model shows nothing of its inside.
    """
    if outputs.ndim == 1:
        outside = np.column_stack([outputs, squared_loss(outputs, targets)])
    else:
        outside = black_box(outputs, targets)
    model, before = _opened(model)
    rows = rows if before is None else np.asarray(before.transform(rows))
    if isinstance(model, Internals):
        inside = np.asarray(model.internals(rows, targets), dtype=float)
    elif _is_network(model):
        inside = _network(model, rows, targets)
    elif _is_linear(model):
        inside = _linear(model, rows, outputs, targets)
    else:
        raise InputError(
            f"the model {type(model).__name__} shows nothing of its inside: it has neither "
            f"internals(X, y) nor coef_ and intercept_, and is no network of scikit-learn; attack it "
            f"as a black box"
        )
    if inside.ndim != 2 or len(inside) != len(rows):
        raise InputError(
            f"internals of {type(model).__name__} has shape {inside.shape}, expected one line for "
            f"each of {len(rows)} rows"
        )
    return np.column_stack([outside, inside])


def _opened(model: Any) -> tuple[Any, Any]:
    """A model, and what transforms its rows; None where nothing does."""
    from sklearn.pipeline import Pipeline

    return (model[-1], model[:-1]) if isinstance(model, Pipeline) else (model, None)


def _is_network(model: Any) -> bool:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    return isinstance(model, MLPClassifier | MLPRegressor)


def _is_linear(model: Any) -> bool:
    return hasattr(model, "coef_") and hasattr(model, "intercept_")


def _linear(model: Any, rows: Floats, outputs: Floats, targets: NDArray[Any]) -> Floats:
    """For p = softmax(W[1, x]) the gradient in class c's weights is (p_c − 1[y = c])·[1, x]."""
    weights = np.atleast_2d(np.asarray(model.coef_, dtype=float))
    logits = rows @ weights.T + np.atleast_1d(np.asarray(model.intercept_, dtype=float))
    wrong = outputs.reshape(len(rows), -1) - _wanted(outputs.reshape(len(rows), -1), targets)
    length = np.sqrt(1 + np.square(rows).sum(axis=1, keepdims=True))
    return np.column_stack([logits, np.abs(wrong) * length])


def _network(model: MLPClassifier | MLPRegressor, rows: Floats, targets: NDArray[Any]) -> Floats:
    """Forwards for the activations, backwards for the gradients, row by row at once.

    A row's gradient in a layer's weights is a ⊗ d, a what the layer was shown and d the slope of the
    loss in its sums: a matrix of norm ‖a‖·‖d‖. In the intercepts it is d.
    """
    curve, slope = _HIDDEN[model.activation]
    shown = [rows]
    for weights, intercepts in zip(model.coefs_[:-1], model.intercepts_[:-1], strict=True):
        shown.append(curve(shown[-1] @ weights + intercepts))
    sums = shown[-1] @ model.coefs_[-1] + model.intercepts_[-1]
    found = _LAST[model.out_activation_](sums)
    wrong = found - _wanted(found, targets)
    gradients: list[Floats] = []
    for layer in reversed(range(len(model.coefs_))):
        length = np.linalg.norm(wrong, axis=1)
        gradients += [length * np.linalg.norm(shown[layer], axis=1), length]
        if layer:
            wrong = wrong @ model.coefs_[layer].T * slope(shown[layer])
    hidden = [
        seen
        for each in shown[1:]
        for seen in (np.linalg.norm(each, axis=1), each.mean(axis=1), each.max(axis=1))
    ]
    return np.column_stack([sums, *hidden, *gradients])


def _wanted(found: Floats, targets: NDArray[Any]) -> Floats:
    """What a perfect model would say: the number, or 1 for the class and 0 for the others."""
    if found.shape[1] == 1:
        return np.asarray(targets, dtype=float).reshape(found.shape)
    if targets.ndim == 2:
        return np.asarray(targets, dtype=float)
    return (targets[:, None] == np.arange(found.shape[1])).astype(float)
