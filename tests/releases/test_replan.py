"""The plan is made again from the bundle: every method's own passes, and no other does."""

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import understudy as us
from tests.thorough import slow, some
from tests.tools.corpus import forged, linked, rehashed, sealed, sha256
from understudy.errors import VerificationError
from understudy.game.methods import METHODS
from understudy.game.methods.graph import GraphMethod
from understudy.privacy import planning
from understudy.privacy.relation import Relation
from understudy.queries import resolve
from understudy.releases.plan import Blueprint, design_of
from understudy.releases.replan import method_of
from understudy.schema import Schema

from .conftest import people
from .test_graphs import BLOCKS, edges

THREE = Schema.loads("""[understudy]
version = 1
[[column]]
name = "age"
type = "integer"
lower = 0
upper = 99
bins = 6
[[column]]
name = "sex"
type = "category"
values = ["F", "M"]
[[column]]
name = "visits"
type = "integer"
lower = 0
upper = 4
""")
NETS = {"steps": 3, "batch": 8, "width": 4}
GAN = {"steps": 3, "width": 4, "latent": 4, "critic_width": 4, "fakes": 8, "rate": 0.25}

# Every method once; what is small is quick to play, not to plan.
RELEASES: dict[str, dict[str, Any]] = {
    "independent": {},
    "gaussian": {"neighbours": "replace", "rows_public": 400, "variations": True},
    "hdmm": {"workload": "marginals:2"},
    "mst": {"parameters": {"iterations": 20}},
    "aim": {"parameters": {"iterations": 10, "rounds": 8}, "neighbours": "replace",
            "rows_public": 400},
    "maxent": {"workload": "marginals:3", "certificate_share": "0.1"},
    "mwem": {"rows_public": 400},
    "mwem, signed": {"parameters": {"measure": False, "rounds": 4}},
    "frankwolfe": {"parameters": {"rounds": 5}},
    "fem": {"parameters": {"rounds": 4, "samples": 10}, "workload": "parities:2+marginals:1"},
    "sepfem": {"parameters": {"samples": 10, "rounds": 3}},
    "dualquery": {"parameters": {"rounds": 5}},
    "dqrs": {"parameters": {"samples": 300, "rounds": 8}, "rows_public": 400, "epsilon": "0.05"},
    "gem": {"parameters": {**NETS, "latent": 4, "picks": 2}},
    "dpgan": {"parameters": GAN},
    "dpgan, groups": {
        "parameters": {**GAN, "groups": 2, "adapt": 0.2, "numbers": "real"}, "public": True,
    },
    "querygan": {"parameters": {**NETS, "rounds": 3, "records": 50}},
    "querygan, exponential": {
        "parameters": {**NETS, "oracle": "exponential", "rounds": 3}, "rows_public": 400,
    },
    "querygan, weights": {"parameters": {**NETS, "oracle": "weights", "rounds": 3, "samples": 5}},
}  # fmt: skip


# Whose releases other tests verify: those of dpgan and gem here, of querygan in tests/tools.
SLOW = ("gem", "dpgan", "dpgan, groups", "querygan", "querygan, exponential", "querygan, weights")


@pytest.mark.parametrize("name", some([slow(n) if n in SLOW else n for n in RELEASES], 2))
def test_a_release_of_every_method_passes(name, tmp_path):
    options = {"epsilon": 2, "delta": "1e-6", "method": name.split(",")[0], **RELEASES[name]}
    table = people(400).select(["age", "sex", "visits"])
    if options.pop("public", False):
        options["public"] = people(80, key=1).select(["age", "sex", "visits"])
    us.release(table, THREE, **options).save(tmp_path / "r")
    found = us.verify(tmp_path / "r")
    assert found.passed, [check for check in found.checks if not check.passed]
    assert [check.name for check in found.checks][-3:] == ["plan", "measurements", "drawn"]


def test_every_method_is_released_above():
    assert {name.split(",")[0] for name in RELEASES} == set(METHODS)


@pytest.mark.parametrize("triangles", [False, True])
def test_a_graph_passes(triangles, tmp_path):
    made = us.release_graph(edges(), BLOCKS, epsilon=8, delta="1e-6", triangles=triangles)
    made.save(tmp_path / "r")
    us.verify(tmp_path / "r").require()


VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in METHODS),
    ("querygan", {"features": "subsets", "degree": 3}),
    ("querygan", {"features": "fourier", "units": 3}),
    ("querygan", {"features": "softplus", "kernel": 0.5}),
    ("querygan", {"oracle": "logistic"}),
    ("querygan", {"objective": "wasserstein"}),
    ("querygan", {"oracle": "exponential", "alpha": 0.1, "keep": 0.5}),
    ("maxent", {"pairs": 2, "quanta": 7, "interactions": False}),
    ("gem", {"rounds": 0}),
    ("gem", {"rounds": 3, "picks": 1000}),
    ("dpgan", {"sigma": 2.0}),
    ("dpgan", {"pick": 2, "task": "sex", "holdout": 0.3, "adapt": 0.1, "groups": 3}),
    ("dpgan", {"pick": 1, "selection": "clustering", "holdout": 0.3}),
    ("mst", {"one_ways": 1, "selection": 1, "pairs": 2}),
]


@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
@pytest.mark.parametrize("relation", Relation)
def test_what_a_method_says_of_itself_gives_its_plan_back(name, parameters, relation):
    """Through JSON, as a bundle holds it."""
    workload = resolve("marginals:3", THREE)
    design = design_of(THREE, workload, relation, 400 if relation is Relation.REPLACE else None)
    method = METHODS[name](**parameters)
    again = method_of(json.loads(json.dumps(method.describe())))
    rho, share = Fraction(0.0371), Fraction("0.02")
    plan = Blueprint(method, design, share, True).plan(rho)
    assert Blueprint(again, design, share, True).plan(rho) == plan


def test_a_graph_says_its_plan():
    method = GraphMethod((3, 4), True)
    assert method_of(json.loads(json.dumps(method.describe()))) == method


@pytest.mark.parametrize(
    "described",
    [
        {"name": "independant"},
        {"name": "independent", "rounds": 3},
        {"name": "mwem"},  # without its parameters
        {**us.prepare(THREE, epsilon=1, method="mwem").method.describe(), "public": {"rows": 1}},
        {**us.prepare(THREE, epsilon=1, method="mwem").method.describe(), "limit": 10**12},
    ],
)
def test_what_no_method_says_of_itself_is_refused(described):
    with pytest.raises((VerificationError, TypeError)):
        method_of(described)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good") / "r"
    us.release(
        people(400).select(["age", "sex", "visits"]), THREE, epsilon=2, delta="1e-6",
        workload="marginals:3", rows_public=400, key=5,
    ).save(folder)  # fmt: skip
    return folder


def body(manifest):
    return manifest["ledger"]["entries"][0]["body"]


def everywhere(change):
    """The change in the plan and in every charge that was made."""

    def forge(manifest):
        for slot in body(manifest)["plan"]:
            change(slot)
        for entry in manifest["ledger"]["entries"]:
            if entry.get("kind") == "charge":
                change(entry["body"])

    return forge


def field(purpose, **values):
    def change(slot):
        if slot["purpose"] == purpose:
            slot["event"].update(values)

    return everywhere(change)


def renamed(old, new):
    def change(slot):
        if slot["purpose"] == old:
            slot["purpose"] = new

    return everywhere(change)


def without(purpose):
    def forge(manifest):
        manifest["ledger"]["entries"] = [
            entry
            for entry in manifest["ledger"]["entries"]
            if entry["body"].get("purpose") != purpose
        ]
        for seq, entry in enumerate(manifest["ledger"]["entries"]):
            entry["seq"] = manifest["ledger"]["entries"][0]["seq"] + seq
        body(manifest)["plan"] = [s for s in body(manifest)["plan"] if s["purpose"] != purpose]

    return forge


def both_methods(name):
    def forge(manifest):
        other = us.prepare(THREE, epsilon=1, method=name).method.describe()
        manifest["method"] = body(manifest)["facts"]["method"] = other

    return forge


def restated(**facts):
    return lambda manifest: body(manifest)["facts"].update(facts)


def older(manifest):
    for name in ("rho", "certificate_share"):
        del body(manifest)["facts"][name]


