"""Rules in releases: zeros in the model, every sampled row, an honest certificate."""

import hashlib
import itertools
import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from tests.tools.residents import CHILDREN, COLUMNS, MAPPING, PLACES
from tests.tools.survey import BARE, RULED, survey
from understudy.errors import SourceError
from understudy.queries import counts
from understudy.releases import bundle, facts
from understudy.releases.verify import verify
from understudy.schema import Schema
from understudy.source import read
from understudy.testing import SeededNoise

SCHEMA = Schema.loads(f"{COLUMNS}\n[[rule]]\nsays = '''{CHILDREN}'''\n{MAPPING}")


def table(rows=2000, wrong=0.0):
    rng = np.random.default_rng(5)
    age = rng.integers(0, 100, rows)
    grown = rng.choice(["never", "married", "widowed"], rows, p=[0.2, 0.6, 0.2])
    place = rng.integers(0, 3, rows)
    off = np.where(rng.random(rows) < wrong, 1, 0)
    return pa.table(
        {
            "age": age,
            "marital status": np.where((age < 16) & (off == 0), "never", grown),
            "zip": np.array(list(PLACES))[place],
            "city": np.array(list(PLACES.values()))[(place + off) % 3],
            "retired": age > 66,
        }
    )


def keeps(rows):
    age, status = rows["age"].to_numpy(), np.array(rows["marital status"].to_pylist())
    pairs = set(zip(rows["zip"].to_pylist(), rows["city"].to_pylist(), strict=True))
    assert (status[age < 16] == "never").all()
    assert all(PLACES.get(zip_, city) == city for zip_, city in pairs)
    assert SCHEMA.illegal(rows) == []


@pytest.mark.parametrize("method", ["auto", "independent", "mwem"])
def test_every_row_keeps_the_rules(tmp_path, method):
    made = us.release(table(), SCHEMA, epsilon=1, delta="1e-6", method=method)
    keeps(made.rows)
    keeps(made.sample(10_000, key=1))
    for part in made.stream(500, key=2):
        keeps(part)
    saved = made.save(tmp_path / "out")  # both verifiers look at it
    assert verify(saved).passed
    again = us.Release.load(saved)
    assert again.schema.rules == SCHEMA.rules
    keeps(again.sample(1000, key=3))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "independent"])
def test_a_million_rows_keep_the_rules(method):
    made = us.release(table(20_000), SCHEMA, epsilon=1, delta="1e-6", method=method)
    rows = made.sample(1_000_000, key=1)
    assert rows.num_rows == 1_000_000
    keeps(rows)


def test_the_default_model_has_zeros():
    made = us.release(
        table(), SCHEMA, epsilon=1, delta="1e-6", key=1, noise=SeededNoise(1)
    )  # fmt: skip
    bare = us.release(
        table(), Schema.loads(COLUMNS), epsilon=1, delta="1e-6", key=1, noise=SeededNoise(1)
    )
    other = ~np.eye(4, 3, dtype=bool)
    other[3] = False  # a zip code that is not listed determines nothing
    assert made.model.marginal((2, 3))[other].sum() == 0
    assert made.model.marginal((0, 1))[0, 1:].sum() == 0
    assert bare.model.marginal((2, 3))[other].sum() > 0
    # What was measured is still fitted: columns are where they were.
    for i in range(len(SCHEMA.shape)):
        assert np.abs(made.model.marginal((i,)) - bare.model.marginal((i,))).max() < 0.02


def test_the_certificate_is_of_the_mended_rows():
    """Rules that most private rows break: the bound says so instead of hiding it."""
    given = table(4000, wrong=0.6)
    made = us.release(given, SCHEMA, epsilon=50, delta="1e-6", key=1, noise=SeededNoise(1))
    keeps(made.rows)
    cliques = made.workload.cliques
    true = counts(SCHEMA.encode(given), SCHEMA.shape, cliques)
    drawn = counts(SCHEMA.encode(made.rows), SCHEMA.shape, cliques)
    worst = max(np.abs(t / t.sum() - d / d.sum()).max() for t, d in zip(true, drawn, strict=True))
    assert worst > 0.1
    assert worst <= made.certificate.bound < worst + 0.05


def test_rows_that_break_a_rule_are_refused(tmp_path):
    made = us.release(table(), SCHEMA, epsilon=1, delta="1e-6", method="independent")
    saved = made.save(tmp_path / "out")
    rows = pq.read_table(saved / "synthetic.parquet")
    city = ["Ulm" if c != "Ulm" else "Bonn" for c in rows["city"].to_pylist()]
    at = rows.column_names.index("city")
    broken = rows.set_column(
        at, rows.schema.field("city"), pa.array(city, rows.schema.field("city").type)
    )
    _rewrite(saved, broken)
    found = verify(saved)  # the other verifier is asked too, and must agree
    assert not found.passed
    assert "break the rule" in next(c.detail for c in found.checks if c.name == "rows")


