"""Expected error of every marginal before, and after, a release by measured columns and pairs.

A cell with expectation b and count c deviates from b with variance τ² = κ·b, κ = 1 + n·φ²/K: the
sampling of n rows, and dependence of mean square contingency φ² spread over the K cells. A measurement
with noise σ leaves σ²τ²/(σ² + τ²) of that. So, for a marginal on columns C with shares p,

    v = Σ_i v_i·(p/p_i)² + Σ_ij v_ij·(p/p_ij)² + κ_C·b·[|C| > 2] + s·b,

the errors of its columns, of the interactions of its pairs, of its own interaction, which is not
measured, and of the synthetic rows (s < 1: low discrepancy). v_i and v_ij have the factor 1 − 1/K of
every column in them, as an interaction sums to zero along it. With E|N(0, v)| = 0.8·√v,

    TV ≈ ½ Σ_cells min(0.8·√v, g·b)/n,      worst cell ≈ max_v √v·√(2 ln(2·#{cells with at least v}))/n.

Before a release (`expected`) columns are taken for independent with shares p_k ∝ 1/k^1.2 and φ² for a
constant. Afterwards (`shown`) p is the released model, φ² what it shows of each pair, and σ the noise
of what was measured of it; `updated` takes that for a prior of what the certificate measured.

All this is an estimate, with an interval that held nine times of ten on tables like those it was
calibrated on (docs/certificate.md); never a bound. The certificate is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import combinations, groupby
from typing import Any

import numpy as np

from understudy._types import Clique, Table
from understudy.models import Measured, View
from understudy.wording import estimated

_MEAN = 0.8  # E|N(0, 1)| = √(2/π)
_COLUMN, _PAIR, _HIGHER = 1.0, 0.03, 0.002
"""φ² that a column, a pair and a larger table are believed to have."""
_UNSEEN = 0.01  # φ² of a pair that a released model does not show
_DRAWN = 0.07  # s: what systematic resampling and swaps leave of the variance of sampling
_EVEN = 50.0  # Counts above this are drawn almost evenly
_LARGE = 2.0
"""Interactions of three and more columns grow with a cell up to about this many times the mean."""
_SKEW = 1.2  # Shares of a column fall as 1/k^skew, before anything is known of it
_GUESS = 1.3
"""g: a large cell of which nothing is known is off by about this much of its share; a cell with less
than a row by twice it, for a row is there or is not."""
_BLIND = 0.85  # At this share of the error that knowing nothing would have, a release is noise
_GROUPS = 24
_CELLS = 4_000
_LOOKED_AT, _AT_ONCE, _TOP = 1_000_000, 16_000_000, 100
"""Cells of a table of a released model that is looked at, of all that are held in memory, and how many
of the worst cells of each are compared with all others."""
_SURE = 1.645  # Nine intervals of ten hold: so many deviations of a normal law
_WORST_SPREAD, _SHOWN_SPREAD = 0.7, 0.6
"""Standard deviation of ln(worst cell / forecast), before a release and after it."""
_MEDIAN, _CORE, _TAIL = 0.82, 0.25, 3
"""Worst cell / forecast after a release, as a certificate updates it: its median, and the scale and the
degrees of freedom of its logarithm by Student's law. Chosen on 20 generated tables of keys 0 to 3."""
_TABLE, _TABLE_SPREAD = (1.5, 1.1), (0.55, 0.45)
"""Worst total variation / largest forecast of a table: its median, and the deviation of its logarithm;
before a release and after it."""


Between = tuple[float, float]
"""The ends of an interval."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Of one marginal: total variation, and the error of its worst cell, both as shares of n."""

    clique: Clique
    total_variation: float
    worst: float


