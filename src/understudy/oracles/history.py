"""What the query player has played so far: a weighted sum of conjunctions over records.

    f(x) = constant + Σ_i w_i q_i(x),    q_i(x) = Π_l [literal l of term i holds in x]

A literal allows the codes low..high of one column, or, negated, all others. A cell of a marginal is the
conjunction of equalities; its complement 1 - q has weight -w and adds w to the constant, so a cell and
its complement collapse into one net weight. Disjunctions and parities are sums of conjunctions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy.errors import InputError

__all__ = ["History", "Literal", "Records", "check_records", "objective", "offsets"]

Records = NDArray[np.integer[Any]]
"""Encoded rows as one array (rows, attributes)."""

_PARITY_LITERALS = 12  # 2^12 terms
_CHUNK = 4096


@dataclass(frozen=True, slots=True)
class Literal:
    """Column `column` has a code in low..high (both included), or, `negated`, it has not."""

    column: int
    low: int
    high: int
    negated: bool = False

    @classmethod
    def equal(cls, column: int, code: int, *, negated: bool = False) -> Literal:
        """The column has exactly this code."""
        return cls(column, code, code, negated)

    @classmethod
    def at_most(cls, column: int, code: int) -> Literal:
        """A threshold: the column has this code or a smaller one."""
        return cls(column, 0, code)

    def __invert__(self) -> Literal:
        return Literal(self.column, self.low, self.high, not self.negated)


@dataclass(frozen=True, eq=False)
class History:
    """A weighted sum of distinct conjunctions; adding returns a new one.

    Row i of `columns`, `low`, `high`, `negated` holds the literals of term i by increasing column,
    padded with column -1. A term mentions a column at most once. Arrays are never written to again.
    """

    shape: tuple[int, ...]
    columns: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    negated: NDArray[np.bool_]
    weights: NDArray[np.float64]
    constant: float = 0.0

    @classmethod
    def empty(cls, shape: Sequence[int]) -> History:
        """No terms: every record has value 0."""
        sizes = tuple(int(size) for size in shape)
        if not sizes or min(sizes) < 1:
            raise InputError(f"a domain needs attributes of at least one value each, not {sizes}")
        ints = np.empty((0, 0), np.int64)
        return cls(sizes, ints, ints, ints, np.empty((0, 0), np.bool_), np.empty(0))

    @property
    def terms(self) -> int:
        """The number of distinct conjunctions."""
        return len(self.weights)

    @property
    def equalities(self) -> bool:
        """Whether every literal is a plain `column = code`."""
        return bool((self.low == self.high).all() and not self.negated.any())

    @property
    def values(self) -> NDArray[np.int64]:
        """The code of every literal of a history of plain equalities."""
        if not self.equalities:
            raise InputError("values are defined for plain equalities; use low, high and negated")
        return self.low

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
        cells = np.asarray(cell, np.int64).reshape(1, -1)
        flags = np.array([complement])
        return self.add_many(np.asarray(clique).reshape(1, -1), cells, [weight], flags)

    def add_many(
        self,
        cliques: Any,
        cells: Any,
        weights: Any,
        complements: Any = None,
    ) -> History:
        """With many cells at once: (m, k) columns padded with -1, (m, k) codes, (m,) weights."""
        columns, codes = _pair(cliques, np.int64), _pair(cells, np.int64)
        amounts = np.asarray(weights, np.float64)
        constant = 0.0
        if complements is not None:
            flipped = np.asarray(complements, np.bool_)
            constant = float(amounts[flipped].sum())
            amounts = np.where(flipped, -amounts, amounts)
        return self._with(
            columns, codes, codes, np.zeros(columns.shape, np.bool_), amounts, constant
        )

    def add_conjunction(self, literals: Sequence[Literal], weight: float = 1.0) -> History:
        """With `weight` times the conjunction of the literals; the empty one is always true."""
        return self._with_conjunctions([tuple(literals)], [weight])

    def add_disjunction(self, literals: Sequence[Literal], weight: float = 1.0) -> History:
        """With `weight` times the disjunction: a or b = 1 - (not a)(not b)."""
        return self._with_conjunctions([tuple(~each for each in literals)], [-weight], weight)

    def add_parity(self, literals: Sequence[Literal], weight: float = 1.0) -> History:
        """With `weight` times "an odd number of the literals holds".

        odd = (1 - Π_l (1 - 2 l)) / 2, expanded over the 2^k - 1 non-empty subsets S of literals:
        odd = -1/2 Σ_S (-2)^|S| Π_{l in S} l.
        """
        if len(literals) > _PARITY_LITERALS:
            raise InputError(
                f"a parity of {len(literals)} literals needs 2^{len(literals)} terms; "
                f"at most {_PARITY_LITERALS} literals"
            )
        subsets = [
            subset
            for size in range(1, len(literals) + 1)
            for subset in itertools.combinations(literals, size)
        ]
        return self._with_conjunctions(
            subsets, [-0.5 * weight * (-2.0) ** len(subset) for subset in subsets]
        )

    def plus(self, other: History, weight: float) -> History:
        """With `weight` times all of another history over the same attributes."""
        if other.shape != self.shape:
            raise InputError("histories over different attributes cannot be added")
        return self._with(
            other.columns,
            other.low,
            other.high,
            other.negated,
            weight * other.weights,
            weight * other.constant,
        )

    def _with_conjunctions(
        self,
        conjunctions: Sequence[tuple[Literal, ...]],
        weights: Sequence[float],
        constant: float = 0.0,
    ) -> History:
        width = max((len(literals) for literals in conjunctions), default=0)
        columns = np.full((len(conjunctions), width), -1, np.int64)
        low, high = np.zeros_like(columns), np.zeros_like(columns)
        negated = np.zeros(columns.shape, np.bool_)
        for i, literals in enumerate(conjunctions):
            for slot, each in enumerate(literals):
                columns[i, slot], low[i, slot], high[i, slot] = each.column, each.low, each.high
                negated[i, slot] = each.negated
        return self._with(columns, low, high, negated, np.asarray(weights, np.float64), constant)

    def _with(
        self,
        columns: NDArray[np.int64],
        low: NDArray[np.int64],
        high: NDArray[np.int64],
        negated: NDArray[np.bool_],
        weights: NDArray[np.float64],
        constant: float,
    ) -> History:
        self._check(columns, low, high, weights, constant)
        absent = columns < 0
        # Literals in the order of their columns, padding last, so that equal terms are equal rows.
        order = np.argsort(np.where(absent, len(self.shape), columns), axis=1, kind="stable")
        parts = [
            np.take_along_axis(np.where(absent, padding, part), order, axis=1)
            for part, padding in ((columns, -1), (low, 0), (high, 0), (negated, 0))
        ]
        new = (
            np.concatenate(parts, axis=1)
            if parts[0].size
            else np.empty((len(weights), 0), np.int64)
        )
        old, new = _same_width(self._rows(), new)
        if len(new) == 1:
            rows, totals = _merge_one(old, self.weights, new, float(weights[0]))
        else:
            rows, totals = _merge(
                np.concatenate([old, new]), np.concatenate([self.weights, weights])
            )
        # The empty conjunction is a constant.
        width = rows.shape[1] // 4
        always = (rows[:, :width] < 0).all(axis=1)
        if always.any():
            constant += float(totals[always].sum())
            rows, totals = rows[~always], totals[~always]
        columns, low, high, flags = (rows[:, i * width : (i + 1) * width] for i in range(4))
        return History(
            self.shape, columns, low, high, flags.astype(np.bool_), totals, self.constant + constant
        )

    def _rows(self) -> NDArray[np.int64]:
        """Every term as one row: its columns, then low, high and negated."""
        parts = [self.columns, self.low, self.high, self.negated.astype(np.int64)]
        return np.concatenate(parts, axis=1)

    def _check(
        self,
        columns: NDArray[np.int64],
        low: NDArray[np.int64],
        high: NDArray[np.int64],
        weights: NDArray[np.float64],
        constant: float,
    ) -> None:
        if low.shape != columns.shape or weights.shape != (len(columns),):
            raise InputError(
                f"columns {columns.shape}, codes {low.shape} and weights {weights.shape} "
                "do not describe the same terms"
            )
        if not np.isfinite(weights).all() or not math.isfinite(constant):
            raise InputError("weights of terms must be finite numbers")
        if columns.size == 0:
            return
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
            for slot in range(self.columns.shape[1]):
                column = self.columns[:, slot]
                codes = part[:, column]
                inside = (codes >= self.low[:, slot]) & (codes <= self.high[:, slot])
                holds &= (inside != self.negated[:, slot]) | (column < 0)
            values[begin : begin + _CHUNK] += holds @ self.weights
        return values


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


def _pair(array: Any, dtype: type[np.int64]) -> NDArray[np.int64]:
    result = np.asarray(array, dtype)
    if result.ndim != 2:
        raise InputError(f"cells must come as (terms, columns), not as shape {result.shape}")
    return result


def _same_width(
    old: NDArray[np.int64], new: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    width = max(old.shape[1], new.shape[1]) // 4
    return _widen(old, width), _widen(new, width)


def _widen(rows: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    own = rows.shape[1] // 4
    if own == width:
        return rows
    blocks = np.zeros((len(rows), 4, width), np.int64)
    blocks[:, 0] = -1
    blocks[:, :, :own] = rows.reshape(len(rows), 4, own)
    return blocks.reshape(len(rows), 4 * width)


def _merge_one(
    rows: NDArray[np.int64], weights: NDArray[np.float64], row: NDArray[np.int64], weight: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """As `_merge`, in one pass: the round by round case."""
    same = np.flatnonzero((rows == row).all(axis=1))
    if len(same):
        totals = weights.copy()
        totals[same[0]] += weight
        return rows, totals
    return np.concatenate([rows, row]), np.append(weights, weight)


def _merge(
    rows: NDArray[np.int64], weights: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Equal rows become one, at the place of the first, with their weights added up."""
    if rows.shape[1] == 0:
        return rows[:1], weights.sum(keepdims=True)[: len(rows)]
    data, width = rows.tobytes(), rows.shape[1] * rows.itemsize
    places: dict[bytes, int] = {}  # far quicker than sorting rows, of which a round brings a few
    of = [places.setdefault(data[i : i + width], len(places)) for i in range(0, len(data), width)]
    place = np.asarray(of, np.int64)
    _, first = np.unique(place, return_index=True)
    totals = np.zeros(len(places))
    np.add.at(totals, place, weights)
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
