"""Degrees and triangles of a graph whose edges are rows (u, v), with discrete Gaussian noise.

* **Degrees**: a row counts once for u and once for v, a row (u, u) for nobody: a neighbour moves two
  counts by one (four under replace). Sorting within public groups keeps that: one count of a group that
  grows by one moves one entry of the sorted group by one, its last among equals, and a second count
  moves another entry. Step 1 and 2 changes for each side.
* **Triangles**: two of n values are linked by any row that names both, in either order and however
  often. A row that comes adds one link at most, which closes at most one triangle with each of the
  other n − 2 values; one that goes opens as many. So their number moves by n − 2 at most, under replace
  too, where one of these is taken from the other: step n − 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy._types import Clique, Whole
from understudy.errors import PrivacyError
from understudy.privacy.cost import Gaussian
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.questions.requests import Noised, NoisedOne, gaussian, require_cliques


def _nodes(pair: Clique, facts: Facts) -> int:
    """Two columns of as many values: the ends of an edge. Their number of values."""
    require_cliques([pair], facts)
    sizes = [facts.shape[column] for column in pair]
    if len(sizes) != 2 or sizes[0] != sizes[1]:
        raise PrivacyError(f"the ends {pair} must be two columns of as many values")
    return sizes[0]


@dataclass(frozen=True, slots=True, eq=False)
class Degrees(Noised):
    """Noisy degrees, sorted within `groups` (one number per value), smallest first."""

    pair: Clique
    groups: Whole

    def need(self, facts: Facts) -> Need:
        """Two changes for each side."""
        size = _nodes(self.pair, facts)
        if len(self.groups) != size:
            raise PrivacyError(f"the ends {self.pair} have {size} values, not {len(self.groups)}")
        changes = facts.relation.marginal_l2_squared(2)
        words = f"sorted degrees, of which a neighbour moves {changes} by 1"
        return gaussian(1, changes, words, size)

    def exact(self, rows: Tables, event: Gaussian) -> Whole:
        """Sorted within groups, group after group."""
        ((cells, counts),) = rows.sparse([self.pair])
        u, v = np.divmod(cells, len(self.groups))
        counts = np.where(u == v, 0, counts)
        degrees = np.zeros(len(self.groups), np.int64)
        np.add.at(degrees, u, counts)
        np.add.at(degrees, v, counts)
        return degrees[np.lexsort((degrees, self.groups))]


@dataclass(frozen=True, slots=True)
class Triangles(NoisedOne):
    """The noisy number of triangles."""

    pair: Clique

    def need(self, facts: Facts) -> Need:
        """Step n − 2."""
        most = max(1, _nodes(self.pair, facts) - 2)
        return gaussian(most, 1, f"triangles, of which a neighbour moves {most}", 1)

    def exact(self, rows: Tables, event: Gaussian) -> Whole:
        """By the product of the links with themselves."""
        from scipy.sparse import csr_array

        size = rows.shape[self.pair[0]]
        ((cells, _),) = rows.sparse([self.pair])
        u, v = np.divmod(cells, size)
        u, v = u[u != v], v[u != v]
        links = csr_array((np.ones(2 * u.size, np.int64), (np.r_[u, v], np.r_[v, u])), (size, size))
        links.data[:] = 1  # a pair in both orders is one link
        return np.array([(links @ links * links).sum() // 6], np.int64)
