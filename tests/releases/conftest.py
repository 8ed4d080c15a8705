from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from understudy.privacy.ledger import Ledger
from understudy.schema import Schema

TOML = """
[understudy]
version = 1

[[column]]
name = "age"
type = "integer"
lower = 0
upper = 99
bins = 10

[[column]]
name = "sex"
type = "category"
values = ["F", "M"]

[[column]]
name = "smoker"
type = "boolean"
nullable = true

[[column]]
name = "visits"
type = "integer"
lower = 0
upper = 4
"""


@pytest.fixture(scope="session")
def schema() -> Schema:
    return Schema.loads(TOML)


def people(rows: int, key: int = 0) -> pa.Table:
    rng = np.random.default_rng(key)
    age = rng.integers(0, 100, rows)
    sex = np.where(rng.random(rows) < 0.4, "F", "M")
    smoker = [
        None if u < 0.05 else bool(u < 0.2 + a / 200)
        for u, a in zip(rng.random(rows), age, strict=True)
    ]
    visits = np.minimum(4, rng.poisson(0.2 + age / 40))
    return pa.table(
        {"age": age, "sex": sex, "smoker": pa.array(smoker, pa.bool_()), "visits": visits}
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger with an account of ε = 1 for the dataset "t"."""
    with Ledger(tmp_path / "l.db") as opened:
        opened.open_dataset("t", us.Budget.of(1, "1e-8"), composition="basic")
    return tmp_path / "l.db"


def charges(path: Path) -> list[str]:
    """What was charged to the dataset "t", in order; the chain must hold."""
    with Ledger(path) as ledger:
        ledger.verify("t")
        entries = ledger.entries("t")
    return [entry.body["purpose"] for entry in entries if entry.kind == "charge"]


@pytest.fixture(scope="session")
def table() -> pa.Table:
    return people(3000)


@pytest.fixture(scope="session")
def made(table: pa.Table, schema: Schema) -> us.Release:
    """One private release that tests look at from all sides."""
    return us.release(
        table,
        schema,
        epsilon=1,
        workload="marginals:2",
        method="independent",
        variations=True,
        beta=0.0001,  # tests that ask whether the truth is inside may not fail one time in twenty
    )
