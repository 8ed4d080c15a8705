"""Sums of clipped gradients of a network over private rows: exact, on integers, never row by row.

A dense layer's gradient for one row is an outer product a ⊗ δ of what goes into the layer (with a 1 for
the bias) and what comes back to it. So the norm of a row's gradient is known from the two factors
(Goodfellow 2015; "ghost norms"), restricted to any set M of weights too,

    ‖g‖²_M = Σ_layers Σ_{kl∈M} a_k²·δ_l² = Σ_layers ⟨a² M, δ²⟩,

and the sum of clipped gradients is a matrix product Σ_i s_i·a_i ⊗ δ_i: no gradient of a single row is
ever held.

**What is trusted.** The network is handed in and is public: `factors` maps rows to their factors, *each
row by itself*. Nothing else about it matters here. Whatever it returns, even nonsense, factors are put
on a grid (a on 2^−12, δ on 2^−24 of the threshold), shortened towards zero until the row's part of each
group has L2 norm at most `UNIT` = 2^36, and added up in float64, where products and sums below 2^53 of
whole numbers are exact in every order. A row so moves the sum of a group by at most `UNIT` (by
2·`UNIT` where it is replaced), with nothing set aside for rounding.

Groups are sets of weights with a threshold c_j of their own: one unit of a group is c_j/`UNIT`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy.errors import PrivacyError

__all__ = ["UNIT", "Groups", "Network", "clipped_sums"]

_INPUTS, _DELTAS = 2**12, 2**24
UNIT = _INPUTS * _DELTAS
"""How far one row moves the sum of a group: its threshold, in units of the grid."""

_LARGEST_INPUT = float(2**20)
_LARGEST_DELTA = 2.0**60
# Room for float64 in the norms.
_INSIDE = 1 - 1e-6
# Sums of so many rows stay below 2^53.
_MOST_SLOTS = 2**16

Counts = NDArray[np.int64]
Reals = NDArray[np.float64]


class Network(Protocol):
    """Dense layers with public weights, as far as gradients of rows need them."""

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """(inputs, outputs) of every layer, the bias not counted."""
        ...

    @property
    def slots(self) -> int:
        """How many rows `factors` takes at a time; always as many, so that rows share no rounding."""
        ...

    def factors(self, rows: NDArray[Any]) -> Sequence[tuple[NDArray[Any], NDArray[Any]]]:
        """(a (slots, inputs), δ (slots, outputs)) of every layer, each row by itself."""
        ...


@dataclass(frozen=True, eq=False)
class Groups:
    """Which group every weight belongs to, and the groups' thresholds; public.

    `members` holds one array (inputs + 1, outputs) of group numbers per layer, the bias last; None puts
    all weights into one group.
    """

    thresholds: tuple[float, ...]
    members: tuple[NDArray[np.integer[Any]], ...] | None = None

    def __post_init__(self) -> None:
        if not self.thresholds or not all(math.isfinite(c) and c > 0 for c in self.thresholds):
            raise PrivacyError(f"thresholds {self.thresholds} must be finite and above 0")
        if self.members is None and len(self.thresholds) != 1:
            raise PrivacyError(f"{len(self.thresholds)} thresholds need as many groups")

    def flat(self, layers: Sequence[tuple[int, int]]) -> NDArray[np.integer[Any]]:
        """The group of every coordinate, layer after layer."""
        if self.members is None:
            return np.zeros(sum((i + 1) * o for i, o in layers), np.int8)
        shapes = [(i + 1, o) for i, o in layers]
        if [np.shape(m) for m in self.members] != shapes:
            raise PrivacyError(f"the groups' members must have the shapes {shapes}")
        flat = np.concatenate([np.asarray(m).reshape(-1) for m in self.members])
        if flat.dtype.kind not in "iu" or flat.min() < 0 or flat.max() >= len(self.thresholds):
            raise PrivacyError(f"groups must be whole numbers below {len(self.thresholds)}")
        return flat


def clipped_sums(
    network: Network, rows: NDArray[Any], groups: Groups
) -> tuple[Counts, Counts]:  # fmt: skip
    """(Σ of clipped gradients in units, Σ over rows of ±1 by group: whether a row was below).

    Exact. The second moves by 1 a row, that is by its sensitivity ½ counted in halves.
    """
    slots, layers = network.slots, network.layers
    if not 1 <= slots <= _MOST_SLOTS:
        raise PrivacyError(f"slots = {slots} must be from 1 to {_MOST_SLOTS}")
    total = np.zeros(sum((i + 1) * o for i, o in layers), np.int64)
    below = np.zeros(len(groups.thresholds), np.int64)
    for start in range(0, len(rows), slots):
        part = rows[start : start + slots]
        padded = np.zeros((slots, rows.shape[1]), rows.dtype)
        padded[: len(part)] = part
        found = network.factors(padded)
        if [(a.shape, d.shape) for a, d in found] != [((slots, i), (slots, o)) for i, o in layers]:
            raise PrivacyError("the network's factors have other shapes than its layers")
        inputs = [_inputs(np.asarray(a)[: len(part)]) for a, _ in found]
        deltas = [_deltas(np.asarray(d)[: len(part)]) for _, d in found]
        sums, inside = _chunk(inputs, deltas, groups)
        total += sums
        below += inside
    return total, below


def _inputs(a: NDArray[Any]) -> Reals:
    """On the grid, as whole float64 numbers, with the 1 of the bias at the end."""
    whole = np.empty((a.shape[0], a.shape[1] + 1))
    np.rint(_bounded(a * a.dtype.type(_INPUTS), _LARGEST_INPUT), out=whole[:, :-1])
    whole[:, -1] = _INPUTS
    return whole


def _deltas(d: NDArray[Any]) -> Reals:
    return _bounded(d, _LARGEST_DELTA).astype(np.float64) * _DELTAS


def _bounded(values: NDArray[Any], most: float) -> NDArray[Any]:
    """Within ±most; what is no number counts as −most: bounded like everything else."""
    limit = values.dtype.type(most)
    return np.fmin(np.fmax(values, -limit), limit)


def _chunk(inputs: list[Reals], deltas: list[Reals], groups: Groups) -> tuple[Counts, Counts]:
    sums, below = None, []
    for j, threshold in enumerate(groups.thresholds):
        squares = np.zeros(len(inputs[0]))
        for layer, (a, d) in enumerate(zip(inputs, deltas, strict=True)):
            if groups.members is None:
                squares += np.einsum("ij,ij->i", a, a) * np.einsum("ij,ij->i", d, d)
            else:
                mask = (np.asarray(groups.members[layer]) == j).astype(np.float64)
                squares += np.einsum("ij,ij->i", (a * a) @ mask, d * d)
        norms = np.sqrt(squares) / threshold
        with np.errstate(divide="ignore"):
            shrink = np.minimum(1.0, UNIT * _INSIDE / norms) / threshold
        below.append(2 * int((norms <= UNIT).sum()) - len(norms))
        parts: list[Reals] = []
        for layer, (a, d) in enumerate(zip(inputs, deltas, strict=True)):
            product = a.T @ np.trunc(d * shrink[:, None])
            if groups.members is not None:
                product *= np.asarray(groups.members[layer]) == j
            parts.append(product.reshape(-1))
        flat = np.concatenate(parts)
        sums = flat if sums is None else sums + flat
    assert sums is not None
    return sums.astype(np.int64), np.array(below, np.int64)
