"""A question to begin with, chosen from a release so that its answer says something."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from understudy.columns.binned import Binned
from understudy.constraints.tokens import literal, named
from understudy.errors import UnderstudyError
from understudy.releases.answer import answer
from understudy.schema import Boolean, Category, Modelled

if TYPE_CHECKING:
    from understudy.releases import Release

_COLUMNS = 6
_ROWS = 2_000
_GOOD = 0.5  # The width of a certified interval, over the share it is about


def example(release: Release) -> str | None:
    """A condition whose certified interval is at most as wide as the share that it is about.

    Two columns where that leaves a good interval, one otherwise; None where no condition that was
    tried has a useful one. Made of released rows: free, and as private as they are.
    """
    rows = release.rows.slice(0, _ROWS)
    columns = sorted(release.schema.modelled, key=lambda c: named(c.name) != c.name)[:_COLUMNS]
    parts = [part for column in columns if (part := _part(column, rows)) is not None]
    pairs = sorted(_rated(release, rows, [" and ".join(two) for two in combinations(parts, 2)]))
    if pairs and pairs[0][0] <= _GOOD:
        return pairs[0][1]
    for found in (sorted(_rated(release, rows, parts)), pairs):
        if found and found[0][0] <= 1.0:
            return found[0][1]
    return None


def _rated(release: Release, rows: pa.Table, asked: Sequence[str]) -> Iterator[tuple[float, str]]:
    """Conditions that are certified, each with how wide its interval is for its share."""
    for text in asked:
        try:
            found = answer(release.schema, release.workload, rows, release.certificate, text)
        except UnderstudyError:  # a value or a name that the language cannot write
            continue
        share = min(found.estimate, 1 - found.estimate)
        if found.low is not None and found.high is not None and share > 0:
            yield (found.high - found.low) / share, text


def _part(column: Modelled, rows: pa.Table) -> str | None:
    """A condition on one column that about half of the rows, or its commonest value, satisfy."""
    name = named(column.name)
    held = np.bincount(column.encode(rows[column.name]), minlength=column.size)
    if isinstance(column, Boolean):
        return name
    if isinstance(column, Category):
        value = column.values[int(held[: len(column.values)].argmax())]
        return f"{name} = {literal(value)}"
    if isinstance(column, Binned):
        cells = len(column.grid)
        above = held[:cells][::-1].cumsum()[::-1]
        from_ = min(int(np.searchsorted(-above, -above[0] / 2)), cells - 1)
        if not from_:
            return None  # all rows with a value
        least = column.labels()[from_].partition("..")[0]
        return f"{name} >= {least if column.kind in ('integer', 'number') else literal(least)}"
    return None
