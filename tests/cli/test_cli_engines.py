"""The command line on a database: the same release, progress, and no password anywhere."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from cli_cases import run
from pyarrow import csv, parquet
from tests.tools import servers

from understudy.source.duckdb import DuckDBSource


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


def test_a_schema_from_a_table_of_a_database(case, people: str, tmp_path: Path):
    out = tmp_path / "s.toml"
    secret = people.replace("postgres:@", "postgres:hunter2@")
    drafted = run("schema", "draft", secret, "--table", '"cli people"', "--out", out)
    assert drafted.code == 0, drafted.err
    assert "age" in out.read_text()
    assert "hunter2" not in drafted.out + drafted.err + out.read_text()
    looked = run("schema", "check", out, "--data", secret, "--table", '"cli people"')
    assert looked.code == 0, looked.out
    assert "hunter2" not in looked.out + looked.err


def test_a_plan_says_what_engines_do(case):
    told = run("plan", "--schema", case.schema, "--epsilon", 1, "--rows", 1000)
    assert "a database" in told.out
    assert "counts, at most" in told.out
    machine = json.loads(run("plan", "--schema", case.schema, "--epsilon", 1, "--json").out)
    engines = {each["engine"]: each for each in machine["engines"]}
    assert engines["sql"]["passes"] == engines["spark"]["passes"] == 1
    assert engines["memory"]["bytes_back"] == 0


def test_files_larger_than_the_memory_limit_are_streamed_with_progress(
    case, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr("understudy.source._LEAST_MEMORY", 100)
    monkeypatch.setattr("understudy.cli.progress._PATIENCE", -1)
    given = (
        "release", case.data, "--schema", case.schema, "--epsilon", 1, "--method", "independent",
    )  # fmt: skip
    streamed, asked = [], DuckDBSource.bind
    monkeypatch.setattr(
        DuckDBSource, "bind", lambda self, schema: streamed.append(self) or asked(self, schema)
    )
    assert run(*given, "--out", tmp_path / "kept").code == 0
    assert not streamed
    size = case.data.stat().st_size
    monkeypatch.setattr(DuckDBSource, "_connect", lambda self: duckdb.connect())
    made = run(*given, "--out", tmp_path / "streamed", "--memory-limit", f"{size // 2}B")
    assert made.code == 0, made.err
    assert streamed
    assert "counted 50 % of the table" in made.err
    assert run("verify", tmp_path / "streamed").code == 0


@pytest.mark.slow
def test_a_release_from_files_on_spark(case, tmp_path: Path):
    """In a process of its own: the session is started by the command, and draws no bar over ours."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java: apt-get install default-jre-headless")
    (tmp_path / "rows").mkdir()
    parquet.write_table(csv.read_csv(case.data), tmp_path / "rows" / "part.parquet")
    made = subprocess.run(
        [
            sys.executable, "-m", "understudy", "release", "local[2]", "--path", tmp_path / "rows",
            "--schema", case.schema, "--epsilon", "1", "--method", "independent",
            "--out", tmp_path / "from.spark",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert "certifying the worst error" in made.stderr
    assert "[Stage" not in made.stderr
    assert run("verify", tmp_path / "from.spark").code == 0


def test_options_of_other_places_are_refused(case, people: str, tmp_path: Path):
    for given, said in (
        ((case.data, "--memory-limit", "2 pounds"), "write for instance '2GB'"),
        ((case.data, "--memory-limit", "1MB"), "at least 100MB"),
        ((people, "--table", "t", "--memory-limit", "2GB"), "is for files"),
        ((case.data, "--path", "x"), "goes with Spark"),
        (("local[1]",), "which table?"),
    ):
        result = run(
            "release", *given, "--schema", case.schema, "--epsilon", 1, "--out", tmp_path / "x"
        )
        assert result.code == 2
        assert said in " ".join(result.err.split())
    assert not (tmp_path / "x").exists()
