"""A release of every version of the format, as it was written then: it can still be read and verified.

The bundles are genuine (`make`) and cannot be made again: where a test fails, the code is wrong, or the
format has a new version and needs a bundle of its own. One check leans on more than the format: `drawn`
(13) draws the rows again by NumPy's `Generator(PCG64)`, whose streams NumPy may change with a version
(its NEP 19). If it alone fails, on a new NumPy, the bundle is as good as it was.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import understudy as us
from tests.golden.make import KEY, ROWS
from tools import verify_release as stranger
from understudy import cli
from understudy.errors import BundleError
from understudy.releases import bundle

HERE = Path(__file__).parent
BUNDLES = sorted(path for path in HERE.iterdir() if re.fullmatch(r"v\d+(-\w+)?", path.name))
FILES = {"release.json", "synthetic.parquet", "model.json", "model.npz", "schema.toml"}
TABLES = "measurements.npz"

each = pytest.mark.parametrize("folder", BUNDLES, ids=lambda path: path.name)


def test_every_version_has_one():
    versions = {path.name.split("-")[0] for path in BUNDLES}
    assert versions == {f"v{n}" for n in range(1, bundle.VERSION + 1)}


@each
def test_it_is_small_and_of_its_version(folder):
    files = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert set(files) - {TABLES} == FILES
    assert sum(files.values()) < 40_000
    manifest = json.loads((folder / "release.json").read_bytes())
    assert f"v{manifest['version']}" == folder.name.split("-")[0]
    assert manifest["private"] is True


@each
def test_understudy_verify_accepts_it(folder, capsys):
    found = us.verify(folder)
    refused = {check.name: check.detail for check in found.checks if not check.passed}
    assert not refused, f"NumPy {np.__version__} refuses {refused}"
    assert cli.main(["verify", str(folder)]) == 0
    assert capsys.readouterr().out


@each
def test_the_independent_verifier_accepts_it(folder):
    assert stranger.verify(folder) == []


@each
def test_it_is_read_sampled_and_asked(folder):
    release = us.Release.load(folder)
    assert release.rows.num_rows == ROWS
    assert release.sample(50, key=KEY).equals(release.sample(50, key=KEY))
    assert release.sample(50, key=KEY).schema.names == release.rows.schema.names
    answer = release.answer("sex = 'female'")
    share = np.mean([sex == "female" for sex in release.rows["sex"].to_pylist()])
    assert answer.estimate == pytest.approx(share)
    assert answer.certified
    assert answer.low <= share <= answer.high


@each
@pytest.mark.parametrize("version", [0, bundle.VERSION + 1, "1", True])
def test_another_version_is_refused_by_name(folder, version, tmp_path):
    manifest = json.loads((folder / "release.json").read_bytes()) | {"version": version}
    manifest["digest"] = bundle.digest(manifest)
    for file in FILES & {path.name for path in folder.iterdir()}:
        (tmp_path / file).write_bytes((folder / file).read_bytes())
    (tmp_path / "release.json").write_bytes(bundle.manifest_bytes(manifest))
    for read in (us.Release.load, us.verify):
        with pytest.raises(BundleError, match=f"format version {version}, this understudy reads"):
            read(tmp_path)
    assert stranger.verify(tmp_path)


def test_tables_are_those_that_were_drawn():
    """One bundle is from before tables were kept; the other has five columns and four pairs."""
    old, new = (us.Release.load(HERE / name) for name in ("v1", "v1-tables"))
    assert old.tables == ()
    assert [len(table.clique) for table in new.tables] == [1] * 5 + [2] * 4
    for table in new.tables:
        assert table.values.dtype == np.int64
        assert abs(table.values.sum() - 2_000) < 10 * table.sigma * table.values.size**0.5
