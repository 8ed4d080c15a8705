"""Softmax regression on codes: what two tables are told apart and learnt with.

Every column is one-hot, pairs of columns too where asked for. The fit minimises the mean log loss plus
`ridge`/2·‖w‖², which is convex, so it does not depend on a start or a seed. It knows no privacy: it
belongs to comparisons whose output is not private.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Bools, Floats, Whole

Codes = Sequence[NDArray[np.unsignedinteger]]
_MOST_PAIRS = 120
_MOST_FEATURES = 200_000
_MOST_STEPS = 2_000


@dataclass(frozen=True, eq=False)
class Classifier:
    """A fitted model of columns, and of pairs of them, as columns of their own."""

    shape: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    model: Any

    def probabilities(self, codes: Codes) -> Floats:
        """Of every class that was met, for every row."""
        return self.model.predict_proba(_joined(codes, self.shape, self.pairs))

    def predict(self, codes: Codes) -> NDArray[np.integer]:
        """The likeliest class of every row."""
        return self.model.predict(_joined(codes, self.shape, self.pairs))


def fit(
    codes: Codes,
    labels: NDArray[np.integer],
    shape: Sequence[int],
    *,
    interactions: bool = False,
    ridge: float = 1e-4,
) -> Classifier:
    """Learn to tell the classes of rows apart; of a single class there is nothing to learn."""
    from sklearn.dummy import DummyClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    pairs = _pairs(shape) if interactions else ()
    if len(np.unique(labels)) < 2:
        model = DummyClassifier()
    else:
        model = LogisticRegression(
            C=1 / (ridge * len(labels)), fit_intercept=False, max_iter=_MOST_STEPS
        )
    sizes = [*shape, *(shape[i] * shape[j] for i, j in pairs), 1]
    values: Any = [np.arange(size) for size in sizes]
    fitted = make_pipeline(OneHotEncoder(categories=values), model).fit(
        _joined(codes, shape, pairs), labels
    )
    return Classifier(tuple(shape), pairs, fitted)


def area(scores: Floats, positive: Bools) -> float:
    """The area under the ROC curve: P(score of a positive > that of a negative), ties by half."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(positive, scores))


def _pairs(shape: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """The smallest pairs, so that a wide table is no slower than a narrow one."""
    ordered = sorted(combinations(range(len(shape)), 2), key=lambda p: shape[p[0]] * shape[p[1]])
    kept: list[tuple[int, int]] = []
    features = sum(shape)
    for i, j in ordered[:_MOST_PAIRS]:
        features += shape[i] * shape[j]
        if features > _MOST_FEATURES:
            break
        kept.append((i, j))
    return tuple(kept)


def _joined(codes: Codes, shape: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Whole:
    """Columns, pairs of them, and one that is the same for all rows."""
    columns = [np.asarray(code, dtype=np.int64) for code in codes]
    both = [columns[i] * shape[j] + columns[j] for i, j in pairs]
    return np.stack([*columns, *both, np.zeros_like(columns[0])], axis=1)
