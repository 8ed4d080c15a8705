"""A release forged consistently is refused by both verifiers, with a reason that names the lie."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import understudy as us
from tests.releases.conftest import TOML, people
from tests.thorough import examples, some
from tests.tools import bounded
from tests.tools.forge import FORGERIES, Forgery, borrowed
from understudy.schema import Schema

SMALL: dict[str, dict[str, Any]] = {
    "independent": {"variations": True},
    "independent, replace": {"neighbours": "replace", "rows_public": 2000, "variations": True},
    "gaussian": {},
    "mwem": {"parameters": {"rounds": 3}},
    "aim": {"parameters": {"iterations": 100}},
    "mst": {},
    "dualquery": {"parameters": {"rounds": 4, "samples": 20}},
    "hdmm": {},
}
"""Releases that take little time to make."""

LARGE: dict[str, dict[str, Any]] = {
    "gaussian, replace": {"neighbours": "replace", "rows_public": 2000},
    "maxent": {"parameters": {"records": 2000}},
    "fem": {"parameters": {"rounds": 4, "samples": 20, "blocks": 4}},
    "sepfem": {"parameters": {"rounds": 3, "samples": 20, "blocks": 4}},
    "dqrs": {"parameters": {"rounds": 3, "samples": 20}},
    "frankwolfe": {"parameters": {"rounds": 3}},
    "gem": {"parameters": {"rounds": 2, "steps": 3, "width": 8, "latent": 4}},
    "querygan": {"parameters": {"rounds": 2, "steps": 3, "batch": 20, "width": 4, "records": 500}},
    "dpgan": {"parameters": {"steps": 3, "width": 8, "critic_width": 8, "fakes": 64, "latent": 4}},
}


class Folders(dict[str, Path]):
    """Releases by name, of the same rows, so large that no bound is 1; made when first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __missing__(self, name: str) -> Path:
        how = {"epsilon": 2, "workload": "marginals:2", "key": 7, **(SMALL | LARGE)[name]}
        made = us.release(people(2000), Schema.loads(TOML), method=name.split(",")[0], **how)
        self[name] = made.save(self.folder / name)
        return self[name]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return Folders(tmp_path_factory.mktemp("releases"))


RAW = r"(Key|Type|Attribute|Assertion|Index)Error|to unpack"
"""Of Python, which tells a reader nothing."""


def complaints(forgery: Forgery, bad: Path) -> Iterator[str]:
    """By whom it was accepted, or refused for another reason or without a sentence."""
    for verifier in (bounded.ours, bounded.theirs):
        reasons = verifier(bad)
        if not reasons:
            yield f"accepted by {verifier.__name__}"
        elif not any(re.search(forgery.reason, reason, re.IGNORECASE) for reason in reasons):
            yield f"refused by {verifier.__name__} for another reason: {reasons}"
        elif raw := [reason for reason in reasons if re.search(RAW, reason)]:
            yield f"refused by {verifier.__name__} without a sentence: {raw}"


@pytest.mark.parametrize("name", some(SMALL, 2))
def test_sealed_again_without_a_lie_it_is_accepted(folders: Folders, tmp_path: Path, name: str):
    """The forger's hashes, bounds and words are right, so no forgery is refused for a slip of his."""
    assert Forgery("nothing", lambda _: True, "").make(folders[name], tmp_path / "sealed")
    assert bounded.ours(tmp_path / "sealed") == bounded.theirs(tmp_path / "sealed") == []


NAMES = [forgery.name for forgery in (*FORGERIES, *borrowed(Path()))]
QUICK = [name for name in NAMES if name != "one coordinate"]  # which only a sum over a sample has


@pytest.mark.parametrize("which", map(NAMES.index, QUICK), ids=QUICK)
def test_a_forgery_is_refused_by_both(folders: Folders, tmp_path: Path, which: int):
    """Of the first method that the lie can be told of, beginning at another one for each."""
    first = [*SMALL][:: examples(2, 1)]
    turn = which % len(first)
    rest = (name for name in (*SMALL, "maxent") if name not in first)
    names = [*first[turn:], *first[:turn], *rest]
    for good, other in zip(names, names[1:] + names[:1], strict=True):
        forgery = (*FORGERIES, *borrowed(folders[other]))[which]
        if forgery.make(folders[good], tmp_path / "bad"):
            assert [*complaints(forgery, tmp_path / "bad")] == [], good
            return
    pytest.fail("no release here can be forged in this way")


def all_complaints(good: Path, other: Path, folder: Path) -> Iterator[str]:
    for i, forgery in enumerate((*FORGERIES, *borrowed(other))):
        if forgery.make(good, folder / str(i)):
            for complaint in complaints(forgery, folder / str(i)):
                yield f"{forgery.name}: {complaint}"


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_every_forgery_is_refused(folders: Folders, tmp_path: Path, name: str):
    names = [*SMALL]
    other = folders[names[names.index(name) - 1]]
    assert [*all_complaints(folders[name], other, tmp_path)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_every_forgery_of_a_larger_game_is_refused(folders: Folders, tmp_path: Path, name: str):
    good = folders[name]
    assert Forgery("nothing", lambda _: True, "").make(good, tmp_path / "sealed")
    assert bounded.ours(tmp_path / "sealed") == bounded.theirs(tmp_path / "sealed") == []
    other = folders["gaussian" if name == "maxent" else "dualquery"]
    assert [*all_complaints(good, other, tmp_path)] == []
