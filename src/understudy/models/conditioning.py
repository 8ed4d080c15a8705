"""Models of part of the rows, and models with other shares: records reweighted and moved.

**Conditions.** Given an event, the model's law is that of its records inside, and where many are, they
alone are taken. Where few are, rows would be repetitions. Then every record is a donor. It gets values
from a record inside in those columns in which it is outside, and a weight

    v(x) = w(x) · Π_j u_j(x_j)        over the columns j that the event does not name

with the u_j at which the columns j have the shares that they have inside the event. In a model of
pairs, w(x) ∝ exp Σ θ_ij(x_i, x_j), fixing the values of some columns changes the others' law by factors
of one column each, which is this form: dependencies among the other columns are those of all records,
and only their single shares are those of the few.

Those shares are noisy where few records say them. They are drawn towards what pairs imply: the law of
column j and the parts A_1 … A_k of the event ("A_1 and … and A_k") of most entropy with the model's
tables of (A_i, j) and (A_i, A_l), by iterative proportional fitting; for an event of one part, towards
the column's shares in all records. How far, λ = min(1, (1 − Σ t²) / (n·Σ (t − q̂)²)), is the part of the
squared distance between shares q̂ of n records and t that n draws from t would have by chance.

**Shares.** The law nearest to the model's (in relative entropy) that has some shares is the model with
weights raked to them; records of values that become much more frequent are first conditioned as above.

Post-processing of a released model: costs nothing, and no certificate speaks of it. Deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from understudy._types import Bools, Clique, Codes, Floats, Rng, Whole
from understudy.models.empirical import Empirical
from understudy.models.weighted import Weighted

Mask = Bools
Labels = NDArray[np.integer]

ENOUGH = 4_000
"""So many records inside an event, counted by their weights, are taken alone."""
_RECORDS = 100_000  # Records that are drawn from a model that has none
_VALUES = 5_000_000  # Values of all columns of the records that are moved
_SWEEPS, _CLOSE = 30, 1e-4
_RAKED, _EXACT = 2_000, 1e-7
_PATIENCE = 50  # Sweeps that have to bring wanted shares nearer
_PARTS = 6
"""Parts of an event that are told apart: the tables of their indicators have 2^6 cells a value."""
_FITTED = 60
_RAISED = 2.0
"""A value whose share grows by more than this factor gets moved records where it has few."""


@dataclass(frozen=True)
class Part:
    """One of the conditions that make an event together: its columns, and the rows it holds for."""

    columns: Clique
    holds: Callable[[Sequence[Codes]], Mask]


@dataclass(frozen=True, eq=False)
class Shares:
    """Wanted shares of the rows with label 0, 1, …; they sum to one."""

    columns: Clique
    label: Callable[[Sequence[Codes]], Labels]
    wanted: Floats


class _Drawable(Protocol):
    """What every model can do."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def sample(self, rows: int, rng: Rng) -> list[Codes]: ...


def as_records(model: _Drawable) -> Weighted:
    """The model as weighted records: its own, or, where it is made of tables, many drawn from it."""
    if isinstance(model, Weighted):
        return model
    if isinstance(model, Empirical):
        return Weighted(model.shape, model.codes, np.ones(model.size, np.float32))
    codes = model.sample(_RECORDS, np.random.default_rng(0))
    return Weighted(model.shape, tuple(codes), np.ones(_RECORDS, np.float32))


def effective(weights: NDArray[np.floating]) -> float:
    """(Σw)²/Σw²: so many records of equal weight would say as much."""
    wide = weights.astype(np.float64)
    return float(wide.sum() ** 2 / (wide**2).sum()) if wide.any() else 0.0


