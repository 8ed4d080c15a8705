"""The command line on a database: the same release, progress, and no password anywhere."""

from pathlib import Path

import pytest
from cli_cases import run
from pyarrow import csv
from tests.tools import servers


@pytest.fixture
def people(case) -> str:
    table = csv.read_csv(case.data)
    servers.create(table, "cli people")
    return servers.postgres()


def test_a_release_from_a_table_of_a_database(case, people: str, tmp_path: Path):
    out = tmp_path / "from.database"
    secret = people.replace("postgres:@", "postgres:hunter2@")  # the server trusts anybody
    made = run(
        "release", secret, "--table", '"cli people"', "--schema", case.schema, "--epsilon", 1,
        "--method", "independent", "--out", out,
    )  # fmt: skip
    assert made.code == 0, made.err
    assert "A stand-in for postgresql://postgres@/postgres" in made.out
    assert "hunter2" not in made.out + made.err
    assert run("verify", out).code == 0
    for file in out.rglob("*"):
        assert b"hunter2" not in file.read_bytes()


def test_databases_that_are_wrong(case, people: str, tmp_path: Path):
    for given, said in (
        ((people,), "which table?"),
        ((people, "--table", "cli_people"), "there is no table 'cli_people'; is it 'cli people'?"),
        ((case.data, "--table", "t"), "goes with a database"),
        (("postgresql://a:hunter2@localhost:1/x", "--table", "t"), "cannot be reached"),
    ):
        result = run(
            "release", *given, "--schema", case.schema, "--epsilon", 1, "--out", tmp_path / "x"
        )
        assert result.code == 2
        assert said in " ".join(result.err.split())
        assert "hunter2" not in result.err
    assert not (tmp_path / "x").exists()
