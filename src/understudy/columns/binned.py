"""What ordered columns share: bounds, bins or edges, and cells that hold many values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, floor, inf, nextafter
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.columns.base import MOST_CELLS, Masks, Modelled, is_whole, require_known
from understudy.columns.shape import Shape

__all__ = ["MOST_SINGLES", "Binned", "Cells", "decimals_from_units", "largest"]

MOST_SINGLES = 1_000
"""The most values for which a column without bins gets one cell each."""
_SHAPE = ("leaves", "weights", "decades", "steps", "roundness")


@dataclass(frozen=True, eq=False)
class Cells:
    """Cell i holds the points from `lows[i]` to `highs[i]`, both included.

    The points are all integers in between (int64 arrays) or all doubles (float64 arrays). Cells
    are sorted, disjoint and not empty.
    """

    lows: NDArray[Any]
    highs: NDArray[Any]

    @classmethod
    def starting(cls, lows: Sequence[int], last: int) -> Cells:
        """Cells over integers that follow each other, up to the last one."""
        highs = [*(low - 1 for low in lows[1:]), last]
        return cls(np.array(lows, np.int64), np.array(highs, np.int64))

    def __len__(self) -> int:
        return len(self.lows)

    @property
    def discrete(self) -> bool:
        """Whether the points are integers."""
        return self.lows.dtype.kind == "i"

    def clip(self, points: NDArray) -> NDArray:
        """The nearest point inside the domain."""
        return np.clip(points, self.lows[0], self.highs[-1])

    def find(self, points: NDArray) -> NDArray[np.intp]:
        """The cell of each point; a point outside the domain falls into the nearest cell."""
        if self.discrete and int(self.highs[-1]) - int(self.lows[0]) == len(self) - 1:
            return self.clip(points) - self.lows[0]
        return np.maximum(np.searchsorted(self.lows, points, side="right") - 1, 0)

    def draw(self, cells: NDArray, rng: np.random.Generator) -> NDArray:
        """One point of each cell, uniformly."""
        lows, highs = self.lows[cells], self.highs[cells]
        if self.discrete:
            return rng.integers(lows, highs, endpoint=True)
        return np.clip(lows + rng.random(len(cells)) * (highs - lows), lows, highs)

    def among(self, literals: Sequence[Fraction]) -> Masks:
        """Cells whose points are among the literals."""
        inner, outer = np.zeros(len(self), np.bool_), np.zeros(len(self), np.bool_)
        points = set(literals)
        if self.discrete:
            held = np.zeros(len(self), np.int64)
            for point in points:
                if point.denominator == 1 and self.lows[0] <= point.numerator <= self.highs[-1]:
                    held[self.find(np.array([point.numerator], np.int64))] += 1
            outer = held > 0
            for cell in np.flatnonzero(outer):  # in Python's integers: a width can exceed int64
                inner[cell] = held[cell] == int(self.highs[cell]) - int(self.lows[cell]) + 1
            return inner, outer
        for point in (float(literal) for literal in points):
            touched = (self.lows <= point) & (point <= self.highs)
            outer |= touched
            inner |= touched & (self.lows == self.highs)
        return inner, outer

    def ordered(self, op: str, literal: Fraction) -> Masks:
        """Cells on one side of a literal; `op` is one of < <= > >=."""
        if self.discrete:
            below = ceil(literal) - 1 if op in ("<", ">=") else floor(literal)
            inner, outer = self.highs <= below, self.lows <= below
        else:
            bound = float(literal)
            if op in ("<", ">="):
                inner, outer = self.highs < bound, self.lows < bound
            else:
                inner, outer = self.highs <= bound, self.lows <= bound
        return (inner, outer) if op in ("<", "<=") else (~outer, ~inner)


@dataclass(frozen=True)
class Binned(Modelled):
    """An ordered column between public bounds, cut into cells.

    `bins` cuts it into that many cells of equal width; `edges` names the cuts: cell i holds
    `edges[i] <= x < edges[i + 1]`, and the last one its upper edge as well. With neither, every
    value is its own cell. `shape` says how values lie inside the cells of `edges`, as a release found
    it privately; without it they lie evenly.
    """

    lower: Any = None
    upper: Any = None
    bins: int | None = None
    edges: tuple[Any, ...] | None = None
    shape: Shape | None = field(default=None, kw_only=True)

    example: ClassVar[str]
    """A bound, as a schema file writes it."""

    def __post_init__(self) -> None:
        self._normalise()
        self._check_bins()
        super().__post_init__()
        self._check_cells()
        if self.shape is not None:
            self._set("shape", self._shaped(self.shape))
        if self.dtype != self.usual:  # the usual type holds every point
            self._check_storable()

    def _normalise(self) -> None:
        first, last = None, None
        if self.edges is not None:
            self._set("edges", self._checked(self.edges))
            first, last = self.edges[0], self.edges[-1]
        self._set("lower", self._end("lower", self.lower, first))
        self._set("upper", self._end("upper", self.upper, last))
        if not self.lower < self.upper:
            how = "equals" if self.lower == self.upper else "lies above"
            self._refuse(
                f"lower = {_show(self.lower)} {how} upper = {_show(self.upper)}; "
                "lower must be below upper (declare a constant column as a category)"
            )

    def _checked(self, edges: Any) -> tuple[Any, ...]:
        if isinstance(edges, str) or not isinstance(edges, Collection):
            self._refuse(f"edges = {edges!r} must be a list of increasing values")
        if len(edges) < 2:
            self._refuse(f"edges = {[*edges]!r} must list at least two values")
        if len(edges) > MOST_CELLS + 1:
            self._refuse(
                f"edges lists {len(edges)} values, more than {MOST_CELLS + 1}; "
                "use fewer, wider cells"
            )
        found = tuple(self._bound("edges", edge) for edge in edges)
        for left, right in pairwise(found):
            if not left < right:
                self._refuse(
                    f"edges must increase, but {_show(left)} is followed by {_show(right)}; "
                    "sort them and keep each once"
                )
        return found

    def _end(self, key: str, stated: Any, edge: Any) -> Any:
        """One bound of the domain: as stated, or the outermost edge."""
        if stated is None and edge is None:
            self._refuse(f"{key} is missing; state the public bound, {key} = {self.example}")
        bound = edge if stated is None else self._bound(key, stated)
        if edge is not None and bound != edge:
            self._refuse(
                f"{key} = {_show(stated)} differs from the outermost edge {_show(edge)}; "
                f"drop {key}, or correct the edges"
            )
        return bound

    def _check_bins(self) -> None:
        if self.bins is None:
            return
        if self.edges is not None:
            self._refuse("bins and edges are both given; keep one of them")
        if not is_whole(self.bins, 1):
            self._refuse(
                f"bins = {self.bins!r} must be a whole number above zero, such as bins = 32"
            )
        if self.bins > MOST_CELLS:
            self._refuse(f"bins = {self.bins} is more than {MOST_CELLS}; try bins = 32")

    def _check_cells(self) -> None:
        grid = self.grid
        if np.any(grid.lows > grid.highs):
            self._refuse(
                f"{self._cuts()} leaves a cell without any value; use fewer bins or wider edges"
            )

    def _check_storable(self) -> None:
        """Every kind of point survives a trip through the declared type."""
        lows, highs = self.grid.lows, self.grid.highs
        discrete = self.grid.discrete
        inner = (np.minimum(lows, highs - 1) + 1, np.maximum(highs, lows + 1) - 1)
        points = np.concatenate([lows, highs, *(inner if discrete else ())])
        try:
            back, valid = self._read(self._emit(points, np.zeros(len(points), np.bool_)), ())
            same = back == points if discrete else self._cell(back) == self._cell(points)
            kept = bool(np.all(valid & same))
        except (pa.ArrowException, OverflowError, ValueError):
            kept = False
        if not kept:
            self._refuse(
                f"dtype = {self.dtype!r} cannot hold every value between {_show(self.lower)} and "
                f"{_show(self.upper)} exactly; {self._remedy()}"
            )

    def _shaped(self, given: Shape | Mapping[str, Any]) -> Shape:
        """The shape, whose leaves nest in the cells; SchemaError otherwise."""
        facts: Mapping[str, Any] = given.facts() if isinstance(given, Shape) else given
        if not isinstance(facts, Mapping) or self.edges is None:
            self._refuse("shape belongs to edges, and is a table: a release writes it")
        require_known(facts, _SHAPE, f"column {self.name!r}: shape")
        parts = {key: facts.get(key, ()) for key in _SHAPE}
        kind, grid = int if self.grid.discrete else float, self.grid
        for key, part in parts.items():
            wanted = kind if key == "leaves" else int
            if not isinstance(part, (list, tuple)) or any(type(x) is not wanted for x in part):
                self._refuse(f"shape: {key} must be a list of {wanted.__name__}s")
        leaves, weights, decades, steps, roundness = map(tuple, parts.values())
        known = {leaf: at for at, leaf in enumerate(leaves)}
        starts = [known.get(low, -1) for low in grid.lows.tolist()]
        high = grid.highs[-1].item()
        ends = (high, high + 1) if self.grid.discrete else (high, nextafter(high, inf))
        right = (
            len(leaves) == len(weights) + 1 > 1
            and all(left < after for left, after in pairwise((*leaves, inf)))
            and starts[0] == 0
            and -1 not in starts
            and leaves[-1] in ends
            and leaves[-1] > leaves[starts[-1]]
            and min((*weights, *roundness)) >= 0
            and len(roundness) == max(len(decades) - 1, 0) * (len(steps) + 1)
            and min((*steps, 1)) >= 1
        )
        if not right:
            self._refuse("shape: its leaves do not nest in the cells of edges")
        return Shape(self.edges, leaves, tuple(starts), weights, decades, steps, roundness)

    def _remedy(self) -> str:
        return "choose a wider dtype, or narrower bounds"

    def _cuts(self) -> str:
        return f"edges = {[_show(e) for e in self.edges]}" if self.edges else f"bins = {self.bins}"

    def _even(self, lower: int, upper: int) -> Cells:
        """Cells of nearly equal width over the integers lower..upper."""
        count = upper - lower + 1
        if self.bins is None and count > MOST_SINGLES:
            self._refuse(
                f"{_show(self.lower)}..{_show(self.upper)} has {count} values, too many for one "
                f"cell each (at most {MOST_SINGLES}); add bins = 32, or edges"
            )
        bins = count if self.bins is None else self.bins
        if bins > count:
            self._refuse(f"bins = {bins} is more than its {count} values; leave bins out")
        return Cells.starting([lower + count * i // bins for i in range(bins)], upper)

    @cached_property
    def grid(self) -> Cells:
        """The cells, in the column's own points."""
        if self.edges is None:
            return self._even(self._point(self.lower), self._point(self.upper))
        points = [self._point(edge) for edge in self.edges]
        return Cells.starting(points[:-1], points[-1])

    def _point(self, bound: Any) -> int:
        """The whole point of a bound or edge."""
        return bound

    @abstractmethod
    def _bound(self, key: str, value: Any) -> Any:
        """A bound or edge in the column's own type; SchemaError otherwise."""

    @abstractmethod
    def _show_point(self, point: Any) -> str: ...

    @property
    def cells(self) -> int:
        """How many bins, or values where each is its own cell."""
        return len(self.grid)

    @property
    def ordered(self) -> bool:
        """Always: neighbouring codes are neighbouring intervals."""
        return True

    def _cell_labels(self) -> list[str]:
        ends = zip(self.grid.lows, self.grid.highs, strict=True)
        return ["..".join(self._show_point(x) for x in dict.fromkeys(pair)) for pair in ends]

    def _nearest(self, points: NDArray) -> NDArray:
        return self.grid.clip(points)

    def _cell(self, points: NDArray) -> NDArray[np.intp]:
        return self.grid.find(points)

    def _draw(self, cells: NDArray[np.intp], rng: np.random.Generator) -> NDArray:
        return (self.grid if self.shape is None else self.shape).draw(cells, rng)

    def _compare(self, op: str, literals: Sequence[Fraction]) -> Masks:
        return self.grid.among(literals) if op == "in" else self.grid.ordered(op, literals[0])

    def _satisfied(self, op: str, literals: Sequence[Any], array: pa.Array) -> NDArray[np.bool_]:
        points, valid = self._read(array, self.null_values)
        points = np.where(valid, self.grid.clip(points), self.grid.lows[0])
        if op != "in":
            return Cells(points, points).ordered(op, literals[0])[0]
        if self.grid.discrete:
            whole = [x.numerator for x in literals if x.denominator == 1 and -(2**63) <= x < 2**63]
            return np.isin(points, np.array(whole, np.int64))
        return np.isin(points, np.array([float(x) for x in literals]))


def largest(points: NDArray[np.int64]) -> int:
    """The largest absolute value, exactly: int64 cannot hold that of its own lowest."""
    return max(int(points.max()), -int(points.min())) if len(points) else 0


def decimals_from_units(
    units: NDArray[np.int64], type_: pa.DataType, null: NDArray[np.bool_]
) -> pa.Array:
    """Decimals `units / 10^scale` from their unscaled integers; ValueError if one does not fit."""
    if largest(units) >= 10**type_.precision:
        raise ValueError("a value has more digits than the type")
    words = np.empty((len(units), 2), np.int64)
    words[:, 0], words[:, 1] = units, units >> 63
    valid = pa.py_buffer(np.packbits(~null, bitorder="little").tobytes())
    return pa.Array.from_buffers(type_, len(units), [valid, pa.py_buffer(words.tobytes())])


def _show(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)
