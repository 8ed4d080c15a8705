"""Rows under a condition and with wanted shares: every row satisfies it, and all of it says so."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from understudy.errors import InputError, WorkloadError
from understudy.models import Weighted
from understudy.queries import Predicate
from understudy.releases import sample_to
from understudy.releases.bundle import model_files
from understudy.releases.conditions import NOT_CERTIFIED, Condition, Subject, condition, parse_match
from understudy.schema import Identifier


@pytest.fixture(scope="module")
def known(made):
    """The release with a model that is known: 60,000 records, women are a thousandth."""
    rng = np.random.default_rng(0)
    age = rng.integers(0, 10, 60_000)
    sex = (rng.random(60_000) > 0.001).astype(np.int64)
    smoker = (rng.random(60_000) < age / 10).astype(np.int64)
    visits = np.minimum(4, rng.poisson(0.1 + age / 4))
    shape = made.schema.shape
    codes = (age, sex, smoker, visits)
    model = Weighted(shape, codes, np.ones(60_000, np.float32), ((0, 1), (0, 2)))
    return replace(made, model=model, _frame=None)


WHERE = "age >= 65 and sex = 'F' and smoker"


def test_every_row_satisfies_the_condition_to_the_value(known):
    """Ages are kept in tens, so that 65 falls inside a cell."""
    rows = known.sample(3_000, where=WHERE, key=1)
    assert rows.num_rows == 3_000
    assert known.schema.illegal(rows) == []
    assert Predicate.parse(WHERE, known.schema).rows(rows).all()
    ages = rows["age"].to_numpy()
    assert ages.min() == 65
    assert abs(np.mean(ages < 70) - 5 / 35) < 0.05  # half a cell of ages has half of its rows
    assert rows.equals(known.sample(3_000, where=WHERE, key=1))
    assert not rows.equals(known.sample(3_000, where=WHERE, key=2))
    assert known.sample(0, where=WHERE, key=1).num_rows == 0


def test_shares_are_met(known):
    wanted = {"sex": {"F": 0.5}, "smoker": {True: 0.3, False: 0.7}, "age >= 50": 0.2}
    rows = known.sample(4_000, match=wanted, key=1)
    assert abs(np.mean(rows["sex"].to_numpy() == "F") - 0.5) < 0.01
    assert abs(np.mean(rows["smoker"].to_numpy(zero_copy_only=False)) - 0.3) < 0.01
    assert abs(np.mean(rows["age"].to_numpy() >= 50) - 0.2) < 0.01
    both = known.sample(4_000, where="age >= 50", match=["sex=F:0.25,M:0.75"], key=1)
    assert both["age"].to_numpy().min() >= 50
    assert abs(np.mean(both["sex"].to_numpy() == "F") - 0.25) < 0.01


def test_folders_hold_the_same_rows_and_say_what_they_are(known, tmp_path):
    asked = {"where": "age >= 65 and sex = 'F'", "match": {"smoker": {True: 0.5}}}
    rows = known.sample(500, **asked, key=3)
    one = known.sample_to(tmp_path / "one", 500, **asked, partitions=1, key=3, workers=1)
    assert pq.ParquetFile(one / "part-00000.parquet").read().equals(rows)
    many = known.sample_to(tmp_path / "many", 500, **asked, partitions=2, key=3, workers=1)
    parts = [pq.ParquetFile(path).read() for path in sorted(many.glob("*.parquet"))]
    assert Predicate.parse(asked["where"], known.schema).rows(pa.concat_tables(parts)).all()
    for table in (rows, *parts):
        said = json.loads(table.schema.metadata[b"understudy"])
        assert (said["certified"], said["note"]) == (False, NOT_CERTIFIED)
        assert said["condition"]["where"] == asked["where"]
    assert known.sample(5, key=1).schema.metadata is None


def test_a_worker_reads_the_condition_with_the_model(known):
    subject = Subject.of(known.schema, known.model, condition("age >= 65", None))
    job = sample_to.Job(10, 1, "7", "", json.dumps(subject.asked.to_json()))
    (rows,) = job.batches(0, sample_to._subject(job, model_files(subject)))
    assert rows.equals(known.sample(10, where="age >= 65", key=7))


def test_a_folder_is_not_gone_on_with_under_another_condition(known, tmp_path):
    folder = tmp_path / "rows"
    known.sample_to(folder, 100, where="age >= 50", partitions=2, key=1, workers=1)
    job = folder / "_understudy" / "job.json"
    job.write_text(job.read_text().replace('"finished": true', '"finished": false'))
    with pytest.raises(InputError, match="another condition"):
        known.sample_to(folder, 100, where="age >= 60", partitions=2, key=1, workers=1)


def test_identifiers_are_numbered_on(known):
    schema = us.Schema((Identifier("id", action="P{}"), *known.schema.columns))
    rows = replace(known, schema=schema).sample(50, where="age >= 65", key=1)
    assert rows["id"].to_pylist()[:2] == ["P1", "P2"]
    assert len(set(rows["id"].to_pylist())) == 50


def test_rules_hold_where_records_are_moved(known):
    rule = "[[rule]]\nsays = \"sex = 'M' or visits >= 2\"\n"
    schema = us.Schema.loads(known.schema.dumps() + rule)
    made = replace(known, schema=schema)
    rows = made.sample(2_000, where="sex = 'F' and age < 70", key=1)
    assert schema.illegal(rows) == []
    assert set(rows["sex"].to_pylist()) == {"F"}
    assert min(rows["visits"].to_pylist()) >= 2


BAD = {
    "no such column": ({"where": "agee > 3"}, "agee"),
    "never": ({"where": "smoker is null"}, "gives the condition on smoker no weight"),
    "never together": ({"where": "sex = 'F' and age < 10 and smoker"}, "never together"),
    "finer than a cell": ({"where": "age = 3 and age = 4"}, "finer than the release knows"),
    "not a text": ({"where": 3}, "must be a text"),
    "not a share": ({"match": {"sex": {"F": 1.5}}}, "from 0 to 1"),
    "more than all": ({"match": {"sex": {"F": 0.6, "M": 0.5}}}, "add up to 1.1"),
    "less than all": ({"match": {"sex": {"F": 0.6, "M": 0.3}}}, "have to add up to 1"),
    "nothing there": ({"match": {"smoker": {None: 0.1}}}, "no rows in the released model"),
    "no column": ({"match": {"sexx": {"F": 0.5}}}, "did you mean 'sex'"),
    "no value": ({"match": {"sex": {"X": 0.5}}}, "X"),
    "inside a cell": ({"match": {"age >= 65": 0.5}}, "falls inside a cell"),
    "contradiction": ({"match": {"age >= 50": 0.9, "age < 50": 0.9}}, "cannot hold together"),
    "under a condition": ({"where": "age >= 50", "match": {"age < 20": 0.5}}, "no rows"),
    "unreadable": ({"match": ["sex"]}, "write COLUMN=VALUE:SHARE"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_is_refused(name, known):
    asked, said = BAD[name]
    with pytest.raises((InputError, WorkloadError)) as caught:
        known.sample(10, **asked, key=1)
    assert said in str(caught.value)


def test_texts_of_shares():
    assert parse_match("sex=F:0.5") == ("sex", (("F", 0.5),))
    assert parse_match("sex=F:0.5, M:0.4") == ("sex", (("F", 0.5), ("M", 0.4)))
    assert parse_match("time=10:30:0.25") == ("time", (("10:30", 0.25),))
    assert parse_match("\"marital-status\"='a, b':1e-2") == ("marital-status", (("a, b", 0.01),))
    assert parse_match("age >= 65:0.3") == ("", (("age >= 65", 0.3),))
    for text in ("sex=F", "sex=F:", ":0.5", "", "age >= 65:0.3,age < 5:0.1"):
        with pytest.raises(InputError):
            parse_match(text)


def test_what_was_asked_can_be_said_and_read():
    asked = condition("age > 3", {"sex": {"F": 0.5}, "age >= 50": 0.1})
    assert Condition.from_json(json.loads(json.dumps(asked.to_json()))) == asked
    assert str(asked) == "where age > 3; share of sex = F: 0.5; share of age >= 50: 0.1"
    assert not Condition()
    assert Condition().metadata == {}
