"""What linear models share, however they learn: public facts, scaling and predictions."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from understudy._types import Floats
from understudy.errors import InputError
from understudy.privacy.features import Box
from understudy.privacy.losses import Logistic, Loss, Softmax, Squared

IN_Y = "in y"
"""Declares that the set of labels that occur is public knowledge."""


_CELL = re.compile(r":\s*\S*['\"].*")


def _without_cells(check: Callable[[], Any]) -> Any:
    """What scikit-learn finds of the rows; its errors without the cells and arrays that they quote.

    These stand in quotes after a colon ("could not convert string to float: 'x'"), or on further lines,
    of which only the last may be a remedy.
    """
    try:
        return check()
    except InputError:
        raise
    except ValueError as error:
        what = _CELL.sub("", str(error).partition("\n")[0])
        _, remedy, how = str(error).rpartition("Reshape your data")
        raise InputError(f"{what} {remedy}{how}" if remedy else what) from None


settings = dataclass(eq=False, repr=False)
"""Settings of an estimator are its fields: scikit-learn reads the constructor that they make."""


@settings
class LinearModel(BaseEstimator, ABC):
    """A linear model of features in a public box, with ‖weights‖₁ ≤ radius after scaling."""

    _: KW_ONLY
    bounds: Any = None
    radius: float | None = None
    fit_intercept: bool = True
    weights_: Floats = field(init=False)

    @abstractmethod
    def _problem(self, y: NDArray[Any], radius: float) -> tuple[Loss, Floats]:
        """The loss and the targets in its units."""

    def _rows(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Rows of finite numbers, and targets. What cannot be used is refused as a whole."""
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        checked: Any = _without_cells(
            lambda: validate_data(
                self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2, y_numeric=False
            )
        )
        return checked

    def _set(self, box: Box, weights: Floats) -> Self:
        self.weights_ = weights
        self.coef_, self.intercept_ = box.unscaled(weights)
        self._box = box
        return self

    def _scores(self, X: Any) -> Floats:
        """(n, outputs): scores of features clipped to the bounds."""
        check_is_fitted(self)
        rows: Any = _without_cells(
            lambda: validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        )
        return self._box.scaled(rows) @ self.weights_.T


@settings
class LinearRegressor(RegressorMixin, LinearModel):
    """Targets in a public interval, read as [−1, 1]."""

    _: KW_ONLY
    target_bounds: Any = None

    def _target(self) -> tuple[float, float]:
        """(middle, half width) of the declared interval."""
        declared = self.target_bounds
        if declared is None:
            raise InputError(
                "target_bounds are missing: declare (low, high) of y, from knowledge and not from "
                "the rows"
            )
        box = Box.of(declared, 1, intercept=False)
        low, high = float(box.low[0]), float(box.high[0])
        return (low + high) / 2, (high - low) / 2

    def _problem(self, y: NDArray[Any], radius: float) -> tuple[Loss, Floats]:
        """The loss, and targets scaled and clipped to [−1, 1].

        Residuals are held within ±2: beyond that a score lies outside the target bounds by more than
        their width, and predictions are clipped to them anyway.
        """
        middle, half = self._target()
        try:
            numbers = np.asarray(y, np.float64)
        except (TypeError, ValueError):
            raise InputError("y must hold numbers") from None
        targets = np.clip((numbers - middle) / half, -1.0, 1.0)
        return Squared(min(2.0, 1.0 + radius)), targets

    def predict(self, X: Any) -> Floats:
        """Predicted targets, in their own units, inside the target bounds."""
        scores = np.clip(self._scores(X)[:, 0], -1.0, 1.0)
        middle, half = self._target()
        return middle + half * scores


@settings
class LinearClassifier(ClassifierMixin, LinearModel):
    """Two or more public classes."""

    _: KW_ONLY
    classes: Any = None
    classes_: NDArray[Any] = field(init=False)

    def _declared(self, y: NDArray[Any]) -> NDArray[Any]:
        if self.classes is None:
            raise InputError(
                "classes are missing: declare the labels, for instance classes=(0, 1), or "
                "classes='in y' if the set of labels that occur is public"
            )
        _without_cells(lambda: check_classification_targets(y))
        if isinstance(self.classes, str):
            if self.classes != IN_Y:
                raise InputError(f"classes = {self.classes!r} must be the labels, or 'in y'")
            labels = np.unique(y)
        else:
            if not isinstance(self.classes, Sequence | np.ndarray):
                raise InputError(f"classes = {self.classes!r} must be a list of labels, or 'in y'")
            labels = np.unique(np.asarray(self.classes))
        if labels.size < 2:
            raise InputError(
                f"{labels.size} class: a classifier needs at least two classes; declare all labels "
                f"that may occur"
            )
        return labels

    def _problem(self, y: NDArray[Any], radius: float) -> tuple[Loss, Floats]:
        """The loss, and the number of every row's class."""
        self.classes_ = self._declared(y)
        try:
            codes = np.searchsorted(self.classes_, y)
        except TypeError:
            raise InputError("y holds labels of another type than the declared classes") from None
        known = self.classes_[np.minimum(codes, self.classes_.size - 1)]
        if not np.array_equal(known, y):
            raise InputError(
                "y holds labels that are not among the declared classes; declare all that may occur"
            )
        loss = Logistic() if self.classes_.size == 2 else Softmax(self.classes_.size - 1)
        return loss, codes.astype(np.float64)

    def decision_function(self, X: Any) -> Floats:
        """Log-odds: (n,) of the second of two classes, or (n, classes) against the last."""
        scores = self._scores(X)
        if self.classes_.size == 2:
            return scores[:, 0]
        return np.concatenate([scores, np.zeros((len(scores), 1))], axis=1)

    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of `predict_proba`."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([np.zeros_like(scores), scores])
        return log_softmax(scores, axis=1)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of every class, in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]
