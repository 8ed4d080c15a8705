"""k independent picks by the exponential mechanism over all queries of some classes.

Score of a query: c − ref, where c counts the rows that satisfy it and ref is a public real number,
rounded to the grid 1/65536; of its complement the negative; unsigned |c − ref|. A query is a 0/1
function of a row, so every score moves by at most 1 under both relations, with rounding by
`SCORE_SENSITIVITY` units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.errors import PrivacyError
from understudy.privacy.buckets import MOST_NOISE, MOST_ROWS, SCORE_SENSITIVITY, UNIT, clipped
from understudy.privacy.cost import Selection
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import independent
from understudy.privacy.products import ProductQueries
from understudy.privacy.questions.requests import Counts, Table, require_classes, require_plain

__all__ = ["Picked", "PickedQueries"]


@dataclass(frozen=True, slots=True)
class Picked:
    """One query of a class: which class, the number of a literal per column, and the side."""

    products: int
    index: tuple[int, ...]
    sign: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class PickedQueries:
    """k queries, with their sides if `signed`."""

    classes: Sequence[ProductQueries]
    references: Sequence[Table]
    signed: bool = True

    mechanism = staticmethod(independent)

    def need(self, facts: Facts) -> Need:
        """One row, and what rounding adds."""
        require_classes(self.classes, facts)
        require_plain(self.references, *self.references)
        if len(self.references) != len(self.classes):
            raise PrivacyError(f"{len(self.classes)} classes need as many references")
        for each, reference in zip(self.classes, self.references, strict=True):
            array = np.asarray(reference, dtype=np.float64)
            if array.shape != each.shape:
                raise PrivacyError(
                    f"the reference of the queries on {each.clique} has shape {array.shape}, "
                    f"not {each.shape}"
                )
            if not np.isfinite(array).all() or np.abs(array).max() > MOST_ROWS:
                raise PrivacyError(
                    f"the reference of the queries on {each.clique} is not finite or too large"
                )
        queries = sum(each.size for each in self.classes)
        return Need(
            (Selection,),
            lambda e: e.sensitivity >= SCORE_SENSITIVITY and e.scale <= MOST_NOISE,
            f"query scores, which move by {SCORE_SENSITIVITY} units",
            (queries * (1 + self.signed),),
        )

    def exact(self, rows: Tables, event: Selection) -> Counts:
        """All queries, then all of them from the other side."""
        flat = np.concatenate(
            [np.asarray(each, np.float64).reshape(-1) for each in self.references]
        )
        difference = UNIT * clipped(rows.answers(self.classes)) - np.rint(UNIT * flat).astype(
            np.int64
        )
        return np.concatenate([difference, -difference]) if self.signed else np.abs(difference)

    def decode(self, drawn: Counts, facts: Facts) -> tuple[Picked, ...]:
        """Queries by the numbers of their literals."""
        starts = np.cumsum([0, *(each.size for each in self.classes)])
        found: list[Picked] = []
        for number in drawn.tolist():
            side, place = divmod(number, int(starts[-1]))
            at = int(np.searchsorted(starts, place, side="right")) - 1
            index = np.unravel_index(place - int(starts[at]), self.classes[at].shape)
            sign = (1 - 2 * side) if self.signed else 0
            found.append(Picked(at, tuple(int(i) for i in index), sign))
        return tuple(found)
