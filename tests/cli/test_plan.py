"""`understudy plan`: what is said before anything is spent."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.cli_cases import Case, run
from tests.cli.test_release import TWO
from understudy.cli.commands import command as printed
from understudy.cli.commands import program, quoted
from understudy.privacy import Ledger
from understudy.schema import Category, Schema

# plan


def test_plan_reads_the_schema_alone(case: Case):
    case.data.unlink()
    choices = ("--schema", case.schema, "--epsilon", 1, "--method", "mst")
    assert "tree pairs" not in run("plan", *choices).out, "charges are shown with --full"
    shown = run("plan", *choices, "--full")
    assert shown.code == 0
    for words in ("number of rows", "tree pairs", "certificate", "memory", "time", "assumed"):
        assert words in shown.out
    told = run(
        "plan", "--schema", case.schema, "--epsilon", 1, "--rows", 5000, "--variations", "--json"
    )
    plan = json.loads(told.out)
    assert plan["cost"]["epsilon"] <= 1
    assert plan["forecast"]["rows"] == 5000
    assert sum(charge["share_of_rho"] for charge in plan["charges"]) == pytest.approx(1)
    assert "certificate of total variation" in [charge["purpose"] for charge in plan["charges"]]
    assert all(charge["noise_rows"] > 0 for charge in plan["charges"])


def entries(case):
    with Ledger(case.ledger) as ledger:
        return [entry.kind for entry in ledger.entries("t")]


def test_plan_says_what_error_to_expect(case):
    shown = run("plan", "--schema", case.schema, "--epsilon", 1, "--rows", 5000)
    assert shown.code == 0, shown.err
    for figure in ("worst cell", "typical table", "certificate", "time", "memory", "budget"):
        assert shown.out.count(f"\n  {figure} ") == 1
    assert shown.out.count("estimate)") == 2
    assert "a gain of at most 23.2 percentage points" in shown.out
    full = run("plan", "--schema", case.schema, "--epsilon", 1, "--rows", 5000, "--full")
    assert full.out.startswith(shown.out.partition("\nNext")[0])
    assert "age × income" in full.out
    assert "mostly noise" not in full.out
    told = json.loads(
        run("plan", "--schema", case.schema, "--epsilon", 1, "--rows", 5000, "--json").out
    )["forecast"]["errors"]
    assert told["columns"] == [["age", "sex"], ["age", "income"], ["sex", "income"]]
    assert len(told["total_variations"]) == len(told["worst_cells"]) == 3
    assert not told["noise"]


def test_plan_prints_the_command_of_the_release_that_it_is_about(case: Case, tmp_path: Path):
    chosen = (
        "--epsilon", 0.5, "--purpose", "regression:income ~ age + sex", "--purpose", "subgroups:sex",
        "--variations", "--ledger", case.ledger, "--dataset", "t", "--delta", "1e-10",
    )  # fmt: skip
    planned = run("plan", "--schema", case.schema, *chosen, "--rows", 400)
    line = planned.out.partition("Next\n")[2].strip()
    assert line == printed(
        "release", case.data, "--schema", case.schema, "--epsilon", 0.5, "--delta", "1e-10",
        *chosen[2:11], "--checkpoint", case.folder / "t.checkpoint", "--out", case.out,
    )  # fmt: skip
    assert run(*shlex.split(line.removeprefix(program()))).code == 0
    assert not (case.folder / "t.checkpoint").exists(), "it is needed no more"
    case.data.unlink()
    found = run("plan", "--schema", case.schema, "--target-error", "20pp", "--rows", 400)
    assert "Next" not in found.out, "no command that would not work as printed"
    needed = found.out.partition("needs --epsilon ")[2].split()[0]
    assert re.search(rf"`.* release TABLE .* --epsilon {re.escape(needed)} --out", found.err)


def test_plan_says_what_groups_will_lack_while_a_purpose_can_still_be_given(tmp_path: Path):
    columns = tuple(Category(f"c{i}", tuple("abcdefgh")) for i in range(60))
    Schema(columns).save(tmp_path / "wide.toml")
    asked = ("plan", "--schema", tmp_path / "wide.toml", "--epsilon", 1, "--rows", 3000)
    plain = run(*asked).out
    measured, pairs, left = re.search(
        r"all 60 columns and (\d+) of ([\d,]+) pairs are measured; the other ([\d,]+) follow", plain
    ).groups()
    assert (pairs, left) == ("1,770", f"{1770 - int(measured):,}")
    assert f"“not determined” for these {left} pairs" in plain
    assert "add --purpose subgroups:COLUMN now" in plain
    given = run(*asked, "--purpose", "subgroups:c0").out
    assert f"all 60 columns and {int(measured) + 59} of 1,770 pairs are measured" in given
    assert "If you will compare other groups" in given


def test_plan_says_which_tables_are_measured(case):
    planned = run("plan", "--schema", case.schema, "--epsilon", 1, "--rows", 1000)
    assert "pairs are measured" in planned.out


def test_plan_says_that_everything_would_be_noise(case):
    shown = run("plan", "--schema", case.schema, "--epsilon", "0.001", "--rows", 100)
    assert shown.code == 0
    assert "Not useful for analysis" in shown.out
    assert " with ε = 1, about 33 %, and no ε up to 10 would make it useful" in shown.out
    full = run("plan", "--schema", case.schema, "--epsilon", "0.001", "--rows", 100, "--full")
    assert "mostly noise: with 100 rows this budget shows hardly more than the schema" in full.out


def test_methods_without_a_forecast_print_none(case):
    choices = ("--schema", case.schema, "--epsilon", 1, "--method", "independent")
    assert "this method forecasts none" in run("plan", *choices).out
    assert json.loads(run("plan", *choices, "--json").out)["forecast"]["errors"] is None


def test_plan_finds_the_epsilon_for_a_target(case):
    choices = ("--schema", case.schema, "--rows", 5000, "--target-error", "0.03")
    shown = run("plan", *choices)
    assert shown.code == 0, shown.err
    assert "An expected error of 3 percentage points (worst cell) needs --epsilon " in shown.out
    found = shown.out.split("needs --epsilon ")[1].split()[0]
    told = json.loads(run("plan", *choices, "--json").out)
    assert told["budget"]["epsilon"] == found
    assert told["forecast"]["errors"]["worst"] <= 0.03
    mean = run("plan", *choices, "--target-of", "mean")
    assert "(mean total variation) needs" in mean.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--target-error", "0.1", "--epsilon", "1"), "one of the two"),
        ((), "one of the two"),
        (("--target-error", "0"), "above 0 and below 1"),
        (("--target-error", "1.5"), "above 0 and below 1"),
        (("--target-error", "0.000001"), "cannot be reached"),
        (("--target-error", "0.1", "--method", "independent"), "does not forecast"),
        (("--epsilon", "1", "--purpose", "model:ages"), "(did you mean 'age'?)"),
        (("--epsilon", "1", "--purpose", "models:age"), "a purpose is 'model:TARGET'"),
        (("--epsilon", "1", "--workload", "marginals:2:with=ages"), "(did you mean 'age'?)"),
    ],
)
def test_refusals_cost_nothing(case, tmp_path, arguments, said):
    planned = run("plan", "--schema", case.schema, "--rows", 500, *arguments)
    made = run(
        "release", case.data, "--schema", case.schema, "--out", tmp_path / "r", "--rows", 500,
        "--ledger", case.ledger, "--dataset", "t", *arguments,
    )  # fmt: skip
    for shown in (planned, made):
        assert shown.code == 2
        assert said in " ".join(shown.err.split())
    assert entries(case) == ["open"]
    assert not (tmp_path / "r").exists()


def test_a_plan_says_what_a_purpose_changes(case):
    both = ("--purpose", "model:age", "--purpose", "regression:income ~ sex")
    shown = run("plan", "--schema", case.schema, "--epsilon", 1, "--rows", 5000, *both)
    assert shown.code == 0, shown.err
    said = " ".join(shown.out.split())
    assert "purpose model:age" in said
    assert "tables with age and tables of the regression of income: " in said
    assert re.search(r"expected error \S+ instead of \S+ percentage points", said)
    for command in ("plan", "release"):
        assert "regression:Y ~ A + B" in " ".join(run(command, "--help").out.split())


def test_a_plan_says_what_engines_do(case):
    told = run("plan", "--schema", case.schema, "--epsilon", 1, "--rows", 1000, "--full")
    assert "a database" in told.out
    assert "counts, at most" in told.out
    machine = json.loads(run("plan", "--schema", case.schema, "--epsilon", 1, "--json").out)
    engines = {each["engine"]: each for each in machine["engines"]}
    assert engines["sql"]["passes"] == engines["spark"]["passes"] == 1
    assert engines["memory"]["bytes_back"] == 0


def test_a_theorem_that_says_nothing_is_said_to(case):
    choices = ("--schema", case.schema, "--epsilon", 1, "--method", "dualquery", "--rows", 5000)
    shown = run("plan", *choices, "--full")
    assert shown.code == 0, shown.err
    said = " ".join(shown.out.split())
    assert (
        "theorem worst error ≤ 100.00 percentage points, which says nothing here (95 % confidence): η"
        in said
    )
    told = json.loads(run("plan", *choices, "--json").out)["forecast"]["theorem"]
    assert told["bound"] == 1
    assert "says nothing here" in told["words"]


def test_a_theorem_that_says_something_is_shown(case):
    choices = ("--epsilon", 10, "--rows-public", 10**8)
    signed = ("--method", "mwem", "--set", "measure=false", "--set", "rounds=2000")
    shown = run("plan", "--schema", case.schema, *choices, *signed, "--full")
    assert shown.code == 0, shown.err
    (line,) = (line for line in shown.out.splitlines() if line.strip().startswith("theorem"))
    assert 0 < float(line.split("≤")[1].split()[0]) < 20
    assert "says nothing" not in shown.out


def test_a_margin_of_the_whole_table_says_nothing(case):
    shown = run("plan", "--schema", case.schema, "--epsilon", "0.001", "--rows", 100)
    (line,) = (line for line in shown.out.splitlines() if "true worst error" in line)
    assert line.endswith("(95 % confidence), which says nothing here")


def test_a_plan_with_an_open_schema_names_the_command_for_its_own_file(case, tmp_path):
    path = tmp_path / "open one.toml"
    path.write_text(case.schema.read_text().replace("[understudy]", '[understudy]\nunit = "?"'))
    refused = run("plan", "--schema", path, "--epsilon", 1)
    assert refused.code == 2
    assert printed("schema", "review", path) in refused.err
    assert "S.toml" not in refused.err


def test_a_plan_names_the_ends_that_will_be_found(case):
    """And so does a review, before anything is spent; not where bounds are declared."""
    told = "will be found privately"
    assert told not in run("plan", "--schema", case.schema, "--epsilon", 1).out
    open_ = '[[column]]\nname = "{}"\ntype = "integer"\n{}'
    columns = open_.format("visits", "") + open_.format("paid", "lower = 0\nupper = 90000\n")
    case.schema.write_text(f'[understudy]\nversion = 1\nunit = "row"\n{columns}')
    for shown in (
        run("plan", "--schema", case.schema, "--epsilon", 1, "--rows", 1000),
        run("schema", "review", case.schema, "--list"),
    ):
        assert f"of visits {told}" in re.sub(r"\s+", " ", shown.out + shown.err)
    plan = json.loads(run("plan", "--schema", case.schema, "--epsilon", 1, "--json").out)
    assert plan["forecast"]["ends"].startswith("of visits")


def test_a_plan_of_two_tables_speaks_of_families_and_finds_both_files(tmp_path: Path):
    (tmp_path / "s.toml").write_text(TWO)
    planned = ("plan", "--schema", tmp_path / "s.toml", "--epsilon", 1)
    early = run(*planned)
    assert early.out.startswith("Plan for 3 families (public), by ")
    assert "release TABLE --children CHILDREN" in early.err
    for name in ("homes.csv", "people.csv"):
        (tmp_path / name).touch()
    tables = (
        f"{quoted(str(tmp_path / 'homes.csv'))} --children {quoted(str(tmp_path / 'people.csv'))}"
    )
    assert f" release {tables} --schema " in run(*planned).out
