"""The types of columns that a schema declares; encoding to small integers and back.

`Modelled` columns have codes. `form` writes the encoding of one down as a small table, for engines
that count where the rows are.
"""

from understudy.columns.base import MOST_CELLS, Column, Modelled
from understudy.columns.binned import MOST_SINGLES
from understudy.columns.category import Boolean, Category
from understudy.columns.numeric import Integer, Number
from understudy.columns.temporal import Date, Datetime
from understudy.columns.unmodelled import (
    Identifier,
    Incomplete,
    Text,
    Undeclared,
    UndeclaredBins,
    UndeclaredCategory,
    UndeclaredShape,
)

__all__ = [
    "KINDS",
    "MOST_CELLS",
    "MOST_SINGLES",
    "Boolean",
    "Category",
    "Column",
    "Date",
    "Datetime",
    "Identifier",
    "Incomplete",
    "Integer",
    "Modelled",
    "Number",
    "Text",
    "Undeclared",
    "UndeclaredBins",
    "UndeclaredCategory",
    "UndeclaredShape",
]

KINDS: dict[str, type[Column]] = {
    cls.kind: cls for cls in (Category, Boolean, Integer, Number, Date, Datetime, Identifier, Text)
}
"""The word for each type in a schema file."""
