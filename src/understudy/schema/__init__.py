"""Public facts about the columns of a table; encoding to small integers and back.

`Schema` is the whole; the column types are `Category`, `Boolean`, `Integer`, `Number`, `Date`,
`Datetime`, `Identifier` and `Text`. `draft`, `import_mbi` and `import_sdv` make schemas to review;
`check` is the explicit look at the rows, and not private. `form` writes the encoding of a column down
as a small table, for engines that count where the rows are.
"""

from understudy.schema.check import Finding, check
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
    OpenBins,
    OpenCategory,
    Text,
)
from understudy.schema.draft import confirm, draft
from understudy.schema.forms import Form, Pieces, Words, form
from understudy.schema.geography import Geography
from understudy.schema.imports import import_mbi, import_sdv
from understudy.schema.masks import Centres, Polygons, Raster
from understudy.schema.schema import Schema

__all__ = [
    "OPERATORS",
    "Boolean",
    "Category",
    "Centres",
    "Column",
    "Date",
    "Datetime",
    "Finding",
    "Form",
    "Geography",
    "Identifier",
    "Incomplete",
    "Integer",
    "Modelled",
    "Number",
    "OpenBins",
    "OpenCategory",
    "Pieces",
    "Polygons",
    "Raster",
    "Schema",
    "Text",
    "Words",
    "check",
    "confirm",
    "draft",
    "form",
    "import_mbi",
    "import_sdv",
]
