"""The arithmetic of smart clipping: groups of weights, their thresholds, and how they share noise.

Everything here is a function of public gradients: of public rows, or of records that a generator made
up. With thresholds c_j and d_j weights in group j, noise of deviation τ_j on every weight of group j
costs what one Gaussian mechanism of multiplier m does, 1/m² = Σ_j c_j²/τ_j².
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Floats

Factors = Sequence[tuple[Any, Any]]

_FLOOR = 1e-12
_LEAST = 1e-8  # of a threshold


def norms(factors: Factors, members: Sequence[NDArray[Any]] | None, groups: int) -> Floats:
    """(B, groups): the norm of every row's gradient inside every group, from the factors alone.

    ‖g‖²_M = Σ_layers Σ_{kl∈M} a_k²·δ_l², with a 1 among the a for the bias.
    """
    squares = np.zeros((len(factors[0][0]), groups))
    for layer, (a, d) in enumerate(factors):
        inputs = np.square(np.asarray(a, np.float64))
        inputs = np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1)
        deltas = np.square(np.asarray(d, np.float64))
        for j in range(groups):
            if members is None:
                squares[:, j] += inputs.sum(axis=1) * deltas.sum(axis=1)
            else:
                mask = (np.asarray(members[layer]) == j).astype(np.float64)
                squares[:, j] += ((inputs @ mask) * deltas).sum(axis=1)
    return np.sqrt(squares)


def clusters(gradient: NDArray[Any], groups: int, floor: float | None = None) -> NDArray[np.int32]:
    """Which group every weight belongs to: the closest magnitudes are merged until `groups` are left.

    c_i = max(|gradient_i|, floor); the two groups with the smallest ratio of c merge, with
    c = √(c² + c'²). The smallest ratio is between neighbours in order, and what merges is reinserted
    in order, so a heap of neighbouring pairs finds it. Groups are numbered by size of c.
    """
    size = np.abs(np.asarray(gradient, np.float64)).reshape(-1)
    least = floor if floor is not None else max(_FLOOR, 1e-6 * float(size.max(initial=0.0)))
    value = np.log(np.maximum(size, least)).tolist()
    line = sorted((v, i) for i, v in enumerate(value))
    parent = list(range(len(value)))
    heap = [(w - v, i, j) for (v, i), (w, j) in pairwise(line)]
    heapq.heapify(heap)
    while len(line) > groups:
        _, one, other = heapq.heappop(heap)
        low, high, new = value[one], value[other], len(value)
        at = bisect_left(line, (low, one))
        if line[at : at + 2] != [(low, one), (high, other)]:
            continue  # merged since, or no longer neighbours
        del line[at : at + 2]
        value.append(high + 0.5 * math.log1p(math.exp(2 * (low - high))))
        parent.append(new)
        parent[one] = parent[other] = new
        place = bisect_left(line, (value[new], new), lo=at)
        line.insert(place, (value[new], new))
        for k in {at - 1, place - 1, place}:  # pairs of neighbours that are new
            if 0 <= k < len(line) - 1:
                (v, i), (w, j) = line[k : k + 2]
                heapq.heappush(heap, (w - v, i, j))
    for i in range(len(parent) - 1, -1, -1):  # a parent comes after its children
        parent[i] = parent[parent[i]]
    kept, place = np.unique(parent[: size.size], return_inverse=True)
    rank = np.argsort(np.argsort([value[int(top)] for top in kept], kind="stable"), kind="stable")
    return rank[place].astype(np.int32)


def thresholds(found: Floats) -> tuple[float, ...]:
    """The median over public rows of every group's norm: of rows, not of their mean.

    Of the rows that touch the group: one that more than half of them leave alone is not nothing.
    """
    touching = (found[found[:, j] > 0, j] for j in range(found.shape[1]))
    return tuple(max(_LEAST, float(np.median(part)) if part.size else 0.0) for part in touching)


def shares(limits: Sequence[float], sizes: Sequence[int]) -> tuple[float, ...]:
    """s_j, Σ s_j² = 1, with the least total noise Σ d_j·τ_j², τ_j = m·c_j/s_j, at a joint m.

    s_j² is in proportion to c_j·√d_j, so that τ_j² = m²·(c_j/√d_j)·Σ_i c_i·√d_i; the total is
    m²·(Σ_i c_i·√d_i)².
    """
    weights = [c * math.sqrt(max(1, d)) for c, d in zip(limits, sizes, strict=True)]
    return tuple(math.sqrt(w / sum(weights)) for w in weights)


def adapted(
    limits: Sequence[float], shares: Sequence[float], target: float, rate: float
) -> tuple[float, ...]:
    """C ← C·exp(−η(b̃ − target)), b̃ the noisy share of rows below (Andrew et al. 2021)."""
    pairs = zip(limits, shares, strict=True)
    return tuple(c * math.exp(-rate * (min(max(b, 0.0), 1.0) - target)) for c, b in pairs)