@dataclass(frozen=True, slots=True)
class Errors:
    """What to expect of every marginal of a workload."""

    marginals: tuple[Expected, ...] = field(repr=False)
    rows: int
    mean: float
    """Mean total variation."""
    worst: float
    """The worst cell of the workload."""
    blind: float
    """The mean total variation if nothing were known but the schema and n."""
    worst_between: Between | None = None
    """Where the worst cell lies nine times of ten; None in bundles of older versions."""
    variation: float | None = None
    """The largest total variation of a marginal,"""
    variation_between: Between | None = None
    """and where it lies nine times of ten."""

    @property
    def noise(self) -> bool:
        """Whether the release would say hardly more than the schema does."""
        return self.mean > _BLIND * self.blind

    @property
    def worst_in_words(self) -> str:
        """The worst cell and its interval."""
        return _about(self.worst, self.worst_between)

    def __str__(self) -> str:
        largest = max((e.total_variation for e in self.marginals), default=0.0)
        most = largest if self.variation is None else self.variation
        text = (
            f"total variation {_about(self.mean, of=' on average')}, "
            f"{_about(most, self.variation_between, ' for the worst table')}; "
            f"worst cell {self.worst_in_words}"
        )
        if self.noise:
            text += (
                f". That is mostly noise: with {self.rows:,} rows this budget shows hardly more than "
                f"the schema does; give a larger epsilon, more rows or coarser columns"
            )
        return text

    def to_json(self) -> dict[str, Any]:
        """Marginals in the order of the workload; four digits are more than a forecast has."""
        stated: dict[str, Any] = {
            "rows": self.rows,
            "mean": _digits(self.mean),
            "worst": _digits(self.worst),
            "blind": _digits(self.blind),
            "total_variations": [_digits(e.total_variation) for e in self.marginals],
            "worst_cells": [_digits(e.worst) for e in self.marginals],
            "words": str(self),
        }
        if self.variation is not None:
            stated["variation"] = _digits(self.variation)
        for name, between in (
            ("worst_between", self.worst_between),
            ("variation_between", self.variation_between),
        ):
            if between is not None:
                stated[name] = [_digits(end) for end in between]
        return stated

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
            _between(stated.get("worst_between")),
            stated.get("variation"),
            _between(stated.get("variation_between")),
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


def expected(
    shape: Sequence[int],
    cliques: Sequence[Clique],
    weights: Sequence[float],
    rows: int,
    knowledge: Knowledge,
) -> Errors:
    """What to expect of `cliques` from public facts alone."""
    rows = max(int(rows), 1)
    width = max((len(clique) for clique in cliques), default=1)
    groups = max(2, min(_GROUPS, int(_CELLS ** (1 / max(width, 1)))))
    laws = [_law(np.arange(1.0, size + 1) ** -_SKEW, groups) for size in shape]
    known = _Marginals(tuple(shape), laws, rows, knowledge)
    blind = _Marginals(tuple(shape), laws, rows, knowledge.nothing())
    marginals: list[Expected] = []
    lost: list[float] = []
    worst = 0.0
    for clique in cliques:
        variation, cell, overall = known.of(clique, len(cliques))
        marginals.append(Expected(clique, variation, cell))
        worst = max(worst, overall)
        lost.append(blind.of(clique, len(cliques))[0])
    found = Errors(
        tuple(marginals), rows, _mean(marginals, weights), worst, _average(lost, weights)
    )
    return _spread(found, _WORST_SPREAD, _TABLE[0], _TABLE_SPREAD[0])


