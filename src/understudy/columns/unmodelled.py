"""Columns without codes: identifiers, free text, and columns whose facts are still missing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from understudy.columns.base import Column
from understudy.columns.dtypes import writes_text
from understudy.columns.reading import flat, is_text

__all__ = ["DROP", "Identifier", "Incomplete", "Text"]

DROP = "drop"
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

    def _default_dtype(self) -> str:
        return "string"

    def _accepts(self, type_: pa.DataType) -> bool:
        return self.dropped or pa.types.is_integer(type_) or writes_text(type_)

    def generate(self, rows: int, first: int = 1) -> pa.Array:
        """Fresh ids for `rows` rows: the pattern with first, first + 1, ..."""
        texts = [self.action.format(i) for i in range(first, first + rows)]
        return pa.array(texts, pa.string()).cast(self.arrow_type)

    def legal(self, array: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
        """Whether each entry is one the pattern writes and nobody else has."""
        texts = [text for chunk in flat(array) for text in chunk.cast(pa.string()).to_pylist()]
        head, tail = (re.escape(part) for part in _FIELD.split(self.action))
        form = re.compile(f"{head}\\d+{tail}")
        seen: set[str | None] = set()
        result = np.zeros(len(texts), np.bool_)
        for row, text in enumerate(texts):
            result[row] = text is not None and text not in seen and bool(form.fullmatch(text))
            seen.add(text)
        return result


@dataclass(frozen=True)
class Text(Column):
    """Free text. A draft may say so; no release accepts it."""

    kind: ClassVar[str] = "text"

    def _default_dtype(self) -> str:
        return "string"

    def _accepts(self, type_: pa.DataType) -> bool:
        return is_text(type_)


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
        self._set("missing", self._texts("missing"))

    def _default_dtype(self) -> str:
        return "string"

    def _accepts(self, type_: pa.DataType) -> bool:
        return True
