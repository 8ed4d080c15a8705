"""Private facts: the domains of open columns, found inside the ε before the release is played.

(1) From public facts alone, a part of ρ is set aside for every open column, a part of δ for those whose
values are discovered, and the rest becomes one zCDP filter; this outer plan is reserved. (2) The open
columns are measured: values by `Values`, quantiles by fine one-way tables, shapes by one measurement
for each level of the ladder and one of how round values are; the cells of a level follow from the
released counts before it. (3) The whole release is planned anew so that its ρ fits the zCDP filter, and
that plan is written to the ledger (`refine`) before anything of it is drawn.

Guarantee: (ε, δ) for the whole. ρ adds up although later levels and the later plan depend on what was
released before (adaptive composition of zCDP with a filter, Feldman-Zrnic 2021); δ is the sum of the
discoveries' own and of the conversion. A level is one marginal table for each column: a row lies in
exactly one of its cells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from typing import Any, TypeVar

import numpy as np

from understudy.columns.ladder import ROUNDNESS, SHARES, Measured, finer, first
from understudy.columns.roundness import Roundness
from understudy.columns.unmodelled import Undeclared
from understudy.errors import InputError
from understudy.privacy import planning
from understudy.privacy.budget import Budget, round_down
from understudy.privacy.cost import Charge, Gaussian, Plan, Zcdp
from understudy.privacy.exact import ExactCounts
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Marginals, Values
from understudy.privacy.relation import Relation
from understudy.progress import Progress, Watch, silent
from understudy.schema import (
    Category,
    Column,
    Identifier,
    Modelled,
    Schema,
    UndeclaredBins,
    UndeclaredCategory,
    UndeclaredShape,
)
from understudy.source import Source
from understudy.source.base import Bindable, check_header
from understudy.source.values import Holders
from understudy.units import group

Open = TypeVar("Open", bound=Undeclared)

REST = "everything else"
QUANTILES = "quantiles"
LEVELS = tuple(f"shapes, level {at + 1} of {len(SHARES)}" for at in range(len(SHARES)))
ROUND = "round values"

# Of ρ, for each open column and for all of them together at most; of δ, for all discoveries.
_SHARE = Fraction(1, 25)
_SHAPE = Fraction(1, 20)
_MOST = Fraction(1, 5)
_DELTA = Fraction(1, 10)


def purpose(column: str, length: int = 0) -> str:
    """The name of the charge for a column's values, or for their first characters."""
    return f"{length}-character prefixes of {column}" if length else f"values of {column}"


def outer_rho(schema: Schema, budget: Budget) -> Fraction:
    """ρ of a whole release with open columns: what (ε, δ) allows, less the δ of discoveries."""
    total = planning.rho_for(Budget(budget.epsilon, budget.delta * (1 - _shown(schema))))
    if total <= 0:
        raise InputError(f"epsilon = {float(budget.epsilon):g} is too small to plan with")
    # Rounding of the conversion; a float, because it is written down.
    return Fraction(round_down(total * (1 - Fraction(1, 10**9))))


def outer_plan(schema: Schema, total: Fraction, delta: Fraction, relation: Relation) -> Plan:
    """The charges of the open columns, and the zCDP filter that is left; ρ of one row, as ever."""
    listed, cut = _of(schema, UndeclaredCategory), _of(schema, UndeclaredBins)
    shaped = _of(schema, UndeclaredShape)
    asked = _SHARE * (len(listed) + len(cut)) + _SHAPE * len(shaped)
    least = min(Fraction(1), _MOST / asked)
    share, shape = total * _SHARE * least, total * _SHAPE * least
    rows, sides = group(schema.unit), relation.multiplicity
    charges = [
        Charge(
            purpose(column.name, length),
            planning.discovery(
                share / len(column.levels),
                float(delta * _shown(schema) / len(listed) / len(column.levels)) * (1 - 1e-9),
                values=rows,
                sides=sides,
            ),
        )
        for column in listed
        for length in column.levels
    ]
    spent = share * len(listed)
    tables = [(QUANTILES, share, len(cut))]
    parts = zip((*LEVELS, ROUND), (*SHARES, ROUNDNESS), strict=True)
    for name, part in parts:
        number = len(_rounds(shaped)) if name == ROUND else len(shaped)
        tables.append((name, shape * Fraction(str(part)), number))
    for name, each, number in tables:
        if number:
            event = planning.tables(each * number / rows**2, relation, number)
            charges.append(Charge(name, event))
            spent += each * number
    return Plan((*charges, Charge(REST, Zcdp((total - spent) / rows**2))))  # type: ignore[arg-type]


