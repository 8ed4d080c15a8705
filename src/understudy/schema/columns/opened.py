"""Columns whose domain is found privately by the release itself, inside its ε.

`values = "discover"` lists the values that many hold; `bins = {quantiles = 16}` cuts a column between
public bounds into cells of about as many rows each. Neither has codes: a release first spends a public
part of its budget on them, and goes on with the columns that come of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.schema.columns.base import MOST_CELLS, Column, Modelled
from understudy.schema.columns.binned import Binned
from understudy.schema.columns.category import Category
from understudy.schema.dtypes import writes_text

__all__ = ["DISCOVER", "OpenBins", "OpenCategory", "Opened"]

DISCOVER = "discover"
_FINE = 16
_MOST_FINE = 1024


@dataclass(frozen=True)
class Opened(Column, ABC):
    """A column that a release closes."""

    @abstractmethod
    def provisional(self) -> Modelled:
        """The largest column that may come of it; what is planned for this holds for any."""

    @abstractmethod
    def admits(self, closed: Modelled) -> bool:
        """Whether that column may have come of it."""


@dataclass(frozen=True)
class OpenCategory(Opened):
    """Texts of which nobody can list the values: those that many people hold are found privately.

    At most `max_values` of them, the commonest; all others become `other`.
    """

    kind: ClassVar[str] = "category"

    values: str = field(default="", kw_only=True)
    other: str = "OTHER"
    max_values: int = 64

    def __post_init__(self) -> None:
        if self.values != DISCOVER:
            self._refuse(f'values = {self.values!r} must be a list, or "{DISCOVER}"')
        most = self.max_values
        if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most < MOST_CELLS:
            self._refuse(f"max_values = {most!r} must be a whole number from 1 to {MOST_CELLS - 1}")
        if self.other is True:
            self._set("other", "OTHER")
        if not isinstance(self.other, str) or not self.other:
            self._refuse(
                f"other = {self.other!r} must be the text that stands for every value that is not "
                'found; other = "OTHER" is usual'
            )
        super().__post_init__()

    def _default_dtype(self) -> str:
        return "string"

    def _accepts(self, type_: pa.DataType) -> bool:
        return writes_text(type_)

    def provisional(self) -> Category:
        """As many values as may be found."""
        return self.found([f"value {i + 1}" for i in range(self.max_values)])

    def found(self, texts: Sequence[str]) -> Category:
        """The column with the values that were found, in the order of the alphabet."""
        kept = sorted(text for text in set(texts) if text != self.other)[: self.max_values]
        common = {"dtype": self.dtype, "nullable": self.nullable, "null_values": self.null_values}
        if not kept:  # nothing that many hold: one value for all
            return Category(self.name, (self.other,), **common)
        return Category(self.name, tuple(kept), self.other, **common)

    def admits(self, closed: Modelled) -> bool:
        """Texts that could have been found."""
        return isinstance(closed, Category) and closed == self.found(list(map(str, closed.values)))


@dataclass(frozen=True)
class OpenBins(Opened):
    """An ordered column between public bounds, to be cut at private quantiles.

    `wanted` is its type, `facts` what else is declared of it, `quantiles` the number of cells.
    """

    kind: ClassVar[str] = "quantiles"

    wanted: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)
    quantiles: int = 0

    def __post_init__(self) -> None:
        count = self.quantiles
        if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= 256:
            self._refuse(
                f"bins = {{quantiles = {count!r}}} must be a whole number from 2 to 256, such as "
                "bins = {quantiles = 16}"
            )
        if self.facts.get("edges") is not None:
            self._refuse("bins and edges are both given; keep one of them")
        lower, upper = self.facts.get("lower"), self.facts.get("upper")
        self._set("dtype", self._made(lower=lower, upper=upper, bins=2).dtype)
        self.provisional()
        super().__post_init__()

    def _default_dtype(self) -> str:
        return "string"

    def _accepts(self, type_: pa.DataType) -> bool:
        return True

    def _made(self, **cuts: Any) -> Binned:
        from understudy.schema.columns import KINDS

        kind = KINDS.get(self.wanted)
        if kind is None or not issubclass(kind, Binned):
            self._refuse(f"bins = {{quantiles = …}} is for ordered columns, not {self.wanted!r}")
        for key in ("lower", "upper"):
            if self.facts.get(key) is None:
                self._refuse(f"{key} is missing; quantiles are found between public bounds")
        own = {k: v for k, v in self.facts.items() if k not in ("lower", "upper")}
        common = {"dtype": self.dtype, "nullable": self.nullable, "null_values": self.null_values}
        return kind(self.name, **cuts, **own, **common)

    def _even(self, cells: int) -> list[Any]:
        """Edges of about equal width, fewer where there are fewer values."""
        bounds = self._made(lower=self.facts["lower"], upper=self.facts["upper"], bins=2)
        low, high = bounds.lower, bounds.upper
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

    def provisional(self) -> Binned:
        """As many cells as may come of it."""
        return self._made(edges=tuple(self._even(self.quantiles)))

    def found(self, counts: NDArray[np.int64]) -> Binned:
        """The column cut where the noisy counts of the cells of `fine` reach the quantiles.

        Post-processing. The noisy sums up to each edge are made to grow, by the mean of the least
        growing sums above and the greatest below them, which favours neither side.
        """
        edges = self.fine().edges
        assert edges is not None
        sums = np.cumsum(np.asarray(counts, np.float64)[: len(edges) - 1])
        above, below = np.maximum.accumulate(sums), np.minimum.accumulate(sums[::-1])[::-1]
        reached = (above + below) / 2
        if reached[-1] <= 0:
            return self.provisional()
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
        fitting = {*(self.fine().edges or ()), *(self.provisional().edges or ())}
        few = len(closed.edges) <= self.quantiles + 1
        return few and fitting.issuperset(closed.edges) and closed == self._made(edges=closed.edges)
