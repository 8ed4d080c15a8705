"""Weighted cells as a statistic sees them: numbers, conditions, groups; and what bins hide of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod, sqrt

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Clique
from understudy.columns.shape import Search
from understudy.constraints.predicate import Predicate
from understudy.errors import WorkloadError
from understudy.estimates.inner import Inner, inner, lines
from understudy.estimates.points import Points
from understudy.models import View
from understudy.schema import Schema

MOST_CELLS = 5_000_000
"""Cells of the columns of one condition."""
_DRAWS = 100_000

_TO_THE_MEAN = 1 / sqrt(3)
"""A steepness of s moves the mean of a cell by w·s/6, which is s/√3 of its deviation w/√12."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Condition:
    """A predicate as the share of every cell of its columns that satisfies it."""

    text: str
    clique: Clique
    share: Floats

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
    if len(cut):
        many = int(np.clip(_DRAWS // len(cut), 16, 4_096))
        rng = np.random.default_rng(0)
        arrays: dict[str, pa.Array] = {}
        for k, i in enumerate(clique):
            column = schema.modelled[i]
            arrays[column.name] = column.decode(np.repeat(cut[:, k], many), rng)
        for name, derived in schema.derived.items():
            if set(derived.names) <= set(arrays):
                arrays[name] = derived.computed(arrays)
        held = predicate.rows(pa.table(arrays)).reshape(len(cut), many)
        share[tuple(cut.T)] = held.mean(axis=1)
    return Condition(text, clique, share)


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
        return cls(points, held, steep)

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
        return shares[tuple(self.codes(i) for i in condition.clique)]

    def _moved(self, key: int | Condition, shares: Floats) -> Floats:
        if self.nudged is None or self.nudged[0] != key:
            return shares
        return shares + self.nudged[1] * np.sqrt(shares * (1 - shares))

    def moved(self, source: Source, by: float) -> Frame:
        """With one source moved by so many deviations."""
        return replace(self, nudged=(source.key, by))

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
                bias = self.steep[i][: len(held)] * _TO_THE_MEAN
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
