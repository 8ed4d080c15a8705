"""Neighbouring relations and the sensitivities that follow from them (counts, not fractions).

`ADD_REMOVE`: D' is D plus or minus one row. With a declared public n this is the zero-out relation:
the row may be missing while every denominator keeps the public n.
`REPLACE`: D' is D with one row exchanged for another; n is public.

A release under one relation says nothing under the other: a replacement is a removal and an
addition, so ε doubles and ρ quadruples. Accounts that mix them raise `RelationError`.
"""

from __future__ import annotations

from enum import StrEnum

from understudy.units import Unit, things


class Relation(StrEnum):
    """Which two tables must be hard to tell apart."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"

    @property
    def multiplicity(self) -> int:
        """Cells of one marginal table of counts that a neighbour moves, each by one."""
        return 1 if self is Relation.ADD_REMOVE else 2

    def marginal_l1(self, tables: int = 1) -> int:
        """L1 sensitivity of `tables` stacked marginal tables of counts: J or 2J."""
        return tables * self.multiplicity

    def marginal_l2_squared(self, tables: int = 1) -> int:
        """Squared L2 sensitivity of `tables` stacked marginal tables of counts: J or 2J."""
        return tables * self.multiplicity

    def total_variation_steps(self, *, rows_public: bool) -> int:
        """Sensitivity of Σ_cells |M·c − n·ĉ|, in units of M, for fixed synthetic counts ĉ of M rows.

        A row that enters with public n moves one cell by M: 1. A row that enters with private n
        also moves n, hence every cell by ĉ: (M − ĉ_x) + Σ_{others} ĉ ≤ 2M: 2. A replacement moves
        two cells by M each: 2.
        """
        return 1 if self is Relation.ADD_REMOVE and rows_public else 2

    def describe(self, *, rows_public: int | None, unit: Unit | None = None) -> str:
        """The relation in words."""
        change = "replaced by another" if self is Relation.REPLACE else "added or removed"
        who = "row" if unit is None else str(unit)
        if rows_public is None:
            return f"one {who} {change}; the number of {things(unit)} is private"
        if self is Relation.REPLACE and unit is None:
            return f"one row {change}; the number of rows ({rows_public}) is public"
        # Families weigh as much as so many rows, and so do units whose rows share a weight.
        number = rows_public if unit is None else rows_public // unit.weight
        return (
            f"one {who} {change}; shares are taken of the public number {number}, "
            f"which does not move"
        )
