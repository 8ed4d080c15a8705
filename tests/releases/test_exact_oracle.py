"""An oracle with a time limit: the game goes on without a proof, and the release says how often."""

from __future__ import annotations

import json

import pytest

import understudy as us

pytest.importorskip("ortools")

METHODS = {
    "fem": {"samples": 3, "rounds": 4},
    "sepfem": {"samples": 3, "rounds": 4},
    "dualquery": {"rounds": 4},
    "dqrs": {"rounds": 4},
}
# The last round of fem picks a query that no record answers any more.
SEARCHED = {"fem": 3, "sepfem": 3, "dualquery": 4, "dqrs": 4}
NO_TIME = 1e-9


def released(table, schema, method, **parameters):
    return us.release(
        table, schema, epsilon=1, method=method, rows_public=3000, key=1,
        workload="marginals:2", parameters=METHODS[method] | parameters,
    )  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_out_of_time_the_game_goes_on_and_the_release_counts_it(method, table, schema):
    made = released(table, schema, method, oracle="exact", seconds=NO_TIME)
    rounds = SEARCHED[method]
    assert made.diagnostics == {"oracle_rounds": rounds, "oracle_rounds_without_proof": rounds}
    assert made.rows.num_rows == 3000
    assert not schema.illegal(made.rows)
    # Privacy is untouched: the same plan, and every draw in it charged once.
    usual = released(table, schema, method)
    assert made.plan == usual.plan
    assert [(e.kind, e.body.get("purpose")) for e in made.entries] == [
        (e.kind, e.body.get("purpose")) for e in usual.entries
    ]
    assert usual.diagnostics == {}


@pytest.mark.parametrize("method", METHODS)
def test_in_time_every_round_is_proven(method, table, schema):
    made = released(table, schema, method, oracle="exact", seconds=60.0)
    assert made.diagnostics == {"oracle_rounds": SEARCHED[method], "oracle_rounds_without_proof": 0}


def test_the_bundle_says_it_and_verifies(table, schema, tmp_path):
    made = released(table, schema, "dualquery", oracle="exact", seconds=NO_TIME)
    made.save(tmp_path / "r")
    manifest = json.loads((tmp_path / "r" / "release.json").read_text())
    assert manifest["remarks"] == made.diagnostics
    assert us.Release.load(tmp_path / "r").diagnostics == made.diagnostics
    assert us.verify(tmp_path / "r").passed


def test_the_summary_says_it(table, schema):
    made = released(table, schema, "dualquery", oracle="exact", seconds=NO_TIME)
    assert "oracle: 4 of 4 rounds ended without a proof: time was up" in repr(made)
    assert "oracle" not in repr(released(table, schema, "dualquery"))
