"""Expected error of every marginal before, and after, a release by measured columns and pairs.

A table of counts c is estimated from noisy tables and from what is believed without them. Take a cell
with expectation b under independence. Its count deviates from b with variance τ² = κ·b,
κ = 1 + n·φ²/K: the sampling of n rows, and dependence of mean square contingency φ² spread over the
K cells. A measurement with noise σ leaves of that the posterior variance σ²τ²/(σ² + τ²). So, for a
marginal on columns C with shares p_i,

    v = Σ_i v_i·Π_{j≠i} p_j² + Σ_{ij} v_ij·Π_{k≠i,j} p_k² + κ_C·b·[|C| > 2] + s·b,

the errors of its columns, of the interactions of its pairs, of its own interaction, which is not
measured, and of the synthetic rows, drawn with low discrepancy (s < 1;
large b count less in the last two). With E|N(0, v)| = 0.8·√v and
no cell off by more than the share it can have,

    TV ≈ ½ Σ_cells min(0.8·√v, g·b)/n,      worst cell ≈ max_v √v·√(2 ln(2·#{cells with at least v}))/n.

v_i and v_ij have the factor 1 − 1/K of every column in them, as an interaction sums to zero along it.
Before a release shares are taken for p_k ∝ 1/k^1.2 and φ² for a constant; afterwards both come from the
released model. What dependence a table really has is private, so this is an expectation over tables
like those it was calibrated on (tests/game/test_forecast.py), not a bound; the certificate is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np

from understudy._types import Clique, Table
from understudy.models import View
from understudy.queries import sizes
from understudy.wording import nothing, points

__all__ = ["Errors", "Expected", "Knowledge", "expected", "seen"]


_MEAN = 0.8
"""E|N(0, 1)| = √(2/π)."""
_COLUMN, _PAIR, _HIGHER = 1.0, 0.03, 0.002
"""φ² that a column, a pair and a larger table are believed to have."""
_DRAWN = 0.07
"""s: what systematic resampling and swaps leave of the variance of sampling."""
_EVEN = 50.0
"""Counts above this are drawn almost evenly."""
_LARGE = 2.0
"""Interactions of three and more columns grow with a cell up to about this many times the mean."""
_SKEW = 1.2
"""Shares of a column fall as 1/k^skew, before anything is known of it."""
_GUESS = 1.3
"""g: a large cell of which nothing is known is off by about this much of its share; a cell with less
than a row by twice it, for a row is there or is not."""
_BLIND = 0.85
"""At this share of the error that knowing nothing would have, a release is noise."""
_GROUPS = 24
_CELLS = 4_000
_LOOKED_AT, _AT_ONCE = 150, 16
"""Pairs of a released model, and how many of their tables are held in memory."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Of one marginal: total variation, and the error of its worst cell, both as shares of n."""

    clique: Clique
    total_variation: float
    worst: float


