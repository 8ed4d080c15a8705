"""Methods as objects: fit, sample, save, load, get_params."""

from __future__ import annotations

import pytest

import understudy as us
from understudy.errors import InputError, UnconfirmedError


def test_a_synthesizer_keeps_the_usual_habits(tmp_path, table, schema):
    maker = us.Independent(epsilon=2.0, workload="marginals:1")
    assert maker.get_params()["epsilon"] == 2.0
    with pytest.raises(InputError, match="not fitted"):
        maker.sample(3)
    with pytest.raises(InputError, match="colour"):
        us.MST(colour="red")
    assert us.MWEM(rounds=3).get_params()["rounds"] == 3
    maker.fit(table, schema, key=1)
    assert maker.sample(11).num_rows == 11
    maker.save(tmp_path / "m")
    assert us.Independent.load(tmp_path / "m").sample(5, key=3).num_rows == 5


def test_the_default_is_a_class_too():
    assert us.MaxEnt.method == "maxent"
    assert us.MaxEnt(quanta=5).get_params()["quanta"] == 5


def test_objects_show_what_they_are(tmp_path, table, schema):
    assert repr(us.MaxEnt(epsilon=2, purpose="model:x")) == "MaxEnt(epsilon=2, purpose='model:x')"
    assert repr(us.MWEM(rounds=3)) == "MWEM(epsilon=1.0, rounds=3)"
    made = us.Independent(workload="marginals:1").fit(table, schema, key=1)
    rows = made.release.rows.num_rows
    assert repr(made).endswith(f", fitted: {rows:,} synthetic rows × {len(schema.columns)} columns")
    checked = us.verify(made.save(tmp_path / "m"))
    assert repr(checked).startswith("<Verification, passed\n  ✓ manifest: digest ")
    assert "maxent" in repr(us.METHODS)


def test_without_a_schema_the_way_to_one_is_said_and_works(table):
    with pytest.raises(InputError, match=r"Schema\.draft\(table\).*Nothing was spent"):
        us.Independent().fit(table)
    with pytest.raises(InputError, match="a schema is missing"):
        us.release(table, epsilon=1)
    schema = us.Schema.draft(table)
    with pytest.raises(UnconfirmedError):
        us.Independent().fit(table, schema)
    made = us.Independent().fit(table, schema.confirm(unit="row"))
    assert made.sample(7).num_rows == 7
    assert repr(made.release.certificate).startswith("<Certificate: worst error over")
