"""What does not fit: the explicit look at the rows for a custodian who may see them.

NOT PRIVATE. Findings hold counts of rows and values from them.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from understudy._types import Bools
from understudy.columns import Category, Column, Modelled, UndeclaredBins, UndeclaredShape
from understudy.columns.base import near
from understudy.columns.reading import flat, numpy_of, pc, same_stored, shown, type_name
from understudy.schema.family import FamilySchema
from understudy.schema.schema import Schema
from understudy.source import read, read_table

_EXAMPLES = 5


@dataclass(frozen=True)
class Finding:
    """One thing about one column that does not fit; `count` rows have it, 0 for the header.

    NOT PRIVATE: `count` and `examples` come from the rows.
    """

    column: str
    problem: str
    count: int = 0
    examples: tuple[str, ...] = ()
    remedy: str = ""
    about: str = "column"
    """What `column` names: a column, or a rule by what it says."""

    def __str__(self) -> str:
        rows = f" in {self.count} {'row' if self.count == 1 else 'rows'}" if self.count else ""
        shown = f" ({', '.join(self.examples)})" if self.examples else ""
        return f"{self.about} {self.column!r}: {self.problem}{rows}{shown}; {self.remedy}"


def check(schema: Schema, data: Any) -> list[Finding]:
    """What in a table does not fit the schema, column by column: NOT PRIVATE.

    `data` is what `draft` takes. An empty list means that encoding maps no value to another.
    """
    source = read(data)
    table = read_table(source)
    names, declared = table.schema.names, [column.name for column in schema.columns]
    found: list[Finding] = []
    for name in names:
        if name not in declared and not schema.drop_other_columns:
            remedy = 'declare it; type = "identifier" leaves it out' + near(name, declared)
            found.append(Finding(name, "is in the table and not in the schema", remedy=remedy))
    for column in schema.columns:
        if isinstance(column, UndeclaredBins | UndeclaredShape):
            column = column.largest()  # whatever is found has its bounds and its type
        if column.name in names:
            field = table.schema.field(column.name)
            found += _type_findings(column, field.type) if source.typed else []
            if column.name not in schema.derived:
                found += row_findings(column, table.column(column.name), schema.null_values)
        elif column.name not in schema.computed:
            remedy = "correct the schema or the header" + near(column.name, names)
            problem = "is in the schema and not in the table"
            found.append(Finding(column.name, problem, remedy=remedy))
    absent = set(declared) - set(names)
    if absent <= set(schema.computed):  # which need not be there; rules about them are not checked
        kept = tuple(column for column in schema.columns if column.name not in absent)
        rules = tuple(rule for rule in schema.rules if not rule.words & absent)
        remedy = "correct the rule, or the certificate tells how far off the corrected rows are"
        for says, broken in replace(schema, columns=kept, rules=rules).breaking(table).items():
            if count := int(broken.sum()):
                found.append(Finding(says, "is broken", count, remedy=remedy, about="rule"))
    return found


def rows_left_out(schema: FamilySchema, parents: Any, children: Any) -> list[Finding]:
    """Rows that a release leaves out for their keys, or because there are too many: NOT PRIVATE."""
    own, other, family = schema.tables
    tables = [read_table(read(data)) for data in (parents, children)]
    if family.key not in tables[0].column_names or family.foreign_key not in tables[1].column_names:
        return []
    keys = pc.utf8_trim_whitespace(own.texts(tables[0], family.key))
    names = pc.utf8_trim_whitespace(other.texts(tables[1], family.foreign_key))
    known = keys.unique().drop_null()
    sizes = numpy_of(pc.filter(names, pc.is_in(names, known)).value_counts().field("counts"))
    parent, child = f"{family.parent}.{family.key}", f"{family.child}.{family.foreign_key}"
    rows = "a release leaves these rows out"
    most = f"comes after max_children = {family.max_children} others"
    found = [
        (parent, "has no value", keys.null_count, rows),
        (parent, "repeats another row's", len(keys) - keys.null_count - len(known), rows),
        (child, f"names no row of {family.parent}", len(names) - int(sizes.sum()), rows),
        (child, most, int(np.maximum(sizes - family.max_children, 0).sum()), rows),
    ]
    if family.min_children:
        none = len(known) - sizes.size
        found.append((parent, f"has no {family.child}, and min_children = 1", none, rows))
    return [Finding(name, what, many, (), told) for name, what, many, told in found if many]


def _type_findings(column: Column, type_: pa.DataType) -> list[Finding]:
    if not isinstance(column, Modelled) or same_stored(column.arrow_type, type_):
        return []
    problem = f"arrives as {type_name(type_)!r} and is declared as {column.dtype!r}"
    return [Finding(column.name, problem, remedy="correct dtype if the output should match")]


def row_findings(
    column: Column, rows: pa.ChunkedArray, null_values: tuple[str, ...]
) -> list[Finding]:
    """Which cells of a column do not fit it: NOT PRIVATE."""
    if not isinstance(column, Modelled):
        return []
    array = pa.chunked_array(flat(rows))
    masks = column.misfits(array, null_values)
    first = column.labels()[0]
    other = column.other if isinstance(column, Category) else None
    instead = repr(first) if other is None else str(other)
    domain = (
        ("a value that is not declared", f"add it to values, or it counts as {instead}")
        if isinstance(column, Category)
        else ("a value outside the bounds", "widen the bounds, or it counts as the nearest one")
    )
    empty = "null" if column.nullable else repr(first)
    said = {
        "null": ("null", f"set nullable = true, or it counts as {instead}"),
        "unreadable": (f"no {column.kind}", f"correct the type, or it counts as {empty}"),
        "outside": domain,
    }
    found = []
    for key, (problem, remedy) in said.items():
        if count := int(masks[key].sum()):
            examples = () if key == "null" else _examples(array, masks[key])
            found.append(Finding(column.name, problem, count, examples, remedy))
    return found


def _examples(array: pa.ChunkedArray, mask: Bools) -> tuple[str, ...]:
    """The most frequent values under the mask, with their counts."""
    counts = Counter(shown(cell) for cell in array.filter(pa.array(mask)))
    often = sorted(counts, key=lambda value: (-counts[value], value))[:_EXAMPLES]
    return tuple(f"{value} ×{counts[value]}" for value in often)
