"""Public facts about a table: its columns, its privacy unit, and what every synthetic row keeps.

`Schema` is the whole, and the types that it is made of stand here too. `import_mbi` and `import_sdv`
read other tools' files; `understudy.draft` makes a schema to review from a table.
"""

from understudy.columns import (
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
    UndeclaredBins,
    UndeclaredCategory,
    UndeclaredShape,
)
from understudy.constraints.geography import Geography
from understudy.constraints.masks import Centres, Polygons, Raster
from understudy.schema.imports import import_mbi, import_sdv
from understudy.schema.schema import Schema

__all__ = [
    "Boolean",
    "Category",
    "Centres",
    "Column",
    "Date",
    "Datetime",
    "Geography",
    "Identifier",
    "Incomplete",
    "Integer",
    "Modelled",
    "Number",
    "Polygons",
    "Raster",
    "Schema",
    "Text",
    "UndeclaredBins",
    "UndeclaredCategory",
    "UndeclaredShape",
    "import_mbi",
    "import_sdv",
]
