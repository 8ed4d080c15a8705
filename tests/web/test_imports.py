"""Releases from strangers: each is refused in a line, in a process of its own, and the page goes on."""

import asyncio
import inspect
import time
import zipfile

import pytest

from tests.web.conftest import put_bundle
from tests.web.hostile import burns, forged, greedy, packed
from understudy.errors import BundleError
from understudy.releases import Release
from understudy.web import imports
from understudy.web import workers as room
from understudy.web.errors import TooLarge
from understudy.web.imports import check_file
from understudy.web.workers import Limits, Workers

LIMIT = 50_000_000


def unpacked_from(tmp_path, data, most=LIMIT):
    path = tmp_path / "bundle.zip"
    path.write_bytes(data)
    return check_file(str(path), most, "x.zip")


@pytest.mark.parametrize("kind", ["number", "depth", "bomb", "array", "members"])
def test_a_hostile_import_is_refused_at_once_in_a_line(tmp_path, hostile, kind, monkeypatch):
    monkeypatch.setattr(imports, "verify", inspect.unwrap(imports.verify))  # as the page has it
    make, said = hostile[kind]
    data = make()
    begun = time.process_time()
    try:
        found = unpacked_from(tmp_path, data)
        assert not found.passed
        told = "; ".join(check.detail for check in found.checks)
    except (BundleError, TooLarge) as refusal:
        told = str(refusal)
    assert time.process_time() - begun < 5
    assert said in told
    assert len(told) < 5_000
    assert str(tmp_path) not in told


def linked(name, to):
    item = zipfile.ZipInfo(name)
    item.external_attr = 0o120777 << 16
    return packed((item, to))


def lying(data):
    """A zip that says in its list that its one file is small."""
    at = data.rindex(b"PK\x01\x02")
    return data[: at + 24] + (100).to_bytes(4, "little") + data[at + 28 :]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (packed(("../release.json", b"{}")), "leaves the folder"),
        (packed(("x/../../release.json", b"{}")), "leaves the folder"),
        (packed(("/etc/release.json", b"{}")), "leaves the folder"),
        (packed(("..\\release.json", b"{}")), "leaves the folder"),
        (linked("x/release.json", "/etc/passwd"), "leaves the folder"),
        (packed(("x/evil.txt", b"x")), "no part of a release"),
        (packed(("a/release.json", b"{}"), ("b/release.json", b"{}")), "no part of a release"),
        (lying(packed(("x/model.npz", bytes(10**6)))), "not a whole zip"),
        (b"PK\x03\x04 no", "not a whole zip"),
        (b"", "not a whole zip"),
    ],
    ids=["up", "through", "root", "backslash", "link", "other", "twice", "lying", "torn", "empty"],
)
def test_no_member_of_a_zip_leaves_the_folder(tmp_path, data, said):
    folder = tmp_path / "incoming"
    folder.mkdir()
    with pytest.raises(BundleError, match=said):
        unpacked_from(folder, data)
    assert [path.name for path in tmp_path.iterdir()] == ["incoming"]
    assert {path.name for path in folder.iterdir()} == {"bundle", "bundle.zip"}
    assert not any(path.is_symlink() for path in folder.rglob("*"))


def test_a_zip_that_unpacks_to_more_than_is_taken(tmp_path):
    with pytest.raises(TooLarge, match="--max-upload"):
        unpacked_from(tmp_path, packed(("x/model.npz", bytes(10**6))), most=10**6 - 1)
    assert list((tmp_path / "bundle").iterdir()) == []


def test_a_reader_has_limits_of_memory_and_time(tmp_path, monkeypatch):
    async def both():
        workers = Workers(1, Limits(2 * 10**9, 1))
        try:
            monkeypatch.setattr(room, "check_file", greedy)
            with pytest.raises(BundleError, match="2 GB of memory"):
                await workers.check(tmp_path / "x.zip", 1, "x.zip")
            monkeypatch.setattr(room, "check_file", burns)
            begun = time.perf_counter()
            with pytest.raises(BundleError, match="1 seconds"):
                await workers.check(tmp_path / "x.zip", 1, "x.zip")
            return time.perf_counter() - begun
        finally:
            workers.close()

    assert asyncio.run(both()) < 60


def test_a_strangers_schema_names_no_file_of_this_machine(custodian, bundle, tmp_path, monkeypatch):
    """A mask may be a file in a schema that a custodian wrote; in a release it is written out."""
    from understudy.constraints import geography

    opened = []
    monkeypatch.setattr(geography, "read_mask", opened.append)
    (tmp_path / "own.csv").write_text("latitude,longitude\n1,1\n2,2\n")
    place = f'\n[[geography]]\nlatitude = "age"\nlongitude = "age"\nmask = "{tmp_path}/own.csv"\n'
    written = (bundle / "schema.toml").read_bytes() + place.encode()
    response = custodian.upload("small.zip", forged(bundle, toml=written), to="/import")
    assert response.status_code == 422
    assert not list((custodian.folder / "releases").iterdir())
    (put_bundle(custodian, bundle) / "schema.toml").write_bytes(written)  # past every check
    with pytest.raises(BundleError, match="names a file"):
        Release.load(custodian.folder / "releases" / "small")
    assert custodian.client.get("/releases/small").status_code == 422
    assert not opened
