"""Degrees of a graph whose edges are rows: how often every value stands at either end.

A row (u, v) counts once for u and once for v, a row (u, u) for nobody: a neighbour moves two counts by
one (four under replace). Sorting within public groups keeps that: one count of a group that grows by
one moves one entry of the sorted group by one, its last among equals, and a second count moves another
entry. `Gaussian` with step 1 and 2 changes for each side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.errors import PrivacyError
from understudy.privacy.cost import Gaussian
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import added
from understudy.privacy.questions.requests import Clique, Counts, require_pair

__all__ = ["Degrees"]


@dataclass(frozen=True, slots=True, eq=False)
class Degrees:
    """Noisy degrees, sorted within `groups` (one number per value), smallest first."""

    pair: Clique
    groups: Counts

    mechanism = staticmethod(added)

    def need(self, facts: Facts) -> Need:
        """Two changes for each side."""
        size = require_pair(self.pair, facts)
        if len(self.groups) != size:
            raise PrivacyError(f"the ends {self.pair} have {size} values, not {len(self.groups)}")
        changes = facts.relation.marginal_l2_squared(2)
        return Need(
            (Gaussian,),
            lambda e: e.step >= 1 and e.changes >= changes,
            f"sorted degrees, of which a neighbour moves {changes} by 1",
            (size,),
        )

    def exact(self, rows: Tables, event: Gaussian) -> Counts:
        """Sorted within groups, group after group."""
        ((cells, counts),) = rows.sparse([self.pair])
        u, v = np.divmod(cells, len(self.groups))
        counts = np.where(u == v, 0, counts)
        degrees = np.zeros(len(self.groups), np.int64)
        np.add.at(degrees, u, counts)
        np.add.at(degrees, v, counts)
        return degrees[np.lexsort((degrees, self.groups))]

    def decode(self, drawn: Counts, facts: Facts) -> Counts:
        """As drawn."""
        return drawn
