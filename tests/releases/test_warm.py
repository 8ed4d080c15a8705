"""Public rows that a method starts from: named in the plan, refused for free where they do not fit."""

import json

import pytest

import understudy as us
from understudy.errors import InputError
from understudy.game.methods.gem import GEMMethod
from understudy.game.methods.independent import IndependentMethod
from understudy.releases import Options
from understudy.releases.warm import warmed

from .conftest import people


def test_public_rows_are_named_in_the_plan_by_number_and_digest(schema):
    plain, warm, other = (
        us.prepare(schema, epsilon=1, method=made).method.describe()
        for made in (
            GEMMethod(),
            warmed(Options(method="gem", public=people(100)), schema).method,
            warmed(
                Options(method="gem", parameters={"steps": 1000}, public=people(100, key=1)), schema
            ).method,
        )
    )
    assert "public" not in plain
    assert json.loads(json.dumps(warm))["public"]["rows"] == 100
    assert warm["public"]["digest"] != other["public"]["digest"]


def test_a_public_table_of_another_schema_is_refused_for_free(schema, tmp_path):
    private, good = people(50), people(50)
    bad = {
        r"public: .*lacks 'visits'.*must have the schema of the private one": good.drop(["visits"]),
        r"public: column 'sex' has 50 values outside its domain": good.set_column(
            good.schema.get_field_index("sex"), "sex", [["unknown"] * 50]
        ),
        r"public: column 'age' .*cannot be read as": good.set_column(
            good.schema.get_field_index("age"), "age", [["old"] * 50]
        ),
        r"public: the table has no rows": good.slice(0, 0),
    }
    with us.Ledger(tmp_path / "l.db") as ledger:
        ledger.open_dataset("t", us.Budget.of(1, "1e-8"), composition="basic")
        for message, table in bad.items():
            with pytest.raises(InputError, match=message):
                us.release(
                    private, schema, epsilon=1, method="gem", public=table, ledger=ledger,
                    dataset="t",
                )  # fmt: skip
        with pytest.raises(InputError, match=r"public: method = independent .*use method = gem"):
            us.release(
                private, schema, epsilon=1, method=IndependentMethod(), public=good, ledger=ledger,
                dataset="t",
            )  # fmt: skip
        assert [e.kind for e in ledger.entries("t")] == ["open"]
