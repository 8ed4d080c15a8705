"""A small case to break, and a release of the demo table to read."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyarrow import csv

from tests.cli.cli_cases import SMALL, Case, run, small_rows
from understudy import demo


@pytest.fixture
def case(tmp_path: Path) -> Case:
    made = Case(tmp_path)
    made.data.write_text(small_rows())
    made.schema.write_text(SMALL)
    opened = run("ledger", "open", made.ledger, "--dataset", "t", "--epsilon", 3,
                 "--composition", "basic")  # fmt: skip
    assert opened.code == 0, opened.err
    return made


@pytest.fixture(scope="session")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo table with a release of it, to read and not to change."""
    folder = tmp_path_factory.mktemp("survey")
    csv.write_csv(demo.city_health_survey(rows=2000), folder / "survey.csv")
    demo.schema().save(folder / "survey.schema.toml")
    made = run(
        "release", folder / "survey.csv", "--schema", folder / "survey.schema.toml",
        "--epsilon", 1, "--method", "independent", "--out", folder / "survey.release",
    )  # fmt: skip
    assert made.code == 0, made.err
    (folder / "screen.txt").write_text(made.out + made.err)
    return folder


@pytest.fixture
def understudy() -> Callable[..., list[str]]:
    """The command line of a real process."""
    return lambda *arguments: [sys.executable, "-m", "understudy", *map(str, arguments)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[object]:
    """`understudy serve` in a process of its own."""
    from tests.web.conftest import Server

    made = Server(tmp_path / "desk")
    made.start()
    yield made
    made.close()
