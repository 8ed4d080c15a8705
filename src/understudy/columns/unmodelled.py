"""Columns without codes: identifiers, free text, and columns whose facts or domains are missing.

The domain of an `Undeclared` column is found privately by the release itself, inside its ε.
`values = "discover"` lists the values that many hold; `bins = {quantiles = 16}` cuts a column between
public bounds into cells of about as many rows each; `bins = "shape"`, which a number without bins or
edges means as well, finds its cells and how values lie inside them (`columns.ladder`). A release first
spends a public part of its budget on them, and goes on with the columns that come of it.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, inf, nextafter
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from understudy._types import Bools, Whole
from understudy.columns.base import MOST_CELLS, Column, Modelled, is_whole
from understudy.columns.binned import Binned
from understudy.columns.category import Category, checked_prefixes, is_parent
from understudy.columns.estimate import learned, told
from understudy.columns.ladder import Measured, Scale, rounds
from understudy.columns.numeric import Integer, Number
from understudy.columns.reading import flat, is_text, writes_text
from understudy.columns.roundness import Roundness
from understudy.columns.shape import Shape
from understudy.columns.temporal import Date, Datetime
from understudy.errors import WorkloadError

DROP = "drop"
DISCOVER = "discover"
SHAPE = "shape"
MOST_BINS = 48
"""The most cells that a shape is given, without those that rules ask for."""
_LIGHT = 0.5  # standard deviations of the first level: rows that make no cell of their own
_DIGITS = 12
_FARTHEST, _NARROWEST = 10**18, 1e-100  # bounds that a shape is sought between
_FINE = 16
_MOST_FINE = 1024
_FIELD = re.compile(r"\{(?::0?\d*d?)?\}")


@dataclass(frozen=True)
class Identifier(Column):
    """A column that names single people or things: never modelled, never read.

    `action = "drop"` leaves it out of the output. Any other action is a pattern with one number
    in braces, such as "P-{:06d}" or "{}", which writes fresh ids 1, 2, 3, ... that have nothing
    to do with the original ones.
    """

    kind: ClassVar[str] = "identifier"

    action: str = DROP

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.action, str):
            self._refuse(
                f'action = {self.action!r} must be "drop" or a pattern such as "P-{{:06d}}"'
            )
        if self.dropped:
            return
        if len(_FIELD.findall(self.action)) != 1 or re.search(r"[{}]", _FIELD.sub("", self.action)):
            self._refuse(
                f'action = {self.action!r} must be "drop" or hold one number in braces, '
                'such as action = "P-{:06d}"'
            )
        if pa.types.is_integer(self.arrow_type) and _FIELD.fullmatch(self.action) is None:
            self._refuse(
                f"action = {self.action!r} does not write an integer as dtype = {self.dtype!r} "
                'asks; use action = "{}", or dtype = "string"'
            )

    @property
    def dropped(self) -> bool:
        """Whether the output leaves the column out."""
        return self.action == DROP

    def _accepts(self, type_: pa.DataType) -> bool:
        return self.dropped or pa.types.is_integer(type_) or writes_text(type_)

    def generate(self, rows: int, first: int = 1) -> pa.Array:
        """Fresh ids for `rows` rows: the pattern with first, first + 1, ..."""
        texts = [self.action.format(i) for i in range(first, first + rows)]
        return pa.array(texts, pa.string()).cast(self.arrow_type)

    def legal(self, array: pa.Array | pa.ChunkedArray) -> Bools:
        """Whether each entry is one the pattern writes and nobody else has."""
        texts = [text for chunk in flat(array) for text in chunk.cast(pa.string()).to_pylist()]
        head, tail = (re.escape(part) for part in _FIELD.split(self.action))
        form = re.compile(f"{head}\\d+{tail}")
        first = {text: row for row, text in reversed(list(enumerate(texts)))}
        fits = (
            t is not None and form.fullmatch(t) and first[t] == at for at, t in enumerate(texts)
        )
        return np.fromiter(map(bool, fits), np.bool_, len(texts))


@dataclass(frozen=True)
class Text(Column):
    """Free text: never modelled, never read, left out of the output."""

    kind: ClassVar[str] = "text"
    held_by = (is_text,)


@dataclass(frozen=True)
class Incomplete(Column):
    """A column of some type whose domain nobody has stated yet, as an import can leave it.

    `wanted` is the type it will have, `missing` the facts to fill in, `facts` those known so far.
    """

    kind: ClassVar[str] = "incomplete"

    wanted: str = ""
    missing: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("missing", self._texts("missing", self.missing))


@dataclass(frozen=True)
class Undeclared(Column, ABC):
    """A column whose domain is not declared; a release resolves it."""

    @property
    def _common(self) -> dict[str, Any]:
        """What is known of it already."""
        return {"dtype": self.dtype, "nullable": self.nullable, "null_values": self.null_values}

    @abstractmethod
    def largest(self) -> Modelled:
        """The largest column that may come of it; what is planned for this holds for any."""

    @abstractmethod
    def admits(self, closed: Modelled) -> bool:
        """Whether that column may have come of it."""


@dataclass(frozen=True)
class Level:
    """Which texts of a column are asked about: those that earlier levels have not taken.

    `length` is how many first characters of them, 0 for whole texts; shorter texts take no part.
    `taken` are pairs of a length and of what earlier levels have found with it. All of it is public.
    """

    length: int = 0
    taken: tuple[tuple[int, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class UndeclaredCategory(Undeclared):
    """Texts of which nobody can list the values: those that many people hold are found privately.

    At most `max_values` of them, the commonest; all others become `other`. With `prefixes` = (3, 1),
    what remains is sought once more by its first three characters, then by its first one: parents such
    as "250*", to which rare codes fall before they become `other`. Each level may use half of the room
    that is left, the last one all of it.
    """

    kind: ClassVar[str] = "category"
    held_by = (writes_text,)

    values: str = field(default="", kw_only=True)
    other: str = "OTHER"
    max_values: int = 64
    prefixes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.prefixes != ():
            self._set("prefixes", checked_prefixes(self, self.prefixes))
        if self.values != DISCOVER:
            self._refuse(f'values = {self.values!r} must be a list, or "{DISCOVER}"')
        if not is_whole(self.max_values, 1, MOST_CELLS - 1):
            most = self.max_values
            self._refuse(f"max_values = {most!r} must be a whole number from 1 to {MOST_CELLS - 1}")
        if self.other is True:
            self._set("other", "OTHER")
        if not isinstance(self.other, str) or not self.other:
            self._refuse(
                f"other = {self.other!r} must be the text that stands for every value that is not "
                'found; other = "OTHER" is usual'
            )
        if is_parent(self.other, self.prefixes):
            self._refuse(f"other = {self.other!r} looks like a parent; name another text")
        if self.max_values < 2 ** len(self.prefixes):
            self._refuse(
                f"max_values = {self.max_values} is too few for values and {len(self.prefixes)} "
                f"levels of prefixes; allow at least {2 ** len(self.prefixes)}"
            )
        super().__post_init__()
        self.check_nulls(self.null_values)

    def largest(self) -> Category:
        """As many values as may be found."""
        return self.found([f"value {i + 1}" for i in range(self.max_values)])

    def check_nulls(self, texts: Sequence[str]) -> None:
        """Refuse, before anything is found, a text for null that may be found as a parent."""
        for text in texts:
            if is_parent(text, self.prefixes):
                self._refuse(f"{text!r} stands for null and looks like a parent; take one of them")

    @property
    def levels(self) -> tuple[int, ...]:
        """The lengths that values are sought by, 0 for whole texts first."""
        return (0, *self.prefixes)

    def most(self, found: Sequence[Sequence[str]]) -> int:
        """How many values the next level may keep, after those that earlier levels have found."""
        left = self.max_values - sum(map(len, found))
        return left if len(found) == len(self.prefixes) else -(-left // 2)

    def kept(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Whole texts that can be values: none that stands for all others, or for a parent."""
        return tuple(t for t in texts if t != self.other and not is_parent(t, self.prefixes))

    def level(self, found: Sequence[Sequence[str]]) -> Level:
        """What the next level asks about."""
        taken = [(length, tuple(texts)) for length, texts in zip(self.levels, found, strict=False)]
        if taken:  # what says OTHER is OTHER
            taken[0] = (0, (*taken[0][1], self.other))
        return Level(self.levels[len(found)], tuple(taken))

    def found(self, texts: Sequence[str], *beginnings: Sequence[str]) -> Category:
        """The column with what was found, level after level, in the order of the alphabet."""
        parents = {f"{text}*" for level in beginnings for text in level}
        kept = sorted({*self.kept(texts), *parents})[: self.max_values]
        if not kept:  # nothing that many hold: one value for all
            return Category(self.name, (self.other,), **self._common)
        prefixes = self.prefixes if parents else ()
        return Category(self.name, tuple(kept), self.other, prefixes=prefixes, **self._common)

    def admits(self, closed: Modelled) -> bool:
        """Texts that could have been found."""
        if not isinstance(closed, Category):
            return False
        texts = [str(value) for value in closed.values]
        found = [self.kept(texts)]
        for length in self.prefixes:
            found.append(tuple(text[:length] for text in texts if is_parent(text, (length,))))
        room = all(len(level) <= self.most(found[:at]) for at, level in enumerate(found))
        return room and closed == self.found(*found)


