"""Releases of people whose rows weigh as much as one together: `weight = "equal"`."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tools import verify_release as stranger
from understudy.errors import InputError
from understudy.privacy.relation import Relation
from understudy.releases.bundle import digest, manifest_bytes
from understudy.releases.outline import noise_in_rows
from understudy.report import render
from understudy.report.compare import compare
from understudy.schema import Category, Identifier, Integer, Schema
from understudy.units import Unit

COLUMNS = (Identifier("who"), Integer("a", 0, 5), Category("b", ("x", "y")))
EQUAL = Schema(COLUMNS, unit=Unit.sharing("who", 4), rows_public=500)


@pytest.fixture(scope="module")
def people():
    """Who has many rows says "x"; who has one says "y"."""
    rng = np.random.default_rng(1)
    who = np.repeat(np.arange(500), np.where(np.arange(500) < 100, 4, 1))
    b = np.where(who < 100, "x", "y")
    return pa.table({"who": who.astype(str), "a": rng.integers(0, 6, who.size), "b": b})


@pytest.fixture(scope="module")
def folder(people, tmp_path_factory):
    made = us.release(people, EQUAL, epsilon=1, delta="1e-6", key=1)
    assert made.rows.num_rows == made.number == 500
    return made.save(tmp_path_factory.mktemp("weights") / "made")


@pytest.fixture
def second_verifier():
    return stranger.verify


def test_shares_are_of_people_and_cost_what_one_row_costs(people, folder):
    """A fifth of the people say "x", a half of the rows do; noise is that of a table of people."""
    made = us.Release.load(folder)
    share = np.mean(made.rows["b"].to_numpy(zero_copy_only=False) == "x")
    assert abs(share - 0.2) < 0.1  # the noise is fixed
    assert "(at most 4 of its rows count, together as one)" in made.promise
    assert "public number 500" in made.promise
    rows, equal, four = (
        [noise_in_rows(charge, schema.weight) for charge in us.prepare(schema, **budget).plan]
        for schema in (Schema(COLUMNS), EQUAL, Schema(COLUMNS, unit=Unit("who", 4)))
        for budget in [{"epsilon": 1, "delta": "1e-6", "rows_public": 500}]
    )
    assert equal == pytest.approx(rows, rel=0.05)
    assert [f / r for f, r in zip(four, rows, strict=True)] == pytest.approx(
        [4] * len(rows), rel=0.2
    )


def test_both_verifiers_accept_it_and_no_other_weight(folder, second_verifier, tmp_path):
    assert us.verify(folder).passed
    assert second_verifier(folder) == []
    manifest = json.loads((folder / "release.json").read_bytes())
    for change in ({"equal": 3}, {"max_rows": 4}):
        changed = json.loads(json.dumps(manifest))
        changed["promise"]["unit"] |= change
        changed["digest"] = digest(changed)
        other = tmp_path / "-".join(change)
        other.mkdir()
        for file in folder.iterdir():
            (other / file.name).write_bytes(file.read_bytes())
        (other / "release.json").write_bytes(manifest_bytes(changed))
        assert not us.verify(other).passed
        assert second_verifier(other) != []


def test_what_weights_do_not_do(people, folder):
    made = us.Release.load(folder)
    with pytest.raises(InputError, match='weight = "equal"'):
        made.estimate("mean(a)")
    with pytest.raises(InputError, match='weight = "equal"'):
        compare(people, made)
    with pytest.raises(InputError, match="released by maxent"):
        us.release(people, EQUAL, epsilon=1, delta="1e-6", method="independent")


@pytest.mark.parametrize(
    "unit", [Unit("who", 1), Unit.sharing("who", 1), EQUAL.unit, Unit("P.k", 1, family="C")]
)
def test_both_verifiers_say_alike_what_is_counted(unit, second_verifier):
    said = Relation.ADD_REMOVE.describe(rows_public=None, unit=unit)
    promise = {"relation": "add-remove", "rows_public": None, "unit": unit.to_json()}
    promise |= {"epsilon": "1", "delta": "1/1000000"}
    assert said in second_verifier.__globals__["in_words"](promise)


def test_the_report_says_how_many_rows_of_a_person_count(folder):
    page = " ".join(render(us.Release.load(folder)).split())
    assert "more than 4, so many count" in page
    assert "weigh as much as one row together" in page
