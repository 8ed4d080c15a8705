"""What ordered columns share: bounds, bins or edges, cells that hold many values, special values.

A special value stands beside the order: "N" for not applicable, 999 for unknown. Each is a cell of its
own after the ordered ones, is written as it was declared, equals itself and is on no side of anything.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil, floor, inf, nextafter
from typing import Any, ClassVar, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Bools, Floats, Rng, Whole
from understudy.columns.base import MOST_CELLS, Masks, Modelled, identical, is_whole, require_known
from understudy.columns.kinds import Kinds
from understudy.columns.reading import (
    array_of,
    distinct_texts,
    is_text,
    numpy_of,
    pc,
    same_stored,
    texts_of,
    valid_of,
    writes_text,
)
from understudy.columns.shape import FACTS, Search, Shape

MOST_SINGLES = 1_000
"""The most values for which a column without bins gets one cell each."""
_LONGEST: dict[str, int] = dict(zip(FACTS, (2**16, 2**16, 64, 64, 64, 2**12), strict=True))


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

    def without(self, points: Sequence[Any]) -> Cells:
        """The cells less these points at their ends; a cell that holds nothing else is left out.

        Points in the middle of a cell stay in it: who draws from it avoids them by `beside`.
        """
        gone = np.array(points, self.lows.dtype)
        lows, highs = self.lows, self.highs
        while (hit := np.isin(lows, gone) | np.isin(highs, gone)).any():
            kept = ~hit | (lows < highs)
            lows, highs = lows[kept], highs[kept]
            lows = np.where(np.isin(lows, gone), _next(lows), lows)
            highs = np.where(np.isin(highs, gone) & (lows < highs), _next(highs, -1), highs)
        return Cells(lows, highs)

    def clip(self, points: NDArray) -> NDArray:
        """The nearest point inside the domain."""
        return np.clip(points, self.lows[0], self.highs[-1])

    def find(self, points: NDArray) -> NDArray[np.intp]:
        """The cell of each point; a point outside the domain falls into the nearest cell."""
        if self.discrete and int(self.highs[-1]) - int(self.lows[0]) == len(self) - 1:
            return self.clip(points) - self.lows[0]
        return np.maximum(np.searchsorted(self.lows, points, side="right") - 1, 0)

    def draw(self, cells: NDArray, rng: Rng) -> NDArray:
        """One point of each cell, uniformly."""
        lows, highs = self.lows[cells], self.highs[cells]
        if self.discrete:
            return rng.integers(lows, highs, endpoint=True)
        return np.clip(lows + rng.random(len(cells)) * (highs - lows), lows, highs)

    def compared(self, op: str, literals: Sequence[Fraction]) -> Masks:
        """Cells whose points are among the literals; or, with < <= > >=, on one side of the first."""
        if op == "in":
            return self._among(literals)
        bound = literals[0] if self.discrete else float(literals[0])
        if self.discrete:
            below = ceil(bound) - 1 if op in ("<", ">=") else floor(bound)
            inner, outer = self.highs <= below, self.lows <= below
        elif op in ("<", ">="):
            inner, outer = self.highs < bound, self.lows < bound
        else:
            inner, outer = self.highs <= bound, self.lows <= bound
        return (inner, outer) if op in ("<", "<=") else (~outer, ~inner)

    def _among(self, literals: Sequence[Fraction]) -> Masks:
        known = [float(literal) for literal in literals]
        if self.discrete:
            whole = (literal for literal in literals if literal.denominator == 1)
            known = [int(literal) for literal in whole if -(2**63) <= literal < 2**63]
        points = np.unique(np.array(known, self.lows.dtype))
        held = np.searchsorted(points, self.highs, "right") - np.searchsorted(points, self.lows)
        width = self.highs - self.lows
        if self.discrete:  # without a sign, for it can exceed int64
            return (held > 0) & (width.astype(np.uint64) == held.astype(np.uint64) - 1), held > 0
        return (held > 0) & (width == 0), held > 0


@dataclass(frozen=True)
class Binned(Modelled):
    """An ordered column between public bounds, cut into cells.

    `bins` cuts it into that many cells of equal width; `edges` names the cuts: cell i holds
    `edges[i] <= x < edges[i + 1]`, and the last one its upper edge as well. With neither, every
    value is its own cell. `shape` says how values lie inside the cells of `edges`, as a release found
    it privately; without it they lie evenly.

    `special` lists values beside the order: texts, or values of the column's own kind, wherever they
    lie. Texts are found with or without blanks around them. With a text among them the column is
    written as text.
    """

    lower: Any = None
    upper: Any = None
    bins: int | None = None
    edges: tuple[Any, ...] | None = None
    special: tuple[Any, ...] = field(default=(), kw_only=True)
    shape: Shape | None = field(default=None, kw_only=True)

    example: ClassVar[str]
    """A bound, as a schema file writes it."""

    def __post_init__(self) -> None:
        self._normalise()
        self._check_bins()
        self._check_special()
        super().__post_init__()
        self._check_cells()
        if self.shape is not None:
            self._set("shape", self._shaped(self.shape))
        if self.dtype != self.usual:  # the usual type holds every point
            self._check_storable()
        if self.special:
            self._check_special_cells()

    def _check_special(self) -> None:
        special = self.special
        if isinstance(special, str) or not isinstance(special, Collection):
            self._refuse(f'special = {special!r} must be a list, such as special = ["N", 999]')
        if len(special) > MOST_CELLS:
            self._refuse(f"special lists {len(special)} values, more than {MOST_CELLS}")
        self._set("special", tuple(special))
        for value in special:
            if not isinstance(value, str):
                self._bound("special", value)
            elif not value or value != value.strip():
                self._refuse(
                    f"special holds {value!r}; write it without blanks around it (an empty cell is "
                    "null: nullable = true)"
                )

    def _check_special_cells(self) -> None:
        """Each is read as itself, from its own type and from text."""
        if self._words and not writes_text(self.arrow_type):
            self._refuse(
                f"special holds the text {self._words[0]!r}, which dtype = {self.dtype!r} cannot "
                'hold; write dtype = "string", or leave it out'
            )
        texts: list[str] = []
        for value in self.special:
            try:
                text = self._written(value)
            except (pa.ArrowException, OverflowError, ValueError):
                self._refuse_special(value)
            if text in texts:
                self._refuse(f"special holds {text} twice; keep one of them")
            texts.append(text)
            if text in self.null_values:
                self._refuse(
                    f"{text!r} is both one of its special values and one of its "
                    "null_values; take it out of one of the two"
                )
        if self._words and self._read(texts_of(self._words), ())[1].any():
            readable = self._read(texts_of(self._words), ())[1].argmax()
            self._refuse(
                f"special holds the text {self._words[readable]!r}, which is read as a value; write "
                "it without quotes"
            )
        wanted = len(self.grid) + np.arange(len(self.special))
        for array in (texts_of(texts), self._specials):
            for value, same in zip(self.special, self._encode(array, ()) == wanted, strict=True):
                if not same:
                    self._refuse_special(value)

    def _refuse_special(self, value: Any) -> NoReturn:
        self._refuse(
            f"special holds {_show(value)}, which dtype = {self.dtype!r} or the column's decimals or "
            "resolution cannot hold exactly; leave it out, or choose a wider dtype"
        )

    def _usual_dtype(self) -> str:
        return "string" if self._words else self.usual

    @cached_property
    def _words(self) -> list[str]:
        """The special values that are texts."""
        return [value for value in self.special if isinstance(value, str)]

    @cached_property
    def _special_points(self) -> dict[Any, int]:
        """The points of special values of the column's own kind, and their places in the list."""
        values = enumerate(self.special)
        return {self._point(v): at for at, v in values if not isinstance(v, str)}

    @cached_property
    def _specials(self) -> pa.Array:
        """Every special value in the declared type, or as text where Arrow cannot take from it."""
        if writes_text(type_ := self.arrow_type):
            texts = texts_of(list(map(self._written, self.special)))
            return texts if pa.types.is_string_view(type_) else texts.cast(type_)
        return self._as_stored(np.array([*self._special_points], self.grid.lows.dtype))

    def _as_stored(self, points: NDArray) -> pa.Array:
        """Points of special values, which need not lie in any cell, in the declared type."""
        return self._emit(points, np.zeros(len(points), np.bool_))

    def _written(self, value: Any) -> str:
        """A special value as text."""
        if isinstance(value, str):
            return value
        point = np.array([self._point(value)], self.grid.lows.dtype)
        return self._as_stored(point).cast(pa.string())[0].as_py()

    def _marks(self, array: pa.Array, tokens: Sequence[str]) -> NDArray[np.intp]:
        """Which special value each entry is, −1 where none."""
        points, valid = self._read(array, tokens)
        marks = np.full(len(array), -1, np.intp)
        for point, at in self._special_points.items():
            marks[valid & (points == point)] = at
        if self._words and is_text(array.type):
            texts, index = distinct_texts(array)
            words = pc.index_in(pc.utf8_trim_whitespace(texts), texts_of(self._words))
            places = np.array([self.special.index(word) for word in self._words])
            found = np.where(valid_of(words), places[numpy_of(words)], -1)
            marks = np.where(valid, marks, np.append(found, -1)[index])
        return marks

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
        cut = self._cut
        if np.any(cut.lows > cut.highs):
            self._refuse(
                f"{self._cuts()} leaves a cell without any value; use fewer bins or wider edges"
            )
        if not len(self.grid):
            self._refuse("every value between its bounds is special; declare it as a category")

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
        require_known(facts, FACTS, f"column {self.name!r}: shape")
        parts = {key: facts.get(key, ()) for key in FACTS}
        kind, cut = int if self.grid.discrete else float, self._cut
        for key, part in parts.items():
            wanted = kind if key == "leaves" else int
            if not isinstance(part, (list, tuple)) or any(type(x) is not wanted for x in part):
                self._refuse(f"shape: {key} must be a list of {wanted.__name__}s")
            large = wanted is int and any(not -(2**63) <= x < 2**63 for x in part)
            if large or len(part) > _LONGEST[key]:
                self._refuse(f"shape: {key} has more than {_LONGEST[key]} values, or one too large")
        leaves, weights, decades, steps, rests, roundness = map(tuple, parts.values())
        known = {leaf: at for at, leaf in enumerate(leaves)}
        starts = [known.get(low, -1) for low in cut.lows.tolist()]
        high = cut.highs[-1].item()
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
            and all(left < after for left, after in pairwise(decades))
        )
        if not right:
            self._refuse("shape: its leaves do not nest in the cells of edges")
        told = given.told if isinstance(given, Shape) else ()
        if fault := Kinds(steps, rests).fault:
            self._refuse(f"shape: {fault}")
        rests = rests if any(rests) else ()
        inner = leaves, tuple(starts), weights, decades, steps, roundness, rests
        return Shape(self.edges, *inner, told=told)

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
        """The ordered cells, in the column's own points, without special values at their ends."""
        return self._cut.without([*self._special_points])

    @cached_property
    def _cut(self) -> Cells:
        """What bins or edges say, special values or not."""
        if self.edges is None:
            return self._even(self._point(self.lower), self._point(self.upper))
        points = [self._point(edge) for edge in self.edges]
        return Cells.starting(points[:-1], points[-1])

    @cached_property
    def bounds(self) -> NDArray[Any]:
        """Points between any two of which the code is the same, from one on to before the next."""
        special = np.array([*self._special_points], self.grid.lows.dtype)
        return np.unique(np.concatenate([self.grid.lows, special, _next(special)]))

    def by_interval(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Counts of codes as counts of all intervals that bins or edges name.

        Special values and null are left out; an interval of special values alone has none.
        """
        found = np.zeros(len(self._cut), np.asarray(counts).dtype)
        found[self._intervals] = np.asarray(counts)[: len(self.grid)]
        return found

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
        """How many bins, or values where each is its own cell, and special values."""
        return len(self.grid) + len(self.special)

    @property
    def apart(self) -> int:
        """Special values and null."""
        return len(self.special) + super().apart

    @property
    def ordered(self) -> bool:
        """Always: neighbouring codes are neighbouring intervals, but for the last `apart`."""
        return True

    def _cell_labels(self) -> list[str]:
        return [*self._ordered_labels(), *map(self._written, self.special)]

    def _ordered_labels(self) -> list[str]:
        ends = zip(self.grid.lows, self.grid.highs, strict=True)
        return ["..".join(self._show_point(x) for x in dict.fromkeys(pair)) for pair in ends]

    def _nearest(self, points: NDArray) -> NDArray:
        return self.grid.clip(points)

    def _cell(self, points: NDArray) -> NDArray[np.intp]:
        return self.grid.find(points)

    def _draw(self, cells: NDArray[np.intp], rng: Rng) -> NDArray:
        if self.shape is None:
            return self._ordinary(cells, self.grid.draw(cells, rng))
        return self._ordinary(cells, self.shape.draw(self._intervals[cells], rng))

    @cached_property
    def _intervals(self) -> NDArray[np.intp]:
        """The interval of every ordered cell: all but those of special values alone."""
        return self._cut.find(self.grid.lows)

    def quantiles(self, shares: Floats) -> NDArray[Any]:
        """For every ordered cell, the points below which these shares of its rows are drawn."""
        lows, highs = self.grid.lows[:, None], self.grid.highs[:, None]
        if self.shape is not None:
            return np.clip(self.shape.quantiles(self._intervals, shares), lows, highs)
        if self.grid.discrete:
            return np.minimum(lows + np.floor(shares * (highs - lows + 1.0)), highs)
        return lows + shares * (highs - lows)

    def uncertain(self, search: Search, shares: Floats) -> Floats:
        """For every ordered cell of these shares of rows, the deviation of its sum by the noise of a
        found shape, for one row; see `Shape.uncertain`.

        Where more rows are than were found, it is larger by as much, up to half of the cell.
        """
        width = (self.grid.highs - self.grid.lows).astype(np.float64)
        if self.shape is None:
            return np.zeros(len(width))
        found, own = self.shape.rows(self._intervals), self.shape.uncertain(self._intervals, search)
        ratio = np.divide(shares, found, out=np.full(len(width), inf), where=found > 0)
        own = np.where(own > 0, own * np.maximum(ratio, 1.0), 0.0)
        own = np.where(found > 0, own, shares * width)
        return np.minimum(own, shares * width / 2)

    def beyond(
        self, search: Search, shares: Floats
    ) -> tuple[tuple[float, float], tuple[float, float]]:
        """Below and above what was found: the share of rows that may lie there, and how far.

        The first and the last cell count what lies beyond them. Where they hold a larger share than was
        found in them, the rest may lie outside; see `Shape.beyond`.
        """
        if self.shape is None:
            return (0.0, 0.0), (0.0, 0.0)
        more = np.maximum(shares - shares.sum() * self.shape.rows(self._intervals), 0.0)
        ends = zip((more[0], more[-1]), self.shape.beyond(search), strict=True)
        (low, high) = ((min(float(rest), most), far) for rest, (most, far) in ends)
        return low, high

    def _encode(self, array: pa.Array, tokens: Sequence[str]) -> NDArray[np.unsignedinteger]:
        codes = super()._encode(array, tokens)
        if not self.special:
            return codes
        marks = self._marks(array, tokens)
        return np.where(marks < 0, codes, len(self.grid) + marks).astype(self.code_dtype)

    def decode(self, codes: NDArray[np.integer], rng: Rng) -> pa.Array:
        """One value for each code, special values as declared; see `Modelled.decode`."""
        if not self.special:
            return super().decode(codes, rng)
        codes = np.asarray(codes)
        marks = codes.astype(np.intp) - len(self.grid)
        special = (marks >= 0) & (marks < len(self.special))
        values = super().decode(np.where(special, 0, codes), rng)
        both = pa.concat_arrays([values.cast(self._specials.type), self._specials])
        places = np.where(special, len(codes) + marks, np.arange(len(codes)))
        return both.take(array_of(places)).cast(values.type)

    @property
    def wide(self) -> bool:
        """Whether some cell holds more than one value."""
        return bool((self.grid.lows < self.grid.highs).any())

    def arranged(self, values: pa.Array, codes: NDArray[np.integer], scores: NDArray) -> pa.Array:
        """Decoded values, exchanged between the rows of each cell so that scores are in their order."""
        at = np.flatnonzero(codes < len(self.grid))
        points = self._read(values, ())[0][at]
        places = np.arange(len(codes))
        places[at[np.lexsort((scores[at], codes[at]))]] = at[np.argsort(points, kind="stable")]
        return values.take(array_of(places))

    def _ordinary(self, cells: NDArray[np.intp], points: NDArray) -> NDArray:
        """Drawn points, moved inside their cells where they are special values."""
        if not self._special_points:
            return points
        return self._beside(np.clip(points, self.grid.lows[cells], self.grid.highs[cells]))

    def _beside(self, points: NDArray) -> NDArray:
        """The next points that are not special; the last one of a cell never is."""
        gone = np.array([*self._special_points], points.dtype)
        while (hit := np.isin(points, gone)).any():
            points = np.where(hit, _next(points), points)
        return points

    def _legal(self, array: pa.Array) -> Bools:
        legal = super()._legal(array)
        if not self.special or not same_stored(self.arrow_type, array.type):
            return legal
        marks = self._marks(array, ())
        own = identical(array, self._specials.take(array_of(np.maximum(marks, 0))))
        return np.where(marks < 0, legal, own)

    def _misfits(self, array: pa.Array, tokens: Sequence[str]) -> dict[str, Bools]:
        found = super()._misfits(array, tokens)
        if not self.special:
            return found
        fits = self._marks(array, tokens) >= 0
        return {key: mask & ~fits for key, mask in found.items()}

    @abstractmethod
    def _place(self, literal: Any) -> Fraction:
        """The literal among the points; WorkloadError if it has no place there."""

    def _literal(self, literal: Any) -> Fraction | str:
        """A point, or a special value that is a text."""
        return literal if literal in self._words else self._place(literal)

    def _compare(self, op: str, literals: Sequence[Any]) -> Masks:
        own, ordinary = self._chosen(op, literals)
        inner, outer = self.grid.compared(op, ordinary)
        return np.append(inner, own), np.append(outer, own)

    def _chosen(self, op: str, literals: Sequence[Any]) -> tuple[Bools, list[Fraction]]:
        """Which special values satisfy it, and the literals that ordinary ones are compared with."""
        own = np.zeros(len(self.special), np.bool_)
        if op != "in":
            if isinstance(literals[0], str):
                self._misuse(
                    f"{literals[0]!r} is a special value, which is on no side of another; compare it "
                    "by = or in"
                )
            return own, [*literals]
        places: dict[Any, int] = {word: self.special.index(word) for word in self._words}
        places |= self._special_points

        def place(literal: Any) -> int | None:
            nearest = isinstance(literal, Fraction) and not self.grid.discrete
            return places.get(self._point(float(literal)) if nearest else literal)

        own[[at for literal in literals if (at := place(literal)) is not None]] = True
        return own, [literal for literal in literals if place(literal) is None]

    def _satisfied(self, op: str, literals: Sequence[Any], array: pa.Array) -> Bools:
        own, ordinary = self._chosen(op, literals)
        points, valid = self._read(array, self.null_values)
        points = np.where(valid, self.grid.clip(points), self.grid.lows[0])
        holds = Cells(points, points).compared(op, ordinary)[0]
        if not self.special:
            return holds
        marks = self._marks(array, self.null_values)
        return np.where(marks < 0, holds, own[marks])


def decoded(
    columns: Sequence[Modelled],
    codes: Mapping[str, NDArray[np.integer]],
    rng: Rng,
    scores: Mapping[str, NDArray],
) -> dict[str, pa.Array]:
    """The values of those columns whose codes are given, by name, drawn in the order of the columns.

    Those of a cell are in the order of `scores`, where there are any for a column.
    """
    arrays = {c.name: c.decode(codes[c.name], rng) for c in columns if c.name in codes}
    for column in columns:
        name = column.name
        if isinstance(column, Binned) and name in scores:
            arrays[name] = column.arranged(arrays[name], codes[name], scores[name])
    return arrays


def _next(points: NDArray, step: int = 1) -> NDArray:
    """The points beside these, upwards or downwards."""
    return points + step if points.dtype.kind == "i" else np.nextafter(points, step * inf)


def keys(points: NDArray[Any]) -> Whole:
    """Whole numbers in the order of the points, neighbours one apart: for doubles, their place."""
    if points.dtype.kind == "i":
        return points.astype(np.int64)
    bits = (np.asarray(points, np.float64) + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def doubles(found: Whole) -> Floats:
    """What `keys` made whole numbers of."""
    return np.where(found < 0, np.int64(-(2**63)) - found, found).view(np.float64)


def largest(points: Whole) -> int:
    """The largest absolute value, exactly: int64 cannot hold that of its own lowest."""
    return max(int(points.max()), -int(points.min())) if len(points) else 0


def decimals_from_units(units: Whole, type_: pa.DataType, null: Bools) -> pa.Array:
    """Decimals `units / 10^scale` from their unscaled integers; ValueError if one does not fit."""
    if largest(units) >= 10**type_.precision:
        raise ValueError("a value has more digits than the type")
    words = np.empty((len(units), 2), np.int64)
    words[:, 0], words[:, 1] = units, units >> 63
    valid = pa.py_buffer(np.packbits(~null, bitorder="little").tobytes())
    return pa.Array.from_buffers(type_, len(units), [valid, pa.py_buffer(words.tobytes())])


def _show(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)
