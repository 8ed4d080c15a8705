"""`understudy export`: a description is printed or written, never into the release."""

import json
from pathlib import Path

import yaml

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