def one_filter(manifest):
    """One small zCDP event for the whole game."""
    for purpose in ("one-way marginals", "pairs", "look for excess", "measure again"):
        without(purpose)(manifest)
    event = {"kind": "zcdp", "rho": 1e-9}
    slot = next(s for s in body(manifest)["plan"] if s["purpose"] != "certificate")
    renamed(slot["purpose"], "game")(manifest)
    slot["event"], slot["times"] = event, 1


def measured(**values):
    return lambda manifest: manifest["measurements"][0].update(values)


FORGERIES: dict[str, tuple[Any, str]] = {
    "a charge dropped": (without("pairs"), "purposes"),
    "a charge relabelled": (renamed("pairs", "look at weather"), "purposes"),
    "changes of 1": (field("pairs", changes=1), "pairs"),
    "another lattice": (field("certificate", l1=1), "certificate"),
    "another scale": (field("pairs", sigma=1000.0), "pairs"),
    "another method": (both_methods("independent"), "purposes"),
    "a method nobody knows": (
        lambda m: [each.update(name="mine") for each in (m["method"], body(m)["facts"]["method"])],
        "not known",
    ),
    "another ρ": (restated(rho=0.02), "stated as"),
    "another share": (restated(certificate_share="0.05"), "stated as"),
    "a share that is none": (restated(certificate_share="0.7"), "out of range"),
    "one zCDP filter for a game": (one_filter, "purposes"),
    "an older version": (older, "older version"),
    "a measurement with less noise": (measured(sigma=0.5), "no table"),
    "a measurement more": (lambda m: m["measurements"].append(m["measurements"][-1]), "its tables"),
    "a measurement less": (lambda m: m["measurements"].pop(0), "its tables"),
    "counts of its own": (measured(counts=[1, 2, 3]), "has counts"),
    "a table twice": (measured(times=2), "times of its own"),
    "a mean of two draws": (measured(draws=2), "mean of 2 draws"),
    "merged": (measured(merged=True), "labels"),
    "no measurements": (lambda m: m.pop("measurements"), "does not say"),
    "another key": (lambda m: m.update(key="6"), "for the key"),
    "a negative key": (lambda m: m.update(key="-5"), "cannot be read"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_consistent_forgery_is_refused(good, tmp_path, name):
    change, why = FORGERIES[name]
    forged(change)(good, tmp_path / "bad")
    failed = [check.detail for check in us.verify(tmp_path / "bad").checks if not check.passed]
    assert any(why in detail for detail in failed), failed


@pytest.mark.parametrize(
    "parameters",
    [
        {"name": "dualquery", "rounds": 10**9},
        {"name": "dqrs", "rounds": 10**9},
        {"name": "querygan", "oracle": "weights", "rounds": 10**9},
        {"name": "dpgan", "groups": 10**9},
        {"name": "dualquery", "rounds": 10**12},
        {"name": "mwem", "rounds": "many"},
    ],
)
def test_parameters_that_would_take_for_ever_are_refused_before(good, tmp_path, parameters):
    def change(manifest):
        other = {**METHODS[parameters["name"]]().describe(), **parameters}
        manifest["method"] = body(manifest)["facts"]["method"] = other

    forged(change)(good, tmp_path / "bad")
    failed = {check.name for check in us.verify(tmp_path / "bad").checks if not check.passed}
    assert failed == {"plan"}


def test_fewer_times_are_refused(tmp_path):
    table = people(400).select(["age", "sex", "visits"])
    us.release(
        table, THREE, epsilon=2, delta="1e-6", method="mwem", parameters={"rounds": 4}
    ).save(tmp_path / "r")  # fmt: skip

    def fewer(manifest):
        for slot in body(manifest)["plan"]:
            if slot["times"] == 4:
                slot["times"] = 3
        entries = manifest["ledger"]["entries"]
        for purpose in ("select a cell", "measure the cell"):
            entries.remove(next(e for e in entries if e["body"].get("purpose") == purpose))
        for seq, entry in enumerate(entries):
            entry["seq"] = entries[0]["seq"] + seq

    forged(fewer)(tmp_path / "r", tmp_path / "bad")
    failed = {check.name for check in us.verify(tmp_path / "bad").checks if not check.passed}
    assert "plan" in failed
    assert "charges" not in failed


def test_another_version_that_planned_otherwise_is_named(good, tmp_path):
    def change(manifest):
        restated(understudy="0.0.7")(manifest)
        field("pairs", changes=1)(manifest)

    forged(change)(good, tmp_path / "bad")
    (detail,) = (c.detail for c in us.verify(tmp_path / "bad").checks if c.name == "plan")
    assert "understudy 0.0.7 planned it" in detail


def swapped(good, bad, **files):
    """The bundle with other files, restated."""
    linked(good, bad)
    manifest = json.loads((good / "release.json").read_bytes())
    for name, data in files.items():
        (bad / name).unlink()
        (bad / name).write_bytes(data)
        manifest["files"][name] = {"bytes": len(data), "sha256": sha256(data)}
    rehashed(manifest)
    (bad / "release.json").write_bytes(sealed(manifest))


def test_another_releases_model_is_refused(good, tmp_path):
    us.release(
        people(400, key=9).select(["age", "sex", "visits"]), THREE, epsilon=2, delta="1e-6",
        workload="marginals:3", rows_public=400, key=5,
    ).save(tmp_path / "other")  # fmt: skip
    other = {name: (tmp_path / "other" / name).read_bytes() for name in ("model.json", "model.npz")}
    swapped(good, tmp_path / "bad", **other)
    assert [c.name for c in us.verify(tmp_path / "bad").checks if not c.passed] == ["drawn"]


def test_one_other_value_in_the_rows_is_refused(good, tmp_path):
    table = pq.read_table(good / "synthetic.parquet")
    ages = table["age"].to_numpy().copy()
    ages[7] = ages[7] + 1 if ages[7] < 99 else 98
    table = table.set_column(0, "age", pa.array(ages))
    file = pa.BufferOutputStream()
    pq.write_table(table, file)
    swapped(good, tmp_path / "bad", **{"synthetic.parquet": file.getvalue().to_pybytes()})
    assert [c.name for c in us.verify(tmp_path / "bad").checks if not c.passed] == ["drawn"]


def test_the_key_of_a_release_gives_its_rows_again(good):
    made = us.Release.load(good)
    assert made.facts["key"] == "5"
    assert made.sample(key=5).equals(made.rows)


def test_the_stream_that_rows_are_drawn_from_is_the_one_written_down():
    """NumPy may change its methods, never silently under a release that was made."""
    rng = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(0,)))
    raw = np.random.Generator(np.random.PCG64(np.random.SeedSequence(5, spawn_key=(0,))))
    assert rng.random(3).tolist() == raw.random(3).tolist()
    found = (rng.random(), rng.permutation(6).tolist(), rng.integers(100, size=4).tolist())
    assert found == (0.020751350432385185, [3, 4, 5, 2, 1, 0], [78, 30, 74, 49])


