"""`understudy compare`: loud, and never into the release."""

import json
from pathlib import Path

from tests.cli.cli_cases import run
from understudy.report.compare import LOUD


def test_the_command(survey: Path, tmp_path: Path):
    folder = survey / "survey.release"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def compared(*words: object):
        return run("compare", survey / "survey.csv", folder, *words)

    done = compared("--target", "sex", "--out", tmp_path / "look.html")
    assert done.code == 0, done.err
    assert done.out.startswith("NOT PRIVATE")
    assert "NOT PRIVATE" in (tmp_path / "look.html").read_text()
    for said in ("k-marginal score", "propensity", "worst error", "accuracy", "random questions"):
        assert said in done.out
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before

    inside = compared("--out", folder / "look.json")
    assert (inside.code, "never goes into a release" in inside.err) == (2, True)
    again = compared("--out", tmp_path / "look.html")
    assert (again.code, "not overwritten" in again.err) == (2, True)
    assert compared("--out", tmp_path / "look.txt").code == 2

    machine = compared("--target", "sex", "--json")
    assert json.loads(machine.out)["not_private"] == LOUD
