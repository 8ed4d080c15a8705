"""Rules in releases: zeros in the model, every sampled row, an honest certificate."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from tests.tools.residents import CHILDREN, COLUMNS, MAPPING, PLACES
from understudy.privacy.noise import SeededNoise
from understudy.queries import counts
from understudy.releases import bundle
from understudy.releases.verify import verify
from understudy.schema import Schema

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
    pq.write_table(broken, saved / "synthetic.parquet")
    manifest = json.loads((saved / "release.json").read_text())
    import hashlib

    data = (saved / "synthetic.parquet").read_bytes()
    manifest["files"]["synthetic.parquet"] = {
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
    }
    manifest["digest"] = bundle.digest(manifest)
    (saved / "release.json").write_bytes(bundle.manifest_bytes(manifest))
    found = verify(saved)  # the other verifier is asked too, and must agree
    assert not found.passed
    assert "break the rule" in next(c.detail for c in found.checks if c.name == "rows")
