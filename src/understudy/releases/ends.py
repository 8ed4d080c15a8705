"""Ends of columns that a release finds privately, because no bound was declared.

The ends come from noisy counts. Rows beyond them count in the first or the last cell, and get values of
it: means and sums leave out how far beyond they lie, and conditions beyond hold for nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from understudy.columns.base import some
from understudy.columns.binned import Binned
from understudy.schema import Schema, UndeclaredShape
from understudy.wording import point

if TYPE_CHECKING:
    from understudy.releases.release import Release


def sought(schema: Schema) -> dict[str, tuple[bool, bool]]:
    """Columns of which the least value, or the largest one, is to be found."""
    shaped = (column for column in schema.undeclared if isinstance(column, UndeclaredShape))
    return {column.name: column.open_ends for column in shaped if any(column.open_ends)}


def sought_in_words(schema: Schema) -> str | None:
    """What will become of these columns, and what is better; None where there is none."""
    names = list(sought(schema))
    if not names:
        return None
    return (
        f"of {some(names)} will be found privately: rare values beyond them count as the nearest, also "
        "in means and sums. Public bounds in the schema, such as the limits of a form, are better"
    )


def found_in_words(release: Release) -> str | None:
    """Where these columns end in a release; None where there is none."""
    told: list[str] = []
    for name, (low, high) in sought(release.declared).items():
        column = release.schema.column(name)
        if isinstance(column, Binned) and column.edges is not None:
            least, most = map(point, (column.edges[0], column.edges[-1]))
            span = f"{least} to {most}"
            if not low or not high:
                span = f"from {least}" if low else f"up to {most}"
            told.append(f"{name} ({span})")
    if not told:
        return None
    return (
        f"of {some(told)} were found privately: values beyond them count as the nearest. Public bounds "
        "in the schema (lower, upper) avoid that"
    )
