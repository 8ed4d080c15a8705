"""The player and the method of CONTRIBUTING.md, as printed there, conform; its list of places holds."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
import types
from fractions import Fraction

import pytest

import understudy as us
from understudy.players import data, query
from understudy.players.base import DataPlayer
from understudy.privacy import planning
from understudy.privacy.cost import Charge, Plan
from understudy.testing import check_query_player

from .test_readme import ROOT, blocks

PLAYER = "understudy.players.query.round_robin"
METHOD = "understudy.game.methods.roundrobin"


@pytest.fixture
def player(monkeypatch):
    return module(monkeypatch, PLAYER, "class RoundRobin:")


@pytest.fixture
def trial(player, monkeypatch):
    """What the page tries, with both files where it says that they are."""
    module(monkeypatch, METHOD, "class RoundRobinMethod")
    return module(monkeypatch, "trial", "check_method(")


def module(monkeypatch, name: str, holds: str) -> types.ModuleType:
    (code,) = (block for block in blocks(ROOT / "CONTRIBUTING.md", "python") if holds in block)
    assert len(code.splitlines()) < 60
    made = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)  # where dataclasses look their names up
    exec(compile(code, "CONTRIBUTING.md", "exec"), made.__dict__)  # the page's own code
    return made


def test_the_files_of_the_page_are_new():
    """Who follows the page overwrites nothing."""
    for name in (PLAYER, METHOD):
        path = f"src/{name.replace('.', '/')}.py"
        assert f"# {path}\n" in (ROOT / "CONTRIBUTING.md").read_text()
        assert not (ROOT / path).exists()


def test_the_player_of_the_page_conforms(player):
    event = planning.gaussian(Fraction(1, 10))
    plan = Plan((Charge(player.RoundRobin.PURPOSE, event, 3),))
    assert check_query_player(lambda: player.RoundRobin(3, event.sigma), plan) >= 5


def test_the_method_of_the_page_conforms_and_releases(trial, tmp_path):
    assert trial.made.rows.num_rows > 0
    found = us.verify(trial.made.save(tmp_path / "r"))
    refused = {check.name: check.detail for check in found.checks if not check.passed}
    assert set(refused) == {"plan"}
    assert "'roundrobin' is not known" in refused["plan"]


def test_the_places_of_the_page_are_there():
    """Files and names that must know a method."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for file, names in {
        "src/understudy/game/methods/__init__.py": ["METHODS"],
        "src/understudy/releases/paid.py": ["_match", "take_any", "workload"],
        "src/understudy/releases/replan.py": ["_require_bearable"],
        "src/understudy/errors.py": ["require_extra"],
        "tools/verify_release.py": ["GAMES", "LEAVES", "pools_of", "Slot"],
        "tests/testing/test_methods.py": ["OURS"],
        "tests/game/test_play.py": ["SMALL"],
        "tests/audit/test_self.py": ["SMALL"],
        "tests/releases/test_replan.py": ["RELEASES"],
        "tests/tools/test_stranger_plans.py": ["METHOD_SETTINGS"],
        "tests/test_architecture.py": ["PUBLIC"],
    }.items():
        code = (ROOT / file).read_text()
        for name in names:
            assert re.search(rf"\b{name}\b", code), f"{file} has no {name}"
            assert re.search(rf"\b{name}\b", text), f"CONTRIBUTING.md does not name {name}"


def test_the_page_about_players_names_all_of_them():
    text = (ROOT / "docs" / "players.md").read_text(encoding="utf-8")
    asking = [each for each in classes(query) if hasattr(each, "play")]
    answering = [each for each in classes(data) if issubclass(each, DataPlayer)]
    assert len(asking) > 10
    assert len(answering) > 10
    assert [each for each in (*asking, *answering) if f"`{each.__name__}`" not in text] == []


def classes(package) -> list[type]:
    """Those that the modules of a package define."""
    modules = [
        importlib.import_module(f"{package.__name__}.{found.name}")
        for found in pkgutil.iter_modules(package.__path__)
    ]
    return [
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == module.__name__
    ]
