"""Options that several commands share."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import understudy as us
from tests.cli.cli_cases import Case, run
from understudy.cli import options, shell
from understudy.errors import InputError


@dataclass(frozen=True)
class Group:
    """Options that belong together."""

    first: Annotated[int, options.option("--first N", "The first.", min=1)] = 3
    second: Annotated[str | None, options.option("--second T", "The second.")] = None


def test_a_group_is_shown_and_read_option_by_option():
    seen, app = [], typer.Typer()

    @app.command()
    @shell.guarded
    def command(name: str, *, group: Group, last: bool = False) -> None:
        seen.append((name, group, last))

    runner = CliRunner()
    for words, group in [((), Group()), (("--second", "b", "--first", "5"), Group(5, "b"))]:
        assert runner.invoke(app, ["x", *words]).exit_code == 0
        assert seen.pop() == ("x", group, False)
    shown = runner.invoke(app, ["--help"]).output
    assert shown.index("--first") < shown.index("--second") < shown.index("--last")
    assert runner.invoke(app, ["x", "--first", "0"]).exit_code == 2
    command(name="y", second="c")
    assert seen == [("y", Group(3, "c"), False)]


def test_a_command_that_writes_needs_a_new_name_outside_of_releases(tmp_path):
    (tmp_path / "release.json").touch()
    with pytest.raises(InputError, match="lies in the release"):
        options.require_outside(tmp_path / "sub" / "x.json", "it is not private")
    with pytest.raises(InputError, match="not overwritten"):
        options.require_new(tmp_path / "release.json")
    with pytest.raises(InputError, match="make it first"):
        options.require_new(tmp_path / "nowhere" / "x.json")


def test_parameters_of_a_method(case: Case):
    made = case.release("--set", "rounds=2", "--set", "measure=false", method="mwem")
    assert made.code == 0, made.err
    assert us.Release.load(case.out).method["rounds"] == 2
    for setting, said in [
        ("rounds", "name=value"),
        ("round=2", "rounds"),
        ("rounds=two", "whole number"),
        ("rounds=-1", "below 0"),
        ("rounds=0", "rounds = 0"),
        ("name=mst", "no parameter"),
        ("measure=1", "true or false"),
    ]:
        wrong = run(
            "plan", "--schema", case.schema, "--epsilon", 1, "--method", "mwem", "--set", setting
        )
        assert (wrong.code, said in wrong.err) == (2, True), wrong.err


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5pp", 0.005),
        ("0.5%", 0.005),
        ("2 percentage points", 0.02),
        ("0.01", 0.01),
        (None, None),
    ],
)
def test_an_error_is_in_percentage_points_or_a_share(text, value):
    assert options.share(text) == pytest.approx(value)


def test_what_is_no_error_is_refused_with_both_ways_to_write_one():
    with pytest.raises(InputError, match=r"--target-error half.*0\.5pp.*0\.005"):
        options.share("half")
