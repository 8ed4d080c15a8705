"""`understudy sample`: files of synthetic rows."""

from pathlib import Path

import pytest
from pyarrow import csv, parquet

from tests.cli.cli_cases import run
from understudy import demo


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_sample(survey: Path, tmp_path: Path, suffix: str):
    out = tmp_path / f"rows{suffix}"
    made = run("sample", survey / "survey.release", "--rows", 300, "--key", 1, "--out", out)
    assert made.code == 0, made.err
    assert "certificate speaks of the rows in" in made.err
    table = csv.read_csv(out) if suffix == ".csv" else parquet.read_table(out)
    assert table.num_rows == 300
    assert table.column_names == [c.name for c in demo.schema().written]
    if suffix == ".parquet":
        assert table.schema.equals(demo.schema().arrow_schema)
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    before = out.read_bytes()
    again = run("sample", survey / "survey.release", "--rows", 300, "--out", out)
    assert (again.code, "not overwritten" in again.err) == (2, True)
    assert out.read_bytes() == before
    out.unlink()
    run("sample", survey / "survey.release", "--rows", 300, "--key", 1, "--out", out)
    assert out.read_bytes() == before


def test_sample_of_no_rows_and_of_another_format(survey: Path, tmp_path: Path):
    folder, out = survey / "survey.release", tmp_path / "rows.parquet"
    assert run("sample", folder, "--rows", 0, "--out", out).code == 0
    assert parquet.read_table(out).num_rows == 0
    assert run("sample", folder, "--rows", 5, "--out", tmp_path / "rows.xlsx").code == 2
    assert run("sample", folder, "--rows", -5, "--out", tmp_path / "rows.csv").code == 2
    assert run("sample", folder, "--out", tmp_path / "no" / "rows.csv").code == 2


def test_conditioned_rows_say_that_nothing_certifies_them(survey: Path, tmp_path: Path):
    folder, out = survey / "survey.release", tmp_path / "rows.parquet"
    asked = ("--where", "age >= 67 and sex = 'female'", "--match", "smoker=true:0.5")
    made = run("sample", folder, *asked, "--rows", 200, "--key", 1, "--out", out)
    assert made.code == 0, made.err
    assert "NOT CERTIFIED" in made.err
    assert "the certificate does not cover them" in made.err
    rows = parquet.read_table(out)
    assert rows.num_rows == 200
    assert min(rows["age"].to_pylist()) >= 67
    assert set(rows["sex"].to_pylist()) == {"female"}
    assert abs(sum(rows["smoker"].to_pylist()) - 100) <= 10
    assert b"does not cover" in rows.schema.metadata[b"understudy"]
    assert "NOT CERTIFIED" in run("sample", "--help").out


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--where", "age >= 200"), "no weight"),
        (("--where", "agee >= 2"), "agee"),
        (("--match", "smoker=true:1.5"), "from 0 to 1"),
        (("--match", "smoker"), "COLUMN=VALUE:SHARE"),
    ],
)
def test_conditions_that_cannot_be_met(survey: Path, tmp_path: Path, asked, said):
    out = tmp_path / "rows.csv"
    made = run("sample", survey / "survey.release", *asked, "--rows", 20, "--out", out)
    assert (made.code, said in made.err) == (2, True), made.err
    assert not out.exists()
