"""Every bad bundle is refused by both verifiers, with a reason, soon and in little memory."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import understudy as us
from tests.releases.conftest import TOML, people
from tests.thorough import examples
from tests.tools import bounded
from tests.tools.corpus import Bad, corpus, linked, mutated, sealed
from understudy import report
from understudy.schema import Schema

DISCOVERED = """
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


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small release with a draw of every part of the certificate."""
    made = us.release(
        people(400),
        Schema.loads(TOML),
        epsilon=1,
        workload="marginals:1",
        method="independent",
        variations=True,
    )
    return report.save(made, tmp_path_factory.mktemp("good") / "release")


@pytest.fixture(scope="module")
def bases(good: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Releases with a refined zCDP filter, a unit, and charges against a zCDP filter."""
    folder = tmp_path_factory.mktemp("bases")
    towns = pa.table({"id": [f"p{i // 2}" for i in range(400)], "town": ["Ulm", "Bonn"] * 200})
    how = {"delta": "1e-6", "rows_public": 400, "neighbours": "replace", "method": "independent"}
    us.release(towns, Schema.loads(DISCOVERED), epsilon=4, **how).save(folder / "discovered")
    how = {"method": "aim", "parameters": {"iterations": 100}}
    us.release(people(400), Schema.loads(TOML), epsilon=1, **how).save(folder / "aim")
    return [good, folder / "discovered", folder / "aim"]


def test_a_good_release_is_accepted(bases: list[Path]):
    assert all(bounded.ours(folder) == bounded.theirs(folder) == [] for folder in bases)


def require_refused(good: Path, bad: Bad, folder: Path) -> None:
    bad.make(good, folder)
    for verifier in (bounded.ours, bounded.theirs):
        reasons = verifier(folder)
        assert reasons, f"{bad.name}: passed by {verifier.__name__}"
        assert all(0 < len(reason) <= 3000 for reason in reasons), bad.name
    shutil.rmtree(folder)


def require_cheap(good: Path, items: Iterable[Bad], tmp_path: Path) -> None:
    """In a process of its own that may take 500 MB: no reason is that memory or time ran out."""
    linked(good, tmp_path / "0")
    for number, bad in enumerate(items, 1):
        bad.make(good, tmp_path / str(number))
    names = [bad.name for bad in items]
    for which in ("ours", "theirs"):
        done = subprocess.run(
            [sys.executable, "-m", "tests.tools.bounded", which, str(tmp_path), str(len(names))],
            capture_output=True,
            text=True,
            check=False,
            timeout=500,
        )
        told = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(told) == len(names), f"{which} ended at {names[len(told)]}: {done.stderr[-500:]}"
        for name, (reasons, seconds) in zip(names, told, strict=True):
            assert reasons, f"{name}: passed by {which}"
            assert not any(
                word in reason for reason in reasons for word in ("MemoryError", "malloc", "Late")
            ), f"{name}: {which} took {seconds:.1f} s, {reasons}"


def test_the_corpus_is_large(good: Path):
    items = corpus(good)
    assert len(items) > 1500
    assert sum(bad.costly for bad in items) > 200


def test_bad_bundles_are_refused(good: Path, tmp_path: Path):
    cheap = [bad for bad in corpus(good) if not bad.costly]
    hand = [bad for bad in cheap if not bad.name.startswith("field ")]
    every = [bad for bad in cheap if bad.name.startswith("field ")]
    rng = random.Random(1)
    for bad in [*rng.sample(hand, 100), *rng.sample(every, 60)]:
        require_refused(good, bad, tmp_path / "bad")


LARGE = ("10000000", "six million", "ten million", "a long fraction", "a long text", "million slots",
         "rows: 400000000", "rows: 30000000", "long texts, repeated", "a bomb")  # fmt: skip


def test_bad_bundles_cost_little(good: Path, tmp_path: Path):
    costly = [bad for bad in corpus(good) if bad.costly and not any(w in bad.name for w in LARGE)]
    require_cheap(good, random.Random(2).sample(costly, examples(4, 12)), tmp_path)


@pytest.mark.slow
def test_all_bad_bundles_are_refused(good: Path, tmp_path: Path):
    for bad in corpus(good):
        if not bad.costly:
            require_refused(good, bad, tmp_path / "bad")


@pytest.mark.slow
def test_all_bad_bundles_cost_little(good: Path, tmp_path: Path):
    costly = [bad for bad in corpus(good) if bad.costly]
    for start in range(0, len(costly), 50):
        folder = tmp_path / str(start)
        require_cheap(good, costly[start : start + 50], folder)
        shutil.rmtree(folder)


def disagreements(bases: list[Path], folder: Path, keys: Iterable[int]) -> list[str]:
    found = []
    for key in keys:
        rng = random.Random(key)
        base = bases[key % len(bases)]
        manifest: dict[str, Any] = json.loads((base / "release.json").read_bytes())
        what = mutated(manifest, rng)
        linked(base, folder)
        (folder / "release.json").write_bytes(sealed(manifest))
        ours, theirs = bounded.ours(folder), bounded.theirs_at_once(folder)
        if bool(ours) != bool(theirs):
            found.append(f"{key}: {what}: ours {ours[:1]}, theirs {theirs[:1]}")
        shutil.rmtree(folder)
    return found


def test_verifiers_agree_on_mutated_manifests(bases: list[Path], tmp_path: Path):
    assert disagreements(bases, tmp_path / "bad", range(60)) == []


@pytest.mark.slow
def test_verifiers_agree_on_many_mutated_manifests(bases: list[Path], tmp_path: Path):
    assert disagreements(bases, tmp_path / "bad", range(10_000)) == []
