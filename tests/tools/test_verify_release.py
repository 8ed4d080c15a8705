"""docs/bundle.md is enough to write a verifier: one written from it agrees with ours."""

import ast
import contextlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import understudy
from tests.thorough import slow
from tests.tools import both
from tools import verify_release as stranger
from understudy import demo, report

FEW = """
[understudy]
version = 1

[[column]]
name = "person_id"
type = "identifier"
action = "P-{:05d}"

[[column]]
name = "sex"
type = "category"
values = ["female", "male", "other"]

[[column]]
name = "chronic_conditions"
type = "integer"
lower = 0
upper = 8

[[column]]
name = "income"
type = "number"
nullable = true
lower = 0.0
upper = 200000.0
bins = 5
decimals = 2

[[column]]
name = "last_checkup"
type = "date"
dtype = "date32[day]"
nullable = true
lower = 2019-01-01
upper = 2024-12-31
edges = [2019-01-01, 2020-01-01, 2023-01-01, 2024-12-31]
"""

# A small β keeps the bounds that are tampered with well above 0, whatever the noise.
RELEASES: dict[str, dict[str, Any]] = {
    "independent": {"method": "independent", "beta": 0.0001},
    "independent, all columns, variations": {"method": "independent", "variations": True},
    "independent, public, replace": {
        "method": "independent",
        "rows_public": 2000,
        "neighbours": "replace",
        "variations": True,
        "delta": "1e-6",
    },
    "the default": {"epsilon": "0.7", "parameters": {"records": 2000}},
    "mwem": {"method": "mwem", "parameters": {"rounds": 3}, "epsilon": "0.3"},
    "mwem, public, variations": {
        "method": "mwem",
        "parameters": {"rounds": 3},
        "rows_public": 2000,
        "variations": True,
        "beta": 0.0002,
        "epsilon": 4,
    },
    "fem, other queries": {
        "method": "fem",
        "parameters": {"rounds": 5, "samples": 20},
        "workload": "marginals:2+conjunctions:2+disjunctions:1+parities:2+prefixes:1",
    },
    "querygan, objective perturbation": {
        "method": "querygan",
        "parameters": {"oracle": "logistic", "rounds": 2, "steps": 5, "batch": 50, "width": 8},
        "workload": "marginals:1",
    },
    "querygan, random features, public, replace": {
        "method": "querygan",
        "parameters": {
            "features": "fourier",
            "units": 4,
            "rounds": 2,
            "steps": 5,
            "batch": 50,
            "records": 500,
            "width": 8,
        },
        "workload": "marginals:1",
        "rows_public": 2000,
        "neighbours": "replace",
        "delta": "1e-6",
    },
}


