"""Schemas to review, drafted from a table; and the explicit look at what does not fit one.

NOT PRIVATE, both: they read rows, and their output says so. No release comes this way.
"""

from understudy.draft.check import Finding, check
from understudy.draft.draft import confirm, draft
from understudy.draft.people import RowsPerUnit, rows_per_unit

__all__ = ["Finding", "RowsPerUnit", "check", "confirm", "draft", "rows_per_unit"]
