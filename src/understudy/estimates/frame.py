"""Weighted cells as a statistic sees them: numbers, conditions, groups; and what bins hide of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod, sqrt

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Clique, Floats
from understudy.columns.reading import pc
from understudy.columns.shape import Search
from understudy.constraints.predicate import Predicate
from understudy.errors import WorkloadError
from understudy.estimates.inner import Heaps, Inner, inner, lines, rounded
from understudy.estimates.points import Points
from understudy.models import View
from understudy.schema import Schema

MOST_CELLS = 5_000_000
"""Cells of the columns of one condition."""
_DRAWS = 100_000

_TO_THE_MEAN = 1 / sqrt(3)
"""A steepness of s moves the mean of a cell by w·s/6, which is s/√3 of its deviation w/√12."""


@dataclass(frozen=True, eq=False)
class Condition:
    """A predicate as the share of every cell of its columns that satisfies it."""

    text: str
    clique: Clique
    share: Floats
    heaped: Mapping[tuple[int, int], Floats] = field(default_factory=dict)
    """The same where all values of a column are multiples of a step, by both."""

    @cached_property
    def cut(self) -> bool:
        """Whether it cuts through cells."""
        return bool(np.any((self.share > 0) & (self.share < 1)))


def condition(text: str, schema: Schema) -> Condition:
    """Read a predicate; of a cell that it cuts, the share by values as they are decoded.

    Raises:
        WorkloadError: With a caret under the place.
    """
    predicate = Predicate.parse(text, schema)
    clique = predicate.clique
    if prod(schema.shape[i] for i in clique) > MOST_CELLS:
        names = ", ".join(schema.modelled[i].name for i in clique)
        raise WorkloadError(
            f"the condition {text!r} is about {len(clique)} columns ({names}) with more than "
            f"{MOST_CELLS:,} cells; name fewer columns"
        )
    inside, outside = predicate.cells()
    share = inside.astype(np.float64)
    cut = np.argwhere(outside & ~inside)
    if not len(cut):
        return Condition(text, clique, share)
    many = int(np.clip(_DRAWS // len(cut), 16, 4_096))
    rng = np.random.default_rng(0)
    columns = [schema.modelled[i] for i in clique]
    arrays = {
        column.name: column.decode(np.repeat(cut[:, k], many), rng)
        for k, column in enumerate(columns)
    }

    def satisfied(arrays: dict[str, pa.Array]) -> Floats:
        for name, derived in schema.derived.items():
            if set(derived.names) <= set(arrays):
                arrays = arrays | {name: derived.computed(arrays)}
        found = share.copy()
        held = predicate.rows(pa.table(arrays)).reshape(len(cut), many)
        found[tuple(cut.T)] = held.mean(axis=1)
        return found

    heaped: dict[tuple[int, int], Floats] = {}
    for k, column in enumerate(columns):
        for step in Heaps.of(column, np.ones(column.size)).steps:
            drawn = arrays[column.name]
            cells = np.minimum(cut[:, k], len(rounded(column, step, 1)) - 1)
            values = rng.permuted(rounded(column, step, many)[cells], axis=1).reshape(-1)
            there = pa.array(~np.isnan(values) & np.repeat(cells == cut[:, k], many))
            whole = pa.array(np.nan_to_num(values).astype(np.int64)).cast(drawn.type)
            heaped[clique[k], step] = satisfied(
                arrays | {column.name: pc.if_else(there, whole, drawn)}
            )
    return Condition(text, clique, satisfied(arrays), heaped)


@dataclass(frozen=True, eq=False)
class Source:
    """Something that cells hide: a number's place in its bin, or who satisfies a condition.

    `cells` are those that hide it, for every point. A nudge of one deviation is wrong by at most
    `bias` of it in each cell, and by a noise of `noise` of it over the share of the cell.
    """

    key: int | Condition
    cells: NDArray[np.int64]
    bias: Floats
    noise: Floats


@dataclass(frozen=True, eq=False)
class Frame:
    """Points with their numbers. `nudged` moves one source by so many deviations, for derivatives."""

    points: Points
    numbers: Mapping[int, Inner]
    steep: Mapping[int, Floats]
    """How steep what `numbers` miss of densities inside the cells of every column may be."""
    nudged: tuple[int | Condition, float] | None = None
    stretched: tuple[int, int, float] | None = None
    """A column, one of its cells, and how far the mean of this is moved."""
    heaps: Mapping[int, Heaps] = field(default_factory=dict)
    """Of every column whose bins may hold round numbers."""
    rounded: tuple[int, int] | None = None
    """A column, and at multiples of which step its values stand, as far as they may."""

    @classmethod
    def of(
        cls,
        points: Points,
        schema: Schema,
        model: View,
        numbers: Clique,
        searches: Mapping[int, Search],
    ) -> Frame:
        """With the numbers of some columns; `searches` found shapes, with noise in shares of rows."""
        columns = {i: schema.modelled[i] for i in points.columns}
        shares = {i: model.marginal((i,)) for i in columns}
        told = {i: lines(column, shares[i]) for i, column in columns.items()}
        held = {i: inner(columns[i], told[i][0], searches.get(i), shares[i]) for i in numbers}
        # Conditions are of even values.
        steep = {i: s if i in numbers else s + np.abs(slopes) for i, (slopes, s) in told.items()}
        heaps = {i: Heaps.of(column, shares[i]) for i, column in columns.items()}
        return cls(points, held, steep, heaps={i: each for i, each in heaps.items() if each.steps})

    def __len__(self) -> int:
        return len(self.points)

    def codes(self, column: int) -> NDArray[np.int64]:
        """Of every point."""
        return self.points.codes[self.points.columns.index(column)]

    def there(self, column: int) -> NDArray[np.bool_]:
        """Which points have a number."""
        return self.codes(column) < len(self.numbers[column])

    def number(self, column: int) -> Floats:
        """The mean of every point's cell; 0 where there is no number."""
        held, codes, there = self.numbers[column], self.codes(column), self.there(column)
        values = held.mean
        if self.nudged is not None and self.nudged[0] == column:
            values = values + self.nudged[1] * held.deviation
        if self.stretched is not None and self.stretched[0] == column:
            values = values.copy()
            values[self.stretched[1]] += self.stretched[2]
        return np.where(there, np.append(values, 0.0)[np.minimum(codes, len(held))], 0.0)

    def variance(self, column: int) -> Floats:
        """Inside every point's cell; 0 where there is no number."""
        held, codes = self.numbers[column], self.codes(column)
        return np.append(held.deviation**2, 0.0)[np.minimum(codes, len(held))]

    def below(self, column: int, point: float) -> Floats:
        """The share of every point's cell that is at most a number; 0 where there is none."""
        held = self.numbers[column]
        shares = self._moved(column, held.below(point))
        return np.append(shares, 0.0)[np.minimum(self.codes(column), len(held))]

    def share(self, condition: Condition) -> Floats:
        """The share of every point's cell that satisfies a condition."""
        shares = self._moved(condition, condition.share)
        if self.rounded is not None and self.rounded in condition.heaped:
            much = self.heaps[self.rounded[0]].share
            shares = (1 - much) * shares + much * condition.heaped[self.rounded]
        return shares[tuple(self.codes(i) for i in condition.clique)]

    def _moved(self, key: int | Condition, shares: Floats) -> Floats:
        if self.nudged is None or self.nudged[0] != key:
            return shares
        return shares + self.nudged[1] * np.sqrt(shares * (1 - shares))

    def moved(self, source: Source, by: float) -> Frame:
        """With one source moved by so many deviations."""
        return replace(self, nudged=(source.key, by))

    def heaped(self, schema: Schema, conditions: tuple[Condition, ...]) -> list[list[Frame]]:
        """For every column that matters, this with its values at multiples of each of its steps."""
        found: list[list[Frame]] = []
        for i, heaps in self.heaps.items():
            inner, column = self.numbers.get(i), schema.modelled[i]
            if inner is not None:
                moved = [inner.heaped(column, step, heaps.share) for step in heaps.steps]
                held = [{**self.numbers, i: each} for each in moved]
            elif any((i, heaps.steps[0]) in each.heaped for each in conditions):
                held = [self.numbers for _ in heaps.steps]
            else:
                continue
            found.append(
                [
                    replace(self, numbers=numbers, rounded=(i, step))
                    for numbers, step in zip(held, heaps.steps, strict=True)
                ]
            )
        return found

    def ends(self) -> list[tuple[int, int, float]]:
        """Cells at the ends of what was found, of every number, and by how much all beyond moves their
        sum, for one row."""
        return [
            (i, cell, by)
            for i, held in self.numbers.items()
            for cell, by in ((0, -held.beyond[0]), (len(held) - 1, held.beyond[1]))
            if by
        ]

    def sources(self, conditions: tuple[Condition, ...]) -> list[Source]:
        """Everything that cells hide of these numbers and conditions."""
        found: list[Source] = []
        for i, held in self.numbers.items():
            if np.any(held.deviation > 0):
                codes = np.minimum(self.codes(i), len(held))
                bias = self.steep[i][: len(held)] * held.loose * _TO_THE_MEAN
                found.append(Source(i, codes, np.append(bias, 0.0), np.append(held.relative, 0.0)))
        for each in conditions:
            if each.cut:
                sizes = each.share.shape
                cells = np.ravel_multi_index(tuple(self.codes(i) for i in each.clique), sizes)
                steep = np.zeros(sizes)
                for axis, i in enumerate(each.clique):
                    extent = np.ones(len(sizes), int)
                    extent[axis] = sizes[axis]
                    steep = np.maximum(steep, self.steep[i].reshape(extent))
                bias = steep * np.sqrt(each.share * (1 - each.share))
                found.append(Source(each, cells, bias.reshape(-1), np.zeros(bias.size)))
        return found