def conditioned(
    model: Weighted, parts: Sequence[Part], legal: Callable[[Sequence[Codes]], Mask]
) -> Weighted:
    """The model given an event that some record with weight is in.

    `legal` says which records may stand; moved ones that may not are left out.
    """
    groups = _disjoint(parts)
    holds = [group.holds(model.codes) for group in groups]
    inside = np.logical_and.reduce(holds) & (model.weights > 0)
    if not inside.any():
        raise ValueError("no record of the model is in the event")
    alone = _taken(model, inside)
    if effective(alone.weights) >= ENOUGH or inside.all():
        return alone
    rng = np.random.default_rng(0)
    others = np.flatnonzero(~inside & (model.weights > 0))
    most = max(ENOUGH, _VALUES // len(model.shape))
    donors = others[_systematic(model.weights[others], min(most, others.size))]
    kept = np.flatnonzero(inside)
    takes = rng.permutation(kept[_systematic(model.weights[kept], donors.size)])
    moved = [column[donors] for column in model.codes]
    for group, held in zip(groups, holds, strict=True):
        for i in group.columns:
            moved[i] = np.where(held[donors], moved[i], model.codes[i][takes])
    codes = [np.concatenate(pair) for pair in zip(alone.codes, moved, strict=True)]
    mass = model.weights[others].sum(dtype=np.float64) / donors.size
    weights = np.append(alone.weights.astype(np.float64), np.full(donors.size, mass))
    weights[kept.size :] *= legal(moved)
    named = {i for group in groups for i in group.columns}
    wanted = [
        (codes[j], _shares_inside(model, j, inside, holds[:_PARTS]))
        for j in range(len(model.shape))
        if j not in named
    ]
    weights, _ = _raked(weights, wanted, _SWEEPS, _CLOSE)
    both = replace(model, codes=tuple(codes), weights=weights.astype(np.float32))
    return _taken(both, both.weights > 0)


def matched(
    model: Weighted, targets: Sequence[Shares], legal: Callable[[Sequence[Codes]], Mask]
) -> tuple[Weighted, float]:
    """(the nearest model with all of the wanted shares, how far the worst of them is off).

    Shares that stay off cannot be had together. A value that the model gives no weight stays without.
    """
    records = [model]
    left = model.weights.astype(np.float64)
    for target in targets:
        labels = target.label(model.codes)
        for value in range(target.wanted.size):
            inside = labels == value
            if _too_few(model.weights, inside, float(target.wanted[value])):
                event = Part(target.columns, _has(target.label, value))
                more = conditioned(model, [event], legal)
                mass = float(left[inside].sum() / more.weights.sum(dtype=np.float64))
                records.append(replace(more, weights=more.weights * np.float32(mass)))
                left[inside] = 0
    weights = np.concatenate([left, *(more.weights for more in records[1:])], dtype=np.float64)
    codes = [np.concatenate(parts) for parts in zip(*(each.codes for each in records), strict=True)]
    wanted = [(target.label(codes), target.wanted) for target in targets]
    weights, off = _raked(weights, wanted, _RAKED, _EXACT)
    raked = replace(model, codes=tuple(codes), weights=weights.astype(np.float32))
    return _taken(raked, raked.weights > 0), off


def _has(label: Callable[[Sequence[Codes]], Labels], value: int) -> Callable[..., Mask]:
    return lambda codes: label(codes) == value


def _too_few(weights: NDArray[np.float32], inside: Mask, share: float) -> bool:
    own = weights[inside]
    raised = own.sum(dtype=np.float64) * _RAISED < share * weights.sum(dtype=np.float64)
    return bool(raised and 0 < effective(own) < ENOUGH)


def _taken(model: Weighted, which: Mask) -> Weighted:
    codes = tuple(column[which] for column in model.codes)
    return replace(model, codes=codes, weights=model.weights[which])


def _systematic(weights: NDArray[np.floating], many: int) -> Whole:
    """Places of so many records, each ⌊w·many⌋ or ⌈w·many⌉ times."""
    ends = np.cumsum(weights, dtype=np.float64)
    points = (np.arange(many) + 0.5) * (ends[-1] / many)
    return np.minimum(np.searchsorted(ends, points, side="right"), weights.size - 1)


def _disjoint(parts: Sequence[Part]) -> list[Part]:
    """The parts with those joined that share a column: one of them cannot be moved alone."""
    groups: list[list[Part]] = []
    for part in parts:
        touching = [g for g in groups if any(set(p.columns) & set(part.columns) for p in g)]
        groups = [g for g in groups if g not in touching]
        groups.append([p for g in touching for p in g] + [part])
    return [_joined(group) for group in groups]


def _joined(parts: list[Part]) -> Part:
    columns = tuple(sorted({i for part in parts for i in part.columns}))
    return Part(columns, lambda codes: np.logical_and.reduce([p.holds(codes) for p in parts]))


def _shares_inside(model: Weighted, column: int, inside: Mask, holds: Sequence[Mask]) -> Floats:
    """The shares of a column's values inside an event, drawn towards what pairs imply; see above."""
    size, codes = model.shape[column], model.codes[column]
    said = np.bincount(codes[inside], model.weights[inside], size)
    said = said / said.sum()
    where = np.zeros(model.size, np.int64)
    for held in holds:
        where = 2 * where + held
    table = np.bincount(where * size + codes, model.weights, 2 ** len(holds) * size)
    implied = _implied(table.reshape(*(2,) * len(holds), size))
    apart = float(((implied - said) ** 2).sum()) * effective(model.weights[inside])
    drawn = min(1.0, (1 - float((implied**2).sum())) / max(apart, 1e-300))
    return drawn * implied + (1 - drawn) * said


def _implied(table: NDArray[Any]) -> Floats:
    """The shares of the last axis where all others are 1, by the law of most entropy with all pairs.

    Of one other axis, the shares of the last whatever it is.
    """
    many = table.ndim - 1
    if many == 1:
        return table.sum(axis=0) / table.sum()
    axes = set(range(many + 1))
    others = [tuple(axes.difference(pair)) for pair in combinations(sorted(axes), 2)]
    known = [(rest, table.sum(axis=rest, keepdims=True)) for rest in others]
    law = np.ones(table.shape)
    for _ in range(_FITTED):
        for rest, wanted in known:
            law *= _ratio(wanted, law.sum(axis=rest, keepdims=True))
    found = law[(1,) * many]
    return found / found.sum()


def _raked(
    weights: Floats, wanted: Iterable[tuple[Labels, Floats]], sweeps: int, close: float
) -> tuple[Floats, float]:
    """Weights that sum to one, scaled by labels in turn until all have the wanted shares; how far off.

    Iterative proportional fitting: the nearest such weights in relative entropy, where there are any.
    """
    weights = weights / weights.sum()
    wanted, off, before = list(wanted), 0.0, np.inf
    for sweep in range(sweeps):
        off = 0.0
        for labels, shares in wanted:
            now = np.bincount(labels, weights, shares.size)
            off = max(off, float(np.abs(now - shares).sum()) / 2)
            weights = weights * _ratio(shares, now)[labels]
            weights /= weights.sum()
        if off < close or (sweep % _PATIENCE == 0 and off > 0.99 * before):
            break
        before = off if sweep % _PATIENCE == 0 else before
    return weights, off


def _ratio(wanted: NDArray[Any], now: NDArray[Any]) -> Floats:
    return np.divide(wanted, now, out=np.zeros(now.shape), where=now > 0)
