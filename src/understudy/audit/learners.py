"""What is audited: something that is trained on rows and then predicts probabilities."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError

__all__ = ["Learner", "Logistic", "Own"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


class Learner(Protocol):
    """From rows to a model. It travels to other processes, so it is plain data."""

    def describe(self) -> dict[str, Any]:
        """What it is, in JSON."""
        ...

    def __call__(self, features: Floats, labels: Labels) -> Any:
        """A trained model with `predict_proba`; labels are 0, 1, …"""
        ...


@dataclass(frozen=True, eq=False)
class Logistic:
    """understudy's own logistic regression, private if `epsilon` is given."""

    classes: int
    bounds: tuple[tuple[float, ...], tuple[float, ...]]
    """Low and high of every feature, public."""
    epsilon: float | None
    delta: float
    rows_public: int
    choices: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the estimator: solver, radius, steps, …"""

    def describe(self) -> dict[str, Any]:
        """The estimator and its settings."""
        return {
            "learner": "logistic",
            "private": self.epsilon is not None,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "classes": self.classes,
            "rows_public": self.rows_public,
            **{name: self.choices[name] for name in sorted(self.choices)},
        }

    def __call__(self, features: Floats, labels: Labels) -> Any:
        """Train once; privacy noise takes no seed."""
        from understudy import learn

        common: dict[str, Any] = {
            "bounds": tuple(np.array(end) for end in self.bounds),
            "classes": list(range(self.classes)),
            **self.choices,
        }
        if self.epsilon is None:
            accepted = inspect.signature(learn.NonPrivateLogisticRegression).parameters
            model = learn.NonPrivateLogisticRegression(
                **{name: value for name, value in common.items() if name in accepted}
            )
        else:
            model = learn.PrivateLogisticRegression(
                self.epsilon, delta=self.delta, rows_public=self.rows_public, **common
            )
        return model.fit(features, labels)


@dataclass(frozen=True)
class Own:
    """A model of the user's: `module:factory`, where factory() gives an estimator to be fitted."""

    where: str

    def describe(self) -> dict[str, Any]:
        """Where it comes from."""
        return {"learner": self.where}

    def __call__(self, features: Floats, labels: Labels) -> Any:
        """Make a fresh one and train it."""
        return self.make().fit(features, labels)

    def make(self) -> Any:
        """An estimator, not yet trained.

        Raises:
            InputError: It cannot be imported, or has no `fit` or no `predict_proba`.
        """
        module, _, name = self.where.partition(":")
        if not module or not name:
            raise InputError(
                f"learner = {self.where!r} must be logistic, or module:factory for one of your own"
            )
        try:
            factory = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise InputError(f"learner = {self.where} cannot be imported: {error}") from None
        made = factory()
        for needed, why in (("fit", "trained"), ("predict_proba", "attacked")):
            if not hasattr(made, needed):
                raise InputError(
                    f"learner = {self.where}: {type(made).__name__} has no {needed}, so it cannot "
                    f"be {why}; give a classifier with fit(X, y) and predict_proba(X)"
                )
        return made
