"""The types that every room speaks of: on the ground, and spoken of by several rooms."""

import ast
from collections import defaultdict
from pathlib import Path

import understudy
from understudy import _types

SRC = Path(understudy.__file__).parent


def imported(path):
    """(module, name) of every `from … import …` of a file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


def defined():
    """The names that the module gives a meaning."""
    tree = ast.parse(Path(_types.__file__).read_text("utf-8"))
    return [node.targets[0].id for node in tree.body if isinstance(node, ast.Assign)]


def test_they_stand_on_nothing_of_the_package():
    assert not [m for m, _ in imported(Path(_types.__file__)) if m.startswith("understudy")]


def test_each_is_spoken_of_by_several_rooms():
    rooms = defaultdict(set)
    for path in SRC.rglob("*.py"):
        for module, name in imported(path):
            if module == "understudy._types":
                rooms[name].add(path.relative_to(SRC).parts[0])
    assert set(rooms) == set(defined())
    assert {name: len(found) for name, found in rooms.items() if len(found) < 2} == {}
