"""`compare`: right numbers, said loudly, and nothing of it in a release."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from understudy.errors import InputError, SourceError, WorkloadError
from understudy.report.compare import LOUD, compare, page

from .conftest import Page, seeded


@pytest.fixture(scope="module")
def release(table, schema):
    return seeded(table, schema, method="independent", workload="marginals:2")


@pytest.fixture(scope="module")
def found(table, release):
    return compare(table, release)


def shares(table, names):
    """Naive marginal shares over the raw values of people(); ages by tens, as the schema cuts them."""
    rows = zip(
        *([v // 10 if n == "age" else v for v in table[n].to_pylist()] for n in names), strict=True
    )
    counted = {}
    for row in rows:
        counted[row] = counted.get(row, 0) + 1 / table.num_rows
    return counted


def test_errors_are_those_of_a_naive_count(table, release, found):
    for error in found.workload:
        real, made = shares(table, error.columns), shares(release.rows, error.columns)
        off = [abs(real.get(cell, 0) - made.get(cell, 0)) for cell in {*real, *made}]
        assert error.total_variation == pytest.approx(sum(off) / 2)
        assert error.worst == pytest.approx(max(off))
    assert found.worst == max(error.worst for error in found.workload)
    assert found.covered == (found.worst <= release.certificate.bound)
    naive = np.mean([error.total_variation for error in found.workload])
    assert found.k_marginal[2] == pytest.approx(1000 * (1 - naive))
    # SDNist's own formula, from L1 distances.
    assert found.k_marginal[2] == pytest.approx(
        (2 - np.mean([2 * e.total_variation for e in found.workload])) * 500
    )


def test_a_table_against_itself_is_perfect(table, release):
    same = compare(table, replace(release, rows=table))
    assert same.worst == 0
    assert same.k_marginal == {1: 1000, 2: 1000, 3: 1000}
    assert abs(same.propensity_area - 0.5) < 0.1
    assert same.propensity_mse < 0.01
    assert all(a.real == a.synthetic for a in same.associations)
    assert all(band.mean_error in (None, 0) for band in same.queries)


def test_another_table_is_told_apart(table, release):
    """Everybody is 5 years old and smokes: a classifier sees it, a model learnt from it is useless."""
    other = pa.table(
        {**{n: table[n] for n in ("sex", "visits")}, "age": [5] * 3000, "smoker": [True] * 3000}
    )
    off = compare(
        table, replace(release, rows=other.select(table.column_names)), targets=["smoker"]
    )
    assert off.propensity_area > 0.95
    assert off.propensity_mse > 0.15
    assert off.k_marginal[1] < 900
    assert not off.covered
    (learnt,) = off.learnt
    assert learnt.trained_on_real > learnt.trained_on_synthetic
    assert learnt.trained_on_real >= learnt.constant - 0.05


def test_associations_are_cramers_v(found):
    by_columns = {a.columns: a for a in found.associations}
    assert set(by_columns) == set(combinations(("age", "sex", "smoker", "visits"), 2))
    strong, weak = by_columns[("age", "visits")], by_columns[("age", "sex")]
    assert strong.real > 0.2 > weak.real
    assert strong.synthetic < 0.1  # columns are independent in this release


def test_other_families_of_queries(table, schema):
    made = seeded(table, schema, method="fem", workload="prefixes:1")
    error = next(e for e in compare(table, made).workload if e.columns == ("age",))
    assert error.kind == "prefixes"
    real, synthetic = (np.cumsum(np.bincount(np.asarray(t["age"]) // 10, minlength=10)) / t.num_rows
                       for t in (table, made.rows))  # fmt: skip
    assert error.worst == pytest.approx(np.abs(real - synthetic).max())


def test_it_is_said_loudly(found):
    assert found.to_json()["not_private"] == LOUD
    assert LOUD.startswith("NOT PRIVATE")
    shown = Page(page(found, "people.release"))
    assert LOUD in shown.text
    assert [a for name, a in shown.elements if a.get("role") == "alert"]
    json.dumps(found.to_json(), allow_nan=False)


def test_bad_input_is_refused(table, release, tmp_path):
    with pytest.raises(WorkloadError, match="smoke"):
        compare(table, release, targets=["smoke"])
    with pytest.raises(InputError, match="no rows"):
        compare(table.slice(0, 0), release)
    with pytest.raises(SourceError, match="sex"):
        compare(table.drop_columns(["sex"]), release)
