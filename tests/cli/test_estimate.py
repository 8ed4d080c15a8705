"""`understudy estimate`: statistics with estimated intervals."""

import json
from pathlib import Path

from tests.cli.cli_cases import run


def test_estimate(survey: Path):
    folder = survey / "survey.release"
    one = run("estimate", folder, "share(age >= 65)")
    assert one.code == 0
    assert "estimated, 95 %" in one.out
    assert "certified" not in one.out
    told = json.loads(
        run("estimate", folder, "share(age >= 65)", "--json", "--target", "table").out
    )
    assert told["low"] <= told["value"] <= told["high"]
    assert (told["target"], told["parts"]["sampling"]) == ("table", 0.0)
    narrow = json.loads(run("estimate", folder, "share(age >= 65)", "--json", "--level", ".5").out)
    assert narrow["high"] - narrow["low"] < told["high"] - told["low"]


def test_several_and_tests(survey: Path):
    folder = survey / "survey.release"
    groups = run("estimate", folder, "mean(age) by sex")
    assert (groups.code, "mean(age) where sex = female" in groups.out) == (0, True)
    assert "for the population" in groups.out
    unseen = "No noisy table of this release holds sex and age together"
    assert unseen in " ".join(groups.err.split())
    assert "--method maxent --purpose subgroups:sex" in " ".join(groups.err.split())
    untested = run("estimate", folder, "independence(age, sex)")  # columns were measured alone
    assert (untested.code, "no table with both age and sex" in untested.err) == (2, True)
    silent = run("estimate", folder, "mean(age) where sex = 'other' and smoker")
    assert (silent.code, "not determined" in silent.out) == (0, True)


def test_what_is_wrong_is_named(survey: Path):
    folder = survey / "survey.release"
    for asked, said in (("mean(agee)", "did you mean 'age'"), ("men(age)", "did you mean 'mean'")):
        refused = run("estimate", folder, asked)
        assert (refused.code, said in refused.err) == (2, True)
    assert "level = 95" in run("estimate", folder, "mean(age)", "--level", "95").err
