"""Public facts about the columns of a table; encoding to small integers and back.

`Schema` is the whole; the column types are `Category`, `Boolean`, `Integer`, `Number`, `Date`,
`Datetime`, `Identifier` and `Text`.
"""

from understudy.schema.columns import (
    OPERATORS,
    Boolean,
    Category,
    Column,
    Date,
    Datetime,
    Identifier,
    Incomplete,
    Integer,
    Modelled,
    Number,
    Text,
)
from understudy.schema.schema import Schema

__all__ = [
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
    "Schema",
    "Text",
]
