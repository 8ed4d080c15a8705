"""The question that a release begins with."""

from dataclasses import replace

import pyarrow as pa
import pytest

import understudy as us
from tests.releases.conftest import people
from understudy.releases.example import example
from understudy.schema import Category, Integer, Schema


@pytest.fixture(scope="module")
def release(schema):
    return us.release(people(5_000), schema, epsilon=3, method="independent")


def test_an_example_has_an_interval_that_says_something(release):
    asked = example(release)
    assert asked is not None
    found = release.answer(asked)
    assert found.certified
    assert " and " in asked, "two columns where the bound is small"
    assert found.high - found.low <= 0.75 * min(found.estimate, 1 - found.estimate)


def test_there_is_none_where_every_interval_is_vacuous(release):
    loose = replace(release, certificate=replace(release.certificate, bound=1.0))
    assert example(loose) is None


def test_names_and_values_are_written_so_that_they_can_be_asked():
    values = {"is": ["it's", "b"], "a b": ["`x`", "$y"]}
    schema = Schema((*(Category(n, tuple(v)) for n, v in values.items()), Integer("null", 0, 3)))
    table = pa.table({**{n: v * 900 for n, v in values.items()}, "null": [0, 3] * 900})
    alone = us.marginals(1)
    made = us.release(table, schema, epsilon=10, method="independent", workload=alone)
    asked = example(made)
    assert asked is not None
    assert made.answer(asked).certified


def test_it_asks_for_no_number_that_all_numbers_reach():
    x = pa.array([0] * 1_000 + [None] * 700, pa.int64())
    schema = Schema((Integer("x", 0, 3, bins=1, nullable=True),))
    made = us.release(pa.table({"x": x}), schema, epsilon=10, workload=us.marginals(1))
    assert example(made) is None
