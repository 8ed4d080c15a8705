"""What ordered columns share: bounds, bins or edges, and cells that hold many values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.columns.base import MOST_CELLS, Modelled
from understudy.columns.cells import Cells, Masks

__all__ = ["MOST_SINGLES", "Binned", "decimals_from_units", "largest"]

MOST_SINGLES = 1_000
"""The most values for which a column without bins gets one cell each."""


@dataclass(frozen=True)
class Binned(Modelled):
    """An ordered column between public bounds, cut into cells.

    `bins` cuts it into that many cells of equal width; `edges` names the cuts: cell i holds
    `edges[i] <= x < edges[i + 1]`, and the last one its upper edge as well. With neither, every
    value is its own cell.
    """

    lower: Any = None
    upper: Any = None
    bins: int | None = None
    edges: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        self._normalise()
        self._check_bins()
        super().__post_init__()
        self._check_cells()
        self._check_storable()

    def _normalise(self) -> None:
        if self.edges is not None:
            if isinstance(self.edges, str) or not isinstance(self.edges, Sized):
                self._refuse(f"edges = {self.edges!r} must be a list of increasing values")
            if len(self.edges) < 2:
                self._refuse(f"edges = {list(self.edges)!r} must list at least two values")
            if len(self.edges) > MOST_CELLS + 1:
                self._refuse(
                    f"edges lists {len(self.edges)} values, more than {MOST_CELLS + 1}; "
                    "use fewer, wider cells"
                )
            edges = tuple(self._bound("edges", edge) for edge in self.edges)
            for left, right in pairwise(edges):
                if not left < right:
                    self._refuse(
                        f"edges must increase, but {_show(left)} is followed by {_show(right)}; "
                        "sort them and keep each once"
                    )
            self._set("edges", edges)
            for key, edge in (("lower", edges[0]), ("upper", edges[-1])):
                stated = getattr(self, key)
                if stated is not None and self._bound(key, stated) != edge:
                    self._refuse(
                        f"{key} = {_show(stated)} differs from the outermost edge {_show(edge)}; "
                        f"drop {key}, or correct the edges"
                    )
                self._set(key, edge)
        for key in ("lower", "upper"):
            if getattr(self, key) is None:
                self._refuse(f"{key} is missing; state the public bound, {key} = {self._example()}")
            self._set(key, self._bound(key, getattr(self, key)))
        if not self.lower < self.upper:
            how = "equals" if self.lower == self.upper else "lies above"
            self._refuse(
                f"lower = {_show(self.lower)} {how} upper = {_show(self.upper)}; "
                "lower must be below upper (declare a constant column as a category)"
            )

    def _check_bins(self) -> None:
        if self.bins is None:
            return
        if self.edges is not None:
            self._refuse("bins and edges are both given; keep one of them")
        if not isinstance(self.bins, int) or isinstance(self.bins, bool) or self.bins <= 0:
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
        if self.grid.discrete:
            points = np.concatenate(
                [lows, highs, np.minimum(lows, highs - 1) + 1, np.maximum(highs, lows + 1) - 1]
            )
        else:
            points = np.concatenate([lows, highs])
        try:
            back, valid = self._read(self._emit(points, np.zeros(len(points), np.bool_)), ())
            same = (
                back == points
                if self.grid.discrete
                else self.grid.find(back) == self.grid.find(points)
            )
            kept = bool(np.all(valid & same))
        except (pa.ArrowException, OverflowError, ValueError):
            kept = False
        if not kept:
            self._refuse(
                f"dtype = {self.dtype!r} cannot hold every value between {_show(self.lower)} and "
                f"{_show(self.upper)} exactly; {self._remedy()}"
            )

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
        lows = [lower + count * i // bins for i in range(bins)]
        return Cells(
            np.array(lows, np.int64), np.array([*(low - 1 for low in lows[1:]), upper], np.int64)
        )

    @staticmethod
    def _cut(edges: Sequence[int]) -> Cells:
        """Cells between integer edges."""
        lows, ends = list(edges[:-1]), list(edges[1:])
        return Cells(
            np.array(lows, np.int64), np.array([*(e - 1 for e in ends[:-1]), ends[-1]], np.int64)
        )

    @cached_property
    @abstractmethod
    def grid(self) -> Cells:
        """The cells, in the column's own points."""

    @abstractmethod
    def _bound(self, key: str, value: Any) -> Any:
        """A bound or edge in the column's own type; SchemaError otherwise."""

    @abstractmethod
    def _example(self) -> str: ...

    @abstractmethod
    def _read(self, array: pa.Array, tokens: Sequence[str]) -> tuple[NDArray, NDArray[np.bool_]]:
        """The point of each entry of a flat array, not clipped, and whether it could be read."""

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
        pairs = zip(self.grid.lows, self.grid.highs, strict=True)
        return [
            self._show_point(low)
            if low == high
            else f"{self._show_point(low)}..{self._show_point(high)}"
            for low, high in pairs
        ]

    def _locate(self, array: pa.Array, tokens: Sequence[str]) -> tuple[NDArray, NDArray[np.bool_]]:
        points, valid = self._read(array, tokens)
        return self.grid.find(points), valid

    def _judge(
        self, array: pa.Array, tokens: Sequence[str]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        points, readable = self._read(array, tokens)
        return readable, points == self.grid.clip(points)

    def _points(self, array: pa.Array) -> tuple[NDArray, NDArray[np.bool_]]:
        points, valid = self._read(array, ())
        return self.grid.clip(points), valid

    def _draw(self, cells: NDArray[np.intp], rng: np.random.Generator) -> NDArray:
        return self.grid.draw(cells, rng)

    def _compare(self, op: str, literals: Sequence[Fraction]) -> Masks:
        return self.grid.among(literals) if op == "in" else self.grid.ordered(op, literals[0])

    def _satisfied(
        self, op: str, literals: Sequence[Fraction], array: pa.Array
    ) -> NDArray[np.bool_]:
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
