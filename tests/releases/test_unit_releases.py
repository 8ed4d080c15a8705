"""Releases whose promise is per person, from the schema to both verifiers."""

import json

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.tools import forge
from understudy.errors import InputError, PrivacyError, RelationError, SchemaError, UnconfirmedError
from understudy.privacy import accounting
from understudy.privacy.budget import Budget
from understudy.privacy.ledger import Ledger
from understudy.releases import bundle
from understudy.releases.verify import verify
from understudy.schema import Schema
from understudy.units import Unit

TEXT = """
[understudy]
version = 1
unit = "patient"
max_rows = 2

[[column]]
name = "patient"
type = "identifier"
action = "P-{:04d}"

[[column]]
name = "age"
type = "integer"
lower = 0
upper = 3

[[column]]
name = "ill"
type = "boolean"
"""


def table(rows=900, patients=250):
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "patient": pa.array(rng.integers(0, patients, rows)),
            "age": rng.integers(0, 4, rows),
            "ill": rng.random(rows) < 0.3,
        }
    )


def kept(most=2):
    """How many rows of `table()` count."""
    times = np.bincount(table()["patient"].to_numpy())
    return int(np.minimum(times, most).sum())


@pytest.mark.parametrize(
    "choices",
    [{}, {"neighbours": "replace", "rows_public": kept(), "variations": True}],
    ids=["add-remove", "replace"],
)
def test_a_release_per_patient_is_stated_and_verified(tmp_path, choices):
    made = us.release(
        table(), Schema.loads(TEXT), epsilon=2, delta="1e-6", method="independent", **choices
    )
    assert "per patient (one patient (at most 2 of its rows count)" in made.promise
    assert accounting.epsilon(made.plan, made.budget.delta, 2).epsilon <= 2
    assert accounting.epsilon(made.plan, made.budget.delta, 1).epsilon < 1.1
    saved = made.save(tmp_path / "out")  # both verifiers look at it here
    assert verify(saved).passed
    manifest = json.loads((saved / "release.json").read_text())
    assert manifest["promise"]["unit"] == {"column": "patient", "max_rows": 2, "salt": ""}
    reserve = manifest["ledger"]["entries"][0]["body"]
    assert reserve["unit"] == manifest["promise"]["unit"]
    assert us.Release.load(saved).promise == made.promise


def test_counts_are_of_the_rows_kept():
    made = us.release(
        table(), Schema.loads(TEXT), epsilon=500, delta="1e-6", method="independent", key=1
    )
    # σ of the number of rows is below 1 at this ε: six of them are certain.
    assert abs(made.rows_estimate - kept()) <= 6


@pytest.mark.parametrize(
    "change",
    [
        lambda promise: promise["unit"].update(max_rows=1),
        lambda promise: promise.update(unit="row"),
        lambda promise: promise["unit"].update(salt="other"),
        lambda promise: promise.update(words=promise["words"].replace("at most 2", "at most 1")),
    ],
)
def test_a_restated_unit_is_refused(tmp_path, change):
    made = us.release(table(), Schema.loads(TEXT), epsilon=1, delta="1e-6", method="independent")
    saved = made.save(tmp_path / "out")
    manifest = json.loads((saved / "release.json").read_text())
    change(manifest["promise"])
    manifest["digest"] = bundle.digest(manifest)
    (saved / "release.json").write_bytes(bundle.manifest_bytes(manifest))
    found = verify(saved)  # the other verifier is asked too, and must agree
    assert not found.passed


def test_the_ledger_keeps_people_and_rows_apart(tmp_path):
    with Ledger(tmp_path / "l") as ledger:
        ledger.open_dataset("rows", Budget.of(3, "1e-5"), composition="basic")
        ledger.open_dataset("people", Budget.of(3, "1e-5"), unit="patient", composition="basic")
    ask = {"epsilon": 1, "delta": "1e-6", "method": "independent", "ledger": tmp_path / "l"}
    with pytest.raises(RelationError, match="unit = patient cannot be added"):
        us.release(table(), Schema.loads(TEXT), dataset="rows", **ask)
    made = us.release(table(), Schema.loads(TEXT), dataset="people", **ask)
    with Ledger(tmp_path / "l") as ledger:
        assert ledger.spent("people").epsilon == 1
        assert ledger.spent("rows").epsilon == 0
        ledger.verify("people")
    assert verify(made.save(tmp_path / "out"), ledger=tmp_path / "l").passed


