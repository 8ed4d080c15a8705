"""The shape of an ordered column inside its cells: what a decoded row is drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Shape"]


@dataclass(frozen=True)
class Shape:
    """Leaves nested in the cells of a column, with the share of rows of each.

    `edges` cut the column into cells, in its own terms. Leaf i holds the points `leaves[i]` up to, but
    not including, `leaves[i + 1]`, and has `weights[i]`; cell j begins with the leaf `starts[j]`. The
    points are those of the column's grid: integers, or doubles. `roundness` says how often values
    between two points of `decades` are multiples of each of the falling `steps` or of none, one row
    after the other; empty where that is not known.
    """

    edges: tuple[Any, ...]
    leaves: tuple[Any, ...]
    starts: tuple[int, ...]
    weights: tuple[int, ...]
    decades: tuple[int, ...] = ()
    steps: tuple[int, ...] = ()
    roundness: tuple[int, ...] = ()

    def facts(self) -> dict[str, tuple[Any, ...]]:
        """What a schema file says of it beside the edges, which tell where cells begin."""
        written = {
            "leaves": self.leaves,
            "weights": self.weights,
            "decades": self.decades,
            "steps": self.steps,
            "roundness": self.roundness,
        }
        return {key: values for key, values in written.items() if values}

    @property
    def discrete(self) -> bool:
        """Whether the points are integers."""
        return isinstance(self.leaves[0], int)

    @cached_property
    def _lows(self) -> NDArray[Any]:
        return np.array(self.leaves, np.int64 if self.discrete else np.float64)

    @cached_property
    def _reached(self) -> NDArray[np.float64]:
        """Weights summed up to each leaf; a cell without any is drawn from evenly."""
        weights = np.array(self.weights, np.float64)
        stops = [*self.starts[1:], len(weights)]
        for begin, stop in zip(self.starts, stops, strict=True):
            if not weights[begin:stop].any():
                weights[begin:stop] = np.diff(self._lows[begin : stop + 1])
        return np.concatenate([[0.0], np.cumsum(weights)])

    def draw(self, cells: NDArray[np.intp], rng: np.random.Generator) -> NDArray[Any]:
        """One point of each cell.

        The rows of a cell are spread over its leaves as evenly as they can be (systematic sampling,
        in random order). The point lies in the cell: `encode(draw(c)) == c`.
        """
        reached, starts = self._reached, np.array([*self.starts, len(self.weights)])
        begin, stop = reached[starts[cells]], reached[starts[cells + 1]]
        at = begin + _spread(cells, len(self.starts), rng) * (stop - begin)
        leaf = np.clip(
            np.searchsorted(reached, at, side="right") - 1, starts[cells], starts[cells + 1] - 1
        )
        mass = reached[leaf + 1] - reached[leaf]
        inside = np.divide(at - reached[leaf], mass, out=np.zeros(len(at)), where=mass > 0)
        return self._point(leaf, np.clip(inside, 0.0, 1.0))

    def _point(self, leaf: NDArray[np.intp], inside: NDArray[np.float64]) -> NDArray[Any]:
        low, high = self._lows[leaf], self._lows[leaf + 1]
        if self.discrete:
            steps = np.floor(inside * (high - low).astype(np.float64)).astype(np.int64)
            return np.minimum(low + steps, high - 1)
        return np.clip(low + inside * (high - low), low, np.nextafter(high, low))


def _spread(cells: NDArray[np.intp], count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """For the rows of each cell, in random order, numbers that fill [0, 1) evenly."""
    order = np.lexsort((rng.random(len(cells)), cells))
    rows = np.bincount(cells, minlength=count)
    begins = np.concatenate([[0], np.cumsum(rows)])[:-1]
    rank = np.empty(len(cells), np.float64)
    rank[order] = np.arange(len(cells)) - begins[cells[order]]
    return (rank + rng.random(count)[cells]) / rows[cells]
