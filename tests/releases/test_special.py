"""A release of columns with special values: counted, drawn, asked and verified as their own cells."""

from datetime import date

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tools import verify_release
from understudy.errors import SchemaError
from understudy.releases.verify import verify
from understudy.schema.toml import build_column

DECLARED = """
[understudy]
version = 1
rows_public = 2000

[[column]]
name = "income"
type = "number"
lower = 0
upper = 100
bins = 5
special = ["N", 50]
nullable = true

[[column]]
name = "weight"
type = "number"
dtype = "float32"
lower = 0
upper = 100
bins = 4
special = [0, 33.3]

[[column]]
name = "age"
type = "integer"
special = [99, -1]
edges = [0, 18, 65, 99, 100, 120]

[[column]]
name = "seen"
type = "date"
edges = [2024-01-01, 2024-07-01, 2025-01-01]
special = [9999-12-31]

[[rule]]
says = "age < 18 implies income = 'N'"
"""


def table(rows=2000):
    rng = np.random.default_rng(0)
    age = rng.choice([*range(120), 99, -1], rows)
    income = [
        "N" if a in range(18) or i > 110 else None if i > 105 else f"{i:.1f}"
        for a, i in zip(age, rng.integers(0, 120, rows), strict=True)
    ]
    return pa.table(
        {
            "income": pa.array(income, pa.string()),
            "weight": pa.array(rng.choice([0, 33.3, 12, 80], rows).astype(np.float32)),
            "age": pa.array(age),
            "seen": [date(9999, 12, 31) if i % 3 else date(2024, 3, 1) for i in range(rows)],
        }
    )


@pytest.fixture(scope="module")
def released():
    schema = us.Schema.loads(DECLARED)
    return us.release(table(), schema, epsilon=10, key=3)


def test_both_verifiers_accept_it(released, tmp_path):
    released.save(tmp_path / "r")
    assert verify(tmp_path / "r").passed
    again = us.Release.load(tmp_path / "r")
    assert again.schema == released.schema
    assert [column.size for column in again.schema.modelled] == [8, 6, 6, 3]


def test_special_values_are_about_as_frequent_as_in_the_rows(released):
    rows, exact = released.rows, table()
    for name, value in (("income", "N"), ("weight", np.float32(33.3)), ("age", 99)):
        shares = [np.mean([v == value for v in t[name].to_pylist()]) for t in (rows, exact)]
        assert abs(shares[0] - shares[1]) < 0.05  # noise of 2,000 rows at epsilon = 10: far less
    assert rows.schema.field("income").type == pa.string()


def test_answers_speak_of_numbers_alone(released):
    high, special, all_numbers = (
        released.answer(asked) for asked in ("income >= 60", "income in ('N', 50)", "income <= 100")
    )

    def as_number(text):
        return -1 if text in (None, "N", "50") else float(text)

    numbers = np.array(list(map(as_number, released.rows["income"].to_pylist())))
    assert high.estimate == pytest.approx(np.mean(numbers >= 60), abs=0.01)
    nulls = released.answer("income is null").estimate
    assert all_numbers.estimate + special.estimate + nulls == pytest.approx(1, abs=0.01)


def test_rules_hold_in_every_row(released):
    rows = released.sample(5000, key=1)
    pairs = zip(rows["age"].to_pylist(), rows["income"].to_pylist(), strict=True)
    assert all(income == "N" for age, income in pairs if 0 <= age < 18)


@pytest.mark.parametrize(
    "facts",
    [
        {"special": ["5"]},
        {"special": ["N", "N"]},
        {"special": [1, 1.0]},
        {"special": [" N"]},
        {"special": ["?"], "null_values": ["?"]},
        {"type": "category", "values": ["a"], "special": ["N"]},
        {"type": "category", "values": ["a"], "prefixes": [1]},
        {"type": "category", "values": ["a*"], "prefixes": [1, 2]},
    ],
)
def test_neither_verifier_takes_what_cannot_be_declared(facts):
    column = {
        "name": "x",
        "type": "number",
        "lower": 0.0,
        "upper": 9.0,
        "bins": 3,
        "dtype": "string",
    }
    if facts.get("type") == "category":
        column = {"name": "x", "dtype": "string"}
    assert list(verify_release.stated_problems({**column, **facts}))
    with pytest.raises(SchemaError):
        build_column({**column, **facts})


FOUND = """
[understudy]
version = 1

[[column]]
name = "income"
type = "number"
decimals = 0
special = ["N", 0]
nullable = true

[[column]]
name = "age"
type = "integer"
lower = 0
upper = 120
bins = {quantiles = 4}
special = [99, -1]
"""
RULED = (
    FOUND.replace("{quantiles = 4}", '"shape"')
    + """
[[rule]]
says = "age = 99 implies income in ('N', 0)"
[[rule]]
says = "income >= 20000 implies age >= 18"
"""
)


@pytest.mark.parametrize("declared", [FOUND, RULED], ids=["quantiles", "rule"])
def test_shapes_and_quantiles_are_found_beside_special_values(tmp_path, declared):
    rng = np.random.default_rng(1)
    amounts = rng.lognormal(9, 1, 3000).astype(int)
    kinds = rng.choice(["N", "0", None, "x"], 3000, p=[0.3, 0.2, 0.05, 0.45])
    income = [str(a) if kind == "x" else kind for a, kind in zip(amounts, kinds, strict=True)]
    rows = pa.table(
        {
            "income": pa.array(income, pa.string()),
            "age": rng.choice([*range(18, 80), *[99] * 30, *[-1] * 9], 3000),
        }
    )
    asked = {"epsilon": 6, "delta": "1e-6", "method": "independent"}
    made = us.release(rows, us.Schema.loads(declared), **asked)
    (found, ages) = made.schema.columns
    assert found.labels()[-3:] == ["N", "0", "NULL"]
    assert (found.dtype, ages.dtype) == ("string", "int64")
    assert ages.labels()[-2:] == ["99", "-1"]
    for name, value in (("income", "N"), ("income", "0"), ("age", 99), ("age", -1)):
        shares = [np.mean([v == value for v in t[name].to_pylist()]) for t in (made.rows, rows)]
        assert abs(shares[0] - shares[1]) < (0.4 if declared == RULED else 0.1)
    assert made.schema.illegal(made.rows) == []
    assert verify(made.save(tmp_path / "r")).passed  # both verifiers look at it
