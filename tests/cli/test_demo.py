"""`understudy demo`."""

from pathlib import Path

import understudy as us
from tests.cli.cli_cases import run

# the rest


def test_demo(tmp_path: Path):
    shown = run("demo", tmp_path / "demo", "--rows", 500, "--method", "independent")
    assert shown.code == 0, shown.err
    assert "all checks passed" in shown.out
    assert us.verify(tmp_path / "demo" / "survey.release").passed
    assert run("demo", tmp_path / "demo").code == 2
    assert run("demo", tmp_path / "other", "--method", "none").code == 2
    assert not (tmp_path / "other").exists()
