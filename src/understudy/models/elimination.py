"""How large a junction tree will be, without making one.

Columns are eliminated greedily, the one whose clique has fewest cells first; the cliques that appear
are those of a junction tree of the triangulated graph. Sets of columns are bits of integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from understudy.models.decomposable import Clique

__all__ = ["tree_cells", "tree_cliques"]


def tree_cliques(shape: Sequence[int], cliques: Iterable[Clique]) -> list[Clique]:
    """The maximal cliques of a junction tree that holds `cliques`; every column is in one."""
    near = [1 << i for i in range(len(shape))]
    for clique in cliques:
        bits = sum(1 << i for i in clique)
        for i in clique:
            near[i] |= bits
    left, found = set(range(len(shape))), list[int]()
    cells = {i: _cells(shape, near[i]) for i in left}
    while left:
        column = min(left, key=lambda i: (cells[i], i))
        clique = near[column]
        left.remove(column)
        if not any(clique & ~before == 0 for before in found):
            found.append(clique)
        rest = clique & ~(1 << column)
        for i in _columns(rest):
            near[i] = (near[i] | rest) & ~(1 << column)
            cells[i] = _cells(shape, near[i])
    return [tuple(_columns(bits)) for bits in found]


def tree_cells(shape: Sequence[int], cliques: Iterable[Clique]) -> int:
    """Cells of all tables of that junction tree."""
    return sum(math.prod(shape[i] for i in clique) for clique in tree_cliques(shape, cliques))


def _columns(bits: int) -> list[int]:
    return [i for i in range(bits.bit_length()) if bits >> i & 1]


def _cells(shape: Sequence[int], bits: int) -> int:
    return math.prod(shape[i] for i in _columns(bits))
