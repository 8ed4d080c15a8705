"""Private facts: the domains of open columns, found inside the ε before the release is played.

The order. (1) From public facts alone, a part of ρ is set aside for every open column, a part of δ for
those whose values are discovered, and the rest becomes one zCDP filter; this outer plan is reserved.
(2) The open columns are measured: values by `Values`, quantiles by a Gaussian measurement of
fine one-way tables. (3) With the schema that follows, the whole release is planned anew so that its ρ
fits the zCDP filter, and that plan is written to the ledger (`refine`) before anything of it is drawn.

Guarantee: (ε, δ) for the whole. ρ adds up although the later plan depends on what was released before
(adaptive composition of zCDP with a filter, Feldman-Zrnic 2021); δ is the sum of the discoveries' own
and of the conversion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from understudy.errors import InputError
from understudy.privacy import planning
from understudy.privacy.budget import Budget, round_down
from understudy.privacy.cost import Charge, Discovery, Gaussian, Plan, Zcdp
from understudy.privacy.exact import ExactCounts
from understudy.privacy.gate import Gate
from understudy.privacy.questions import Marginals, Values
from understudy.privacy.relation import Relation
from understudy.schema import (
    Category,
    Identifier,
    Modelled,
    Schema,
    UndeclaredBins,
    UndeclaredCategory,
)
from understudy.source import Source
from understudy.source.base import Bindable, check_header
from understudy.source.values import HeldAt, Holders
from understudy.units import group

__all__ = ["QUANTILES", "REST", "Look", "found", "look", "outer_plan", "outer_rho", "purpose"]

REST = "everything else"
QUANTILES = "quantiles"

# Of ρ, for each open column and for all of them together at most; of δ, for all discoveries.
_SHARE = Fraction(1, 25)
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
    listed = [column for column in schema.undeclared if isinstance(column, UndeclaredCategory)]
    cut = [column for column in schema.undeclared if isinstance(column, UndeclaredBins)]
    shown = delta * _shown(schema)
    share = min(_SHARE, _MOST / len(schema.undeclared))
    rows, sides = group(schema.unit), relation.multiplicity
    charges = [
        Charge(
            purpose(column.name, length),
            Discovery.within(
                total * share / len(column.levels),
                float(shown / len(listed) / len(column.levels)) * (1 - 1e-9),
                values=rows,
                sides=sides,
            ),
        )
        for column in listed
        for length in column.levels
    ]
    if cut:
        rho = total * share * len(cut) / rows**2
        charges.append(Charge(QUANTILES, Gaussian.of_tables(rho, relation, len(cut))))
    left = total * (1 - share * len(schema.undeclared)) / rows**2
    return Plan((*charges, Charge(REST, Zcdp(left))))  # type: ignore[arg-type]


def _shown(schema: Schema) -> Fraction:
    """Of δ, what discoveries get."""
    listed = any(isinstance(column, UndeclaredCategory) for column in schema.undeclared)
    return _DELTA if listed else Fraction(0)


@dataclass(frozen=True, eq=False)
class Look:
    """What is asked about before the schema is closed."""

    holders: Holders | None
    fine: ExactCounts


class _Nothing:
    """No column to count; the gate needs something to hold."""

    shape = ()

    def __init__(self, schema: Schema) -> None:
        self.unit = schema.unit


def look(source: Bindable, schema: Schema) -> Look:
    """Bind the source to the open columns; what cannot be found there is refused before spending."""
    check_header(source.columns, schema, source.describe())
    cut = {c.name: c.fine() for c in schema.undeclared if isinstance(c, UndeclaredBins)}
    # Only the columns to be cut are counted; the others are there, and not looked at.
    others = {
        column.name: Identifier(column.name)
        for column in schema.columns
        if isinstance(column, Modelled | UndeclaredCategory)
    }
    fine: Any = _Nothing(schema)
    if cut:
        bare = replace(schema, rules=(), geography=())  # they speak of columns that are not there
        fine = source.bind(bare.resolved({**others, **cut}))
    listed = [column.name for column in schema.undeclared if isinstance(column, UndeclaredCategory)]
    if not listed:
        return Look(None, fine)
    if not isinstance(source, Source):
        raise InputError(
            f'column {listed[0]!r}: values = "discover" asks for values, and {source.describe()} '
            "hands back counts alone: list the values in the schema"
        )
    return Look(Holders(source, schema), fine)


def _discovered(column: UndeclaredCategory, holders: Holders, gate: Gate) -> Category:
    """Ask level after level: what earlier ones have found is public, and no longer asked about."""
    levels: list[tuple[str, ...]] = []
    for length in column.levels:
        held = HeldAt(holders, column.level(levels)) if levels else holders
        texts = gate.ask(
            purpose(column.name, length), Values(held, column.name, column.most(levels))
        )
        levels.append(texts if length else column.kept(texts))
    return column.found(*levels)


def found(schema: Schema, looked: Look, open_gate: Callable[[Any], Gate]) -> Schema:
    """Ask for every open column, in order, and close the schema."""
    gate = open_gate(looked.fine)
    closed: dict[str, Any] = {}
    cut = [column for column in schema.undeclared if isinstance(column, UndeclaredBins)]
    for column in schema.undeclared:
        if isinstance(column, UndeclaredCategory):
            assert looked.holders is not None
            closed[column.name] = _discovered(column, looked.holders, gate)
    if cut:
        cliques = [(at,) for at in range(len(cut))]
        tables = gate.ask(QUANTILES, Marginals(cliques))
        for column, counts in zip(cut, tables, strict=True):
            closed[column.name] = column.found(np.asarray(counts))
    return schema.resolved(closed)
