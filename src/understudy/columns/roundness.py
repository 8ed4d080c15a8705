"""How round the values of a column are: a column to count by, never one to synthesise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy._types import Bools
from understudy.columns.base import Masks, Modelled
from understudy.columns.binned import Binned
from understudy.columns.kinds import Kinds
from understudy.columns.reading import Read


@dataclass(frozen=True)
class Roundness(Modelled):
    """The cells of a column, each divided by the kinds of its values: multiples, and endings as 99.

    `over` is the column, cut at public edges, whose points are integers; `kinds` are of these points.
    The code of a value is `cell·kinds.classes + i`, i its kind; what has no cell (null) comes after.
    A value is of exactly one kind, the first that fits: so a row lies in exactly one cell, as in any
    one-way table, public facts alone say in which, and the cost is the same however many kinds there
    are.
    """

    kind: ClassVar[str] = "roundness"

    over: Binned
    kinds: Kinds

    @classmethod
    def of(cls, over: Binned, kinds: Kinds) -> Roundness:
        """That of a column."""
        shared = {"nullable": over.nullable, "null_values": over.null_values, "dtype": over.dtype}
        return cls(over.name, over, kinds, **shared)

    @property
    def inside(self) -> int:
        """The codes of values that have a cell: so many, and the first ones."""
        return len(self.over.grid) * self.kinds.classes

    @property
    def cells(self) -> int:
        """How many codes stand for values."""
        return self.inside + self.over.cells - len(self.over.grid)

    def by_interval(self, counts: NDArray[Any]) -> NDArray[Any]:
        """Counts of codes as counts of all intervals of the column, each divided by the kinds."""
        parts = counts[: self.inside].reshape(len(self.over.grid), -1)
        return np.stack([self.over.by_interval(part) for part in parts.T], axis=1).ravel()

    def _encode(self, array: pa.Array, tokens: Sequence[str]) -> NDArray[np.unsignedinteger]:
        cell, cells = self.over._encode(array, tokens).astype(np.int64), len(self.over.grid)
        points, valid = self._read(array, tokens)
        points = np.where(valid, self._nearest(points), self.over.grid.lows[0])
        inside = cell * self.kinds.classes + self.kinds.of(points)
        code = np.where(cell < cells, inside, cell - cells + self.inside)
        return code.astype(self.code_dtype)

    def _read(self, array: pa.Array, tokens: Sequence[str]) -> Read:
        return self.over._read(array, tokens)

    def _nearest(self, points: NDArray) -> NDArray:
        return self.over._nearest(points)

    def _cell_labels(self) -> list[str]:
        cells = self.over.labels()
        rests = (
            f"times {step}" + f" plus {rest}" * (rest > 0) for step, rest in self.kinds.classed
        )
        kinds = [*rests, "other"]
        named = [f"{cell}, {kind}" for cell in cells[: len(self.over.grid)] for kind in kinds]
        return named + cells[len(self.over.grid) : self.over.cells]

    def _emit(self, points: NDArray, null: Bools) -> pa.Array:
        self._refuse("how round values are is counted, never written")

    def _literal(self, literal: Any) -> Any:
        self._misuse("how round values are is counted, never asked for")

    def _compare(self, op: str, literals: Sequence[Any]) -> Masks:
        self._misuse("how round values are is counted, never asked for")