def test_a_source_that_does_not_bound_is_refused():
    source = us.read(table())
    whole = Schema.loads(TEXT.replace('unit = "patient"\nmax_rows = 2\n', ""))

    class Unbounded:
        columns, native, frame = source.columns, source.native, source.frame
        typed, describe = source.typed, source.describe

        def bind(self, schema):
            return source.bind(whole)

    with pytest.raises(PrivacyError, match="the counts are of one row"):
        us.release(Unbounded(), Schema.loads(TEXT), epsilon=1, method="independent")


@pytest.mark.slow
def test_the_target_error_accounts_for_people():
    whole = Schema.loads(TEXT.replace('unit = "patient"\nmax_rows = 2\n', ""))
    per_row = us.epsilon_for(whole, 0.02, rows=20_000)
    per_patient = us.epsilon_for(Schema.loads(TEXT), 0.02, rows=20_000)
    assert 1.5 * per_row < per_patient < 3 * per_row


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ('unit = "patient"', ["max_rows"]),
        ("max_rows = 2", ["unit"]),
        ('unit_salt = "x"', ["unit"]),
        ('unit = "patiant"\nmax_rows = 2', ["patiant", "patient"]),
        ('unit = "age"\nmax_rows = 2', ["age", "identifier"]),
        ('unit = "patient"\nmax_rows = 0', ["max_rows = 0"]),
        ('unit = "patient"\nmax_rows = 2.5', ["max_rows = 2.5"]),
        ("unit = 3\nmax_rows = 2", ["unit = 3"]),
        ('weights = "w"', ["weights", "refused"]),
    ],
)
def test_units_that_cannot_be(head, said):
    text = TEXT.replace('unit = "patient"\nmax_rows = 2', head)
    with pytest.raises(SchemaError) as caught:
        Schema.loads(text)
    for part in said:
        assert part in str(caught.value)


def test_a_unit_is_read_back():
    schema = Schema.loads(TEXT)
    assert schema.unit == Unit("patient", 2)
    assert Schema.loads(schema.dumps()) == schema
    salted = Schema.loads(TEXT.replace("max_rows = 2", 'max_rows = 2\nunit_salt = "s"'))
    assert Schema.loads(salted.dumps()).unit == Unit("patient", 2, "s")
    assert salted.digest() != schema.digest()


def test_an_audit_of_rows_says_nothing_about_people():
    from understudy.audit.releases import releasing_like

    made = us.release(table(), Schema.loads(TEXT), epsilon=1, delta="1e-6", method="independent")
    with pytest.raises(InputError, match="protects every patient"):
        releasing_like(made)


OPEN = """
[understudy]
version = 1
unit = "row"

[[column]]
name = "note"
type = "text"

[[column]]
name = "ill"
type = "boolean"
"""


def test_rows_are_an_explicit_choice_and_free_text_is_left_out(tmp_path):
    rows = pa.table({"note": ["so it goes"] * 400, "ill": [True, False] * 200})
    made = us.release(rows, Schema.loads(OPEN), epsilon=2, method="independent")
    saved = made.save(tmp_path / "out")  # both verifiers look at it here
    assert made.rows.column_names == ["ill"]
    assert 'unit = "row"' in (saved / "schema.toml").read_text()


@pytest.mark.parametrize("head", ['unit = "?"', 'unit = "row"\nread_from_rows = ["unit"]'])
def test_a_release_of_an_open_question_is_refused(tmp_path, head):
    schema = Schema.loads(OPEN.replace('unit = "row"', head))
    rows = pa.table({"note": ["so it goes"] * 400, "ill": [True, False] * 200})
    with pytest.raises(UnconfirmedError):
        us.release(rows, schema, epsilon=2)
    answered = Schema.loads(OPEN)
    saved = us.release(rows, answered, epsilon=2, method="independent").save(tmp_path / "good")
    forged = forge.Draft(saved)
    text = forged.files["schema.toml"].decode().replace('unit = "row"', head)
    forged.files["schema.toml"] = text.encode()
    forged.reserve["facts"]["schema"] = schema.digest()
    forged.seal(tmp_path / "bad")
    checks = verify(tmp_path / "bad").checks  # the other verifier refuses it, too
    assert ["leaves open who is protected" in check.detail for check in checks].count(True) == 1
