"""The privacy unit: who is protected where somebody has several rows.

A `Unit` names the column whose values tell units apart and the number k of rows that one unit may
contribute. Before anything is counted, the engine keeps at most k rows of every unit (`choice` says
which) and drops rows without a unit; every count is of the rows kept.

Why that is enough. The rows kept of a unit depend on the rows of that unit alone, so two tables that
differ in one whole unit differ, after the choice, in at most k rows (`add-remove`), or in k rows that
are each replaced, added or removed while n is a public constant (`replace`; a replacement moves a count
no less than an addition). A mechanism that is ρ-zCDP for one row is k²·ρ-zCDP for such a group of k,
and one that is pure ε for one row is pure k·ε (Bun-Steinke 2016, Proposition 27; Dwork-Roth 2014,
Theorem 2.2). Events keep saying what one *row* moves; `accounting` multiplies. For counts this is the
exact sensitivity: k rows may be alike, and then move one cell by k.

Where a statement per unit is wanted, its rows count equally and together as one (`equal`): of s rows
each weighs ⌊M / s⌋, M a public number that many s divide. That is a unit of at most M rows, each of
the s repeated ⌊M / s⌋ times. Shares are taken of M rows a unit: the noise is that of one row, not of k.

Privacy loss distributions are used for groups as well where an event's dominating pair is known for k
rows (`privacy.pairs`); samples of rows have none then.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from understudy.errors import InputError

ROW = "row"
"""What a schema file says where one row is protected, as an explicit choice."""
OPEN = "?"
"""What a draft says where people have to decide it; no release accepts it."""
EQUAL = "equal"
"""What a schema file says where the rows of a unit weigh as much as one row, together."""

MOST_EQUAL = 1_000
MOST_WEIGHT = 27_720
MOST_ROWS = 1_000_000
"""A bound above this would leave nothing but noise, and is a mistake."""


def weight_of(most: int, *, ordered: bool) -> int:
    """M: the least weight that can be divided evenly for up to `most` rows, or a large one.

    Without an order it is divided among pairs of two different rows.
    """
    divisors = (s if ordered or s == 1 else s * (s - 1) for s in range(1, most + 1))
    least = 1
    for divisor in divisors:
        least = math.lcm(least, divisor)
        if least > MOST_WEIGHT:
            return MOST_WEIGHT
    return least


@dataclass(frozen=True, slots=True)
class Unit:
    """Whose privacy: one value of `column`, with at most `max_rows` of its rows.

    The rows that count are the first `kept` of a unit in the order of
    md5("{salt}|{c0},{c1},...|{i}|{unit}"): the codes of the row, its index among identical rows
    of the unit (from 1), and the unit's text. That is a random choice, the same whenever and wherever
    the rows are counted, fixed by the public `salt` before anything is read, and blind to the order of
    rows and to all other units.
    """

    column: str
    max_rows: int
    salt: str = ""
    family: str = ""
    """The table of children, where the unit is a family and its rows are weighted views of it
    (`understudy.schema.family`)."""
    equal: int = 0
    """How many of its rows count, where they share the weight `max_rows` equally; 0 where each row
    counts one. Make it with `sharing`."""

    @classmethod
    def sharing(cls, column: str, rows: int, salt: str = "") -> Unit:
        """A unit of which at most so many rows count, equally and together as one."""
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MOST_EQUAL:
            raise InputError(
                f'max_rows = {rows!r} must be a whole number from 1 to {MOST_EQUAL:,} with weight = "'
                f'{EQUAL}": at most so many rows of one {column!r} count'
            )
        return cls(column, weight_of(rows, ordered=True), salt, equal=rows)

    @property
    def kept(self) -> int:
        """How many of its rows count."""
        return self.equal or self.max_rows

    @property
    def weight(self) -> int:
        """What all its rows weigh together, where that is a public number; 1 where each counts one."""
        return self.max_rows if self.family or self.equal else 1

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise InputError(
                f"unit = {self.column!r} must be the name of the column that tells people apart, "
                f'such as unit = "patient_id"'
            )
        k = self.max_rows
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_ROWS:
            raise InputError(
                f"max_rows = {k!r} must be a whole number from 1 to {MOST_ROWS:,}: at most so many "
                f"rows of one {self.column!r} count; noise grows with it"
            )
        if not isinstance(self.salt, str) or not self.salt.isprintable() or "|" in self.salt:
            raise InputError(
                f"unit_salt = {self.salt!r} must be a printable text without '|'; it may be left out"
            )

    def to_json(self) -> dict[str, Any]:
        """For the ledger and the bundle."""
        body = {"column": self.column, "max_rows": self.max_rows, "salt": self.salt}
        if self.equal:
            body["equal"] = self.equal
        return {**body, "family": self.family} if self.family else body

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Unit:
        """Read what `to_json` wrote."""
        made = cls(
            body["column"],
            body["max_rows"],
            body["salt"],
            body.get("family", ""),
            body.get("equal", 0),
        )
        if made.equal and made != cls.sharing(made.column, made.equal, made.salt):
            raise InputError(
                f"a unit of {made.equal} rows that share {made.max_rows} evenly is none"
            )
        return made

    def __str__(self) -> str:
        if self.family:
            return f"{self.column} with all its {self.family}"
        if self.equal:
            return f"{self.column} (at most {self.equal} of its rows count, together as one)"
        return f"{self.column} (at most {self.max_rows} of its rows count)"


def things(unit: Unit | None) -> str:
    """What shares are shares of, in a word."""
    if unit is None or not (unit.family or unit.equal):
        return "rows"
    return "families" if unit.family else "units"


def scope(unit: Unit | None, *, brief: bool = False) -> str | None:
    """What all figures of a release are about; None where that is every row, each as one."""
    if unit is None:
        return None
    if unit.family:
        return f"families: each counts once, and its rows of {unit.family} share that equally"
    if unit.equal:
        told = f"every {unit.column} as one, by at most {unit.equal:,} of its rows"
        return told + ("" if brief else ", so that those with many rows count no more than others")
    rows = "1 row" if unit.max_rows == 1 else f"{unit.max_rows:,} rows"
    why = ": further ones are left out, so that those with many count less than in the whole table"
    return f"at most {rows} of each {unit.column}{'' if brief else why}"


def group(unit: Unit | None) -> int:
    """How many rows a neighbour may differ in."""
    return 1 if unit is None else unit.max_rows