def test_aim_rounds_that_no_game_plays():
    workload = resolve("marginals:2", THREE)
    design = design_of(THREE, workload, Relation.ADD_REMOVE, 400)
    method = METHODS["aim"](rounds=8)
    plan = Blueprint(method, design, Fraction("0.02")).plan(Fraction(0.04))
    query, _ = method.players(design, plan)

    def rounds(costs, sensitivity, changes=1):
        for cost in map(Fraction, costs):
            yield planning.selection(cost / 10, sensitivity=sensitivity)
            yield planning.gaussian(cost * 9 / 10, changes=changes)

    share, left = query.share, query.adaptive
    heaviest = 16 * max(query.candidates.values())
    fair = [share, share, left - 2 * share]
    assert query.unlike(list(rounds(fair, heaviest)), design.relation) is None
    for costs, sensitivity, changes in (
        (fair, 1, 1),
        (fair, heaviest, 2),
        (fair[:2], heaviest, 1),
        ([share, 2 * share, left - 3 * share], heaviest, 1),
        ([left], heaviest, 1),
    ):
        assert query.unlike(list(rounds(costs, sensitivity, changes)), design.relation)
    assert query.unlike(list(rounds(fair, heaviest))[:-1], design.relation)
    assert query.unlike([], design.relation)
