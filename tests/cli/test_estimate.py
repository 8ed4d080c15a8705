"""`understudy estimate`: statistics with estimated intervals."""

import json
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from tests.cli.cli_cases import run
from tests.cli.test_release import TWO


def test_figures_of_families_are_not_said_of_rows(tmp_path: Path):
    homes = pa.table({"k": list(range(300)), "p": ["a", "b", "a"] * 100})
    parquet.write_table(homes, tmp_path / "homes.parquet")
    people = pa.table({"k": list(range(200)) * 2, "c": [1, 2] * 200})
    parquet.write_table(people, tmp_path / "people.parquet")
    (tmp_path / "s.toml").write_text(TWO.replace("rows_public = 3\n", ""))
    made = run(
        "release", tmp_path / "homes.parquet", "--children", tmp_path / "people.parquet",
        "--schema", tmp_path / "s.toml", "--epsilon", 9, "--out", tmp_path / "out",
    )  # fmt: skip
    assert made.code == 0, made.err
    told = run("estimate", tmp_path / "out", "share(homes.p = 'a')").out
    assert "the population that the families were drawn from" in told
    assert "number of families (sd)" in told
    tested = run("estimate", tmp_path / "out", "independence(homes.p, people.c)").out
    for text in (told, tested):
        assert "rows" not in text.replace("its rows of people", "")


def test_the_parts_of_a_median_are_of_shares_and_those_of_what_is_known_none(survey: Path):
    folder = survey / "survey.release"
    assert "percentage points of the share below it" in run("estimate", folder, "median(age)").out
    assert "none: the schema alone" in run("estimate", folder, "share(age > 1000)").out


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
