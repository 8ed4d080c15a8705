"""A release of two tables: made, saved, read back, verified twice, and refused when tampered with."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import understudy as us
from tests.cli.cli_cases import run
from tools import verify_release as stranger
from understudy import report
from understudy.constraints.rule import Rule
from understudy.errors import (
    BudgetExhausted,
    InputError,
    SourceError,
    VerificationError,
    WorkloadError,
)
from understudy.privacy.budget import Budget
from understudy.privacy.ledger import Ledger
from understudy.releases.bundle import digest, manifest_bytes
from understudy.releases.families import FamilyRelease
from understudy.releases.verify import _drawn
from understudy.schema import Category, Identifier, Integer, Schema
from understudy.schema.family import Family, FamilySchema
from understudy.testing import SeededNoise

PARENTS = Schema((Identifier("hid", dtype="int64"), Category("region", ("N", "S"))))
CHILDREN = Schema(
    (
        Identifier("hid", dtype="int64"),
        Identifier("visit"),
        Integer("age", lower=0, upper=99, bins=5),
        Category("sex", ("F", "M")),
    )
)


def schema_of(order=None, least=1):
    return FamilySchema.of(
        PARENTS, CHILDREN, Family("homes", "hid", "people", "hid", 4, least, order), 400
    )


@pytest.fixture(scope="module")
def tables():
    """Siblings are of one sex nearly always, and of an age."""
    rng = np.random.default_rng(5)
    homes = np.arange(400)
    sizes = rng.integers(1, 5, 400)
    home = np.repeat(homes, sizes)
    sex = np.where(rng.random(home.size) < 0.95, home % 2, 1 - home % 2)
    return (
        pa.table({"hid": homes, "region": np.where(rng.random(400) < 0.5, "N", "S")}),
        pa.table(
            {
                "hid": home,
                "visit": [str(i) for i in range(home.size)],
                "age": np.clip(20 * (home % 5) + rng.integers(0, 20, home.size), 0, 99),
                "sex": np.where(sex == 0, "F", "M"),
            }
        ),
    )


@pytest.fixture(scope="module")
def made(tables):
    return us.release(tables, schema_of(), epsilon=30, delta=1e-6, key=1)


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
    return made.save(tmp_path_factory.mktemp("families") / "made")


@pytest.fixture
def second_verifier():
    return stranger.verify


def test_both_tables_come_out_with_keys_that_hold(made):
    assert isinstance(made, FamilyRelease)
    assert made.parents.column_names == ["hid", "region"]
    assert made.children.column_names == ["hid", "age", "sex"]
    keys = made.parents["hid"].to_numpy()
    assert (keys == np.arange(1, 401)).all()
    home = made.children["hid"].to_numpy()
    assert (np.diff(home) >= 0).all()
    assert set(home) == set(keys)
    assert np.bincount(home)[1:].max() <= 4


def test_siblings_are_alike_as_in_the_private_table(made):
    home, sex = made.children["hid"].to_numpy(), made.children["sex"].to_numpy(zero_copy_only=False)
    same = [sex[i] == sex[i - 1] for i in range(1, home.size) if home[i] == home[i - 1]]
    assert np.mean(same) > 0.8  # 0.905 there, 0.5 of children drawn one by one; ε = 30


def test_what_is_promised_and_certified_is_about_families(made):
    assert "one homes.hid with all its people" in made.promise
    assert "public number 400" in made.promise
    assert made.certificate.rows == made.families.views.total == 400 * made.schema.weight
    answer = made.answer("`people.sex` = 'F' and `homes.region` = 'N'")
    assert answer.certified
    assert answer.low <= answer.estimate <= answer.high
    home, female = made.children["hid"].to_numpy(), pc.equal(made.children["sex"], "F").to_numpy()
    shares = np.bincount(home, female)[1:] / np.bincount(home)[1:]
    north = pc.equal(made.parents["region"], "N").to_numpy()
    assert answer.estimate == pytest.approx(np.mean(shares * north))  # of all children, no sample


def test_a_column_that_one_table_has_needs_no_prefix(made, folder):
    short, full = "sex = 'F' and region = 'N'", "people.sex = 'F' and homes.region = 'N'"
    assert replace(made.answer(short), predicate=full) == made.answer(full)
    named = made.estimate("mean(people.age) by homes.region")
    assert [e.shown for e in made.estimate("mean(age) by region")] == [e.shown for e in named]
    with pytest.raises(WorkloadError, match="unknown column 'hid'"):
        made.answer("hid = 1")
    told = run("answer", folder, short).out
    assert "of 400\n" in told.partition("families ")[2], "not of rows"
    assert "each counts once, and its rows of people share that equally" in told


def test_estimates_are_of_families(made, tables):
    """At ε = 30 noise is small beside the intervals of a sample of 400 (seen: hundreds of releases)."""
    parents, children = tables
    north = parents["region"].to_numpy(zero_copy_only=False) == "N"
    home, age = children["hid"].to_numpy(), children["age"].to_numpy()
    means = np.bincount(home, age) / np.bincount(home)
    wanted = {
        "count(homes.region = 'N')": north.sum(),
        "mean(people.age)": means.mean(),
        "mean(people.age) where homes.region = 'N'": means[north].mean(),
    }
    for asked, value in wanted.items():
        of_all, of_table = (made.estimate(asked, target=t) for t in ("population", "table"))
        assert of_all.value == of_table.value == pytest.approx(value, rel=0.1)
        assert of_all.parts.sampling > 0 == of_table.parts.sampling
    # A sample of n families: the deviation of a share of parents is √(p(1 − p)/n).
    share = made.estimate("share(homes.region = 'N')")
    assert share.parts.sampling == pytest.approx(0.5 / 20, rel=0.05)


def test_it_is_read_back_and_verified_by_both(made, folder, second_verifier):
    again = us.Release.load(folder)
    assert isinstance(again, FamilyRelease)
    assert again.parents.equals(made.parents)
    assert again.children.equals(made.children)
    assert again.rows.equals(made.rows)
    assert us.verify(folder).passed
    assert second_verifier(folder) == []


def test_it_has_a_report_that_counts_families(made):
    page = report.render(made)
    assert "400 synthetic homes with" in page
    assert "figures for the population that the families were drawn from" in page
    assert "mean(people.age)" in page
    assert f"about {made.rows_estimate:,}" not in page
    assert "synthetic.parquet" not in page


def test_fresh_families_cost_nothing(made):
    parents, children = made.sample(50, key=3)
    assert parents.num_rows == 50
    assert made.sample(50, key=3)[1].equals(children)
    with pytest.raises(InputError, match="two tables"):
        next(made.stream(5))


def _changed(folder, out, name, table):
    """The bundle with another table, and a manifest that fits it."""
    shutil.copytree(folder, out)
    pq.write_table(table, out / name)
    manifest = json.loads((out / "release.json").read_text(encoding="utf-8"))
    data = (out / name).read_bytes()
    manifest["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    manifest["families"]["children" if name == "children.parquet" else "parents"] = table.num_rows
    manifest["digest"] = digest(manifest)
    (out / "release.json").write_bytes(manifest_bytes(manifest))
    return out


@pytest.mark.parametrize(
    "change", ["orphan", "crowd", "value", "order", "twice", "parents", "sizes"]
)
def test_tampered_families_are_refused_by_both(folder, tmp_path, second_verifier, change):
    parents = pq.read_table(folder / "parents.parquet")
    children = pq.read_table(folder / "children.parquet")
    name, table = "children.parquet", children
    column = children["hid"].to_numpy().copy()
    if change == "orphan":
        column[-1] = 10_000
    elif change == "crowd":
        column[:9] = 1
    elif change == "order":
        column = column[::-1].copy()
    if change in ("orphan", "crowd", "order"):
        table = children.set_column(0, "hid", pa.array(column))
    elif change == "value":
        table = children.set_column(2, "sex", pa.array(["?"] * children.num_rows))
    elif change == "parents":
        region = pa.array(np.roll(parents["region"].to_numpy(zero_copy_only=False), 1))
        name, table = "parents.parquet", parents.set_column(1, "region", region)
    elif change == "sizes":
        home = np.sort(401 - column)  # as many families of every size, in another order
        table = children.set_column(0, "hid", pa.array(home))
    else:
        name, table = "parents.parquet", pa.concat_tables([parents, parents.slice(0, 1)])
    out = _changed(folder, tmp_path / change, name, table)
    assert not us.verify(out).passed
    assert second_verifier(out) != []


def test_another_order_of_children_is_found_by_drawing_again(folder, tmp_path):
    children = pq.read_table(folder / "children.parquet")
    ages = pa.array(np.roll(children["age"].to_numpy(), 1))
    out = _changed(
        folder, tmp_path / "rolled", "children.parquet", children.set_column(1, "age", ages)
    )
    with pytest.raises(VerificationError, match="column 'age' differs"):
        _drawn(us.Release.load(out))


def test_ordered_families_are_numbered_in_their_order(tables, tmp_path, second_verifier):
    made = us.release(tables, schema_of("visit", 0), epsilon=10, delta=1e-6, key=2)
    assert made.children["visit"].to_pylist() == [str(i + 1) for i in range(made.children.num_rows)]
    out = made.save(tmp_path / "ordered")
    assert us.verify(out).passed
    assert second_verifier(out) == []


RULES = (
    "previous.age <= age",
    "age < 20 implies sex = 'F'",
    "region = 'N' implies people.age >= 20",
    "previous.sex <= sex",
)


@pytest.fixture(scope="module")
def ruled(tables):
    parents, children = PARENTS, replace(CHILDREN, columns=(
        *CHILDREN.columns[:3], Category("sex", ("F", "M"), ordinal=True)
    ))  # fmt: skip
    family = Family("homes", "hid", "people", "hid", 4, 0, "visit")
    schema = FamilySchema.of(parents, children, family, 400, [Rule(each) for each in RULES])
    return us.release(tables, schema, epsilon=10, delta=1e-6, key=2)


def wrong(parents, children):
    """Members of families that break the rules above, by loops over rows."""
    north = {row["hid"] for row in parents.to_pylist() if row["region"] == "N"}
    found, before = 0, None
    for row in children.to_pylist():
        if before is not None and before["hid"] == row["hid"]:
            found += before["age"] > row["age"]
            found += before["sex"] > row["sex"]
        found += row["age"] < 20 and (row["sex"] != "F" or row["hid"] in north)
        before = row
    return found


def test_families_keep_their_rules(ruled, tables, tmp_path, second_verifier):
    assert wrong(*tables) > 100
    assert wrong(ruled.parents, ruled.children) == 0
    assert wrong(*ruled.sample(1_000, key=7)) == 0
    out = ruled.save(tmp_path / "ruled")
    assert us.Release.load(out).children.equals(ruled.children)
    assert us.verify(out).passed
    assert second_verifier(out) == []
    ages = ruled.children["age"].to_numpy().copy()
    home = ruled.children["hid"].to_numpy()
    cell = ages // 20
    (at, *_) = np.flatnonzero((home[1:] == home[:-1]) & (cell[1:] == cell[:-1]) & (cell[1:] > 0))
    ages[[at, at + 1]] = 20 * cell[at] + 5, 20 * cell[at] + 4  # no code moves
    column = ruled.children.column_names.index("age")
    table = ruled.children.set_column(column, "age", pa.array(ages))
    changed = _changed(out, tmp_path / "fallen", "children.parquet", table)
    assert "previous.age" in str(us.verify(changed))
    assert any("previous.age" in problem for problem in second_verifier(changed))


def test_one_flat_table_is_split_and_released(tables):
    parents, children = (table.to_pandas() for table in tables)
    flat = pa.Table.from_pandas(children.merge(parents, on="hid"), preserve_index=False)
    schema = schema_of("visit")
    made = us.release(flat, schema, epsilon=10, delta=1e-6, key=2)
    assert isinstance(made, FamilyRelease)
    assert made.parents.column_names == ["hid", "region"]
    assert made.children.column_names == ["hid", "visit", "age", "sex"]
    assert made.parents.num_rows == 400
    with pytest.raises(SourceError, match="--children"):
        us.release(tables[1], schema, epsilon=1, delta=1e-6)


def crowd(most, name, order):
    """Families of up to so many children, and their schema."""
    rng = np.random.default_rng(1)
    home = np.repeat(np.arange(60), np.arange(60) % (most + 1))
    parents = pa.table({"hid": np.arange(60), "region": np.where(np.arange(60) % 2, "N", "S")})
    children = pa.table(
        {
            "hid": home,
            "visit": [str(i) for i in range(home.size)],
            "age": rng.integers(0, 100, home.size),
            "sex": rng.choice(["F", "M"], home.size),
        }
    )
    family = Family("homes", "hid", name, "hid", most, 0, order, "none")
    return (parents, children), FamilySchema.of(PARENTS, CHILDREN, family)


@pytest.mark.parametrize("order", [None, pytest.param("visit", marks=pytest.mark.slow)])
def test_fifty_children(order, tmp_path, second_verifier):
    data, schema = crowd(50, "people", order)
    made = us.release(data, schema, epsilon=4, delta="1e-6", key=1, rows=30)
    sizes = np.bincount(made.children["hid"].to_numpy(), minlength=31)[1:]
    assert 10 < sizes.max() <= 50
    out = made.save(tmp_path / "made")
    assert us.verify(out).passed
    assert second_verifier(out) == []


def test_a_second_table_of_children_is_released_by_itself_and_adds_up(tmp_path):
    budget = {"ledger": tmp_path / "l.db", "dataset": "homes", "epsilon": 4, "delta": "1e-6"}
    with Ledger(tmp_path / "l.db") as ledger:
        ledger.open_dataset("homes", Budget.of(7, "1e-5"), unit="homes.hid")
    for name in ("people", "pets"):
        data, schema = crowd(2, name, None)
        us.release(data, schema, key=1, rows=30, **budget)
    with pytest.raises(BudgetExhausted, match="homes"):
        us.release(data, schema, **budget)


def test_methods_without_records_are_refused_before_anything_is_spent(tables):
    with pytest.raises(InputError, match="maxent"):
        us.prepare(schema_of(), epsilon=1, method="mwem")


def test_a_release_from_a_database_is_the_one_from_memory(tables):
    """The same counts, the same noise: the same two tables and certificate."""
    connection = ibis.duckdb.connect()
    for name, table in zip(("homes", "people"), tables, strict=True):
        connection.con.register(f"{name}_", table)
        connection.raw_sql(f"CREATE TABLE {name} AS SELECT * FROM {name}_")
    again = us.release(
        (connection.table("homes"), connection.table("people")),
        schema_of(), epsilon=30, delta=1e-6, key=1, noise=SeededNoise(1),
    )  # fmt: skip
    other = us.release(tables, schema_of(), epsilon=30, delta=1e-6, key=1, noise=SeededNoise(1))
    assert again.certificate.to_json() == other.certificate.to_json()
    assert again.parents.equals(other.parents)
    assert again.children.equals(other.children)
