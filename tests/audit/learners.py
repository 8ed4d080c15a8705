"""Models that learn by heart, or nothing, and audits of them."""

from typing import Any

import numpy as np

from understudy.audit import judge
from understudy.audit.models import Examples, Own, Trained, corners


class ByHeart:
    """A model that knows its rows by heart, and nothing else."""

    def fit(self, X: Any, y: Any) -> "ByHeart":
        self.known = {x.tobytes(): int(label) for x, label in zip(X, y, strict=True)}
        self.classes = int(max(y)) + 1
        return self

    def predict_proba(self, X: Any) -> Any:
        found = np.full((len(X), self.classes), 0.1 / (self.classes - 1))
        for row, x in zip(found, X, strict=True):
            label = self.known.get(x.tobytes())
            if label is None:
                row[:] = 1 / self.classes
            else:
                row[label] = 0.9
        return found


class Deaf(ByHeart):
    """A model that learns nothing: perfect privacy."""

    def fit(self, X: Any, y: Any) -> "Deaf":
        super().fit(X, y)
        self.known = {}
        return self


class NoChances:
    """A regression: it has no probabilities."""

    def fit(self, X: Any, y: Any) -> "NoChances":
        return self


def network() -> Any:
    """A small network of scikit-learn."""
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier((4,), solver="lbfgs", max_iter=30, random_state=1)


def known(rows: int = 60) -> Examples:
    rng = np.random.default_rng(0)
    return Examples(rng.normal(size=(rows, 4)), np.arange(rows) % 2, ("a", "b", "c", "d"))


def design(name: str, canaries: int = 20) -> Trained:
    return Trained(Own(f"tests.audit.learners:{name}"), known(), corners(known(), canaries, 1), 1)


CLAIM = judge.Claim(1.0, 1e-6, 0.05)
