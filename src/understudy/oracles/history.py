"""What the query player has played so far: a weighted sum of conjunctions over records.

    f(x) = constant + Σ_i w_i q_i(x),    q_i(x) = Π_l [literal l of term i holds in x]

A literal (`Condition`) allows the codes low..high of one column, or, negated, all others. A cell of a
marginal is the conjunction of equalities; its complement 1 - q has weight -w and adds w to the
constant, so a cell and its complement collapse into one net weight. Disjunctions, parities and "at
least m of k" are sums of conjunctions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Bools, Floats, Whole
from understudy.errors import InputError

if TYPE_CHECKING:
    from understudy.queries.classes import Query

Records = NDArray[np.integer[Any]]
"""Encoded rows as one array (rows, attributes)."""

_Literal = tuple[int, int, int, bool]
_MOST_LITERALS = 12  # 2^12 terms
_CHUNK = 4096
_PADDING = np.array([-1, 0, 0, 0])


@dataclass(frozen=True, eq=False)
class History:
    """A weighted sum of distinct conjunctions; adding returns a new one.

    `literals` is (terms, slots, 4): (column, low, high, negated) of those of every term, by increasing
    column, padded with column -1. A term mentions a column at most once. Arrays are never written to
    again.
    """

    shape: tuple[int, ...]
    literals: Whole
    weights: Floats
    constant: float = 0.0

    @classmethod
    def empty(cls, shape: Sequence[int]) -> History:
        """No terms: every record has value 0."""
        return cls(tuple(map(int, shape)), np.empty((0, 0, 4), np.int64), np.empty(0))

    @property
    def terms(self) -> int:
        """The number of distinct conjunctions."""
        return len(self.weights)

    @property
    def parts(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], Bools]:
        """(columns, low, high, negated) of all literals, (terms, slots) each."""
        columns, low, high, negated = np.moveaxis(self.literals, 2, 0)
        return columns, low, high, negated == 1

    # -- adding ----------------------------------------------------------------------------------

    def add(
        self,
        clique: Sequence[int],
        cell: Sequence[int],
        weight: float = 1.0,
        *,
        complement: bool = False,
    ) -> History:
        """With `weight` times the cell of the marginal, or times its complement."""
        return self.add_many([clique], [cell], [weight], [complement])

    def add_many(self, cliques: Any, cells: Any, weights: Any, complements: Any) -> History:
        """With many cells at once: (m, k) columns padded with -1, (m, k) codes, (m,) weights."""
        columns, codes = np.asarray(cliques, np.int64), np.asarray(cells, np.int64)
        amounts, flipped = np.asarray(weights, np.float64), np.asarray(complements, np.bool_)
        literals = np.stack([columns, codes, codes, np.zeros_like(codes)], axis=2)
        constant = float(amounts[flipped].sum())
        return self._with(literals, np.where(flipped, -amounts, amounts), constant)

    def add_query(self, query: Query, weight: float = 1.0) -> History:
        """With `weight` times a query of any class: a sum over sets S of its literals.

        any     a or b = 1 − (not a)(not b)
        odd     (1 − Π_l (1 − 2l))/2 = −½·Σ_S (−2)^|S| Π_{l in S} l, S not empty
        least   [Σ l ≥ m] = Σ_{j ≥ m} (−1)^(j−m)·C(j−1, m−1)·Σ_{|S| = j} Π_{l in S} l, for m ≥ 1: where
                h of them hold the inner sum is C(h, j), and Σ_{j=m..h} (−1)^(j−m)·C(j−1, m−1)·C(h, j)
                is 1 for h ≥ m
        """
        literals = [(each.column, each.low, each.high, each.negated) for each in query.conditions]
        match query.rule:
            case "any":
                others = [
                    (column, low, high, not negated) for column, low, high, negated in literals
                ]
                return self._with_conjunctions([others], [-weight], weight)
            case "odd":
                sets = _subsets(literals, 1)
                weights = [-0.5 * weight * (-2.0) ** len(each) for each in sets]
            case "least" if query.least > 0:
                sets, m = _subsets(literals, query.least), query.least
                weights = [
                    weight * (-1.0) ** (len(each) - m) * math.comb(len(each) - 1, m - 1)
                    for each in sets
                ]
            case rule:
                sets, weights = [tuple(literals) if rule == "all" else ()], [weight]
        return self._with_conjunctions(sets, weights)

    def plus(self, other: History, weight: float) -> History:
        """With `weight` times all of another history over the same attributes."""
        return self._with(other.literals, weight * other.weights, weight * other.constant)

    def _with_conjunctions(
        self,
        conjunctions: Sequence[Sequence[_Literal]],
        weights: Sequence[float],
        constant: float = 0.0,
    ) -> History:
        width = max((len(literals) for literals in conjunctions), default=0)
        rows = np.tile(_PADDING, (len(conjunctions), width, 1))
        for row, literals in zip(rows, conjunctions, strict=True):
            row[: len(literals)] = np.reshape(literals, (-1, 4))
        return self._with(rows, np.asarray(weights, np.float64), constant)

    def _with(self, literals: Whole, weights: Floats, constant: float) -> History:
        # Literals in the order of their columns, padding last, so that equal terms are equal rows.
        columns = literals[:, :, 0]
        literals = np.where(columns[:, :, None] < 0, _PADDING, literals)
        order = np.argsort(np.where(columns < 0, len(self.shape), columns), axis=1, kind="stable")
        literals = np.take_along_axis(literals, order[:, :, None], axis=1)
        width = max(literals.shape[1], self.literals.shape[1])
        rows, totals = _merge(
            _widen(self.literals, width), self.weights, _widen(literals, width), weights
        )
        # The empty conjunction is a constant.
        always = (rows[:, :, 0] < 0).all(axis=1)
        constant += self.constant + float(totals[always].sum())
        return History(self.shape, rows[~always], totals[~always], constant)

    # -- evaluating ------------------------------------------------------------------------------

    def evaluate(self, records: Records) -> Floats:
        """f(x) of every record."""
        rows = np.asarray(records, np.int64)
        values = np.full(len(rows), self.constant)
        for begin in range(0, len(rows) if self.terms else 0, _CHUNK):
            part = rows[begin : begin + _CHUNK]
            holds = np.ones((len(part), self.terms), np.bool_)
            for column, low, high, negated in np.moveaxis(self.literals, 0, 2):
                codes = part[:, column]
                inside = (codes >= low) & (codes <= high)
                holds &= (inside != (negated == 1)) | (column < 0)
            values[begin : begin + _CHUNK] += holds @ self.weights
        return values


def _subsets(literals: Sequence[_Literal], least: int) -> list[tuple[_Literal, ...]]:
    """All sets of at least so many of the literals."""
    number = len(literals)
    if number > _MOST_LITERALS:
        raise InputError(
            f"a query of {number} literals needs up to 2^{number} terms; "
            f"at most {_MOST_LITERALS} literals"
        )
    sizes = range(least, number + 1)
    return [subset for size in sizes for subset in itertools.combinations(literals, size)]


def offsets(shape: Sequence[int]) -> Whole:
    """First one-hot position of every attribute, and the number of positions at the end."""
    return np.concatenate([[0], np.cumsum(np.asarray(shape, np.int64))])


def _widen(literals: Whole, width: int) -> Whole:
    more = np.tile(_PADDING, (len(literals), width - literals.shape[1], 1))
    return np.concatenate([literals, more], axis=1)


def _merge(old: Whole, old_weights: Floats, new: Whole, weights: Floats) -> tuple[Whole, Floats]:
    """Equal terms become one, at the place of the first, with their weights added up."""
    if len(new) == 1:  # round by round: one pass
        same = np.flatnonzero((old == new).all(axis=(1, 2)))[:1]
        if len(same):
            totals = old_weights.copy()
            totals[same] += weights
            return old, totals
        return np.concatenate([old, new]), np.append(old_weights, weights)
    rows = np.concatenate([old, new])
    places: dict[bytes, int] = {}  # far quicker than sorting rows, of which a round brings a few
    place = np.array([places.setdefault(row.tobytes(), len(places)) for row in rows], np.int64)
    _, first = np.unique(place, return_index=True)
    totals = np.zeros(len(places))
    np.add.at(totals, place, np.concatenate([old_weights, weights]))
    return rows[first], totals


def objective(history: History, noise: Floats, records: Records) -> Floats:
    """What row j of `records` is worth under row j of the drawn `noise`."""
    rows = np.asarray(records)
    values = history.evaluate(rows)
    own = np.take_along_axis(noise, rows + offsets(history.shape)[:-1], axis=1)
    return values + own.sum(axis=1)
