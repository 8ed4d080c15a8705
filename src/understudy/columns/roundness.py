"""How round the numbers of a column are: a column to count by, never one to synthesise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.columns.base import Masks, Modelled
from understudy.columns.binned import Binned
from understudy.columns.reading import Read

__all__ = ["NEAR", "Roundness"]

NEAR = 2.0**-20
"""How far from a whole multiple a double may be and still count as one, in steps."""


@dataclass(frozen=True)
class Roundness(Modelled):
    """The cells of a numeric column, each divided by the first of `steps` that a value is a multiple of.

    `over` is the column, cut at public edges; `steps` are in its own points and fall, such as
    (1000, 100, 10, 1). The code of a value is `cell · (len(steps) + 1) + class`, the last class for
    multiples of none; what has no cell in `over` (null) comes after all of these. So a row lies in exactly
    one cell, as in any one-way table, and nothing but `over` and `steps` says in which.
    """

    kind: ClassVar[str] = "roundness"

    over: Binned | None = None
    steps: tuple[float, ...] = ()

    @classmethod
    def of(cls, over: Binned, steps: Sequence[float]) -> Roundness:
        """That of a column; it is read as the column is."""
        shared = {"nullable": over.nullable, "null_values": over.null_values, "dtype": over.dtype}
        return cls(over.name, over=over, steps=tuple(steps), **shared)

    @property
    def _over(self) -> Binned:
        assert self.over is not None
        return self.over

    @property
    def classes(self) -> int:
        """How many kinds of numbers there are in a cell."""
        return len(self.steps) + 1

    @property
    def shape(self) -> tuple[int, int]:
        """Cells and classes; the codes without these are null."""
        return len(self._over.grid), self.classes

    @property
    def cells(self) -> int:
        """Cells times classes, and what has no class."""
        return self.size - self.nullable

    @property
    def size(self) -> int:
        """How many codes there are, null included."""
        cells, classes = self.shape
        return cells * classes + self._over.size - cells

    def _encode(self, array: pa.Array, tokens: Sequence[str]) -> NDArray[np.unsignedinteger]:
        cells, classes = self.shape
        code = self._over._encode(array, tokens).astype(np.int64)
        points, valid = self._read(array, tokens)
        found = self._class(np.where(valid, self._nearest(points), self._over.grid.lows[0]))
        inside = code < cells
        return np.where(inside, code * classes + found, code + cells * (classes - 1)).astype(
            self.code_dtype
        )

    def _class(self, points: NDArray) -> NDArray[np.intp]:
        """The first step that divides each point."""
        found = np.full(len(points), len(self.steps), np.intp)
        for at in range(len(self.steps) - 1, -1, -1):
            if self._over.grid.discrete:
                divided = points % int(self.steps[at]) == 0
            else:
                times = points * (1.0 / self.steps[at])
                divided = np.abs(times - np.floor(times + 0.5)) <= NEAR
            found[divided] = at
        return found

    def _read(self, array: pa.Array, tokens: Sequence[str]) -> Read:
        return self._over._read(array, tokens)

    def _nearest(self, points: NDArray) -> NDArray:
        return self._over._nearest(points)

    def _cell_labels(self) -> list[str]:
        steps = [*(f"times {step:g}" for step in self.steps), "other"]
        cells = self._over._cell_labels()[: self.shape[0]]
        rest = self._over.labels()[self.shape[0] : self._over.size - self.nullable]
        return [*(f"{cell}, {step}" for cell in cells for step in steps), *rest]

    def _emit(self, points: NDArray, null: NDArray[np.bool_]) -> pa.Array:
        self._refuse("how round numbers are is counted, never written")

    def _literal(self, literal: Any) -> Any:
        self._misuse("how round numbers are is counted, never asked for")

    def _compare(self, op: str, literals: Sequence[Any]) -> Masks:
        self._misuse("how round numbers are is counted, never compared")
