"""What the games refuse: with numbers and a remedy, and before anything is charged."""

from __future__ import annotations

import sys

import pytest

import understudy as us
from understudy.errors import InputError, WorkError
from understudy.privacy.budget import Budget
from understudy.privacy.ledger import Ledger

from .test_default_bad_input import schema_of, table_of

WIDE = (40, 50, 60, 70)  # 8.4 million possible rows


@pytest.fixture
def refused(tmp_path):
    """Release against a ledger, which must fail without a charge; returns what was said."""

    def attempt(table, schema, kind=InputError, **choices) -> str:
        with Ledger(tmp_path / "l.db") as ledger:
            ledger.open_dataset("t", Budget.of(5, "1e-6"))
            with pytest.raises(kind) as caught:
                us.release(table, schema, epsilon=1, ledger=ledger, dataset="t", **choices)
            assert [entry.kind for entry in ledger.entries("t")] == ["open"]
            assert ledger.spent("t").epsilon == 0
        return str(caught.value)

    return attempt


@pytest.mark.parametrize("method", ["mwem", "frankwolfe"])
def test_a_universe_that_does_not_fit(method, refused):
    said = refused(table_of(WIDE, 10), schema_of(*WIDE), method=method, workload="marginals:2")
    for part in (method, "8.4e+06 possible rows", "limit of 4e+06", "use method = auto"):
        assert part in said


@pytest.mark.parametrize("method", ["fem", "sepfem", "dualquery", "dqrs", "mwem", "frankwolfe"])
def test_no_rounds(method, refused):
    said = refused(table_of((2, 3), 10), schema_of(2, 3), method=method, parameters={"rounds": 0})
    for part in (f"method = {method}", "rounds = 0", "must be"):
        assert part in said


@pytest.mark.parametrize("method", ["fem", "sepfem", "dualquery", "dqrs", "mwem", "frankwolfe"])
def test_a_budget_that_rounds_to_no_rounds_still_plays_within_it(method, tmp_path):
    """The public rules say T = 0 for so little; the fewest rounds are played and paid for."""
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.open_dataset("t", Budget.of(5, "1e-6"))
        made = us.release(
            table_of((2, 3), 10), schema_of(2, 3), epsilon="0.0001", delta="1e-9", method=method,
            ledger=ledger, dataset="t",
        )  # fmt: skip
        assert 0 < ledger.spent("t").epsilon <= 0.0001
    assert made.rows.num_rows >= 1


@pytest.mark.parametrize("method", ["fem", "sepfem", "dualquery", "dqrs"])
def test_a_sample_larger_than_memory(method, refused):
    asked = {"method": method, "parameters": {"samples": 10**10}}
    said = refused(table_of((2, 3), 10), schema_of(2, 3), **asked)
    assert f"method = {method}: samples = 10000000000" in said
    assert "GB" in said or "memory" in said


ORACLES = [
    ({"oracle": "gurobi"}, "oracle = 'gurobi' is not known; choose annealed or exact"),
    ({"oracle": "exact", "seconds": 0.0}, "seconds = 0.0 must be a number above 0"),
    ({"oracle": "exact", "seconds": float("inf")}, "seconds = inf"),
]


@pytest.mark.parametrize("method", ["fem", "sepfem", "dualquery", "dqrs"])
@pytest.mark.parametrize(("parameters", "told"), ORACLES)
def test_an_oracle_that_makes_no_sense(method, parameters, told, refused):
    said = refused(table_of((2, 3), 10), schema_of(2, 3), method=method, parameters=parameters)
    assert f"method = {method}" in said
    assert told in said


@pytest.mark.parametrize("method", ["fem", "sepfem", "dualquery", "dqrs"])
def test_an_oracle_that_is_not_installed(method, refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "ortools", None)
    monkeypatch.setitem(sys.modules, "ortools.sat.python.cp_model", None)
    asked = {"method": method, "parameters": {"oracle": "exact"}}
    said = refused(table_of((2, 3), 10), schema_of(2, 3), kind=WorkError, **asked)
    assert ".[exact]" in said
