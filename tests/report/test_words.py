"""Whose privacy a report speaks of, and how strong the promise is."""

from __future__ import annotations

import pyarrow as pa

from understudy import report
from understudy.report import words
from understudy.report.facts import unmeasured
from understudy.schema import Category, Schema

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


def test_pairs_that_were_not_measured_are_counted_where_they_are_most():
    names = [f"q{at}" for at in range(8)]
    schema = Schema(tuple(Category(name, ("no", "yes")) for name in names))
    rows = pa.table({name: ["no", "yes", "yes", "no"] * 100 for name in names})
    few = seeded(rows, schema, method="mst")
    assert unmeasured(few) == (21, 28)
    told = words.inferred(few)
    assert told is not None
    assert told.startswith("7 of 28 pairs of columns were measured; the other 21 follow")
    assert told in Page(report.render(few)).text
    assert words.inferred(seeded(rows, schema, method="maxent")) is None
