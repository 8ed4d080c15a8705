"""The types of columns a schema can declare."""

from understudy.schema.columns.base import MOST_CELLS, OPERATORS, Column, Modelled
from understudy.schema.columns.binned import MOST_SINGLES
from understudy.schema.columns.category import Boolean, Category
from understudy.schema.columns.numeric import Integer, Number
from understudy.schema.columns.opened import OpenBins, OpenCategory, Opened
from understudy.schema.columns.temporal import Date, Datetime
from understudy.schema.columns.unmodelled import Identifier, Incomplete, Text

__all__ = [
    "KINDS",
    "MOST_CELLS",
    "MOST_SINGLES",
    "OPERATORS",
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
    "OpenBins",
    "OpenCategory",
    "Opened",
    "Text",
]

KINDS: dict[str, type[Column]] = {
    cls.kind: cls for cls in (Category, Boolean, Integer, Number, Date, Datetime, Identifier, Text)
}
"""The word for each type in a schema file."""
