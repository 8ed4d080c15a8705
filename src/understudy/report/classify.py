"""Softmax regression on codes, small and our own: what two tables are told apart and learnt with.

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

__all__ = ["Classifier", "area", "fit"]

Codes = Sequence[NDArray[np.unsignedinteger]]
Floats = NDArray[np.float64]
_MOST_PAIRS = 120
_MOST_FEATURES = 200_000


@dataclass(frozen=True, eq=False)
class Classifier:
    """Weights (features, classes − 1) of a fitted model, and how codes become features.

    The first class has score 0: what is told apart are differences of scores.
    """

    shape: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    weights: Floats

    def probabilities(self, codes: Codes) -> Floats:
        """Of every class, for every row."""
        return _softmax(_features(codes, self.shape, self.pairs) @ self.weights)

    def predict(self, codes: Codes) -> NDArray[np.intp]:
        """The likeliest class of every row."""
        return np.argmax(self.probabilities(codes), axis=1)


def fit(
    codes: Codes,
    labels: NDArray[np.integer],
    shape: Sequence[int],
    classes: int,
    *,
    interactions: bool = False,
    ridge: float = 1e-4,
    steps: int = 60,
) -> Classifier:
    """Learn to tell the classes 0 … `classes` − 1 of rows apart."""
    from scipy.optimize import minimize

    pairs = _pairs(shape) if interactions else ()
    features = _features(codes, shape, pairs)
    rows, width = features.shape
    wanted = np.zeros((rows, classes))
    wanted[np.arange(rows), labels] = 1.0
    turned, free = features.T.tocsr(), classes - 1

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(width, free)
        shares = _softmax(features @ weights)
        value = -float(np.log(np.maximum((shares * wanted).sum(axis=1), 1e-300)).mean())
        slope = turned @ (shares - wanted)[:, 1:] / rows + ridge * weights
        return value + ridge / 2 * float(flat @ flat), slope.ravel()

    found: Any = minimize(
        loss,
        np.zeros(width * free),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps, "ftol": 1e-6},
    )
    return Classifier(tuple(shape), pairs, np.asarray(found.x).reshape(width, free))


def area(scores: Floats, positive: NDArray[np.bool_]) -> float:
    """The area under the ROC curve: P(score of a positive > that of a negative), ties by half."""
    from scipy.stats import rankdata

    ones, zeros = int(positive.sum()), int((~positive).sum())
    ranks = rankdata(scores)
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / max(ones * zeros, 1))


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


def _features(codes: Codes, shape: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Any:
    from scipy.sparse import csr_array

    columns = [np.asarray(code, dtype=np.int64) for code in codes]
    sizes = [*shape, *(shape[i] * shape[j] for i, j in pairs), 1]
    rows = columns[0].size if columns else 0
    places = [*columns, *(columns[i] * shape[j] + columns[j] for i, j in pairs)]
    places.append(np.zeros(rows, dtype=np.int64))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    indices = np.stack([place + start for place, start in zip(places, starts, strict=True)], axis=1)
    width = indices.shape[1]
    return csr_array(
        (np.ones(rows * width), indices.ravel(), np.arange(0, rows * width + 1, width)),
        shape=(rows, int(sum(sizes))),
    )


def _softmax(scores: Floats) -> Floats:
    scores = np.concatenate([np.zeros((len(scores), 1)), scores], axis=1)
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)
