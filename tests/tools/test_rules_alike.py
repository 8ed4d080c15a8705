"""Both verifiers read rules alike: on random rows they count the same that break one."""

import tomllib

import numpy as np
import pyarrow as pa
import pytest

from tests.tools.survey import RULED
from tools import verify_release as stranger
from understudy.constraints.rule import Rule
from understudy.constraints.rules import Rules
from understudy.schema import Schema

TEXT = """
[understudy]
version = 1

[[column]]
name = "age"
type = "integer"
nullable = true
lower = 0
upper = 9

[[column]]
name = "grade"
type = "category"
nullable = true
values = ["low", "mid", "it's high"]
other = "?"
ordinal = true

[[column]]
name = "level"
type = "category"
values = [1, 2, 5]

[[column]]
name = "seen on"
type = "date"
nullable = true
lower = 2024-01-01
upper = 2024-01-10

[[column]]
name = "ill"
type = "boolean"
nullable = true
"""

RULES = [
    "age < 3 implies ill",
    "ill",
    "not ill implies age >= 2 and grade <> 'low'",
    "grade in ('low', 'mid') implies level = 2 or level = 5",
    "grade not in ('low', '?') implies age between 2 and 7",
    "age not between 3 and 5 implies ill is not null",
    "\"seen on\" >= '2024-01-05' implies level <> 5",
    "4 <= age implies grade = 'it''s high'",
    "not (age > 2 and ill = false) or level = 1",
    "level >= 2 implies age <> 9",
    "age is null implies grade is null",
]


@pytest.mark.parametrize("says", RULES)
def test_they_count_the_same(says):
    schema = Schema.loads(TEXT)
    rng = np.random.default_rng(1)
    codes = [rng.integers(0, size, 500).astype(np.uint8) for size in schema.shape]
    rows = schema.decode(codes, rng)
    ours = Rules([Rule(says)], schema).illegal(rows)
    columns = {column["name"]: column for column in tomllib.loads(schema.dumps())["column"]}
    theirs = stranger.rule_broken({"says": says}, columns, rows)
    assert theirs > 0
    assert [line.split()[0] for line in ours] == [str(theirs)]


def test_dependencies_too():
    schema = Schema.loads(TEXT)
    rule = Rule("level determines ill", (("1", "true"), ("2", "false"), ("5", "true")))
    rng = np.random.default_rng(1)
    codes = [rng.integers(0, size, 500).astype(np.uint8) for size in schema.shape]
    rows = schema.decode(codes, rng)
    ours = Rules([rule], schema).illegal(rows)
    columns = {column["name"]: column for column in tomllib.loads(schema.dumps())["column"]}
    theirs = stranger.rule_broken(rule.facts(), columns, rows)
    assert [line.split()[0] for line in ours] == [str(theirs)]


@pytest.mark.parametrize("shuffled", [False, True])
def test_what_is_computed_and_compared(shuffled):
    """All rows keep the rules as they are decoded; shuffled, both count the same that do not."""
    rng = np.random.default_rng(1)
    codes = [rng.integers(0, size, 2000).astype(np.uint8) for size in RULED.shape]
    rows = RULED.decode(codes, rng)
    if shuffled:
        mixed = [column.take(pa.array(rng.permutation(2000))) for column in rows.columns]
        rows = pa.table(mixed, schema=rows.schema)
    document = tomllib.loads(RULED.dumps())
    columns = {column["name"]: column for column in document["column"]}
    theirs = {r["says"]: stranger.rule_broken(r, columns, rows) for r in document["rule"]}
    ours = {line.split("rule ")[1][1:-1]: int(line.split()[0]) for line in RULED.illegal(rows)}
    assert {says: count for says, count in theirs.items() if count} == ours
    assert len(ours) == (len(RULED.rules) if shuffled else 0)
    assert stranger.computed(document) == {"sector", "income", "band"}
