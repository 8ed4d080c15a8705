"""Schemas to review, drafted from a table; and the explicit look at what does not fit one.

NOT PRIVATE, both: they read rows, and their output says so. No release comes this way.
"""

from understudy.draft.check import Finding, check, rows_left_out
from understudy.draft.draft import confirm, draft
from understudy.draft.families import children_per_parent, draft_families, draft_split
from understudy.draft.people import RowsPerUnit, rows_per_unit

__all__ = [
    "Finding",
    "RowsPerUnit",
    "check",
    "children_per_parent",
    "confirm",
    "draft",
    "draft_families",
    "draft_split",
    "rows_left_out",
    "rows_per_unit",
]