def expected_seconds(schema: Schema, rows: int) -> float:
    """CPU seconds that finding the open columns of so many rows takes (docs/benchmarks.md).

    Every length of prefixes is a pass over the rows, and costs more where units hold the values; so is
    every level of the shapes and quantiles, which are cheaper for each column.
    """
    listed = sum(len(column.levels) for column in _of(schema, UndeclaredCategory))
    counted = len(_of(schema, UndeclaredBins)) + 6 * len(_of(schema, UndeclaredShape))
    return rows * ((1e-6 if schema.unit is None else 3e-6) * listed + 3e-7 * counted)


def _of(schema: Schema, kind: type[Open]) -> list[Open]:
    return [column for column in schema.undeclared if isinstance(column, kind)]


def _shown(schema: Schema) -> Fraction:
    """Of δ, what discoveries get."""
    listed = any(isinstance(column, UndeclaredCategory) for column in schema.undeclared)
    return _DELTA if listed else Fraction(0)


@dataclass(frozen=True, eq=False)
class Look:
    """What is asked about before the schema is closed."""

    holders: Holders | None
    fine: ExactCounts
    """Open columns with the first cells that they are counted in, in the order of the table."""
    round: ExactCounts | None
    """Those that have round values, by how round they are."""
    bind: Callable[[Mapping[str, Column]], ExactCounts]
    """Other cells of open columns; only columns that are named are counted."""


class _Nothing:
    """No column to count; the gate needs something to hold."""

    shape = ()

    def __init__(self, schema: Schema) -> None:
        self.unit = schema.unit


def look(source: Bindable, schema: Schema) -> Look:
    """Bind the source to the open columns; what cannot be found there is refused before spending."""
    check_header(source.columns, schema, source.describe())
    # Rules and places speak of columns that are not there; what is not counted is not looked at, and
    # what is computed need not be in the table.
    read = tuple(column for column in schema.columns if column.name not in schema.computed)
    bare = replace(schema, columns=read, rules=(), geography=(), drop_other_columns=True)
    named = (column for column in read if not isinstance(column, Identifier))
    others = {column.name: Identifier(column.name) for column in named}

    def bind(columns: Mapping[str, Column]) -> ExactCounts:
        return source.bind(bare.resolved({**others, **columns}))

    cells: dict[str, Column] = {c.name: c.fine() for c in _of(schema, UndeclaredBins)}
    shaped = _of(schema, UndeclaredShape)
    cells |= {column.name: column.level(first(column.scale)) for column in shaped}
    round_ = bind(rounded) if (rounded := _rounds(shaped)) else None
    fine: Any = bind(cells) if cells else _Nothing(schema)
    listed = [column.name for column in _of(schema, UndeclaredCategory)]
    if not listed:
        return Look(None, fine, round_, bind)
    if not isinstance(source, Source):
        raise InputError(
            f'column {listed[0]!r}: values = "discover" asks for values, and {source.describe()} '
            "hands back counts alone: list the values in the schema"
        )
    return Look(Holders(source, schema), fine, round_, bind)


