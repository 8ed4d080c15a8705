"""How much a child's column and one of its sibling depend on each other, read from their noisy table.

Such a table has a column for children without a sibling, most of them, and what it says of who has one
is no sign of what siblings have in common. So κ, where κ·b is the variance that a cell of expectation b
is believed to have (`blocks`), is found twice: for that column by its mean square, and for the others,
around independence of those who have a sibling, as what makes them likeliest: with y's noise of
variance v, a cell's deviation is normal with variance v + κ·b. Of two ordered columns the trend is left
out, for it is believed by itself (`trends`).

A column and the same of a sibling mostly agree, or one of them is never below the other: an age does
not fall from visit to visit. κ is large then, and believes noise in cells where nothing is. So the
cells on one side of the diagonal are also explained by two numbers, with much less noise than single
cells have: the shares of siblings beside the diagonal and of others, spread as those of independent
columns, both zero as likely as not. Where that makes the cells likelier than κ does, it is believed:
that the side is empty if this is likelier than not, and otherwise the mean of what else may be.

What a column and another one of a sibling have in common, the same two the other way round mostly have
as well, exactly so where siblings have no order. So such a cell is seen twice (`agree`): their
deviations go along with each other by a part r, found as what makes both tables likeliest. And of who
has no sibling all tables of a column say the same, so their mean is taken where their last value says
that alone, and not null or no child as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from understudy._types import Clique, Table
from understudy.models.residual import centered

_TRIED = np.geomspace(1e-3, 1e7, 81)  # κ, where 1 would give a cell as much variance as noise does
_LEAST, _MOST = 0.05, 2.0
"""The least and the most κ of who has a sibling, in deviations of noise. All tables of a column say it,
each with noise of its own: believed more, they would pull the fit to and fro."""
_SHARES = np.append(0.0, np.geomspace(0.01, 0.5, 30))
_PRIOR = np.append(math.sqrt(0.5), np.full(30, (1 - math.sqrt(0.5)) / 30))
"""Shares of siblings on one side of the diagonal, beside it and anywhere, and how likely each is before
the table is seen: that there are neither is as likely as not."""
_LIKELIER = 5.0  # By how many nats they must explain the cells of a side better than κ
_ALONG = np.array([0.0, 0.5, 0.8, 0.95, 1.0])
"""Parts r of a deviation that the same cell the other way round may have."""


@dataclass(frozen=True, eq=False)
class Joined:
    """A table of a child's column and one of a sibling, and what is known of it."""

    same: bool
    """Whether it is the same column."""
    trend: Table | None
    """The products of both columns' scores, where both are ordered."""


@dataclass(frozen=True, eq=False)
class Seen:
    """A table of siblings, flat, as a block of the fit has it; `agree` changes y and the ratio."""

    y: Table
    ratio: Table
    noise: Table
    margins: tuple[Table, Table]
    trend: Table | None


def apart(residual: Table, base: Table) -> Table:
    """Counts of siblings who have nothing in common, without the column of those who have none.

    Args:
        residual: What was measured beyond the counts of independent columns.
        base: Those counts; the last column of the table is for those without a sibling.
    """
    mine = np.maximum(base[:, :-1].sum(axis=1) - residual[:, -1], 1e-9)
    return np.multiply.outer(mine / mine.sum(), base[:, :-1].sum(axis=0))


def believed(residual: Table, base: Table, noise: Table, trend: Table | None = None) -> Table:
    """κ of every cell, flat.

    Args:
        residual: As of `apart`.
        base: As of `apart`.
        noise: The variance of the noise in every cell, flat.
        trend: The products of both columns' scores, where both are ordered.
    """
    noise = noise.reshape(base.shape)
    kappa = np.empty(base.shape)
    kappa[:, -1] = _by_square(residual[:, -1], base[:, -1], noise[:, -1])
    expected = apart(residual, base)
    beyond = _beside(centered(base[:, :-1] + residual[:, :-1] - expected), expected, trend)
    kappa[:, :-1] = _likeliest(beyond, expected, noise[:, :-1])
    return kappa.reshape(-1)


def agree(tables: Mapping[Clique, Seen], twins: Sequence[Clique], shape: tuple[int, ...]) -> None:
    """Let tables of siblings say what others say as well.

    Of who has no sibling those of one column, of what siblings share that of both columns the other
    way round. With x₁ and x₂ a cell's deviations, each of variance κ·b and r·κ·b in common, x₂ seen
    with noise v₂ is x₁ seen as x₂/r with noise (v₂ + (1 − r²)·κ·b)/r². In a column and itself the
    diagonal is left out. Of both columns only values count that a sibling has: not null or no child.
    """
    own = {twin: i for i, twin in twins}
    sibling = {i: twin for twin, i in own.items()}
    seen = {clique: _Inner.of(table) for clique, table in tables.items()}
    for clique, one in seen.items():
        other = seen.get((own[clique[1]], sibling.get(clique[0], -1)))
        if other is None:
            continue
        both = np.s_[: other.off.shape[1], : one.off.shape[1]]
        mine, off = one.off[both], other.off.T[both]
        spread = np.sqrt(one.spread[both] * other.spread.T[both])
        held = ~np.eye(*off.shape, dtype=bool) if one is other else np.ones(off.shape, bool)
        r = _in_common((mine[held], off[held]), (one.noise, other.noise), spread[held])
        more = other.noise + (1 - r * r) * spread
        least = 1 / (1 / one.noise + r * r / more)
        values = least * (mine / one.noise + r * off / more)
        table = tables[clique]
        y, ratio = (each.reshape(-1, one.off.shape[1] + 1)[both] for each in (table.y, table.ratio))
        y[held] += (values - mine)[held]
        ratio[held] *= (least / one.noise)[held]
    only = {twin for i, twin in twins if shape[twin] > shape[i]}
    for column in {i for i, twin in tables if twin in only}:
        same = [table for (i, twin), table in tables.items() if i == column and twin in only]
        ends = [table.y.reshape(shape[column], -1)[:, -1] for table in same]
        mean = np.average(ends, axis=0, weights=[1 / table.noise.mean() for table in same])
        for end in ends:
            end[:] = mean


