"""A purpose from the option to the bundle: plans, releases, both verifiers, and what the plan says."""

import json

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.tools import both
from understudy import report
from understudy.errors import InputError, WorkloadError
from understudy.releases.outline import outline, tradeoff
from understudy.schema import Category, Schema

FEW = {"records": 2_000}


def schema_of(columns, size=3):
    values = tuple(f"v{i}" for i in range(size))
    return Schema(tuple(Category(f"c{i}", values) for i in range(columns)))


def rows_of(columns, rows=3_000, size=3):
    codes = np.random.default_rng(0).integers(0, size, (columns, rows))
    return pa.table({f"c{i}": [f"v{v}" for v in own] for i, own in enumerate(codes)})


def test_a_release_states_its_purposes_and_both_verifiers_accept_it(tmp_path):
    wanted = ["model:c7", "regression:c1 ~ c2 + c3"]
    made = us.release(rows_of(8), schema_of(8), epsilon=1, purpose=wanted, parameters=FEW)
    assert "pairs, tier 1" in made.plan
    assert made.purposes == tuple(wanted)
    assert len(made.workload) == 28 + 21 + 1
    assert made.certificate.cells == 28 * 9 + 22 * 27
    made.save(tmp_path / "r")
    both.require_agreement(tmp_path / "r")
    assert all(check.passed for check in us.verify(tmp_path / "r").checks)
    assert us.Release.load(tmp_path / "r").purposes == tuple(wanted)
    assert "model:c7; regression:c1 ~ c2 + c3" in report.render(made)


def test_where_domains_are_found_the_tables_stay_those_that_were_reserved(tmp_path):
    """A found domain may be so small that a table left out would fit; it stays out."""
    open_ = 'type = "category"\nvalues = "discover"\nmax_values = 120'
    kinds = {"a": open_, "b": open_, "y": 'type = "boolean"', "z": 'type = "boolean"'}
    listed = (f'[[column]]\nname = "{name}"\n{kind}\n' for name, kind in kinds.items())
    text = '[understudy]\nversion = 1\nunit = "row"\n\n' + "\n".join(listed)
    schema = Schema.loads(text)
    rng = np.random.default_rng(1)
    columns = {name: [f"v{v}" for v in rng.integers(0, 3, 4_000)] for name in "ab"}
    flags = {name: rng.random(4_000) < 0.4 for name in "yz"}
    prepared = us.prepare(schema, epsilon=2, purpose="model:y")
    assert tradeoff(prepared, 4_000).left_out == ("a × b × y",)
    made = us.release(
        pa.table({**columns, **flags}), schema, epsilon=2, purpose="model:y", parameters=FEW
    )
    assert made.schema.shape[0] < 10
    assert [c for c in made.workload.cliques if len(c) == 3] == [(0, 2, 3), (1, 2, 3)]
    made.save(tmp_path / "r")
    assert all(check.passed for check in us.verify(tmp_path / "r").checks)


def test_the_plan_says_what_a_purpose_costs_the_rest():
    prepared = us.prepare(schema_of(9, 6), epsilon=1, purpose="model:c0")
    seen = json.loads(json.dumps(outline(prepared, 5_000)))["purpose"]
    (with_, without), (others, others_before) = seen["wanted"], seen["others"]
    assert with_ < 0.9 * without
    assert others_before < others < 1.3 * others_before
    assert seen["words"].startswith("tables with c0: ")
    assert "; all other tables: " in seen["words"]
    assert seen["texts"] == ["model:c0"]
    plain = us.prepare(schema_of(9, 6), epsilon=1)
    assert tradeoff(plain, 5_000) is None
    assert "purpose" not in outline(plain)
    assert "purposes" not in plain.facts
    errors = plain.forecast(5_000).errors
    assert prepared.without_purpose(5_000).mean == pytest.approx(errors.mean, rel=0.01)


def test_a_purpose_adds_to_a_workload():
    schema = schema_of(6)
    prepared = us.prepare(schema, epsilon=1, workload=[("c1", "c2")], purpose="subgroups:c0")
    assert len(prepared.workload) == 1 + 5 + 10
    assert tradeoff(prepared, 5_000).wanted is None


def test_what_is_wrong_is_refused_before_anything_is_spent():
    with pytest.raises(WorkloadError, match="unknown column 'c9'"):
        us.prepare(schema_of(4), epsilon=1, purpose="model:c9")
    with pytest.raises(InputError, match="did you mean 'purpose'"):
        us.prepare(schema_of(4), epsilon=1, purposes=["model:c1"])


def test_synthesizers_have_it():
    assert us.Synthesizer(purpose="model:c1").get_params()["purpose"] == "model:c1"
