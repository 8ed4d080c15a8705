"""How round the values of a column are: a column to count by, never one to synthesise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.columns.base import Masks, Modelled
from understudy.columns.binned import Binned
from understudy.columns.ladder import Rounds
from understudy.columns.reading import Read

__all__ = ["Roundness"]


@dataclass(frozen=True)
class Roundness(Modelled):
    """A value's code among the `rounds` of its column; what has no point there (null) comes after.

    `over` is the column, which reads values and moves what lies outside its bounds to the nearest one.
    A row lies in exactly one cell, as in any one-way table, and public facts alone say in which.
    """

    kind: ClassVar[str] = "roundness"

    over: Binned
    rounds: Rounds

    @classmethod
    def of(cls, over: Binned, rounds: Rounds) -> Roundness:
        """That of a column."""
        shared = {"nullable": over.nullable, "null_values": over.null_values, "dtype": over.dtype}
        return cls(over.name, over, rounds, **shared)

    @property
    def cells(self) -> int:
        """How many codes stand for values."""
        return self.rounds.size + self.over.cells - len(self.over.grid)

    def _encode(self, array: pa.Array, tokens: Sequence[str]) -> NDArray[np.unsignedinteger]:
        code, cells = self.over._encode(array, tokens).astype(np.int64), len(self.over.grid)
        points, valid = self._read(array, tokens)
        found = self.rounds.codes(np.where(valid, self._nearest(points), self.over.grid.lows[0]))
        beyond = code - cells + self.rounds.size
        return np.where(code < cells, found, beyond).astype(self.code_dtype)

    def _read(self, array: pa.Array, tokens: Sequence[str]) -> Read:
        return self.over._read(array, tokens)

    def _nearest(self, points: NDArray) -> NDArray:
        return self.over._nearest(points)

    def _cell_labels(self) -> list[str]:
        steps, decades = self.rounds.steps, self.rounds.decades
        named = [f"from {decade}, times {step}" for decade in decades for step in steps]
        return named + self.over._cell_labels()[len(self.over.grid) :]

    def _emit(self, points: NDArray, null: NDArray[np.bool_]) -> pa.Array:
        self._refuse("how round values are is counted, never written")

    def _literal(self, literal: Any) -> Any:
        self._misuse("how round values are is counted, never asked for")

    def _compare(self, op: str, literals: Sequence[Any]) -> Masks:
        self._misuse("how round values are is counted, never asked for")
