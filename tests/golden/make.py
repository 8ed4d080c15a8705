"""Make a golden bundle of the present format: `python -m tests.golden.make NAME`, from the root.

It is made once for a version of the format, or for what came without one (`v1-tables`: noisy tables are
kept), and never again: the folder must not exist. The table is
that of the demo, so nothing in it is private; its noise is OpenDP's, as in any release, so nobody makes
the same bundle a second time.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import understudy as us
from understudy import demo

COLUMNS: dict[str, dict[str, int]] = {
    "sex": {},
    "age": {"bins": 4},
    "income": {"bins": 4},
    "smoker": {},
    "last_checkup": {"bins": 3},
}
"""A category, an integer, a number, a boolean and a date; two of them nullable, in few bins."""
ROWS = 200
KEY = 7


def make(folder: Path) -> Path:
    """Columns one by one and a tree of pairs: laplace, gaussian and selection are in its ledger."""
    table = demo.city_health_survey(2_000, key=KEY).select(list(COLUMNS))
    columns = (replace(demo.schema().column(name), **less) for name, less in COLUMNS.items())
    facts = us.Schema(tuple(columns))
    released = us.release(
        table,
        facts,
        epsilon=2,
        delta="1e-8",
        method="mst",
        workload="marginals:1",
        variations=True,
        rows=ROWS,
        key=KEY,
    )
    return released.save(folder)


if __name__ == "__main__":
    print(make(Path(__file__).parent / sys.argv[1]))
