"""Releases that find the domains of their columns privately, inside the ε."""

import json
import types
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import understudy as us
from tests.tools.both import stranger
from tests.tools.forge import Draft
from understudy.constraints.rule import Rule
from understudy.errors import InputError, SchemaError, SourceError
from understudy.privacy import accounting, planning
from understudy.privacy.budget import Budget
from understudy.privacy.cost import Charge, Discovery, Plan, Zcdp
from understudy.privacy.gate import Gate
from understudy.privacy.ledger import Ledger
from understudy.privacy.questions import Values
from understudy.privacy.relation import Relation
from understudy.releases import bundle, facts, prepare
from understudy.releases.outline import history
from understudy.releases.verify import verify
from understudy.schema import Category, Geography, Integer, Number, Polygons, Schema
from understudy.source import read
from understudy.source.values import Holders
from understudy.testing import SeededNoise
from understudy.testing.stand_ins import StillNoise, StrictCharges
from understudy.units import Unit

HEAD = "[understudy]\nversion = 1\n"
COLUMNS = """
[[column]]
name = "id"
type = "identifier"

[[column]]
name = "town"
type = "category"
values = "discover"
max_values = 6
nullable = true
null_values = ["?"]

[[column]]
name = "age"
type = "integer"
lower = 0
upper = 120
bins = {quantiles = 4}

[[column]]
name = "ill"
type = "boolean"
"""
PEOPLE = 'unit = "id"\nmax_rows = 2\n'


