"""Smart clipping: the critic's weights in groups of like gradients, found anew as training goes on.

Algorithm 3 of Boob et al. (2018), where a grouping is a function of the critic as it stands, which
follows from released numbers, and of rows that anybody may know: public ones, or records that the
generator makes up. So it is post-processing and costs nothing, however often it is found; what a step
costs does not depend on it (`privacy.questions.gradient`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Codes, Floats

if TYPE_CHECKING:
    from understudy.nets.gan import Rows


LOOKED_AT = 512
"""Public rows, or made-up ones, whose gradients tell groups and thresholds."""
_KEPT = 4  # Of so many public rows one is kept from the warm start
_FINER = 4
"""Clustering stops at so many times the groups that are wanted, so that enough of them are alive."""
_DEAD = 1e-2
"""A group with less than this share of the largest threshold, or of rows, joins its neighbour."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """Who belongs where, thresholds c_j, and shares s_j of the joint multiplier, Σ s_j² = 1."""

    members: tuple[NDArray[np.int32], ...] | None
    thresholds: tuple[float, ...]
    shares: tuple[float, ...]

    @property
    def scales(self) -> tuple[float, ...]:
        """c_j/s_j: noise on a weight of group j is the multiplier times this."""
        return tuple(c / s for c, s in zip(self.thresholds, self.shares, strict=True))


def grouped(network: Rows, codes: Sequence[NDArray[Any]], groups: int) -> Grouping:
    """At most so many groups by weight clustering, thresholds the median norms of rows.

    A group that few rows touch, or whose rows hardly move it, joins the next one in order of size: it
    would be clipped to nothing and paid for all the same. Then the closest neighbours merge.
    """
    from understudy.nets.clipping import clusters, norms, shares, thresholds
    from understudy.nets.gan import public_gradient

    members = np.zeros(sum((i + 1) * o for i, o in network.layers), np.int32)
    finer = _FINER * groups if groups > 1 else 1
    if groups > 1:
        members = clusters(public_gradient(network, codes), finer)
    parts = _by_layer(members, network.layers)
    matrix = np.stack([np.asarray(column) for column in codes], axis=1)
    whole = np.resize(matrix, (-(-len(matrix) // network.slots) * network.slots, matrix.shape[1]))
    chunks = [
        norms(network.factors(whole[i : i + network.slots]), parts, finer)
        for i in range(0, len(whole), network.slots)
    ]
    names, alive = _alive(np.concatenate(chunks)[: len(matrix)], groups)
    members, limits = names[members], thresholds(alive)
    sizes = np.bincount(members, minlength=len(limits)).tolist()
    kept = _by_layer(members, network.layers) if len(limits) > 1 else None
    return Grouping(kept, limits, shares(limits, sizes))


def regrouped(
    before: Grouping, network: Rows, codes: Sequence[NDArray[Any]], groups: int
) -> Grouping:
    """Groups as the critic has them now: who belongs where, and how thresholds compare.

    How large they are together, √Σ c_j², stays as it was: that is for adaptive clipping to change.
    """
    made = grouped(network, codes, groups)
    factor = math.hypot(*before.thresholds) / math.hypot(*made.thresholds)
    return replace(made, thresholds=tuple(factor * c for c in made.thresholds))


def parted(public: tuple[Codes, ...]) -> tuple[tuple[Codes, ...], tuple[Codes, ...]]:
    """Public rows for groups and thresholds, a quarter, and for the warm start.

    A critic knows the rows that it was warmed with: their gradients are small, and tell little of those
    of other rows. A single row is both.
    """
    order = np.random.default_rng(0).permutation(len(public[0]))
    cut = -(-len(order) // _KEPT)
    kept, rest = order[:cut], order[cut:] if len(order) > 1 else order
    return tuple(column[kept] for column in public), tuple(column[rest] for column in public)


def _by_layer(
    members: NDArray[np.int32], layers: Sequence[tuple[int, int]]
) -> tuple[NDArray[np.int32], ...]:
    ends = np.cumsum([(i + 1) * o for i, o in layers])[:-1]
    pairs = zip(np.split(members, ends), layers, strict=True)
    return tuple(part.reshape(i + 1, o) for part, (i, o) in pairs)


def _alive(found: Floats, groups: int) -> tuple[NDArray[np.int32], Floats]:
    """New names of the groups, and norms of rows in those that are left, from (rows, groups)."""
    names = np.arange(found.shape[1], dtype=np.int32)
    while (low := _merging(found, groups)) is not None:  # it and the next one become one
        both = np.hypot(found[:, low], found[:, low + 1])
        found = np.delete(found, low + 1, axis=1)
        found[:, low] = both
        names[names > low] -= 1
    return names, found


def _merging(found: Floats, groups: int) -> int | None:
    """The first of two neighbours that merge: one of them is dead, or there are too many groups."""
    from understudy.nets.clipping import thresholds

    limits = np.array(thresholds(found))
    dead = (limits < _DEAD * limits.max()) | ((found > 0).mean(axis=0) < _DEAD)
    if len(limits) > 1 and dead.any():
        return min(int(np.argmax(dead)), len(limits) - 2)
    if len(limits) > groups:
        return int(np.argmin(np.abs(np.diff(np.log(limits)))))
    return None