def _rewrite(saved, rows):
    """Other rows in a bundle, with digests that fit."""
    pq.write_table(rows, saved / "synthetic.parquet")
    manifest = json.loads((saved / "release.json").read_text())
    data = (saved / "synthetic.parquet").read_bytes()
    manifest["files"]["synthetic.parquet"] = {
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
    }
    manifest["digest"] = bundle.digest(manifest)
    (saved / "release.json").write_bytes(bundle.manifest_bytes(manifest))


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory):
    made = us.release(survey(5000), RULED, epsilon=1, delta="1e-6", method="independent")
    return made, made.save(tmp_path_factory.mktemp("rules") / "out")


def test_derived_columns_are_exact_and_not_paid_for(surveyed):
    """Neither modelled nor measured, in the rows at their place, and both verifiers agree."""
    made, saved = surveyed
    assert made.rows.column_names == [column.name for column in RULED.columns]
    measured = {RULED.modelled[i].name for m in made.measurements for i in m.clique}
    assert measured.isdisjoint({"sector", "income", "band"})
    assert made.model.shape == RULED.shape
    for rows in (made.rows, made.sample(20_000, key=3), us.Release.load(saved).sample(500, key=4)):
        assert RULED.illegal(rows) == []
        income = np.array(rows["wages"]) + np.array(rows["other"])
        assert (np.array(rows["income"]) == income).all()
    assert verify(saved).passed


def test_derived_columns_may_lack_in_the_private_table():
    ask = {"epsilon": 1, "delta": "1e-6", "method": "independent", "key": 1}
    rows = survey(500)
    bare = rows.drop_columns(["sector", "income", "band"])
    one, two = (us.release(t, RULED, noise=SeededNoise(1), **ask).rows for t in (rows, bare))
    assert one.equals(two)
    with pytest.raises(SourceError, match="wages"):
        us.release(rows.drop_columns(["wages"]), RULED, **ask)


def test_questions_about_derived_columns(surveyed):
    made, _ = surveyed
    told = made.answer("sector = 'A'")
    assert told.certified
    assert "industry" in told.by
    wide = made.answer("income > 60000")
    assert set(wide.by) == {"wages", "other"}
    assert wide.low <= wide.estimate <= wide.high
    assert made.answer("bedrooms <= rooms").estimate == 1


@pytest.mark.parametrize(
    ("name", "said"), [("income", "income = wages"), ("bedrooms", "bedrooms <=")]
)
def test_wrong_values_are_refused(surveyed, tmp_path, name, said):
    """Both verifiers count the rows; one wrong sum or one bedroom too many is enough."""
    _, saved = surveyed
    copy = tmp_path / "copy"
    shutil.copytree(saved, copy)
    copy.chmod(0o755)
    rows = pq.read_table(copy / "synthetic.parquet")
    values = np.array(rows[name]).copy()
    at = int(np.argmin(np.array(rows["rooms"]) + (values == 0)))
    values[at] = values[at] + 1 if name == "income" else 8
    place = rows.column_names.index(name)
    rows = rows.set_column(place, rows.schema.field(name), pa.array(values))
    _rewrite(copy, rows)
    found = verify(copy)
    assert not found.passed
    assert said in next(c.detail for c in found.checks if c.name == "rows")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["auto", "independent"])
def test_a_million_rows_keep_orders_and_sums(method):
    made = us.release(survey(20_000), RULED, epsilon=1, delta="1e-6", method=method)
    rows = made.sample(1_000_000, key=5)
    assert rows.num_rows == 1_000_000
    assert RULED.illegal(rows) == []
    assert (np.array(rows["bedrooms"]) <= np.array(rows["rooms"])).all()
    assert (np.array(rows["moved_in"]) < np.array(rows["asked"])).all()
    assert (np.array(rows["income"]) == np.array(rows["wages"]) + np.array(rows["other"])).all()


@pytest.mark.slow
def test_rules_do_not_cost_accuracy():
    """Total variation of pairs of a survey, mean of three releases each: at most 5 % above that
    without rules."""
    table, cliques = survey(20_000), list(itertools.combinations(range(len(BARE.shape)), 2))
    true = counts(BARE.encode(table), BARE.shape, cliques)
    means = []
    for schema in (BARE, RULED):
        errors = []
        for seed in range(3):
            made = us.release(
                table, schema, epsilon=1, delta="1e-6", key=seed, noise=SeededNoise(seed)
            )
            drawn = counts(BARE.encode(made.rows), BARE.shape, cliques)
            pairs = zip(true, drawn, strict=True)
            errors.append(np.mean([np.abs(t / t.sum() - d / d.sum()).sum() / 2 for t, d in pairs]))
        means.append(np.mean(errors))
    assert means[1] <= 1.05 * means[0]


