"""`understudy answer`: questions with error bars."""

import json
from pathlib import Path

from tests.cli.cli_cases import run


def test_answer(survey: Path):
    folder = survey / "survey.release"
    shown = run("answer", folder, "age >= 65 and sex = 'female'")
    assert shown.code == 0
    assert "certified with 95 % confidence" in shown.out
    told = json.loads(run("answer", folder, "age >= 65 and sex = 'female'", "--json").out)
    assert told["low"] <= told["estimate"] <= told["high"]
    beyond = json.loads(run("answer", folder, "smoker and insured and sex = 'male'", "--json").out)
    assert beyond["certified"] is False
    assert beyond["low"] is None
    unknown = run("answer", folder, "agee > 3")
    assert (unknown.code, "did you mean" in unknown.err) == (2, True)
