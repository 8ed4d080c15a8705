"""The sample table: right types, strong dependencies, the same every time."""

import itertools
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from understudy import demo
from understudy.errors import InputError
from understudy.queries import counts


@pytest.fixture(scope="module")
def survey():
    return demo.city_health_survey()


def test_types_nulls_and_legal_values(survey):
    schema = demo.schema()
    assert survey.num_rows == 50_000
    assert survey.column_names == [column.name for column in schema.columns]
    assert survey.drop_columns("person_id").schema.types == schema.arrow_schema.types
    assert schema.illegal(survey.drop_columns("person_id")) == []
    schema.require_confirmed()
    nulls = {name: survey.column(name).null_count for name in survey.column_names}
    nullable = {"income", "systolic", "last_checkup"}
    assert {name for name, number in nulls.items() if number} == nullable
    assert all(500 < nulls[name] < 15_000 for name in nullable)
    assert pc.count_distinct(survey.column("person_id")).as_py() == 50_000
    kinds = {pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.date32()}
    assert set(survey.schema.types) == kinds


def test_domains_are_small_and_used(survey):
    schema = demo.schema()
    assert len(schema.modelled) == 14
    assert max(schema.shape) <= 60
    for codes, column in zip(schema.encode(survey), schema.modelled, strict=True):
        assert np.unique(codes).size > 0.6 * column.size, column.name


def dependence(survey):
    """Total variation between each pair's table and the product of its margins."""
    schema = demo.schema()
    pairs = list(itertools.combinations(range(len(schema.shape)), 2))
    found = {}
    for (i, j), table in zip(
        pairs, counts(schema.encode(survey), schema.shape, pairs), strict=True
    ):
        joint = table / table.sum()
        apart = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
        found[schema.modelled[i].name, schema.modelled[j].name] = np.abs(joint - apart).sum() / 2
    return found


def test_dependencies_are_strong(survey):
    found = dependence(survey)
    for pair in [
        ("age", "systolic"),
        ("age", "employment"),
        ("age", "income"),
        ("bmi", "systolic"),
        ("education", "income"),
        ("employment", "income"),
        ("income", "satisfaction"),
    ]:
        assert found[pair] > 0.18, pair
    for pair in [("district", "income"), ("district", "education"), ("smoker", "alcohol_days")]:
        assert found[pair] > 0.09, pair
    assert sum(value > 0.1 for value in found.values()) >= 25
    shuffled = survey.set_column(
        3, "age", pc.take(survey.column("age"), np.random.default_rng(0).permutation(50_000))
    )
    assert dependence(shuffled)["age", "systolic"] < 0.05  # the measure itself can say no


def test_the_key_says_it_all(survey):
    assert demo.city_health_survey().equals(survey)
    assert demo.city_health_survey(100, key=1).equals(demo.city_health_survey(100, key=1))
    assert not demo.city_health_survey(100, key=1).equals(demo.city_health_survey(100, key=2))
    assert demo.city_health_survey(0).schema == survey.schema
    for rows in (-1, 1.5, True):
        with pytest.raises(InputError, match="rows="):
            demo.city_health_survey(rows)


def test_fast():
    start = time.process_time()
    demo.city_health_survey()
    assert time.process_time() - start < 2
