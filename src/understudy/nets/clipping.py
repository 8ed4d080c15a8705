"""Smart clipping: groups of weights, their thresholds, and noise as little as the joint cost allows.

Everything here is a function of public gradients: of public rows, or of records that a generator made
up. With thresholds c_j and d_j weights in group j, noise of deviation τ_j on every weight of group j
costs what one Gaussian mechanism of multiplier m does, 1/m² = Σ_j c_j²/τ_j².
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "adapted",
    "bit_share",
    "clusters",
    "least_noise",
    "norms",
    "thresholds",
]

Float = NDArray[np.float64]
Factors = Sequence[tuple[Any, Any]]

_FLOOR = 1e-12


def norms(factors: Factors, members: Sequence[NDArray[Any]] | None, groups: int) -> Float:
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
    in order, so a heap of neighbouring pairs makes it O(P log P). Groups are numbered by size of c.
    """
    size = np.abs(np.asarray(gradient, np.float64)).reshape(-1)
    least = floor if floor is not None else max(_FLOOR, 1e-6 * float(size.max(initial=0.0)))
    value = np.log(np.maximum(size, least)).tolist()
    line = _Line([(v, i) for i, v in enumerate(value)])
    parent = list(range(len(value)))
    heap = [(w - v, i, j) for (v, i), (w, j) in line.pairs()]
    heapq.heapify(heap)
    gone: set[int] = set()
    left = len(value)
    while left > groups:
        _, one, other = heapq.heappop(heap)
        if one in gone or other in gone or line.after((value[one], one)) != (value[other], other):
            continue  # merged since, or no longer neighbours
        line.remove((value[one], one))
        line.remove((value[other], other))
        gone |= {one, other}
        low, high = value[one], value[other]
        new = len(value)
        value.append(high + 0.5 * math.log1p(math.exp(2 * (low - high))))
        parent.append(new)
        parent[one] = parent[other] = new
        left -= 1
        here = (value[new], new)
        first, last = line.add(here)
        gap = line.gap(low)
        for near, then in ((first, here), (here, last), gap):
            if near is not None and then is not None:
                heapq.heappush(heap, (then[0] - near[0], near[1], then[1]))
    for i in range(len(parent) - 1, -1, -1):  # a parent comes after its children
        parent[i] = parent[parent[i]]
    tops = np.array(parent[: size.size])
    kept, place = np.unique(tops, return_inverse=True)
    rank = np.argsort(np.argsort([value[int(top)] for top in kept], kind="stable"), kind="stable")
    return rank[place].astype(np.int32)


Item = tuple[float, int]


class _Line:
    """Items in order, in blocks, so that adding, removing and looking beside one take O(√P) moves of
    memory at most and O(log P) comparisons."""

    def __init__(self, items: list[Item], block: int = 512) -> None:
        items = sorted(items)
        self._block = block
        self._parts = [items[i : i + block] for i in range(0, len(items), block)] or [[]]
        self._lasts = [part[-1] for part in self._parts if part]

    def pairs(self) -> Iterator[tuple[Item, Item]]:
        yield from pairwise(item for part in self._parts for item in part)

    def add(self, item: Item) -> tuple[Item | None, Item | None]:
        """Put it in its place; the items before and after it."""
        if not self._lasts:
            self._parts, self._lasts = [[item]], [item]
            return None, None
        at = min(bisect_left(self._lasts, item), len(self._parts) - 1)
        part = self._parts[at]
        insort(part, item)
        self._lasts[at] = part[-1]
        if len(part) > 2 * self._block:
            self._parts[at : at + 1] = [part[: self._block], part[self._block :]]
            self._lasts[at : at + 1] = [part[self._block - 1], part[-1]]
        return self._before(item), self.after(item)

    def remove(self, item: Item) -> None:
        at = bisect_left(self._lasts, item)
        part = self._parts[at]
        del part[bisect_left(part, item)]
        if part:
            self._lasts[at] = part[-1]
        else:
            del self._parts[at], self._lasts[at]

    def after(self, item: Item) -> Item | None:
        at = bisect_right(self._lasts, item)
        if at == len(self._lasts):
            return None
        part = self._parts[at]
        return part[bisect_right(part, item)]

    def gap(self, value: float) -> tuple[Item | None, Item | None]:
        """The items on both sides of a value where nothing is any more."""
        here = (value, -1)
        return self._before(here), self.after(here)

    def _before(self, item: Item) -> Item | None:
        at = bisect_left(self._lasts, item)
        if at < len(self._lasts):
            place = bisect_left(self._parts[at], item)
            if place:
                return self._parts[at][place - 1]
        return self._lasts[at - 1] if at else None


def thresholds(found: Float, floor: float = 1e-8) -> tuple[float, ...]:
    """The median over public rows of every group's norm: of rows, not of their mean."""
    return tuple(float(max(np.median(found[:, j]), floor)) for j in range(found.shape[1]))


def least_noise(
    multiplier: float, limits: Sequence[float], sizes: Sequence[int]
) -> tuple[float, ...]:
    """Multipliers m_j = τ_j/c_j with the least total noise Σ d_j·τ_j² at a joint multiplier m.

    τ_j² = m²·(c_j/√d_j)·Σ_i c_i·√d_i; the total is m²·(Σ_i c_i·√d_i)².
    """
    weights = [c * math.sqrt(max(1, d)) for c, d in zip(limits, sizes, strict=True)]
    total = sum(weights)
    return tuple(multiplier * math.sqrt(total / w) for w in weights)


def adapted(
    limits: Sequence[float], shares: Sequence[float], target: float, rate: float
) -> tuple[float, ...]:
    """C ← C·exp(−η(b̃ − target)), b̃ the noisy share of rows below (Andrew et al. 2021)."""
    pairs = zip(limits, shares, strict=True)
    return tuple(c * math.exp(-rate * (min(max(b, 0.0), 1.0) - target)) for c, b in pairs)


def bit_share(multiplier: float, groups: int, bits: float) -> float:
    """What is left of a joint multiplier z for gradients: (z^−2 − l·(2σ_b)^−2)^−½, bits = 2σ_b."""
    left = multiplier**-2 - groups * bits**-2
    if left <= 0:
        raise ValueError(f"{groups} watched thresholds at {bits} take more than {multiplier}")
    return left**-0.5
