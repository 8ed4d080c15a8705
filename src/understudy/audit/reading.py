"""From a table that may be known to features and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from understudy.audit.models import Examples
from understudy.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Layout"]

_MOST_VALUES = 50


class Layout:
    """How the columns of one table become features: numbers as they are, text as indicators."""

    def __init__(self, table: pa.Table, label: str) -> None:
        import pyarrow as pa

        if label not in table.column_names:
            raise InputError(
                f"label = {label!r} is not a column; there are {', '.join(table.column_names)}"
            )
        self.label = label
        self.classes: list[object] = sorted(
            {value for value in table[label].to_pylist() if value is not None}, key=str
        )
        self.text: dict[str, list[str]] = {}
        self.plain: list[str] = []
        for name in table.column_names:
            if name == label:
                continue
            kind = table.schema.field(name).type
            if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
                self.plain.append(name)
            elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
                values = sorted({v for v in table[name].to_pylist() if v is not None})
                if len(values) > _MOST_VALUES:
                    raise InputError(
                        f"column {name!r} has {len(values)} different texts, more than "
                        f"{_MOST_VALUES}; drop it, or put them into groups"
                    )
                self.text[name] = values
            else:
                raise InputError(
                    f"column {name!r} is of type {kind}; features are numbers, booleans or text"
                )
        if not self.plain and not self.text:
            raise InputError(f"the table has no column but the label {label!r}")

    def examples(self, table: pa.Table) -> Examples:
        """Features and labels of a table with these columns."""
        missing = {self.label, *self.plain, *self.text} - set(table.column_names)
        if missing:
            raise InputError(f"the table lacks the column {sorted(missing)[0]!r}")
        columns: list[NDArray[np.float64]] = []
        names: list[str] = []
        for name in self.plain:
            values = table[name].to_pylist()
            columns.append(np.array([np.nan if v is None else float(v) for v in values]))
            names.append(name)
        for name, values in self.text.items():
            here = np.array(table[name].to_pylist(), dtype=object)
            for value in values[1:]:  # the first is what the others are compared with
                columns.append((here == value).astype(float))
                names.append(f"{name} = {value}")
        return Examples(np.column_stack(columns), self._labels(table), tuple(names))

    def _labels(self, table: pa.Table) -> NDArray[np.int64]:
        known = {value: code for code, value in enumerate(self.classes)}
        found: Sequence[object] = table[self.label].to_pylist()
        odd = next((value for value in found if value not in known), None)
        if odd is not None or None in found:
            raise InputError(f"label {self.label!r} has no class {odd!r}; known are {self.classes}")
        return np.array([known[value] for value in found], dtype=np.int64)
