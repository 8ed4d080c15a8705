"""Exact marginal tables of encoded rows.

A row's cell in the marginal of a clique (i, j, k) is packed into one integer,
`(code_i * shape_j + code_j) * shape_k + code_k`, and cells are counted with `numpy.bincount`. Rows
are taken a chunk at a time, so that temporary memory does not grow with their number, and cliques
that begin alike share the packed prefix.

What comes out is exact and therefore private: sources seal it in `Sensitive` at once.
"""

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Whole
from understudy.errors import WorkloadError

MAX_CELLS = 10**8
"""The largest marginal that is ever tabulated."""

CHUNK_ROWS = 1 << 18
"""Rows that are packed at once: 2 MiB of packed codes for each level of prefixes."""


def cells(shape: Sequence[int], clique: Clique) -> int:
    """The number of cells of the marginal of `clique`; 1 for the empty clique."""
    return math.prod(shape[i] for i in clique)


def count(
    codes: Sequence[NDArray[np.unsignedinteger]], shape: Sequence[int], clique: Clique
) -> Whole:
    """The exact marginal table of one clique; see `counts`."""
    return counts(codes, shape, (clique,))[0]


def counts(
    codes: Sequence[NDArray[np.unsignedinteger]],
    shape: Sequence[int],
    cliques: Iterable[Clique],
    weights: Whole | None = None,
) -> tuple[Whole, ...]:
    """The exact marginal tables of `cliques`, in the order given.

    Args:
        codes: One integer array per modelled column, `0 <= code < shape[i]`, all of one length.
        shape: The number of codes of each column.
        cliques: Strictly increasing tuples of positions; the empty clique stands for the total.
        weights: What each row counts, up to 2^32; None where each counts one.

    Raises:
        WorkloadError: A clique is out of order or out of range, or has more than `MAX_CELLS` cells.
    """
    counter = Counter(shape, cliques)
    counter.add(codes, weights)
    return counter.tables()


def occupied(
    codes: Sequence[NDArray[np.unsignedinteger]],
    shape: Sequence[int],
    cliques: Iterable[Clique],
    weights: Whole | None = None,
) -> tuple[tuple[Whole, Whole], ...]:
    """(sorted packed cells, their counts) of marginals of any size below 2^62 cells; as `counts`."""
    counter = SparseCounter(shape, cliques)
    counter.add(codes, weights)
    return counter.tables()


class Counter:
    """Adds up marginal tables over batches of encoded rows.

    >>> counter = Counter((2, 3), [(0, 1), ()])
    >>> counter.add([np.array([0, 1, 1]), np.array([2, 0, 0])])
    >>> counter.add([np.array([1]), np.array([1])])
    >>> counter.tables()
    (array([[0, 0, 1],
           [2, 1, 0]]), array(4))
    """

    def __init__(self, shape: Sequence[int], cliques: Iterable[Clique]) -> None:
        self._shape = tuple(int(size) for size in shape)
        self._cliques = tuple(_checked(clique, self._shape) for clique in cliques)
        self._flat = {
            clique: np.zeros(cells(self._shape, clique), np.int64) for clique in self._cliques
        }
        self._sorted = sorted(self._flat)  # neighbours in this order share their prefixes
        self._depth = max((len(clique) for clique in self._sorted), default=0)

    def add(
        self, codes: Sequence[NDArray[np.unsignedinteger]], weights: Whole | None = None
    ) -> None:
        """Count the rows of one batch, or add up their weights, whole numbers up to 2^32."""
        if len(codes) != len(self._shape):
            raise ValueError(f"{len(codes)} columns of codes for a shape of {len(self._shape)}")
        rows = codes[0].size if codes else 0
        if any(column.shape != (rows,) for column in codes):
            raise ValueError("the columns of codes differ in length")
        packed = np.empty((self._depth, min(rows, CHUNK_ROWS)), np.int64)
        for start in range(0, rows, CHUNK_ROWS):
            stop = start + CHUNK_ROWS
            chunk = [column[start:stop] for column in codes]
            part = None if weights is None else weights[start:stop]
            self._add_chunk(chunk, packed[:, : chunk[0].size], part)

    def _add_chunk(
        self, chunk: Sequence[NDArray[np.unsignedinteger]], packed: Whole, weights: Whole | None
    ) -> None:
        before: Clique = ()
        for clique in self._sorted:
            flat = self._flat[clique]
            if not clique:
                flat[0] += chunk[0].size if weights is None else weights.sum()
                continue
            for depth in range(_shared(before, clique), len(clique)):
                column = clique[depth]
                if depth == 0:
                    packed[0] = chunk[column]
                else:
                    np.multiply(packed[depth - 1], self._shape[column], out=packed[depth])
                    np.add(packed[depth], chunk[column], out=packed[depth], casting="unsafe")
            _tally(flat, packed[len(clique) - 1], weights)
            before = clique

    def tables(self) -> tuple[Whole, ...]:
        """The tables, in the order of the cliques, handed over without a copy: add no more rows."""
        return tuple(
            self._flat[clique].reshape([self._shape[i] for i in clique]) for clique in self._cliques
        )


