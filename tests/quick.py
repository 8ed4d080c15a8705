"""`--quick`: the first case of every test that is no long one. What a person runs at every save.

Long are the tests whose first case took more than `LIMIT` seconds of CPU, with the processes it waited
for; `long.txt` names them, and a file that holds no others is not read. `--write-long` writes it anew
(with -n 0, over the whole suite, -m "not slow").
"""

import re
import resource
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

LIMIT = 0.1
LIST = Path(__file__).with_name("long.txt")
ROOT = Path(__file__).parents[1]
# Whatever starts JAX or a server, and the second verifier, whose first test pays for all.
LEFT_OUT = (
    "tests/cli/test_cli_bench.py",
    "tests/cli/test_team_ledger.py",
    "tests/game/methods/test_aim.py",
    "tests/game/methods/test_dpgan.py",
    "tests/game/methods/test_gem.py",
    "tests/game/methods/test_querygan.py",
    "tests/models/test_graphical.py",
    "tests/nets",
    "tests/players/data/test_ftpl_generator.py",
    "tests/players/data/test_gan.py",
    "tests/players/data/test_generator.py",
    "tests/players/query/test_aim.py",
    "tests/players/query/test_critic.py",
    "tests/players/query/test_querygan.py",
    "tests/privacy/test_postgres.py",
    "tests/report/test_compare.py",
    "tests/source/test_pushed.py",
    "tests/source/test_spark.py",
    "tests/source/test_sql.py",
    "tests/source/test_values.py",
    "tests/test_compiled.py",
    "tests/tools",
)


def function_of(item: pytest.Item) -> str:
    """The name of the function, without its case."""
    return item.nodeid.partition("[")[0]


def name_of(function: str) -> str:
    """The name without that of its file: files move."""
    return function.rpartition("::")[2]


def long_ones() -> set[str]:
    """Names of long tests."""
    return set(LIST.read_text("utf-8").split())


def choose(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """(first cases of tests that are not long, all others)."""
    long, seen = long_ones(), set[str]()
    kept, left = [], []
    for item in items:
        function = function_of(item)
        wanted = function not in seen and name_of(function) not in long
        (kept if wanted else left).append(item)
        seen.add(function)
    return kept, left


class Quick:
    """Leaves out what is long."""

    def __init__(self) -> None:
        self.files = {ROOT / name for name in LEFT_OUT}
        self.long = long_ones()

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        if collection_path in self.files:
            return True
        if not collection_path.match("test_*.py"):
            return None
        held = re.findall(r"^ *def (test_\w+)", collection_path.read_text("utf-8"), re.MULTILINE)
        return True if held and self.long.issuperset(held) else None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        items[:], left = choose(items)
        config.hook.pytest_deselected(items=left)


class Stopwatch:
    """Writes the list."""

    def __init__(self) -> None:
        self.took: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        begun = _cpu()
        try:
            return (yield)
        finally:
            self.took.setdefault(function_of(item), _cpu() - begun)

    def pytest_sessionfinish(self) -> None:
        LIST.write_text("".join(f"{name}\n" for name in listed(self.took)), "utf-8")


def listed(took: Mapping[str, float]) -> list[str]:
    """Names of long tests."""
    return sorted({name_of(function) for function, seconds in took.items() if seconds > LIMIT})


def _cpu() -> float:
    own, children = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
