"""Classes of queries on the columns of one clique: what a workload is made of.

A *family* is all queries of one kind on one clique. A query takes one literal of each column and joins
them; every one is a 0/1 function of the cells of the clique's marginal.

    kind          literals of a column of g values                  joined by   queries
    marginals     x = v                                             and         Π g
    conjunctions  x = v and, if g > 2, x ≠ v                        and         Π 2g (2 for g = 2)
    disjunctions  the same                                          or          as many
    parities      x = v; only the second value if g = 2             xor         Π g (1 for g = 2)
    prefixes      x ≤ v, in the column's order                      and         Π g
    halfspaces    those of conjunctions                             m of k      k·Π 2g (2 for g = 2)

A halfspace asks whether at least m of its k literals hold, for every m from 1 to k: m = 1 are the
disjunctions, m = k the conjunctions.

What would say the same twice is left out: a negated literal of a column of two values is the other
literal, and a negated literal turns a parity into its complement. Complements need no queries of their
own: players pick a side together with the query. `prefixes` are the joint distribution function, so
those of fewer columns are among them (and the last query, which is always true and never wrong). Nulls
come last in a column's order: x ≤ v leaves them out.

**Separator sets.** The literals "column a has value v" are one (sepFEM): two records differ in some
column, and then a literal of it tells them apart.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from understudy._types import Clique, Whole
from understudy.errors import WorkloadError
from understudy.privacy.products import ProductQueries, Rule
from understudy.queries.evaluate import cells
from understudy.schema import Schema

MARGINALS = "marginals"

MAX_QUERIES = 4_000_000
"""The most queries, and the most cells behind them, of a workload with other kinds than marginals."""

MAX_PARITY = 8
"""The most columns of a parity or a halfspace: it is a sum of up to 2^k − 1 conjunctions."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A literal: the code of a column lies in low..high, or, `negated`, it does not."""

    column: int
    low: int
    high: int
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """Conditions on different columns, joined by a rule: a 0/1 function of a record."""

    rule: Rule
    conditions: tuple[Condition, ...]
    least: int = 0
    """How many of them must hold, where the rule is `Rule.LEAST`."""


Literal = tuple[int, int, bool]
"""low, high, negated"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of queries: the literals of a column of so many values, and how they are joined."""

    name: str
    literals: Callable[[int], list[Literal]]
    rule: Rule
    ordered: bool = False
    """Whether it needs columns whose codes have an order."""


def _each(values: int) -> list[Literal]:
    return [(v, v, False) for v in range(values)]


def _either(values: int) -> list[Literal]:
    return _each(values) + ([(v, v, True) for v in range(values)] if values > 2 else [])


def _either_or(values: int) -> list[Literal]:
    # A column of one value must not decide a disjunction: there the literal that never holds.
    return _either(values) if values > 1 else [(0, 0, True)]


def _one_sided(values: int) -> list[Literal]:
    return [(1, 1, False)] if values == 2 else _each(values)


def _thresholds(values: int) -> list[Literal]:
    return [(0, v, False) for v in range(values)]


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind(MARGINALS, _each, Rule.ALL),
            Kind("conjunctions", _either, Rule.ALL),
            Kind("disjunctions", _either_or, Rule.ANY),
            Kind("parities", _one_sided, Rule.ODD),
            Kind("prefixes", _thresholds, Rule.ALL, ordered=True),
            Kind("halfspaces", _either, Rule.LEAST),
        )
    }
)
"""Every kind by name. Adding one is a line here; `fem` and `sepfem` play it."""


