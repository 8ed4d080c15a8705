"""Whose privacy a report speaks of, and how strong the promise is."""

from __future__ import annotations

import pyarrow as pa

from understudy import report
from understudy.schema import Schema

from .conftest import TOML, Page, people, seeded


def test_a_unit_of_several_rows_is_who_is_promised(schema):
    text = TOML.replace("version = 1", 'version = 1\nunit = "person"\nmax_rows = 2')
    whole = Schema.loads(text + '\n[[column]]\nname = "person"\ntype = "identifier"\n')
    table = people(300).append_column("person", pa.array([f"p{i // 3}" for i in range(300)]))
    made = seeded(table, whole, method="independent", workload="marginals:1")
    page = Page(report.render(made)).text
    assert "whether a certain person had rows in" in page
    assert "of those who have more than 2" in page
    assert "1 was promised" in page
