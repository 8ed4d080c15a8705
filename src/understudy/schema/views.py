"""What is true of every view of a family, whatever was measured.

Who has a sibling follows from the number of children, and from the place where there is an order. A
model that is fitted to noisy tables does not know that, nor that all columns of a sibling are there or
none. Records that are made to agree before they are weighed let what is measured about children speak
of their siblings as well. `understudy.schema.family` says what views are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Bools

if TYPE_CHECKING:
    from understudy.schema.family import Layout

POSITIONS = ("only", "first", "middle", "last")
_ONLY, _FIRST, _MIDDLE, _LAST = range(len(POSITIONS))

Codes = NDArray[Any]


def positions(place: Codes, sizes: Codes) -> Codes:
    """The code of where a child stands among so many."""
    inner = np.where(place == 0, _FIRST, np.where(place == sizes - 1, _LAST, _MIDDLE))
    return np.where(sizes == 1, _ONLY, inner)


def coherent(codes: Sequence[Codes], layout: Layout, shape: Sequence[int]) -> list[Codes]:
    """The records with numbers of children kept, and all else in agreement with them.

    Without children there is neither a child nor a sibling. An only child is the only one; of two there
    is no middle. A sibling is there exactly if there are more children, with an order unless the child
    is the first. Values that are missing are those of other records, for a sibling of records with the
    same value of the child where there are some. Records that agree stay as they are; deterministic.
    """
    moved = [np.asarray(column) for column in codes]
    if not moved[0].size:
        return moved
    sizes = moved[layout.size].astype(np.int64) + (not layout.childless)
    childless = sizes == 0
    for i, values in zip(layout.child, layout.values, strict=True):
        if shape[i] > values:
            moved[i] = _there(moved[i], ~childless, shape[i] - 1, moved[layout.size])
        moved[i] = _absent(moved[i], childless, shape[i] - 1)
    alone = sizes < 2
    if layout.pos is not None:
        place = moved[layout.pos]
        turn = np.arange(place.size)
        wrong = (sizes > 1) & ((place == _ONLY) | (place >= len(POSITIONS)))
        place = np.where(wrong, _FIRST + turn % 3, place)
        place = np.where(
            (sizes == 2) & (place == _MIDDLE), np.where(turn % 2, _FIRST, _LAST), place
        )
        place = np.where(sizes == 1, _ONLY, np.where(childless, len(POSITIONS), place))
        moved[layout.pos] = place.astype(moved[layout.pos].dtype)
        alone = alone | (place == _FIRST)
    for i, twin, values in zip(layout.child, layout.sibling, layout.values, strict=True):
        if twin is not None:
            if shape[twin] > values:
                moved[twin] = _there(moved[twin], ~alone, shape[twin] - 1, moved[i])
            moved[twin] = _absent(moved[twin], alone, shape[twin] - 1)
    return moved


def _absent(column: Codes, where: Bools, nothing: int) -> Codes:
    return np.where(where, nothing, column).astype(column.dtype) if where.any() else column


def _there(column: Codes, where: Bools, nothing: int, given: Codes) -> Codes:
    """`nothing` replaced in some places by what other records with this value of `given` have."""
    missing = np.flatnonzero(where & (column == nothing))
    known = np.flatnonzero(column != nothing)
    if not missing.size:
        return column
    filled = column.copy()
    if not known.size:
        filled[missing] = 0
        return filled
    known = known[np.argsort(given[known], kind="stable")]
    first, end = (np.searchsorted(given[known], given[missing], side) for side in ("left", "right"))
    # A step that shares no factor with most numbers of records goes all round them.
    step = np.arange(missing.size) * 7_919 % np.maximum(end - first, 1)
    filled[missing] = column[known[np.minimum(first + step, known.size - 1)]]
    return filled