@dataclass(frozen=True, slots=True)
class Errors:
    """What to expect of every marginal of a workload."""

    marginals: tuple[Expected, ...]
    rows: int
    mean: float
    """Mean total variation."""
    worst: float
    """The worst cell of the workload."""
    blind: float
    """The mean total variation if nothing were known but the schema and n."""

    @property
    def noise(self) -> bool:
        """Whether the release would say hardly more than the schema does."""
        return self.mean > _BLIND * self.blind

    def __str__(self) -> str:
        worst = max((e.total_variation for e in self.marginals), default=0.0)
        text = (
            f"total variation about {points(self.mean)} on average and {points(worst)} for the worst "
            f"table, worst cell about {points(self.worst)} (estimates){nothing(self.worst)}"
        )
        if self.noise:
            text += (
                f". That is mostly noise: with {self.rows:,} rows this budget shows hardly more than "
                f"the schema does; give a larger epsilon, more rows or coarser columns"
            )
        return text

    def to_json(self) -> dict[str, Any]:
        """Marginals in the order of the workload; four digits are more than a forecast has."""
        return {
            "rows": self.rows,
            "mean": _digits(self.mean),
            "worst": _digits(self.worst),
            "blind": _digits(self.blind),
            "total_variations": [_digits(e.total_variation) for e in self.marginals],
            "worst_cells": [_digits(e.worst) for e in self.marginals],
            "words": str(self),
        }

    @classmethod
    def from_json(cls, stated: Mapping[str, Any], cliques: Sequence[Clique]) -> Errors:
        """Read what `to_json` wrote."""
        lists = zip(cliques, stated["total_variations"], stated["worst_cells"], strict=True)
        return cls(
            tuple(Expected(clique, float(tv), float(worst)) for clique, tv, worst in lists),
            int(stated["rows"]),
            float(stated["mean"]),
            float(stated["worst"]),
            float(stated["blind"]),
        )


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Standard deviations of what is measured, in rows; ∞ for what is not."""

    columns: tuple[float, ...]
    pairs: Mapping[Clique, float]

    def nothing(self) -> Knowledge:
        """The same without any measurement."""
        return Knowledge((math.inf,) * len(self.columns), {})


@dataclass(frozen=True, slots=True)
class _Law:
    """A column in groups of values alike: (share of one value, number of values) for each group."""

    shares: Table
    values: Table


@dataclass(frozen=True, slots=True)
class Seen:
    """What a released model shows: the shares of every column, and the mean φ² of its pairs."""

    laws: tuple[Table, ...]
    pair: float


def seen(shape: Sequence[int], model: View, pairs: Sequence[Clique], rows: int) -> Seen:
    """Look at a released model. Post-processing."""
    laws = tuple(model.marginals([(i,) for i in range(len(shape))]))
    small = zip(pairs, sizes(shape, pairs), strict=True)
    some = [pair for pair, size in small if size <= 1_000_000]
    if len(some) > _LOOKED_AT:
        some = [some[round(k)] for k in np.linspace(0, len(some) - 1, _LOOKED_AT)]
    found: list[float] = []
    tables = (
        t for at in range(0, len(some), _AT_ONCE) for t in model.marginals(some[at : at + _AT_ONCE])
    )
    for (i, j), table in zip(some, tables, strict=True):
        base = np.multiply.outer(laws[i], laws[j])
        gap = float(np.abs(table - base).sum()) / 2
        # 0.4·Σ√(κ·b/n) = TV for dependence spread as it is believed to be; solved for φ².
        spread = _MEAN / 2 * float(np.sqrt(base).sum()) / math.sqrt(base.size)
        found.append(max((gap / spread) ** 2 - base.size / max(rows, 1), 0.0))
    return Seen(laws, float(np.mean(found)) if found else _PAIR)


def expected(
    shape: Sequence[int],
    cliques: Sequence[Clique],
    weights: Sequence[float],
    rows: int,
    knowledge: Knowledge,
    released: Seen | None = None,
) -> Errors:
    """What to expect of `cliques`; from public facts alone, or with what a release has shown."""
    rows = max(int(rows), 1)
    width = max((len(clique) for clique in cliques), default=1)
    groups = max(2, min(_GROUPS, int(_CELLS ** (1 / max(width, 1)))))
    if released is None:
        laws = [_law(np.arange(1.0, size + 1) ** -_SKEW, groups) for size in shape]
    else:
        laws = [_law(law, groups) for law in released.laws]
    pair = _PAIR if released is None else max(_PAIR / 4, released.pair)
    known = _Marginals(tuple(shape), laws, rows, knowledge, pair)
    blind = _Marginals(tuple(shape), laws, rows, knowledge.nothing(), pair)
    marginals: list[Expected] = []
    lost: list[float] = []
    worst = 0.0
    for clique in cliques:
        variation, cell, overall = known.of(clique, len(cliques))
        marginals.append(Expected(clique, variation, cell))
        worst = max(worst, overall)
        lost.append(blind.of(clique, len(cliques))[0])
    total = sum(weights) or 1.0
    return Errors(
        tuple(marginals),
        rows,
        sum(w * e.total_variation for w, e in zip(weights, marginals, strict=True)) / total,
        worst,
        sum(w * e for w, e in zip(weights, lost, strict=True)) / total,
    )


class _Marginals:
    """The formula of the module; marginals that are alike are worked out once."""

    def __init__(
        self,
        shape: tuple[int, ...],
        laws: Sequence[_Law],
        rows: int,
        knowledge: Knowledge,
        pair: float,
    ) -> None:
        self._shape, self._laws, self._rows, self._pair = shape, laws, rows, pair
        self._knowledge = knowledge
        self._like: dict[Any, tuple[float, float, float]] = {}
        first: dict[Any, int] = {}
        self._alike = [
            first.setdefault((law.shares.tobytes(), law.values.tobytes()), i)
            for i, law in enumerate(laws)
        ]

    def of(self, clique: Clique, marginals: int) -> tuple[float, float, float]:
        """(total variation, worst cell, worst cell if there are so many marginals)."""
        known = self._knowledge
        key = (
            tuple(self._alike[i] for i in clique),
            tuple(known.columns[i] for i in clique),
            tuple(known.pairs.get(pair, math.inf) for pair in combinations(clique, 2)),
        )
        if key not in self._like:
            self._like[key] = self._work(clique, marginals)
        return self._like[key]

    def _work(self, clique: Clique, marginals: int) -> tuple[float, float, float]:
        if not clique:
            return 0.0, 0.0, 0.0
        n, known = float(self._rows), self._knowledge
        shares = dict(zip(clique, np.ix_(*(self._laws[i].shares for i in clique)), strict=True))
        share = _product(shares.values())
        number = _product(np.ix_(*(self._laws[i].values for i in clique)))
        parts: list[tuple[Clique, float, float]]
        parts = [((i,), _COLUMN, known.columns[i]) for i in clique]
        for pair in combinations(clique, 2):
            parts.append((pair, self._pair, known.pairs.get(pair, math.inf)))
        variance = _DRAWN * n * share / (1 + n * share / _EVEN)
        for part, contingency, sigma in parts:
            base = _product(shares[i] for i in part)
            left = self._left(base, part, contingency, sigma)
            variance = variance + left * (share / base) ** 2
        if len(clique) > 2:
            even = share / (1 + share * self._cells(clique) / _LARGE)
            variance = variance + self._left(even, clique, _HIGHER, math.inf)
        deviation = np.sqrt(variance)
        off = np.minimum(_MEAN * deviation, _guess(n * share))
        variation = float((number * off).sum()) / (2 * n)
        flat = np.broadcast_to(deviation, number.shape).reshape(-1)
        order = np.argsort(-flat)
        many = np.cumsum(number.reshape(-1)[order])
        cell = float((flat[order] * np.sqrt(2 * np.log(2 * many))).max()) / n
        every = float((flat[order] * np.sqrt(2 * np.log(2 * many * marginals))).max()) / n
        return min(variation, 1.0), min(cell, 1.0), min(every, 1.0)

    def _cells(self, part: Clique) -> int:
        return math.prod(self._shape[i] for i in part)

    def _left(self, share: Table, part: Clique, contingency: float, sigma: float) -> Table:
        """Π(1 − 1/K_i)·σ²τ²/(σ² + τ²) with τ² = (1 + n·φ²/K)·b.

        The factor: an interaction sums to zero along every axis.
        """
        prior = (1 + self._rows * contingency / self._cells(part)) * self._rows * share
        left = prior if math.isinf(sigma) else prior * (sigma**2 / (sigma**2 + prior))
        return math.prod(1 - 1 / self._shape[i] for i in part) * left


def _law(weights: Table, groups: int) -> _Law:
    """Shares in descending order, in at most `groups` runs; early runs are short."""
    ordered = np.sort(np.maximum(np.asarray(weights, dtype=np.float64), 0.0))[::-1]
    ordered = np.maximum(ordered / max(float(ordered.sum()), 1e-300), 1e-12)
    ordered = ordered / ordered.sum()
    if ordered.size > groups:
        ends = np.unique(np.rint(np.geomspace(1, ordered.size, groups)).astype(np.int64))
    else:
        ends = np.arange(1, ordered.size + 1)
    starts = np.concatenate([[0], ends[:-1]])
    values = (ends - starts).astype(np.float64)
    return _Law(np.add.reduceat(ordered, starts) / values, values)


def _guess(base: Table) -> Table:
    return (_GUESS + (2 - _GUESS) / (1 + base)) * base


def _product(factors: Iterable[Table]) -> Table:
    return reduce(np.multiply, factors)


def _share(value: float) -> str:
    return f"{100 * value:.2g} %" if value < 0.995 else "100 %"


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
