"""The one-step correction: from the released model to the released noisy tables.

A statistic that is smooth in the shares of the cells x moves by Σ_x (P − m)(x)·φ(x) when the model m is
replaced by the private table P, φ its influence function. Noisy tables y_j = n·A_j P + noise tell of
this by weights λ:

    Σ_x (P − m)·φ  =  Σ_j λ_j·(y_j/n − A_j m)  −  Σ_j λ_j·noise_j/n  +  Σ_x (P − m)·r
    r  =  φ − Σ_j λ_j[x_j]

The first term is computed, the second is noise of known deviation, the third is what no table tells.
The weights are the ones that are best if the last term has deviation ω·sd(r):

    λ = argmin  Σ_j (σ_j/n)²‖λ_j‖²  +  ω²·Σ_x q(x)·r(x)²

Any λ is valid: the noise and the residual that are reported are those of the λ that is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from understudy._types import Clique, Floats
from understudy.estimates.points import Points
from understudy.estimates.reduced import Reduced
from understudy.estimates.ridge import Feature, Ridge
from understudy.models.smooth import in_runs

OMEGA, OMEGA_APART = 0.4, 0.5
"""How far the model may be off on what pairs of columns can show: the mean of a function r of pairs is
within ω·sd(r) of the private table's, ω = OMEGA where noisy tables hold every pair of the columns, and
OMEGA_APART where none holds one of them. These are large errors: a model of independent columns is off
by ρ for the product of two standardised columns with correlation ρ. Frozen before it was validated."""
_RUNS = 2.0
"""Two ordered columns that were measured in k runs of values each are fitted by straight lines from run
to run (`models.smooth`). What these miss falls with the square of k: inside runs the model is off by
ω·(2/k)², so that two runs tell nothing of what is inside. Frozen before it was validated."""
OMEGA_REST = 0.05
"""The same for what only three or more columns together show. No table of pairs corrects it. Of random
laws of three columns (latent classes, networks, copulas) half are off by 0.02 deviations at most, and a
twentieth by more than 0.02 to 0.1. Where more is off, the interval does not hold, and `reliance` tells
how much rests on it. Frozen before it was validated."""

_NEAR = 0.2
"""How near λ is to the best: noise and what is left together have a variance that is larger than the
least by 0.04 of that of sampling."""
_ROUGH = 1.0  # The same for λ that only show where to go

_SOLVED = 20_000
"""Points that weights are found on; what they leave unexplained is that of all points."""
_TURNS = 25  # Of Newton's method. Goals that can be reached take a few
_FARTHEST = 3.0
"""Relative entropy, in nats, beyond which weights have left the model: the goal is out of reach."""


@dataclass(frozen=True, eq=False)
class Correction:
    """What tables add to the means of some influence functions, one entry for each function.

    goal      what the mean of φ should be
    noise     the deviation of the goal by the tables' noise, and by cells that were drawn
    by_rows   the weight of the number of rows: its relative error moves the goal by so much
    missed    a bound on the bias by the part of the residual that functions of pairs of columns explain
    unseen    sd of the rest; `reliance` its square over the variance of φ
    rest      that rest itself, one column for each function
    """

    goal: Floats
    noise: Floats
    by_rows: Floats
    missed: Floats
    unseen: Floats
    reliance: Floats
    rest: Floats


@dataclass(frozen=True, eq=False)
class Evidence:
    """Tables over the columns of some points; `rows` their public or measured number and its noise.

    `ordered` says how many of each column's values, the first ones, are in an order, where tables of
    pairs in runs of these were fitted smoothly.
    """

    points: Points
    tables: tuple[Reduced, ...]
    rows: float
    rows_sigma: float = 0.0
    ordered: tuple[int, ...] = ()

    @cached_property
    def _used(self) -> tuple[Reduced, ...]:
        return tuple(table for table in self.tables if table.clique)

    @property
    def _every(self) -> int:
        """Of many points λ is found on fewer, and judged on all."""
        return -(-len(self.points) // _SOLVED)

    @cached_property
    def _ridge(self) -> Ridge:
        """Of every table, with the penalty (σ/n)² of a cell; the last one is that of all rows."""
        columns, codes = self.points.columns, self.points.codes
        features: dict[tuple[int, bytes], int] = {}
        held = [Feature(np.zeros(len(self.points), np.int64), 1)]
        told: list[tuple[int, ...]] = []
        for table in self._used:
            own: list[int] = []
            for i, labels, size in zip(table.clique, table.labels, table.values.shape, strict=True):
                key = i, labels.tobytes()
                if key not in features:
                    features[key] = len(held)
                    held.append(Feature(labels[codes[columns.index(i)]], size))
                own.append(features[key])
            told.append(tuple(own))
        sigmas = [*(table.sigma for table in self._used), self.rows_sigma]
        penalties = tuple((sigma / self.rows) ** 2 for sigma in sigmas)
        weight = omega(self.tables, columns) ** 2 * self.points.spread
        return Ridge(tuple(held), (*told, (0,)), penalties, weight, self._every)

    @cached_property
    def _gap(self) -> Floats:
        """y/n − A·m; none for the number of rows, which the model has been given."""
        held = [table.values.reshape(-1) / self.rows for table in self._used]
        expected = self._ridge.matrix.summed(self.points.shares)
        return np.concatenate([*held, expected[-1:]]) - expected

    def weights(
        self, influence: Floats, fine: int | None = None, start: Floats | None = None
    ) -> Floats:
        """λ, one column for each influence function; `start` is near it.

        Those of the first `fine` functions are near the best, others only show where to go.
        """
        near = np.full(influence.shape[1], _ROUGH)
        near[:fine] = _NEAR
        return self._ridge.solved(influence, near * self._sampling(influence), start)

    def _sampling(self, influence: Floats) -> Floats:
        """The deviation that rows being a sample gives each mean."""
        spread = self.points.spread
        return np.sqrt((spread @ influence**2) / self.rows)

    def goal(self, influence: Floats, weights: Floats) -> Floats:
        """What the mean of each influence function should be."""
        return self.points.shares @ influence + self._gap @ weights

    def noise(self, weights: Floats) -> Floats:
        """The deviation of the goal by the noise of tables."""
        return np.sqrt(self._ridge.penalty[:-1] @ weights[:-1] ** 2)

    def correction(self, influence: Floats, weights: Floats) -> Correction:
        """Everything about the goal."""
        spread = self.points.spread
        residual = influence - self._ridge.matrix.told(weights)
        residual -= spread @ residual
        # As near as can be seen beside sampling, or beside the bound on the residual itself.
        near = np.hypot(0.1 * self._sampling(influence), 0.03 * np.sqrt(spread @ residual**2))
        rest = self._beyond_pairs(residual, near)
        drawn = spread @ residual**2 / self.points.drawn if self.points.drawn else 0.0
        variance = spread @ influence**2 - (spread @ influence) ** 2
        unseen = spread @ rest**2
        share = np.divide(unseen, variance, out=np.zeros(len(unseen)), where=variance > 0)
        return Correction(
            self.goal(influence, weights),
            np.sqrt(self.noise(weights) ** 2 + drawn),
            weights[-1],
            self._missed(residual, rest, near),
            np.sqrt(unseen),
            share,
            rest,
        )

    @cached_property
    def _runs(self) -> dict[tuple[int, int], float]:
        """In how many runs pairs were measured, by their positions: more than two, and never whole."""
        found: dict[tuple[int, int], float] = {}
        columns = self.points.columns
        sizes = dict(zip(columns, self.ordered or (0,) * len(columns), strict=True))
        for table in self._used:
            if len(table.clique) == 2 and all(sizes[i] > 1 for i in table.clique):
                held = [(sizes[i], at) for i, at in zip(table.clique, table.labels, strict=True)]
                if all(in_runs(labels, size) for size, labels in held):
                    runs = [(size, int(labels[:size].max()) + 1) for size, labels in held]
                    most = min((many for size, many in runs if many < size), default=math.inf)
                    pair = columns.index(table.clique[0]), columns.index(table.clique[1])
                    found[pair] = max(most, found.get(pair, 0.0))
        return {pair: most for pair, most in found.items() if _RUNS < most < math.inf}

    def _missed(self, residual: Floats, rest: Floats, near: Floats) -> Floats:
        """A bound on the bias by what functions of pairs explain, inside runs and otherwise."""
        spread, pairs = self.points.spread, residual - rest
        inside, few = np.zeros(pairs.shape), 0.0
        if self._runs:
            few = (_RUNS / min(self._runs.values())) ** 2
            untold = residual - self._ridge.matrix.told(self._ridge.solved(residual, near))
            inside = self._explained(untold, tuple(self._runs), near)
        off = np.sqrt(spread @ (pairs - inside) ** 2)
        missed = np.hypot(off, few * np.sqrt(spread @ inside**2))
        return omega(self.tables, self.points.columns) * missed

    def _explained(
        self, target: Floats, pairs: tuple[tuple[int, int], ...], near: Floats
    ) -> Floats:
        """What functions of some pairs of columns explain, by least squares."""
        if len(self.points.columns) <= 2:
            return target
        features = tuple(Feature(codes, int(codes.max()) + 1) for codes in self.points.codes)
        ridge = Ridge(features, pairs, (1e-8,) * len(pairs), self.points.spread, self._every)
        return ridge.matrix.told(ridge.solved(target, near))

    def _beyond_pairs(self, residual: Floats, near: Floats) -> Floats:
        """What functions of pairs of columns cannot explain, by least squares."""
        pairs = tuple(combinations(range(len(self.points.columns)), 2))
        return residual - self._explained(residual, pairs, near)


def omega(tables: Sequence[Reduced], columns: Clique) -> float:
    """ω of some columns."""
    held = [{*table.clique} for table in tables]
    pairs = combinations(columns, 2)
    return OMEGA if all(any({*pair} <= each for each in held) for pair in pairs) else OMEGA_APART


def tilted(shares: Floats, influence: Floats, goal: Floats, tolerance: Floats) -> Floats | None:
    """shares·e^{ηφ} with the means of φ at the goal, up to a tolerance; None where there are none.

    Newton's method on log Σ shares·e^{η(φ − goal)}, which is convex in η. Functions that follow from
    others do no harm; what does not vary has its tolerance to be near enough.
    """
    held = np.flatnonzero(shares > 0)
    scale = np.sqrt(shares[held] @ influence[held] ** 2)
    varies = scale > 1e-9 * np.abs(influence[held]).max(initial=0.0)
    if np.any(np.abs(goal[~varies]) > tolerance[~varies]):
        return None
    goal, tolerance, scale = goal[varies], tolerance[varies] / scale[varies], scale[varies]
    moved = (influence[np.ix_(held, np.flatnonzero(varies))] - goal) / scale
    eta = np.zeros(len(goal))

    def at(eta: Floats) -> tuple[float, Floats]:
        power = moved @ eta
        top = power.max()
        weights = shares[held] * np.exp(power - top)
        total = weights.sum()
        return top + float(np.log(total)), weights / total

    height, weights = at(eta)
    for _ in range(_TURNS):
        slope = weights @ moved
        if np.all(np.abs(slope) < 1e-3 * tolerance) or height < -_FARTHEST:
            break
        heavy = moved * np.sqrt(weights)[:, None]
        curve = heavy.T @ heavy - np.outer(slope, slope)
        step = -np.linalg.lstsq(curve, slope, rcond=1e-9)[0]
        step *= min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-300))
        for _ in range(30):
            new, tried = at(eta + step)
            if new <= height + 1e-4 * float(slope @ step):
                break
            step /= 2
        else:
            break
        eta, height, weights = eta + step, new, tried
    if np.any(np.abs(weights @ moved) > tolerance):
        return None
    out = np.zeros(len(shares))
    out[held] = weights
    return out
