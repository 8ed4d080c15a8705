"""Triangles of a graph whose edges are rows: how many three values are all linked.

Two of n values are linked by any row that names both, in either order and however often. A row that
comes adds one link at most, which closes at most one triangle with each of the other n − 2 values; one
that goes opens as many. So the number moves by n − 2 at most, under replace too, where one of these is
taken from the other: `Gaussian` with that step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from understudy.privacy.cost import Gaussian
from understudy.privacy.exact import Tables
from understudy.privacy.gate import Facts, Need
from understudy.privacy.mechanisms import added
from understudy.privacy.questions.requests import Clique, Counts, require_pair

__all__ = ["Triangles"]


@dataclass(frozen=True, slots=True)
class Triangles:
    """The noisy number of triangles."""

    pair: Clique

    mechanism = staticmethod(added)

    def need(self, facts: Facts) -> Need:
        """Step n − 2."""
        most = max(1, require_pair(self.pair, facts) - 2)
        return Need(
            (Gaussian,),
            lambda e: e.step >= most,
            f"triangles, of which a neighbour moves {most}",
            (1,),
        )

    def exact(self, rows: Tables, event: Gaussian) -> Counts:
        """By the product of the links with themselves."""
        from scipy.sparse import csr_array

        size = rows.shape[self.pair[0]]
        ((cells, _),) = rows.sparse([self.pair])
        u, v = np.divmod(cells, size)
        u, v = u[u != v], v[u != v]
        links = csr_array((np.ones(2 * u.size, np.int64), (np.r_[u, v], np.r_[v, u])), (size, size))
        links.data[:] = 1  # a pair in both orders is one link
        return np.array([(links @ links * links).sum() // 6], np.int64)

    def decode(self, drawn: Counts, facts: Facts) -> int:
        """As drawn."""
        return int(drawn[0])
