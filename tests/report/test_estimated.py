"""Headline figures: one for every column that has one, from the tables, with intervals."""

from dataclasses import replace
from datetime import date

import numpy as np

from understudy import report
from understudy.models import Decomposable
from understudy.report.estimated import MOST, dependent, estimates, headlines
from understudy.schema import Category, Date, Schema

from .conftest import Page, seeded


def test_every_column_has_a_headline_that_can_be_asked(made):
    asked = list(headlines(made))
    assert len(asked) == len(made.schema.modelled)
    told = estimates(made)
    assert [each.name for each in told] == asked[:MOST]
    for each in told:
        assert not each.determined or each.low <= each.value <= each.high


def test_odd_names_and_values_are_quoted(made):
    days = Date("day", lower=date(2020, 1, 1), upper=date(2020, 12, 31), bins=4)
    columns = (Category('a "b"-c', values=("it's", "x")), Category("n", values=(1, 2)), days)
    tables = tuple(np.full(size, 1 / size) for size in (2, 2, 4))
    model = Decomposable((2, 2, 4), ((0,), (1,), (2,)), tables)
    odd = replace(made, schema=Schema(columns), model=model)
    assert list(headlines(odd)) == ["""share("a ""b""-c" = 'it''s')""", "share(n = 1)"]


def test_a_release_without_tables_says_so(made):
    bare = replace(made, measurements=())
    assert estimates(bare) == ()
    assert dependent(bare, (0, 1)) == "–"
    page = Page(report.render(bare)).text
    assert "keeps no noisy tables" in page
    assert "Do not run tests" in page


def test_the_page_has_the_figures_and_the_tests(made):
    page = Page(report.render(made, name="people.release")).text
    assert "Do not run tests or compute intervals on the synthetic rows" in page
    first = estimates(made)[0]
    assert all(shown in page for shown in (first.name, *first.shown))
    pair = next(m.clique for m in made.measurements if len(m.clique) == 2)
    assert dependent(made, pair) in page


def test_pairs_that_were_not_measured_have_no_p(table, schema):
    alone = seeded(table, schema, method="independent")
    assert dependent(alone, (0, 1)) == "–"
    assert estimates(alone)