class SparseCounter:
    """Adds up the occupied cells of marginals of any size below 2^62 cells.

    >>> counter = SparseCounter((2, 3), [(0, 1)])
    >>> counter.add([np.array([0, 1, 1]), np.array([2, 0, 0])])
    >>> counter.tables()
    ((array([2, 3]), array([1, 2])),)
    """

    def __init__(self, shape: Sequence[int], cliques: Iterable[Clique]) -> None:
        self._shape = tuple(int(size) for size in shape)
        self._cliques = tuple(tuple(clique) for clique in cliques)
        for clique in self._cliques:
            if cells(self._shape, clique) >= 2**62:
                raise WorkloadError(f"the marginal of columns {clique} has 2^62 cells or more")
        nothing = np.zeros(0, np.int64)
        self._tables = [(nothing, nothing) for _ in self._cliques]

    def add(
        self, codes: Sequence[NDArray[np.unsignedinteger]], weights: Whole | None = None
    ) -> None:
        """Count the rows of one batch, or add up their weights; exact while sums stay below 2^53."""
        for position, clique in enumerate(self._cliques):
            packed = np.zeros(codes[0].size, np.int64)
            for column in clique:
                packed *= self._shape[column]
                packed += codes[column]
            if weights is None:
                keys, number = np.unique(packed, return_counts=True)
            else:
                keys, inverse = np.unique(packed, return_inverse=True)
                number = np.bincount(inverse, weights, keys.size).astype(np.int64)
            have = self._tables[position]
            if have[0].size:
                keys, inverse = np.unique(np.concatenate([have[0], keys]), return_inverse=True)
                number = np.bincount(inverse, np.concatenate([have[1], number])).astype(np.int64)
            self._tables[position] = (keys, number)

    def tables(self) -> tuple[tuple[Whole, Whole], ...]:
        """(sorted packed cells, their counts) of each clique; cells that do not occur are absent."""
        return tuple(self._tables)


def _tally(flat: Whole, packed: Whole, weights: Whole | None) -> None:
    if flat.size > 4 * packed.size:  # far more cells than rows: touch only the cells that occur
        np.add.at(flat, packed, 1 if weights is None else weights)
    elif weights is None:
        flat += np.bincount(packed, minlength=flat.size)
    else:  # floats, but exact: 2^18 rows of weights up to 2^32 stay below 2^53
        flat += np.bincount(packed, weights, flat.size).astype(np.int64)


def _shared(before: Clique, clique: Clique) -> int:
    """How many leading positions two cliques have in common."""
    shared = 0
    for one, other in zip(before, clique, strict=False):
        if one != other:
            break
        shared += 1
    return shared


def _checked(clique: Clique, shape: tuple[int, ...]) -> Clique:
    clique = tuple(int(i) for i in clique)
    if any(i >= j for i, j in itertools.pairwise(clique)) or any(
        not 0 <= i < len(shape) for i in clique
    ):
        raise WorkloadError(
            f"clique {clique} is not a strictly increasing tuple of positions below {len(shape)}"
        )
    size = cells(shape, clique)
    if size > MAX_CELLS:
        raise WorkloadError(
            f"the marginal of columns {clique} has {size:,} cells, more than {MAX_CELLS:,}: "
            "take fewer columns or coarser bins"
        )
    return clique
