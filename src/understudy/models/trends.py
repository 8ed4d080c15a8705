"""How far two ordered columns go along with each other: one number a pair, believed nearly whole.

A table that is all noise but for a trend is drawn towards independence in all its cells alike, and the
trend with it, though one number has far less noise than its table: σ·‖ST‖/n of a correlation. So the
trend of a pair is fitted by itself. Columns get scores S of mean 0 and variance 1: normal scores of the
values in order, or, where most rows lie beside the order, whether they do. λ of the factor
exp(λ·S⊗T) takes the sum Σ S·T of the model to that of everything measured of the pair; λ is believed
to be zero in some pairs and to lie around it in others, as all pairs together say (empirical Bayes),
and to turn no cell by more than about e².
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from understudy._types import Clique, Table
from understudy.models.blocks import Block, scores
from understudy.models.measured import Measured, merge

_STEPS, _FURTHEST, _NEAR, _TURN = 4, 1.0, 1e-4, 30.0
"""Of Newton's method; how far λ goes in one; when one is the last; and the logarithm of how far all
turn a cell."""
_MOST_TURN = 2.0
"""The deviation of the logarithm of the cell that a trend is believed to turn most: with 1 rare values
of columns of two lose the trend, with 4 noise is believed (generated tables, ε from 0.1 to 10)."""
_FLATTEST = 0.2  # The least slope of a sum in λ, over that of independent columns
_ROUNDS, _RARE, _SURE = 30, 0.02, 500.0
"""Of expectation and maximisation, and the least share of pairs with a trend, and without one."""


@dataclass(eq=False)
class Trend(Block):
    """The factor exp(λ·S⊗T) of a pair whose sum is to be `target`: sum + penalty·λ = target."""

    along: Table = field(kw_only=True)
    """S⊗T of every cell."""
    held: Table = field(kw_only=True)
    """What a row of every cell adds to the sum that is held: S⊗T, scores as they were measured."""
    target: float = field(kw_only=True)
    penalty: float = field(kw_only=True, default=0.0)

    def refine(self, current: Table, rows: float, part: float = 1.0) -> Table:
        """As of `Block`; columns stay about as they are, for scores have mean 0."""
        along, bent = self.along, self.along * self.held
        start = float(self.theta @ along) / float(along @ along)
        move = 0.0
        for _ in range(_STEPS):
            now = current * np.exp(np.minimum(np.maximum(move * along, -_TURN), _TURN))
            scale = rows / max(float(now.sum()), 1e-300)
            mean, held = scale * float(along @ now) / rows, scale * float(self.held @ now)
            off = self.target - held - self.penalty * (start + move)
            slope = max(scale * float(bent @ now) - mean * held, _FLATTEST * rows) + self.penalty
            step = min(max(off / slope, -_FURTHEST), _FURTHEST)
            move += step
            if abs(step) < _NEAR:
                break
        turned = part * np.clip(move * along, -_TURN, _TURN)
        self.theta = self.theta + turned
        return np.exp(turned)


def trends(
    measured: Sequence[Measured],
    estimates: Sequence[Table],
    ordered: Sequence[int],
    rows: float,
    siblings: Sequence[int] = (),
) -> list[Trend]:
    """The trend of every pair of ordered columns, from all that was measured of it.

    `ordered` says how many of each column's values, the first ones, are in an order, `siblings` which
    columns are those of a sibling.
    """
    views: dict[Clique, list[Measured]] = {}
    for m in measured:
        if len(m.clique) == 2 and all(ordered[i] > 1 for i in m.clique):
            views.setdefault(m.clique, []).append(m)
    own = {
        i: scores(estimates[i], ordered[i], sibling=i in siblings)
        for i in sorted({i for pair in views for i in pair})
    }
    found = [
        _trend((i, j), seen, (estimates[i], estimates[j]), (own[i], own[j]), rows)
        for (i, j), seen in views.items()
    ]
    if not found:
        return []
    seen = np.array([(at, variance) for _, at, variance in found])
    steepest = np.array([np.abs(block.along).max() for block, _, _ in found])
    kept = _kept(np.clip(seen[:, 0], -1.0, 1.0), seen[:, 1], (_MOST_TURN / steepest) ** 2)
    for (block, _, _), part in zip(found, kept, strict=True):
        block.penalty = rows * (1 / max(float(part), 1e-6) - 1)
    return [block for block, _, _ in found]


def _kept(at: Table, variance: Table, most: Table) -> Table:
    """The parts of noisy numbers that are believed: of some share they are nothing but noise.

    All others come from a normal law around zero, by expectation and maximisation; of each number its
    variance is at most `most`.
    """
    share, spread = 0.5, max(float(np.mean(at**2 - variance)), float(np.mean(variance)))
    chance, part = np.ones(at.size), np.ones(at.size)
    for _ in range(_ROUNDS):
        law = np.minimum(spread, most)
        part = law / (law + variance)
        more = (part * at**2 / variance + np.log1p(-part)) / 2
        chance = 1 / (1 + (1 / share - 1) * np.exp(-np.clip(more, -_SURE, _SURE)))
        share = float(np.clip(chance.mean(), _RARE, 1 - _RARE))
        spread = float(chance @ (part**2 * at**2 + part * variance) / chance.sum())
    return chance * part


def _trend(
    pair: Clique,
    seen: Sequence[Measured],
    estimates: tuple[Table, Table],
    own: tuple[Table, Table],
    rows: float,
) -> tuple[Trend, float, float]:
    """(the block, λ where columns hardly depend on each other, and the variance of its noise)."""
    shares = tuple(estimate / max(float(estimate.sum()), 1e-300) for estimate in estimates)
    expected = rows * np.outer(*shares)
    sums: list[tuple[float, Table, Table]] = []
    beyond = noise = told = 0.0
    for m in seen:
        labels = m.labels or tuple(np.arange(share.size) for share in shares)
        means = [
            np.bincount(label, share * score) / np.maximum(np.bincount(label, share), 1e-300)
            for label, share, score in zip(labels, shares, own, strict=True)
        ]
        # Without their means the scores do not feel the noise of the columns' sums.
        plain = np.outer(*(mean - mean.mean() for mean in means))
        first, second = (mean[label] for mean, label in zip(means, labels, strict=True))
        slope = rows * float(shares[0] @ (first * own[0])) * float(shares[1] @ (second * own[1]))
        variance = max(m.sigma**2 * float((plain**2).sum()), 1e-300)
        weight = slope / variance
        sums.append((weight, first, second))
        beyond += weight * float((plain * (m.values - merge(expected, labels))).sum())
        noise += weight**2 * variance
        told += weight * slope
    scale = rows / max(told, 1e-300)  # so that the sum is about rows·λ
    held = sum((weight * np.outer(*pair) for weight, *pair in sums), np.zeros_like(expected))
    held = scale * held.reshape(-1)
    at = beyond * scale / rows
    along = np.outer(*own).reshape(-1)
    wanted = expected.reshape(-1) * np.exp(np.clip(at * along, -_FURTHEST, _FURTHEST))
    wanted *= rows / wanted.sum()
    goal = float(held @ expected.reshape(-1)) + beyond * scale
    block = Trend(pair, None, wanted, wanted, wanted, None, along=along, held=held, target=goal)
    return block, at, noise * (scale / rows) ** 2
