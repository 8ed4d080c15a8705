"""Tables that say how many rows there are count every one of them, whatever is released."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.releases.test_families import CHILDREN, PARENTS, tables
from tests.releases.test_shapes import COLUMNS, HEAD, PEOPLE
from tests.releases.test_shapes import table as amounts
from tests.releases.test_unit_releases import TEXT
from tests.releases.test_unit_releases import table as patients
from tests.releases.test_weights import COLUMNS as SHARED
from understudy.models import Measured
from understudy.releases import run
from understudy.schema import Category, Integer, Schema
from understudy.schema.family import Family, FamilySchema
from understudy.testing import SeededNoise
from understudy.units import Unit

__all__ = ["tables"]


@pytest.fixture
def summed(monkeypatch):
    """What the number of rows is taken from."""
    found = []
    kept = run.total
    monkeypatch.setattr(run, "total", lambda *given: found.append(given) or kept(*given))
    return found


def _require_whole(summed, least=1):
    (measured, rows, sigma) = summed[0]
    assert sigma > 0
    assert len(measured) >= least
    for table in measured:
        assert isinstance(table, Measured)
        deviation = (sigma**2 + table.values.size * table.sigma**2) ** 0.5
        assert abs(table.values.sum() - rows) < 5 * deviation + 1
        assert 5 * deviation < rows / 8  # a table without some of the rows would be seen


def _people(rows=4_000):
    """Columns of many values, so that their tables are coarsened."""
    rng = np.random.default_rng(2)
    columns = {f"n{i}": np.minimum(299, rng.exponential(40, rows)).astype(int) for i in range(4)}
    return pa.table({**columns, "c": rng.choice([f"v{i}" for i in range(60)], rows)})


@pytest.mark.parametrize("method", ["maxent", "aim", "mst"])
def test_patients_of_some_rows(summed, method):
    us.release(
        patients(),
        Schema.loads(TEXT),
        epsilon=30,
        delta="1e-6",
        method=method,
        noise=SeededNoise(1),
    )
    _require_whole(summed)


def test_shapes_that_are_found(summed):
    schema = Schema.loads(HEAD + PEOPLE + COLUMNS)
    us.release(amounts(), schema, epsilon=60, delta="1e-6", noise=SeededNoise(1))
    _require_whole(summed, 5)


def test_coarsened_tables(summed):
    columns = [Integer(f"n{i}", 0, 299) for i in range(4)]
    schema = Schema((*columns, Category("c", tuple(f"v{i}" for i in range(60)))))
    us.release(_people(), schema, epsilon=300, delta="1e-6", noise=SeededNoise(1))
    _require_whole(summed, 5)
    assert any(table.labels is not None for table in summed[0][0])


def test_values_that_are_found_beside_others(summed):
    """Values that are too rare to be listed count as another one."""
    columns = [Integer(f"n{i}", 0, 299, bins=5) for i in range(4)]
    schema = Schema((*columns, Category("c", ("v0", "v1"), other="else")))
    us.release(_people(), schema, epsilon=60, delta="1e-6", noise=SeededNoise(1))
    _require_whole(summed, 5)


def test_people_and_families_of_many_weights_are_not_counted_by_tables(summed, tables):
    shared = Schema(SHARED, unit=Unit.sharing("who", 4))
    rng = np.random.default_rng(1)
    who = rng.integers(0, 300, 600)
    table = {"who": who.astype(str), "a": rng.integers(0, 6, 600), "b": np.where(who % 2, "x", "y")}
    us.release(pa.table(table), shared, epsilon=9, delta="1e-6", noise=SeededNoise(1))
    many = FamilySchema.of(PARENTS, CHILDREN, Family("homes", "hid", "people", "hid", 4, 1))
    us.release(tables, many, epsilon=9, delta="1e-6", noise=SeededNoise(1))
    assert [sigma for _, _, sigma in summed] == [0, 0]


def test_families_of_one_child(summed, tables):
    one = FamilySchema.of(PARENTS, CHILDREN, Family("homes", "hid", "people", "hid", 1, 0))
    us.release(tables, one, epsilon=60, delta="1e-6", noise=SeededNoise(1))
    _require_whole(summed)
