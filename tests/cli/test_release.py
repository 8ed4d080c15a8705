"""`understudy release`: what it says, charges and leaves."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import understudy as us
from tests.cli.cli_cases import SMALL, Case, run, small_rows
from tests.tools import servers
from understudy import demo
from understudy.privacy import Ledger

# release, verify, sample, answer


def test_release_tells_the_promise_and_what_comes_next(survey: Path):
    screen = (survey / "screen.txt").read_text()
    release = us.Release.load(survey / "survey.release")
    assert f"{release.budget}-differential privacy per row" in screen
    assert "one row added or removed; the number of rows is private" in screen
    assert str(release.certificate) in screen
    assert "--ledger FILE --dataset NAME" in screen
    for command in ("verify", "sample"):
        assert f"understudy {command} {survey / 'survey.release'}" in screen


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(1e-9, "3 of 3 rounds ended without a proof: time was up"), (60, "0 of 3 rounds ended")],
)
def test_release_counts_the_rounds_without_a_proof(case: Case, seconds: float, told: str):
    pytest.importorskip("ortools")
    made = case.release(
        "--method", "dualquery", "--set", "rounds=3", "--set", "oracle=exact",
        "--set", f"seconds={seconds}",
    )  # fmt: skip
    assert made.code == 0, made.err
    assert told in " ".join(made.out.split())
    assert ("privacy is untouched" in " ".join(made.out.split())) == (seconds < 1)


def test_release_with_a_ledger_publishes_its_digest(case: Case):
    made = case.release("--variations", "--rows", 50, "--key", 7, "--beta", 0.1)
    assert made.code == 0, made.err
    assert case.kinds()[-2:] == ["settle", "publish"]
    assert us.Release.load(case.out).rows.num_rows == 50
    assert us.Release.load(case.out).certificate.variations is not None
    digest = json.loads((case.out / "release.json").read_bytes())["digest"]
    checked = run("verify", case.out, "--ledger", case.ledger, "--dataset", "t")
    assert checked.code == 0
    assert "with this bundle's digest" in checked.out
    assert run("verify", case.out, "--digest", digest.upper()).code == 0

    shown = run("ledger", "show", case.ledger)
    assert shown.code == 0
    assert "finished" in shown.out
    assert "  67 %: ε = 2, δ" in shown.out
    assert "hash chain intact" in shown.out
    [view] = json.loads(run("ledger", "show", case.ledger, "--json").out)
    assert view["spent"]["epsilon"] == 1
    assert view["chain"] == {"holds": True, "problem": None}
    assert view["releases"][0]["bundle"] == digest


def test_neighbours_follow_the_ledger(tmp_path: Path):
    case = Case(tmp_path)
    case.data.write_text(small_rows())
    case.schema.write_text(SMALL)
    opened = run(
        "ledger", "open", case.ledger, "--dataset", "t", "--epsilon", 3,
        "--neighbours", "replace", "--rows-public", 400, "--composition", "zcdp",
    )  # fmt: skip
    assert opened.code == 0
    wrong = case.release("--neighbours", "add-remove")
    assert wrong.code == 2
    assert case.kinds() == ["open"]
    assert case.release().code == 0
    assert us.Release.load(case.out).relation is us.Relation.REPLACE


def test_a_release_keeps_types(survey: Path):
    rows = us.Release.load(survey / "survey.release").rows
    assert isinstance(rows, pa.Table)
    assert rows.schema.equals(demo.schema().arrow_schema)


def entries(case):
    with Ledger(case.ledger) as ledger:
        return [entry.kind for entry in ledger.entries("t")]


def test_a_found_epsilon_is_spent_only_when_agreed_to(case, tmp_path):
    choices = (
        "release", case.data, "--schema", case.schema, "--out", tmp_path / "r",
        "--ledger", case.ledger, "--dataset", "t", "--rows", 500, "--target-error", "0.2",
    )  # fmt: skip
    asked = run(*choices)
    assert asked.code == 2
    words = " ".join(asked.err.split())
    assert "it needs your consent; nothing was spent. Give --epsilon, or --yes" in words
    assert entries(case) == ["open"]
    found = words.split("needs --epsilon ")[1].split(",")[0]
    made = run(*choices, "--yes")
    assert made.code == 0, made.err
    assert f"needs --epsilon {found}" in " ".join(made.err.split())
    assert "typical table" in made.out
    assert entries(case)[-1] == "publish"
    manifest = json.loads((tmp_path / "r" / "release.json").read_text())
    assert manifest["promise"]["epsilon"] == found
    assert manifest["forecast"]["words"].startswith("total variation about")
    assert run("verify", tmp_path / "r").code == 0


def test_an_epsilon_that_protects_hardly_anybody_is_spent_only_on_purpose(case, tmp_path):
    choices = (
        "release", case.data, "--schema", case.schema, "--out", tmp_path / "r", "--ledger",
        case.ledger, "--dataset", "t", "--rows", 500, "--epsilon",
    )  # fmt: skip
    refused = run(*choices, "1000")
    assert refused.code == 2
    assert "ε = 1,000 protects hardly anybody" in refused.err
    assert "Nothing was spent" in refused.err
    assert entries(case) == ["open"]
    typed = run(*choices, "1,000")
    assert "is not a number; give one such as 0.5, without commas" in " ".join(typed.err.split())
    larger = run(*choices, "11", "--yes")  # and the total of the account is smaller
    assert "protects" not in larger.err
    assert "does not fit" in larger.err
    assert larger.err.count("Nothing was") == 1
    planned = run("plan", "--schema", case.schema, "--epsilon", 11)
    assert "ε = 11 protects hardly anybody" in planned.out


@pytest.mark.slow
def test_a_release_of_noise_says_so(case, tmp_path):
    made = run(
        "release", case.data, "--schema", case.schema, "--out", tmp_path / "r",
        "--epsilon", "0.0001", "--rows", 50,
    )  # fmt: skip
    assert made.code == 0, made.err
    assert "Not useful for analysis" in made.out


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
    assert "Wrote the synthetic release of postgresql://postgres@/postgres" in made.out
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


def test_null_texts_other_columns_and_what_became_other(tmp_path: Path):
    rows = "\n".join(f"{'abX?'[i % 4]},{i % 3},secret {i}" for i in range(300))
    (tmp_path / "t.csv").write_text(f"0,1,2\n{rows}\n")
    schema = us.Schema(
        (us.schema.Category("0", ("a",), True, nullable=True), us.schema.Integer("1", 0, 2))
    )
    schema.save(tmp_path / "s.toml")
    out, asked = tmp_path / "r", ["--schema", tmp_path / "s.toml", "--epsilon", "5"]
    refused = run("release", tmp_path / "t.csv", *asked, "--out", out)
    assert refused.code == 2
    assert "--drop-other-columns" in " ".join(refused.err.split())
    nulls = ["--null", "0=X", "--null", "?", "--drop-other-columns"]
    made = run("release", tmp_path / "t.csv", *asked, "--out", out, *nulls)
    assert made.code == 0, made.err
    assert re.search(
        r"OTHER +values that are not listed, of the synthetic rows: about [\d.]+ % in 0", made.out
    )
    stated = us.Release.load(out).schema
    assert stated.drop_other_columns
    assert (stated.null_values, stated.columns[0].null_values) == (("?",), ("X",))
    checked = run("schema", "check", tmp_path / "s.toml", "--data", tmp_path / "t.csv", *nulls)
    assert checked.code == 1
    assert "not in the schema" not in checked.out
    assert "'b' ×75" in checked.out
    assert "X" not in checked.out.replace("--", "")
    wrong = run("release", tmp_path / "t.csv", *asked, "--out", tmp_path / "q", "--null", "9=X")
    assert wrong.code == 2
    assert "there is no column '9'" in wrong.err


@pytest.mark.parametrize("place", ["files", "database"])
def test_two_tables_are_of_one_place(tmp_path: Path, place: str):
    tables = {
        "cli_homes": pa.table({"k": [1, 2, 3], "p": ["a", "b", "a"]}),
        "cli_people": pa.table({"k": [1, 1, 2, 9], "c": [1, 2, 3, 1]}),
    }
    (tmp_path / "s.toml").write_text(TWO)
    if place == "database":
        for name, table in tables.items():
            servers.create(table, name)
        data = [servers.postgres(), "--table", "cli_homes", "--children", "cli_people"]
    else:
        for name, table in tables.items():
            parquet.write_table(table, tmp_path / f"{name}.parquet")
        data = [tmp_path / "cli_homes.parquet", "--memory-limit", "200MB"]
        data += ["--children", tmp_path / "cli_people.parquet"]
    out = tmp_path / "out"
    made = run("release", *data, "--schema", tmp_path / "s.toml", "--epsilon", 1, "--out", out)
    assert made.code == 0, made.err
    assert (out / "parents.parquet").is_file()
    refused = run("release", *data[:-1], "nothing", "--schema", tmp_path / "s.toml", "--epsilon", 1,
                  "--out", tmp_path / "more")  # fmt: skip
    assert refused.code != 0
    assert "nothing" in refused.err


TWO = """
[understudy]
version = 2
rows_public = 3
[[table]]
name = "homes"
key = "k"
[[table]]
name = "people"
parent = "homes"
foreign_key = "k"
max_children = 2
[[column]]
table = "homes"
name = "k"
type = "identifier"
[[column]]
table = "homes"
name = "p"
type = "category"
values = ["a", "b"]
[[column]]
table = "people"
name = "k"
type = "identifier"
[[column]]
table = "people"
name = "c"
type = "integer"
lower = 0
upper = 3
"""