OPEN = """
[understudy]
version = 1
[[column]]
name = "a"
type = "integer"
lower = 0
upper = 10000000
[[column]]
name = "b"
type = "number"
decimals = 2
nullable = true
[[column]]
name = "total"
type = "number"
nullable = true
[[column]]
name = "start"
type = "date"
[[column]]
name = "end"
type = "date"
[[column]]
name = "stay"
type = "integer"
[[column]]
name = "code"
type = "category"
values = "discover"
[[column]]
name = "group"
type = "category"
values = "discover"
[[column]]
name = "band"
type = "category"
values = ["low", "high"]
[[column]]
name = "kid"
type = "boolean"
[[rule]]
says = "total = a + b"
[[rule]]
says = "start <= end"
[[rule]]
says = "stay = end - start"
[[rule]]
says = "code determines group"
derived = true
mapping = {"c0" = "x", "c1" = "x", "c2" = "y", "c3" = "y", "c77" = "z"}
default = "rest"
[[rule]]
says = "a determines band"
cuts = [20000]
values = ["low", "high"]
[[rule]]
says = "b <= a"
[[rule]]
says = "a < 1000 implies kid"
"""


def open_table(rows=4000):
    """Rows for `OPEN`: numbers and dates without bounds, codes that nobody listed."""
    rng = np.random.default_rng(0)
    a = rng.lognormal(9, 1, rows).astype(int)
    b, missing = np.round(a * rng.random(rows), 2), rng.random(rows) < 0.1
    start = rng.integers(15_000, 18_000, rows)
    end = start + rng.exponential(20, rows).astype(int)
    code = np.array([f"c{i}" for i in range(6)])[rng.integers(0, 6, rows)]
    days = [pa.array(day, pa.int32()).cast(pa.date32()) for day in (start, end)]
    return pa.table(
        {
            "a": a,
            "b": pa.array(b, mask=missing),
            "total": pa.array(a + b, mask=missing),
            "start": days[0],
            "end": days[1],
            "stay": end - start,
            "code": code,
            "group": code,
            "band": np.where(a < 20_000, "low", "high"),
            "kid": a < 1000,
        }
    )


def test_open_columns_and_what_follows_from_them_are_planned():
    """What is computed is not looked for, and edges are where rules and thresholds need them."""
    schema = Schema.loads(OPEN)
    assert [column.name for column in schema.undeclared] == ["a", "b", "start", "end", "code"]
    assert schema.cuts("a") == (("<", 1000), (">=", 20_000))
    largest = schema.largest()
    assert set(largest.derived) == {"total", "stay", "group", "band"}
    assert {1000, 20_000} <= set(largest.column("a").edges)


def test_what_follows_from_columns_that_are_found_may_lack():
    schema, rows = Schema.loads(OPEN), open_table(100)
    bare = rows.drop_columns(["total", "stay", "group", "band"])
    shapes = [facts.look(read(t), schema).fine.shape for t in (rows, bare)]
    assert shapes[0] == shapes[1]
    assert len(shapes[0]) == 4
    with pytest.raises(SourceError, match="'start'"):
        facts.look(read(rows.drop_columns(["start"])), schema)


def test_what_follows_from_a_column_in_which_nothing_is_found(tmp_path):
    """The mapping names values that nobody was found to hold: all rows get its default."""
    code = '[[column]]\nname = "code"\ntype = "category"\nvalues = "discover"\n'
    group = '[[column]]\nname = "group"\ntype = "category"\nvalues = ["x", "rest"]\n'
    rule = '[[rule]]\nsays = "code determines group"\nderived = true\nmapping = {c0 = "x"}\n'
    text = f'[understudy]\nversion = 1\n{code}{group}{rule}default = "rest"\n'
    rare = pa.table({"code": [f"c{i}" for i in range(50)]})
    made = us.release(rare, Schema.loads(text), epsilon=1, delta="1e-6", method="independent")
    assert made.schema.column("code").values == ("OTHER",)
    assert set(made.rows["group"].to_pylist()) == {"rest"}
    assert verify(made.save(tmp_path / "out")).passed


@pytest.mark.slow
def test_rules_about_columns_that_are_found(tmp_path):
    made = us.release(open_table(), Schema.loads(OPEN), epsilon=2, delta="1e-6")
    assert [column.name for column in made.schema.modelled] == [
        "a", "b", "start", "end", "code", "kid",
    ]  # fmt: skip
    assert made.schema.illegal(made.sample(200_000, key=1)) == []
    for row in made.rows.to_pylist():
        assert row["stay"] == (row["end"] - row["start"]).days >= 0
        assert row["b"] is None or row["b"] <= row["a"]
        assert row["kid"] or row["a"] >= 1000
        assert row["band"] == ("low" if row["a"] < 20_000 else "high")
    assert verify(made.save(tmp_path / "out")).passed
