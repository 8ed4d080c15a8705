"""The most plausible one-way table behind a noisy one, without a model of the data.

Empirical Bayes: counts of one column are taken for draws from an unknown law, which is itself found
by maximum likelihood (Kiefer-Wolfowitz 1956, by EM on a grid); the answer is the posterior mean. The
law is sought once for the counts themselves and, for columns whose neighbouring values resemble each
other, for their deviations from a leave-one-out average of the neighbours; the likelihoods of the
answers, tempered because laws fitted to the same answers flatter themselves, weigh them, so whether a
column is ordered need not be said.
"""

from __future__ import annotations

import numpy as np

from understudy._types import Table
from understudy.models.measured import simplex

__all__ = ["deconvolve", "one_way"]


_BANDWIDTHS = (1, 2, 4, 8, 16)
# Below this many values the noise says more about a value than the other values do.
_FEW = 20
_FAR = 7.0
# Exponent of the likelihoods: errors on LOANS are flat from 0.05 to 0.3 and 2 % larger at 1.
_TRUST = 0.2
# Noise above this share of all rows.
_DROWNED = 0.03


def one_way(values: Table, sigma: float, rows: float) -> Table:
    """Counts above zero that sum to `rows`, from counts with Gaussian noise of deviation `sigma`."""
    y = np.asarray(values, dtype=np.float64)
    rows = max(float(rows), 1.0)
    if sigma > _DROWNED * rows:
        # Hardly a value can be seen: the best linear guess under a uniform law of shares.
        uniform = rows / y.size
        variance = uniform * (rows - uniform) / (y.size + 1)
        y = uniform + (y - uniform) * variance / (variance + sigma * sigma)
        return _positive(rows * simplex(y, rows), rows)
    if y.size <= _FEW:
        return _positive(rows * simplex(y, rows), rows)
    means, evidence = [], []
    mean, log_likelihood = deconvolve(y, sigma, positive=True)
    means.append(mean)
    evidence.append(log_likelihood)
    for bandwidth in _BANDWIDTHS:
        if 3 * bandwidth >= y.size:
            break
        base, centre = y, y
        for _ in range(2):
            centre = np.maximum(_neighbours(base, bandwidth), 0.0)
            mean, log_likelihood = deconvolve(y - centre, sigma, positive=False)
            # Spikes do not speak for their neighbours.
            base = np.where(np.abs(mean) > 3 * sigma, centre, y)
        means.append(np.maximum(centre + mean, 0.0))
        evidence.append(log_likelihood)
    weight = np.exp(_TRUST * (np.array(evidence) - max(evidence)))
    average = np.tensordot(weight / weight.sum(), np.array(means), 1)
    return _positive(rows * simplex(average, rows), rows)


def deconvolve(y: Table, sigma: float, *, positive: bool, steps: int = 60) -> tuple[Table, float]:
    """(posterior means, log likelihood) under the law of the unknowns that explains y best."""
    top = max(float(np.abs(y).max()), sigma)
    grid = [0.0]
    while grid[-1] < min(top, 8 * sigma):
        grid.append(grid[-1] + sigma / 2)
    while grid[-1] < top:
        grid.append(grid[-1] * 1.25)
    points = np.array(grid) if positive else np.concatenate([-np.array(grid)[:0:-1], grid])
    distance = (y[:, None] - points[None, :]) / sigma
    likelihood = np.exp(-np.minimum(distance * distance / 2, 400.0))
    law = np.full(points.size, 1 / points.size)
    for _ in range(steps):
        law = law * (likelihood.T @ (1 / (likelihood @ law + 1e-300))) / y.size
    density = likelihood @ law + 1e-300
    mean = (likelihood * law) @ points / density
    return np.where(np.abs(y) > _FAR * sigma, y, mean), float(np.log(density).sum())


def _neighbours(y: Table, bandwidth: int) -> Table:
    """Gaussian averages of the values around each, itself left out."""
    reach = 3 * bandwidth
    kernel = np.exp(-((np.arange(-reach, reach + 1) / bandwidth) ** 2) / 2)
    kernel[reach] = 0.0
    return np.convolve(np.pad(y, reach, mode="reflect"), kernel, "valid") / kernel.sum()


def _positive(counts: Table, rows: float) -> Table:
    """No value is ruled out: a cell that is empty here could never be filled by the fit."""
    counts = np.maximum(counts, 1e-3)
    return counts * (rows / counts.sum())