def shown(
    before: Errors,
    weights: Sequence[float],
    model: View,
    shape: Sequence[int],
    answers: Iterable[object],
) -> Errors:
    """What to expect of the same marginals once a model and what it was fitted to are released.

    Tables too large to look at keep what was expected of them. Post-processing.
    """
    n, precision = before.rows, _precisions(shape, answers)
    laws = model.marginals([(i,) for i in range(len(shape))])
    marginals, top = list(before.marginals), [np.zeros(0)]
    cliques = [each.clique for each in marginals]
    cells = [math.prod(shape[i] for i in clique) for clique in cliques]
    small = [at for at, size in enumerate(cells) if size <= _LOOKED_AT and cliques[at]]
    until = np.cumsum(cells)
    for _, part in groupby(small, lambda at: until[at] // _AT_ONCE):
        some = list(part)
        for at, table in zip(some, model.marginals([cliques[at] for at in some]), strict=True):
            deviation = _shown(cliques[at], table, laws, precision, n)
            worst = np.sort(deviation, axis=None)[::-1][:_TOP]
            variation = _variation(deviation, n * table, np.ones(()), n)
            marginals[at] = Expected(cliques[at], variation, _highest(worst, n))
            top.append(worst)
    # A model shows what it knows; how much is hidden from it was a guess before and still is.
    worst = _highest(np.sort(np.concatenate(top))[::-1], n) or before.worst
    worst = math.sqrt(worst * before.worst)
    found = Errors(tuple(marginals), n, _mean(marginals, weights), worst, before.blind)
    return _spread(found, _SHOWN_SPREAD, _TABLE[1], _TABLE_SPREAD[1])


def updated(errors: Errors, measured: float, scale: float, most: float) -> Errors:
    """With the worst cell as the certificate measured it, with Laplace noise of this scale.

    The posterior median and nine tenths, where the logarithm of what is seen lies around that of what
    was expected, a little below, by Student's law: mostly close, so that a noisy certificate changes
    little, and now and then far away, where the certificate is believed. Nothing beyond `most`, the
    bound that it states.
    """
    times = np.linspace(-4, 4, 1601)
    at = max(_MEDIAN * errors.worst, 1e-9) * np.exp(times)
    log = -(_TAIL + 1) / 2 * np.log1p((times / _CORE) ** 2 / _TAIL) - np.abs(at - measured) / scale
    mass = np.exp(log - log.max()).cumsum()
    low, middle, high = at[np.searchsorted(mass / mass[-1], (0.05, 0.5, 0.95))]
    return _consistent(
        replace(
            errors,
            worst=min(float(middle), most),
            worst_between=(min(float(low), most), min(float(high), most)),
        )
    )


def _precisions(shape: Sequence[int], answers: Iterable[object]) -> dict[Clique, float]:
    """1/σ² in a cell of every column and pair. Tables of merged values say little of a single cell."""
    found: dict[Clique, float] = {(i,): 0.0 for i in range(len(shape))}
    for answer in answers:
        if isinstance(answer, Measured) and len(answer.clique) <= 2:
            seen = (answer.values.size / math.prod(shape[i] for i in answer.clique)) ** 2
            found[answer.clique] = found.get(answer.clique, 0.0) + seen * answer.sigma**-2
    for pair in [clique for clique in found if len(clique) == 2]:  # pairs tell of their columns
        for own, other in (pair, pair[::-1]):
            found[own,] += found[pair] / shape[other]
    return found


def _shown(
    clique: Clique, table: Table, laws: Sequence[Table], precision: Mapping[Clique, float], n: int
) -> Table:
    """√v of every cell of a released model's table, in rows."""
    parts: list[_Part] = []
    for k in (1, 2):
        for axes in combinations(range(len(clique)), k):
            part = tuple(clique[a] for a in axes)
            others = tuple(a for a in range(len(clique)) if a not in axes)
            own = table.sum(axis=others, keepdims=True)
            contingency = _COLUMN
            if k == 2:
                one, two = (laws[i] for i in part)
                gap = own.reshape(one.size, two.size) - np.multiply.outer(one, two)
                contingency = max(_UNSEEN, own.size * float((gap**2).sum()))
            known = precision.get(part, 0.0)
            sigma = known**-0.5 if known else math.inf
            parts.append(_Part(own, tuple(laws[i].size for i in part), contingency, sigma))
    return _deviation(table, [law.size for law in (laws[i] for i in clique)], parts, n)


@dataclass(frozen=True, slots=True)
class _Part:
    """Columns of a marginal that were measured: their shares along its axes, φ² and σ."""

    shares: Table
    sizes: tuple[int, ...]
    contingency: float
    sigma: float


class _Marginals:
    """The formula for independent columns; marginals that are alike are worked out once."""

    def __init__(
        self, shape: tuple[int, ...], laws: Sequence[_Law], rows: int, knowledge: Knowledge
    ) -> None:
        self._shape, self._laws, self._rows = shape, laws, rows
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
        n, known = self._rows, self._knowledge
        shares = dict(zip(clique, np.ix_(*(self._laws[i].shares for i in clique)), strict=True))
        share = reduce(np.multiply, shares.values())
        number = reduce(np.multiply, np.ix_(*(self._laws[i].values for i in clique)))
        parts = [_Part(shares[i], (self._shape[i],), _COLUMN, known.columns[i]) for i in clique]
        for pair in combinations(clique, 2):
            sizes = (self._shape[pair[0]], self._shape[pair[1]])
            both = shares[pair[0]] * shares[pair[1]]
            parts.append(_Part(both, sizes, _PAIR, known.pairs.get(pair, math.inf)))
        deviation = _deviation(share, [self._shape[i] for i in clique], parts, n)
        flat = np.broadcast_to(deviation, number.shape).reshape(-1)
        order = np.argsort(-flat)
        many = np.cumsum(number.reshape(-1)[order])
        return (
            _variation(deviation, n * share, number, n),
            _highest(flat[order], n, many),
            _highest(flat[order], n, many * marginals),
        )


def _deviation(share: Table, sizes: Sequence[int], parts: Iterable[_Part], n: int) -> Table:
    """√v of every cell, in rows."""
    variance = _DRAWN * n * share / (1 + n * share / _EVEN)
    for part in parts:
        own = np.maximum(part.shares, 1e-300)
        left = _left(own, part.sizes, part.contingency, part.sigma, n)
        variance = variance + left * (share / own) ** 2
    if len(sizes) > 2:
        even = share / (1 + share * math.prod(sizes) / _LARGE)
        variance = variance + _left(even, sizes, _HIGHER, math.inf, n)
    return np.sqrt(variance)


def _left(share: Table, sizes: Sequence[int], contingency: float, sigma: float, n: int) -> Table:
    """Π(1 − 1/K_i)·σ²τ²/(σ² + τ²) with τ² = (1 + n·φ²/K)·b.

    The factor: an interaction sums to zero along every axis.
    """
    prior = (1 + n * contingency / math.prod(sizes)) * n * share
    left = prior if math.isinf(sigma) else prior * (sigma**2 / (sigma**2 + prior))
    return math.prod(1 - 1 / size for size in sizes) * left


def _variation(deviation: Table, base: Table, number: Table, n: int) -> float:
    """½ Σ min(0.8·√v, g·b)/n over cells, each there `number` times."""
    guess = (_GUESS + (2 - _GUESS) / (1 + base)) * base
    return min(float((number * np.minimum(_MEAN * deviation, guess)).sum()) / (2 * n), 1.0)


def _highest(descending: Table, n: int, many: Table | None = None) -> float:
    """max √v·√(2 ln(2·#{cells with at least v}))/n."""
    many = np.arange(1.0, descending.size + 1) if many is None else many
    return min(float((descending * np.sqrt(2 * np.log(2 * many))).max(initial=0.0)) / n, 1.0)


def _mean(marginals: Sequence[Expected], weights: Sequence[float]) -> float:
    return _average([e.total_variation for e in marginals], weights)


def _average(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(w * v for w, v in zip(weights, values, strict=True)) / (sum(weights) or 1.0)


def _spread(errors: Errors, worst: float, factor: float, table: float) -> Errors:
    """With the intervals of a log-normal law around what is expected."""
    most = min(1.0, factor * max((e.total_variation for e in errors.marginals), default=0.0))

    def ends(value: float, deviation: float) -> Between:
        times = math.exp(_SURE * deviation)
        return value / times, min(1.0, value * times)

    return _consistent(
        replace(
            errors,
            worst_between=ends(errors.worst, worst),
            variation=most,
            variation_between=ends(most, table),
        )
    )


def _consistent(errors: Errors) -> Errors:
    """A table whose worst cell is off by x is off by x at least, and by 2x where its margins hold."""
    wide = any(len(each.clique) > 1 for each in errors.marginals)
    least = min(1.0, errors.worst * (2 if wide else 1))
    if errors.variation is None or errors.variation_between is None or errors.variation >= least:
        return errors
    times = least / max(errors.variation, 1e-300)
    low, high = errors.variation_between
    between = (min(1.0, low * times), min(1.0, high * times))
    return replace(errors, variation=least, variation_between=between)


def _law(weights: Table, groups: int) -> _Law:
    """Shares in descending order, in at most `groups` runs; early runs are short."""
    ordered = np.sort(np.maximum(np.asarray(weights, dtype=np.float64), 0.0))[::-1]
    ordered = np.maximum(ordered / max(float(ordered.sum()), 1e-300), 1e-12)
    ordered = ordered / ordered.sum()
    if ordered.size > groups:
        ends = np.rint(np.geomspace(1, ordered.size, groups)).astype(np.int64)
        ends = ends[np.diff(ends, prepend=0) > 0]
    else:
        ends = np.arange(1, ordered.size + 1)
    starts = np.concatenate([[0], ends[:-1]])
    values = (ends - starts).astype(np.float64)
    return _Law(np.add.reduceat(ordered, starts) / values, values)


def _between(ends: Sequence[float] | None) -> Between | None:
    return None if ends is None else (float(ends[0]), float(ends[1]))


def _about(value: float, ends: Between | None = None, of: str | None = None) -> str:
    """With the digits that the bundle has, so that it says the same again."""
    between = None if ends is None else (_digits(ends[0]), _digits(ends[1]))
    return estimated(_digits(value), between, of)


def _digits(value: float) -> float:
    return float(f"{value:.4g}")