class Folders(dict[str, Path]):
    """Releases by name, each made when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.survey = demo.city_health_survey(rows=2000)

    def __missing__(self, name: str) -> Path:
        rows, schema = self.survey, demo.schema()
        if "all" not in name:
            schema = understudy.Schema.loads(FEW)
            rows = rows.select([column.name for column in schema.columns])
        self[name] = self.folder / name
        understudy.release(rows, schema, **{"epsilon": 1, **RELEASES[name]}).save(self[name])
        return self[name]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return Folders(tmp_path_factory.mktemp("releases"))


@pytest.fixture(scope="module")
def plain(folders: dict[str, Path]) -> Path:
    return folders["independent"]


@pytest.fixture(scope="module")
def varied(folders: dict[str, Path]) -> Path:
    return folders["mwem, public, variations"]


DEAR = {name for name in RELEASES if "querygan" in name or name == "mwem"}  # whose like stays


@pytest.mark.parametrize("name", [slow(name) if name in DEAR else name for name in RELEASES])
def test_the_stranger_accepts_what_was_released(folders: dict[str, Path], name: str):
    assert stranger.verify(folders[name]) == []
    assert understudy.verify(folders[name]).passed


def test_the_accountants_agree(folders: dict[str, Path]):
    by = set()
    for folder in [folders[name] for name in RELEASES if name not in DEAR]:
        (told,) = (c.detail for c in understudy.verify(folder).checks if c.name == "privacy")
        found = re.match(r"ε = (\S+) at δ = (\S+) recomputed by (\w+)", told)
        assert found
        ours = stranger.epsilon(stranger.Bundle(folder).plan, float(found[2]))
        assert ours <= float(found[1]) * (1 + 1e-5)
        if found[3] == "pld":
            assert ours >= float(found[1]) * (1 - 3e-3)
        by.add(found[3])
    assert "pld" in by


# --- what must be refused ----------------------------------------------------------------------


def copy(folder: Path, to: Path) -> Path:
    target = to / "copy"
    shutil.copytree(folder, target)
    return target


def rewrite(
    folder: Path, to: Path, change: Callable[[dict[str, Any]], None], *, chain: bool = False
) -> Path:
    """A copy with a changed manifest and a fresh digest; with `chain` the ledger is rehashed too."""
    target = copy(folder, to)
    manifest = json.loads((target / "release.json").read_bytes())
    change(manifest)
    if chain:
        rehash(manifest["ledger"]["entries"])
    manifest["digest"] = stranger.sha256(
        stranger.canonical({k: v for k, v in manifest.items() if k != "digest"})
    )
    (target / "release.json").write_bytes(stranger.pretty(manifest))
    return target


def rehash(entries: list[dict[str, Any]]) -> None:
    prev, first = entries[0]["prev"], entries[0]["seq"]
    for seq, entry in enumerate(entries, first):
        if "body" in entry:
            content = {"body": entry["body"], "kind": entry["kind"]}
            entry["digest"] = stranger.sha256(stranger.canonical(content))
        link = {"digest": entry["digest"], "prev": prev, "seq": seq}
        entry |= {**link, "hash": stranger.sha256(stranger.canonical(link))}
        prev = entry["hash"]


def refused(folder: Path, *numbers: int) -> None:
    """Both verifiers refuse, the stranger for the reasons given, at least."""
    problems = stranger.verify(folder)
    found = {int(number[1]) for p in problems if (number := re.match(r"check (\d+)", p))}
    assert problems
    assert found >= set(numbers), problems
    with contextlib.suppress(understudy.errors.BundleError):  # not even the manifest of a release
        assert not understudy.verify(folder).passed


@pytest.mark.parametrize(
    "name", ["release.json", "synthetic.parquet", "schema.toml", "model.json", "model.npz"]
)
def test_a_flipped_byte(plain: Path, tmp_path: Path, name: str):
    path = copy(plain, tmp_path) / name
    whole = path.read_bytes()
    for at in (len(whole) // 3, len(whole) - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        refused(path.parent)
    path.unlink()
    refused(path.parent)


def test_a_file_too_many(plain: Path, tmp_path: Path):
    target = copy(plain, tmp_path)
    (target / "notes.txt").write_text("not welcome")
    refused(target, 3)


def test_a_report_is_listed_or_refused(plain: Path, tmp_path: Path):
    release = understudy.Release.load(plain)
    folder = report.save(release, tmp_path / "r.release")
    assert stranger.verify(folder) == []
    page = (folder / "report.html").read_bytes()
    (folder / "report.html").write_bytes(page + b"\n")
    refused(folder, 3)
    (folder / "report.html").unlink()
    refused(folder, 3)
    unlisted = copy(plain, tmp_path)
    (unlisted / "report.html").write_bytes(page)
    refused(unlisted, 3)


def test_another_byte_form(plain: Path, tmp_path: Path):
    path = copy(plain, tmp_path) / "release.json"
    path.write_bytes(stranger.canonical(json.loads(path.read_bytes())))
    refused(path.parent, 1)


@pytest.mark.parametrize("chain", [False, True])
@pytest.mark.parametrize("at", [0, 2, 4])
def test_a_dropped_entry(plain: Path, tmp_path: Path, at: int, chain: bool):
    target = rewrite(plain, tmp_path, lambda m: m["ledger"]["entries"].pop(at), chain=chain)
    refused(target, *([] if chain else [4] if 0 < at < 4 else []))


@pytest.mark.parametrize("chain", [False, True])
def test_reordered_entries(plain: Path, tmp_path: Path, chain: bool):
    def swap(manifest: dict[str, Any]) -> None:
        entries = manifest["ledger"]["entries"]
        entries[0], entries[1] = entries[1], entries[0]

    refused(rewrite(plain, tmp_path, swap, chain=chain), 5)


def test_a_charge_too_many(plain: Path, tmp_path: Path):
    def again(manifest: dict[str, Any]) -> None:
        entries = manifest["ledger"]["entries"]
        entries.insert(2, json.loads(json.dumps(entries[2])))

    refused(rewrite(plain, tmp_path, again, chain=True), 5)


@pytest.mark.parametrize("key", ["seq", "prev", "digest", "hash"])
def test_a_link_that_does_not_hold(plain: Path, tmp_path: Path, key: str):
    def change(manifest: dict[str, Any]) -> None:
        entry = manifest["ledger"]["entries"][2]
        entry[key] = entry[key] + 1 if key == "seq" else stranger.sha256(b"")

    refused(rewrite(plain, tmp_path, change), 4)


@pytest.mark.parametrize("chain", [False, True])
def test_a_charge_with_less_noise_than_planned(plain: Path, tmp_path: Path, chain: bool):
    def louder(manifest: dict[str, Any]) -> None:
        manifest["ledger"]["entries"][1]["body"]["event"]["sigma"] /= 2

    refused(rewrite(plain, tmp_path, louder, chain=chain), 5, *([] if chain else [4]))


def test_a_plan_with_less_noise_than_promised(plain: Path, tmp_path: Path):
    def louder(manifest: dict[str, Any]) -> None:
        entries = manifest["ledger"]["entries"]
        for event in (entries[0]["body"]["plan"][1]["event"], entries[2]["body"]["event"]):
            event["sigma"] *= 0.99

    refused(rewrite(plain, tmp_path, louder, chain=True), 7)


@pytest.mark.slow
def test_one_side_of_a_replacement(folders: dict[str, Path], tmp_path: Path):
    def change(manifest: dict[str, Any]) -> None:
        for event in events(manifest, "sampled gaussian"):
            event["sides"] = 1

    folder = folders["querygan, random features, public, replace"]
    refused(rewrite(folder, tmp_path, change, chain=True), 7)


@pytest.mark.parametrize(("name", "value"), [("values", 1), ("sides", 1), ("sides", 0)])
def test_a_discovery_for_less_than_a_unit(tmp_path: Path, name: str, value: int):
    schema = understudy.Schema.loads(
        """
