"""Linear and logistic regressions.

A number enters by the mean of its cell. That is Berkson's error: where the outcome is linear in the
number, regressing on cell means gives the same coefficient as regressing on the numbers themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from understudy._types import Clique, Floats
from understudy.estimates.frame import Condition, Frame
from understudy.estimates.statistic import Fitted, Gone, Undefined, Within

_ROUNDS = 50
_RARE = Gone(
    "too few have it beside the noise for a coefficient; the regression is over the others"
)
_BASE = Gone("the others are compared with it, for too few have the first value", base=True)
_STEEP = 30.0  # Of a logistic regression, the largest log odds; beyond, the outcome is separated


@dataclass(frozen=True)
class Term:
    """A regressor: a number (`code` is None), or whether a column has a value."""

    column: int
    code: int | None = None


@dataclass(frozen=True, eq=False)
class Regression(Within):
    """Coefficients, the intercept first, over the rows that have every value.

    A base value of a column has no term. `missing` are the codes of columns that stand for null.
    """

    outcome: int | Condition
    terms: tuple[Term, ...]
    missing: tuple[tuple[int, int], ...]
    logistic: bool

    @property
    def columns(self) -> Clique:
        """Of the domain, the outcome and every term."""
        return tuple(sorted({*super().columns, *(term.column for term in self.terms)}))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The outcome, where it is a number, and the terms that are."""
        named = {term.column for term in self.terms if term.code is None}
        return tuple(sorted(named | ({self.outcome} if isinstance(self.outcome, int) else set())))

    @property
    def counted(self) -> tuple[Condition, ...]:
        """The outcome, where it is a condition."""
        return (self.outcome,) if isinstance(self.outcome, Condition) else ()

    def without(self, rare: Mapping[int, frozenset[int]]) -> tuple[Regression, Mapping[str, Gone]]:
        """Without rows that have rare values; where a base is rare, the next value takes its place."""
        terms, missing = dict(zip(self.terms, self.names[1:], strict=True)), [*self.missing]
        why: dict[str, Gone] = {}
        for column, codes in rare.items():
            own = {term.code for term in terms if term.column == column}
            hidden = codes - {code for at, code in missing if at == column}
            there = own - hidden
            if None in own or len(there) < 1 + len(hidden - own):
                continue
            for code in hidden:
                missing.append((column, code))
                if code in own:
                    why[terms.pop(Term(column, code))] = _RARE
                else:  # it has no term: it is the base
                    first = min(code for code in there if code is not None)
                    why[terms.pop(Term(column, first))] = _BASE
        names = (self.names[0], *terms.values())
        return replace(self, names=names, terms=tuple(terms), missing=tuple(missing)), why

    @property
    def divisor(self) -> str:
        """Of one value of a category, or of all; of a logistic outcome on one side of it."""
        return "its share" + (" on one side of the outcome" if self.logistic else "")

    def _parts(self, frame: Frame) -> tuple[Floats, Floats, Floats]:
        """(regressors, outcome, how much of every point counts)."""
        held = self.domain.share(frame)
        for column in self.numbers:
            held = held * frame.there(column)
        for column, code in self.missing:
            held = held * (frame.codes(column) != code)
        regressors = [np.ones(len(frame))]
        for term in self.terms:
            if term.code is None:
                regressors.append(frame.number(term.column))
            else:
                regressors.append((frame.codes(term.column) == term.code).astype(np.float64))
        outcome = self.outcome
        y = frame.number(outcome) if isinstance(outcome, int) else frame.share(outcome)
        return np.stack(regressors).T, y, held

    def fit(self, frame: Frame, weights: Floats) -> Fitted:
        """Σ w·D·x·(y − μ(xβ)) = 0, with influence H⁻¹·D·x·(y − μ(xβ)), H = Σ w·D·μ'·xxᵀ."""
        x, y, held = self._parts(frame)
        counted = weights * held
        share = float(counted.sum())
        if share <= 1e-12:
            raise Undefined("no row of the model has all the values")
        # Numbers are standardised, so that the equations are well conditioned.
        centre, scale = np.zeros(x.shape[1]), np.ones(x.shape[1])
        for k, term in enumerate(self.terms, start=1):
            if term.code is None:
                centre[k] = counted @ x[:, k] / share
                scale[k] = np.sqrt(counted @ (x[:, k] - centre[k]) ** 2 / share)
        if not scale.all():
            raise Undefined("a regressor has one value only")

        def standard(x: Floats) -> Floats:
            return (x - centre) / scale

        beta, curve = self._solved(standard(x), y, counted)
        # β of x itself: slopes over scales, the intercept less what centring moved.
        back = np.diag(1 / scale)
        back[0, 1:] = -centre[1:] / scale[1:]
        spread = back @ np.linalg.inv(curve)

        def influence(at: Frame) -> Floats:
            x, y, held = self._parts(at)
            z = standard(x)
            wrong = held * (y - self._mean(z @ beta))
            own = spread @ (z * wrong[:, None]).T
            return np.concatenate([own, (self._shares(x, y, held) - shares).T]).T

        shares = weights @ self._shares(x, y, held)
        return Fitted(back @ beta, influence, shares, self._needed())

    def _mean(self, eta: Floats) -> Floats:
        return 1 / (1 + np.exp(-np.clip(eta, -_STEEP, _STEEP))) if self.logistic else eta

    def _solved(self, z: Floats, y: Floats, counted: Floats) -> tuple[Floats, Floats]:
        """β, and the curvature at it."""
        beta = np.zeros(z.shape[1])
        for _ in range(_ROUNDS):
            mean = self._mean(z @ beta)
            slope = mean * (1 - mean) if self.logistic else np.ones(len(mean))
            curve = (z * (counted * slope)[:, None]).T @ z
            if np.linalg.cond(curve) > 1e10:
                raise Undefined("the regressors depend on each other, or separate the outcome")
            step = np.linalg.solve(curve, z.T @ (counted * (y - mean)))
            if not self.logistic:
                return beta + step, curve
            beta = beta + step * min(1.0, 5.0 / max(float(np.abs(step).max()), 1e-300))
            if np.abs(step).max() < 1e-9:
                return beta, curve
            if np.abs(beta).max() > _STEEP:
                break
        raise Undefined("the regressors separate the outcome")

    def _shares(self, x: Floats, y: Floats, held: Floats) -> Floats:
        """Rows that count, and those of each value; for a logistic outcome on both sides of it."""
        groups = [held, *(held * x[:, 1 + k] for k in self._dummies)]
        sides = (y, 1 - y) if self.logistic else (np.ones(len(y)),)
        return np.stack([group * side for group in groups for side in sides]).T

    @property
    def _dummies(self) -> list[int]:
        return [k for k, term in enumerate(self.terms) if term.code is not None]

    def _needed(self) -> tuple[tuple[int, ...], ...]:
        """The rows that every coefficient needs, and those of its own value."""
        each = 2 if self.logistic else 1
        every, dummies = tuple(range(each)), self._dummies
        own = [dummies.index(k) + 1 if k in dummies else 0 for k in range(len(self.terms))]
        return (every, *((*every, *(each * at + i for i in every if at)) for at in own))
