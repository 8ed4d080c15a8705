"""What the rows are for: public texts that add weighted tables to a workload (docs/workload.md).

A purpose is no more than a workload, so whatever follows from one (plan, certificate, verification)
follows from a purpose alike. The tables that were asked for otherwise stay, with the weight they had.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations

from understudy._types import Clique
from understudy.errors import WorkloadError
from understudy.queries.classes import Family
from understudy.queries.evaluate import cells
from understudy.queries.workload import Workload, summed
from understudy.schema import Schema

MOST_CELLS = 20_000
"""Of tables of three columns that a purpose adds: larger ones would hold noise, a few rows a cell."""

FORMS = (
    "a purpose is 'model:TARGET' (predicting that column), 'regression:Y ~ A + B' (columns joined "
    "by '+'; a name with '+' or '~' in it between backticks) or 'subgroups:COLUMN' (comparing groups)"
)

# Of a pair and of a triple, times the heaviest pair of the workload. Chosen on generated tables: with
# less, pairs are not measured better; with more, prediction gains little and other tables lose.
_PAIR, _TRIPLE = 10.0, 0.25
_KINDS = ("model", "regression", "subgroups")
_NAME = re.compile(r"\s*(?:`(?P<quoted>[^`]+)`|(?P<bare>[^`~+]*[^`~+\s]))\s*")


@dataclass(frozen=True)
class Purpose:
    """A purpose as it was read: the column that its tables hold, and, of a regression, the others."""

    kind: str
    column: str
    others: tuple[str, ...] = ()

    def families(self, schema: Schema) -> tuple[Family, ...]:
        """The tables that come first; weights are relative to the heaviest pair of other tables.

        Raises:
            WorkloadError: A column is not one of the schema, or named twice, or there is no other.
        """
        held = self._positions(self.column, schema)
        if self.others:
            named = [i for name in self.others for i in self._positions(name, schema)]
            repeated = [i for i in named if i in held or named.count(i) > 1]
            if repeated:
                name = schema.modelled[repeated[0]].name
                raise WorkloadError(f"purpose '{self}': column {name!r} is in it twice")
        else:
            named = [i for i in range(len(schema.modelled)) if i not in held]
        if not named:
            raise WorkloadError(
                f"purpose '{self}': the schema models no other column than {self.column!r}"
            )
        families = [Family(_clique(held, i), _PAIR) for i in named]
        families += [Family(_clique(held, i, j), _TRIPLE) for i, j in combinations(named, 2)]
        if self.others:
            families += [Family(two, _PAIR) for two in combinations(sorted(named), 2)]
        return tuple(families)

    def _positions(self, name: str, schema: Schema) -> tuple[int, ...]:
        try:
            return schema.positions(name)
        except WorkloadError as error:
            raise WorkloadError(f"purpose '{self}': {error}") from None

    def __str__(self) -> str:
        formula = f" ~ {' + '.join(self.others)}" if self.others else ""
        return f"{self.kind}:{self.column}{formula}"


def read(text: str) -> Purpose:
    """The purpose that a text states.

    >>> read("regression:insured ~ age + `cost + fee`")
    Purpose(kind='regression', column='insured', others=('age', 'cost + fee'))

    Raises:
        WorkloadError: Malformed.
    """
    kind, colon, rest = text.strip().partition(":")
    if kind not in _KINDS or not colon or not rest.strip():
        raise WorkloadError(f"purpose = {text!r} is not understood: {FORMS}")
    if kind != "regression":
        return Purpose(kind, rest.strip())
    names, operators = _formula(text, rest)
    if len(names) < 2 or operators[0] != "~" or "~" in operators[1:]:
        raise WorkloadError(
            f"purpose = {text!r}: write the formula as 'Y ~ A + B', one column before '~' and at "
            "least one after it"
        )
    return Purpose(kind, names[0], tuple(names[1:]))


def widened(workload: Workload, purposes: Iterable[str], schema: Schema) -> Workload:
    """The workload with the tables of the purposes, which weigh more than any pair that it had."""
    read_ = [read(text) for text in purposes]
    if not read_:
        return workload
    pairs: dict[Clique, float] = {}
    for family in workload.families:
        for pair in combinations(family.clique, 2):
            pairs[pair] = pairs.get(pair, 0.0) + family.weight
    unit = max(pairs.values(), default=1.0)
    wanted = (
        replace(family, weight=unit * family.weight)
        for purpose in read_
        for family in purpose.families(schema)
        if not _large(family, schema)
    )
    return Workload(summed((*workload.families, *wanted)))


def left_out(purposes: Iterable[str], schema: Schema) -> tuple[Clique, ...]:
    """The tables of three columns that purposes do not add, for they have too many cells."""
    found = (family for text in purposes for family in read(text).families(schema))
    return tuple(dict.fromkeys(family.clique for family in found if _large(family, schema)))


def _large(family: Family, schema: Schema) -> bool:
    return len(family.clique) > 2 and cells(schema.shape, family.clique) > MOST_CELLS


def _clique(held: tuple[int, ...], *more: int) -> Clique:
    return tuple(sorted({*held, *more}))


def _formula(text: str, formula: str) -> tuple[list[str], list[str]]:
    """Names and the operators between them, in turn."""
    names: list[str] = []
    operators: list[str] = []
    at = 0
    while (match := _NAME.match(formula, at)) is not None:
        names.append(match["quoted"] or match["bare"])
        at = match.end()
        if at == len(formula):
            return names, operators
        if formula[at] not in "~+":
            break
        operators.append(formula[at])
        at += 1
    raise WorkloadError(
        f"purpose = {text!r}: a column name is missing at {formula[at:].strip() or 'the end'!r}; "
        "columns are joined by '+'"
    )
