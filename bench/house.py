"""The size and shape of the package, and what the shells cost: one table, from one run.

Crossings: calls from a function of one room to a function of another, files: those that any call
passes, over `release` and `save` of the demo survey (imports not counted, one thread).
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "understudy"
_OFTEN = 5


def main() -> None:
    """Print the tables."""
    print("| command | CPU s | peak MB |\n|---|---|---|")
    for name, seconds, megabytes in costs():  # first: a child counts its parent's memory as its own
        print(f"| {name} | {seconds:.2f} | {megabytes:.0f} |")
    print("\n| what | how many |\n|---|---|")
    for what, count in shape():
        print(f"| {what} | {count:,} |")
    files, crossings = trace()
    print(f"| files that `release` and `save` pass | {files} |")
    print(f"| crossings between rooms on that way | {crossings.total()} |")
    print(f"\n| from | to, {_OFTEN} times or more | how often |\n|---|---|---|")
    for (caller, called), times in crossings.most_common():
        if times >= _OFTEN:
            print(f"| {caller} | {called} | {times} |")


def shape() -> Iterator[tuple[str, int]]:
    """What can be counted without running anything."""
    files = sorted(SRC.rglob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in files]
    trees = [ast.parse(text) for text in texts]
    yield "lines of src", sum(text.count("\n") for text in texts)
    defined = [
        node
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    yield "functions", len(defined)
    yield "functions with more than 10 parameters", sum(parameters(node) > 10 for node in defined)
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    hooks = [
        call
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id in ("getattr", "hasattr")
    ]
    yield "getattr and hasattr", len(hooks)
    yield "# fmt: skip", sum(text.count("# fmt: skip") for text in texts)
    tested = {path.stem.removeprefix("test_") for path in (ROOT / "tests").rglob("test_*.py")}
    named = [path for path in files if path.stem not in ("__init__", "__main__", "_version")]
    yield (
        "modules without a test file of their name",
        sum(path.stem.lstrip("_") not in tested for path in named),
    )


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many, self not counted."""
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return sum(each.arg not in ("self", "cls") for each in given)


def trace() -> tuple[int, Counter[tuple[str, str]]]:
    """How many files a release and its save pass, and how often each function crosses to another."""
    from understudy import release
    from understudy.demo import city_health_survey, schema

    table, known = city_health_survey(2_000), schema()
    passed: set[str] = set()
    crossings: Counter[tuple[str, str]] = Counter()

    def watch(frame: Any, event: str, argument: object) -> None:
        if event != "call":
            return
        here, before = room(frame), room(frame.f_back)
        if here is None:
            return
        passed.add(frame.f_code.co_filename)
        if before is not None and before != here:
            crossings[_place(frame.f_back), _place(frame)] += 1

    with tempfile.TemporaryDirectory() as folder:
        release(table, known, epsilon=1).save(Path(folder) / "warm")  # imports and compiles
        sys.setprofile(watch)
        try:
            release(table, known, epsilon=1).save(Path(folder) / "r")
        finally:
            sys.setprofile(None)
    return len(passed), crossings


def _place(frame: Any) -> str:
    file = Path(frame.f_code.co_filename).relative_to(SRC).with_suffix("")
    return f"{file}: {frame.f_code.co_qualname.replace('<locals>.', '')}"


def room(frame: Any) -> str | None:
    """The room of a frame; None outside the package."""
    return None if frame is None else _room(frame.f_code.co_filename)


@cache
def _room(file: str) -> str | None:
    path = Path(file)
    if not path.is_relative_to(SRC):
        return None
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def costs() -> Iterator[tuple[str, float, float]]:
    """CPU seconds and peak memory of the commands, each in a process of its own, the second run."""
    with tempfile.TemporaryDirectory() as folder:
        run(["demo", f"{folder}/demo"])
        data = [f"{folder}/demo/survey.csv", "--schema", f"{folder}/demo/survey.schema.toml"]
        bundle = f"{folder}/demo/survey.release"
        commands = {
            "--help": ["--help"],
            "verify": ["verify", bundle],
            "sample --rows 1000": ["sample", bundle, "--rows", "1000", "--out", f"{folder}/x.csv"],
            "release": ["release", *data, "--epsilon", "1", "--out", f"{folder}/again"],
        }
        for name, arguments in commands.items():
            yield (name, *run(arguments))


def run(arguments: list[str]) -> tuple[float, float]:
    """CPU seconds and MB of `understudy` with these arguments."""
    code = "import sys; from understudy.cli.app import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "PYTHONPATH": str(SRC.parent)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    child = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    _, status, used = os.wait4(child.pid, 0)
    assert status == 0, f"understudy {' '.join(arguments)} failed"
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
