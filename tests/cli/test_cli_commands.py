"""Every command on its happy path."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from cli_cases import SMALL, Case, run, small_rows
from pyarrow import csv, parquet
from typer.testing import CliRunner

import understudy as us
from understudy import demo
from understudy.cli import app

# schema


def test_draft_confirm_check(tmp_path: Path):
    data = tmp_path / "t.csv"
    data.write_text(small_rows())
    schema = tmp_path / "t.schema.toml"

    drafted = run("schema", "draft", data)
    assert drafted.code == 0
    assert "NOT PRIVATE" in drafted.out
    assert "lower, upper" in drafted.out
    assert f"understudy schema confirm {schema} --all" in drafted.out
    assert us.Schema.load(schema).columns[0].read_from_rows

    again = run("schema", "draft", data)
    assert (again.code, "not overwritten" in again.err) == (2, True)

    checked = run("schema", "check", schema)
    assert checked.code == 0
    assert "read from rows" in checked.out
    assert "Before a release" in checked.out

    neither = run("schema", "confirm", schema)
    assert neither.code == 2
    assert "--all" in neither.err
    unknown = run("schema", "confirm", schema, "--column", "agee")
    assert unknown.code == 2
    assert "agee" in unknown.err

    one = run("schema", "confirm", schema, "--column", "age")
    assert one.code == 0
    assert [bool(c.read_from_rows) for c in us.Schema.load(schema).columns] == [False, True, True]
    rest = run("schema", "confirm", schema, "--all")
    assert rest.code == 0
    assert "ready for a release" in rest.out
    us.Schema.load(schema).require_confirmed()
    assert "DRAFT" not in schema.read_text()
    assert run("schema", "confirm", schema, "--all").code == 0


def test_confirm_keeps_comments_and_all_other_facts(tmp_path: Path):
    schema = tmp_path / "s.toml"
    schema.write_text(
        SMALL.replace('name = "age"', 'name = "age"  # from the census form')
        .replace("bins = 10", 'bins = 10\nread_from_rows = [\n  "lower",\n  "upper",\n]')
        .replace("bins = 5", 'bins = 5\nread_from_rows = ["upper"]')
    )
    wanted = us.Schema.loads(SMALL)
    assert run("schema", "confirm", schema, "--column", "age").code == 0
    assert "from the census form" in schema.read_text()
    assert us.Schema.load(schema).columns[0] == wanted.columns[0]
    assert us.Schema.load(schema).columns[2].read_from_rows == ("upper",)
    assert run("schema", "confirm", schema, "--all").code == 0
    assert us.Schema.load(schema) == wanted


def test_check_with_data_says_it_is_not_private(tmp_path: Path):
    schema, data = tmp_path / "s.toml", tmp_path / "t.csv"
    schema.write_text(SMALL)
    data.write_text(small_rows(20))
    fine = run("schema", "check", schema, "--data", data)
    assert (fine.code, "NOT PRIVATE" in fine.out, "fits" in fine.out) == (0, True, True)
    data.write_text(small_rows(20) + "500,X,1\n")
    wrong = run("schema", "check", schema, "--data", data)
    assert wrong.code == 1
    assert "NOT PRIVATE" in wrong.out
    assert "500" in wrong.out


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("mbi", '{"age": 85, "sex": 2}', "ready for a release"),
        ("sdv", '{"columns": {"age": {"sdtype": "numerical"}}}', "fill in"),
    ],
)
def test_import(tmp_path: Path, kind: str, text: str, said: str):
    source, out = tmp_path / "other.json", tmp_path / "s.toml"
    source.write_text(text)
    made = run("schema", "import", source, "--from", kind, "--out", out)
    assert made.code == 0, made.err
    assert said in made.out
    assert us.Schema.load(out).columns[0].name == "age"
    assert run("schema", "import", source, "--from", kind, "--out", out).code == 2


# plan


def test_plan_reads_the_schema_alone(case: Case):
    case.data.unlink()
    shown = run("plan", "--schema", case.schema, "--epsilon", 1, "--method", "mst")
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


# release, verify, sample, answer


def test_release_tells_the_promise_and_what_comes_next(survey: Path):
    screen = (survey / "screen.txt").read_text()
    release = us.Release.load(survey / "survey.release")
    assert release.promise in screen
    assert str(release.certificate) in screen
    assert "--ledger FILE --dataset NAME" in screen
    for command in ("verify", "sample", "answer"):
        assert f"understudy {command} {survey / 'survey.release'}" in screen
    example = re.search(r'understudy answer \S+ "(.+)"', screen)
    assert example is not None
    assert run("answer", survey / "survey.release", example[1]).code == 0


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(1e-9, "3 of 3 rounds ended without a proof: time was up"), (60, "0 of 3 rounds ended")],
)
def test_release_counts_the_rounds_without_a_proof(case: Case, seconds: float, told: str):
    pytest.importorskip("ortools")
    made = case.release(
        "--method", "dualquery", "--set", "rounds=3", "--set", "oracle=exact",
        "--set", f"seconds={seconds}",
    )  # fmt: skip
    assert made.code == 0, made.err
    assert told in " ".join(made.out.split())
    assert ("privacy is untouched" in " ".join(made.out.split())) == (seconds < 1)


def test_release_with_a_ledger_publishes_its_digest(case: Case):
    made = case.release("--variations", "--rows", 50, "--key", 7, "--beta", 0.1)
    assert made.code == 0, made.err
    assert case.kinds()[-2:] == ["settle", "publish"]
    assert us.Release.load(case.out).rows.num_rows == 50
    assert us.Release.load(case.out).certificate.variations is not None
    digest = json.loads((case.out / "release.json").read_bytes())["digest"]
    checked = run("verify", case.out, "--ledger", case.ledger, "--dataset", "t")
    assert checked.code == 0
    assert "with this bundle's digest" in checked.out
    assert run("verify", case.out, "--digest", digest.upper()).code == 0

    shown = run("ledger", "show", case.ledger)
    assert shown.code == 0
    assert "finished" in shown.out
    assert "ε = 1 of 3" in shown.out
    assert "hold together" in shown.out
    [view] = json.loads(run("ledger", "show", case.ledger, "--json").out)
    assert view["spent"]["epsilon"] == 1
    assert view["chain"] == {"holds": True, "problem": None}
    assert view["releases"][0]["bundle"] == digest


def test_parameters_of_a_method(case: Case):
    made = case.release("--set", "rounds=2", "--set", "measure=false", method="mwem")
    assert made.code == 0, made.err
    assert us.Release.load(case.out).method["rounds"] == 2
    for setting, said in [
        ("rounds", "name=value"),
        ("round=2", "rounds"),
        ("rounds=two", "whole number"),
        ("rounds=-1", "above 0"),
        ("name=mst", "no parameter"),
        ("measure=1", "true or false"),
    ]:
        wrong = run(
            "plan", "--schema", case.schema, "--epsilon", 1, "--method", "mwem", "--set", setting
        )
        assert (wrong.code, said in wrong.err) == (2, True), wrong.err


def test_neighbours_follow_the_ledger(tmp_path: Path):
    case = Case(tmp_path)
    case.data.write_text(small_rows())
    case.schema.write_text(SMALL)
    opened = run(
        "ledger", "open", case.ledger, "--dataset", "t", "--epsilon", 3,
        "--neighbours", "replace", "--rows-public", 400, "--composition", "zcdp",
    )  # fmt: skip
    assert opened.code == 0
    wrong = case.release("--neighbours", "add-remove")
    assert wrong.code == 2
    assert case.kinds() == ["open"]
    assert case.release().code == 0
    assert us.Release.load(case.out).relation is us.Relation.REPLACE


def test_verify(survey: Path, tmp_path: Path):
    folder = survey / "survey.release"
    assert run("verify", folder).code == 0
    told = json.loads(run("verify", folder, "--json").out)
    assert told["passed"] is True
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
    assert "refused" in changed.out


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_sample(survey: Path, tmp_path: Path, suffix: str):
    out = tmp_path / f"rows{suffix}"
    made = run("sample", survey / "survey.release", "--rows", 300, "--key", 1, "--out", out)
    assert made.code == 0, made.err
    assert "certificate speaks of the rows in" in made.err
    table = csv.read_csv(out) if suffix == ".csv" else parquet.read_table(out)
    assert table.num_rows == 300
    assert table.column_names == [c.name for c in demo.schema().written]
    if suffix == ".parquet":
        assert table.schema.equals(demo.schema().arrow_schema)
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    before = out.read_bytes()
    again = run("sample", survey / "survey.release", "--rows", 300, "--out", out)
    assert (again.code, "not overwritten" in again.err) == (2, True)
    assert out.read_bytes() == before
    out.unlink()
    run("sample", survey / "survey.release", "--rows", 300, "--key", 1, "--out", out)
    assert out.read_bytes() == before


def test_sample_of_no_rows_and_of_another_format(survey: Path, tmp_path: Path):
    folder, out = survey / "survey.release", tmp_path / "rows.parquet"
    assert run("sample", folder, "--rows", 0, "--out", out).code == 0
    assert parquet.read_table(out).num_rows == 0
    assert run("sample", folder, "--rows", 5, "--out", tmp_path / "rows.xlsx").code == 2
    assert run("sample", folder, "--rows", -5, "--out", tmp_path / "rows.csv").code == 2
    assert run("sample", folder, "--out", tmp_path / "no" / "rows.csv").code == 2


def test_answer(survey: Path):
    folder = survey / "survey.release"
    shown = run("answer", folder, "age >= 65 and sex = 'female'")
    assert shown.code == 0
    assert "certified at 95 %" in shown.out
    told = json.loads(run("answer", folder, "age >= 65 and sex = 'female'", "--json").out)
    assert told["low"] <= told["estimate"] <= told["high"]
    beyond = json.loads(run("answer", folder, "smoker and insured and sex = 'male'", "--json").out)
    assert beyond["certified"] is False
    assert beyond["low"] is None
    unknown = run("answer", folder, "agee > 3")
    assert (unknown.code, "did you mean" in unknown.err) == (2, True)


# ledger


def test_ledger_open_again_and_with_other_facts(case: Case):
    assert "was open already" in run(
        "ledger", "open", case.ledger, "--dataset", "t", "--epsilon", "3.0"
    ).out  # fmt: skip
    other = run("ledger", "open", case.ledger, "--dataset", "t", "--epsilon", 4)
    assert (other.code, "never changed" in other.err) == (2, True)


def test_a_crashed_release_is_shown_and_settled(case: Case):
    with us.Ledger(case.ledger) as ledger:
        plan = us.prepare(us.Schema.load(case.schema), epsilon=1, method="independent")
        crashed = ledger.reserve("t", plan.budget, plan.plan, relation=us.Relation.ADD_REMOVE)
    shown = run("ledger", "show", case.ledger, "--dataset", "t")
    assert f"understudy ledger settle {case.ledger} {crashed.id}" in shown.out
    settled = run("ledger", "settle", case.ledger, crashed.id)
    assert settled.code == 0
    assert "ε = 1" in settled.out
    assert "ε = 3" in settled.out
    assert "already" in run("ledger", "settle", case.ledger, crashed.id).out
    assert run("ledger", "settle", case.ledger, "0123").code == 2


def test_ledger_show_tells_a_broken_chain(case: Case):
    import sqlite3

    with sqlite3.connect(case.ledger) as db:
        db.execute("DROP TRIGGER no_update")
        db.execute("UPDATE entries SET body = replace(body, '\"3\"', '\"9\"')")
    db.close()
    shown = run("ledger", "show", case.ledger)
    assert shown.code == 1
    assert "✗" in shown.out


def test_a_missing_ledger_is_not_made(tmp_path: Path):
    ledger = tmp_path / "no.ledger"
    assert run("ledger", "show", ledger).code == 2
    assert run("ledger", "settle", ledger, "0123").code == 2
    assert run("ledger", "open", ledger, "--dataset", "t", "--epsilon", -1).code == 2
    assert run("ledger", "open", ledger, "--dataset", "", "--epsilon", 1).code == 2
    late = run("ledger", "open", ledger, "--dataset", "t", "--epsilon", 1, "--delta", "0.1",
               "--rows-public", 1000)  # fmt: skip
    assert (late.code, "delta = 0.1" in late.err) == (2, True)
    assert list(tmp_path.iterdir()) == []


# the rest


def test_demo(tmp_path: Path):
    shown = run("demo", tmp_path / "demo", "--rows", 500, "--method", "independent")
    assert shown.code == 0, shown.err
    assert "passes every check" in shown.out
    assert us.verify(tmp_path / "demo" / "survey.release").passed
    assert run("demo", tmp_path / "demo").code == 2
    assert run("demo", tmp_path / "other", "--method", "none").code == 2
    assert not (tmp_path / "other").exists()


def test_methods_and_version():
    listed = run("methods")
    assert listed.code == 0
    for name in us.METHODS:
        assert name in listed.out
    assert run("--version").out == f"understudy {us.__version__}\n"


def test_wrong_use_is_2():
    for arguments in ([], ["release"], ["nonsense"], ["schema"], ["plan", "--epsilon"]):
        assert run(*arguments).code == 2, arguments
    assert "did you" not in run("sample").err
    assert "See `understudy release --help`" in run("release", "x").err


def test_every_command_teaches():
    runner = CliRunner(env={"COLUMNS": "100"})
    commands = [
        ["schema", "draft"], ["schema", "confirm"], ["schema", "import"], ["schema", "check"],
        ["plan"], ["release"], ["methods"], ["verify"], ["sample"], ["answer"],
        ["sign"], ["keys", "new"],
        ["ledger", "open"], ["ledger", "show"], ["ledger", "settle"], ["demo"],
    ]  # fmt: skip
    for command in commands:
        shown = runner.invoke(app, [*command, "--help"])
        assert shown.exit_code == 0
        assert "Example" in shown.output, command
        assert "understudy " + command[0] in shown.output


def test_the_runner_sees_exit_codes_too(tmp_path: Path):
    assert CliRunner().invoke(app, ["verify", str(tmp_path)]).exit_code == 2


def test_a_release_keeps_types(survey: Path):
    rows = us.Release.load(survey / "survey.release").rows
    assert isinstance(rows, pa.Table)
    assert rows.schema.equals(demo.schema().arrow_schema)