def _discovered(column: UndeclaredCategory, holders: Holders, gate: Gate) -> Category:
    """Ask level after level: what earlier ones have found is public, and no longer asked about."""
    levels: list[tuple[str, ...]] = []
    for length in column.levels:
        held = holders.at(column.level(levels)) if levels else holders
        texts = gate.ask(
            purpose(column.name, length), Values(held, column.name, column.most(levels))
        )
        levels.append(texts if length else column.kept(texts))
    return column.found(*levels)


def found(
    schema: Schema, looked: Look, open_gate: Callable[[Any], Gate], progress: Watch = silent
) -> Schema:
    """Ask for every open column, in order, and close the schema; the number of steps is public."""
    listed = _of(schema, UndeclaredCategory)
    cut, shaped = _of(schema, UndeclaredBins), _of(schema, UndeclaredShape)
    total, steps = len(listed) + bool(cut) + bool(shaped) * len(LEVELS), count()

    def tell() -> None:
        progress(Progress("finding domains", next(steps), total))

    gate = open_gate(looked.fine)
    closed: dict[str, Any] = {}
    for column in listed:
        tell()
        assert looked.holders is not None
        closed[column.name] = _discovered(column, looked.holders, gate)
    counted = [c for c in schema.undeclared if not isinstance(c, UndeclaredCategory)]
    if cut:
        tell()
        tables = gate.ask(QUANTILES, Marginals([(counted.index(column),) for column in cut]))
        for column, counts in zip(cut, tables, strict=True):
            closed[column.name] = column.found(np.asarray(counts))
    if shaped:
        tell()
        places = [(counted.index(column),) for column in shaped]
        first_counts = gate.ask(LEVELS[0], Marginals(places))
        closed |= _shapes(schema, shaped, looked, open_gate, first_counts, tell)
    return schema.resolved(closed)


def _shapes(
    schema: Schema,
    shaped: Sequence[UndeclaredShape],
    looked: Look,
    open_gate: Callable[[Any], Gate],
    counts: Sequence[Any],
    tell: Callable[[], None],
) -> dict[str, Modelled]:
    """The columns whose shape is found, from the released counts of their first level on.

    Every later level has cells that follow from released counts alone, and is one question about all
    columns; so is how round values are.
    """
    gate = open_gate(looked.fine)
    edges = [first(column.scale) for column in shaped]
    history: list[list[Measured]] = [[] for _ in shaped]
    for at, level in enumerate(LEVELS):
        if at:
            tell()
            edges = [finer(c.scale, past) for c, past in zip(shaped, history, strict=True)]
        cells = {c.name: c.level(own) for c, own in zip(shaped, edges, strict=True)}
        if at:
            gate = open_gate(looked.bind(cells))
            counts = gate.ask(level, Marginals([(place,) for place in range(len(shaped))]))
        parts = zip(history, edges, cells.values(), counts, strict=True)
        for past, own, cut, each in parts:
            held = cut.by_interval(np.asarray(each))
            past.append(Measured(own, held, _sigma(gate, level)))
    rounded: dict[str, Measured] = {}
    if looked.round is not None:
        gate, columns = open_gate(looked.round), _rounds(shaped)
        tables = gate.ask(ROUND, Marginals([(place,) for place in range(len(columns))]))
        for (name, column), each in zip(columns.items(), tables, strict=True):
            held = column.by_interval(np.asarray(each))
            rounded[name] = Measured(column.over.edges or (), held, _sigma(gate, ROUND))
    return {
        column.name: column.found(past, rounded.get(column.name), schema.cuts(column.name))
        for column, past in zip(shaped, history, strict=True)
    }


def _rounds(shaped: Sequence[UndeclaredShape]) -> dict[str, Roundness]:
    found = {column.name: column.rounds for column in shaped}
    return {name: column for name, column in found.items() if column is not None}


def _sigma(gate: Gate, name: str) -> float:
    event = gate.plan.event(name, Gaussian)
    return event.sigma
