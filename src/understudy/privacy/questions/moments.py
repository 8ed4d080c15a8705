"""Public random features of rows, and their sums over private rows, with discrete Gaussian noise.

A map is a network of one layer whose first layer is public and random: for each of J marginals c, P
units that look at the one-hot code x_c of its columns,

    fourier   (cos⟨ω_k, x_c⟩, sin⟨ω_k, x_c⟩)/√P, ω_k normal: the features of a Gaussian kernel (Rahimi
              and Recht 2007)
    relu      ReLU(⟨a_k, x_c⟩ + 1 − |c|)/√P, a_k zeros and ones that take about half the values of every
              column: on a row the unit *is* the conjunction 1[x_i in V_i for all i in c]
    softplus  ln(1 + e^{κz})/κ for ReLU(z), within ln2/κ of it, divided by 1 + ln2/κ

so that every block has ‖ψ_c(x)‖₂ ≤ 1 and a row ‖ψ(x)‖₂ ≤ √J. What is summed is rint(GRID·ψ), row by
row: a row adds an integer vector of norm at most √J·(GRID + √K/2), K the features of a block, and a sum
with discrete Gaussian noise is a `SampledGaussian` of rate 1. A critic with these features is
⟨θ, ψ(x)⟩: the last layer is all that is trained, and it is trained on the noisy sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Floats, Whole
from understudy.errors import PrivacyError
from understudy.privacy import planning
from understudy.privacy.cost import SampledGaussian
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import added
from understudy.privacy.questions.requests import require_cliques
from understudy.privacy.relation import Relation

GRID = 2**12
"""Features are multiples of 1/4096."""
KINDS = ("fourier", "relu", "softplus")

_BLOCK = 4_000_000  # Entries of the features that are held at once


@dataclass(frozen=True)
class RandomFeatures:
    """`units` of a `kind` for each of the `cliques`, drawn from the public number `key`."""

    shape: tuple[int, ...]
    cliques: tuple[Clique, ...]
    kind: str = "fourier"
    units: int = 32
    key: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise PrivacyError(f"features = {self.kind!r} is not one of {', '.join(KINDS)}")
        if self.units < 1 or not self.cliques:
            raise PrivacyError("features need a marginal to look at and at least one unit")

    @property
    def block(self) -> int:
        """Features of one marginal."""
        return self.units * (2 if self.kind == "fourier" else 1)

    @property
    def kappa(self) -> float:
        """How sharp a softplus is."""
        return 8.0

    @property
    def over(self) -> float:
        """What units are divided by, so that a block has norm at most 1."""
        most = 1 + math.log(2) / self.kappa if self.kind == "softplus" else 1.0
        return most * math.sqrt(self.units)

    @property
    def size(self) -> int:
        """All features."""
        return self.block * len(self.cliques)

    @cached_property
    def weights(self) -> tuple[Floats, ...]:
        """The first layer: for each marginal (Σ sizes of its columns, units)."""
        rng = np.random.default_rng(self.key)
        made: list[Floats] = []
        for clique in self.cliques:
            parts: list[Floats] = []
            for column in clique:
                size = (self.shape[column], self.units)
                if self.kind == "fourier":
                    parts.append(rng.normal(size=size))
                else:
                    parts.append(np.where(rng.random(size) < 0.5, 1.0, 0.0))
            made.append(np.concatenate(parts))
        return tuple(made)

    def features(self, at: int, codes: Sequence[NDArray[np.integer[Any]]]) -> Floats:
        """ψ_c (rows, block) of the marginal number `at`; one code array for each of its columns."""
        clique, weights = self.cliques[at], self.weights[at]
        starts = np.cumsum([0, *(self.shape[i] for i in clique)])[:-1]
        inside = np.zeros((len(codes[0]), self.units))
        for start, code in zip(starts, codes, strict=True):
            inside += weights[start + np.asarray(code, np.int64)]
        if self.kind == "fourier":
            return np.concatenate([np.cos(inside), np.sin(inside)], axis=1) / self.over
        z = inside + 1 - len(clique)
        if self.kind == "relu":
            return np.maximum(z, 0) / self.over
        return np.logaddexp(0, self.kappa * z) / self.kappa / self.over


def event_for(maps: RandomFeatures, relation: Relation, rho: Fraction) -> SampledGaussian:
    """The least noise that costs at most ρ; σ in units of 1/`GRID` row."""
    sides = relation.marginal_l1()
    return planning.whole_sum(rho, l2=_norm(maps), coordinates=maps.size, sides=sides)


def summed(maps: RandomFeatures, tables: Sequence[tuple[Whole, Whole]]) -> Whole:
    """Σ_rows rint(GRID·ψ) from the occupied cells (packed in C order) and counts of every marginal."""
    total = np.empty(maps.size, np.int64)
    rows = max(1, _BLOCK // maps.block)
    for at, (cells, counts) in enumerate(tables):
        domain = tuple(maps.shape[i] for i in maps.cliques[at])
        sums = np.zeros(maps.block, np.int64)
        for start in range(0, cells.size, rows):
            part = slice(start, start + rows)
            values = maps.features(at, np.unravel_index(cells[part], domain))
            sums += counts[part] @ np.rint(GRID * values).astype(np.int64)
        total[at * maps.block : (at + 1) * maps.block] = sums
    return total


def _norm(maps: RandomFeatures) -> int:
    """√J·(GRID + √K/2), rounded up with room for float64."""
    each = GRID + math.sqrt(maps.block) / 2
    return math.ceil(math.sqrt(len(maps.cliques)) * each * (1 + 1e-9))


@dataclass(frozen=True, slots=True)
class Moments:
    """Noisy sums of all features, in rows."""

    maps: RandomFeatures

    mechanism = staticmethod(added)

    def need(self, facts: Facts) -> Need:
        """The norm of a row's features."""
        maps = self.maps
        if type(maps) is not RandomFeatures:  # a subclass might compute longer vectors
            raise PrivacyError(f"features must come as RandomFeatures, got {type(maps).__name__}")
        require_cliques(maps.cliques, facts)
        if maps.shape != facts.shape:
            raise PrivacyError(f"the features speak of {maps.shape} values, not {facts.shape}")
        return Need(
            (SampledGaussian,),
            lambda e: (
                e.rate == 1.0
                and e.l2 >= _norm(maps)
                and e.coordinates >= maps.size
                and e.sides >= facts.relation.marginal_l1()
            ),
            f"{maps.size} sums of {maps.kind} features on {len(maps.cliques)} marginals",
            (maps.size,),
        )

    def exact(self, rows: Tables, event: SampledGaussian) -> Whole:
        """On the grid of features."""
        return summed(self.maps, rows.sparse(self.maps.cliques))

    def decode(self, drawn: Whole, facts: Facts) -> Floats:
        """In rows."""
        return drawn / GRID
