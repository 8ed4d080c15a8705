"""Whose privacy a report speaks of, and how strong the promise is."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from understudy import report
from understudy.privacy import Relation
from understudy.report import words
from understudy.report.facts import unmeasured
from understudy.schema import Category, Schema

from .conftest import TOML, Page, people, seeded

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/epsilon.md"])
def test_the_pages_say_what_epsilon_means_in_the_words_of_plans_and_reports(page):
    assert words.meaning(1, 1e-9, None, Relation.ADD_REMOVE) in (ROOT / page).read_text()


def test_the_table_of_epsilons_has_the_figures_of_plans_and_reports():
    text = (ROOT / "docs" / "epsilon.md").read_text()
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) % \| ([\d.]+)", text, re.MULTILINE)
    assert len(rows) == 7
    for epsilon, right, gain in rows:
        told = words.meaning(float(epsilon), 1e-9, None, Relation.ADD_REMOVE)
        assert f"at most {right} % of the time: a gain of at most {gain} percentage" in told


def test_a_unit_of_several_rows_is_who_is_promised(schema):
    text = TOML.replace("version = 1", 'version = 1\nunit = "person"\nmax_rows = 2')
    whole = Schema.loads(text + '\n[[column]]\nname = "person"\ntype = "identifier"\n')
    table = people(300).append_column("person", pa.array([f"p{i // 3}" for i in range(300)]))
    made = seeded(table, whole, method="independent", workload="marginals:1")
    page = Page(report.render(made)).text
    assert "Were rows of a certain person in" in page
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