def sides(values: Table, expected: Table, noise: float) -> Table:
    """Counts of a column and the same of a sibling where one number explains a side; NaN elsewhere.

    Args:
        values: What was measured, of those with a sibling.
        expected: The same of siblings who have nothing in common.
        noise: The variance of the noise in every cell.
    """
    found = np.full(values.shape, np.nan)
    size = min(values.shape)  # a child that is not there is no value
    y, base = values[:size, :size], expected[:size, :size]
    kappa = _likeliest(y - base, base, np.full(base.shape, noise))
    above = np.subtract.outer(np.arange(size), np.arange(size))
    beside = np.sqrt(np.multiply.outer(base.sum(axis=1), base.sum(axis=0)))
    rows = float(base.sum())
    prior = np.multiply.outer(_PRIOR, _PRIOR).reshape(-1)
    tried = np.stack(np.meshgrid(_SHARES, _SHARES, indexing="ij"), axis=-1).reshape(-1, 2)
    for gap in (above, -above):
        side = gap > 0
        shapes = np.stack([np.where(gap == 1, beside, 0.0)[side], base[side]])
        shapes /= shapes.sum(axis=1, keepdims=True)
        spread = noise + kappa * base[side]
        usual = (y[side] - base[side]) ** 2 / spread + np.log(spread / noise) - y[side] ** 2 / noise
        likelihood = tried @ (shapes @ y[side]) * rows
        likelihood -= ((tried @ (shapes @ shapes.T)) * tried).sum(axis=1) * rows**2 / 2
        likelihood /= noise
        most = float(likelihood.max())
        chance = prior * np.exp(likelihood - most)
        total = float(chance.sum())
        if most + math.log(total) < _LIKELIER - float(usual.sum()) / 2:
            continue
        shares = (
            np.zeros(2) if chance[0] >= total / 2 else chance[1:] @ tried[1:] / chance[1:].sum()
        )
        found[:size, :size][side] = rows * shares @ shapes
    return found


@dataclass(frozen=True, eq=False)
class _Inner:
    """Of a table those with a sibling: deviations beside a trend, their believed variance, noise."""

    off: Table
    spread: Table
    noise: float

    @classmethod
    def of(cls, table: Seen) -> _Inner:
        """Of a table as the fit has it."""
        first, second = table.margins
        shape, base = (first.size, second.size), np.multiply.outer(first, second) / first.sum()
        free = max((first.size - 1) * (second.size - 1), 1)
        residual = table.y.reshape(shape) - base
        expected = apart(residual, base)
        kappa = (table.noise * base.size / free / table.ratio).reshape(shape)
        off = _beside(centered((base + residual)[:, :-1] - expected), expected, table.trend)
        return cls(off, kappa[:, :-1] * expected, float(table.noise.mean()))


def _in_common(off: tuple[Table, Table], noise: tuple[float, float], spread: Table) -> float:
    """The r of those tried under which deviations with these variances are likeliest."""
    shared = np.multiply.outer(_ALONG, spread)
    one, other = noise[0] + spread, noise[1] + spread
    rest = one * other - shared**2
    squares = off[0] ** 2 * other + off[1] ** 2 * one - 2 * off[0] * off[1] * shared
    return float(_ALONG[int((-(squares / rest + np.log(rest)).sum(axis=1)).argmax())])


def _beside(beyond: Table, expected: Table, trend: Table | None) -> Table:
    """Deviations without what goes along with a trend."""
    if trend is None:
        return beyond
    along = centered(expected * trend[:, :-1])
    return beyond - along * float((along * beyond).sum() / max((along**2).sum(), 1e-300))


def _by_square(off: Table, base: Table, noise: Table) -> float:
    """κ from what the squares of deviations have beyond noise and one deviation of its squares."""
    beyond = float((off**2).sum()) - float(noise.mean()) * (off.size + math.sqrt(2 * off.size))
    deviation = math.sqrt(float(noise.mean()))
    kappa = beyond / max(float(base.sum()), 1e-9)
    return min(max(kappa, _LEAST * deviation), _MOST * deviation)


def _likeliest(off: Table, base: Table, noise: Table) -> float:
    """The κ of those tried under which these deviations are likeliest."""
    off, base, noise = off.reshape(-1), np.maximum(base.reshape(-1), 1e-9), noise.reshape(-1)
    tried = _TRIED * noise.mean() / base.mean()
    variance = noise + np.multiply.outer(tried, base)
    likelihood = -(off**2 / variance + np.log(variance)).sum(axis=1)
    return float(tried[int(likelihood.argmax())])
