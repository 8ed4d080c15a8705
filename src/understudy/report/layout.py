"""Which columns a report draws, which it shows together, and which it folds away."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from understudy.report.facts import Column

_BARS = 8  # Bars of a column without an order; its other values are in the table below it
_DRAWN, _DRAWN_OF_MANY, _MANY = 12, 6, 24
"""Columns that are drawn at once, and of more than so many; the others are folded."""
_ALIKE = 4  # So many columns of the same few values are one table
_FEW = 6


@dataclass(frozen=True)
class Family:
    """Columns that have the same few values: a row of shares for each."""

    labels: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]
    """None where a column does not have a value."""


@dataclass(frozen=True)
class Layout:
    """The columns of a report."""

    drawn: tuple[Column, ...]
    folded: tuple[Column, ...]
    families: tuple[Family, ...]


def arranged(columns: Sequence[Column]) -> Layout:
    """Columns that are alike together; of the others the first ones drawn, the rest folded."""
    groups = [group for group in _groups(columns) if len(group) >= _ALIKE]
    together = {column.name for group in groups for column in group}
    alone = [column for column in columns if column.name not in together]
    drawn = _DRAWN if len(columns) <= _MANY else _DRAWN_OF_MANY
    return Layout(tuple(alone[:drawn]), tuple(alone[drawn:]), tuple(map(_family, groups)))


def _groups(columns: Sequence[Column]) -> list[list[Column]]:
    """Columns of few values without an order, those with the same values or fewer of them together."""
    few = [c for c in columns if c.lying and c.together == 1 and len(c.labels) <= _FEW]
    groups: list[list[Column]] = []
    for column in sorted(few, key=lambda c: -len(c.labels)):
        held = set(column.labels) - {"OTHER"}
        fitting = [group for group in groups if held <= set(group[0].labels)]
        if fitting:
            fitting[0].append(column)
        else:
            groups.append([column])
    return groups


def _family(group: Sequence[Column]) -> Family:
    labels = group[0].labels
    rows = []
    for column in group:
        shares = dict(zip(column.labels, column.shares, strict=True))
        rows.append((column.name, tuple(shares.get(label) for label in labels)))
    return Family(labels, tuple(rows))


def brief(column: Column) -> Column:
    """The same with its rarest values in one bar, where values have no order and are many."""
    if not column.lying or len(column.labels) <= _BARS:
        return column
    by_share = sorted(range(len(column.labels)), key=lambda i: -column.shares[i])
    kept, rest = sorted(by_share[: _BARS - 1]), by_share[_BARS - 1 :]
    measured = band = None
    if column.measured is not None and column.band is not None:
        measured = (*(column.measured[i] for i in kept), sum(column.measured[i] for i in rest))
        band = (*(column.band[i] for i in kept), math.hypot(*(column.band[i] for i in rest)))
    return replace(
        column,
        labels=(*(column.labels[i] for i in kept), f"{len(rest):,} other values"),
        shares=(*(column.shares[i] for i in kept), sum(column.shares[i] for i in rest)),
        measured=measured,
        band=band,
    )
