"""Classes of 0/1 queries on one marginal, given by a small 0/1 matrix for each of its columns.

Row l of a column's matrix says for which of its values literal l holds. A query takes one literal of
every column and joins them by a rule:

    all    Π_a M_a[l_a, x_a]                         every literal holds
    any    1 − Π_a (1 − M_a[l_a, x_a])               some literal holds
    odd    (1 − Π_a (1 − 2·M_a[l_a, x_a])) / 2       an odd number of literals holds
    least  [Σ_a M_a[l_a, x_a] ≥ m], m = 1..k         at least m of the k literals hold

Whatever the matrices, each is a 0/1 function of the cell that a row lies in. So its count moves by at
most 1 with a neighbour, under both relations, and all counts follow from the marginal table by one
small product per column; nothing of the size queries × cells is ever held.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Floats, Whole
from understudy.errors import PrivacyError


class Rule(StrEnum):
    """How the literals of a query are joined."""

    ALL = "all"
    ANY = "any"
    ODD = "odd"
    LEAST = "least"


@dataclass(frozen=True, eq=False)
class ProductQueries:
    """All queries that take one literal of every column of `clique`, joined by `rule`.

    `literals[a]` is a 0/1 integer matrix (literals, values) for column clique[a]; it is copied, and
    never written to again. Queries are numbered in C order of `shape`, the numbers of literals; with
    `Rule.LEAST` a last axis has the least number m of literals, from 1.
    """

    clique: Clique
    literals: tuple[Whole, ...]
    rule: Rule = Rule.ALL
    _plain: tuple[bool, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        clique = tuple(int(i) for i in self.clique)
        if not clique or clique[0] < 0 or any(i >= j for i, j in itertools.pairwise(clique)):
            raise PrivacyError(f"clique {clique} must be increasing positions, at least one")
        if len(self.literals) != len(clique):
            raise PrivacyError(
                f"{len(clique)} columns need as many matrices of literals, got {len(self.literals)}"
            )
        matrices: list[Whole] = []
        for column, given in zip(clique, self.literals, strict=True):
            matrix = np.asarray(given)
            if not np.issubdtype(matrix.dtype, np.integer) or matrix.ndim != 2 or not matrix.size:
                raise PrivacyError(f"the literals of column {column} must be a matrix of integers")
            if not np.isin(matrix, (0, 1)).all():
                raise PrivacyError(f"the literals of column {column} must be 0 or 1")
            matrix = matrix.astype(np.int64, copy=True)
            matrix.setflags(write=False)
            matrices.append(matrix)
        object.__setattr__(self, "clique", clique)
        object.__setattr__(self, "literals", tuple(matrices))
        object.__setattr__(self, "rule", Rule(self.rule))
        object.__setattr__(self, "_plain", tuple(_identity(m) for m in matrices))

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of literals of each column, and of least numbers where the rule has them."""
        thresholds = (len(self.clique),) if self.rule is Rule.LEAST else ()
        return *(matrix.shape[0] for matrix in self.literals), *thresholds

    @property
    def domain(self) -> tuple[int, ...]:
        """The number of values of each column: the shape of the marginal table."""
        return tuple(matrix.shape[1] for matrix in self.literals)

    @property
    def size(self) -> int:
        """The number of queries."""
        return math.prod(self.shape)

    def answers(self, table: NDArray[Any]) -> Floats:
        """Σ_cells q(cell)·table(cell) for every query, an array of `shape`.

        Exact for tables of whole numbers: every partial sum is at most Σ |table|, and whole numbers
        below 2^53 are exact in float64.
        """
        values = np.asarray(table, np.float64)
        if values.shape != self.domain:
            raise PrivacyError(f"the table of {self.clique} has shape {values.shape}")
        if self.rule is Rule.LEAST:
            return self._least(values)
        total = values.sum()
        for matrix, plain in zip(self.literals, self._plain, strict=True):
            # The first axis is used up, its literals become the last; after all, all are in order.
            if plain and self.rule is Rule.ALL:
                values = np.moveaxis(values, 0, -1)
            else:
                values = np.tensordot(values, self._factor(matrix), axes=(0, 1))
        if self.rule is Rule.ALL:
            return np.ascontiguousarray(values)
        return total - values if self.rule is Rule.ANY else (total - values) / 2

    def _least(self, table: Floats) -> Floats:
        """Column by column, for every number j: the rows in which j literals hold so far."""
        held = [table]
        for matrix in self.literals:
            yes = [np.tensordot(part, matrix.astype(np.float64), axes=(0, 1)) for part in held]
            no = [np.tensordot(part, 1.0 - matrix, axes=(0, 1)) for part in held]
            held = [no[0], *(a + b for a, b in zip(yes, no[1:], strict=False)), yes[-1]]
        return np.cumsum(np.stack(held[:0:-1], axis=-1), axis=-1)[..., ::-1]

    def _factor(self, matrix: Whole) -> Floats:
        factor = matrix if self.rule is Rule.ALL else 1 - matrix * (1 + (self.rule is Rule.ODD))
        return factor.astype(np.float64)


def _identity(matrix: Whole) -> bool:
    """Whether literal l is "the value is l"."""
    rows, values = matrix.shape
    return rows == values and bool(np.array_equal(matrix, np.eye(rows, dtype=np.int64)))