[understudy]
version = 1
unit = "id"
max_rows = 2
[[column]]
name = "id"
type = "identifier"
[[column]]
name = "town"
type = "category"
values = "discover"
"""
    )
    table = pa.table({"id": [f"p{i // 2}" for i in range(400)], "town": ["Ulm", "Bonn"] * 200})
    how = {"delta": "1e-6", "rows_public": 400, "neighbours": "replace", "method": "independent"}
    folder = understudy.release(table, schema, epsilon=4, **how).save(tmp_path / "whole")

    def change(manifest: dict[str, Any]) -> None:
        for event in events(manifest, "discovery"):
            event[name] = value

    refused(rewrite(folder, tmp_path, change, chain=True), 7 if value else 1)


def events(manifest: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """All events of a kind, planned and charged."""
    bodies = [entry["body"] for entry in manifest["ledger"]["entries"]]
    planned = [slot["event"] for body in bodies for slot in body.get("plan", ())]
    every = [*planned, *(body["event"] for body in bodies if "event" in body)]
    found = [event for event in every if event["kind"] == kind]
    assert found
    return found


def test_an_entry_of_another_release_is_passed_over(plain: Path, tmp_path: Path):
    def between(manifest: dict[str, Any]) -> None:
        manifest["ledger"]["entries"].insert(2, {"digest": stranger.sha256(b"of somebody else")})

    target = rewrite(plain, tmp_path, between, chain=True)
    assert stranger.verify(target) == []
    assert understudy.verify(target).passed


@pytest.mark.parametrize("value", ["0.5", "999/1000"])
@pytest.mark.parametrize("chain", [False, True])
def test_a_restated_epsilon(plain: Path, tmp_path: Path, value: str, chain: bool):
    def restate(manifest: dict[str, Any]) -> None:
        manifest["promise"]["epsilon"] = value
        if chain:
            manifest["ledger"]["entries"][0]["body"]["budget"]["epsilon"] = value

    refused(rewrite(plain, tmp_path, restate, chain=chain), 7 if chain else 6)


@pytest.mark.parametrize("chain", [False, True])
def test_a_restated_delta(plain: Path, tmp_path: Path, chain: bool):
    def restate(manifest: dict[str, Any]) -> None:
        manifest["promise"]["delta"] = "0.0000000001"
        if chain:
            manifest["ledger"]["entries"][0]["body"]["budget"]["delta"] = "0.0000000001"

    refused(rewrite(plain, tmp_path, restate, chain=chain), 7 if chain else 6)


@pytest.mark.parametrize(
    ("path", "value", "number"),
    [
        (("private",), False, 1),
        (("version",), 2, 1),
        (("promise", "relation"), "replace", 6),
        (("promise", "rows_public"), 1_000_000, 6),
        (("method", "name"), "mst", 6),
        (("rows",), 1, 9),
        (("certificate", "cells"), 1, 8),
        (("certificate", "beta"), 0.5, 8),
        # Far more than any noise: a worst error below 0 states the same bound as 0 does.
        (("certificate", "worst"), 100_000, 8),
        (("certificate", "rows"), 1, 8),
        (("certificate", "words"), "as good as the original", 8),
        (("certificate", "rows_measured"), 1_000_000, 8),
        (("certificate", "rows_public"), 1_000_000, 8),
    ],
)
def test_a_restated_fact(
    plain: Path, tmp_path: Path, path: tuple[str, ...], value: Any, number: int
):
    def restate(manifest: dict[str, Any]) -> None:
        place = manifest
        for key in path[:-1]:
            place = place[key]
        assert place[path[-1]] != value
        place[path[-1]] = value

    refused(rewrite(plain, tmp_path, restate), number)


def test_a_halved_bound(plain: Path, varied: Path, tmp_path: Path):
    def halve(manifest: dict[str, Any]) -> None:
        manifest["certificate"]["bound"] /= 2

    refused(rewrite(plain, tmp_path / "1", halve), 8)
    refused(rewrite(varied, tmp_path / "2", halve), 8)


def test_a_halved_total_variation(varied: Path, tmp_path: Path):
    def halve(manifest: dict[str, Any]) -> None:
        manifest["certificate"]["variations"][-1] /= 2

    refused(rewrite(varied, tmp_path, halve), 8)


@pytest.mark.parametrize("chain", [False, True])
def test_a_shortened_workload(plain: Path, varied: Path, tmp_path: Path, chain: bool):
    def shorten(manifest: dict[str, Any]) -> None:
        manifest["workload"].pop()
        if chain:
            manifest["ledger"]["entries"][0]["body"]["facts"]["workload"].pop()

    for i, folder in enumerate((plain, varied)):
        target = rewrite(folder, tmp_path / str(i), shorten, chain=chain)
        refused(target, 8, *([] if chain else [6]))


def replace_file(folder: Path, to: Path, name: str, data: bytes) -> Path:
    """A copy with another file, and a manifest that says so."""

    def restate(manifest: dict[str, Any]) -> None:
        manifest["files"][name] = {"bytes": len(data), "sha256": stranger.sha256(data)}

    target = rewrite(folder, to, restate)
    (target / name).write_bytes(data)
    return target


def test_a_schema_that_was_not_the_one_reserved(plain: Path, tmp_path: Path):
    data = (plain / "schema.toml").read_bytes()
    wider = data.replace(b"upper = 200000.0", b"upper = 300000.0")
    assert wider != data
    refused(replace_file(plain, tmp_path, "schema.toml", wider), 6)


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(table, sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    "how", ["short", "reordered", "renamed", "category", "bounds", "null", "type"]
)
def test_rows_that_are_not_legal(plain: Path, tmp_path: Path, how: str):
    table = pa.parquet.read_table(plain / "synthetic.parquet")
    sex, count = table.column_names.index("sex"), table.column_names.index("chronic_conditions")
    rows = table.num_rows

    def with_(at: int, values: list[Any], type_: pa.DataType | None = None) -> pa.Table:
        field = pa.field(table.column_names[at], type_ or table.schema.field(at).type)
        return table.set_column(at, field, pa.array(values, field.type))

    wrong = {
        "short": lambda: table.slice(1),
        "reordered": lambda: table.select(table.column_names[::-1]),
        "renamed": lambda: table.rename_columns([f"{name}_" for name in table.column_names]),
        "category": lambda: with_(sex, ["unknown"] * rows),
        "bounds": lambda: with_(count, [9] * rows),
        "null": lambda: with_(count, [None] * rows),
        "type": lambda: with_(count, [1] * rows, pa.int16()),
    }[how]()
    refused(replace_file(plain, tmp_path, "synthetic.parquet", parquet(wrong)), 9)


# --- the program, and its promise to be on its own ----------------------------------------------


PROGRAM = Path(stranger.__file__)


def program(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", PROGRAM, *map(str, arguments)],
        capture_output=True, text=True, check=False, encoding="utf-8",
    )  # fmt: skip


def test_the_program_says_what_it_found(plain: Path, tmp_path: Path):
    fine = program(plain)
    assert fine.returncode == 0
    assert f"{plain}: holds" in fine.stdout
    assert json.loads((plain / "release.json").read_bytes())["digest"] in fine.stdout
    broken = copy(plain, tmp_path)
    (broken / "schema.toml").write_bytes(b"")
    both = program(plain, broken)
    assert both.returncode == 1
    assert f"{broken}: refused" in both.stdout
    assert "check 3: schema.toml was changed" in both.stdout
    assert stranger.main([]) == 2


def test_it_imports_nothing_of_understudy():
    tree = ast.parse(PROGRAM.read_text(encoding="utf-8"))
    found = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import)
            else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        )
    }  # fmt: skip
    assert found - set(sys.stdlib_module_names) == {"numpy", "pyarrow"}


def test_a_disagreement_would_be_noticed(plain: Path, tmp_path: Path, monkeypatch):
    """The watch over all tests can fail."""
    monkeypatch.setattr(stranger, "CHECKS", ())
    monkeypatch.setattr(both, "_agreed", set())
    broken = copy(plain, tmp_path)
    (broken / "schema.toml").write_bytes(b"")
    with pytest.raises(AssertionError, match="the verifiers disagree"):
        both.require_agreement(broken)
