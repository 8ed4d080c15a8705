"""Intervals for estimates whose bias is bounded and not known."""

from __future__ import annotations

from statistics import NormalDist

_NORMAL = NormalDist()


def half_width(deviation: float, bias: float, level: float) -> float:
    """The least h with P(|N(b, deviation²)| ≤ h) ≥ level for every |b| ≤ bias.

    deviation · √q, q the quantile of the non-central χ² with one degree of freedom and non-centrality
    (bias/deviation)² (Armstrong and Kolesár, Optimal inference in a class of regression models,
    Econometrica 2018). Without noise it is the bias itself.
    """
    if deviation <= 0:
        return bias
    ratio = bias / deviation
    if ratio > 30:  # the other tail is nothing
        return bias + deviation * _NORMAL.inv_cdf(level)
    low, high = 0.0, ratio + _NORMAL.inv_cdf((1 + level) / 2)
    for _ in range(60):
        middle = (low + high) / 2
        inside = _NORMAL.cdf(middle - ratio) - _NORMAL.cdf(-middle - ratio)
        low, high = (middle, high) if inside < level else (low, middle)
    return deviation * high
