"""What a report says in numbers."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest

from understudy.report import facts
from understudy.schema import Category, Integer, Schema

from .conftest import seeded


def test_what_was_measured_is_shown_with_its_band(made):
    shown = facts.columns(made, 60)
    assert [column.name for column in shown] == ["age", "sex", "smoker", "visits"]
    for column in shown:
        assert sum(column.shares) == pytest.approx(1)
        assert column.measured is not None
        assert min(column.band) > 0


def test_values_are_taken_together_where_they_are_many():
    labels = tuple(f"v{i}" for i in range(300))
    schema = Schema((Category("wide", labels), Integer("long", 0, 999, nullable=True)))
    table = pa.table({"wide": [f"v{i % 7}" for i in range(500)], "long": list(range(500))})
    made = seeded(table, schema, method="independent", workload="marginals:1")
    wide, long = facts.columns(made, 20)
    assert len(wide.labels) == 20
    assert wide.labels[-1] == "281 other values"
    assert len(long.labels) <= 20
    assert long.labels[-1] == "NULL"
    assert sum(wide.shares) == pytest.approx(1)
    assert sum(long.shares) == pytest.approx(1)


def test_the_error_of_a_pair_is_at_most_that_of_a_table_that_holds_it(table, schema):
    made = seeded(table, schema, method="gaussian", workload="marginals:3", variations=True)
    found = {pair.clique: pair for pair in facts.pairs(made)}
    stated = dict(zip(made.workload.cliques, made.certificate.variations, strict=True))
    assert found[(0, 1)].error == min(stated[(0, 1, 2)], stated[(0, 1, 3)])
    assert found[(0, 1)].certified
    assert found[(0, 1)].measured == "table"


def test_relative_errors_fall_with_the_size_of_a_group(made):
    sizes = facts.cell_sizes(made)
    assert len(sizes) > 2
    for one, next in pairwise(sizes):
        assert next.rows > one.rows
        assert next.certified < one.certified
        assert next.pair < one.pair
