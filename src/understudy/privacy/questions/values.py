"""The values of an undeclared column that enough units hold.

Count of a value: the units (rows, where there are none) that hold it, each of which counts for at most
k of its values. A neighbour moves k counts by one, 2k under replace. See `Discovery` for why values of
one unit alone stay hidden; which of the shown ones come first and how many are kept is post-processing
of the noisy counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from understudy.errors import PrivacyError
from understudy.privacy.cost import Discovery
from understudy.privacy.exact import HeldValues, Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import Held, found
from understudy.units import group


@dataclass(frozen=True, slots=True)
class Values:
    """At most `most` values of a column, the commonest first."""

    held: HeldValues
    column: str
    most: int

    mechanism = staticmethod(found)

    def need(self, facts: Facts) -> Need:
        """k values of a unit, on each side."""
        if self.held.unit != facts.unit:
            raise PrivacyError("the values are held by other units than the account is kept for")
        if self.most < 1:
            raise PrivacyError(f"most = {self.most} must be at least 1")
        values, sides = group(facts.unit), facts.relation.multiplicity
        return Need(
            (Discovery,),
            lambda e: e.values >= values and e.sides >= sides,
            f"the values of {self.column!r}, of which a neighbour holds {values} on {sides} sides",
            None,
        )

    def exact(self, rows: Tables, event: Discovery) -> Held:
        """Every value that somebody holds."""
        return Held(*rows.holders(self.held, self.column))

    def decode(self, drawn: list[tuple[str, int]], facts: Facts) -> tuple[str, ...]:
        """The texts."""
        return tuple(text for text, _ in drawn[: self.most])
