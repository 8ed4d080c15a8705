"""What the default method does with tables and workloads at the edge of what makes sense."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.thorough import examples, slow
from understudy.errors import InputError
from understudy.privacy.budget import Budget
from understudy.privacy.ledger import Ledger
from understudy.schema import Category, Schema

NULLS = """
[understudy]
version = 1

[[column]]
name = "age"
type = "integer"
lower = 0
upper = 9
nullable = true

[[column]]
name = "sex"
type = "category"
values = ["F", "M"]
nullable = true

[[column]]
name = "weight"
type = "number"
lower = 0
upper = 9
bins = 3
"""


def schema_of(*sizes: int) -> Schema:
    return Schema(tuple(Category(f"c{i}", tuple(range(s))) for i, s in enumerate(sizes)))


def table_of(sizes: tuple[int, ...], rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table({f"c{i}": rng.integers(0, size, rows) for i, size in enumerate(sizes)})


def charges_after(tmp_path, table, schema, *, match: str, **choices) -> str:
    """Release against a ledger, which must fail without a charge; returns what was said."""
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.open_dataset("t", Budget.of(5, "1e-6"))
        with pytest.raises(InputError, match=match) as caught:
            us.release(table, schema, epsilon=1, ledger=ledger, dataset="t", **choices)
        assert [entry.kind for entry in ledger.entries("t")] == ["open"]
        assert ledger.spent("t").epsilon == 0
    return str(caught.value)


@pytest.mark.parametrize("sizes", [(1, 3, 4), (1, 1, 1), (1, 5), (1,), (2, 2, 1, 2)], ids=str)
@pytest.mark.parametrize("rows", [0, 3, 400])
def test_columns_with_one_value_and_tables_with_few_rows(sizes, rows):
    schema = schema_of(*sizes)
    width = min(3, len(sizes))
    made = us.release(table_of(sizes, rows), schema, epsilon=1, workload=f"marginals:{width}")
    assert made.method["name"] == "maxent"
    assert schema.illegal(made.rows) == []
    assert made.rows.num_rows >= 1


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_fewer_rows_than_columns(rows):
    schema = schema_of(*[4] * 8)
    made = us.release(table_of((4,) * 8, rows), schema, epsilon=1)
    assert schema.illegal(made.rows) == []


def test_columns_of_nulls_stay_columns_of_nulls():
    schema = Schema.loads(NULLS)
    table = pa.table(
        {
            "age": pa.nulls(2000, pa.int64()),
            "sex": pa.nulls(2000, pa.string()),
            "weight": np.full(2000, 4.0),
        }
    )
    made = us.release(table, schema, epsilon=10)
    assert schema.illegal(made.rows) == []
    assert made.rows["age"].null_count > 0.95 * made.rows.num_rows
    assert made.rows["sex"].null_count > 0.95 * made.rows.num_rows


@pytest.mark.parametrize("kind", [pa.null(), pa.float64()])
def test_nulls_where_none_are_declared_become_legal_values(kind):
    schema = Schema.loads(NULLS)
    table = pa.table({"age": pa.nulls(300), "sex": pa.nulls(300), "weight": pa.nulls(300, kind)})
    made = us.release(table, schema, epsilon=1)
    assert schema.illegal(made.rows) == []
    assert made.rows["weight"].null_count == 0


@pytest.mark.parametrize("rows_public", [None, slow(10)])
@pytest.mark.parametrize("epsilon", [slow("0.01"), "0.0003"])
def test_what_is_all_noise_still_gives_legal_rows(epsilon, rows_public):
    schema = schema_of(*[4] * 10)
    for _ in range(examples(1, 3)):
        made = us.release(
            table_of((4,) * 10, 10), schema, epsilon=epsilon, rows_public=rows_public, rows=25
        )
        assert schema.illegal(made.rows) == []
        assert made.rows.num_rows == 25


def test_pairs_that_do_not_fit_are_refused_before_anything_is_charged(tmp_path):
    schema = schema_of(*[3000] * 8, 3)
    said = charges_after(
        tmp_path, table_of((2,) * 9, 10), schema, match="36 pairs", method="maxent"
    )
    assert "252,072,000 cells" in said
    assert "'c0' (3,000 values)" in said
    assert "'c8'" not in said  # three values are not what is too much
    assert "--set pairs=" in said


def test_the_number_of_pairs_that_is_offered_does_fit():
    schema = schema_of(*[3000] * 8, 3)
    with pytest.raises(InputError) as caught:
        us.prepare(schema, epsilon=1)
    fits = int(str(caught.value).rpartition("--set pairs=")[2])
    assert us.prepare(schema, epsilon=1, parameters={"pairs": fits})
    with pytest.raises(InputError):
        us.prepare(schema, epsilon=1, parameters={"pairs": fits + 2})


def test_a_pair_that_no_selection_saves_is_not_offered_one(tmp_path):
    said = charges_after(
        tmp_path, table_of((2, 2, 2), 10), schema_of(5000, 5000, 3), match="the largest 25,000,000"
    )
    assert "'c0' (5,000 values), 'c1' (5,000 values)" in said
    assert "--set pairs" not in said


@pytest.mark.parametrize(
    ("parameters", "match"),
    [({"records": 10}, "records = 10"), ({"quanta": 0}, "quanta = 0"), ({"pairs": 0}, "pairs = 0")],
)
def test_settings_out_of_range_are_refused_before_anything_is_charged(tmp_path, parameters, match):
    charges_after(
        tmp_path, table_of((2, 3), 10), schema_of(2, 3), match=match, parameters=parameters
    )
