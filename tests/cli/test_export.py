"""`understudy export`: a description is printed or written, never into the release."""

import json
from pathlib import Path

import yaml
from pyarrow import csv

import understudy as us
from tests.cli.cli_cases import run
from understudy.report.exports import FILL_IN


def test_the_command(survey: Path, tmp_path: Path):
    folder = survey / "survey.release"
    printed = run("export", folder, "--format", "sdv")
    assert printed.code == 0
    assert json.loads(printed.out)["tables"]
    out = tmp_path / "entry.yaml"
    words = ["export", folder, "--format", "opendp-registry", "--out", out]
    done = run(*words)
    assert (done.code, FILL_IN in done.err) == (0, True)
    assert yaml.safe_load(out.read_text())["url_slug"] == "survey"
    assert run(*words).code == 2  # not overwritten
    inside = run(*words[:-1], folder / "entry.yaml")
    assert (inside.code, "holds no other file" in inside.err) == (2, True)
    assert us.verify(folder).passed


def test_the_certified_rows_as_text(survey: Path, tmp_path: Path):
    out = tmp_path / "rows.csv"
    assert run("export", survey / "survey.release", "--format", "csv", "--out", out).code == 0
    rows = us.Release.load(survey / "survey.release").rows
    assert csv.read_csv(out).num_rows == rows.num_rows
    assert csv.read_csv(out).column_names == rows.column_names


def test_a_sheet_with_an_audit(survey: Path, tmp_path: Path):
    folder, audit = survey / "survey.release", tmp_path / "audit.json"
    found = {
        "what": "understudy audit release", "words": "w", "limits": "never a proof",
        "claim": {"epsilon": 1.0}, "lower_bound": {"epsilon": 0.1}, "attacks": [],
        "refuted": False, "runs": 3, "canaries": 2, "rows_used": "synthetic rows",
    }  # fmt: skip
    audit.write_text(json.dumps(found))
    for suffix in (".md", ".html", ".json"):
        out = tmp_path / f"sheet{suffix}"
        done = run("export", folder, "--format", "sheet", "--audit", audit, "--out", out)
        assert (done.code, FILL_IN in done.err) == (0, True), done.err
        assert "never a proof" in out.read_text()
        assert "not refuted" in out.read_text()
    audit.write_text("{}")
    bad = run("export", folder, "--format", "sheet", "--audit", audit)
    assert (bad.code, "was not written by" in bad.err) == (2, True)
