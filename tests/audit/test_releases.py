"""Releases that are run again with planted records."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.audit.tables import SCHEMA, background
from understudy.audit.releases import Releasing, encoded, outliers, plant, releasing_like
from understudy.errors import InputError
from understudy.releases import prepare
from understudy.releases.run import release

CHOICES: dict[str, Any] = {
    "epsilon": "1", "delta": "1e-6", "workload": "marginals:2", "method": "independent",
}  # fmt: skip


def test_outliers_are_legal_distinct_and_far():
    found = outliers(background(), (9, 9, 9), (True,) * 3, 10, 3)
    assert len(np.unique(found, axis=0)) == 10
    assert ((found >= 0) & (found < 9)).all()
    assert np.array_equal(found, outliers(background(), (9, 9, 9), (True,) * 3, 10, 3))
    assert not any((row == background()).all(axis=1).any() for row in found)


def test_replaced_records_leave_the_number_of_rows_alone():
    sizes = set()

    class Counting:
        def describe(self) -> dict[str, Any]:
            return {}

        def __call__(self, table: Any) -> Any:
            sizes.add(len(table))
            return made(table)

    made = Releasing(SCHEMA, {**CHOICES, "neighbours": "replace", "rows_public": 40})
    planted = plant(made, background(), canaries=8, key=2)
    object.__setattr__(planted, "pipeline", Counting())
    coins = [planted.run(k)["inside"] for k in range(3)]
    assert sizes == {40}
    assert len({tuple(c) for c in coins}) == 3


@pytest.mark.parametrize("share", [{}, {"certificate_share": "0.3"}])
def test_the_pipeline_of_a_release_is_read_from_its_bundle(share):
    table = SCHEMA.decode(list(background().T), np.random.default_rng(0))
    made = release(table, SCHEMA, **CHOICES, **share)
    again = releasing_like(made).describe()
    assert again == Releasing(SCHEMA, {**CHOICES, **share}).describe()
    assert again["plan"] == made.plan.to_json()
    assert np.array_equal(encoded(SCHEMA, table), background())


def test_a_plan_of_another_version_is_not_audited_as_ours():
    table = SCHEMA.decode(list(background().T), np.random.default_rng(0))
    made = release(table, SCHEMA, **CHOICES)
    other = prepare(SCHEMA, **{**CHOICES, "epsilon": 3 * CHOICES["epsilon"]}).plan
    with pytest.raises(InputError, match="another version"):
        releasing_like(replace(made, plan=other))
