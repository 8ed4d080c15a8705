"""The columns of a table, and those of them that have codes: all that a predicate knows of a schema."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from understudy.columns.base import Column, Modelled, near
from understudy.errors import WorkloadError

__all__ = ["Domain"]

_SHOWN = 12


@dataclass(frozen=True)
class Domain:
    """Columns, in the table's order."""

    columns: tuple[Column, ...]

    @cached_property
    def modelled(self) -> tuple[Modelled, ...]:
        """The columns with codes, in order."""
        return tuple(column for column in self.columns if isinstance(column, Modelled))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of codes of each modelled column."""
        return tuple(column.size for column in self.modelled)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {column.name: at for at, column in enumerate(self.modelled)}

    def position(self, name: str) -> int:
        """The place of a column among the modelled ones; WorkloadError if it is none of them."""
        if name in self._positions:
            return self._positions[name]
        for column in self.columns:
            if column.name == name:
                raise WorkloadError(
                    f"column {name!r} is of type {column.kind!r} and not modelled; "
                    "leave it out, or declare its domain in the schema"
                )
        hint = near(name, self._positions)
        known = ", ".join(list(self._positions)[:_SHOWN])
        raise WorkloadError(f"unknown column {name!r}{hint or '; known are ' + known}")

    def column(self, name: str) -> Modelled:
        """The modelled column of that name; WorkloadError as `position`."""
        return self.modelled[self.position(name)]