def table(rows=3000):
    rng = np.random.default_rng(3)
    town = rng.choice(["Ulm", "Bonn", "Köln", "?"], rows, p=[0.5, 0.3, 0.15, 0.05]).astype(object)
    town[: rows // 60] = [f"secret {i}" for i in range(rows // 60)]
    return pa.table(
        {
            "id": pa.array([f"p{i}" for i in rng.integers(0, rows // 2, rows)]),
            "town": pa.array(town, pa.string()),
            "age": np.minimum(120, rng.exponential(20, rows)).astype(int),
            "ill": rng.random(rows) < 0.3,
        }
    )


ASK = {"epsilon": 6, "delta": "1e-6", "method": "independent"}


@pytest.mark.parametrize(
    ("head", "choices"),
    [
        (HEAD, {}),
        (HEAD + PEOPLE, {}),
        (HEAD + PEOPLE, {"neighbours": "replace", "rows_public": 2500, "variations": True}),
    ],
    ids=["rows", "people", "people, replace"],
)
def test_domains_are_found_and_the_whole_is_verified(tmp_path, head, choices):
    declared = Schema.loads(head + COLUMNS)
    made = us.release(table(), declared, noise=SeededNoise(1), key=1, **ASK, **choices)
    town, age = made.schema.columns[1], made.schema.columns[2]
    assert isinstance(town, Category)
    assert set(town.values) <= {"Ulm", "Bonn", "Köln"}
    assert "Ulm" in town.values
    assert town.other == "OTHER"
    assert isinstance(age, Integer)
    assert (age.lower, age.upper) == (0, 120)
    assert made.schema.digest() != declared.digest()
    assert made.schema.illegal(made.rows) == []

    made = us.release(table(), declared, **ASK, **choices)  # with noise that protects
    saved = made.save(tmp_path / "out")  # both verifiers look at it
    found = verify(saved)
    assert found.passed, found.checks
    entries = json.loads((saved / "release.json").read_text())["ledger"]["entries"]
    kinds = [entry["kind"] for entry in entries]
    assert kinds.count("refine") == 1
    assert kinds.index("refine") == 3  # after the reservation, the values and the quantiles
    again = us.Release.load(saved)
    assert again.plan == made.plan
    assert again.schema == made.schema


def test_every_question_about_open_columns_and_every_pass_of_the_fit_is_told():
    told = []
    declared = Schema.loads(HEAD + COLUMNS)
    ask = {**ASK, "method": "maxent"}
    us.release(table(), declared, noise=SeededNoise(1), key=1, progress=told.append, **ask)
    steps = [each.step for each in told if each.stage == "finding domains"]
    assert steps == ["step 1 of 2", "step 2 of 2"]
    ends = max(n for n, each in enumerate(told) if each.stage == "playing")
    assert [each.part for each in told[ends + 1 :] if each.part][:2] == [
        "pass 1 of the fit",
        "pass 2 of the fit",
    ]


def test_quantiles_are_near_the_true_ones():
    made = us.release(
        table(20_000), Schema.loads(HEAD + COLUMNS), noise=SeededNoise(2), key=1, **ASK
    )
    edges = made.schema.columns[2].edges
    truth = np.quantile(table(20_000)["age"].to_numpy(), [0.25, 0.5, 0.75])
    assert len(edges) == 5
    assert np.abs(np.array(edges[1:-1]) - truth).max() <= 4


def test_rules_and_places_of_other_columns_are_kept(tmp_path):
    """What is found privately is found without them; the release keeps them all the same."""
    bay = Polygons((((10.0, 50.0), (12.0, 50.0), (12.0, 52.0), (11.0, 50.8), (10.0, 52.0)),))
    places = (Number("lat", 49.8, 52.2, 4), Number("long", 9.8, 12.2, 4), Integer("rooms", 1, 3))
    opened = Schema.loads(HEAD + COLUMNS)
    schema = Schema(
        (*opened.columns, *places),
        geography=(Geography("lat", "long", bay),),
        rules=(Rule("ill implies rooms = 1"),),
    )
    rng = np.random.default_rng(4)
    rows = table()
    for column in places:
        values = rng.uniform(column.lower, column.upper, rows.num_rows)
        rows = rows.append_column(column.name, pa.array(np.round(values, 3)))
    made = us.release(rows, schema, **ASK)
    assert made.schema.illegal(made.rows) == []
    assert made.schema.rules == schema.rules
    assert verify(made.save(tmp_path / "out")).passed


def test_everything_is_inside_the_epsilon():
    for head in (HEAD, HEAD + PEOPLE):
        schema = Schema.loads(head + COLUMNS)
        k = 1 if schema.unit is None else schema.unit.max_rows
        ready = prepare(schema, epsilon=1)
        assert {type(charge.event) for charge in ready.plan} >= {Discovery, Zcdp}
        spent = accounting.epsilon(ready.plan, ready.budget.delta, k).epsilon
        assert 0.9 < spent <= 1
        assert accounting.total_delta(ready.plan) <= ready.budget.delta / 10
        rest = ready.plan[facts.REST].event
        assert accounting.total_rho(ready.inner) <= accounting.rho(rest)
        assert ready.forecast(10_000).memory_bytes > 0
        assert ready.margin(10_000) > 0
        # Whatever is found, the plan fits the same zCDP filter.
        small = schema.resolved(
            {c.name: c.found([]) if c.name == "town" else c.largest() for c in schema.undeclared}
        )
        later = ready.refined(small)
        assert accounting.total_rho(later.inner) <= accounting.rho(rest)
        assert later.inner != ready.inner


@pytest.mark.parametrize(
    "change",
    [
        lambda own: own["refine"]["plan"][0]["event"].update(sigma=0.5),
        lambda own: own["refine"]["facts"].update(schema="0" * 64),
        lambda own: own["reserve"]["facts"].update(declared="[understudy]\n"),
        lambda own: own["reserve"]["plan"][0]["event"].update(threshold=5),
        lambda own: own["refine"].update(purpose="values of town"),
    ],
)
def test_what_was_found_cannot_be_restated(tmp_path, change):
    """Even with the whole chain forged anew, the parts must fit each other."""
    from understudy.privacy.chain import Entry

    made = us.release(table(), Schema.loads(HEAD + COLUMNS), **ASK)
    saved = made.save(tmp_path / "out")
    manifest = json.loads((saved / "release.json").read_text())
    entries = manifest["ledger"]["entries"]
    change({entry["kind"]: entry["body"] for entry in entries})
    prev, forged = entries[0]["prev"], []
    for entry in entries:
        forged.append(Entry.make(entry["seq"], entry["kind"], entry["body"], prev))
        prev = forged[-1].hash
    manifest["ledger"]["entries"] = [entry.to_json() for entry in forged]
    manifest["digest"] = bundle.digest(manifest)
    (saved / "release.json").write_bytes(bundle.manifest_bytes(manifest))
    assert not verify(saved).passed  # the other verifier is asked too, and must agree


@pytest.fixture(scope="module")
def every_fact(tmp_path_factory):
    """A release that discovers, by prefixes too, and finds quantiles, a shape and round values."""
    prefixes = COLUMNS.replace("max_values = 6", "max_values = 6\nprefixes = [1]")
    paid = '[[column]]\nname = "paid"\ntype = "integer"\n'
    rows = table(500)
    rows = rows.append_column("paid", rows["age"].cast("int64"))
    made = us.release(rows, Schema.loads(HEAD + prefixes + paid), **ASK)
    return made.save(tmp_path_factory.mktemp("facts") / "out")


FACTS = 9  # values, prefixes, quantiles, five levels, round values


@pytest.mark.parametrize("at", range(FACTS + 1))
def test_facts_are_charged_in_order_and_before_what_follows_from_them(every_fact, tmp_path, at):
    """Both verifiers: two neighbours among the facts, `refine` and what comes next, exchanged."""
    draft = Draft(every_fact)
    entries = draft.manifest["ledger"]["entries"]
    assert [entry["kind"] for entry in entries].index("refine") == FACTS + 1
    entries[at + 1], entries[at + 2] = entries[at + 2], entries[at + 1]
    draft.seal(tmp_path / "bad")
    (failed,) = (check for check in verify(tmp_path / "bad").checks if not check.passed)
    assert failed.name == "charges"
    assert "order" in failed.detail
    assert any("filled after" in problem for problem in stranger.verify(tmp_path / "bad"))


def test_a_fact_may_be_drawn_again_under_its_charge(every_fact, tmp_path):
    draft = Draft(every_fact)
    entries = draft.manifest["ledger"]["entries"]
    for at in range(FACTS, 0, -1):
        body = {k: v for k, v in entries[at]["body"].items() if k not in ("purpose", "event")}
        seq = entries[0]["seq"] + 2 * at - 1  # of the charge, once redraws stand before it
        again = {"kind": "redraw", "body": {**body, "charge": seq}}
        entries.insert(at + 1, {**entries[at], **again})
    draft.seal(tmp_path / "again")
    assert verify(tmp_path / "again").passed
    assert stranger.verify(tmp_path / "again") == []


def test_a_killed_release_goes_on_with_what_it_found(tmp_path):
    schema, stopped = Schema.loads(HEAD + COLUMNS), []

    def stop(progress):
        if progress.stage == "sampling" and not stopped:
            stopped.append(progress)
            raise KeyboardInterrupt

    again = {**ASK, "checkpoint": tmp_path / "c", "key": 1}
    with Ledger(tmp_path / "l") as ledger:
        ledger.open_dataset("t", Budget.of(9, "1e-5"), composition="basic")
    kept = {"ledger": tmp_path / "l", "dataset": "t"}
    with pytest.raises(KeyboardInterrupt):
        us.release(table(), schema, progress=stop, **again, **kept)
    with Ledger(tmp_path / "l") as ledger:
        before = [entry.kind for entry in ledger.entries("t")]
    made = us.release(table(), schema, **again, **kept)
    with Ledger(tmp_path / "l") as ledger:
        after = [entry.kind for entry in ledger.entries("t")]
        assert ledger.spent("t").epsilon == 6
        (told,) = history(ledger, "t")
    assert told["planned"] == len(told["charges"]) == sum(charge.times for charge in made.plan)
    assert after[: len(before)] == before
    assert after.count("refine") == 1
    assert verify(made.save(tmp_path / "out")).passed


# --- who holds what -----------------------------------------------------------------------------


def opened(held, column):
    """Exact holders, by a gate without noise and a threshold that all reach."""

    class Watched(StillNoise):
        def gaussian(self, values, sigma):
            seen.append(np.array(values))
            return np.array(values) + 10**6

    seen = []
    charges = StrictCharges(Plan((Charge("v", Discovery(1.0, 10**6, values=9)),)))
    charges.unit = held.unit
    counts = types.SimpleNamespace(shape=(), unit=held.unit)
    gate = Gate(counts, charges, Relation.ADD_REMOVE, Watched())
    texts = gate.ask("v", Values(held, column, 99))
    return dict(zip(texts, sorted(seen[0])[::-1], strict=True)) if seen else {}


def test_holders_are_rows_or_people(tmp_path):
    given = pa.table(
        {
            "id": ["1", "1", "1", "1", "2", "2", None, "3"],
            "town": ["a", "a", "b", "c", "a", "?", "a", None],
            "age": [1] * 8,
            "ill": [True] * 8,
        }
    )
    from pyarrow import csv

    csv.write_csv(given, tmp_path / "t.csv")
    for source in (given, tmp_path / "t.csv"):
        rows = Holders(read(source), Schema.loads(HEAD + COLUMNS))
        assert opened(rows, "town") == {"a": 4, "b": 1, "c": 1}
        schema = Schema.loads(HEAD + PEOPLE + COLUMNS)
        people = opened(Holders(read(source), schema), "town")
        # "1" holds two of its three values, "2" one; rows without a person hold nothing.
        assert sum(people.values()) == 3
        wide = Schema.loads(HEAD + PEOPLE.replace("2", "3") + COLUMNS)
        assert opened(Holders(read(source), wide), "town") == {"a": 2, "b": 1, "c": 1}


def test_holders_of_one_person_depend_on_that_person_alone():
    rng = np.random.default_rng(1)
    ids, towns = rng.integers(0, 30, 400).astype(str), rng.integers(0, 9, 400).astype(str)
    schema = Schema.loads(HEAD + PEOPLE + COLUMNS)

    def holders(keep):
        rows = pa.table({"id": ids[keep], "town": towns[keep], "age": ids[keep], "ill": ids[keep]})
        found = opened(Holders(read(rows), schema), "town")
        return np.array([found.get(str(i), 0) for i in range(9)])

    everybody = holders(np.ones(400, bool))
    for person in ("0", "7", "29"):
        moved = everybody - holders(ids != person)
        assert set(moved) <= {0, 1}
        assert moved.sum() <= 2


def test_a_value_that_one_busy_person_holds_is_not_shown_but_for_delta():
    """2,000 looks at 30 towns, each in a hundred rows of one person; per row, all would be shown."""
    secret = [(f"busy {i}", f"secret {i}") for i in range(30) for _ in range(100)]
    common = [(f"p{i}", "Ulm") for i in range(60)]
    rows = pa.table(
        {
            "id": [who for who, _ in secret + common],
            "town": [town for _, town in secret + common],
            "age": [1] * 3060,
            "ill": [True] * 3060,
        }
    )
    event = planning.discovery(Fraction(1, 8), 1e-3, values=2)
    seen = []
    for head, unit in ((HEAD + PEOPLE, Unit("id", 2)), (HEAD, None)):
        held = Holders(read(rows), Schema.loads(head + COLUMNS))
        held.holders = cache(held.holders)  # the same counts at every look
        charges = StrictCharges(Plan((Charge("v", event, times=2000),)))
        counts = types.SimpleNamespace(shape=(), unit=unit)
        charges.unit = unit
        gate = Gate(counts, charges, Relation.ADD_REMOVE, SeededNoise(7))
        found = [gate.ask("v", Values(held, "town", 99)) for _ in range(2000)]
        assert all("Ulm" in shown for shown in found)
        seen.append(sum(len(shown) - 1 for shown in found))
    people, by_row = seen
    assert people <= 2000 * 30 * event.delta + 6 * (2000 * 30 * event.delta) ** 0.5
    assert by_row > 0.99 * 2000 * 30


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('values = "discover"', 'values = "find"', ["find", "discover"]),
        ('values = "discover"', 'categories = "all"', ["categories", "discover"]),
        ("max_values = 6", "max_values = 0", ["max_values = 0"]),
        ("max_values = 6", "other = 3", ["other = 3"]),
        ("bins = {quantiles = 4}", "bins = {quantiles = 1}", ["quantiles", "2 to 256"]),
        ("bins = {quantiles = 4}", "bins = {quantile = 4}", ["quantile", "quantiles"]),
        ("bins = {quantiles = 4}", "bins = {}", ["quantiles = 16"]),
        ("bins = {quantiles = 4}", "bins = {quantiles = 4}\nedges = [0, 120]", ["edges"]),
        ("upper = 120\n", "", ["upper", "public bounds"]),
        ("upper = 120\n", "upper = -3\n", ["lower"]),
        ("upper = 120\n", "upper = 120\nvalues = [1]\n", ["values"]),
        ('type = "boolean"', 'type = "boolean"\nbins = {quantiles = 4}', ["bins"]),
    ],
)
def test_open_columns_that_cannot_be(old, new, said):
    text = HEAD + COLUMNS
    assert text.count(old) == 1
    with pytest.raises(SchemaError) as caught:
        Schema.loads(text.replace(old, new))
    for part in said:
        assert part in str(caught.value)


def test_open_columns_are_read_back():
    schema = Schema.loads(HEAD + COLUMNS.replace('values = "d', 'categories = "d'))
    assert schema == Schema.loads(HEAD + COLUMNS)
    assert Schema.loads(schema.dumps()) == schema
    assert [column.name for column in schema.undeclared] == ["town", "age"]
    assert schema.largest().shape == (8, 4, 2)


def test_what_cannot_work_is_refused_before_anything_is_spent(tmp_path):
    schema = Schema.loads(HEAD + COLUMNS)
    with Ledger(tmp_path / "l") as ledger:
        ledger.open_dataset("t", Budget.of(9, "1e-5"))
    kept = {"ledger": tmp_path / "l", "dataset": "t"}
    with pytest.raises(InputError, match="target_error"):
        us.release(table(), schema, target_error=0.1, rows=1000, **kept)
    with pytest.raises(SourceError, match="town"):
        us.release(table().drop_columns(["town"]), schema, **ASK, **kept)
    many = COLUMNS.replace("max_values = 6", "max_values = 9999")
    open_too = 'type = "category"\nvalues = "discover"\nmax_values = 9999'
    huge = Schema.loads(HEAD + many.replace('type = "boolean"', open_too))
    with pytest.raises(InputError):
        us.release(table(), huge, **{**ASK, "method": "mwem", "workload": "marginals:3"}, **kept)

    class Elsewhere:
        """An engine that counts where the rows are."""

        columns, native, typed = ("id", "town", "age", "ill"), "arrow", True

        def describe(self):
            return "table elsewhere"

        def frame(self, rows):
            return rows

        def bind(self, schema):
            return read(table()).bind(schema)

    with pytest.raises(InputError, match="list the values"):
        us.release(Elsewhere(), schema, **ASK, **kept)
    with Ledger(tmp_path / "l") as ledger:
        assert [entry.kind for entry in ledger.entries("t")] == ["open"]


def test_a_column_in_which_nothing_is_common_has_one_value():
    rng = np.random.default_rng(0)
    rows = pa.table(
        {
            "id": [str(i) for i in range(300)],
            "town": [f"secret {i}" for i in range(300)],
            "age": rng.integers(0, 100, 300),
            "ill": rng.random(300) < 0.5,
        }
    )
    made = us.release(rows, Schema.loads(HEAD + COLUMNS), noise=SeededNoise(1), key=1, **ASK)
    assert made.schema.columns[1].values == ("OTHER",)
    assert set(made.rows["town"].to_pylist()) <= {"OTHER", None}


def test_an_audit_would_find_other_domains():
    from understudy.audit.releases import releasing_like

    made = us.release(table(), Schema.loads(HEAD + COLUMNS), **ASK)
    with pytest.raises(InputError, match="found domains"):
        releasing_like(made)
