"""Sums of clipped gradients of a network over private rows: exact, on integers, never row by row.

Σ over a Poisson sample, clipped row by row and group by group, with Gaussian noise on every weight; an
empty sample is noise alone, and charged. Planned as `SampledGroups` with one multiplier m for all
weights and, with `watch`, a second for whether rows were below the groups' thresholds (Andrew et al.
2021).

A dense layer's gradient for one row is an outer product a ⊗ δ of what goes into the layer (with a 1 for
the bias) and what comes back to it. So the norm of a row's gradient is known from the two factors
(Goodfellow 2015; "ghost norms"), restricted to any set M of weights too,

    ‖g‖²_M = Σ_layers Σ_{kl∈M} a_k²·δ_l² = Σ_layers ⟨a² M, δ²⟩,

and the sum of clipped gradients is a matrix product Σ_i s_i·a_i ⊗ δ_i: no gradient of a single row is
ever held.

**What is trusted.** The network is handed in and is public: `factors` maps rows to their factors, *each
row by itself*. Nothing else about it matters here. Whatever it returns, even nonsense, factors are put
on a grid (a on 2^−12, δ on 2^−24 of the threshold), shortened towards zero until the row's part of each
group has L2 norm at most s_j·`UNIT`, `UNIT` = 2^36 (a larger input meets a δ of 0), and added up in
float64, where products and sums below 2^53 of whole numbers are exact in every order. A row's norm,
too, is found from that row alone or by exact sums: the rounding of a matrix product would depend on the
company.

**Groups** are sets of weights with a threshold c_j and a share s_j of their own, Σ_j s_j² ≤ 1. A row's
gradient in group j is clipped to c_j and divided by c_j/s_j, so that over *all* weights it has norm at
most √(Σ s_j²) ≤ 1, in units of `UNIT`: a row moves the whole vector by at most `UNIT` (2·`UNIT` where
it is replaced), with nothing set aside for rounding. Noise of m on every coordinate is then one
Gaussian mechanism of multiplier m, whatever the groups, thresholds and shares; on a weight of group j
it is τ_j = m·c_j/s_j, and 1/m² ≥ Σ_j c_j²/τ_j². All three may therefore change from step to step as
functions of what was released, and the cost of a step does not. Of l watched groups a row moves every
±1 count by 1, √l in all: counts are multiplied by ⌊`UNIT`/√l⌋.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy._types import Floats, Whole
from understudy.errors import PrivacyError
from understudy.privacy.cost import SampledGroups
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import Grouped, noised
from understudy.privacy.questions.requests import require_rows_at_hand

_INPUTS, _DELTAS = 2**12, 2**24
UNIT = _INPUTS * _DELTAS
"""How far one row moves the sum of a group: its threshold, in units of the grid."""

_WITHIN = -(2.0**60), 2.0**60  # A row whose norm overflows has its factors brought within these
# Squares of a row's whole inputs add up to no more than this, where their sums must be exact.
_SQUARES = 2**52
# Thresholds within these bounds: no square that matters underflows.
_THRESHOLDS = 2.0**-100, 2.0**100
# Room for float64 in the norms, and in shares whose squares should add up to 1.
_INSIDE = 1 - 1e-6
_ROUNDING = 1e-9
_MOST_SLOTS = 2**16  # Sums of so many rows stay below 2^53
_BLOCK = 256  # Rows that are added up at once: few enough to stay in a processor's cache

Steps = NDArray[np.int32]


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
    """Which group every weight belongs to, and the groups' thresholds and shares; public.

    `members` holds one array (inputs + 1, outputs) of group numbers per layer, the bias last; None puts
    all weights into one group. `shares` are the s_j, Σ s_j² ≤ 1; left out, they are 1/√l each.
    """

    thresholds: tuple[float, ...]
    members: tuple[NDArray[np.integer[Any]], ...] | None = None
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        low, high = _THRESHOLDS
        # Copies: what is checked here stays what rows are clipped to.
        for name in ("thresholds", "shares"):
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))
        if self.members is not None:
            object.__setattr__(self, "members", tuple(map(_fixed, self.members)))
        if not self.thresholds or not all(low <= c <= high for c in self.thresholds):
            raise PrivacyError(f"thresholds {self.thresholds} must be above 0 and finite")
        if self.members is None and len(self.thresholds) != 1:
            raise PrivacyError(f"{len(self.thresholds)} thresholds need as many groups")
        if not self.shares:
            even = 1 / math.sqrt(len(self.thresholds))
            object.__setattr__(self, "shares", (even,) * len(self.thresholds))
        if len(self.shares) != len(self.thresholds) or not all(s > 0 for s in self.shares):
            raise PrivacyError(f"shares {self.shares} must be above 0, one for each group")
        if not math.fsum(s * s for s in self.shares) <= 1 + _ROUNDING:
            raise PrivacyError(f"the squares of shares {self.shares} must add up to 1 at most")
        if not all(c <= high for c in self.scales):
            raise PrivacyError(f"shares {self.shares} are too small for {self.thresholds}")

    @property
    def scales(self) -> tuple[float, ...]:
        """c_j/s_j: what one unit of every group is."""
        return tuple(c / s for c, s in zip(self.thresholds, self.shares, strict=True))

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


def _fixed(members: NDArray[np.integer[Any]]) -> NDArray[np.integer[Any]]:
    kept = np.array(members)
    kept.setflags(write=False)
    return kept


def clipped_sums(network: Network, rows: NDArray[Any], groups: Groups) -> tuple[Whole, Whole]:
    """(Σ of clipped gradients in units, Σ over rows of ±1 by group: whether a row was below).

    Exact. The second moves by 1 a row, that is by its sensitivity ½ counted in halves.
    """
    slots, layers = network.slots, network.layers
    if not 1 <= slots <= _MOST_SLOTS:
        raise PrivacyError(f"slots = {slots} must be from 1 to {_MOST_SLOTS}")
    total = np.zeros(sum((i + 1) * o for i, o in layers), np.int64)
    below = np.zeros(len(groups.thresholds), np.int64)
    room = _Room(layers)
    for start in range(0, len(rows), slots):
        part = rows[start : start + slots]
        padded = np.zeros((slots, rows.shape[1]), rows.dtype)
        padded[: len(part)] = part
        found = [(np.asarray(a), np.asarray(d)) for a, d in network.factors(padded)]
        if [(a.shape, d.shape) for a, d in found] != [((slots, i), (slots, o)) for i, o in layers]:
            raise PrivacyError("the network's factors have other shapes than its layers")
        room.sums[:] = 0.0
        with np.errstate(all="ignore"):  # a warning would tell of a row
            for at in range(0, len(part), _BLOCK):
                block = slice(at, min(at + _BLOCK, len(part)))
                below += _add([(a[block], d[block]) for a, d in found], groups, room)
        total += room.sums.astype(np.int64)
    return total, below


class _Room:
    """Memory for a block of rows and the sums, asked for once: fresh pages cost more than the work."""

    def __init__(self, layers: Sequence[tuple[int, int]]) -> None:
        self.inputs = [np.empty((_BLOCK, i)) for i, _ in layers]
        self.deltas = [np.empty((_BLOCK, o)) for _, o in layers]
        self.short = [np.empty((_BLOCK, o)) for _, o in layers]
        self.products = [np.empty((i + 1, o)) for i, o in layers]
        self.sums = np.empty(sum(p.size for p in self.products))
        ends = np.cumsum([p.size for p in self.products])[:-1]
        parts = zip(np.split(self.sums, ends), self.products, strict=True)
        self.parts = [part.reshape(p.shape) for part, p in parts]


def _add(
    factors: Sequence[tuple[NDArray[Any], NDArray[Any]]], groups: Groups, room: _Room
) -> Whole:
    """Add up a block of rows in `room.sums`; Σ of ±1 by group."""
    count = len(factors[0][0])
    inputs, deltas = ([x[:count] for x in xs] for xs in (room.inputs, room.deltas))
    for (a, d), whole, delta in zip(factors, inputs, deltas, strict=True):
        np.rint(np.multiply(a, _INPUTS, out=whole), out=whole)
        delta[...] = d
    if groups.members is not None:
        for whole in inputs:
            most = math.isqrt(_SQUARES // whole.shape[1])
            np.clip(whole, -most, most, out=whole)
    squares = _squares(inputs, deltas)
    odd = np.flatnonzero(~np.isfinite(squares))
    if odd.size:  # of these rows, and no others: what is no number counts as 0
        for values in (*inputs, *deltas):
            values[odd] = np.clip(np.where(np.isnan(values[odd]), 0.0, values[odd]), *_WITHIN)
        squares = _squares(inputs, deltas)
    below = np.empty(len(groups.thresholds), np.int64)
    last = len(below) - 1
    for j, (scale, share) in enumerate(zip(groups.scales, groups.shares, strict=True)):
        masks = None
        if groups.members is not None:
            masks = [(np.asarray(m) == j).astype(np.float64) for m in groups.members]
            squares = _squares(inputs, deltas, masks)
        norms = np.sqrt(squares) * (_DELTAS / scale)
        below[j] = 2 * int((norms <= share * UNIT).sum()) - count
        shrink = np.minimum(1.0, share * UNIT * _INSIDE / norms) * (_DELTAS / scale)
        for layer, (a, d) in enumerate(zip(inputs, deltas, strict=True)):
            short = d if j == last else room.short[layer][:count]
            product = room.products[layer]
            np.trunc(np.multiply(d, shrink[:, None], out=short), out=short)
            np.matmul(a.T, short, out=product[:-1])
            np.multiply(short.sum(axis=0), _INPUTS, out=product[-1])
            if masks is not None:
                product *= masks[layer]
            room.parts[layer] += product
    return below


def _squares(
    inputs: Sequence[Floats], deltas: Sequence[Floats], masks: Sequence[Floats] | None = None
) -> Floats:
    """‖g‖² of every row, over all weights or those of the masks; the input of a bias is 1.

    With masks, the squares of inputs must stay below `_SQUARES`: then their matrix product is exact.
    """
    total = np.zeros(len(inputs[0]))
    for layer, (a, d) in enumerate(zip(inputs, deltas, strict=True)):
        if masks is None:
            total += (np.vecdot(a, a) + _INPUTS**2) * np.vecdot(d, d)
        else:
            weights, bias = masks[layer][:-1], masks[layer][-1]
            total += np.vecdot((a * a) @ weights + _INPUTS**2 * bias, d * d)
    return total


@dataclass(frozen=True, slots=True, eq=False)
class NetworkGradient:
    """`held_out` is the share of rows, each by a coin of its own, that never take part."""

    network: Network
    groups: Groups
    watch: bool = False
    held_out: float = 0.0

    mechanism = staticmethod(noised)

    def need(self, facts: Facts) -> Need:
        """One multiplier for all weights, and one to watch."""
        require_rows_at_hand(facts)
        if type(self.groups) is not Groups:  # a subclass might name other groups than it clips
            raise PrivacyError(f"groups must come as Groups, got {type(self.groups).__name__}")
        wanted = 1 + self.watch
        numbers = self.groups.flat(self.network.layers).size + self._watched
        sides = facts.relation.marginal_l1()
        return Need(
            (SampledGroups,),
            lambda e: (
                len(e.multipliers) == wanted and e.coordinates >= numbers and e.sides >= sides
            ),
            f"a gradient of {numbers} coordinates in {wanted} groups under {facts.relation}",
            None,
        )

    @property
    def _watched(self) -> int:
        return len(self.groups.thresholds) if self.watch else 0

    def exact(self, rows: Tables, event: SampledGroups) -> Grouped:
        """Sums of a fresh sample, and the multiplier of every coordinate."""
        records = rows.records(self.held_out, inside=False)
        sample = rows.sample(len(records), event.rate)
        sums, below = clipped_sums(self.network, records[sample], self.groups)
        kind = np.repeat([0, 1], [sums.size, self._watched])
        if self.watch:
            sums = np.concatenate([sums, math.isqrt(UNIT**2 // below.size) * below])
        return Grouped(sums, kind, UNIT)

    def decode(self, drawn: Whole, facts: Facts) -> tuple[Steps, Steps]:
        """One number per weight, layer after layer and a layer's biases last, in multiples of
        m·c_j/s_j/`GRAIN`; and for every group that is watched the rows below its threshold less half
        of all, in multiples of √l·m/(2·`GRAIN`), m the second multiplier.
        """
        limits = np.iinfo(np.int32)
        steps = np.clip(drawn, limits.min, limits.max).astype(np.int32)
        ends = steps.size - self._watched
        return steps[:ends], steps[ends:]
