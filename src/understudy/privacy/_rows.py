"""Compiled sums over private rows, on integers: exact, whatever the order of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from understudy.compiled import compiled


@compiled
def scores(features: Any, weights: Any) -> Any:
    """Σ_j features[i, j]·weights[k, j] for every row i and output k."""
    made = np.zeros((features.shape[0], weights.shape[0]), np.int64)
    for i in range(features.shape[0]):
        for k in range(weights.shape[0]):
            total = np.int64(0)
            for j in range(features.shape[1]):
                total += np.int64(features[i, j]) * weights[k, j]
            made[i, k] = total
    return made


@compiled
def sums(features: Any, rows: Any, residuals: Any) -> Any:
    """Σ_i residuals[i, k]·features[rows[i], j] for every output k and feature j.

    A product fits 32 bits, which the compiler multiplies many at a time.
    """
    made = np.zeros((residuals.shape[1], features.shape[1]), np.int64)
    for i in range(rows.size):
        row = rows[i]
        for k in range(residuals.shape[1]):
            factor = np.int32(residuals[i, k])
            if factor == 0:
                continue
            for j in range(features.shape[1]):
                made[k, j] += np.int32(factor * np.int32(features[row, j]))
    return made