@dataclass(frozen=True)
class Family:
    """All queries of one kind on one clique, and how much their errors matter.

    >>> family = Family((0, 1), kind="conjunctions")
    >>> family.size((2, 3)), family.query((1, 4), (2, 3)).conditions[1]
    (12, Condition(column=1, low=1, high=1, negated=True))
    """

    clique: Clique
    weight: float = 1.0
    kind: str = MARGINALS

    def __post_init__(self) -> None:
        clique = self.clique
        if self.kind not in KINDS:
            raise WorkloadError(
                f"the kind {self.kind!r} is not known: queries are {', '.join(KINDS)}"
            )
        noun = "marginal" if self.kind == MARGINALS else f"family of {self.kind}"
        if not clique:
            raise WorkloadError(f"a {noun} of a workload needs at least one column, it has none")
        if clique[0] < 0 or any(i >= j for i, j in itertools.pairwise(clique)):
            raise WorkloadError(f"clique {clique} is not a strictly increasing tuple of positions")
        if not (math.isfinite(self.weight) and self.weight > 0):
            raise WorkloadError(
                f"the {noun} {clique} has weight {self.weight}: a weight must be above 0"
            )
        if KINDS[self.kind].rule in (Rule.ODD, Rule.LEAST) and len(clique) > MAX_PARITY:
            raise WorkloadError(
                f"the {noun} {clique} has {len(clique)} columns: take at most {MAX_PARITY}"
            )

    def size(self, shape: Sequence[int]) -> int:
        """The number of queries."""
        if self.kind == MARGINALS:
            return cells(shape, self.clique)
        kind = KINDS[self.kind]
        thresholds = len(self.clique) if kind.rule is Rule.LEAST else 1
        return thresholds * math.prod(len(kind.literals(shape[i])) for i in self.clique)

    def query(self, index: Sequence[int], shape: Sequence[int]) -> Query:
        """The query with these numbers of literals, one per column, as `products` numbers them.

        Conditions that hold for all values or for none, and do not matter for that, are left out.
        """
        kind = KINDS[self.kind]
        numbers = index[: len(self.clique)]
        conditions = [
            Condition(column, *kind.literals(shape[column])[number])
            for column, number in zip(self.clique, numbers, strict=True)
        ]
        if kind.rule is Rule.LEAST:
            return Query(kind.rule, tuple(conditions), 1 + index[-1])
        idle = kind.rule is not Rule.ALL  # negated, it changes nothing; plain, if all must hold
        conditions = [
            each
            for each in conditions
            if (each.low, each.high) != (0, shape[each.column] - 1) or each.negated != idle
        ]
        return Query(kind.rule, tuple(conditions))

    def products(self, shape: Sequence[int]) -> ProductQueries:
        """All queries at once, as matrices of literals."""
        kind = KINDS[self.kind]
        matrices = tuple(_matrix(kind.literals(shape[i]), shape[i]) for i in self.clique)
        return ProductQueries(self.clique, matrices, kind.rule)

    def check(self, schema: Schema) -> None:
        """Raise `WorkloadError` where the kind does not fit the columns."""
        if not KINDS[self.kind].ordered:
            return
        for i in self.clique:
            column = schema.modelled[i]
            if not column.ordered:
                raise WorkloadError(
                    f"{self.kind} need ordered columns, and {column.name!r} of type "
                    f"{column.kind!r} has no order: leave it out, or declare it with ordinal = true "
                    "if the order of its values means something"
                )


def check_size(families: Iterable[Family], shape: Sequence[int]) -> None:
    """Raise `WorkloadError` where there are too many queries, or cells behind them, to look at.

    Marginals alone have no such limit: methods may pick their cells without listing them.
    """
    queries = behind = 0
    for family in families:
        queries += family.size(shape)
        behind += cells(shape, family.clique)
    for number, noun in ((queries, "queries"), (behind, "cells behind its queries")):
        if number > MAX_QUERIES:
            raise WorkloadError(
                f"the workload has {number:,} {noun}, more than {MAX_QUERIES:,}: take fewer columns, "
                "coarser bins, or a sample of the cliques, such as 'conjunctions:2:20@0'"
            )


def separator(shape: Sequence[int]) -> tuple[Condition, ...]:
    """A separator set for all records of `shape`: literals that tell any two of them apart."""
    return tuple(
        Condition(i, *literal) for i, values in enumerate(shape) for literal in _each(values)
    )


def _matrix(literals: Sequence[Literal], values: int) -> Whole:
    codes = np.arange(values)
    rows = [((codes >= low) & (codes <= high)) != negated for low, high, negated in literals]
    return np.array(rows, dtype=np.int64)
