"""What the query player has played so far: a weighted sum of conjunctions over records.

    f(x) = constant + Σ_i w_i q_i(x),    q_i(x) = Π_l [literal l of term i holds in x]

A literal allows the codes low..high of one column, or, negated, all others. A cell of a marginal is the
conjunction of equalities; its complement 1 - q has weight -w and adds w to the constant, so a cell and
its complement collapse into one net weight. Disjunctions, parities and "at least m of k" are sums of
conjunctions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError

__all__ = ["History", "Literal", "Records", "check_records", "objective", "offsets"]

Records = NDArray[np.integer[Any]]
"""Encoded rows as one array (rows, attributes)."""

_MOST_LITERALS = 12  # 2^12 terms
_CHUNK = 4096
_PADDING = np.array([-1, 0, 0, 0])


class Literal(NamedTuple):
    """Column `column` has a code in low..high (both included), or, `negated`, it has not."""

    column: int
    low: int
    high: int
    negated: bool = False

    def __invert__(self) -> Literal:
        return self._replace(negated=not self.negated)


@dataclass(frozen=True, eq=False)
class History:
    """A weighted sum of distinct conjunctions; adding returns a new one.

    `literals` is (terms, slots, 4): those of every term as `Literal` has them, by increasing column,
    padded with column -1. A term mentions a column at most once. Arrays are never written to again.
    """

    shape: tuple[int, ...]
    literals: NDArray[np.int64]
    weights: NDArray[np.float64]
    constant: float = 0.0

    @classmethod
    def empty(cls, shape: Sequence[int]) -> History:
        """No terms: every record has value 0."""
        sizes = tuple(int(size) for size in shape)
        if not sizes or min(sizes) < 1:
            raise InputError(f"a domain needs attributes of at least one value each, not {sizes}")
        return cls(sizes, np.empty((0, 0, 4), np.int64), np.empty(0))

    @property
    def terms(self) -> int:
        """The number of distinct conjunctions."""
        return len(self.weights)

    @property
    def parts(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
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
        if columns.ndim != 2 or codes.shape != columns.shape or amounts.shape != columns.shape[:1]:
            raise InputError(
                f"columns {columns.shape}, codes {codes.shape} and weights {amounts.shape} "
                "do not describe the same terms"
            )
        literals = np.stack([columns, codes, codes, np.zeros_like(codes)], axis=2)
        constant = float(amounts[flipped].sum())
        return self._with(literals, np.where(flipped, -amounts, amounts), constant)

    def add_conjunction(self, literals: Sequence[Literal], weight: float = 1.0) -> History:
        """With `weight` times the conjunction of the literals; the empty one is always true."""
        return self._with_conjunctions([literals], [weight])

    def add_disjunction(self, literals: Sequence[Literal], weight: float = 1.0) -> History:
        """With `weight` times the disjunction: a or b = 1 - (not a)(not b)."""
        return self._with_conjunctions([[~each for each in literals]], [-weight], weight)

    def add_parity(self, literals: Sequence[Literal], weight: float = 1.0) -> History:
        """With `weight` times "an odd number of the literals holds".

        odd = (1 - Π_l (1 - 2 l)) / 2, expanded over the 2^k - 1 non-empty subsets S of literals:
        odd = -1/2 Σ_S (-2)^|S| Π_{l in S} l.
        """
        subsets = _subsets(literals, 1)
        return self._with_conjunctions(
            subsets, [-0.5 * weight * (-2.0) ** len(subset) for subset in subsets]
        )

    def add_least(self, literals: Sequence[Literal], least: int, weight: float = 1.0) -> History:
        """With `weight` times "at least so many of the literals hold".

        [Σ l ≥ m] = Σ_{j ≥ m} (−1)^(j−m)·C(j−1, m−1)·Σ_{|S| = j} Π_{l in S} l, for m ≥ 1: where h of
        them hold the inner sum is C(h, j), and Σ_{j=m..h} (−1)^(j−m)·C(j−1, m−1)·C(h, j) = 1 for h ≥ m.
        """
        if least < 1:
            return self._with_conjunctions([()], [weight])
        subsets = _subsets(literals, least)
        weights = [
            weight * (-1.0) ** (len(subset) - least) * math.comb(len(subset) - 1, least - 1)
            for subset in subsets
        ]
        return self._with_conjunctions(subsets, weights)

    def plus(self, other: History, weight: float) -> History:
        """With `weight` times all of another history over the same attributes."""
        if other.shape != self.shape:
            raise InputError("histories over different attributes cannot be added")
        return self._with(other.literals, weight * other.weights, weight * other.constant)

    def _with_conjunctions(
        self,
        conjunctions: Sequence[Sequence[Literal]],
        weights: Sequence[float],
        constant: float = 0.0,
    ) -> History:
        width = max((len(literals) for literals in conjunctions), default=0)
        rows = np.tile(_PADDING, (len(conjunctions), width, 1))
        for row, literals in zip(rows, conjunctions, strict=True):
            row[: len(literals)] = np.reshape(literals, (-1, 4))
        return self._with(rows, np.asarray(weights, np.float64), constant)

    def _with(
        self, literals: NDArray[np.int64], weights: NDArray[np.float64], constant: float
    ) -> History:
        self._check(literals, weights, constant)
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

    def _check(
        self, literals: NDArray[np.int64], weights: NDArray[np.float64], constant: float
    ) -> None:
        if not np.isfinite(weights).all() or not math.isfinite(constant):
            raise InputError("weights of terms must be finite numbers")
        if literals.size == 0:
            return
        columns, low, high, _ = np.moveaxis(literals, 2, 0)
        attributes = len(self.shape)
        if columns.max() >= attributes or columns.min() < -1:
            raise InputError(f"columns of terms must lie in 0..{attributes - 1}; -1 pads")
        sizes = np.asarray(self.shape)[columns]
        wrong = (columns >= 0) & ((low < 0) | (low > high) | (high >= sizes))
        if wrong.any():
            i, slot = (int(at) for at in np.argwhere(wrong)[0])
            raise InputError(
                f"codes {low[i, slot]}..{high[i, slot]} are not codes of attribute "
                f"{columns[i, slot]}, which has {sizes[i, slot]} values"
            )
        ordered = np.sort(columns, axis=1)
        if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
            raise InputError("a term mentions a column twice; write it as one literal")

    # -- evaluating ------------------------------------------------------------------------------

    def evaluate(self, records: Records) -> NDArray[np.float64]:
        """f(x) of every record."""
        rows = check_records(records, self.shape)
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


def _subsets(literals: Sequence[Literal], least: int) -> list[tuple[Literal, ...]]:
    """All sets of at least so many of the literals."""
    number = len(literals)
    if number > _MOST_LITERALS:
        raise InputError(
            f"a query of {number} literals needs up to 2^{number} terms; "
            f"at most {_MOST_LITERALS} literals"
        )
    sizes = range(least, number + 1)
    return [subset for size in sizes for subset in itertools.combinations(literals, size)]


def offsets(shape: Sequence[int]) -> NDArray[np.int64]:
    """First one-hot position of every attribute, and the number of positions at the end."""
    return np.concatenate([[0], np.cumsum(np.asarray(shape, np.int64))])


def check_records(records: Records, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Encoded rows as int64, refused if they are not rows of the domain."""
    rows = np.asarray(records)
    if rows.ndim != 2 or rows.shape[1] != len(shape):
        raise InputError(f"records have shape {rows.shape}; expected (rows, {len(shape)})")
    rows = rows.astype(np.int64, copy=False)
    if rows.size and (rows.min() < 0 or (rows.max(axis=0) >= np.asarray(shape)).any()):
        raise InputError("records hold codes outside the domain")
    return rows


def _widen(literals: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    more = np.tile(_PADDING, (len(literals), width - literals.shape[1], 1))
    return np.concatenate([literals, more], axis=1)


def _merge(
    old: NDArray[np.int64],
    old_weights: NDArray[np.float64],
    new: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
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


def objective(
    history: History, noise: NDArray[np.float64], records: Records
) -> NDArray[np.float64]:
    """What row j of `records` is worth under row j of the drawn `noise`."""
    rows = np.asarray(records)
    values = history.evaluate(rows)
    drawn = np.asarray(noise, np.float64)
    begin = offsets(history.shape)
    if drawn.shape != (len(rows), int(begin[-1])):
        raise InputError(f"noise has shape {drawn.shape}; expected {(len(rows), int(begin[-1]))}")
    return values + np.take_along_axis(drawn, rows + begin[:-1], axis=1).sum(axis=1)
