"""A distribution given by weighted records: what the default method ends with."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from understudy._types import Clique, Codes, Rng, Table, Whole
from understudy.errors import InputError
from understudy.models import _kernels as kernels
from understudy.models.copula import Copula
from understudy.models.empirical import Records
from understudy.models.measured import commonest

# Cells of all tables that rows are held against.
_SWAP_CELLS = 24_000_000
MOST_SWAPS, _FEWEST_SWAPS, _SWAPS_IN_ALL = 20, 4, 200_000
_SWAPS_AT_ONCE = 2**20  # Proposals that are held in memory
_BLOCK = 32  # Records whose cells are computed together
# Table entries that swapping may look at; beyond it wide workloads would take minutes.
_SWAP_WORK = 600_000_000


def swaps_for(rows: float) -> int:
    """Proposals a row, by how many rows are to be drawn: 20 up to 10,000 rows, 4 from 50,000 on.

    From 4 to 20 the rows' distance from the model's tables falls by a fifth. For large tables it is far
    below the noise of any release, and most of the time of verifying one went into it.
    """
    return max(_FEWEST_SWAPS, min(MOST_SWAPS, round(_SWAPS_IN_ALL / max(rows, 1))))


@dataclass(frozen=True, eq=False)
class Weighted(Records):
    """Records (one code array per column) with weights that sum to one, neighbours alike.

    `cliques` are the marginals that sampled rows shall have as the model has them, `swaps` how many
    proposals a row are tried for that; `copula` says how values lie together inside their cells.
    """

    weights: NDArray[np.float32]
    cliques: tuple[Clique, ...] = ()
    swaps: int = MOST_SWAPS
    copula: Copula | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = np.asarray(self.weights, dtype=np.float32)
        if weights.shape != (self.size,):
            raise InputError(f"{weights.size} weights for {self.size} records of the model")
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
            raise InputError("a model of weighted records needs finite weights, not all of them 0")
        for clique in self.cliques:
            if not all(0 <= i < len(self.shape) for i in clique):
                raise InputError(f"marginal {clique} of the model leaves its columns")
        if not 0 <= self.swaps <= MOST_SWAPS:
            raise InputError(f"swaps = {self.swaps} of the model is not from 0 to {MOST_SWAPS}")
        if self.copula is not None and not self.copula.fits(self.shape):
            raise InputError("the copula of the model leaves its cells")
        object.__setattr__(self, "weights", weights)

    def thinned(self, most: int) -> Weighted:
        """At most so many of the records, evenly along their order; the same model, more roughly."""
        step = -(-self.size // max(most, 1))
        codes = tuple(column[::step] for column in self.codes)
        return replace(self, codes=codes, weights=self.weights[::step])

    def marginal(self, clique: Clique) -> Table:
        """Shares of the weights, axes in the order of `clique`."""
        table = self.tabulated(clique, self.weights)
        return table / table.sum()

    def sample(self, rows: int, rng: Rng) -> list[Codes]:
        """Encoded rows: systematic resampling along the records, then swaps towards the model.

        A record of weight w gets ⌊w·rows⌋ or ⌈w·rows⌉ rows, and so does, nearly, every run of
        neighbours. Then rows are exchanged for other records wherever that lowers Σ (s − m)²/√(1 + m)
        over the cells of the marginals in `cliques`, s their rows and m what the model expects: the
        expected |t − s| of a count t ~ Poisson(m) to second order, so that small cells are not given
        up for large ones. Rows come in random order.
        """
        chosen = self._systematic(rows, rng)
        if self.cliques and rows > 0:
            self._settle(chosen, rng)
        order = rng.permutation(rows)
        return [column[chosen[order]] for column in self.codes]

    def to_arrays(self) -> tuple[dict[str, object], dict[str, NDArray[Any]]]:
        """(description, arrays)."""
        description: dict[str, object] = {
            "kind": "weighted",
            "shape": list(self.shape),
            "cliques": [list(clique) for clique in self.cliques],
            "swaps": self.swaps,
        }
        if self.copula is not None:
            description["copula"] = self.copula.to_json()
        arrays: dict[str, NDArray[Any]] = {f"column_{i}": c for i, c in enumerate(self.codes)}
        return description, {**arrays, "weights": self.weights}

    def _systematic(self, rows: int, rng: Rng) -> Whole:
        cumulative = np.cumsum(self.weights, dtype=np.float64)
        points = (np.arange(rows) + rng.random()) * (cumulative[-1] / max(rows, 1))
        return np.minimum(np.searchsorted(cumulative, points, side="right"), self.size - 1)

    def _settle(self, chosen: Whole, rng: Rng) -> None:
        rows = chosen.size
        cliques = [clique for clique in self.cliques if clique]
        if not cliques:
            return
        if len(cliques) > 512:  # a part speaks for all; which part is of no consequence
            cliques = [cliques[i] for i in sorted(rng.permutation(len(cliques))[:512])]
        records, sizes = self._compressed(cliques)
        width = max(len(clique) for clique in cliques)
        columns = np.zeros((width, len(cliques)), np.int64)
        strides = np.zeros((width + 1, len(cliques)), np.uint32)
        ends = np.cumsum([math.prod(sizes[i] for i in clique) for clique in cliques])
        strides[-1, 1:] = ends[:-1]
        for c, clique in enumerate(cliques):
            stride = 1
            for k, i in reversed(list(enumerate(clique))):
                columns[k, c], strides[k, c] = i, stride
                stride *= sizes[i]
        codes = np.zeros((len(sizes), _BLOCK), np.uint32)
        cells = np.zeros((2, len(cliques), _BLOCK), np.uint32)
        where = records, chosen, columns, strides, codes
        expected = np.zeros(int(ends[-1]))
        kernels.tabulate(records, self.weights, columns, strides, codes, cells[0], expected)
        for start, end in zip(strides[-1], ends, strict=True):
            expected[start:end] *= rows / expected[start:end].sum()
        change = np.empty((3, expected.size))
        # Rounded alike on every machine, unlike powers.
        change[0] = (1 / np.sqrt(1 + expected)).astype(np.float32)
        excess = (-expected).astype(np.float32)
        kernels.count(*where, cells[0], excess)
        tries = int(min(self.swaps * rows, _SWAP_WORK / (len(cliques) * width)))
        for start in range(0, tries, _SWAPS_AT_ONCE):
            many = min(_SWAPS_AT_ONCE, tries - start)
            proposals = rng.permutation(self._systematic(many, rng))
            places = rng.integers(rows, size=many)
            together = np.stack([places, proposals])
            kernels.swap(*where, cells, excess, change, together, np.empty(_BLOCK))

    def _compressed(
        self, cliques: list[Clique]
    ) -> tuple[NDArray[np.unsignedinteger[Any]], list[int]]:
        """Codes with the rarest values of large columns merged until the tables of all cliques fit."""
        sizes = list(self.shape)
        most = max(self.shape)
        while most > 2 and (
            sum(math.prod(min(sizes[i], most) for i in c) for c in cliques) > _SWAP_CELLS
        ):
            most = max(2, int(most * 0.95))
        columns: list[NDArray[Any]] = []
        for i, codes in enumerate(self.codes):
            if sizes[i] > most:
                labels = commonest(np.bincount(codes, self.weights, sizes[i]), most)
                codes, sizes[i] = labels[codes], most
            columns.append(codes.astype(np.min_scalar_type(max(*sizes, most) - 1)))
        return np.ascontiguousarray(np.stack(columns, axis=1)), sizes
