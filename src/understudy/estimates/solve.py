"""From a statistic and a release to estimates with intervals.

Each round corrects the means of the influence functions (`correction`), tilts the weights of the cells
towards them and fits the statistic again, always correcting from the released model. The interval is

    estimate ± h,   P(|N(b, s²)| ≤ h) = level

with s² the variance by noise, sampling and a private number of rows, and b a bound on the bias by what
the model may have missed and by what bins hide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique
from understudy.estimates.correction import (
    OMEGA,
    OMEGA_REST,
    Correction,
    Evidence,
    tilted,
)
from understudy.estimates.estimate import Estimate, Parts
from understudy.estimates.frame import Frame
from understudy.estimates.interval import half_width
from understudy.estimates.points import Points, collapsed
from understudy.estimates.reduced import reduced
from understudy.estimates.statistic import Fitted, Statistic, Undefined
from understudy.models import Measured, View
from understudy.schema import Schema

__all__ = ["FLAGGED", "ONLY_CERTIFIED", "Known", "estimated"]

ROUNDS = 8
FLAGGED = 0.3
"""Reliance from which on an estimate carries a warning. A share of three columns with usual frequencies
has .1 to .5 of its variance in what pairs do not show."""
ONLY_CERTIFIED = 0.9
"""Reliance beyond which ω says nothing and only a certificate can bound the error."""
CLEAR = 2.0
"""A share that a statistic divides by is at least so many half widths of its own interval."""
MOST_STEPS = 200
_SETTLED = 0.03

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Known:
    """What a release tells: its model, its noisy tables and its number of rows.

    rows_sigma    the noise of the number of rows; 0 where it is public
    shape_sigma   the noise of the counts behind shapes that were found privately
    alike         rows of one unit, at most, which may be copies of each other
    certified     for some columns, what bounds |Σ_x (P − m)·r| for a function r of their cells, given
                  over all of them; None where no certified marginal holds them
    """

    schema: Schema
    model: View
    tables: Sequence[Measured]
    rows: float
    rows_sigma: float = 0.0
    shape_sigma: float = 0.0
    alike: int = 1
    certified: Callable[[Clique, Floats], float | None] = lambda columns, rest: None


def estimated(
    statistic: Statistic, known: Known, target: str, level: float
) -> tuple[Estimate, ...]:
    """An estimate for each number of a statistic. Post-processing: nothing private is read."""
    try:
        return _Run(statistic, known, target, level).estimates()
    except Undefined as error:
        return tuple(_undetermined(name, str(error), target, level) for name in statistic.names)


def _undetermined(
    name: str, why: str, target: str, level: float, reliance: float | None = None
) -> Estimate:
    return Estimate(name, None, None, None, level, target, None, reliance, why)


@dataclass(frozen=True, eq=False)
class _Settled:
    """Where the rounds ended: weights that agree with the tables as well as these allow."""

    weights: Floats
    fitted: Fitted
    influence: Floats
    correction: Correction
    reached: bool


class _Run:
    """One statistic on one release."""

    def __init__(self, statistic: Statistic, known: Known, target: str, level: float) -> None:
        self.statistic, self.known, self.target, self.level = statistic, known, target, level
        schema, columns = known.schema, statistic.columns
        self.points: Points = collapsed(known.model, columns, schema.shape)
        tables = reduced(known.tables, columns, schema.shape)
        self.evidence = Evidence(self.points, tables, known.rows, known.rows_sigma)
        self.frame = Frame.of(self.points, schema, statistic.numbers, known.shape_sigma)

    def settle(self) -> _Settled:
        many, evidence = len(self.statistic.names), self.evidence
        weights, lambdas, left, turn = self.points.shares, None, None, 0
        while True:
            fitted = self.statistic.fit(self.frame, weights)
            every = fitted.influence(self.frame)
            influence = every[:, :many]
            # Later rounds change φ little and begin with the λ of the one before.
            left = evidence.affordable(every.shape[1]) if left is None else left
            steps = min(left // 2, MOST_STEPS)
            left -= steps
            lambdas = evidence.weights(every, steps, lambdas)
            goal = evidence.goal(every, lambdas)[:many]
            own = np.sqrt(weights @ influence**2 / self.known.rows)
            near = _SETTLED * (np.hypot(evidence.noise(lambdas)[:many], own) + 1e-9)
            moved, reached = None, bool(np.all(np.abs(goal) <= near))
            if not reached and turn < ROUNDS:
                moved = tilted(weights, influence, goal, near / 2)
            if moved is None:
                late = turn == ROUNDS and self.statistic.jumps
                reached = late or bool(np.all(np.abs(goal) <= 10 * near))
                correction = evidence.correction(every, lambdas)
                return _Settled(weights, fitted, influence, correction, reached)
            weights, turn = moved, turn + 1

    def estimates(self) -> tuple[Estimate, ...]:
        if self.known.rows < 4 * self.known.rows_sigma:
            raise Undefined("the number of rows is hidden by its own noise")
        settled = self.settle()
        hidden = self._inside(settled)
        return tuple(
            self._estimate(settled, hidden, k, name) for k, name in enumerate(self.statistic.names)
        )

    def _inside(self, settled: _Settled) -> tuple[Floats, Floats, Floats]:
        """What bins hide: (variance of one row, variance by noisy shapes, bound on the bias)."""
        many = len(self.statistic.names)
        one, noisy, bias = np.zeros(many), np.zeros(many), np.zeros(many)
        if settled.fitted.hidden is not None:
            bias += settled.fitted.hidden
        weights = settled.weights
        sources = self.frame.sources(self.known.model, self.known.schema, self.statistic.conditions)
        for source in sources:
            up, down = (
                settled.fitted.influence(self.frame.moved(source, by))[:, :many]
                for by in (0.5, -0.5)
            )
            change = up - down
            one += weights @ change**2
            size = len(source.bias)
            held = np.maximum(np.bincount(source.cells, weights, size), 1e-12)
            for k in range(many):
                moved = np.bincount(source.cells, weights * change[:, k], size)
                bias[k] += np.abs(moved) @ source.bias
                noisy[k] += float(np.sum((moved / held * source.noise / self.known.rows) ** 2))
        return one, noisy, bias

    def _estimate(
        self, settled: _Settled, hidden: tuple[Floats, Floats, Floats], k: int, name: str
    ) -> Estimate:
        known, statistic, correction = self.known, self.statistic, settled.correction
        reliance = float(correction.reliance[k])

        def nothing(why: str) -> Estimate:
            return _undetermined(name, why, self.target, self.level, reliance)

        value = float(settled.fitted.values[k])
        if not settled.reached:
            if not statistic.linear:
                return nothing("the noise is too large for it")
            value += float(correction.goal[k])
        if any(not self._clear(settled, s) for s in self._needed(settled, k)):
            return nothing("too few rows are in the group to tell it from noise")
        beyond = self._beyond(correction, k)
        if beyond is None:
            return nothing(
                "it rests on what three or more columns show only together, which was never measured; "
                "a release whose certified workload has a marginal of these columns would bound it"
            )
        one, noisy, bias = (float(each[k]) for each in hidden)
        own = float(settled.weights @ settled.influence[:, k] ** 2)
        sampling, inside = 0.0, sqrt(noisy + one / known.rows)
        if self.target == "population":
            sampling, inside = sqrt(known.alike * (own + one) / known.rows), sqrt(noisy)
        lever = float(correction.by_rows[k]) + (value if statistic.per_row else 0.0)
        times = known.rows if statistic.per_row else 1.0
        parts = Parts(
            times * float(correction.noise[k]),
            times * abs(lever) * known.rows_sigma / known.rows,
            times * sampling,
            times * (OMEGA * float(correction.seen[k]) + beyond),
            times * (inside + bias),
        )
        deviation = hypot(parts.noise, parts.rows, parts.sampling, times * inside)
        half = half_width(deviation, parts.model + times * bias, self.level) / times
        low, high = statistic.limits(self.frame)
        if min(value + half, high) - max(value - half, low) >= 0.95 * (high - low):
            return nothing("every value that is possible lies in the interval")
        told = statistic.interval(self.frame, settled.weights, value, half)
        warning = None
        if reliance >= FLAGGED:
            warning = (
                f"{100 * reliance:.0f} % of its variance lies in what three or more columns show only "
                "together, which was never measured"
            )
        value, low, high = (times * each for each in told)
        return Estimate(name, value, low, high, self.level, self.target, parts, reliance, warning)

    def _needed(self, settled: _Settled, k: int) -> tuple[int, ...]:
        return settled.fitted.needed[k] if settled.fitted.needed else ()

    def _clear(self, settled: _Settled, share: int) -> bool:
        """Whether a share that is divided by is known well enough for that."""
        correction, at = settled.correction, len(self.statistic.names) + share
        bias = OMEGA * correction.seen[at] + OMEGA_REST * correction.unseen[at]
        half = half_width(float(correction.noise[at]), float(bias), self.level)
        return float(settled.fitted.shares[share] + correction.goal[at]) >= CLEAR * half

    def _beyond(self, correction: Correction, k: int) -> float | None:
        """A bound on the bias by what pairs do not show; None where there is none to trust."""
        usual = OMEGA_REST * float(correction.unseen[k])
        if usual == 0.0:
            return 0.0
        known = self.known.certified(self.points.columns, correction.rest[:, k])
        if correction.reliance[k] > ONLY_CERTIFIED:
            return known
        return usual if known is None else min(usual, known)
