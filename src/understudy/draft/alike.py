"""Which columns of a schema are alike, so that one question about them is enough."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from understudy.schema import Column
from understudy.schema.toml import column_facts

SHORT = 8
"""Lists up to this length are alike where one holds the other; longer ones, by half their values."""


def kind_of(column: Column) -> str:
    """The type that a schema file says."""
    return column_facts(column)["type"]


def values_of(column: Column) -> tuple[Any, ...]:
    """The values that are listed; () where none are."""
    values = column_facts(column).get("values")
    return values if isinstance(values, tuple) else ()


def similar_lists(columns: Iterable[Column]) -> list[list[Column]]:
    """Columns whose lists nearly agree together, the longest list of each group and of all first."""
    lists = {column.name: frozenset(values_of(column)) for column in columns}
    holders: dict[Any, set[int]] = {}
    """Which groups hold a value: only those can be near."""
    groups: list[list[Column]] = []
    for column in sorted(columns, key=lambda c: -len(lists[c.name])):
        own = lists[column.name]
        candidates = sorted(set().union(*(holders.get(value, ()) for value in own)))
        fitting = [
            at for at in candidates if any(_near(lists[other.name], own) for other in groups[at])
        ]
        at = max(fitting, key=lambda at: len(groups[at]), default=len(groups))
        if at == len(groups):
            groups.append([])
        groups[at].append(column)
        for value in own:
            holders.setdefault(value, set()).add(at)
    return groups


def _near(longer: frozenset[Any], values: frozenset[Any]) -> bool:
    nested = values <= longer and len(longer) <= SHORT
    return nested or 2 * len(longer & values) >= len(longer | values)


def bounded(column: Column) -> bool:
    """Whether its bounds wait for an answer, not only codes beside them."""
    return not {"lower", "upper", "edges"}.isdisjoint(column.read_from_rows)


def limits_of(column: Column) -> tuple[Any, Any]:
    """Its bounds, or the outermost of its edges."""
    facts = column_facts(column)
    edges = facts.get("edges")
    return (edges[0], edges[-1]) if edges else (facts.get("lower"), facts.get("upper"))
