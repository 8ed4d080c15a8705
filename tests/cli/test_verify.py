"""`understudy verify` and its exit codes."""

import json
from pathlib import Path

from tests.cli.cli_cases import Case, run


def test_verify(survey: Path, tmp_path: Path):
    folder = survey / "survey.release"
    assert run("verify", folder).code == 0
    told = json.loads(run("verify", folder, "--json").out)
    assert told["passed"] is True
    digest = json.loads((folder / "release.json").read_text())["digest"]
    assert f"{digest}, the one that you gave" in run("verify", folder, "--digest", digest).out
    other = run("verify", folder, "--digest", "0" * 64)
    assert other.code == 1
    assert "✗ manifest" in other.out
    assert run("verify", folder, "--digest", "abc").code == 2
    assert run("verify", tmp_path).code == 2
    assert run("verify", tmp_path / "nothing").code == 2


def test_verify_refuses_a_changed_release(case: Case):
    assert case.release().code == 0
    manifest = case.out / "release.json"
    manifest.write_text(manifest.read_text().replace('"rows_estimate": ', '"rows_estimate": 1'))
    changed = run("verify", case.out)
    assert changed.code == 1
    assert "a check failed" in changed.out