@dataclass(frozen=True)
class UndeclaredOrdered(Undeclared):
    """An ordered column whose cells are found privately.

    `wanted` is its type, `facts` what else is declared of it.
    """

    said: ClassVar[str]
    """How a schema file asks for it."""

    wanted: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.facts.get("edges") is not None:
            self._refuse("bins and edges are both given; keep one of them")
        self._set("dtype", self._example.dtype)
        self.largest()
        super().__post_init__()

    @cached_property
    @abstractmethod
    def _example(self) -> Binned:
        """A column of this type between some bounds; checks everything else that is declared."""

    def _made(self, **cuts: Any) -> Binned:
        kinds: dict[str, type[Binned]] = {k.kind: k for k in (Integer, Number, Date, Datetime)}
        if self.wanted not in kinds:
            self._refuse(f"{self.said} is for ordered columns, not {self.wanted!r}")
        own = {k: v for k, v in self.facts.items() if k not in ("lower", "upper")}
        return kinds[self.wanted](self.name, **{**own, **self._common, **cuts})


@dataclass(frozen=True)
class UndeclaredBins(UndeclaredOrdered):
    """An ordered column between public bounds, to be cut at private quantiles: so many cells."""

    kind: ClassVar[str] = "quantiles"
    said: ClassVar[str] = "bins = {quantiles = …}"

    quantiles: int = 0

    def __post_init__(self) -> None:
        if not is_whole(self.quantiles, 2, 256):
            self._refuse(
                f"bins = {{quantiles = {self.quantiles!r}}} must be a whole number from 2 to 256, "
                "such as bins = {quantiles = 16}"
            )
        super().__post_init__()

    @cached_property
    def _example(self) -> Binned:
        bounds = {key: self.facts.get(key) for key in ("lower", "upper")}
        for key, bound in bounds.items():
            if bound is None:
                self._refuse(f"{key} is missing; quantiles are found between public bounds")
        return self._made(**bounds, bins=2)

    def _even(self, cells: int) -> list[Any]:
        """Edges of about equal width, fewer where there are fewer values."""
        low, high = self._example.lower, self._example.upper
        decimals = self.facts.get("decimals")

        def at(i: int) -> Any:
            if isinstance(low, datetime):
                whole = int((high - low).total_seconds())
                unit = 86_400 if whole >= 86_400 * cells else 1
                return low + timedelta(seconds=whole * i // cells // unit * unit)
            if isinstance(low, date):
                return low + timedelta(days=(high - low).days * i // cells)
            if isinstance(low, int):
                return low + (high - low) * i // cells
            exact = low + (high - low) * i / cells
            return exact if decimals is None else round(exact, decimals)

        inner = sorted({at(i) for i in range(1, cells)} - {low, high})
        return [low, *inner, high]

    def fine(self) -> Binned:
        """The column cut into many narrow cells, whose noisy counts tell the quantiles."""
        return self._made(edges=tuple(self._even(min(_MOST_FINE, _FINE * self.quantiles))))

    def largest(self) -> Binned:
        """As many cells as may come of it."""
        return self._made(edges=tuple(self._even(self.quantiles)))

    def found(self, counts: Whole) -> Binned:
        """The column cut where the noisy counts of the cells of `fine` reach the quantiles.

        Post-processing. The noisy sums up to each edge are made to grow, by the mean of the least
        growing sums above and the greatest below them, which favours neither side.
        """
        edges = self.fine().edges
        assert edges is not None
        sums = np.cumsum(np.asarray(self.fine().by_interval(counts), np.float64))
        above, below = np.maximum.accumulate(sums), np.minimum.accumulate(sums[::-1])[::-1]
        reached = (above + below) / 2
        if reached[-1] <= 0:
            return self.largest()
        wanted = reached[-1] * np.arange(1, self.quantiles) / self.quantiles
        # The edge whose count is nearest to the quantile.
        right = np.searchsorted(reached, wanted)
        left = np.maximum(right - 1, 0)
        nearer = np.abs(reached[left] - wanted) <= np.abs(reached[right] - wanted)
        cuts = sorted({int(i) + 1 for i in np.where(nearer, left, right)})
        inner = [edges[i] for i in cuts if 0 < i < len(edges) - 1]
        return self._made(edges=(edges[0], *inner, edges[-1]))

    def admits(self, closed: Modelled) -> bool:
        """Cut at edges that quantiles may have been put at."""
        if not isinstance(closed, Binned) or closed.edges is None:
            return False
        fitting = {*(self.fine().edges or ()), *(self.largest().edges or ())}
        few = len(closed.edges) <= self.quantiles + 1
        return few and fitting.issuperset(closed.edges) and closed == self._made(edges=closed.edges)


@dataclass(frozen=True)
class UndeclaredShape(UndeclaredOrdered):
    """An ordered column whose cells, and how values lie inside them, are found privately.

    Bounds among its `facts` may be close or loose, or missing.
    """

    kind: ClassVar[str] = "shape"
    said: ClassVar[str] = 'bins = "shape"'

    @cached_property
    def _example(self) -> Binned:
        bounds = {key: self.facts.get(key) for key in ("lower", "upper")}
        if None in bounds.values() or self.wanted in ("integer", "number"):
            bounds = _SOME_NUMBERS if self.wanted in ("integer", "number") else _SOME_DAYS
        found = self._made(**bounds, bins=1)
        if found.dtype == "float16":
            self._refuse('dtype = "float16" is too coarse for a shape; use float32, or edges')
        return found

    @cached_property
    def scale(self) -> Scale:
        """Which points there are, between public bounds or as far as is looked."""
        made, bounds = self._example, {}
        for key, limit in zip(("lower", "upper"), _limits(made.arrow_type), strict=True):
            stated = self.facts.get(key)
            bounds[key] = limit if stated is None else made._bound(key, stated)
            if (
                stated is not None
                and isinstance(made, Integer | Number)
                and abs(stated) > _FARTHEST
            ):
                self._refuse(
                    f"{key} = {stated} is beyond {_FARTHEST:g}, which is as far as a shape is sought; "
                    "leave it out, or cut the column by edges"
                )
        calendar = made._tick if isinstance(made, Date | Datetime) else None
        decimals = made.decimals if isinstance(made, Number) else 0
        grid = None if decimals is None else Fraction(1, 10**decimals)
        found = Scale(**bounds, grid=grid, calendar=calendar)
        if not found.discrete and found.low < found.high < found.low + _NARROWEST:
            self._refuse(f"its bounds lie closer than {_NARROWEST:g}; cut it by bins or edges")
        if found.low >= found.high:
            if None not in bounds.values():
                self._made(**bounds, bins=1)  # says so
            self._refuse(f"{self.facts} lies beyond all that is looked at; declare both bounds")
        return found

    @property
    def open_ends(self) -> tuple[bool, bool]:
        """Whether its least value is to be found as well, and its largest: no bound or type says it."""
        return self.scale.lower is None, self.scale.upper is None

    def level(self, edges: Sequence[Any]) -> Binned:
        """The column cut at the edges of a level, to be counted; the last may be beyond its type."""
        made = self._example
        reads = isinstance(made, Datetime) and made._zoned
        known = {"decimals": made.decimals} if isinstance(made, Number) else {}
        return self._made(edges=tuple(edges), dtype=made.dtype if reads else "", **known)

    @cached_property
    def rounds(self) -> Roundness | None:
        """The column by how round its values are; None where every value is as round as another."""
        found = rounds(self.scale)
        return None if found is None else Roundness.of(self.level(found.edges), found.kinds)

    def _edges(self, compared: Sequence[tuple[str, Any]]) -> list[Any]:
        """The points at which a cell must begin, for comparisons with public values to cut none."""
        found: set[Any] = set()
        for op, literal in compared:
            try:
                point = self._example._literal(literal)
            except WorkloadError:
                continue  # whoever reads the comparison says what is wrong with it
            special = op in ("=", "!=") and not self._example._chosen("in", [point])[1]
            if special or isinstance(point, str):
                continue  # a special value is its own cell
            at, after = ceil(point), floor(point) + 1
            if not self.scale.discrete:
                at, after = float(point), nextafter(float(point), inf)
            found |= {at} if op in ("<", ">=") else {after} if op in ("<=", ">") else {at, after}
        return sorted(point for point in found if self.scale.low < point <= self.scale.high)

    def largest(self, compared: Sequence[tuple[str, Any]] = (), most: int = MOST_BINS) -> Binned:
        """As many cells as may come of it, cut where it is compared with public values as well."""
        scale = self.scale
        low, high = scale.low, scale.high
        at = [low + (high - low) * i // most for i in range(1, most)]
        if not scale.discrete:
            at = np.linspace(low, high, most + 1)[1:-1].tolist()
        inner = {*at, *self._edges(compared)}
        inner = sorted(point for point in inner if low < point < high)
        return self._made(edges=tuple(scale.own(point) for point in (low, *inner, high)))

    def found(
        self,
        history: Sequence[Measured],
        roundness: Measured | None,
        compared: Sequence[tuple[str, Any]] = (),
    ) -> Binned:
        """The column that released counts tell of, with edges where it is compared. Post-processing."""
        rows = max(1.0, float(np.sum(history[0].counts)))
        cuts = [self.scale.own(point) for point in self._edges(compared)]
        shape = learned(self.scale, history, roundness, rows, cuts)
        least = _LIGHT * history[0].sigma / rows * sum(shape.weights)
        shape = _joined(shape, MOST_BINS + len(cuts), least, cuts)
        shape = self._with_values(self._storable(shape, cuts))
        shape = replace(shape, told=told(self.scale, history, shape.edges))
        return self._made(edges=shape.edges, shape=shape)

    def _with_values(self, shape: Shape) -> Shape:
        """The shape, wider by a value where all that it holds are special values."""
        if not self.scale.discrete:
            return shape
        special = self._example._special_points
        low, high = (self.scale.point(shape.edges[at]) for at in (0, -1))
        if high - low >= len(special) or any(p not in special for p in range(low, high + 1)):
            return shape
        while high in special and high < self.scale.high:
            high += 1
        while high in special and low in special:
            low -= 1
        return replace(
            shape,
            edges=(self.scale.own(low), *shape.edges[1:-1], self.scale.own(high)),
            leaves=(low, *shape.leaves[1:-1], high + 1),
        )

    def _storable(self, shape: Shape, kept: Sequence[Any]) -> Shape:
        """The shape without cells that lie between two neighbours of a narrow float type.

        An edge that is `kept` stays: two of them so close are refused when the column is declared.
        """
        made = self._example
        if not isinstance(made, Number) or made.decimals is not None or made.dtype == made.usual:
            return shape
        up = made._narrow(np.array(shape.edges), inf).astype(np.float64)
        starts, edges = list(shape.starts), list(shape.edges)
        for at in range(len(edges) - 2, 0, -1):  # the cell from this edge, or the one before it
            empty = up[at] == up[at + 1] if at < len(edges) - 2 else up[at] > edges[-1]
            if (empty or up[at - 1] == up[at]) and edges[at] not in kept:
                del starts[at], edges[at]
                up = np.delete(up, at)
        leaves, weights = shape.leaves, shape.weights
        if len(starts) > 1 and up[0] == up[1]:  # up to a kept edge nothing can be stored
            gone = starts[1]
            leaves, weights, edges = leaves[gone:], weights[gone:], edges[1:]
            starts, up = [start - gone for start in starts[1:]], up[1:]
        if len(starts) > 1 and up[-2] > edges[-1]:  # nor from one on
            gone = starts.pop()
            leaves, weights, edges = leaves[: gone + 1], weights[:gone], edges[:-1]
        if up[0] > edges[-1]:
            edges[-1] = min(float(up[0]), self.scale.high)
            edges[0] = min(edges[0], float(made._narrow(np.array(edges[-1:]), -inf)[0]))
            leaves = (edges[0], *leaves[1:-1], nextafter(edges[-1], inf))
        return Shape(tuple(edges), leaves, tuple(starts), weights)

    def admits(self, closed: Modelled) -> bool:
        """A shape between the bounds."""
        if not isinstance(closed, Binned) or closed.edges is None or closed.shape is None:
            return False
        low, high = (self.scale.point(closed.edges[at]) for at in (0, -1))
        within = self.scale.low <= low < high <= self.scale.high
        return within and closed == self._made(edges=closed.edges, shape=closed.shape)


def _joined(shape: Shape, most: int, least: float, kept: Sequence[Any]) -> Shape:
    """The shape in fewer cells; edges that are `kept` stay.

    A cell lighter than `least`, such as the gap behind a heavy value, says nothing to a model: it joins
    the cell before it, the first one the next. Then the lightest neighbours join until `most` are left.
    """
    starts, edges = list(shape.starts), list(shape.edges)
    reached = np.concatenate([[0], np.cumsum(shape.weights)])
    while len(starts) > 1:
        mass = np.diff(reached[[*starts, -1]])
        free = [at for at in range(1, len(starts)) if edges[at] not in kept]
        light = [at for at in free if mass[at] < least or (at == 1 and mass[0] < least)]
        if not light and (len(starts) <= most or not free):
            break
        at = light[0] if light else min(free, key=lambda at: mass[at - 1] + mass[at])
        del starts[at], edges[at]
    return replace(shape, starts=tuple(starts), edges=tuple(edges))


_SOME_NUMBERS = {"lower": 0, "upper": 9}
_SOME_DAYS = {"lower": "2000-01-01", "upper": "2001-01-01"}


def _limits(type_: pa.DataType) -> tuple[Any, Any]:
    """What a type can hold, where that is less than is looked at."""
    if pa.types.is_integer(type_):
        bits, signed = type_.bit_width, pa.types.is_signed_integer(type_)
        if bits <= 32:
            return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        return None if signed else 0, None
    if pa.types.is_decimal(type_) and type_.precision - type_.scale < _DIGITS:
        most = (10**type_.precision - 1) / 10**type_.scale
        return -most, most
    return None, None
