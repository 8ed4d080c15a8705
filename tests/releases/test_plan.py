"""The least ε for a target error: what is found, and what is refused before anything is spent."""

from __future__ import annotations

import pytest

import understudy as us
from tests.thorough import slow
from understudy.errors import InputError
from understudy.privacy import planning
from understudy.privacy.budget import Budget
from understudy.privacy.ledger import Ledger
from understudy.releases import plan
from understudy.schema import Category, Schema

SCHEMA = Schema(tuple(Category(f"c{i}", tuple(range(s))) for i, s in enumerate((3, 5, 2, 8))))


@pytest.mark.parametrize(
    ("of", "target"), [("worst", 0.02), slow(("mean", 0.1)), slow(("mean", 0.02))]
)
def test_the_least_epsilon_that_reaches_the_target(of, target):
    prepared = us.prepare(SCHEMA, target_error=target, target_of=of, rows=5000)
    assert prepared.cost().epsilon <= prepared.budget.epsilon

    def error(epsilon):
        errors = us.prepare(SCHEMA, epsilon=epsilon).forecast(5000).errors
        return errors.worst if of == "worst" else errors.mean

    found = us.epsilon_for(SCHEMA, target, target_of=of, rows=5000)
    assert found == float(prepared.budget.epsilon)
    assert error(found) <= target
    assert error(found * 0.97) > target


@pytest.mark.slow
def test_smaller_errors_and_fewer_rows_need_more():
    assert us.epsilon_for(SCHEMA, 0.01, rows=5000) > us.epsilon_for(SCHEMA, 0.02, rows=5000)
    assert us.epsilon_for(SCHEMA, 0.02, rows=2000) > us.epsilon_for(SCHEMA, 0.02, rows=5000)


def test_a_declared_number_of_rows_is_enough():
    public = us.epsilon_for(SCHEMA, 0.02, rows_public=5000)
    assert public == us.epsilon_for(SCHEMA, 0.02, rows_public=5000, rows=5000)


def test_few_exact_plans(monkeypatch):
    """Exact accounting costs seconds; the search itself must do without."""
    calls = []
    exact = planning.calibrate
    monkeypatch.setattr(planning, "calibrate", lambda *args: calls.append(1) or exact(*args))
    us.prepare(SCHEMA, target_error=0.02, rows=5000)
    assert len(calls) <= 4


def test_a_target_that_anything_reaches_gets_the_least_epsilon():
    assert us.epsilon_for(SCHEMA, 0.99, rows=10**7) == plan.LEAST


@pytest.mark.parametrize(
    ("choices", "match"),
    [
        ({"target_error": 0.0}, "target_error = 0 must be above 0 and below 1"),
        ({"target_error": -1.0}, "must be above 0 and below 1"),
        ({"target_error": 1.0}, "must be above 0 and below 1"),
        ({"target_error": float("nan")}, "must be above 0 and below 1"),
        ({"target_error": 0.1, "target_of": "median"}, "target_of = 'median'"),
        ({"target_error": 0.1, "epsilon": 1}, "one of the two"),
        ({}, "one of the two"),
        ({"target_error": 0.1, "method": "independent"}, "method independent does not forecast"),
        ({"target_error": 0.1, "workload": "prefixes:1+marginals:1"}, "prefixes|does not forecast"),
        ({"target_error": 1e-5}, r"for 300 rows .* without any noise"),
        ({"target_error": 0.1, "rows": None}, r"--rows N.*--rows-public N"),
        ({"target_error": 0.1, "rows": 0}, "rows = 0 must be at least 1"),
    ],
)
def test_refusals(choices, match, tmp_path):
    with pytest.raises(InputError, match=match):
        us.prepare(SCHEMA, **{"rows": 300, **choices})
    if choices.get("rows", 300) != 300:
        return
    table = {f"c{i}": [0, 1] for i in range(4)}
    import pyarrow as pa

    with Ledger(tmp_path / "l.db") as ledger:
        ledger.open_dataset("t", Budget.of(5, "1e-6"))
        with pytest.raises(InputError, match=match):
            us.release(pa.table(table), SCHEMA, ledger=ledger, dataset="t", rows=300, **choices)
        assert [entry.kind for entry in ledger.entries("t")] == ["open"]


def test_the_floor_is_named():
    with pytest.raises(InputError) as caught:
        us.epsilon_for(SCHEMA, 1e-5, rows=300)
    words = str(caught.value)
    floor = float(words.split(" percentage points without any noise")[0].split("and ")[-1])
    reached = float(words.split("forecast is ")[1].split()[0])
    assert 1e-3 < floor <= reached
    assert "coarser columns" in words


def test_release_takes_a_target(tmp_path):
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(0)
    table = pa.table({f"c{i}": rng.integers(0, s, 3000) for i, s in enumerate(SCHEMA.shape)})
    made = us.release(table, SCHEMA, target_error=0.03, rows_public=3000)
    assert made.epsilon == us.epsilon_for(SCHEMA, 0.03, rows_public=3000)
    assert us.prepare(SCHEMA, target_error=0.03, rows_public=3000).budget == made.budget


def test_rows_that_would_be_noise_by_the_million_are_refused():
    with pytest.raises(InputError, match=r"epsilon = 1e-06 is so small .* rows_public"):
        us.prepare(SCHEMA, epsilon="1e-6")
    assert us.prepare(SCHEMA, epsilon="1e-6", rows=1000).plan
    assert us.prepare(SCHEMA, epsilon="1e-6", rows_public=3000).plan
    assert us.prepare(SCHEMA, epsilon="1e-4").plan


def test_a_plan_says_what_it_is():
    schema = Schema((Category("a", ("x", "y")), Category("b", ("x", "y"))))
    said = repr(us.prepare(schema, epsilon=1, delta="1e-9", method="independent"))
    assert said.startswith("<Prepared: (ε = 1, δ = 1e-9) by independent for 2 columns and ")
    assert said.endswith("nothing is spent>")
