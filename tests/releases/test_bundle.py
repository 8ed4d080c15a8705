"""What a bundle could not hold, or a verifier would refuse, is refused before anything is spent."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pytest

import understudy as us
from understudy.errors import BundleError, InputError, WorkError
from understudy.privacy.ledger import Ledger
from understudy.releases import bundle, form
from understudy.schema import Category, Schema

from .conftest import people


@pytest.mark.parametrize(
    ("told", "choices"),
    [
        ("key must be", {"key": -1}),
        ("key must be", {"key": 10**400}),
        ("beta = 1e-20", {"beta": 1e-20}),
        ("too small", {"epsilon": "1e-40"}),
        ("200,002 draws", {"method": "mwem", "parameters": {"rounds": 100_000}}),
        ("100,003 draws", {"method": "dpgan", "parameters": {"steps": 100_000}}),
    ],
)
def test_it_is_refused_and_costs_nothing(schema, ledger, told, choices):
    with pytest.raises(InputError, match=told):
        us.release(
            people(50), schema, ledger=ledger, dataset="t", **{"epsilon": 1, "method": "mst"} | choices
        )  # fmt: skip
    with Ledger(ledger) as opened:
        assert [entry.kind for entry in opened.entries("t")] == ["open"]


def test_a_schema_beyond_its_file(monkeypatch):
    monkeypatch.setitem(form.LARGEST, "schema.toml", 1000)
    wide = Schema((Category("a", tuple(f"value {i}" for i in range(200))),))
    with pytest.raises(InputError, match="declare fewer values"):
        us.release(pa.table({"a": ["value 1"]}), wide, epsilon=1)


@pytest.mark.parametrize("method", ["independent", "maxent", "mwem", "hdmm"])
def test_no_manifest_is_larger_than_was_foreseen(tmp_path, schema, monkeypatch, method):
    foreseen = []
    whole = bundle._foreseen

    def noted(*args):
        foreseen.append(whole(*args))
        return foreseen[-1]

    monkeypatch.setattr(bundle, "_foreseen", noted)
    parameters = {"rounds": 30} if method == "mwem" else {}
    made = us.release(
        people(200), schema, epsilon=2, method=method, parameters=parameters, workload="marginals:3"
    )
    data = (made.save(tmp_path / "r") / "release.json").read_bytes()
    [(values, size)] = foreseen
    assert form.values(data) <= 1.5 * values
    assert len(data) <= 1.5 * size


@pytest.fixture(scope="module")
def saved(made, tmp_path_factory):
    return made.save(tmp_path_factory.mktemp("bundle") / "people.release")


@pytest.fixture
def folder(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


def rewrite(folder, change, *, redigest=True):
    """Edit the manifest as a forger would, with a fresh digest."""
    manifest = json.loads((folder / "release.json").read_text())
    change(manifest)
    if redigest:
        manifest["digest"] = bundle.digest(manifest)
    (folder / "release.json").write_bytes(bundle.manifest_bytes(manifest))


def test_loading_something_else_is_a_clear_error(tmp_path, folder):
    with pytest.raises(BundleError, match=r"no release\.json"):
        us.Release.load(tmp_path)
    with pytest.raises(BundleError, match="not a folder"):
        us.verify(tmp_path / "nowhere")
    rewrite(folder, lambda m: m.update(version=99))
    with pytest.raises(BundleError, match="version 99"):
        us.Release.load(folder)


def test_an_existing_folder_is_never_overwritten(made, tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(InputError, match="exists already"):
        made.save(tmp_path / "there")
    with pytest.raises(InputError, match="does not exist"):
        made.save(tmp_path / "no" / "folder")
    assert list((tmp_path / "there").iterdir()) == []


def test_a_full_disk_leaves_nothing_behind(made, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle.os, "fsync", full)
    with pytest.raises(WorkError, match="No space left"):
        made.save(tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_a_saved_release_reads_back_the_same(saved, made):
    again = us.Release.load(saved)
    assert again.rows.equals(made.rows)
    assert again.certificate == made.certificate
    assert again.budget == made.budget
    assert again.plan == made.plan
    assert again.entries == made.entries
    assert again.schema.digest() == made.schema.digest()
    assert again.workload == made.workload
    assert again.sample(50, key=9).equals(made.sample(50, key=9, like="arrow"))
