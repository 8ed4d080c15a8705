"""`understudy answer`: questions with error bars."""

import json
from pathlib import Path

from tests.cli.cli_cases import SMALL, Case, run, small_rows


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


def test_a_bound_that_adds_up_cells_says_where_it_comes_from(survey: Path):
    one = " ".join(run("answer", survey / "survey.release", "sex = 'female'").err.split())
    assert "The bound is that of the certified table of" in one
    assert "such as marginals:1+marginals:2, certifies them" in one
    pair = run("answer", survey / "survey.release", "smoker and sex = 'female'").err
    assert "certified table of" not in pair


def test_of_which_rows_figures_are(case: Case):
    """With a unit, a release is of the rows that count: answers, estimates and the release say so."""
    case.schema.write_text(
        SMALL.replace("version = 1\n", 'version = 1\nunit = "id"\nmax_rows = 2\n')
        + '\n[[column]]\nname = "id"\ntype = "identifier"\n'
    )
    case.data.write_text(
        "\n".join(
            f"{line},{'id' if not at else at // 2}"
            for at, line in enumerate(small_rows().splitlines())
        )
    )
    made = run("release", case.data, "--schema", case.schema, "--epsilon", 1, "--out", case.out)
    assert made.code == 0, made.err
    of = "at most 2 rows of each id"
    assert of in made.out
    assert of in run("answer", case.out, "age >= 30").out
    assert of in run("estimate", case.out, "share(age >= 30)").out
    assert of in (case.out / "report.html").read_text()
