"""What a report says in numbers: functions of a release alone, so of released quantities alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from statistics import median

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Floats
from understudy.releases import Release
from understudy.schema import Category, Modelled

BAND = 1.96
"""Half the width of a band, in standard deviations: 95 % of the noise."""

_EXPECTED = math.sqrt(2 / math.pi)  # E|N(0, 1)|

_WIDE = 300


@dataclass(frozen=True, slots=True)
class Column:
    """One column as the rows have it, and as it was measured; shares of all rows.

    Values that are too many to draw are taken together; `measured` and `band` are None where the
    column was not measured by itself.
    """

    name: str
    kind: str
    ordered: bool
    labels: tuple[str, ...]
    shares: tuple[float, ...]
    measured: tuple[float, ...] | None
    band: tuple[float, ...] | None
    together: int
    """How many values the last bar stands for, or how many each bar does; 1 if none."""

    @property
    def bands(self) -> list[tuple[float, float]]:
        """Where the band over each bar begins and ends."""
        noisy = zip(self.measured or (), self.band or (), strict=True)
        return [(max(value - half, 0.0), max(value + half, 0.0)) for value, half in noisy]

    @property
    def most(self) -> float:
        """The end of the longest bar or band; above 0."""
        return max([*self.shares, *(end for _, end in self.bands), 1e-9])

    @property
    def lying(self) -> bool:
        """Whether its bars lie, with room for names, or stand in the order of the values."""
        few = len(self.labels) <= 8 and self.kind in ("category", "boolean")
        return few or not self.ordered


@dataclass(frozen=True, slots=True)
class Pair:
    """Two columns: the total variation of their table, certified or expected, and where it is from."""

    clique: Clique
    names: tuple[str, str]
    error: float | None
    certified: bool
    measured: str
    """"table", "merged" (values counted together), "cells", "queries" or "" (model alone)."""


@dataclass(frozen=True, slots=True)
class Reliable:
    """A group of so many rows: its expected relative error, and the certified one."""

    rows: int
    column: float | None
    pair: float | None
    certified: float


def columns(release: Release, bars: int) -> tuple[Column, ...]:
    """Every modelled column, in at most `bars` bars."""
    codes = release.schema.encode(release.rows)
    measured = _measured(release)
    return tuple(
        _column(column, code, measured.get(i), max(release.rows_estimate, 1), bars)
        for i, (column, code) in enumerate(zip(release.schema.modelled, codes, strict=True))
    )


def _measured(release: Release) -> dict[int, tuple[Floats, float]]:
    """Noisy counts and deviation of every column that was measured whole; several are averaged."""
    found: dict[int, list[tuple[Floats, float]]] = {}
    for made in release.measurements:
        if made.table is not None and len(made.clique) == 1 and not made.merged and made.sigma:
            counts = made.table.values.astype(np.float64)
            found.setdefault(made.clique[0], []).append((counts, made.sigma))
    averaged: dict[int, tuple[Floats, float]] = {}
    for i, all_of_it in found.items():
        precision = sum(sigma**-2 for _, sigma in all_of_it)
        mean = sum((counts * sigma**-2 for counts, sigma in all_of_it), np.zeros(1)) / precision
        averaged[i] = (mean, precision**-0.5)
    return averaged


def _column(
    column: Modelled,
    codes: NDArray[np.unsignedinteger],
    measured: tuple[Floats, float] | None,
    rows: int,
    bars: int,
) -> Column:
    counts = np.bincount(codes.astype(np.int64), minlength=column.size).astype(np.float64)
    shares = counts / max(counts.sum(), 1.0)
    labels = column.labels()
    if isinstance(column, Category) and column.other not in (None, "OTHER"):
        labels[len(column.values)] += " (OTHER)"
    groups = _groups(column, shares, bars)
    noisy = band = None
    if measured is not None and measured[0].size == column.size:
        values, sigma = measured
        noisy = tuple(float(values[group].sum()) / rows for group in groups)
        band = tuple(BAND * sigma * math.sqrt(len(group)) / rows for group in groups)
    return Column(
        column.name,
        column.kind,
        column.ordered,
        tuple(_label(column, labels, group) for group in groups),
        tuple(float(shares[group].sum()) for group in groups),
        noisy,
        band,
        max(len(group) for group in groups),
    )


def _groups(column: Modelled, shares: Floats, bars: int) -> list[list[int]]:
    """Codes that share a bar: neighbours where there is an order, otherwise the rare ones."""
    size = column.size
    if size <= bars:
        return [[code] for code in range(size)]
    if column.ordered and column.apart < bars:
        values = size - column.apart
        each = math.ceil(values / (bars - column.apart))
        runs = [list(range(at, min(at + each, values))) for at in range(0, values, each)]
        return [*runs, *([code] for code in range(values, size))]
    frequent = sorted(np.argsort(-shares, kind="stable")[: bars - 1].tolist())
    kept = set(frequent)
    return [*([code] for code in frequent), [code for code in range(size) if code not in kept]]


def _label(column: Modelled, labels: list[str], group: list[int]) -> str:
    if len(group) == 1:
        return labels[group[0]]
    if column.ordered:
        return f"{labels[group[0]].split('..')[0]}..{labels[group[-1]].split('..')[-1]}"
    return f"{len(group):,} other values"


def unmeasured(release: Release) -> tuple[int, int]:
    """How many pairs of columns are in no noisy table, and how many pairs there are."""
    total = math.comb(len(release.schema.modelled), 2)
    return total - len(_how(release)), total


def sigmas(release: Release) -> dict[Clique, float]:
    """The noise of every table that was measured whole, all measurements together, in rows."""
    precision: dict[Clique, float] = {}
    for made in release.measurements:
        if made.kind == "table" and not made.merged and made.sigma:
            precision[made.clique] = precision.get(made.clique, 0.0) + made.times / made.sigma**2
    return {clique: total**-0.5 for clique, total in precision.items()}


def pairs(release: Release) -> tuple[Pair, ...]:
    """Every pair of columns; of very wide tables those of which something is known.

    The error of a pair is at most that of any table that holds it.
    """
    names = [column.name for column in release.schema.modelled]
    certified = release.certificate.variations
    stated: Iterable[tuple[Clique, float]] = ()
    if certified is not None:
        stated = zip(release.workload.cliques, certified, strict=True)
    elif release.forecast is not None:
        stated = ((e.clique, e.total_variation) for e in release.forecast.marginals)
    errors: dict[tuple[int, int], float] = {}
    for clique, error in stated:
        for pair in combinations(clique, 2):
            errors[pair] = min(errors.get(pair, 1.0), error)
    how, bounded = _how(release), certified is not None
    wide = len(names) > _WIDE
    every = sorted({*errors, *how}) if wide else combinations(range(len(names)), 2)
    return tuple(
        Pair(pair, (names[pair[0]], names[pair[1]]), errors.get(pair), bounded, how.get(pair, ""))
        for pair in every
    )


_RANK = {"table": 0, "merged": 1, "cells": 2, "queries": 3, "": 4}


def _how(release: Release) -> dict[tuple[int, int], str]:
    """How each pair was measured at best, by itself or inside a larger table."""
    best: dict[tuple[int, int], str] = {}
    for made in release.measurements:
        kind = "merged" if made.merged else made.kind
        for pair in combinations(made.clique, 2):
            best[pair] = min(best.get(pair, ""), kind, key=_RANK.__getitem__)
    return best


def cell_sizes(release: Release) -> tuple[Reliable, ...]:
    """Groups of growing size: the error that the noise of the measurements leads to, relative to
    the group, for a value of one column and for a cell of two, and the certificate's.

    Expected is E|N(0, σ²)|/rows with σ the median over the measured tables. The model lowers it where
    tables agree and adds to it where it is too simple; the certificate holds whatever it did.
    """
    n, weight = release.number, release.schema.weight
    found = {clique: sigma / weight for clique, sigma in sigmas(release).items()}
    one = _typical(sigma for clique, sigma in found.items() if len(clique) == 1)
    two = _typical(sigma for clique, sigma in found.items() if len(clique) == 2)
    sizes = [s * 10**k for k in range(1, 10) for s in (1, 3) if s * 10**k <= n / 2]
    off = release.certificate.bound * n
    kept = [size for size in sizes if off / size > 0.02][-7:] or sizes[-1:] or [max(n, 1)]
    return tuple(
        Reliable(
            size,
            None if one is None else _EXPECTED * one / size,
            None if two is None else _EXPECTED * two / size,
            off / size,
        )
        for size in kept
    )


def _typical(values: Iterable[float]) -> float | None:
    found = list(values)
    return float(median(found)) if found else None
